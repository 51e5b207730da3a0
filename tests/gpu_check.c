/* Runs every op of the CUDA backend against its CPU twin, on the GPU, and trains small models on both.  make gpu-check
 *     gpu_check [SCALE [NAME [SECONDS]]]     1: small (default 50); NAME: checks whose names begin so, in this process, "-": all;
 * SECONDS: what is not done by then is left out, and counts as failed
 * A check that fails, kills its process or never ends leaves the others alone (tests/jobs.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/jobs.h"
#include "tests/steps.h"
#include "tests/twins.h"
#include "train/exchange.h"

enum { LIMIT = 180 }; /* seconds for a check */

static struct twins twins = {.scale = 50, .short_sums = true};
static int wrongs; /* of the check under way */

static void say(const char *name, const char *wrong, double start)
{
    wrongs += wrong[0] != 0;
    printf("%s - %s%s%s (%.1f s)\n", wrong[0] ? "not ok" : "ok", name, wrong[0] ? ": " : "", wrong, jobs_clock() - start);
}

/* A line for each comparison of the case under way. */
static const char *case_name;
static void say_found(const struct twins_found *f)
{
    printf("%s - %s: %s%s%lld of %lld wrong, largest %.3g, norm %.3g of the tolerance%s%s%s%s\n", f->why[0] ? "not ok" : "ok",
           case_name, f->what, f->what[0] ? ": " : "", (long long)f->wrong, (long long)f->n, f->most, f->norm,
           f->how[0] ? "; " : "", f->how, f->why[0] ? "; " : "", f->why);
}

/* ---- training ---- */

enum { STEPS = 50, ALIKE = 10 }; /* steps, and how many of them stay together: training is chaotic */
struct curve {
    double loss[STEPS], norm[STEPS];
};

static const char *type_of(enum dtype dt, const struct model_fp8_run *fp8)
{
    if (fp8->recipe == FP8_BLOCKWISE)
        return fp8->fp32_scales ? "FP8 by blocks, fp32 scales" : "FP8 by blocks";
    return fp8->format ? "FP8" : dtype_name(dt);
}

/* deterministic: of the GPU, see struct device.  graphs: its passes are recorded once and launched in one piece. */
static void train(struct device *dev, const struct model_config *config, enum dtype dt, const struct model_fp8_run *fp8,
                  int steps, bool deterministic, bool graphs, struct curve *c, char *wrong)
{
    struct model_run run = {.dt = dt, .use = MODEL_TRAIN, .b = 2, .t = config->seq, .fp8 = *fp8};
    struct train_steps s;
    struct err e;
    int rc;

    dev->deterministic = deterministic;
    rc = steps_open(&s, dev, *config, &run, false, &e);
    s.micro_batches = 2;
    if (rc == 0 && graphs && !model_graph_refuses(s.model))
        model_graph_open(&s.graph, s.model, s.loss);
    for (int i = 0; rc == 0 && i < steps; i++)
        rc = steps_one(&s, &c->loss[i], &c->norm[i], &e);
    if (rc < 0)
        snprintf(wrong, 256, "%.60s: %.150s", dev->name, e.msg);
    steps_close(&s);
    dev->deterministic = false;
}

static double at_the_end(const struct curve *c)
{
    double sum = 0;

    for (int i = STEPS - ALIKE; i < STEPS; i++)
        sum += c->loss[i] / ALIKE;
    return sum;
}

/* How far a run is from the CPU's losses at the first steps; at the last it must have learnt as much.  Of the CPU itself the
 * three instruction sets are 2e-6 apart by step 10 in fp32, 5e-3 in bf16 (with experts 3e-2) and 2e-2 in FP8, later up to 0.14,
 * and up to 0.07 in the mean of the last ten. */
