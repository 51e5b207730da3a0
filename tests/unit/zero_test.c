/* What ranks share of weights, gradients and the optimizer's state: the plan is what is allocated, to the byte, and
 * a step allocates nothing; sections of a store and their buffers; experts with a capacity and without. */
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
#include "kernels/device_calls.h"
#include "tests/mirror_comm.h"
#include "tests/words.h"
#include "train/zero_host.h"
#include "train/trainer.h"

static struct err e;

/* ---- a device that counts ---- */

static struct device_calls calls;
static const struct device_calls *real_calls;
static size_t allocated, limit; /* limit 0: none */

static int counting_alloc(struct device *dev, void **p, size_t bytes, struct err *err)
{
    if (limit && allocated + bytes > limit)
        return err_set(err, ERR_NOMEM, "out of memory: %zu bytes", bytes);
    allocated += bytes;
    return real_calls->alloc(dev, p, bytes, err);
}

static void config(struct train_config *c, const char *const *set)
{
    static const char *const base[] = {
        "num-layers=5", "hidden-size=32", "num-attention-heads=2", "seq-length=16", "vocab-size=64", "mock-data=true",
        "make-vocab-size-divisible-by=16", "micro-batch-size=1", "global-batch-size=16", "train-iters=3", "lr=0.01",
        "eval-iters=1", "eval-interval=2", NULL,
    };

    if (words_config(c, RANKS, base, set, &e) < 0)
        fail_msg("%s", e.msg);
}

static struct device *dev;
static size_t after_first;
static double seen[3][3]; /* loss, norm, loss of validation of each step */

static void on_step(void *arg, const struct train_step *s)
{
    (void)arg;
    assert_true(isfinite(s->loss) && isfinite(s->grad_norm));
    seen[s->step - 1][0] = s->loss;
    seen[s->step - 1][1] = s->grad_norm;
    seen[s->step - 1][2] = isfinite(s->valid_loss) ? s->valid_loss : 0;
    if (s->step == 1)
        after_first = allocated;
}

/* What a run with these settings allocates; none: it may have no more than it is opened with, and does not come to its end. */
static size_t run_until(const char *const *set, bool none)
{
    struct train_config c;
    struct train_memory m;
    struct trainer *t;
    struct comm *world = mirror_open();
    enum train_end how;
    volatile sig_atomic_t stop = 0;
    size_t opened, passing; /* passing: on the way to the state on the host and back */

    assert_non_null(world);
    config(&c, set);
    assert_int_equal(trainer_plan(&c, &m, &e), 0);
    allocated = 0;
    if (trainer_open(&t, &c, dev, world, &e) < 0)
        fail_msg("%s", e.msg);
    opened = allocated;
    passing = c.offload ? zero_host_stage_bytes() : 0;
    if (opened != m.total + passing)
        fail_msg("%s: planned %zu, allocated %zu", set[0], m.total + passing, opened);
    limit = none ? opened : 0;
    if (trainer_run(t, &stop, on_step, NULL, &how, &e) < 0 && !none)
        fail_msg("%s", e.msg);
    limit = 0;
    assert_true(none || after_first == opened);
    assert_int_equal(allocated, opened);
    trainer_close(t);
    train_config_free(&c);
    comm_close(world);
    return opened - passing;
}

static size_t run(const char *const *set)
{
    return run_until(set, false);
}

#define STRATEGY(x) "data-parallel-sharding-strategy=" x

static void the_plan_is_what_is_allocated(void **state)
{
    static const char *const strategy[] = {STRATEGY("no_shard"), STRATEGY("optim"), STRATEGY("optim_grads"),
                                           STRATEGY("optim_grads_params")};
    static const char *const how[][4] = {
        {NULL},
        {"overlap-grad-reduce=true", NULL},
        {"bf16=true", "untie-embeddings-and-output-weights=true", NULL},
        {"deterministic=true", "bf16=true", NULL},
        {"grad-reduce-in-bf16=true", "ddp-bucket-size=9000", "overlap-grad-reduce=true", NULL},
        {"recompute-granularity=full", "recompute-num-layers=3", NULL},
        {"optimizer=muon", "bf16=true", NULL},
        {"optimizer=adafactor", "bf16=true", NULL},
        {"exp-avg-dtype=8bit", "exp-avg-sq-dtype=8bit", "bf16=true", NULL},
    };

    (void)state;
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        size_t before = SIZE_MAX;

        for (size_t i = 0; i < sizeof strategy / sizeof *strategy; i++) {
            const char *set[8] = {strategy[i]};
            size_t bytes;

            memcpy(set + 1, how[k], sizeof how[k]);
            bytes = run(set);
            assert_true(bytes < before);
            before = bytes;
        }
    }
}

