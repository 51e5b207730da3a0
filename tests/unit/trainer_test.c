/* The training loop: resume gives the bits of a run without a stop, for dropout,
 * accumulation, evaluation, several epochs, bf16 and recomputation; micro-batches do not
 * change the dropout; a loss that is not finite stops the run; cached generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "base/log.h"
#include "indexed_dataset/idx_write.h"
#include "tests/temp_folder.h"
#include "tests/words.h"
#include "train/evaluate.h"
#include "train/generate.h"
#include "train/tensorboard.h"
#include "train/trainer.h"

enum { MAX_STEPS = 32 };

static char prefix[96], store[96];
static struct device *dev;
static struct comm *group;
static struct err e;
static const struct opt no_more[] = {OPT_END};

/* A dataset of 40 documents, 1,500 tokens: some epochs of it make a run. */
static int start(void **state)
{
    struct idx_writer *w;
    uint32_t ids[64], x = 1;

    log_init("trainer_test", LOG_ERROR);
    if (make_dir(state) < 0)
        return -1;
    snprintf(prefix, sizeof prefix, "%s/data", dir);
    snprintf(store, sizeof store, "%s/store", dir);
    if (idx_create(&w, prefix, IDX_U16, &e) < 0)
        return -1;
    for (int d = 0; d < 40; d++) {
        size_t n = 15 + (size_t)d;

        for (size_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            ids[i] = i % 3 ? (ids[i - 1] * 7 + 3) % 61 : x >> 26;
        }
        if (idx_add_document(w, ids, n, &e) < 0)
            return -1;
    }
    if (idx_commit(w, (struct span){NULL, 0}, &e) < 0)
        return -1;
    return device_open(&dev, "cpu", 2, &e) < 0 || comm_open_self(&group, &e) < 0 ? -1 : 0;
}

static int end(void **state)
{
    comm_close(group);
    device_close(dev);
    return remove_dir(state);
}

static void forget_checkpoints(void)
{
    char cmd[160];

    snprintf(cmd, sizeof cmd, "rm -rf '%s'", store);
    assert_int_equal(system(cmd), 0);
}

/* 20 steps of 4 samples of 16 tokens, with dropout, warm-up and evaluation; then words
 * "name=value" to change that, NULL at the end. */
static void config(struct train_config *c, const char *const *set)
{
    static const char *const base[] = {
        "num-layers=2", "hidden-size=32", "num-attention-heads=2", "seq-length=16", "vocab-size=64",
        "make-vocab-size-divisible-by=16", "micro-batch-size=2", "global-batch-size=4", "train-iters=20",
        "lr=0.01", "lr-warmup-iters=3", "lr-decay-style=cosine", "split=80,20,0", "eval-interval=3", "eval-iters=1",
        NULL,
    };
    struct opt *opts;

    train_config_init(c);
    opts = train_config_options(c, no_more);
    assert_non_null(opts);
    if (words_set(opts, base, &e) < 0 || words_set(opts, set, &e) < 0)
        fail_msg("%s", e.msg);
    if (!c->mock_data)
        assert_int_equal(opt_set(opts, "data-path", prefix, &e), 0);
    free(opts);
    if (train_config_check(c, &e) < 0)
        fail_msg("%s", e.msg);
}

struct record {
    struct train_step step[MAX_STEPS];
    int n;
    int stop_after; /* raise the stop flag after this step, as a signal would */
    volatile sig_atomic_t stop;
};

static void on_step(void *arg, const struct train_step *s)
{
    struct record *r = arg;

    assert_true(s->step >= 1 && s->step <= MAX_STEPS);
    r->step[s->step - 1] = *s;
    r->n++;
    if (s->step == r->stop_after)
        r->stop = 1;
}

/* Runs; the final weights are copied to weights if given.  Returns trainer_run's code. */
static int run(struct train_config *c, struct record *r, float *weights)
{
    struct trainer *t;
    enum train_end how;
    int rc;

    if (trainer_open(&t, c, dev, group, &e) < 0)
        return e.code;
    rc = trainer_run(t, &r->stop, on_step, r, &how, &e);
    if (rc == 0)
        assert_int_equal(how, r->stop ? TRAIN_SIGNAL : c->exit_interval ? TRAIN_EXIT : TRAIN_ALL_DONE);
    if (weights)
        memcpy(weights, t->parts->model->dense.weights, t->parts->model->memory.weights);
    trainer_close(t);
    return rc;
}