static double farthest(const struct curve *want, const struct curve *got, int steps, double tol, char *wrong)
{
    double most = 0, end = at_the_end(want);

    for (int i = 0; i < steps && i < ALIKE && !wrong[0]; i++) {
        double err = fabs(want->loss[i] - got->loss[i]) / want->loss[i];
        most = err > most ? err : most;
        if (!(err <= tol))
            snprintf(wrong, 256, "step %d: loss %.7f, not %.7f", i + 1, got->loss[i], want->loss[i]);
    }
    if (!wrong[0] && steps == STEPS && !(fabs(at_the_end(got) - end) < 0.15 * end && end < 0.5 * want->loss[0]))
        snprintf(wrong, 256, "the loss went from %.4f to %.4f, not to %.4f", got->loss[0], at_the_end(got), end);
    return most;
}

/* Losses of both devices; then the GPU's deterministic ways, twice and as graphs: the same losses, and the same bits each
 * time. */
static void parity(struct device *cpu, struct device *gpu, const char *name, const struct model_config *config, enum dtype dt,
                   const struct model_fp8_run *fp8, double tol, int steps)
{
    static const char *const how[] = {"", ", deterministic", ", the same bits again", ", the same bits as graphs"};
    struct curve want = {.loss = {0}}, got[4] = {want, want, want, want};
    char on_cpu[256] = "", wrong[256], title[100];
    double start = jobs_clock(), most;

    train(cpu, config, dt, fp8, steps, false, false, &want, on_cpu);
    for (int run = 0; run < 4; run++) {
        memcpy(wrong, on_cpu, sizeof wrong);
        train(gpu, config, dt, fp8, steps, run > 0, run == 3, &got[run], wrong);
        most = farthest(&want, &got[run], steps, tol, wrong);
        if (!wrong[0] && run >= 2 && memcmp(&got[1], &got[run], sizeof got[1]) != 0)
            snprintf(wrong, sizeof wrong, run == 2 ? "a second run gave other bits" : "graphs gave other bits");
        snprintf(title, sizeof title, "%s, %s, %d steps%s: the first within %.1e of the CPU", name,
                 type_of(dt, fp8), steps, how[run], most);
        say(title, wrong, start);
        start = jobs_clock();
    }
}

struct trained {
    const char *name;
    bool llama, dropout;
    int experts;
    enum dtype dt;
    struct model_fp8_run fp8;
    double tol;
};
#define HYBRID {.format = MODEL_FP8_HYBRID, .algo = FP8_LARGEST, .history = 4}
#define E4M3 {.format = MODEL_FP8_E4M3, .algo = FP8_LARGEST, .history = 4}
#define BY_BLOCKS {.format = MODEL_FP8_E4M3, .recipe = FP8_BLOCKWISE}
#define FP32_SCALES {.format = MODEL_FP8_E4M3, .recipe = FP8_BLOCKWISE, .fp32_scales = true}
static const struct trained trained[] = {
    {"GPT", false, true, 0, DTYPE_F32, {0}, 1e-5},
    {"GPT", false, true, 0, DTYPE_BF16, {0}, 2e-2},
    {"GPT without dropout", false, false, 0, DTYPE_BF16, {0}, 2e-2},
    {"Llama", true, false, 0, DTYPE_F32, {0}, 1e-5},
    {"Llama", true, false, 0, DTYPE_BF16, {0}, 2e-2},
    {"GPT without dropout", false, false, 0, DTYPE_BF16, HYBRID, 4e-2},
    {"Llama", true, false, 0, DTYPE_BF16, E4M3, 4e-2},
    {"mixture of experts", true, false, 4, DTYPE_F32, {0}, 1e-2}, /* a choice may fall otherwise */
    {"mixture of experts", true, false, 4, DTYPE_BF16, {0}, 6e-2},
    {"mixture of experts", true, false, 4, DTYPE_BF16, HYBRID, 6e-2},
    {"Llama", true, false, 0, DTYPE_BF16, BY_BLOCKS, 4e-2},
    {"mixture of experts", true, false, 4, DTYPE_BF16, BY_BLOCKS, 6e-2},
    {"Llama", true, false, 0, DTYPE_BF16, FP32_SCALES, 4e-2},
    {"mixture of experts", true, false, 4, DTYPE_BF16, FP32_SCALES, 6e-2},
};

