/* The CUDA kernels of training, run on the CPU by tests/simt.h, against their CPU twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/simt_device.h"
#include "tests/twins.h"

static struct twins twins;

/* All that a case finds wrong is said, not the first thing alone. */
static void say_wrong(const struct twins_found *f)
{
    if (f->why[0])
        fprintf(stderr, "%s (%lld of %lld wrong, largest %.3g, norm %.3g of the tolerance; %s)\n", f->why, (long long)f->wrong,
                (long long)f->n, f->most, f->norm, f->how);
}

static int open_twins(void **s)
{
    struct err e;

    (void)s;
    if (device_open(&twins.cpu, "cpu", 1, &e) < 0 || device_open(&twins.other, "cpu", 1, &e) < 0)
        return -1;
    twins.other->ops = &simt_ops;
    twins.other->how = twins.how;
    twins.plain = matmul_plain_cuda;
    twins.found = say_wrong;
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* algorithms of products are not kept */
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

/* ---- what a comparison reports ---- */

static matmul_fn *right_matmul;

/* The other device's product with one element wrong where there is a bias. */
static int matmul_with_wrong_bias(struct device *d, const struct matmul *p, struct err *e)
{
    int rc = right_matmul(d, p, e);

    if (rc == 0 && p->bias && p->m && p->n)
        memset((char *)p->c + (size_t)(p->n / 2) * dtype_size(p->dt_c), 0x47, dtype_size(p->dt_c));
    return rc;
}

static struct {
    int with_bias, without, wrong_with, wrong_without, by_library;
} counted;

static void count(const struct twins_found *f)
{
    bool biased = strstr(f->what, ", bias") && !strstr(f->what, "before the activation") && f->n;

    *(biased ? &counted.with_bias : &counted.without) += 1;
    if (!f->why[0])
        assert_true(f->wrong == 0 && f->most <= 1 && f->norm <= 1);
    else
        *(biased ? &counted.wrong_with : &counted.wrong_without) += 1;
    if (f->why[0] && biased)
        assert_true(f->wrong == 1 && f->most > 1);
    counted.by_library += strstr(f->how, "cuBLASLt algorithm") && strstr(f->how, "split-K 1");
}

/* A fault in one part of the epilogue fails each comparison that it is in, by its name, and no other. */
static void failures_do_not_hide_each_other(void **s)
{
    static struct device_ops ops;

    (void)s;
    ops = simt_ops;
    right_matmul = ops.matmul;
    ops.matmul = matmul_with_wrong_bias;
    twins.other->ops = &ops;
    twins.plain = matmul_with_wrong_bias;
    twins.found = count;
    twins.compared = twins.failed = 0;
    for (const struct twins_case *c = train_twins_cases; c->name; c++)
        if (strcmp(c->name, "matmul") == 0)
            c->run(&twins);
    twins.other->ops = &simt_ops;
    twins.plain = matmul_plain_cuda;
    twins.found = say_wrong;
    twins.wrong[0] = '\0';
    assert_true(counted.with_bias > 20 && counted.without > 20 && counted.by_library > 20);
    assert_int_equal(counted.wrong_with, counted.with_bias);
    assert_int_equal(counted.wrong_without, 0);
    assert_int_equal(twins.failed, counted.wrong_with);
    assert_int_equal(twins.compared, counted.with_bias + counted.without);
}

static void product_of(int64_t rows, bool back)
{
    static _Alignas(256) float a[96 * 64], b[96 * 64], c[96 * 96];
    struct matmul p = {.m = rows, .n = 32, .k = 64, .trans_b = true, .dt = DTYPE_F32, .dt_c = DTYPE_F32, .a = a, .b = b, .c = c,
                       .ragged = true};
    struct err e;

    if (back)
        p = (struct matmul){.m = 32, .n = 64, .k = rows, .trans_a = true, .dt = DTYPE_F32, .dt_c = DTYPE_F32, .a = a, .b = b,
                            .c = c, .beta = 1, .ragged = true};
    assert_int_equal(twins.other->ops->matmul(twins.other, &p, &e), 0);
}

/* Keys of a table of n rows are sorted by the bits of n. */
static void sorts_take_the_bits_that_are_used(void **s)
{
    static float dwte[1000 * 8], dout[4 * 8];
    static const int32_t ids[] = {999, 3, 5, -1};
    struct embedding p = {4, 8, ids, NULL, 0, 1000, 0};
    struct err e;
    int before = simt_sorted_bits;

    (void)s;
    for (int i = 0; i < 4 * 8; i++)
        dout[i] = (float)(1 + i / 8);
    assert_int_equal(twins.other->ops->embedding_bwd(twins.other, DTYPE_F32, dwte, NULL, &p, dout, &e), 0);
    assert_int_equal(simt_sorted_bits - before, 10);
    assert_true(dwte[999 * 8] == 1 && dwte[3 * 8] == 2 && dwte[5 * 8] == 3 && dwte[0] == 0);
}

/* The library is asked once for experts of about as many rows. */
static void small_experts_are_not_asked_for(void **s)
{
    int before;

    (void)s;
    for (int back = 0; back < 2; back++) {
        before = simt_lt_asked;
        for (int64_t rows = 65; rows <= 96; rows++)
            product_of(rows, back);
        assert_int_equal(simt_lt_asked - before, 1);
        product_of(64, back);
        assert_int_equal(simt_lt_asked - before, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_equal_their_twins),
                                       cmocka_unit_test(sorts_take_the_bits_that_are_used),
                                       cmocka_unit_test(failures_do_not_hide_each_other),
                                       cmocka_unit_test(small_experts_are_not_asked_for)};

    return cmocka_run_group_tests_name("train_twins", tests, open_twins, close_twins);
}
