/* Plans: what an op takes, by which of its bounds; files of measured devices. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/model_fp8.h"
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

/* Scales of blocks cost, most where both operands have those of rows; a product in bf16 takes longer still. */
static void products_by_blocks_take_longer(void **state)
{
    const struct plan_machine m = h200();
    const struct plan_dims d = {.m = 16384, .n = 22016, .k = 4096};
    double whole = seconds(&m, PLAN_PRODUCT_FP8, d, NULL), blocks = seconds(&m, PLAN_PRODUCT_BLOCKS, d, NULL);
    double weight = seconds(&m, PLAN_WEIGHT_BLOCKS, d, NULL);
    enum plan_bound b;

    (void)state;
    assert_true(blocks > 1.02 * whole && weight > 1.02 * blocks && seconds(&m, PLAN_PRODUCT, d, NULL) > weight);
    near(seconds(&m, PLAN_FP8_BLOCKS, (struct plan_dims){.m = 16384, .n = 4096, .k = 1}, &b) - m.rates.launch,
         (seconds(&m, PLAN_FP8_BLOCKS, (struct plan_dims){.m = 16384, .n = 4096}, NULL) - m.rates.launch) * 3 / 4, 1e-9);
    assert_int_equal(b, BOUND_BYTES);
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
    share.again = 1;
    share.chunks = 24;
    plan_micro_batch(&share, plan_sum_add, &again);
    assert_true(again.all > 1.2 * whole.all && again.all < 1.35 * whole.all);
    assert_true(again.times[PLAN_PRODUCT] == 24 * (4 * 3 + 3)); /* what ends a layer is not needed again */
    share.again = share.chunks = 0;
    share.fp8 = true;
    plan_micro_batch(&share, plan_sum_add, &low);
    assert_true(low.op[PLAN_PRODUCT] == 0 && low.op[PLAN_PRODUCT_FP8] < 0.7 * whole.op[PLAN_PRODUCT]);
    for (int i = 0; plan_sum_line(&whole, i, line, sizeof line); i++)
        all += atof(line + 33);
    near(all, whole.all, 1e-4);
    assert_true(plan_sum_line(&whole, 0, line, sizeof line) && strncmp(line, "product ", 8) == 0);
}

#define FIRST "{\"device\":\"NVIDIA H200\",\"version\":1}\n"
#define LINE(op, k, s) "{\"op\":\"" op "\",\"m\":16384,\"n\":4096,\"k\":" k ",\"seconds\":" s "}\n"
#define NORM "{\"op\":\"layer norm\",\"m\":16384,\"n\":1600,\"seconds\":"

static int parse(struct plan_machine *m, const char *text, int *measured, struct err *e)
{
    return plan_device_parse(m, "a device", span_of(text), measured, e);
}

/* Of each op the elements, or of products FLOPs; of conversions one way by themselves. */
struct counted {
    double all[PLAN_OPS], one_way;
};

static void count(void *arg, enum plan_op op, const struct plan_dims *d, double times)
{
    bool product = op == PLAN_PRODUCT || op == PLAN_PRODUCT_FP8 || op == PLAN_PRODUCT_BLOCKS || op == PLAN_WEIGHT_BLOCKS;
    double elements = times * (double)d->m * (double)d->n;
    struct counted *c = arg;

    if ((op == PLAN_FP8 || op == PLAN_FP8_BLOCKS) && d->k)
        c->one_way += elements;
    else
        c->all[op] += product ? 2 * elements * (double)d->k : elements;
}

static struct counted counted(const struct plan_share *share)
{
    struct counted c = {0};

    plan_micro_batch(share, count, &c);
    return c;
}

/* Layers of Llama's kind: hidden 512, queries 512, keys and values 128 each, MLP 1,280.  Inputs of its linear layers are 512,
 * 512, 512 and 1,280 wide, their outputs 768, 512, 2,560 and 512; weights 2,621,440 in all. */
enum { LAYERS = 8, ROWS = 2 * 1024, INPUTS = 3 * 512 + 1280, OUTPUTS = 768 + 512 + 2560 + 512, WEIGHTS = 2621440 };
#define EACH ((double)LAYERS * ROWS)
static struct model_config llama(void)
{
    struct model_config c = {.layers = LAYERS, .hidden = 512, .heads = 8, .groups = 2, .ffn = 1280, .seq = 1024,
                             .positions = 1024, .vocab = 1000, .norm = NORM_RMS, .position = POSITION_ROPE, .untie = true,
                             .mlp = MLP_SWIGLU, .no_bias = true};
    struct err e;

