/* The trainer before a device that is late (tests/simt_backend.cpp: the CUDA kernels, in a stream that is a thread): the same
 * bits as where each thing is done at once, and how often a step waits.  The same with micro-batches as graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <libgen.h>
#include <math.h>
#include <unistd.h>

#include "base/log.h"
#include "kernels/device_calls.h"
#include "train/trainer.h"

enum { STEPS = 4 };

static struct comm *group;
static struct err e;

static void must(int rc)
{
    if (rc < 0)
        fail_msg("%s", e.msg);
}

static long (*queued)(long *graphs);

/* The backend lies beside the tests. */
static int start(void **state)
{
    char self[512], so[600];
    void *backend;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    log_init("train_late_test", LOG_ERROR);
    self[n < 0 ? 0 : n] = '\0';
    snprintf(so, sizeof so, "%s/../simt-cuda.so", dirname(self));
    setenv("QUERN_CUDA", so, 1);
    setenv("QUERN_CUDA_TUNE", "0", 1);
    backend = dlopen(so, RTLD_NOW);
    *(void **)(&queued) = backend ? dlsym(backend, "simt_queued") : NULL;
    if (!queued)
        return -1;
    return comm_open_self(&group, &e);
}

static int end(void **state)
{
    (void)state;
    comm_close(group);
    return 0;
}

/* ---- a device that counts ---- */

static struct device_calls counting;
static int (*its_sync)(struct device *dev, struct err *e);
static int (*its_capture_end)(struct device *dev, struct device_graph **g, struct err *e);
static int syncs;
static bool fails_to_record, fp8_apart;

static int count_sync(struct device *dev, struct err *why)
{
    syncs++;
    return its_sync(dev, why);
}

static int capture_end(struct device *dev, struct device_graph **g, struct err *why)
{
    if (!fails_to_record)
        return its_capture_end(dev, g, why);
    must(its_capture_end(dev, NULL, why));
    return err_set(why, ERR_DEVICE, "a test");
}

static struct device *open_device(const char *kind)
{
    struct device *dev;

    must(device_open(&dev, kind, 1, &e));
    counting = *dev->calls;
    its_sync = counting.sync;
    counting.sync = count_sync;
    its_capture_end = counting.capture_end;
    counting.capture_end = capture_end;
    dev->calls = &counting;
    return dev;
}

/* ---- runs ---- */

struct record {
    double loss[STEPS], norm[STEPS];
    int n, syncs[STEPS]; /* until behind the step */
    long queued[STEPS], graphs[STEPS];
};

static void on_step(void *arg, const struct train_step *s)
{
    struct record *r = arg;

    r->loss[r->n] = s->loss;
    r->norm[r->n] = s->grad_norm;
    r->queued[r->n] = queued(&r->graphs[r->n]);
    r->syncs[r->n++] = syncs;
}

static const char *const plain[] = {"cuda-graph-impl=none", NULL}, *const graphs[] = {"cuda-graph-impl=local", NULL};

/* STEPS steps with words "name=value", NULL at the end, and more of them. */
static struct record run_with(const char *device, const char *const *set, const char *const *more)
{
    static const char *const base[] = {
        "num-layers=2", "hidden-size=32", "num-attention-heads=2", "seq-length=16", "vocab-size=61",
        "make-vocab-size-divisible-by=16", "train-iters=4", "lr=0.01", "mock-data=true", "eval-iters=0", NULL,
    };
    const struct opt no_more[] = {OPT_END};
    const char *const *lists[] = {base, set, more};
    struct train_config c;
    struct record r = {.n = 0};
    struct device *dev = open_device(device);
    struct trainer *t;
    enum train_end how;
    struct opt *opts;

    train_config_init(&c);
    opts = train_config_options(&c, no_more);
    for (int k = 0; k < 3; k++)
        for (const char *const *s = lists[k]; *s; s++) {
            char name[64];
            const char *eq = strchr(*s, '=');

            snprintf(name, sizeof name, "%.*s", (int)(eq - *s), *s);
            must(opt_set(opts, name, eq + 1, &e));
        }
    free(opts);
    c.fp8.apart = fp8_apart;
    must(train_config_check(&c, &e));
    must(trainer_open(&t, &c, dev, group, &e));
    must(trainer_run(t, &(const volatile sig_atomic_t){0}, on_step, &r, &how, &e));
    trainer_close(t);
    device_close(dev);
    train_config_free(&c);
    assert_int_equal(r.n, STEPS);
    return r;
}

static struct record run(const char *device, const char *const *set)
{
    return run_with(device, set, plain);
}

