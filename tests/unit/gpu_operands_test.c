/* What make gpu-bench multiplies: numbers as a model has them.  bench/gpu_train on the CPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/gpu_train/gpu_train.h"
#include "kernels/fp8_convert.h"

enum { N = 8 * 50304 }; /* bf16 numbers of a place */
static uint16_t low[N];

static int open_places(void **s)
{
    (void)s;
    tokens = 8;
    place_bytes = sizeof low;
    if (device_open(&dev, "cpu", 1, &err) < 0)
        return -1;
    take_places();
    return 0;
}

static int close_places(void **s)
{
    (void)s;
    give_places();
    device_close(dev);
    return 0;
}

static void bf16_operands_are_normal_numbers(void **s)
{
    int by_exponent[256] = {0}, exponents = 0;
    double sum = 0, squares = 0;

    (void)s;
    assert_int_equal(device_get(dev, low, place[7], sizeof low, &err), 0);
    for (int i = 0; i < N; i++) {
        double x = (double)bf16_to(low[i]);
        by_exponent[low[i] >> 7 & 255]++;
        sum += x;
        squares += x * x;
    }
    for (int i = 0; i < 256; i++)
        exponents += by_exponent[i] > 0;
    assert_int_equal(by_exponent[255], 0); /* no NaN, no infinity */
    assert_true(exponents >= 12);
    assert_true(fabs(sum / N) < 0.01);
    assert_true(fabs(squares / N - 1) < 0.02);
}

/* Read as fp32, as AdamW and sums read them. */
static void no_number_is_infinite_as_fp32(void **s)
{
    static float x[N / 2];

    (void)s;
    assert_int_equal(device_get(dev, x, place[0], sizeof x, &err), 0);
    for (int i = 0; i < N / 2; i++)
        assert_true(fabsf(x[i]) < 10);
}

/* Each is its bf16 number within what the format keeps, and few are equal. */
static void of_format(enum fp8 format, int from, int to, float relative)
{
    static uint8_t q[N];
    int seen[256] = {0}, unlike = 0;

    assert_int_equal(device_get(dev, low, place[from], sizeof low, &err), 0);
    assert_int_equal(device_get(dev, q, place[to], sizeof q, &err), 0);
    for (int i = 0; i < N; i++) {
        float want = bf16_to(low[i]), got = fp8_to(format, q[i]) / 64;
        if (!(fabsf(got - want) <= relative * fabsf(want) + 0x1p-16f))
            fail_msg("element %d is %g, not %g", i, (double)got, (double)want);
        seen[q[i]]++;
    }
    for (int i = 0; i < 256; i++)
        unlike += seen[i] > 0;
    assert_true(unlike > 100);
}

static void fp8_operands_are_converted(void **s)
{
    (void)s;
    put_fp8();
    of_format(FP8_E4M3, 7, 0, 0x1p-4f);
    of_format(FP8_E4M3, 3, 1, 0x1p-4f);
    of_format(FP8_E5M2, 7, 5, 0x1p-3f);
}

/* A row that stands for an op of plans has what was planned, and leaves a line for quern train --plan-device. */
static void measured_ops_become_a_file_of_the_device(void **s)
{
    char name[sizeof dev->name], path[] = "/tmp/gpu_device.XXXXXX";
    struct plan_machine m;
    int fd = mkstemp(path), n;

    (void)s;
    assert_true(fd >= 0);
    setenv("QUERN_DEVICE_FILE", path, 1);
    memcpy(name, dev->name, sizeof name);
    snprintf(dev->name, sizeof dev->name, "cuda: NVIDIA H200");
    assert_true(plan_machine_named(&machine, dev->name));
    stands_for(PLAN_COPY, (struct plan_dims){.m = 1, .n = sizeof low});
    job("copy", "all", run_copy, (const int64_t[]){sizeof low}, 2.0 * sizeof low, 0);
    job("copy", "once more, for no op", run_copy, (const int64_t[]){sizeof low}, 2.0 * sizeof low, 0);
    memcpy(dev->name, name, sizeof name);
    unsetenv("QUERN_DEVICE_FILE");
    assert_int_equal(plan_device_load(&m, path, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_true(m.rates.copy > 0 && m.rates.copy != machine.rates.copy);
    unlink(path);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bf16_operands_are_normal_numbers),
                                       cmocka_unit_test(no_number_is_infinite_as_fp32),
                                       cmocka_unit_test(fp8_operands_are_converted),
                                       cmocka_unit_test(measured_ops_become_a_file_of_the_device)};

    return cmocka_run_group_tests_name("gpu_operands", tests, open_places, close_places);
}