static size_t slab_size(const struct train_config *c)
{
    struct train_memory m;

    assert_int_equal(trainer_plan(c, &m, &e), 0);
    return m.model.weights;
}

static void same_steps(const struct record *a, const struct record *b)
{
    for (int i = 0; i < 20; i++) {
        const struct train_step *x = &a->step[i], *y = &b->step[i];

        if (x->loss != y->loss || x->grad_norm != y->grad_norm || x->lr != y->lr || x->step != y->step ||
            (x->valid_loss != y->valid_loss && !(isnan(x->valid_loss) && isnan(y->valid_loss))))
            fail_msg("step %d: loss %.17g norm %.17g valid %.9g, resumed %.17g %.17g %.9g", i + 1, x->loss,
                     x->grad_norm, x->valid_loss, y->loss, y->grad_norm, y->valid_loss);
    }
}

/* One run of 20 steps against one that is stopped after 7 and 13 and started again. */
static void stop_and_resume(const char *const *set)
{
    struct train_config c;
    struct record whole = {0}, parts = {0};
    char save[128];
    const char *more[16];
    float *a, *b;
    int n = 0;

    forget_checkpoints();
    for (; set[n]; n++)
        more[n] = set[n];
    snprintf(save, sizeof save, "save=%s", store);
    more[n] = save;
    more[n + 1] = "async-save=true";
    more[n + 2] = "save-interval=4";
    more[n + 3] = NULL;
    config(&c, set);
    a = calloc(1, slab_size(&c));
    b = calloc(1, slab_size(&c));
    assert_int_equal(run(&c, &whole, a), 0);
    train_config_free(&c);
    for (size_t i = 0; i < 3; i++) {
        config(&c, more);
        parts.stop_after = (const int[]){7, 13, 0}[i];
        parts.stop = 0;
        if (run(&c, &parts, b) < 0)
            fail_msg("%s", e.msg);
        train_config_free(&c);
    }
    assert_int_equal(whole.n, 20);
    assert_int_equal(parts.n, 20);
    same_steps(&whole, &parts);
    config(&c, set);
    assert_memory_equal(a, b, slab_size(&c));
    train_config_free(&c);
    assert_true(whole.step[19].loss < whole.step[0].loss);
    free(a);
    free(b);
}

static void resume_gives_the_same_bits(void **state)
{
    (void)state;
    stop_and_resume((const char *const[]){NULL});
}

static void resume_gives_the_same_bits_in_bf16(void **state)
{
    (void)state;
    stop_and_resume((const char *const[]){"bf16=true", NULL});
}

static void resume_gives_the_same_bits_with_state_on_the_host(void **state)
{
    (void)state;
    stop_and_resume((const char *const[]){"optimizer-cpu-offload=true", NULL});
}

static void resume_gives_the_same_bits_recomputed(void **state)
{
    (void)state;
    stop_and_resume((const char *const[]){"recompute-granularity=full", "untie-embeddings-and-output-weights=true",
                                          NULL});
}

#define LLAMA "normalization=RMSNorm", "position-embedding-type=rope", "swiglu=true", "disable-bias-linear=true", \
    "num-attention-heads=4", "group-query-attention=true", "num-query-groups=2", "kv-channels=12", "qk-layernorm=true", \
    "untie-embeddings-and-output-weights=true"

static void a_llama_resumes_with_the_same_bits(void **state)
{
    (void)state;
    stop_and_resume((const char *const[]){LLAMA, "num-layers=3", NULL});
}

static void a_ramp_resumes_with_the_same_bits(void **state)
{
    (void)state;
    /* 2, 2, 4, 6, then 8: 20 steps */
    stop_and_resume((const char *const[]){"train-iters=0", "train-samples=146", "global-batch-size=8",
                                          "rampup-batch-size=2,2,12", "lr-warmup-iters=1", NULL});
}