static void same(const struct record *a, const struct record *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->norm, b->norm, sizeof a->norm);
}

/* At once, then late, of which each step but the first, when products are planned, waits once. */
static void late_as_at_once(const char *const *set)
{
    struct record now, late;

    unsetenv("SIMT_LATE");
    now = run("cuda", set);
    setenv("SIMT_LATE", "1", 1);
    late = run("cuda", set);
    same(&now, &late);
    for (int i = 1; i < STEPS; i++)
        assert_int_equal(late.syncs[i] - late.syncs[i - 1], 1);
}

static void a_step_waits_once(void **state)
{
    (void)state;
    late_as_at_once((const char *const[]){"micro-batch-size=1", "global-batch-size=1", NULL});
    late_as_at_once((const char *const[]){"micro-batch-size=1", "global-batch-size=7", NULL});
    late_as_at_once((const char *const[]){"micro-batch-size=2", "global-batch-size=4", "bf16=true", "clip-grad=0.1",
                                          "recompute-granularity=selective", NULL});
    late_as_at_once((const char *const[]){"micro-batch-size=1", "global-batch-size=2", "bf16=true", "fp8-format=hybrid",
                                          "attention-dropout=0", NULL});
}

static int waits(const char *const *set)
{
    struct record r;

    setenv("SIMT_LATE", "1", 1);
    r = run("cuda", set);
    return r.syncs[STEPS - 1] - r.syncs[STEPS - 2];
}

/* Nothing waits for how many rows experts get, but where the products are a call each: forward in each layer.  The step ends
 * with one wait more, for how evenly they were used. */
static void experts_wait_for_counts(void **state)
{
#define EXPERTS "num-experts=4", "moe-router-topk=2", "moe-aux-loss-coeff=0.01", "micro-batch-size=1", "global-batch-size=3"
#define CAPACITY "moe-expert-capacity-factor=1"
    (void)state;
    assert_int_equal(waits((const char *const[]){EXPERTS, "bf16=true", NULL}), 2);
    assert_int_equal(waits((const char *const[]){EXPERTS, NULL}), 2 + 3 * 2);
    assert_int_equal(waits((const char *const[]){EXPERTS, "bf16=true", "fp8-format=hybrid", NULL}), 2 + 3 * 2);
    assert_int_equal(waits((const char *const[]){EXPERTS, "bf16=true", CAPACITY, NULL}), 2 + 3 * 2);
    assert_int_equal(waits((const char *const[]){EXPERTS, "bf16=true", CAPACITY, "moe-pad-expert-input-to-capacity=true", NULL}),
                     2);
    assert_int_equal(waits((const char *const[]){EXPERTS, "bf16=true", CAPACITY, "moe-pad-expert-input-to-capacity=true",
                                                 "fp8-format=hybrid", NULL}), 2);
}

/* More micro-batches than there are places: the device is waited for in between, and no loss is lost. */
static void places_are_used_again(void **state)
{
    struct record few, many;

    (void)state;
    few = run("cpu", (const char *const[]){"micro-batch-size=20", "global-batch-size=600", NULL});
    many = run("cpu", (const char *const[]){"micro-batch-size=1", "global-batch-size=600", NULL});
    for (int i = 0; i < STEPS; i++) {
        assert_true(fabs(few.loss[i] - many.loss[i]) < 1e-6 * few.loss[i]);
        assert_true(fabs(few.norm[i] - many.norm[i]) < 1e-4 * few.norm[i]);
        assert_int_equal(few.syncs[i] - (i ? few.syncs[i - 1] : few.syncs[0]), i ? 1 : 0);
        assert_int_equal(many.syncs[i] - (i ? many.syncs[i - 1] : many.syncs[0]), i ? 3 : 0);
    }
}

/* ---- graphs ---- */

/* Micro-batches as graphs: the bits of single launches, at once and late, and as many waits.  From the third step on (the first
 * is launch by launch, so in FP8 with past scales is the second) each is one launch and the copies of what it differs by. */
static void graph_as_launches(const char *const *set, int micro_batches)
{
    struct record single, graph;

    for (int late = 0; late < 2; late++) {
        late ? setenv("SIMT_LATE", "1", 1) : unsetenv("SIMT_LATE");
        single = run_with("cuda", set, plain);
        graph = run_with("cuda", set, graphs);
        same(&single, &graph);
        for (int i = 2; i < STEPS; i++) {
            assert_int_equal(graph.syncs[i] - graph.syncs[i - 1], single.syncs[i] - single.syncs[i - 1]);
            assert_int_equal(graph.graphs[i] - graph.graphs[i - 1], micro_batches);
            assert_true(graph.queued[i] - graph.queued[i - 1] <
                        single.queued[i] - single.queued[i - 1] - 40 * micro_batches); /* of two layers */
        }
        if (getenv("SIMT_COUNTS"))
            printf("%d micro-batches: %ld launches and copies, as graphs %ld\n", micro_batches,
                   single.queued[STEPS - 1] - single.queued[STEPS - 2], graph.queued[STEPS - 1] - graph.queued[STEPS - 2]);
    }
}

