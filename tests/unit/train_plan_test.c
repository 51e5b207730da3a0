/* Plans: what an op takes, by which of its bounds; files of measured devices. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/plan_device.h"

static struct plan_machine h200(void)
{
    struct plan_machine m;

    assert_true(plan_machine_named(&m, "NVIDIA H200"));
    return m;
}

static double seconds(const struct plan_machine *m, enum plan_op op, struct plan_dims d, enum plan_bound *bound)
{
    return plan_op_seconds(&m->rates, op, &d, true, bound);
}

static void near(double got, double want, double share)
{
    if (!(fabs(got - want) <= share * want))
        fail_msg("%g is not within %g of %g", got, share, want);
}

/* A kernel that is renamed must be so here too. */
static void every_kernel_that_an_op_names_is_counted(void **state)
{
    struct plan_rates r = {0};

    (void)state;
    assert_true(plan_count_instructions(&r));
    assert_true(r.instructions[PLAN_XENT] > 0 && r.instructions[PLAN_XENT] < 10);
    assert_true(r.instructions[PLAN_PRODUCT] == 0);
}

static void each_bound_bounds(void **state)
{
    struct plan_machine m = h200();
    enum plan_bound b;
    double s;

    (void)state;
    s = seconds(&m, PLAN_PRODUCT, (struct plan_dims){.m = 8192, .n = 8192, .k = 8192}, &b);
    assert_int_equal(b, BOUND_FLOPS);
    near(2.0 * 8192 * 8192 * 8192 / s / 989e12, 0.72, 0.05);
    s = seconds(&m, PLAN_SUMSQ, (struct plan_dims){.m = 1, .n = 1000000000}, &b);
    assert_int_equal(b, BOUND_BYTES);
    near(4e9 / s, 0.9 * 4.8e12, 0.01);
    m.rates.instructions[PLAN_XENT] = 2;
    s = seconds(&m, PLAN_XENT, (struct plan_dims){.m = 16384, .n = 50304}, &b);
    assert_int_equal(b, BOUND_ISSUE);
    near(s, 2.0 * 16384 * 50304 / m.rates.issue, 0.01);
    seconds(&m, PLAN_NORM, (struct plan_dims){.m = 1, .n = 64}, &b);
    assert_int_equal(b, BOUND_LAUNCH);
}

/* Tiles that hang over, and waves that are not full, cost. */
static void shapes_of_products_count(void **state)
{
    const struct plan_machine m = h200();
    double whole = seconds(&m, PLAN_PRODUCT, (struct plan_dims){.m = 16384, .n = 2048, .k = 2048}, NULL) / 2048;
    double odd = seconds(&m, PLAN_PRODUCT, (struct plan_dims){.m = 16384, .n = 1600, .k = 2048}, NULL) / 1600;
    double one = seconds(&m, PLAN_PRODUCT, (struct plan_dims){.m = 128, .n = 128, .k = 256}, NULL) / 256;
    double split = seconds(&m, PLAN_PRODUCT, (struct plan_dims){.m = 128, .n = 128, .k = 65536}, NULL) / 65536;

    (void)state;
    assert_true(odd > 1.02 * whole);
    assert_true(split < one / 4); /* of one tile k is shared by many multiprocessors */
}

/* At the same rates a model of twice the layers takes twice the time, but for its ends. */
static void ops_of_a_micro_batch_are_summed(void **state)
{
    const struct plan_machine m = h200();
    struct model_config c = {.layers = 24, .hidden = 1024, .heads = 16, .seq = 1024, .vocab = 50257};
    struct plan_share share = {.model = &c, .b = 16, .t = 1024, .layers = 12, .context = 1, .tensor = 1, .expert = 1,
                               .bf16 = true};
    struct plan_sum half = {.rates = &m.rates, .bf16 = true}, whole = half, again = half, low = half;
    struct err e;
    char line[160];
    double all = 0;

    (void)state;
    assert_int_equal(model_config_check(&c, 128, &e), 0);
    plan_micro_batch(&share, plan_sum_add, &half);
    share.layers = 24;
    plan_micro_batch(&share, plan_sum_add, &whole);
    near(whole.all, 2 * half.all, 1e-9);
    assert_true(half.times[PLAN_PRODUCT] == 12 * 4 * 3 && half.times[PLAN_NORM_BACK] == 24);
    share.full = true;
    plan_micro_batch(&share, plan_sum_add, &again);
    assert_true(again.all > 1.25 * whole.all && again.all < 1.4 * whole.all);
    share.full = false;
    share.fp8 = true;
    plan_micro_batch(&share, plan_sum_add, &low);
    assert_true(low.op[PLAN_PRODUCT] == 0 && low.op[PLAN_PRODUCT_FP8] < 0.7 * whole.op[PLAN_PRODUCT]);
    for (int i = 0; plan_sum_line(&whole, i, line, sizeof line); i++)
        all += atof(line + 33);
    near(all, whole.all, 1e-4);
    assert_true(plan_sum_line(&whole, 0, line, sizeof line) && strncmp(line, "product ", 8) == 0);
}

#define FIRST "{\"device\":\"NVIDIA H200\",\"version\":1}\n"
#define NORM "{\"op\":\"layer norm\",\"m\":16384,\"n\":1600,\"seconds\":"

static int parse(struct plan_machine *m, const char *text, int *measured, struct err *e)
{
    return plan_device_parse(m, "a device", span_of(text), measured, e);
}