/* Steps whose loss or norm is above the mean are skipped; which, a resumed run knows too. */
static void skipped_steps_resume_with_the_same_bits(void **state)
{
    static struct record r;
    struct train_config c;
    int skipped = 0;

    (void)state;
    stop_and_resume((const char *const[]){"spike-factor=1.15", "spike-window=4", NULL});
    memset(&r, 0, sizeof r);
    config(&c, (const char *const[]){"spike-factor=1.15", "spike-window=4", NULL});
    assert_int_equal(run(&c, &r, NULL), 0);
    train_config_free(&c);
    struct guard g = {0};
    for (int i = 0; i < 20; i++)
        if (guard_judge(&g, r.step[i].loss, r.step[i].grad_norm, 1.15, 4) == STEP_GOOD)
            guard_add(&g, r.step[i].loss, r.step[i].grad_norm, 4);
        else
            skipped++;
    assert_true(skipped > 0 && skipped < 20);
    assert_int_equal(g.n, 20 - skipped);
}

static void the_guard_judges(void **state)
{
    struct guard g = {0};

    (void)state;
    assert_int_equal(guard_judge(&g, NAN, 1, 0, 4), STEP_NOT_FINITE);
    assert_int_equal(guard_judge(&g, 1, INFINITY, 0, 4), STEP_NOT_FINITE);
    assert_int_equal(guard_judge(&g, 100, 1, 2, 4), STEP_GOOD); /* nothing to hold it against yet */
    for (int i = 0; i < 8; i++)
        guard_add(&g, 3, 1, 4);
    assert_true(g.loss == 3 && g.norm == 1);
    assert_int_equal(guard_judge(&g, 6.1, 1, 2, 4), STEP_SPIKE);
    assert_int_equal(guard_judge(&g, 3, 2.1, 2, 4), STEP_SPIKE);
    assert_int_equal(guard_judge(&g, 6, 2, 2, 4), STEP_GOOD);
    assert_int_equal(guard_judge(&g, 100, 100, 0, 4), STEP_GOOD);
    guard_add(&g, 7, 1, 4);
    assert_true(g.loss == 4);
}