static void train_both(const struct trained *x)
{
    int64_t wide = twins.scale > 1 ? 256 : x->fp8.recipe == FP8_BLOCKWISE ? FP8_BLOCK : 32;
    int64_t heads = wide / 64 ? wide / 64 : 1 + x->llama;
    double drop = x->dropout ? 0.1 : 0;
    struct model_config c = {.layers = 4, .hidden = wide, .heads = heads, .seq = wide, .positions = wide, .vocab = 500,
                             .hidden_dropout = drop, .attention_dropout = drop, .init_std = 0.02};

    if (x->llama) {
        c.groups = wide / 128 ? wide / 128 : 1;
        c.norm = NORM_RMS;
        c.ffn = 3 * wide;
        c.position = POSITION_ROPE;
        c.untie = c.no_bias = true;
        c.mlp = MLP_SWIGLU;
        c.experts = x->experts;
        c.aux_loss = x->experts ? 0.01 : 0;
    }
    parity(twins.cpu, twins.other, x->name, &c, x->dt, &x->fp8, x->tol, twins.scale > 1 ? STEPS : 3);
}

/* ---- NCCL ---- */

/* One call of a group of one rank on the device, where each is a copy: what came must be what went. */
static int nccl_call(struct device *gpu, struct comm *c, enum comm_kind kind, enum dtype dt, size_t n, char *wrong, struct err *e)
{
    size_t bytes = n * dtype_size(dt);
    unsigned char *in = malloc(bytes), *out = calloc(1, bytes);
    void *from = NULL, *to = NULL;
    struct comm_call call = {.kind = kind, .n = n, .type = exchange_type(dt)};
    int rc = in && out ? device_alloc(gpu, &from, bytes, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (size_t i = 0; rc == 0 && i < bytes; i++)
        in[i] = (unsigned char)((i * 2654435761u >> 13) & 0x3f);
    rc = rc ? rc : device_alloc(gpu, &to, bytes, e);
    rc = rc ? rc : device_put(gpu, from, in, bytes, e);
    rc = rc ? rc : device_zero(gpu, to, bytes, e);
    call.send = from;
    call.recv = to;
    rc = rc ? rc : exchange(gpu, c, &call, e);
    rc = rc ? rc : device_get(gpu, out, to, bytes, e);
    if (rc == 0 && memcmp(in, out, bytes) != 0)
        snprintf(wrong, 256, "%s of %zu in '%s' changed what it moved", comm_kind_name(kind), n, c->name);
    device_free(gpu, from);
    device_free(gpu, to);
    free(in);
    free(out);
    return rc;
}

/* A rank needs a GPU of its own, so here there is one: the library, its calls on streams beside the ops, a group split off. */
static void nccl(struct device *gpu)
{
    static const enum comm_kind kinds[] = {COMM_ALL_REDUCE, COMM_REDUCE_SCATTER, COMM_ALL_GATHER, COMM_BROADCAST,
                                           COMM_ALL_TO_ALL};
    struct comm *world = NULL, *part = NULL;
    char wrong[256] = "";
    double start = jobs_clock();
    struct err e;
    int rc = comm_open(&world, "nccl", 60, &e);

    if (rc == ERR_UNSUPPORTED) {
        printf("# NCCL: %s; not checked\n", e.msg);
        return;
    }
    rc = rc ? rc : exchange_use(gpu, world, &e);
    rc = rc ? rc : comm_split(world, 0, 0, "part", &part, &e);
    for (int i = 0; i < 20 && rc == 0 && !wrong[0]; i++)
        rc = nccl_call(gpu, i % 2 ? part : world, kinds[i / 2 % 5], i / 10 ? DTYPE_BF16 : DTYPE_F32, 1 << 20, wrong, &e);
    if (rc < 0)
        snprintf(wrong, sizeof wrong, "%.200s", e.msg);
    comm_close(part);
    comm_close(world);
    say("NCCL, one rank: all collectives, two groups", wrong, start);
}

/* ---- the checks, in order ---- */

enum what { A_CASE, ATTENTION_BY, A_MODEL, BY_NCCL, MEMORY };
static struct check {
    char name[100];
    enum what what;
    const struct twins_case *c;
    int arg;
} checks[100];
static int n_checks;
static const char *const ways[] = {"plain", "own", "cudnn"}; /* what cuDNN should do and does not fails in the last */

static void add(enum what what, const struct twins_case *c, int arg, const char *name, const char *more)
{
    struct check *x = &checks[n_checks++];

    *x = (struct check){.what = what, .c = c, .arg = arg};
    snprintf(x->name, sizeof x->name, "%s%s", name, more);
}

static void list(void)
{
    char more[40];

    for (const struct twins_case *c = twins_cases; c->name; c++)
        add(A_CASE, c, 0, c->name, "");
    for (const struct twins_case *c = train_twins_cases; c->name; c++) {
        add(A_CASE, c, 0, c->name, "");
        for (int i = 0; i < 3 && strcmp(c->name, "attention") == 0; i++)
            add(ATTENTION_BY, c, i, "attention, QUERN_ATTENTION=", ways[i]);
    }
    for (int i = 0; i < (int)(sizeof trained / sizeof *trained); i++) {
        snprintf(more, sizeof more, ", %s", type_of(trained[i].dt, &trained[i].fp8));
        add(A_MODEL, NULL, i, trained[i].name, more);
    }
    add(BY_NCCL, NULL, 0, "NCCL", "");
    add(MEMORY, NULL, 0, "memory of the ops", "");
}

static const char *check_name(int i) { return checks[i].name; }

static int check_run(int i)
{
    const struct check *x = &checks[i];
    double start = jobs_clock();
    char title[200];

    wrongs = 0;
    if (x->what == A_MODEL) {
        train_both(&trained[x->arg]);
    } else if (x->what == BY_NCCL) {
        nccl(twins.other);
    } else if (x->what == MEMORY) {
        printf("# memory of the ops: %.1f MiB\n", (double)device_overhead_bytes(twins.other) / (1 << 20));
    } else {
        if (x->what == ATTENTION_BY)
            setenv("QUERN_ATTENTION", ways[x->arg], 1);
        case_name = x->name;
        twins.wrong[0] = twins.how[0] = '\0';
        twins.compared = twins.failed = 0;
        x->c->run(&twins);
        unsetenv("QUERN_ATTENTION");
        if (strstr(twins.wrong, "no cuDNN")) {
            printf("# %s: no cuDNN; not checked\n", x->name);
            return 0;
        }
        snprintf(title, sizeof title, "%s: %d of %d comparisons failed", x->name, twins.failed, twins.compared);
        say(title, twins.wrong, start);
    }
    return wrongs != 0;
}

static int check_open(void)
{
    struct err e;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (device_open(&twins.other, "cuda", 0, &e) < 0 || device_open(&twins.cpu, "cpu", 0, &e) < 0) {
        printf("not ok - open the GPU: %s\n", e.msg);
        return -1;
    }
    twins.other->how = twins.how;
    twins.found = say_found;
    printf("# %s against %s\n", twins.other->name, twins.cpu->name);
    return 0;
}

static int here(const char *name, struct jobs_result *r)
{
    if (check_open() < 0)
        return -1;
    for (int i = 0; i < n_checks; i++)
        if (strncmp(checks[i].name, name, strlen(name)) == 0)
            *(check_run(i) ? &r->failed : &r->passed) += 1;
    device_close(twins.other);
    device_close(twins.cpu);
    return 0;
}

int main(int argc, char **argv)
{
    struct job_set all = {.name = check_name, .open = check_open, .run = check_run, .dev = &twins.other, .limit = LIMIT};
    struct jobs_result r = {0, 0, 0};
    int rc;

    dup2(STDOUT_FILENO, STDERR_FILENO); /* what the backend notes stands where it belongs */
    twins.scale = argc > 1 ? atoi(argv[1]) : 50;
    list();
    all.n = n_checks;
    all.budget = argc > 3 ? atof(argv[3]) : 0;
    rc = argc > 2 && strcmp(argv[2], "-") != 0 ? here(argv[2], &r) : jobs_run(&all, &r);
    r.failed += rc < 0;
    printf("%d passed, %d failed, %d left out\n", r.passed, r.failed, r.left);
    return rc < 0 ? 2 : r.failed || r.left;
}