static void a_graph_gives_the_same_bits(void **state)
{
    (void)state;
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=7", NULL}, 7);
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=1", "eval-iters=1", "eval-interval=1",
                                            "split=1,1,1", NULL}, 1);
    graph_as_launches((const char *const[]){"micro-batch-size=2", "global-batch-size=6", "bf16=true", "clip-grad=0.1",
                                            "recompute-granularity=selective", "optimizer-cpu-offload=true", NULL}, 3);
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=3", "bf16=true", "main-params-dtype=bf16",
                                            "recompute-granularity=full", "recompute-num-layers=2", NULL}, 3);
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=5", "deterministic=true", NULL}, 5);
}

static void a_llama_gives_the_same_bits(void **state)
{
#define LLAMA "normalization=RMSNorm", "swiglu=true", "position-embedding-type=rope", "disable-bias-linear=true", \
    "untie-embeddings-and-output-weights=true", "group-query-attention=true", "attention-dropout=0", "hidden-dropout=0"
    (void)state;
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=3", "bf16=true", LLAMA, NULL}, 3);
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=3", LLAMA, "qk-layernorm=true", "eod-id=3",
                                            "reset-position-ids=true", "reset-attention-mask=true", "eod-mask-loss=true", NULL},
                      3);
}

static void fp8_gives_the_same_bits(void **state)
{
    (void)state;
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=3", "bf16=true", "fp8-format=hybrid", NULL},
                      3);
    graph_as_launches((const char *const[]){"micro-batch-size=1", "global-batch-size=2", "bf16=true", "fp8-format=e4m3",
                                            "fp8-recipe=tensorwise", "attention-dropout=0", NULL}, 2);
}