/* A spike goes back to the last checkpoint, and on behind its batch. */
static void a_spike_rolls_back(void **state)
{
    static struct record r;
    struct train_config c;
    struct trainer *t;
    enum train_end how;
    char save[128];

    (void)state;
    forget_checkpoints();
    snprintf(save, sizeof save, "save=%s", store);
    config(&c, (const char *const[]){save, "spike-factor=1.2", "spike-window=4", "spike-action=rollback", "save-interval=2",
                                     "async-save=true", "max-bad-steps=1000", NULL});
    memset(&r, 0, sizeof r);
    assert_int_equal(trainer_open(&t, &c, dev, group, &e), 0);
    if (trainer_run(t, &r.stop, on_step, &r, &how, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(t->step, 20);
    assert_int_equal(t->consumed, 4 * r.n); /* every batch once, taken or not */
    assert_true(r.n > 20);
    trainer_close(t);
    train_config_free(&c);
}

/* Weights that have become infinite do not mend by skipping: it stops, and says so. */
static void bad_steps_have_a_bound(void **state)
{
    struct train_config c;
    struct record r = {0};

    (void)state;
    config(&c, (const char *const[]){"lr=1000000", "clip-grad=0", "lr-warmup-iters=1", "init-method-std=10",
                                     "lr-decay-style=constant", "nan-action=skip", "max-bad-steps=3", NULL});
    assert_int_equal(run(&c, &r, NULL), ERR_LIMIT);
    assert_non_null(strstr(e.msg, "3 bad steps"));
    assert_non_null(strstr(e.msg, "training samples"));
    train_config_free(&c);
}


/* Runs a configuration from scratch, without checkpoints. */
static void steps_of(const char *const *set, struct record *r)
{
    struct train_config c;

    memset(r, 0, sizeof *r);
    config(&c, set);
    if (run(&c, r, NULL) < 0)
        fail_msg("%s", e.msg);
    train_config_free(&c);
}

static void recomputation_gives_the_same_bits(void **state)
{
    static struct record a, b;

    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const char *dt = bf16 ? "bf16=true" : "bf16=false";

        steps_of((const char *const[]){dt, NULL}, &a);
        steps_of((const char *const[]){dt, "recompute-granularity=full", NULL}, &b);
        same_steps(&a, &b);
        steps_of((const char *const[]){dt, "recompute-granularity=selective", NULL}, &b);
        same_steps(&a, &b);
    }
    steps_of((const char *const[]){LLAMA, "num-layers=5", NULL}, &a);
    for (int layers = 2; layers <= 3; layers++) {
        char n[32];

        snprintf(n, sizeof n, "recompute-num-layers=%d", layers);
        steps_of((const char *const[]){LLAMA, "num-layers=5", "recompute-granularity=full", n, NULL}, &b);
        same_steps(&a, &b);
        steps_of((const char *const[]){LLAMA, "num-layers=5", "recompute-granularity=full", n, "recompute-method=block",
                                       NULL}, &b);
        same_steps(&a, &b);
    }
    steps_of((const char *const[]){LLAMA, "num-layers=5", "recompute-granularity=selective", NULL}, &b);
    same_steps(&a, &b);
}

/* Micro-batches of 1, 2 and 4: the same samples and the same dropout, sums in another
 * order. */
static void micro_batches_only_round(void **state)
{
    static struct record a, b;

    (void)state;
    steps_of((const char *const[]){"micro-batch-size=4", NULL}, &a);
    for (int m = 1; m <= 2; m++) {
        steps_of((const char *const[]){m == 1 ? "micro-batch-size=1" : "micro-batch-size=2", NULL}, &b);
        for (int i = 0; i < 20; i++)
            if (!(fabs(a.step[i].loss - b.step[i].loss) <= 1e-4))
                fail_msg("step %d: %.9g with 4, %.9g with %d", i + 1, a.step[i].loss, b.step[i].loss, m);
    }
}

static bool near_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(a);
}

/* The same number of threads gives the same bits; another number rounds otherwise where oneDNN splits a sum over threads
 * (docs/numerics.md). */
static void threads_only_round(void **state)
{
    static struct record a, again, b;
    struct device *one, *both = dev;

    (void)state;
    steps_of((const char *const[]){NULL}, &a);
    steps_of((const char *const[]){NULL}, &again);
    same_steps(&a, &again);
    assert_int_equal(device_open(&one, "cpu", 1, &e), 0);
    dev = one;
    steps_of((const char *const[]){NULL}, &b);
    dev = both;
    device_close(one);
    assert_int_equal(device_open(&one, "cpu", 2, &e), 0);
    device_close(one);
    if (!HAVE_DNNL) {
        same_steps(&a, &b);
        return;
    }
    for (int i = 0; i < 20; i++)
        if (!(near_to(a.step[i].loss, b.step[i].loss, 1e-6) && near_to(a.step[i].grad_norm, b.step[i].grad_norm, 1e-5)))
            fail_msg("step %d: loss %.9g norm %.9g with two threads, %.9g %.9g with one", i + 1, a.step[i].loss,
                     a.step[i].grad_norm, b.step[i].loss, b.step[i].grad_norm);
}

static void a_loss_that_is_not_finite_names_the_batch(void **state)
{
    struct train_config c;
    struct record r = {0};

    (void)state;
    config(&c, (const char *const[]){"lr=1000000", "clip-grad=0", "lr-warmup-iters=1", "init-method-std=10",
                                     "lr-decay-style=constant", NULL});
    assert_int_equal(run(&c, &r, NULL), ERR_LIMIT);
    assert_non_null(strstr(e.msg, "not finite"));
    assert_non_null(strstr(e.msg, "training samples"));
    train_config_free(&c);
}

