/* What tests/simt.h sees of memory, alignment and launches that no GPU would start: each mistake, made by a kernel of
 * tests/simt_kernels.cu, stops the program with words that name it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/sanitized.h"
#include "tests/simt_device.h"
#include "tests/simt_memory.h"

#if defined(__clang__) /* checks no copies of structures, has no words for the other */
enum { BOUNDS = 0, ALIGNMENT = 0 };
#else
enum { BOUNDS = 1, ALIGNMENT = 1 };
#endif

static char said[4096];

/* Launches in a process of its own: its exit status, or minus the signal that ended it; `said` is what it said. */
static int in_child(enum simt_mistake mistake)
{
    int status = 0, to[2];
    size_t n = 0;
    pid_t pid;

    assert_int_equal(pipe(to), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(to[1], 2);
        close(to[0]);
        signal(SIGABRT, SIG_DFL); /* not cmocka's */
        signal(SIGSEGV, SIG_DFL);
        _exit(simt_launches(mistake) != 0);
    }
    close(to[1]);
    for (ssize_t k; n < sizeof said - 1 && (k = read(to[0], said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)k;
    said[n] = '\0';
    close(to[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* The mistake stops the program, which says both; the address sanitizer may be the first to say something. */
static void stops(enum simt_mistake mistake, const char *who, const char *what)
{
    int came = in_child(mistake);

    if (ASAN && strstr(said, "AddressSanitizer: use-after-poison"))
        return;
    if (came != -SIGABRT || !strstr(said, who) || !strstr(said, what))
        fail_msg("mistake %d: %d, '%s'", (int)mistake, came, said);
}

static void right_launches_are_right(void **s)
{
    (void)s;
    assert_int_equal(in_child(SIMT_RIGHT), 0);
    assert_string_equal(said, "");
    assert_int_equal(simt_launches(SIMT_RIGHT), 0);
}

static void kernels_do_not_reach_the_host(void **s)
{
    (void)s;
    stops(SIMT_HOST_ARGUMENT, "steps_kernel", "argument 2, mistake == SIMT_HOST_ARGUMENT ? host : in");
    stops(SIMT_HOST_FOLLOWED, "steps_kernel", "a pointer to the host's memory");
    stops(SIMT_COPY_OF_HOST, "a copy from the device", "no memory of the device");
}

static void the_host_does_not_reach_the_device(void **s)
{
    (void)s;
    stops(SIMT_HOST_READS, "the host touches memory of the device", "byte 0 of a block of 2048 bytes");
}

static void blocks_have_ends(void **s)
{
    (void)s;
    stops(SIMT_BEHIND_END, "steps_kernel", "what is not there");
    stops(SIMT_BEFORE, "steps_kernel", "what is not there");
    stops(SIMT_FREED, "steps_kernel", "what is not there");
    stops(SIMT_INNER_ADDRESS, "steps_kernel", "not from its arguments");
    stops(SIMT_LONG_COPY, "a copy", "2049 bytes");
}

static void misaligned_accesses_are_seen(void **s)
{
    (void)s;
    if (ALIGNMENT)
        stops(SIMT_MISALIGNED, "whole_kernel", "8 bytes off its alignment of 16");
    stops(SIMT_MISALIGNED_COPY, "copies 16 bytes", "not aligned");
    stops(SIMT_MISALIGNED_ROW, "a row of a matrix", "not aligned");
}

static void launches_have_limits(void **s)
{
    (void)s;
    if (BOUNDS)
        stops(SIMT_THREADS, "steps_kernel", "128 of 64 at most");
    stops(SIMT_BLOCKS, "steps_kernel", "65536 of 65535 at most");
    if (!ASAN)
        stops(SIMT_SHARED, "wide_kernel", "49156 of 49152 at most");
    stops(SIMT_DYNAMIC, "steps_kernel", "49156 of 49152 at most");
}

/* Memory that was freed is not given again at once, and all of it can be had again. */
static void memory_comes_back(void **s)
{
    enum { EACH = 8 << 20 };
    void *last = NULL;

    (void)s;
    for (int i = 0; i < 2000; i++) {
        void *p = simt_memory_new(i % 100 ? (size_t)(i % 7 * 1000) : EACH);
        assert_non_null(p);
        assert_ptr_not_equal(p, last);
        assert_int_equal((uintptr_t)p % 256, 0);
        simt_memory_free(p);
        last = p;
    }
    assert_null(simt_memory_new((size_t)1 << 50));
    simt_memory_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_do_not_reach_the_host),
        cmocka_unit_test(the_host_does_not_reach_the_device),
        cmocka_unit_test(blocks_have_ends),
        cmocka_unit_test(misaligned_accesses_are_seen),
        cmocka_unit_test(launches_have_limits),
        cmocka_unit_test(right_launches_are_right),
        cmocka_unit_test(memory_comes_back),
    };
    return cmocka_run_group_tests_name("simt", tests, NULL, NULL);
}
