/* The CUDA kernels, run on the CPU by tests/simt.h, against their CPU twins; tests/simt.h
 * itself, and the mistakes that it must see; the hashes that both sides share. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "kernels/device.h"
#include "kernels/hashes.h"
#include "tests/sanitized.h"
#include "tests/simt_device.h"
#include "tests/twins.h"

/* ---- tests/simt.h ---- */

static void right_kernels_are_right(void **s)
{
    (void)s;
    for (int order = 0; order < 3; order++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            simt_set_order(order, seed);
            assert_int_equal(simt_block_sums(SIMT_RIGHT), 0);
            assert_int_equal(simt_copies(SIMT_RIGHT), 0);
            assert_int_equal(simt_warp_calls(SIMT_RIGHT), 0);
            assert_int_equal(simt_atomics(SIMT_RIGHT), 0);
            assert_int_equal(simt_shapes(), 0);
        }
}

/* Runs it in a process of its own: its exit status, or minus the signal that ended it. */
static int in_child(int (*run)(enum simt_mistake), enum simt_mistake mistake)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        signal(SIGABRT, SIG_DFL);
        simt_set_order(0, 1);
        status = run(mistake) != 0;
        if (TSAN)
            exit(status); /* not _exit: the thread sanitizer changes the status here */
        _exit(status);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void mistakes_are_seen(void **s)
{
    (void)s;
    assert_int_equal(in_child(simt_block_sums, SIMT_RIGHT), 0);
    assert_int_not_equal(in_child(simt_block_sums, SIMT_NO_BARRIER), 0);
    assert_int_equal(in_child(simt_block_sums, SIMT_TWO_BARRIERS), -SIGABRT);
    assert_int_equal(in_child(simt_block_sums, SIMT_STUCK), -SIGABRT);
    assert_int_equal(in_child(simt_copies, SIMT_RIGHT), 0);
    assert_int_not_equal(in_child(simt_copies, SIMT_NO_WAIT), 0);
    assert_int_not_equal(in_child(simt_copies, SIMT_NO_BARRIER), 0);
    assert_int_equal(in_child(simt_copies, SIMT_LEFT_BEHIND), -SIGABRT);
    assert_int_equal(in_child(simt_warp_calls, SIMT_WRONG_MASK), -SIGABRT);
    assert_int_equal(in_child(simt_warp_calls, SIMT_WRONG_LANE), -SIGABRT);
    /* Only the sanitizer can see this one: fibers do not interrupt one another. */
    assert_int_equal(in_child(simt_atomics, SIMT_NO_ATOMIC), TSAN ? 66 : 0);
    if (TSAN)
        assert_int_equal(in_child(simt_block_sums, SIMT_NO_BARRIER), 66);
}

/* ---- hashes ---- */

static void hashes_are_those_of_the_library(void **s)
{
    _Alignas(8) unsigned char b[2200];

    (void)s;
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (unsigned char)(i * i / 7 + 13 * i);
    for (size_t n = 0; n < 300; n++)
        assert_true(xxh64(b + 1, n) == hash_xxh64((struct span){(char *)b + 1, n}, 0));
    for (int n = 1; n <= 275; n++)
        assert_true(xxh3_words((uint64_t *)b, n) == hash_xxh3_64((struct span){(char *)b, (size_t)n * 8}));
}

/* ---- twins ---- */

static struct twins twins;

static int open_twins(void **s)
{
    struct err e;

    (void)s;
    if (device_open_dedup(&twins.cpu, "cpu", 1, NULL, &e) < 0 || simt_open(&twins.other, 0, &e) < 0)
        return -1;
    twins.scale = 1;
    return 0;
}

static int close_twins(void **s)
{
    (void)s;
    device_close(twins.cpu);
    device_close(twins.other);
    return 0;
}

static void kernels_equal_their_twins(void **s)
{
    (void)s;
    for (int order = 0; order < (TSAN ? 1 : 3); order++)
        for (const struct twins_case *c = twins_cases; c->name; c++) {
            simt_set_order(order, 1);
            c->run(&twins);
            if (twins.wrong[0])
                fail_msg("%s, order %d: %s", c->name, order, twins.wrong);
        }
}

static void devices_are_refused_with_a_reason(void **s)
{
    char why[DEVICE_WHY_BYTES];
    struct device *dev;
    struct err e;

    (void)s;
    assert_int_equal(device_open_dedup(&dev, "tpu", 0, NULL, &e), ERR_ARG);
    assert_null(dev);
    setenv("QUERN_CUDA", "/no/such/library.so", 1);
    assert_int_equal(device_open_dedup(&dev, "cuda", 0, NULL, &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "/no/such/library.so"));
    assert_int_equal(device_open_dedup(&dev, "auto", 1, why, &e), 0);
    assert_int_equal(dev->kind, DEVICE_CPU);
    assert_non_null(strstr(why, "/no/such/library.so"));
    device_close(dev);
    setenv("QUERN_CUDA", "libm.so.6", 1); /* a library, but another */
    assert_int_equal(device_open_dedup(&dev, "cuda", 0, NULL, &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "not the CUDA backend"));
    unsetenv("QUERN_CUDA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_seen), /* first: the thread sanitizer does not follow a fork once there are fibers */
        cmocka_unit_test(right_kernels_are_right),
        cmocka_unit_test(hashes_are_those_of_the_library),
        cmocka_unit_test(kernels_equal_their_twins),
        cmocka_unit_test(devices_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests_name("twins", tests, open_twins, close_twins);
}
