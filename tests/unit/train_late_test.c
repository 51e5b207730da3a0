/* The trainer before a device that is late (tests/simt_backend.cpp: the CUDA kernels, in a stream that is a thread): the same
 * bits as where each thing is done at once, and how often a step waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* The backend lies beside the tests. */
static int start(void **state)
{
    char self[512], so[600];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    log_init("train_late_test", LOG_ERROR);
    self[n < 0 ? 0 : n] = '\0';
    snprintf(so, sizeof so, "%s/../simt-cuda.so", dirname(self));
    setenv("QUERN_CUDA", so, 1);
    setenv("QUERN_CUDA_TUNE", "0", 1);
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
static int syncs;

static int count_sync(struct device *dev, struct err *why)
{
    syncs++;
    return its_sync(dev, why);
}

static struct device *open_device(const char *kind)
{
    struct device *dev;

    must(device_open(&dev, kind, 1, &e));
    counting = *dev->calls;
    its_sync = counting.sync;
    counting.sync = count_sync;
    dev->calls = &counting;
    return dev;
}

/* ---- runs ---- */

struct record {
    double loss[STEPS], norm[STEPS];
    int n, syncs[STEPS]; /* until behind the step */
};

static void on_step(void *arg, const struct train_step *s)
{
    struct record *r = arg;

    r->loss[r->n] = s->loss;
    r->norm[r->n] = s->grad_norm;
    r->syncs[r->n++] = syncs;
}

/* STEPS steps with words "name=value", NULL at the end. */
static struct record run(const char *device, const char *const *set)
{
    static const char *const base[] = {
        "num-layers=2", "hidden-size=32", "num-attention-heads=2", "seq-length=16", "vocab-size=61",
        "make-vocab-size-divisible-by=16", "train-iters=4", "lr=0.01", "mock-data=true", "eval-iters=0", NULL,
    };
    const struct opt no_more[] = {OPT_END};
    const char *const *lists[] = {base, set};
    struct train_config c;
    struct record r = {.n = 0};
    struct device *dev = open_device(device);
    struct trainer *t;
    enum train_end how;
    struct opt *opts;

    train_config_init(&c);
    opts = train_config_options(&c, no_more);
    for (int k = 0; k < 2; k++)
        for (const char *const *s = lists[k]; *s; s++) {
            char name[64];
            const char *eq = strchr(*s, '=');

            snprintf(name, sizeof name, "%.*s", (int)(eq - *s), *s);
            must(opt_set(opts, name, eq + 1, &e));
        }
    free(opts);
    must(train_config_check(&c, &e));
    must(trainer_open(&t, &c, dev, group, &e));
    must(trainer_run(t, &(const volatile sig_atomic_t){0}, on_step, &r, &how, &e));
    trainer_close(t);
    device_close(dev);
    train_config_free(&c);
    assert_int_equal(r.n, STEPS);
    return r;
}

/* At once, then late, of which each step but the first, when products are planned, waits once. */
static void late_as_at_once(const char *const *set)
{
    struct record now, late;

    unsetenv("SIMT_LATE");
    now = run("cuda", set);
    setenv("SIMT_LATE", "1", 1);
    late = run("cuda", set);
    assert_memory_equal(now.loss, late.loss, sizeof now.loss);
    assert_memory_equal(now.norm, late.norm, sizeof now.norm);
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

/* Experts wait for the counts of their rows, forward in each layer; not where each has as many always.  The step ends with one
 * wait more, for how evenly they were used. */
static void experts_wait_for_counts(void **state)
{
#define EXPERTS "num-experts=4", "moe-router-topk=2", "moe-aux-loss-coeff=0.01", "bf16=true", "micro-batch-size=1", \
        "global-batch-size=3"
    (void)state;
    assert_int_equal(waits((const char *const[]){EXPERTS, NULL}), 2 + 3 * 2);
    assert_int_equal(waits((const char *const[]){EXPERTS, "moe-expert-capacity-factor=1", "moe-pad-expert-input-to-capacity=true",
                                                 NULL}), 2);
    assert_int_equal(waits((const char *const[]){EXPERTS, "moe-expert-capacity-factor=1", "moe-pad-expert-input-to-capacity=true",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_waits_once),
        cmocka_unit_test(experts_wait_for_counts),
        cmocka_unit_test(places_are_used_again),
    };

    return cmocka_run_group_tests(tests, start, end);
}