static void exit_interval_saves_and_leaves(void **state)
{
    struct train_config c;
    struct record r = {0};
    char save[128];
    struct checkpoint *ck;

    (void)state;
    forget_checkpoints();
    snprintf(save, sizeof save, "save=%s", store);
    config(&c, (const char *const[]){"exit-interval=4", save, NULL});
    assert_int_equal(run(&c, &r, NULL), 0);
    assert_int_equal(r.n, 4);
    assert_int_equal(checkpoint_open(&ck, store, CHECKPOINT_LAST, &e), 0);
    assert_int_equal(checkpoint_info(ck)->iteration, 4);
    assert_int_equal(checkpoint_info(ck)->consumed, 16);
    checkpoint_close(ck);
    train_config_free(&c);
}

static void another_shape_is_refused_by_name(void **state)
{
    struct train_config c;
    struct record r = {0};
    char load[128];

    (void)state;
    snprintf(load, sizeof load, "load=%s", store);
    config(&c, (const char *const[]){load, "num-layers=3", NULL});
    assert_int_equal(run(&c, &r, NULL), ERR_ARG);
    assert_non_null(strstr(e.msg, "--num-layers is 2, not 3"));
    train_config_free(&c);
    config(&c, (const char *const[]){load, "finetune=true", "train-iters=2", "lr-warmup-iters=0", NULL});
    assert_int_equal(run(&c, &r, NULL), 0);
    assert_int_equal(r.n, 2); /* from step 0 with the weights of step 4 */
    train_config_free(&c);
}

static void a_vocabulary_too_small_names_the_sample(void **state)
{
    struct train_config c;
    struct record r = {0};

    (void)state;
    config(&c, (const char *const[]){"vocab-size=40", NULL});
    assert_int_equal(run(&c, &r, NULL), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "train sample"));
    assert_non_null(strstr(e.msg, "--vocab-size"));
    train_config_free(&c);
}

/* ---- generation ---- */

static struct model *restored(enum model_use use, enum dtype dt, int64_t b, int64_t t)
{
    struct checkpoint *ck;
    struct model *m;

    assert_int_equal(checkpoint_open(&ck, store, CHECKPOINT_LAST, &e), 0);
    assert_int_equal(model_restore(&m, ck, dev, &(struct model_run){.dt = dt, .use = use, .b = b, .t = t}, &e), 0);
    checkpoint_close(ck);
    return m;
}

static const int32_t text[16] = {5, 38, 25, 9, 1, 10, 12, 26, 2, 17, 0, 3, 60, 4, 31, 33};

/* Token by token through the cache, in pieces, and all at once: the same logits as a
 * plain forward pass. */
static void check_cache(void)
{
    struct model *full = restored(MODEL_EVAL, DTYPE_F32, 1, 16), *gen = restored(MODEL_GENERATE, DTYPE_F32, 2, 16);
    int32_t two[32], targets[16] = {0};
    const struct model_batch batch = {.tokens = text, .targets = targets};
    float logits[2 * 64];
    double loss;

    assert_int_equal(model_take(full, &batch, &e), 0);
    assert_int_equal(model_forward(full, &batch, &loss, &e), 0);
    for (int piece = 1; piece <= 16; piece *= 4)
        for (int past = 0; past < 16; past += piece) {
            for (int b = 0; b < 2; b++)
                memcpy(two + b * piece, text + past, (size_t)piece * sizeof *text);
            assert_int_equal(model_extend(gen, two, 2, piece, past, logits, &e), 0);
            for (int b = 0; b < 2; b++)
                for (int v = 0; v < 64; v++) {
                    float want = ((float *)full->head.logits)[(past + piece - 1) * 64 + v];

                    if (!(fabsf(logits[b * 64 + v] - want) <= 1e-5f * fmaxf(1, fabsf(want))))
                        fail_msg("pieces of %d, position %d, sample %d, id %d: %.8g, not %.8g", piece,
                                 past + piece - 1, b, v, logits[b * 64 + v], want);
                }
        }
    assert_int_equal(model_extend(gen, two, 2, 1, 16, logits, &e), ERR_ARG);
    model_close(full);
    model_close(gen);
}

static void cached_logits_equal_a_full_pass(void **state)
{
    (void)state;
    check_cache();
}