static double flops;
static void count_flops(void *arg, enum plan_op op, const struct plan_dims *d, double times)
{
    (void)arg;
    flops += op == PLAN_ORTHOGONAL ? 2.0 * times * (double)d->m * (double)d->n * (double)d->k : 0;
}

/* 4 r^2 c + 2 r^3 an iteration of each matrix: docs/training.md says how many that are of GPT-2 124M. */
static void matrices_updated_whole_are_counted(void **state)
{
    struct model_config c = {.layers = 12, .hidden = 768, .heads = 12, .seq = 1024, .vocab = 50257}, moe = c;
    struct plan_share share = {.model = &c, .layers = 12, .whole = {.steps = 5, .ranks = 1}};
    struct err e;
    double one;

    (void)state;
    moe.experts = 4;
    assert_int_equal(model_config_check(&c, 128, &e) | model_config_check(&moe, 128, &e), 0);
    plan_update(&share, 1e8, 1e8, count_flops, NULL);
    near(flops, 5 * 12 * 768.0 * 768 * 768 * (4 * 6 + 2 * (16 + 2)), 1e-12);
    one = flops;
    share.whole.ranks = 4;
    flops = 0;
    plan_update(&share, 1e8, 1e8, count_flops, NULL);
    near(flops, one / 4, 1e-12);
    share.model = &moe;
    flops = 0;
    plan_update(&share, 1e8, 1e8, count_flops, NULL);
    assert_true(flops > one / 2);
    share.whole.steps = 0;
    flops = 0;
    plan_update(&share, 1e8, 1e8, count_flops, NULL);
    assert_true(flops == 0);
}

static void measured_seconds_take_the_place(void **state)
{
    const struct plan_dims norm = {.m = 16384, .n = 1600}, wide = {.m = 16384, .n = 3200};
    struct plan_machine m, other = h200();
    enum plan_bound b;
    struct err e;
    int n;

    (void)state;
    assert_int_equal(parse(&m, FIRST NORM "1e-3}\n" NORM "4e-3}", &n, &e), 0);
    assert_int_equal(n, 1);
    near(seconds(&m, PLAN_NORM, norm, &b), 2e-3, 1e-6); /* the geometric mean */
    assert_int_equal(b, BOUND_MEASURED);
    near(seconds(&m, PLAN_NORM, wide, NULL) / 2e-3,
         seconds(&other, PLAN_NORM, wide, NULL) / seconds(&other, PLAN_NORM, norm, NULL), 1e-6);
    assert_true(seconds(&m, PLAN_RMS, norm, NULL) == seconds(&other, PLAN_RMS, norm, NULL));
    /* a copy at half the rate, wherever it stands */
    assert_int_equal(parse(&m, FIRST NORM "1e-3}\n{\"op\":\"copy\",\"m\":1,\"n\":2160000000,\"seconds\":2e-3}\n", &n, &e), 0);
    assert_int_equal(n, 2);
    near(seconds(&m, PLAN_SUMSQ, (struct plan_dims){.m = 1, .n = 1000000000}, NULL), 4e9 / 2.16e12, 0.01);
    near(seconds(&m, PLAN_NORM, norm, NULL), 1e-3, 1e-6);
}

static void what_is_no_file_of_a_device_is_named(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } t[] = {
        {"", "a device: line 1:", ERR_FORMAT},
        {"{}", "a device: line 1: no device and version 1", ERR_FORMAT},
        {"{\"device\":\"NVIDIA H200\",\"version\":2}", "no device and version 1", ERR_FORMAT},
        {"{\"device\":\"abacus\",\"version\":1}", "plans know no device like 'abacus' (a100, h100, h200, b200)", ERR_UNSUPPORTED},
        {FIRST "[", "a device: line 2:", ERR_FORMAT},
        {FIRST "[]", "line 2: '' is no op of a plan", ERR_FORMAT},
        {FIRST NORM "1}\n{\"op\":\"knitting\"}", "line 3: 'knitting' is no op", ERR_FORMAT},
        {FIRST "{\"op\":\"layer norm\",\"m\":16384,\"seconds\":1}", "line 2: a size is missing", ERR_FORMAT},
        {FIRST "{\"op\":\"layer norm\",\"m\":-1,\"n\":1,\"seconds\":1}", "line 2: a size is missing", ERR_FORMAT},
        {FIRST NORM "0}", "line 2: no seconds", ERR_FORMAT},
        {FIRST NORM "\"1\"}", "line 2: no seconds", ERR_FORMAT},
        {FIRST NORM "1e7}", "line 2: no seconds", ERR_FORMAT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct plan_machine m;
        struct err e;
        int n;
        int rc = parse(&m, t[i].text, &n, &e);
        if (rc != t[i].code || !strstr(e.msg, t[i].says))
            fail_msg("'%s': %d, %s", t[i].text, rc, rc < 0 ? e.msg : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_that_an_op_names_is_counted),
        cmocka_unit_test(each_bound_bounds),
        cmocka_unit_test(shapes_of_products_count),
        cmocka_unit_test(ops_of_a_micro_batch_are_summed),
        cmocka_unit_test(matrices_updated_whole_are_counted),
        cmocka_unit_test(measured_seconds_take_the_place),
        cmocka_unit_test(what_is_no_file_of_a_device_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