/* Ops that convert what they make, and the same in two: on either device. */
static void conversions_at_once_give_the_same_bits(void **state)
{
#define FP8 "micro-batch-size=1", "global-batch-size=2", "bf16=true", "fp8-format=hybrid"
    static const char *const set[][16] = {
        {FP8, NULL}, {FP8, LLAMA, NULL}, {FP8, "recompute-granularity=selective", LLAMA, NULL},
        {FP8, "recompute-granularity=full", "recompute-method=uniform", "recompute-num-layers=2", NULL},
        {FP8, "num-experts=4", "moe-layer-freq=2", "moe-router-topk=2", NULL},
        {FP8, "first-last-layers-bf16=true", "num-layers=3", "recompute-granularity=full", "recompute-method=uniform",
         "recompute-num-layers=3", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        for (int on = 0; on < 2; on++) {
            struct record once = run_with(on ? "cuda" : "cpu", set[i], plain), apart;

            fp8_apart = true;
            apart = run_with(on ? "cuda" : "cpu", set[i], plain);
            fp8_apart = false;
            same(&once, &apart);
            if (on)
                assert_true(once.queued[STEPS - 1] - once.queued[STEPS - 2] < apart.queued[STEPS - 1] - apart.queued[STEPS - 2]);
        }
}

/* More micro-batches with time, so that what their losses count changes too. */
static void a_ramp_gives_the_same_bits(void **state)
{
    static const char *const set[] = {"micro-batch-size=1", "global-batch-size=4", "rampup-batch-size=1,1,6", "train-iters=0",
                                      "train-samples=7", "bf16=true", "fp8-format=hybrid", NULL};
    struct record single = run_with("cuda", set, plain), graph = run_with("cuda", set, graphs);

    (void)state;
    same(&single, &graph);
    assert_true(graph.graphs[STEPS - 1] > graph.graphs[STEPS - 2]);
}

/* Training goes on launch by launch. */
static void what_cannot_be_recorded_runs(void **state)
{
    static const char *const set[] = {"micro-batch-size=1", "global-batch-size=3", "bf16=true", "fp8-format=hybrid", NULL};
    static const char *const experts[] = {"micro-batch-size=1", "global-batch-size=2", "num-experts=4", NULL};
    struct record single = run_with("cuda", set, plain), graph;

    (void)state;
    fails_to_record = true;
    graph = run_with("cuda", set, graphs);
    fails_to_record = false;
    same(&single, &graph);
    assert_int_equal(graph.graphs[STEPS - 1], single.graphs[STEPS - 1]);
    for (int i = 0; i < 2; i++) {
        single = run_with(i ? "cpu" : "cuda", i ? set : experts, plain);
        graph = run_with(i ? "cpu" : "cuda", i ? set : experts, graphs);
        same(&single, &graph);
        assert_int_equal(graph.graphs[STEPS - 1], single.graphs[STEPS - 1]);
    }
}

/* ---- the device's own ---- */

/* Columns' sums of n rows of ones, which need scratch by n, added to what is there. */
static int add_columns(struct device *dev, float *sum, const float *ones, int64_t n)
{
    return dev->ops->vec_colsum(dev, DTYPE_F32, sum, ones, n, 4, 4, &e);
}

/* What a graph was recorded with is there when it runs, the scratch too. */
static void a_graph_runs_again(void **state)
{
    enum { ROWS = 4000 };
    struct device *dev = open_device("cuda");
    struct device_graph *g;
    float *ones, *sum, host[4 * ROWS];

    (void)state;
    for (int i = 0; i < 4 * ROWS; i++)
        host[i] = 1;
    must(device_alloc(dev, (void **)&ones, sizeof host, &e));
    must(device_alloc(dev, (void **)&sum, 4 * sizeof *sum, &e));
    must(device_put(dev, ones, host, sizeof host, &e));
    must(device_zero(dev, sum, 4 * sizeof *sum, &e));
    must(add_columns(dev, sum, ones, 50));
    must(device_capture_begin(dev, &e));
    must(add_columns(dev, sum, ones, 50));
    must(device_capture_end(dev, &g, &e));
    must(add_columns(dev, sum, ones, ROWS));
    for (int i = 0; i < 3; i++)
        must(device_graph_launch(dev, g, &e));
    must(device_get(dev, host, sum, 4 * sizeof *sum, &e));
    for (int i = 0; i < 4; i++)
        assert_true(host[i] == ROWS + 4 * 50);
    device_graph_free(dev, g);
    device_free(dev, ones);
    device_free(dev, sum);
    device_close(dev);
}

/* Each is an error, and no graph comes of it; afterwards all is as before. */
static void waiting_is_not_recorded(void **state)
{
    struct device *dev = open_device("cuda");
    struct device_graph *g;
    struct device_event *ev;
    void *p, *more;

    (void)state;
    must(device_event_new(dev, &ev, &e));
    must(device_alloc(dev, &p, 1 << 20, &e));
    for (int i = 0; i < 5; i++) {
        must(device_capture_begin(dev, &e));
        must(device_zero(dev, p, 64, &e));
        if (i == 0)
            assert_int_equal(device_sync(dev, &e), ERR_DEVICE);
        else if (i == 1)
            assert_int_equal(device_alloc(dev, &more, 64, &e), ERR_DEVICE);
        else if (i == 2)
            assert_int_equal(device_event_record(dev, ev, &e), ERR_DEVICE);
        else if (i == 3)
            assert_int_equal(device_event_wait(dev, ev, &e), ERR_DEVICE);
        else /* scratch was never so large */
            assert_int_equal(dev->ops->vec_colsum(dev, DTYPE_F32, p, p, 1 << 14, 1 << 15, 1 << 15, &e), ERR_DEVICE);
        assert_int_equal(device_capture_end(dev, i < 4 ? &g : NULL, &e), i < 4 ? ERR_DEVICE : 0);
        assert_true(i == 4 || !g);
    }
    must(device_sync(dev, &e));
    device_event_free(dev, ev);
    device_free(dev, p);
    device_close(dev);
    dev = open_device("cpu");
    assert_int_equal(device_capture_begin(dev, &e), ERR_UNSUPPORTED);
    device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_runs_again), /* first, while scratch is small */
        cmocka_unit_test(waiting_is_not_recorded),
        cmocka_unit_test(a_step_waits_once),
        cmocka_unit_test(experts_wait_for_counts),
        cmocka_unit_test(places_are_used_again),
        cmocka_unit_test(a_graph_gives_the_same_bits),
        cmocka_unit_test(a_llama_gives_the_same_bits),
        cmocka_unit_test(fp8_gives_the_same_bits),
        cmocka_unit_test(conversions_at_once_give_the_same_bits),
        cmocka_unit_test(a_ramp_gives_the_same_bits),
        cmocka_unit_test(what_cannot_be_recorded_runs),
    };

    return cmocka_run_group_tests(tests, start, end);
}