/* On the checkpoint that a_llama_resumes_with_the_same_bits left. */
static void a_llama_generates_through_its_cache(void **state)
{
    (void)state;
    check_cache();
}

struct texts {
    int32_t id[3][16];
    int n[3];
};

static int keep(void *arg, int64_t sample, int32_t id, struct err *err)
{
    struct texts *t = arg;

    (void)err;
    t->id[sample][t->n[sample]++] = id;
    return 0;
}

static void generation_is_reproducible(void **state)
{
    struct model *m = restored(MODEL_GENERATE, DTYPE_F32, 3, 16);
    struct sampling s = {.temperature = 1, .top_p = 1, .penalty = 1, .seed = 3, .eod = -1};
    struct texts a = {0}, b = {0}, c = {0};

    (void)state;
    assert_int_equal(generate(m, &s, text, 1, 4, 12, keep, &a, &e), 0);
    assert_int_equal(generate(m, &s, text, 1, 4, 12, keep, &b, &e), 0);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(a.n[0], 12);
    assert_memory_not_equal(a.id[0], a.id[1], 12 * sizeof(int32_t));
    s.seed = 4;
    assert_int_equal(generate(m, &s, text, 1, 4, 12, keep, &c, &e), 0);
    assert_memory_not_equal(a.id[0], c.id[0], 12 * sizeof(int32_t));
    s.seed = 3;
    s.eod = a.id[0][2]; /* a sample ends with it */
    memset(&b, 0, sizeof b);
    assert_int_equal(generate(m, &s, text, 1, 4, 12, keep, &b, &e), 0);
    assert_true(b.n[0] <= 3 && b.id[0][b.n[0] - 1] == s.eod);
    assert_int_equal(generate(m, &s, text, 1, 4, 14, keep, &c, &e), ERR_ARG);
    model_close(m);
}

/* A choice of the test below. */
struct ranked {
    float logit;
    int32_t id;
};

static int32_t draw(const struct sampling *s, const float *logits, int64_t n, double u)
{
    void *room = malloc(sampling_room(n));
    int32_t id = sampling_draw(s, logits, n, u, room, &e);

    free(room);
    return id;
}

static int likeliest_first(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;

    return a->logit != b->logit ? (a->logit < b->logit) - (a->logit > b->logit) : a->id - b->id;
}

/* Of many logits, negative ones and zeros of both signs too, some of them equal: the id at which the sum of probabilities, the
 * likeliest first, passes u. */
static void samples_by_the_order_of_logits(void **state)
{
    enum { N = 3000 };
    static float l[N];
    static struct ranked r[N];
    struct sampling s = {.temperature = 0.7, .top_p = 1};

    (void)state;
    for (int i = 0; i < N; i++) {
        r[i].id = i;
        r[i].logit = l[i] = (float)((int)((uint32_t)i * 2654435761u >> 20) - 2048) / (i % 3 ? 512.0f : -700.0f);
    }
    r[5].logit = l[5] = -0.0f;
    r[4].logit = l[4] = r[6].logit = l[6] = 0;
    qsort(r, N, sizeof *r, likeliest_first);
    for (int k = 0; k < 40; k++) {
        double u = (k + 0.5) / 40, sum = 0, at = 0;
        int i = 0;

        s.top_k = k % 2 ? 700 : 0;
        for (int j = 0; j < (s.top_k ? s.top_k : N); j++)
            sum += exp((r[j].logit - r[0].logit) / s.temperature);
        while ((at += exp((r[i].logit - r[0].logit) / s.temperature)) <= u * sum)
            i++;
        assert_int_equal(draw(&s, l, N, u), r[i].id);
    }
}

/* What RepetitionPenaltyLogitsProcessor of transformers 5.23 makes of the same logits for the ids 0, 1, 3 and 3 again. */
static void repetition_costs_what_it_costs_in_transformers(void **state)
{
    static const bool seen[6] = {true, true, false, true, false, false};
    static const float want[6] = {1.9230769872665405f, -1.625f, 3, 0, -4, 0.699999988079071f};
    float l[6] = {2.5f, -1.25f, 3, 0, -4, 0.7f}, same[6];
    struct sampling s = {.penalty = 1};

    (void)state;
    memcpy(same, l, sizeof l);
    sampling_penalize(&s, seen, l, 6);
    assert_memory_equal(l, same, sizeof l);
    s.penalty = 1.3;
    sampling_penalize(&s, seen, l, 6);
    for (int i = 0; i < 6; i++)
        assert_float_equal(l[i], want[i], 1e-6);
}