    assert_int_equal(model_config_check(&c, 128, &e), 0);
    return c;
}
static struct plan_share in_fp8(const struct model_config *c, enum fp8_recipe recipe)
{
    return (struct plan_share){.model = c, .b = 2, .t = 1024, .layers = LAYERS, .context = 1, .tensor = 1, .expert = 1,
                               .bf16 = true, .fp8 = true, .recipe = recipe};
}

static void recipes_of_fp8_are_planned_as_they_run(void **state)
{
    const struct model_config c = llama();
    const struct plan_share delayed = in_fp8(&c, FP8_DELAYED), own = in_fp8(&c, FP8_TENSORWISE);
    const struct plan_share block = in_fp8(&c, FP8_BLOCKWISE);
    const struct counted d = counted(&delayed), t = counted(&own), b = counted(&block);
    double pass = 2 * EACH * WEIGHTS;

    (void)state;
    /* delayed: norms and activations, back too, make FP8; attention's output and three gradients are converted */
    near(d.all[PLAN_PRODUCT_FP8], 3 * pass, 1e-12);
    near(d.all[PLAN_RMS_FP8], EACH * 2 * 512, 1e-12);
    near(d.all[PLAN_SWIGLU_FP8], EACH * 1280, 1e-12);
    near(d.all[PLAN_SWIGLU_BACK_FP8], EACH * 2560, 1e-12);
    near(d.all[PLAN_FP8], EACH * (512 + 768 + 512 + 512), 1e-12);
    /* by blocks: those in bf16, and all inputs and gradients converted */
    near(b.all[PLAN_PRODUCT_BLOCKS], 2 * pass, 1e-12);
    near(b.all[PLAN_WEIGHT_BLOCKS], pass, 1e-12);
    near(b.all[PLAN_RMS], EACH * 2 * 512, 1e-12);
    near(b.all[PLAN_SWIGLU], EACH * 1280, 1e-12);
    near(b.all[PLAN_SWIGLU_BACK], EACH * 1280, 1e-12);
    near(b.all[PLAN_FP8_BLOCKS], EACH * (INPUTS + OUTPUTS), 1e-12);
    assert_true(b.all[PLAN_FP8] == 0 && b.all[PLAN_AMAX] == 0 && b.all[PLAN_PRODUCT_FP8] == 0 && b.all[PLAN_RMS_FP8] == 0);
    /* tensorwise: the same with scales of tensors, whose largest values are looked for before */
    near(t.all[PLAN_PRODUCT_FP8], 3 * pass, 1e-12);
    near(t.all[PLAN_FP8], EACH * (INPUTS + OUTPUTS), 1e-12);
    near(t.all[PLAN_AMAX], t.all[PLAN_FP8], 1e-12);
    near(t.all[PLAN_SWIGLU_BACK], b.all[PLAN_SWIGLU_BACK], 1e-12);
    assert_true(d.one_way == 0 && b.one_way == 0 && t.one_way == 0);
}

