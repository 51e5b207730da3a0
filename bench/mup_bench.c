/* Whether the stream and the logits keep their size while models get wider (the coordinate check of Tensor Programs V,
 * arXiv:2203.03466, appendix D): means of |x| behind each layer and of the logits, over widths and steps, with --use-mup and
 * without; a table for docs/training.md on standard output.
 *
 *     build/bench/mup_bench [SEEDS [FLAG=VALUE...]]
 *
 * A model of 4 layers and heads of 32, AdamW at a constant rate of 0.01 on random tokens, in fp32 on the CPU; the base has
 * width 64. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "train/trainer.h"

enum { LAYERS = 4, STEPS = 5, SEQ = 32, BATCH = 8, VOCAB = 256, SIZES = LAYERS + 1 };
static const int widths[] = {64, 128, 256, 512, 1024};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* [step][layer, or the logits behind them] */
struct sizes {
    double v[STEPS + 1][SIZES];
};

struct probe {
    struct trainer *t;
    struct sizes *sizes;
    int32_t tokens[BATCH * SEQ], targets[BATCH * SEQ];
    struct err e;
    int rc;
};

static double mean_abs(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += fabs((double)x[i]);
    return sum / (double)n;
}

/* Forward of the same tokens always, with the weights at hand. */
static int look(struct probe *p, int64_t step)
{
    struct model *m = p->t->parts->model;
    const struct model_batch batch = {.tokens = p->tokens, .targets = p->targets};
    double *v = p->sizes->v[step], loss;
    size_t n = BATCH * SEQ;

    TRY(model_take(m, &batch, &p->e));
    TRY(model_forward(m, &batch, &loss, &p->e));
    for (int i = 0; i < LAYERS; i++)
        v[i] += mean_abs(i + 1 < LAYERS ? m->slot->layers[i + 1].norm[0].s : m->slot->final.s, n * (size_t)m->config.hidden);
    v[LAYERS] += mean_abs(m->head.logits, n * VOCAB);
    return 0;
}

static void on_step(void *arg, const struct train_step *s)
{
    struct probe *p = arg;

    if (p->rc == 0)
        p->rc = look(p, s->step);
}

static int set_up(struct train_config *c, int width, bool mup, int seed, char **flags, struct err *e)
{
    const struct opt none[] = {OPT_END};
    char hidden[32], heads[32], seeds[32];
    const char *const all[][2] = {
        {"num-layers", "4"}, {"hidden-size", hidden}, {"num-attention-heads", heads}, {"seq-length", "32"},
        {"vocab-size", "256"}, {"micro-batch-size", "8"}, {"global-batch-size", "8"}, {"train-iters", "5"}, {"lr", "0.01"},
        {"lr-decay-style", "constant"}, {"mock-data", "true"}, {"eval-iters", "0"}, {"hidden-dropout", "0"},
        {"attention-dropout", "0"}, {"weight-decay", "0"}, {"seed", seeds}, {"use-mup", mup ? "true" : "false"},
        {"mup-base-hidden-size", mup ? "64" : "0"}, {"mup-base-head-dim", mup ? "32" : "0"},
    };
    struct opt *opts;
    int rc = 0;

    snprintf(hidden, sizeof hidden, "%d", width);
    snprintf(heads, sizeof heads, "%d", width / 32);
    snprintf(seeds, sizeof seeds, "%d", seed);
    train_config_init(c);
    opts = train_config_options(c, none);
    if (!opts)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < sizeof all / sizeof *all; i++)
        rc = opt_set(opts, all[i][0], all[i][1], e);
    for (; rc == 0 && *flags; flags++) {
        char name[64];
        const char *eq = strchr(*flags, '=');

        snprintf(name, sizeof name, "%.*s", eq ? (int)(eq - *flags) : 63, *flags);
        rc = opt_set(opts, name, eq ? eq + 1 : "true", e);
    }
    free(opts);
    return rc < 0 ? rc : train_config_check(c, e);
}

/* Adds one run's. */
static int train(struct sizes *sizes, struct train_config *c, struct device *dev, struct comm *world, struct err *e)
{
    struct probe p = {.sizes = sizes};
    volatile sig_atomic_t stop = 0;
    enum train_end end;
    uint32_t x = 1;
    int rc;

    for (int i = 0; i < BATCH * SEQ; i++) {
        x = x * 1664525u + 1013904223u;
        p.tokens[i] = (int32_t)(x >> 24);
        p.targets[i] = (int32_t)(x >> 16 & 255);
    }
    TRY(trainer_open(&p.t, c, dev, world, e));
    rc = look(&p, 0);
    if (rc == 0)
        rc = trainer_run(p.t, &stop, on_step, &p, &end, e);
    trainer_close(p.t);
    if (p.rc < 0)
        *e = p.e;
    return rc < 0 ? rc : p.rc;
}

static void print(const struct sizes sizes[2][WIDTHS], int seeds)
{
    printf("| | step |");
    for (int w = 0; w < WIDTHS; w++)
        printf(" %d |", widths[w]);
    for (int w = 0; w < WIDTHS; w++)
        printf(" muP %d |", widths[w]);
    printf("\n|---|---|");
    for (int w = 0; w < 2 * WIDTHS; w++)
        printf("---|");
    printf("\n");
    for (int i = 0; i < SIZES; i++)
        for (int s = 0; s <= STEPS; s++) {
            if (i < LAYERS)
                printf("| layer %d | %d |", i, s);
            else
                printf("| logits | %d |", s);
            for (int k = 0; k < 2 * WIDTHS; k++)
                printf(" %.3g |", sizes[k / WIDTHS][k % WIDTHS].v[s][i] / seeds);
            printf("\n");
        }
}

int main(int argc, char **argv)
{
    static struct sizes sizes[2][WIDTHS];
    int seeds = argc > 1 ? atoi(argv[1]) : 3;
    struct device *dev;
    struct comm *world;
    struct err e;
    int rc = 0;

    log_init("mup_bench", LOG_ERROR);
    if (device_open(&dev, "cpu", 0, &e) < 0 || comm_open_self(&world, &e) < 0)
        rc = e.code;
    for (int k = 0; rc == 0 && k < 2 * WIDTHS * seeds; k++) {
        struct train_config c;

        rc = set_up(&c, widths[k / seeds % WIDTHS], k / seeds / WIDTHS, 1 + k % seeds, argc > 2 ? argv + 2 : argv + argc, &e);
        if (rc == 0)
            rc = train(&sizes[k / seeds / WIDTHS][k / seeds % WIDTHS], &c, dev, world, &e);
        train_config_free(&c);
    }
    if (rc < 0) {
        fprintf(stderr, "mup_bench: %s\n", e.msg);
        return 3;
    }
    print(sizes, seeds);
    comm_close(world);
    device_close(dev);
    return 0;
}
