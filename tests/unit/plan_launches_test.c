/* The ops that a step asks of its device are those of its plan: as many products of each kind, rows of norms, conversions and so
 * on, of models of many kinds, in one process and as a rank of several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/log.h"
#include "tests/mirror_comm.h"
#include "tests/words.h"
#include "train/plan.h"

static struct err e;
static struct device *dev;

/* ---- what is asked, or planned ---- */

/* By op: FLOPs of products, of others elements; of conversions one way by themselves.  What scales and casts counts as a copy of
 * as many bytes. */
enum { ONE_WAY = PLAN_OPS, KINDS };
struct tally {
    double amount[KINDS], times[KINDS];
};
static struct tally asked, planned;

static void add(struct tally *t, int kind, double amount, double times)
{
    t->amount[kind] += times * amount;
    t->times[kind] += times;
}

static bool is_product(int op)
{
    return op == PLAN_PRODUCT || op == PLAN_PRODUCT_FP8 || op == PLAN_PRODUCT_BLOCKS || op == PLAN_WEIGHT_BLOCKS;
}

static void plan_visited(void *arg, enum plan_op op, const struct plan_dims *d, double times)
{
    double elements = (double)d->m * (double)d->n;
    bool attends = op == PLAN_ATTENTION || op == PLAN_ATTENTION_BACK;
    struct tally *t = arg;

    if (attends || op == PLAN_TAKE || op == PLAN_JOIN || op == PLAN_JOIN_BACK)
        elements *= (double)d->k;
    add(t, (op == PLAN_FP8 || op == PLAN_FP8_BLOCKS) && d->k ? ONE_WAY : (int)op,
        is_product(op) ? 2 * elements * (double)d->k : elements, times);
}

/* ---- a device that counts ---- */

static const struct device_ops *real;
static struct device_ops counting;

static int product(struct device *d, const struct matmul *p, struct err *err)
{
    enum plan_op op = !p->fp8_a ? PLAN_PRODUCT : !p->by_a ? PLAN_PRODUCT_FP8 : p->by_b == FP8_OF_SQUARES ? PLAN_PRODUCT_BLOCKS :
                      PLAN_WEIGHT_BLOCKS;

    add(&asked, op, 2 * (double)p->m * (double)p->n * (double)p->k, 1);
    if (p->sums)
        add(&asked, PLAN_BIAS_SUMS, (double)p->m * (double)p->k, 1);
    return real->matmul(d, p, err);
}

static int grouped(struct device *d, const struct matmul_grouped *q, struct err *err)
{
    const struct matmul *p = &q->of;

    add(&asked, PLAN_PRODUCT, 2 * (double)p->m * (double)p->n * (double)p->k, 1);
    if (q->sums)
        add(&asked, PLAN_BIAS_SUMS, (double)p->m * (double)p->k, 1);
    return real->matmul_grouped(d, q, err);
}

