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
    if (device_open(&twins.cpu, "cpu", 1, &e) < 0 || simt_open(&twins.other, 0, &e) < 0)
        return -1;
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
    static const unsigned char wrong[4] = {0x47, 0x47, 0x47, 0x47};
    int rc = right_matmul(d, p, e);

    if (rc == 0 && p->bias && p->m && p->n)
        rc = device_put(d, (char *)p->c + (size_t)(p->n / 2) * dtype_size(p->dt_c), wrong, dtype_size(p->dt_c), e);
    return rc;
}

static struct {
    int with_bias, without, wrong_with, wrong_without, by_library, summed;
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
    counted.summed += strstr(f->how, ", its sums") != NULL; /* which is faster where kernels run on the CPU */
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
    assert_true(counted.with_bias > 20 && counted.without > 20 && counted.by_library > 20 && counted.summed > 2);
    assert_int_equal(counted.wrong_with, counted.with_bias);
    assert_int_equal(counted.wrong_without, 0);
    assert_int_equal(twins.failed, counted.wrong_with);
    assert_int_equal(twins.compared, counted.with_bias + counted.without);
}

/* A product of experts with so many rows; memory: for each matrix, of the device. */
static void product_of(void *const memory[3], int64_t rows, bool back)
{
    float *a = memory[0], *b = memory[1], *c = memory[2];
    struct matmul p = {.m = rows, .n = 32, .k = 64, .trans_b = true, .dt = DTYPE_F32, .dt_c = DTYPE_F32, .a = a, .b = b, .c = c,
                       .ragged = true};
    struct err e;

    if (back)
        p = (struct matmul){.m = 32, .n = 64, .k = rows, .trans_a = true, .dt = DTYPE_F32, .dt_c = DTYPE_F32, .a = a, .b = b,
                            .c = c, .beta = 1, .ragged = true};
    assert_int_equal(twins.other->ops->matmul(twins.other, &p, &e), 0);
}

/* ---- sums of parts in bf16 ---- */

static struct {
    int split, wrong, others_wrong;
} parts;

static void count_parts(const struct twins_found *f)
{
    bool split = strstr(f->how, "reduction 4") != NULL;

    parts.split += split;
    parts.wrong += split && f->why[0];
    parts.others_wrong += !split && f->why[0];
}

/* A library that adds the parts of a product up in bf16, asked or not, is found out. */
static void parts_that_were_rounded_are_seen(void **s)
{
    (void)s;
    simt_forget(); /* plans */
    simt_lt_disobeys = true;
    twins.found = count_parts;
    twins.plain = NULL;
    for (const struct twins_case *c = train_twins_cases; c->name; c++)
        if (strcmp(c->name, "matmul") == 0)
            c->run(&twins);
    simt_lt_disobeys = false;
    simt_forget();
    twins.found = say_wrong;
    twins.plain = matmul_plain_cuda;
    twins.wrong[0] = '\0';
    assert_int_equal(parts.others_wrong, 0);
    assert_true(parts.split > 10 && parts.wrong > 5);
}

/* Memory of the device with these bytes. */
static void *given(const void *host, size_t bytes)
{
    struct err e;
    void *p;

    if (device_alloc(twins.other, &p, bytes, &e) < 0 || device_put(twins.other, p, host, bytes, &e) < 0)
        fail_msg("%s", e.msg);
    return p;
}

/* Keys of a table of n rows are sorted by the bits of n. */
static void sorts_take_the_bits_that_are_used(void **s)
{
    static float dwte[1000 * 8], dout[4 * 8];
    static const int32_t ids[] = {999, 3, 5, -1};
    struct embedding p = {.t = 4, .c = 8, .n_vocab = 1000};
    struct err e;
    int before = simt_sorted_bits;
    void *to, *from, *id;

    (void)s;
    for (int i = 0; i < 4 * 8; i++)
        dout[i] = (float)(1 + i / 8);
    to = given(dwte, sizeof dwte);
    from = given(dout, sizeof dout);
    p.token = id = given(ids, sizeof ids);
    assert_int_equal(twins.other->ops->embedding_bwd(twins.other, DTYPE_F32, to, NULL, &p, from, &e), 0);
    assert_int_equal(simt_sorted_bits - before, 10);
    assert_int_equal(device_get(twins.other, dwte, to, sizeof dwte, &e), 0);
    assert_true(dwte[999 * 8] == 1 && dwte[3 * 8] == 2 && dwte[5 * 8] == 3 && dwte[0] == 0);
    device_free(twins.other, to);
    device_free(twins.other, from);
    device_free(twins.other, id);
}

/* The library is asked once for experts of about as many rows. */
static void small_experts_are_not_asked_for(void **s)
{
    static float zeros[96 * 96];
    void *memory[3];
    int before;

    (void)s;
    for (int i = 0; i < 3; i++)
        memory[i] = given(zeros, sizeof zeros);
    for (int back = 0; back < 2; back++) {
        before = simt_lt_asked;
        for (int64_t rows = 65; rows <= 96; rows++)
            product_of(memory, rows, back);
        assert_int_equal(simt_lt_asked - before, 1);
        product_of(memory, 64, back);
        assert_int_equal(simt_lt_asked - before, 2);
    }
    for (int i = 0; i < 3; i++)
        device_free(twins.other, memory[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_equal_their_twins),
                                       cmocka_unit_test(sorts_take_the_bits_that_are_used),
                                       cmocka_unit_test(failures_do_not_hide_each_other),
                                       cmocka_unit_test(parts_that_were_rounded_are_seen),
                                       cmocka_unit_test(small_experts_are_not_asked_for)};

    return cmocka_run_group_tests_name("train_twins", tests, open_twins, close_twins);
}