/* As a GPU would, with the CPU in its place. */
static void state_on_the_host_gives_the_same_bits(void **state)
{
    static const char *const strategy[] = {STRATEGY("no_shard"), STRATEGY("optim"), STRATEGY("optim_grads"),
                                           STRATEGY("optim_grads_params")};
    static const char *const bf16[] = {"bf16=false", "bf16=true", "optimizer=muon", "exp-avg-sq-dtype=8bit"};

    (void)state;
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < sizeof strategy / sizeof *strategy; i++) {
            double here[3][3];
            size_t all = run((const char *const[]){strategy[i], bf16[k], NULL}), less;

            memcpy(here, seen, sizeof here);
            less = run((const char *const[]){strategy[i], bf16[k], "optimizer-cpu-offload=true", NULL});
            assert_memory_equal(here, seen, sizeof here);
            assert_true(less < all);
        }
}

static void units_begin_where_they_are_divided(void **state)
{
    struct param_buffer s = {0};
    struct comm four = {.size = RANKS};
    struct param_buffer_conf conf = {.sharding = SHARD_OPTIM_GRADS_PARAMS, .replicas = &four, .align = 64};
    struct train_config c;
    size_t largest[COMM_BUFFERS] = {0};

    (void)state;
    config(&c, (const char *const[]){NULL});
    assert_int_equal(params_init(&s.params, &c.model, NULL, &e), 0);
    assert_int_equal(param_buffer_plan(&s, &conf, DTYPE_BF16, true, &e), 0);
    assert_int_equal(s.params.units, 7);
    assert_int_equal(s.memory.weights + s.memory.low + s.memory.grads, 0);
    for (int i = 0; i < s.params.units; i++) {
        size_t n = s.unit[i + 1].at - s.unit[i].at;
        int k = param_buffer_turn(&s, i);

        assert_int_equal(s.unit[i].at % (64 * RANKS), 0);
        assert_true(n > 0);
        assert_true(i == 0 || k != param_buffer_turn(&s, i - 1)); /* a pass needs two at once */
        largest[k] = n > largest[k] ? n : largest[k];
    }
    assert_int_not_equal(param_buffer_turn(&s, 0), param_buffer_turn(&s, 6)); /* a tied embedding is needed with the last norm */
    assert_memory_equal(largest, s.memory.unit, sizeof largest);
    for (int i = 0; i < s.params.n; i++) {
        assert_true(s.params.v[i].at >= s.unit[s.params.v[i].unit].at);
        assert_true(s.params.v[i].at + s.params.v[i].n <= s.unit[s.params.v[i].unit + 1].at);
        assert_null(param_weight(&s, i)); /* until somebody puts it there */
        assert_null(param_grad(&s, i));
    }
    param_buffer_close(&s);
    train_config_free(&c);
}

#define MIXTURE "num-experts=8", "expert-model-parallel-size=4", "seq-length=64", "eval-iters=0"

/* Rows that come are bounded by a capacity, and planned for; without one they are not, and what does not fit is named. */
static void rows_for_experts_have_a_bound_or_a_name(void **state)
{
    static const char *const policy[] = {"moe-token-drop-policy=probs", "moe-token-drop-policy=position"};

    (void)state;
    mirror_experts = true;
    for (int i = 0; i < 4; i++)
        run((const char *const[]){MIXTURE, "moe-expert-capacity-factor=0.8", policy[i / 2],
                                  i % 2 ? "moe-pad-expert-input-to-capacity=true" : "bf16=true", NULL});
    run_until((const char *const[]){MIXTURE, NULL}, true);
    assert_int_equal(e.code, ERR_NOMEM);
    assert_memory_equal(e.msg, "step 1: layer ", 14);
    assert_non_null(strstr(e.msg, " tokens came to its 2 experts on this rank, "));
    assert_non_null(strstr(e.msg, "--moe-expert-capacity-factor"));
    mirror_experts = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_what_is_allocated),
        cmocka_unit_test(state_on_the_host_gives_the_same_bits),
        cmocka_unit_test(units_begin_where_they_are_divided),
        cmocka_unit_test(rows_for_experts_have_a_bound_or_a_name),
    };
    int failed;

    log_init("division_test", LOG_ERROR);
    if (device_open(&dev, "cpu", 1, &e) < 0)
        return 1;
    real_calls = dev->calls;
    calls = *real_calls;
    calls.alloc = calls.alloc_host = counting_alloc;
    dev->calls = &calls;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    dev->calls = real_calls;
    device_close(dev);
    return failed;
}