#define NORM(name, plain, fp8_)                                                                        \
    static int name##_fwd(struct device *d, enum dtype dt, const struct norm_fwd *p, struct err *err) \
    {                                                                                                  \
        add(&asked, p->fp8 ? fp8_ : plain, (double)(p->t * p->c), 1);                                  \
        return real->name##_fwd(d, dt, p, err);                                                        \
    }                                                                                                  \
    static int name##_bwd(struct device *d, enum dtype dt, const struct norm_bwd *p, struct err *err) \
    {                                                                                                  \
        add(&asked, plain##_BACK, (double)(p->t * p->c), 1);                                           \
        return real->name##_bwd(d, dt, p, err);                                                        \
    }
NORM(layernorm, PLAN_NORM, PLAN_NORM_FP8)
NORM(rmsnorm, PLAN_RMS, PLAN_RMS_FP8)

static int act(struct device *d, enum dtype dt, enum act a, void *y, const void *x, int64_t n, struct err *err)
{
    add(&asked, PLAN_GELU, (double)n, 1);
    return real->act_fwd(d, dt, a, y, x, n, err);
}

static int act_back(struct device *d, enum dtype dt, enum act a, void *dx, const void *dy, const void *x, int64_t n,
                    struct err *err)
{
    add(&asked, PLAN_GELU_BACK, (double)n, 1);
    return real->act_bwd(d, dt, a, dx, dy, x, n, err);
}

static int glu(struct device *d, enum dtype dt, enum act a, void *y, const void *x, int64_t t, int64_t f, struct err *err)
{
    add(&asked, PLAN_SWIGLU, (double)(t * f), 1);
    return real->glu_fwd(d, dt, a, y, x, t, f, err);
}

static int glu_back(struct device *d, enum dtype dt, enum act a, void *dx, const void *dy, const void *x, int64_t t, int64_t f,
                    struct err *err)
{
    add(&asked, PLAN_SWIGLU_BACK, (double)(t * f), 1);
    return real->glu_bwd(d, dt, a, dx, dy, x, t, f, err);
}

static int turned(struct device *d, enum dtype dt, void *x, const struct rope *p, struct err *err)
{
    add(&asked, PLAN_ROPE, (double)(p->t * p->heads * p->d), 1);
    return real->rope(d, dt, x, p, err);
}

static int attend(struct device *d, enum dtype dt, const struct attention *p, struct err *err)
{
    add(&asked, PLAN_ATTENTION, (double)(p->b * p->t * p->heads), 1);
    return real->attention_fwd(d, dt, p, err);
}

static int attend_back(struct device *d, enum dtype dt, const struct attention *p, struct attention_view dout,
                       struct attention_view dq, struct attention_view dk, struct attention_view dv, struct err *err)
{
    add(&asked, PLAN_ATTENTION_BACK, (double)(p->b * p->t * p->heads), 1);
    return real->attention_bwd(d, dt, p, dout, dq, dk, dv, err);
}

static int entropy(struct device *d, enum dtype dt, const struct xent *p, float *loss, struct err *err)
{
    add(&asked, PLAN_XENT, (double)(p->t * p->ld), 1);
    return real->xent(d, dt, p, loss, err);
}

static int embed(struct device *d, enum dtype dt, void *out, const struct embedding *p, const void *wte, const void *wpe,
                 struct err *err)
{
    add(&asked, PLAN_EMBEDDING, (double)(p->t * p->c), 1);
    return real->embedding_fwd(d, dt, out, p, wte, wpe, err);
}

static int embed_back(struct device *d, enum dtype dt, float *dwte, float *dwpe, const struct embedding *p, const void *dout,
                      struct err *err)
{
    add(&asked, PLAN_EMBEDDING_BACK, (double)(p->t * p->c), 1);
    return real->embedding_bwd(d, dt, dwte, dwpe, p, dout, err);
}

static int quantize(struct device *d, const struct fp8_quantize *p, struct err *err)
{
    int op = p->y && p->yt ? PLAN_FP8 : ONE_WAY;

    if (p->act)
        op = p->glu ? p->dy ? PLAN_SWIGLU_BACK_FP8 : PLAN_SWIGLU_FP8 : p->dy ? PLAN_GELU_BACK_FP8 : PLAN_GELU_FP8;
    add(&asked, op, (double)(p->rows * p->cols), 1);
    return real->fp8_quantize(d, p, err);
}

static int blocks(struct device *d, const struct fp8_blocks *p, struct err *err)
{
    add(&asked, p->y && p->yt ? PLAN_FP8_BLOCKS : ONE_WAY, (double)(p->rows * p->cols), 1);
    return real->fp8_blocks(d, p, err);
}

static int amax(struct device *d, enum dtype dt, float *most, const void *x, int64_t n, struct err *err)
{
    add(&asked, PLAN_AMAX, (double)n, 1);
    return real->fp8_amax(d, dt, most, x, n, err);
}

static int squares(struct device *d, enum dtype dt, double *sum, int64_t block, const void *x, int64_t n, struct err *err)
{
    add(&asked, PLAN_SUMSQ, (double)n, 1);
    return real->vec_sumsq(d, dt, sum, block, x, n, err);
}

static int update(struct device *d, const struct update *p, float *w, void *m, void *v, const float *grad, uint16_t *low,
                  int64_t n, struct err *err)
{
    add(&asked, PLAN_ADAMW, (double)n, 1);
    return real->update(d, p, w, m, v, grad, low, n, err);
}

static int take(struct device *d, enum dtype dt, void *y, const void *x, const int32_t *from, int64_t rows, int64_t c,
                struct err *err)
{
    add(&asked, PLAN_TAKE, (double)(rows * c), 1);
    return real->route_take(d, dt, y, x, from, rows, c, err);
}

static int join(struct device *d, enum dtype dt, const struct route *p, void *y, const void *x, const int32_t *place,
                const float *weight, int64_t c, struct err *err)
{
    add(&asked, PLAN_JOIN, (double)(p->t * p->k * c), 1);
    return real->route_join(d, dt, p, y, x, place, weight, c, err);
}

static int join_back(struct device *d, enum dtype dt, const struct route *p, void *dx, float *dweight, const void *dy,
                     const void *x, const int32_t *place, const float *weight, int64_t c, struct err *err)
{
    add(&asked, PLAN_JOIN_BACK, (double)(p->t * p->k * c), 1);
    return real->route_join_bwd(d, dt, p, dx, dweight, dy, x, place, weight, c, err);
}

static int scaled(struct device *d, enum dtype dt, void *y, float a, int64_t n, struct err *err)
{
    add(&asked, PLAN_COPY, (double)n * (double)dtype_size(dt), 1);
    return real->vec_scale(d, dt, y, a, n, err);
}

static int cast(struct device *d, void *y, enum dtype dy, const void *x, enum dtype dx, int64_t n, struct err *err)
{
    add(&asked, PLAN_COPY, (double)n * (double)(dtype_size(dx) + dtype_size(dy)) / 2, 1);
    return real->vec_cast(d, y, dy, x, dx, n, err);
}

static void count_ops(void)
{
    real = dev->ops;
    counting = *real;
    counting.matmul = product, counting.matmul_grouped = grouped;
    counting.layernorm_fwd = layernorm_fwd, counting.layernorm_bwd = layernorm_bwd;
    counting.rmsnorm_fwd = rmsnorm_fwd, counting.rmsnorm_bwd = rmsnorm_bwd;
    counting.act_fwd = act, counting.act_bwd = act_back, counting.glu_fwd = glu, counting.glu_bwd = glu_back;
    counting.rope = turned, counting.attention_fwd = attend, counting.attention_bwd = attend_back, counting.xent = entropy;
    counting.embedding_fwd = embed, counting.embedding_bwd = embed_back;
    counting.fp8_quantize = quantize, counting.fp8_blocks = blocks, counting.fp8_amax = amax;
    counting.vec_sumsq = squares, counting.update = update;
    counting.route_take = take, counting.route_join = join, counting.route_join_bwd = join_back;
    counting.vec_scale = scaled, counting.vec_cast = cast;
    dev->ops = &counting;
}

/* ---- runs ---- */

static void config(struct train_config *c, const char *const *set, int64_t world)
{
    static const char *const base[] = {
        "num-layers=4", "hidden-size=128", "num-attention-heads=2", "seq-length=128", "vocab-size=64", "mock-data=true",
        "make-vocab-size-divisible-by=16", "micro-batch-size=1", "global-batch-size=8", "train-iters=2", "lr=0.01",
        "eval-iters=0", "eval-interval=0", "attention-dropout=0", "hidden-dropout=0", NULL,
    };

    if (words_config(c, world, base, set, &e) < 0)
        fail_msg("%s", e.msg);
}

static struct tally last;
static double passed;
static void on_step(void *arg, const struct train_step *s)
{
    (void)arg;
    assert_true(isfinite(s->loss));
    last = asked;
    asked = (struct tally){0};
    passed = mirror_passed;
    mirror_passed = 0;
}

/* The second of two steps, and its plan: seconds of *p are bytes of calls. */
static void run(const char *const *set, int64_t world, struct plan_step *p)
{
    const struct plan_machine one = {.rates = {.flops = {1, 1, 1}, .reach = {1, 1, 1}, .bytes = 1, .copy = 1}, .node = RANKS,
                                     .node_bandwidth = 1, .network_bandwidth = 1};
    struct comm *group = NULL;
    struct train_config c;
    struct trainer *t;
    struct plan_share share;
    enum train_end how;
    volatile sig_atomic_t stop = 0;

    config(&c, set, world);
    if (world > 1)
        group = mirror_open();
    else if (comm_open_self(&group, &e) < 0)
        fail_msg("%s", e.msg);
    assert_non_null(group);
    if (trainer_open(&t, &c, dev, group, &e) < 0)
        fail_msg("%s: %s", set[0], e.msg);
    asked = (struct tally){0};
    mirror_passed = 0;
    if (trainer_run(t, &stop, on_step, NULL, &how, &e) < 0)
        fail_msg("%s: %s", set[0], e.msg);
    trainer_close(t);
    comm_close(group);
    assert_int_equal(plan_step(&c, &one, p, &e), 0);
    planned = (struct tally){0};
    share = plan_share_of(&c, &p->memory, 0);
    plan_micro_batch(&share, plan_visited, &planned);
    for (int i = 0; i < KINDS; i++) {
        planned.amount[i] *= (double)c.micro_batches;
        planned.times[i] *= (double)c.micro_batches;
    }
    plan_update(&share, p->memory.tensors, (double)p->memory.shard, (double)p->memory.shard, plan_visited, &planned);
    train_config_free(&c);
}

static bool within(double got, double want, double share)
{
    return fabs(got - want) <= share * want;
}

/* Amounts and calls of each kind; of experts, which may be one call of all of them, and of what is divided among ranks, in ranges
 * of elements, amounts alone. */
static void as_planned(const char *const *set, bool apart)
{
    for (int k = 0; k < KINDS; k++) {
        double share = apart ? 0.02 : 1e-4;

        if (!within(last.amount[k], planned.amount[k], share) || (!apart && !within(last.times[k], planned.times[k], share)))
            fail_msg("%s %s %s...: %s: %.0f in %.0f calls, planned %.0f in %.1f", set[0], set[1], set[2],
                     k < PLAN_OPS ? plan_op_name((enum plan_op)k) : "conversion one way", last.amount[k], last.times[k],
                     planned.amount[k], planned.times[k]);
    }
}

#define GPT "bf16=true"
#define LLAMA "bf16=true", "swiglu=true", "normalization=RMSNorm", "position-embedding-type=rope", "disable-bias-linear=true", \
              "untie-embeddings-and-output-weights=true", "ffn-hidden-size=256"
#define EXPERTS "num-experts=4", "moe-ffn-hidden-size=128"
#define FP8(recipe) "fp8-format=e4m3", "fp8-recipe=" recipe
#define LORA "lora-rank=4"
#define ENDS "first-last-layers-bf16=true"
#define FULL(how, n) "recompute-granularity=full", "recompute-method=" how, "recompute-num-layers=" n
#define SELECTIVE "recompute-granularity=selective"
#define ZERO(x) "data-parallel-sharding-strategy=" x

enum { WORDS = 16 };
static const char *const whole[][WORDS] = {
    {GPT}, {LLAMA}, {GPT, SELECTIVE}, {LLAMA, FULL("uniform", "1")}, {LLAMA, FULL("uniform", "3")}, {GPT, FULL("block", "3")},
};
static const char *const fp8[][WORDS] = {
    {LLAMA, FP8("delayed")}, {GPT, FP8("tensorwise")}, {LLAMA, FP8("blockwise")}, {GPT, FP8("tensorwise"), FULL("uniform", "3")},
};
static const char *const ends[][WORDS] = {
    {LLAMA, FP8("blockwise"), ENDS}, {GPT, FP8("delayed"), ENDS, FULL("uniform", "2")},
    {GPT, FP8("tensorwise"), ENDS, "num-layers-at-start-in-bf16=2", "num-layers-at-end-in-bf16=0"},
};
static const char *const adapters[][WORDS] = {
    {GPT, LORA}, {LLAMA, LORA, "lora-target=linear_fc*"}, {LLAMA, LORA, FP8("blockwise")},
    {GPT, LORA, FP8("tensorwise"), FULL("uniform", "2")}, {GPT, LORA, FP8("delayed"), SELECTIVE},
    {LLAMA, LORA, FP8("tensorwise"), ENDS}, {"bf16=false", LORA},
};
static const char *const experts[][WORDS] = {
    {GPT, EXPERTS, FULL("uniform", "1")}, {GPT, EXPERTS, FP8("delayed")}, {LLAMA, EXPERTS, LORA, "lora-target=*"},
    {LLAMA, EXPERTS, "moe-shared-expert-intermediate-size=64", FP8("tensorwise")},
};

#define ALONE(of, apart)                                          \
    do {                                                          \
        for (size_t i = 0; i < sizeof of / sizeof *of; i++) {     \
            struct plan_step p;                                   \
                                                                  \
            run(of[i], 1, &p);                                    \
            as_planned(of[i], apart);                             \
        }                                                         \
        (void)state;                                              \
    } while (0)

static void layers_are_planned_as_they_run(void **state) { ALONE(whole, false); }
static void recipes_of_fp8_too(void **state) { ALONE(fp8, false); }
static void layers_at_the_ends_are_in_bf16(void **state) { ALONE(ends, false); }
static void adapters_alone_are_trained(void **state) { ALONE(adapters, false); }
static void rows_go_to_experts(void **state) { ALONE(experts, true); }

/* Of a rank of several; and what it gathers and gives of weights and gradients. */
static void what_ranks_divide_is_fetched(void **state)
{
    static const char *const set[][WORDS] = {
        {LLAMA, ZERO("no_shard")}, {LLAMA, ZERO("optim")}, {LLAMA, ZERO("optim_grads")}, {LLAMA, ZERO("optim_grads_params")},
        {LLAMA, FP8("blockwise"), ZERO("optim_grads_params")}, {LLAMA, FP8("tensorwise"), ENDS, ZERO("optim_grads_params")},
        {LLAMA, FP8("delayed"), ZERO("optim_grads_params"), FULL("uniform", "2")},
        {LLAMA, FP8("tensorwise"), ZERO("optim_grads_params"), FULL("uniform", "4")},
        {LLAMA, LORA, ZERO("optim")}, {LLAMA, LORA, FP8("delayed"), ZERO("optim_grads_params")},
        {LLAMA, ZERO("optim_grads_params"), "num-layers=8"}, {LLAMA, LORA, ZERO("optim_grads_params"), "num-layers=8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        struct plan_step p;

        run(set[i], RANKS, &p);
        as_planned(set[i], true);
        if (!within(passed, p.reduce, 0.05))
            fail_msg("%s %s: %.0f bytes passed on, planned %.0f", set[i][7], set[i][8] ? set[i][8] : "", passed, p.reduce);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_planned_as_they_run),
        cmocka_unit_test(recipes_of_fp8_too),
        cmocka_unit_test(layers_at_the_ends_are_in_bf16),
        cmocka_unit_test(adapters_alone_are_trained),
        cmocka_unit_test(rows_go_to_experts),
        cmocka_unit_test(what_ranks_divide_is_fetched),
    };
    int failed;

    log_init("plan_launches_test", LOG_ERROR);
    if (device_open(&dev, "cpu", 1, &e) < 0)
        return 1;
    count_ops();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    dev->ops = real;
    device_close(dev);
    return failed;
}