static void sampling_cuts_as_told(void **state)
{
    static const float given[5] = {0, 2, 1, 3, 2};
    struct sampling s = {.temperature = 0, .top_p = 1};
    float l[5];

    (void)state;
    memcpy(l, given, sizeof l);
    assert_int_equal(draw(&s, l, 5, 0.99), 3);
    s.temperature = 1;
    s.top_k = 1;
    assert_int_equal(draw(&s, l, 5, 0.99), 3);
    s.top_k = 2;
    assert_int_equal(draw(&s, l, 5, 0.99), 1); /* of equals the lower id */
    /* e^3, e^2, e^2, e^1, 1 of 38.6: cumulated .521, .712, .904, .974 */
    s.top_k = 0;
    assert_int_equal(draw(&s, l, 5, 0.5), 3);
    assert_int_equal(draw(&s, l, 5, 0.6), 1);
    assert_int_equal(draw(&s, l, 5, 0.9), 4);
    assert_int_equal(draw(&s, l, 5, 0.95), 2);
    assert_int_equal(draw(&s, l, 5, 0.9999), 0);
    s.top_p = 0.6;
    assert_int_equal(draw(&s, l, 5, 0.9999), 1);
    s.top_p = 0;
    assert_int_equal(draw(&s, l, 5, 0.9999), 3);
    l[2] = NAN;
    assert_int_equal(draw(&s, l, 5, 0.5), ERR_LIMIT);
}

/* Data for each part apart: the same as one dataset without a split. */
static void parts_can_have_data_of_their_own(void **state)
{
    int64_t wanted[GPT_SPLITS] = {8, -1, 0};
    struct train_config one, own;
    struct opt_list list = {0};
    struct data *d;
    int32_t a[16], b[16], targets[16];
    const struct data_rows first = {a, targets, NULL}, second = {b, targets, NULL};

    (void)state;
    config(&one, (const char *const[]){"split=1,0,0", NULL});
    assert_int_equal(data_open(&d, &one, wanted, &e), 0);
    assert_int_equal(data_batch(d, GPT_TRAIN, 3, 1, &first, &e), 0);
    assert_int_equal(data_size(d, GPT_VALID), 0);
    assert_int_equal(data_batch(d, GPT_VALID, 0, 1, &second, &e), ERR_ARG);
    data_close(d);
    config(&own, (const char *const[]){NULL});
    own.part_path[GPT_TRAIN] = own.part_path[GPT_VALID] = own.data_path;
    own.data_path = list;
    assert_int_equal(data_open(&d, &own, wanted, &e), 0);
    assert_int_equal(data_batch(d, GPT_TRAIN, 3, 1, &second, &e), 0);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(data_size(d, GPT_VALID), (1380 - 1) / 16); /* one epoch of 15 + .. + 54 tokens */
    data_close(d);
    own.part_path[GPT_VALID] = list;
    train_config_free(&own);
    train_config_free(&one);
}

/* Three sets to validate with: each has its own loss, and the step's is their mean. */
static void validation_on_several_sets(void **state)
{
    struct train_config own;
    struct trainer *t;
    struct record r = {0};
    enum train_end how;
    struct opt_list none = {0};

    (void)state;
    config(&own, (const char *const[]){"train-iters=6", NULL});
    own.part_path[GPT_TRAIN] = own.data_path;
    own.part_path[GPT_VALID] = (struct opt_list){(const char *[]){prefix, prefix, prefix}, 3};
    own.data_path = none;
    own.valid_sets = true;
    assert_int_equal(trainer_open(&t, &own, dev, group, &e), 0);
    assert_int_equal(data_valid_sets(t->data), 3);
    assert_string_equal(data_valid_name(t->data, 2), prefix);
    assert_int_equal(trainer_run(t, &r.stop, on_step, &r, &how, &e), 0);
    assert_true(t->valid[0] > 0 && t->valid[0] == t->valid[1] && t->valid[1] == t->valid[2]);
    assert_true(fabs(r.step[5].valid_loss - t->valid[0]) < 1e-12 && isnan(r.step[4].valid_loss));
    trainer_close(t);
    own.part_path[GPT_VALID] = none;
    train_config_free(&own);
}

