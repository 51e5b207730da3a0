/* The CUDA kernels of training, run on the CPU by tests/simt.h, against their CPU twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/simt_device.h"
#include "tests/twins.h"

static struct twins twins;

static int open_twins(void **s)
{
    struct err e;

    (void)s;
    if (device_open(&twins.cpu, "cpu", 1, &e) < 0 || device_open(&twins.other, "cpu", 1, &e) < 0)
        return -1;
    twins.other->ops = &simt_ops;
    twins.plain = matmul_plain_cuda;
    setenv("XDG_CACHE_HOME", "/nowhere", 1); /* algorithms of products are not kept */
    twins.scale = 1;
    return 0;
}

static int close_twins(void **s)
{
    (void)s;
    device_close(twins.cpu);
    device_close(twins.other);
    simt_forget();
    return 0;
}

/* Each case with the warps in one order; TWINS_CASE=name for one case in all three. */
static void kernels_equal_their_twins(void **s)
{
    const char *only = getenv("TWINS_CASE");
    int order = 0;

    (void)s;
    for (const struct twins_case *c = train_twins_cases; c->name; c++)
        for (int i = 0; i < (only ? 3 : 1); i++) {
            if (only && strcmp(only, c->name) != 0)
                continue;
            simt_set_order(order++ % 3, 1);
            c->run(&twins);
            if (twins.wrong[0])
                fail_msg("%s, order %d: %s", c->name, (order - 1) % 3, twins.wrong);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_equal_their_twins)};

    return cmocka_run_group_tests_name("train_twins", tests, open_twins, close_twins);
}