/* Inputs that are not kept transposed are converted one way forward and the other backward. */
static void inputs_in_bf16_are_converted_again(void **state)
{
    struct model_config c = llama(), moe = c, value = c, gelu = c;
    struct plan_share s = in_fp8(&c, FP8_BLOCKWISE);
    struct counted n;
    struct err e;

    (void)state;
    s.sequence = true; /* what norms make is gathered */
    n = counted(&s);
    near(n.one_way, EACH * 2 * 2 * 512, 1e-12);
    near(n.all[PLAN_FP8_BLOCKS], EACH * (INPUTS - 2 * 512 + OUTPUTS), 1e-12);
    s.recipe = FP8_DELAYED;
    n = counted(&s);
    near(n.one_way, EACH * 2 * 2 * 512, 1e-12);
    assert_true(n.all[PLAN_RMS_FP8] == 0 && n.all[PLAN_SWIGLU_FP8] > 0);
    s = in_fp8(&c, FP8_TENSORWISE);
    s.again = 1; /* the first pass keeps nothing */
    n = counted(&s);
    near(n.one_way, EACH * INPUTS, 1e-12);
    near(n.all[PLAN_AMAX], EACH * (2 * INPUTS + OUTPUTS), 1e-12);
    s.again = 0;
    s.selective = true; /* attention's output alone is kept */
    n = counted(&s);
    near(n.one_way, EACH * (INPUTS - 512), 1e-12);
    near(n.all[PLAN_FP8], EACH * (INPUTS + OUTPUTS), 1e-12);

    moe.experts = 4;
    moe.topk = 2;
    moe.moe_ffn = 1280;
    assert_int_equal(model_config_check(&moe, 128, &e), 0);
    s = in_fp8(&moe, FP8_DELAYED); /* rows of two experts a token, which no op makes in FP8 */
    n = counted(&s);
    near(n.one_way, EACH * 2 * 2 * (512 + 1280), 1e-12);
    near(n.all[PLAN_FP8], EACH * (512 + 768 + 512 + 2 * (2560 + 512)), 1e-12);
    near(n.all[PLAN_SWIGLU_BACK], EACH * 2 * 1280, 1e-12);
    near(n.all[PLAN_RMS_FP8], EACH * 512, 1e-12);

    value.value_freq = 2; /* half of the layers have gates, which take the norm's output too */
    value.value_gate = 12;
    assert_int_equal(model_config_check(&value, 128, &e), 0);
    s = in_fp8(&value, FP8_DELAYED);
    n = counted(&s);
    near(n.one_way, EACH / 2 * 2 * 512, 1e-12);
    near(n.all[PLAN_RMS_FP8], EACH * 1.5 * 512, 1e-12);

    gelu.mlp = MLP_GELU; /* of which products in FP8 make no epilogue that could be converted */
    s = in_fp8(&gelu, FP8_BLOCKWISE);
    n = counted(&s);
    near(n.all[PLAN_GELU], EACH * 1280, 1e-12);
    near(n.all[PLAN_GELU_BACK], EACH * 1280, 1e-12);
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
    plan_update(&share, 1, 1e8, 1e8, count_flops, NULL);
    near(flops, 5 * 12 * 768.0 * 768 * 768 * (4 * 6 + 2 * (16 + 2)), 1e-12);
    one = flops;
    share.whole.ranks = 4;
    flops = 0;
    plan_update(&share, 1, 1e8, 1e8, count_flops, NULL);
    near(flops, one / 4, 1e-12);
    share.model = &moe;
    flops = 0;
    plan_update(&share, 1, 1e8, 1e8, count_flops, NULL);
    assert_true(flops > one / 2);
    share.whole.steps = 0;
    flops = 0;
    plan_update(&share, 1, 1e8, 1e8, count_flops, NULL);
    assert_true(flops == 0);
}

static void measured_seconds_take_the_place(void **state)
{
    const struct plan_dims norm = {.m = 16384, .n = 1600}, wide = {.m = 16384, .n = 3200};
    const struct plan_dims product = {.m = 16384, .n = 4096, .k = 4096};
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
    /* either product by blocks has its own */
    assert_int_equal(parse(&m, FIRST LINE("product in FP8 by blocks", "4096", "2e-3")
                           LINE("weight gradient, blocks", "4096", "5e-3") LINE("to FP8 by blocks", "0", "1e-3"), &n, &e), 0);
    assert_int_equal(n, 3);
    near(seconds(&m, PLAN_PRODUCT_BLOCKS, product, NULL), 2e-3, 1e-6);
    near(seconds(&m, PLAN_WEIGHT_BLOCKS, product, NULL), 5e-3, 1e-6);
    near(seconds(&m, PLAN_FP8_BLOCKS, (struct plan_dims){.m = 16384, .n = 4096}, NULL), 1e-3, 1e-6);
    assert_true(seconds(&m, PLAN_PRODUCT_FP8, product, NULL) == seconds(&other, PLAN_PRODUCT_FP8, product, NULL));
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
        cmocka_unit_test(products_by_blocks_take_longer),
        cmocka_unit_test(ops_of_a_micro_batch_are_summed),
        cmocka_unit_test(recipes_of_fp8_are_planned_as_they_run),
        cmocka_unit_test(inputs_in_bf16_are_converted_again),
        cmocka_unit_test(matrices_updated_whole_are_counted),
        cmocka_unit_test(measured_seconds_take_the_place),
        cmocka_unit_test(what_is_no_file_of_a_device_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