/* The record that tensorboardX 2.6 writes for file version 2 at time 0, and scalars read back. */
static void tensorboard_records(void **state)
{
    /* length 24; event: 1 double 0, 3 "brain.Event:2" */
    static const char event[] = "\x09\0\0\0\0\0\0\0\0\x1a\x0d" "brain.Event:2";
    struct buf b = {0};

    (void)state;
    assert_int_equal(tensorboard_record(&b, (struct span){event, 24}), 0);
    assert_int_equal(b.n, 8 + 4 + 24 + 4);
    assert_memory_equal(b.p, "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12); /* as every event file begins */
    buf_free(&b);
}

/* The loss of 5 samples in batches of 2 is that of each alone. */
static void evaluation_takes_a_last_batch_that_is_not_full(void **state)
{
    struct model *two = restored(MODEL_EVAL, DTYPE_F32, 2, 16), *one = restored(MODEL_EVAL, DTYPE_F32, 1, 16);
    int64_t wanted[GPT_SPLITS] = {0, 5, 0};
    struct train_config c;
    struct data *d;
    double sum = 0, loss, tokens;

    (void)state;
    config(&c, (const char *const[]){NULL});
    assert_int_equal(data_open(&d, &c, wanted, &e), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(evaluate(one, NULL, d, GPT_VALID, i, 1, &loss, &tokens, &e), 0);
        sum += loss;
    }
    assert_int_equal(evaluate(two, NULL, d, GPT_VALID, 0, 5, &loss, &tokens, &e), 0);
    assert_true(tokens == 5 * 16);
    assert_true(fabs(loss - sum / 5) < 1e-6);
    data_close(d);
    train_config_free(&c);
    model_close(two);
    model_close(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_gives_the_same_bits),
        cmocka_unit_test(resume_gives_the_same_bits_in_bf16),
        cmocka_unit_test(resume_gives_the_same_bits_recomputed),
        cmocka_unit_test(resume_gives_the_same_bits_with_state_on_the_host),
        cmocka_unit_test(a_llama_resumes_with_the_same_bits),
        cmocka_unit_test(a_llama_generates_through_its_cache),
        cmocka_unit_test(recomputation_gives_the_same_bits),
        cmocka_unit_test(a_ramp_resumes_with_the_same_bits),
        cmocka_unit_test(skipped_steps_resume_with_the_same_bits),
        cmocka_unit_test(the_guard_judges),
        cmocka_unit_test(a_spike_rolls_back),
        cmocka_unit_test(bad_steps_have_a_bound),
        cmocka_unit_test(validation_on_several_sets),
        cmocka_unit_test(tensorboard_records),
        cmocka_unit_test(micro_batches_only_round),
        cmocka_unit_test(threads_only_round),
        cmocka_unit_test(a_loss_that_is_not_finite_names_the_batch),
        cmocka_unit_test(exit_interval_saves_and_leaves),
        cmocka_unit_test(another_shape_is_refused_by_name),
        cmocka_unit_test(a_vocabulary_too_small_names_the_sample),
        cmocka_unit_test(cached_logits_equal_a_full_pass),
        cmocka_unit_test(generation_is_reproducible),
        cmocka_unit_test(samples_by_the_order_of_logits),
        cmocka_unit_test(repetition_costs_what_it_costs_in_transformers),
        cmocka_unit_test(sampling_cuts_as_told),
        cmocka_unit_test(parts_can_have_data_of_their_own),
        cmocka_unit_test(evaluation_takes_a_last_batch_that_is_not_full),
    };

    return cmocka_run_group_tests_name("trainer", tests, start, end);
}
