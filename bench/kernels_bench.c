/* bench/kernels_bench.c -- each op at the shapes of GPT-2 124M (B = 4, T = 256), and what a
 * training step made of them would take.  Prints "name TAB value TAB unit TAB note".
 *
 *     kernels_bench [threads [seconds per op [cpu|wall [NAME]]]]
 *
 * NAME: those ops alone that have it in theirs.
 * The median of repeated runs, by the clock on the wall; with "cpu" by the processor time
 * of all threads divided by their number, which a busy machine disturbs less (and which
 * needs OMP_WAIT_POLICY=passive, or waiting counts as work).  Bytes are those that an op must move: inputs once, outputs
 * once.  The floor for GB/s is the copy of large blocks, measured in the same run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/measure.h"
#include "kernels/device.h"
#include "kernels/eight_bit.h"

enum { B = 4, T = 256, ROWS = B * T, C = 768, H = 12, D = 64, L = 12, V = 50257, VP = 50304 };
enum { PARAMS = VP * C + 1024 * C + L * (12 * C * C + 13 * C) + 2 * C };
enum { SUMSQ_BLOCK = 512 };

struct bench {
    struct device *dev;
    enum dtype dt;
    double seconds; /* to spend on one op */
    double peak, copy;
    double step;    /* the step's sum so far */
    char *mem[5];   /* big blocks */
    float *small;
    int32_t *ids;
    const char *only;
    struct err err;
};

static clockid_t clock_id = CLOCK_MONOTONIC;
static double clock_share = 1;

static double now(void)
{
    struct timespec t;

    clock_gettime(clock_id, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) * clock_share;
}

/* Median time of run(b). */
static double measure(struct bench *b, int (*run)(struct bench *))
{
    double t[1000], start = now();
    int n = 0;

    if (run(b) < 0) {
        fprintf(stderr, "kernels_bench: %s\n", b->err.msg);
        exit(3);
    }
    while (n < 3 || (n < 1000 && now() - start < b->seconds)) {
        double s = now();

        run(b);
        t[n++] = now() - s;
    }
    return median(t, (size_t)n);
}

/* One line: an op that does flops and moves bytes, count times a step (0: none of it). */
static void report(struct bench *b, const char *name, int (*run)(struct bench *), double flops,
                   double bytes, int count)
{
    char full[96];
    bool product = flops > 0;
    double t;

    snprintf(full, sizeof full, "%s.%s", dtype_name(b->dt), name);
    if (b->only && !strstr(full, b->only))
        return;
    t = measure(b, run);
    b->step += t * count;
    printf("%s\t%.4g\t%s\t%.3f ms, %.0f %% of %s, %d a step\n", full,
           product ? flops / t * 1e-9 : bytes / t * 1e-9, product ? "GF/s" : "GB/s", t * 1e3,
           product ? 100 * flops / t / b->peak : 100 * bytes / t / b->copy,
           product ? "the measured peak" : "a copy", count);
    fflush(stdout);
}

static struct matmul mm; /* the product to run */

static int run_matmul(struct bench *b) { return b->dev->ops->matmul(b->dev, &mm, &b->err); }

/* The three products of a layer. */
static void layer(struct bench *b, const char *name, int64_t in, int64_t out, int count)
{
    double flops = 2.0 * ROWS * (double)in * (double)out;
    char label[64];

    mm = (struct matmul){.m = ROWS, .n = out, .k = in, .trans_b = true, .dt = b->dt, .dt_c = b->dt,
                         .a = b->mem[0], .b = b->mem[1], .c = b->mem[2],
                         .bias = count > 1 ? b->mem[3] : NULL};
    snprintf(label, sizeof label, "matmul.%s.forward", name);
    report(b, label, run_matmul, flops, 0, count);
    mm = (struct matmul){.m = ROWS, .n = in, .k = out, .dt = b->dt, .dt_c = b->dt,
                         .a = b->mem[2], .b = b->mem[1], .c = b->mem[0]};
    snprintf(label, sizeof label, "matmul.%s.input", name);
    report(b, label, run_matmul, flops, 0, count);
    mm = (struct matmul){.m = out, .n = in, .k = ROWS, .trans_a = true, .dt = b->dt,
                         .dt_c = DTYPE_F32, .a = b->mem[2], .b = b->mem[0], .c = b->mem[4],
                         .beta = 1};
    snprintf(label, sizeof label, "matmul.%s.weight", name);
    report(b, label, run_matmul, flops, 0, count);
}

static struct dropout drop = {.p = 0.1f, .key = 1, .stream = 2};
static bool with_dropout;

static int run_norm_fwd(struct bench *b)
{
    struct norm_fwd p = {.t = ROWS, .c = C, .eps = 1e-5f, .x = b->mem[0], .residual = b->mem[1],
                         .gamma = b->mem[3], .beta = b->mem[3], .s = b->mem[2],
                         .y = b->mem[4], .mean = b->small, .rstd = b->small + ROWS,
                         .drop = with_dropout ? &drop : NULL};
    return b->dev->ops->layernorm_fwd(b->dev, b->dt, &p, &b->err);
}
static int run_norm_bwd(struct bench *b)
{
    struct norm_bwd p = {.t = ROWS, .c = C, .dy = b->mem[0], .dres = b->mem[1], .s = b->mem[2],
                         .mean = b->small, .rstd = b->small + ROWS, .gamma = b->mem[3],
                         .ds = b->mem[1], .dx = with_dropout ? b->mem[4] : NULL,
                         .drop = with_dropout ? &drop : NULL, .dgamma = b->small + 2 * ROWS,
                         .dbeta = b->small + 2 * ROWS + C};
    return b->dev->ops->layernorm_bwd(b->dev, b->dt, &p, &b->err);
}
static int run_act_fwd(struct bench *b)
{
    return b->dev->ops->act_fwd(b->dev, b->dt, ACT_GELU_TANH, b->mem[1], b->mem[0],
                                (int64_t)ROWS * 4 * C, &b->err);
}
static int run_act_bwd(struct bench *b)
{
    return b->dev->ops->act_bwd(b->dev, b->dt, ACT_GELU_TANH, b->mem[1], b->mem[1], b->mem[0],
                                (int64_t)ROWS * 4 * C, &b->err);
}
static int run_colsum(struct bench *b)
{
    return b->dev->ops->vec_colsum(b->dev, b->dt, b->small, b->mem[0], ROWS, 3 * C, 3 * C,
                                   &b->err);
}
/* Sequences of ROWS, or one of more; all of it or documents of 200 on average. */
static int64_t tokens = T;
static const int32_t *documents;
static struct attention attention_args(struct bench *b)
{
    size_t w = dtype_size(b->dt);
    int64_t row = 3 * C, t = tokens;
    struct attention p = {.b = t < ROWS ? ROWS / t : 1, .t = t, .heads = H, .kv_heads = H, .d = D, .t_kv = t, .start = documents,
                          .scale = 0.125f, .drop = with_dropout ? &drop : NULL, .lse = b->small};

    p.q = (struct attention_view){b->mem[0], t * row, row};
    p.k = (struct attention_view){b->mem[0] + C * w, t * row, row};
    p.v = (struct attention_view){b->mem[0] + 2 * C * w, t * row, row};
    p.o = (struct attention_view){b->mem[1], t * C, C};
    return p;
}
static int run_attention_fwd(struct bench *b)
{
    struct attention p = attention_args(b);

    return b->dev->ops->attention_fwd(b->dev, b->dt, &p, &b->err);
}
static int run_attention_bwd(struct bench *b)
{
    struct attention p = attention_args(b);
    size_t w = dtype_size(b->dt);
    int64_t row = 3 * C;
    struct attention_view g[3], dout = {b->mem[2], p.t * C, C};

    for (size_t i = 0; i < 3; i++)
        g[i] = (struct attention_view){b->mem[4] + i * C * w, p.t * row, row};
    return b->dev->ops->attention_bwd(b->dev, b->dt, &p, dout, g[0], g[1], g[2], &b->err);
}
static int run_xent(struct bench *b)
{
    struct xent p = {.t = ROWS, .v = V, .ld = VP, .logits = b->mem[0], .target = b->ids,
                     .scale = b->small};
    return b->dev->ops->xent(b->dev, b->dt, &p, b->small + ROWS, &b->err);
}
static int run_embedding_fwd(struct bench *b)
{
    struct embedding p = {.t = ROWS, .c = C, .token = b->ids, .pos = b->ids + ROWS, .n_vocab = VP,
                          .n_pos = 1024};
    return b->dev->ops->embedding_fwd(b->dev, b->dt, b->mem[0], &p, b->mem[1], b->mem[2], &b->err);
}
static int run_embedding_bwd(struct bench *b)
{
    struct embedding p = {.t = ROWS, .c = C, .token = b->ids, .pos = b->ids + ROWS, .n_vocab = VP,
                          .n_pos = 1024};
    return b->dev->ops->embedding_bwd(b->dev, b->dt, (float *)b->mem[1], (float *)b->mem[2], &p,
                                      b->mem[0], &b->err);
}
static int run_adamw(struct bench *b)
{
    const struct update p = {.step = 10, .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
                            .weight_decay = 0.1};
    return b->dev->ops->update(b->dev, &p, (float *)b->mem[0], (float *)b->mem[1],
                              (float *)b->mem[2], (float *)b->mem[3],
                              b->dt == DTYPE_BF16 ? (uint16_t *)b->mem[4] : NULL, PARAMS,
                              &b->err);
}
/* The scales behind the codes. */
static int run_adamw_eight_bits(struct bench *b)
{
    size_t codes = (size_t)eight_bit_blocks(PARAMS) * EIGHT_BIT_BLOCK;
    const struct update p = {
        .step = 10, .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .m_type = DTYPE_8BIT,
        .v_type = DTYPE_8BIT, .m_scale = (float *)(b->mem[1] + codes), .v_scale = (float *)(b->mem[2] + codes),
    };
    return b->dev->ops->update(b->dev, &p, (float *)b->mem[0], b->mem[1], b->mem[2], (float *)b->mem[3], NULL, PARAMS, &b->err);
}
static int run_factored(struct bench *b)
{
    const struct factored p = {VP, C, 0.1, 1e-7};
    return b->dev->ops->factored(b->dev, &p, (float *)b->mem[3], (float *)b->mem[1], (float *)b->mem[2], &b->err);
}
static int run_sumsq(struct bench *b)
{
    return b->dev->ops->vec_sumsq(b->dev, DTYPE_F32, (double *)b->mem[4], SUMSQ_BLOCK, b->mem[3], PARAMS, &b->err);
}
static int run_zero(struct bench *b)
{
    return device_zero(b->dev, b->mem[3], (size_t)PARAMS * 4, &b->err);
}
static int run_copy(struct bench *b)
{
    return device_copy(b->dev, b->mem[0], b->mem[1], (size_t)400 << 20, &b->err);
}

static void fill(struct bench *b)
{
    for (int m = 0; m < 5; m++)
        for (size_t i = 0; i < (size_t)PARAMS; i++) {
            float x = (float)((i * 2654435761u >> 8) % 1000) * 1e-3f - 0.5f;
            if (b->dt == DTYPE_F32 || i >= (size_t)PARAMS / 2)
                ((float *)b->mem[m])[i] = x;
            else
                ((uint32_t *)b->mem[m])[i] = bf16_of(x) * 0x10001u;
        }
    for (int i = 0; i < 4 * ROWS; i++)
        b->small[i] = 0.5f;
    for (int i = 0; i < ROWS; i++) {
        b->ids[i] = (int32_t)((uint32_t)i * 2654435761u % V);
        b->ids[ROWS + i] = i % T;
    }
}

/* Attention over t tokens in one sequence: GF/s as if all were one document. */
static void long_attention(struct bench *b, int64_t t, const char *kind)
{
    double f = 4.0 * H * (double)t * (double)t * D / 2;
    char name[64];

    tokens = t;
    snprintf(name, sizeof name, "T%lld.%sattention_fwd", (long long)t, kind);
    report(b, name, run_attention_fwd, f, 0, 0);
    snprintf(name, sizeof name, "T%lld.%sattention_bwd", (long long)t, kind);
    report(b, name, run_attention_bwd, 2.5 * f, 0, 0);
    tokens = T;
}

/* The same of documents. */
static void attention_of_documents(struct bench *b)
{
    static int32_t start[ROWS];

    for (int i = 1, left = 120; i < ROWS; i++) {
        start[i] = --left > 0 ? start[i - 1] : i;
        left = left > 0 ? left : 20 + (int)((uint32_t)i * 2654435761u >> 8) % 361;
    }
    documents = start;
    long_attention(b, ROWS, "documents.");
    documents = NULL;
}

static void run_type(struct bench *b)
{
    double w = (double)dtype_size(b->dt), act = w * ROWS * C, f = 4.0 * B * H * T * T * D / 2;
    const char *name = dtype_name(b->dt);

    fill(b);
    b->step = 0;
    mm = (struct matmul){.m = 1024, .n = 3072, .k = 1024, .trans_b = true, .dt = b->dt,
                         .dt_c = b->dt, .a = b->mem[0], .b = b->mem[1], .c = b->mem[2]};
    b->peak = 2.0 * 1024 * 3072 * 1024 / measure(b, run_matmul);
    printf("%s.peak\t%.4g\tGF/s\tproduct of 1024 x 3072 x 1024\n", name, b->peak * 1e-9);
    layer(b, "qkv", C, 3 * C, L);
    layer(b, "proj", C, C, L);
    layer(b, "fc", C, 4 * C, L);
    layer(b, "fcproj", 4 * C, C, L);
    layer(b, "head", C, VP, 1);
    if (!b->only)
        printf("%s.matmul.step\t%.4g\tms\tall products of a step\n", name, b->step * 1e3);
    fill(b);
    report(b, "layernorm_fwd", run_norm_fwd, 0, 4 * act, 2 * L + 1);
    report(b, "layernorm_bwd", run_norm_bwd, 0, 4 * act, 2 * L + 1);
    report(b, "gelu_fwd", run_act_fwd, 0, 8 * act, L);
    report(b, "gelu_bwd", run_act_bwd, 0, 12 * act, L);
    report(b, "bias_bwd", run_colsum, 0, 3 * act, 3 * L); /* 9 C of them a layer */
    report(b, "attention_fwd", run_attention_fwd, f, 0, L);
    report(b, "attention_bwd", run_attention_bwd, 2.5 * f, 0, L);
    fill(b);
    report(b, "xent", run_xent, 0, 2 * w * ROWS * VP, 1);
    report(b, "embedding_fwd", run_embedding_fwd, 0, 2 * act, 1);
    report(b, "embedding_bwd", run_embedding_bwd, 0, act + 8.0 * ROWS * C, 1);
    report(b, "adamw", run_adamw, 0, (28.0 + (w == 2 ? 2 : 0)) * PARAMS, 1);
    report(b, "sumsq", run_sumsq, 0, 4.0 * PARAMS, 1);
    report(b, "zero_gradients", run_zero, 0, 4.0 * PARAMS, 1);
    if (!b->only)
        printf("%s.step\t%.4g\tms\tthe sum of all of the above, GPT-2 124M, B = 4, T = 256\n", name, b->step * 1e3);
    if (b->dt == DTYPE_F32) {
        report(b, "adamw_eight_bits", run_adamw_eight_bits, 0, 16.0 * PARAMS, 1);
        fill(b);
        report(b, "factored", run_factored, 0, 12.0 * VP * C, 1);
        fill(b);
    }
    with_dropout = true;
    report(b, "dropout.layernorm_fwd", run_norm_fwd, 0, 4 * act, 2 * L + 1);
    report(b, "dropout.layernorm_bwd", run_norm_bwd, 0, 5 * act, 2 * L + 1);
    report(b, "dropout.attention_fwd", run_attention_fwd, f, 0, L);
    report(b, "dropout.attention_bwd", run_attention_bwd, 2.5 * f, 0, L);
    with_dropout = false;
    long_attention(b, ROWS, "");
    long_attention(b, 4 * ROWS, "");
    attention_of_documents(b);
}

int main(int argc, char **argv)
{
    struct bench b = {.seconds = argc > 2 ? atof(argv[2]) : 0.3};
    double t;

    b.only = argc > 4 ? argv[4] : NULL;
    if (device_open(&b.dev, "cpu", argc > 1 ? atoi(argv[1]) : 0, &b.err) < 0)
        goto fail;
    if (argc > 3 && strcmp(argv[3], "cpu") == 0) {
        clock_id = CLOCK_PROCESS_CPUTIME_ID;
        clock_share = 1.0 / b.dev->threads;
    }
    for (int i = 0; i < 5; i++)
        if (device_alloc(b.dev, (void **)&b.mem[i], (size_t)PARAMS * 4, &b.err) < 0)
            goto fail;
    b.small = calloc(4 * ROWS * H + 8 * C, sizeof *b.small);
    b.ids = calloc(2 * ROWS, sizeof *b.ids);
    if (!b.small || !b.ids)
        goto fail;
    fprintf(stderr, "%s\n", b.dev->name);
    fill(&b);
    t = measure(&b, run_copy);
    b.copy = 2.0 * (400 << 20) / t;
    printf("copy\t%.4g\tGB/s\tread and write, blocks of 400 MiB\n", b.copy * 1e-9);
    for (b.dt = DTYPE_F32; b.dt <= DTYPE_BF16; b.dt++)
        run_type(&b);
    for (int i = 0; i < 5; i++)
        device_free(b.dev, b.mem[i]);
    free(b.small);
    free(b.ids);
    device_close(b.dev);
    return 0;
fail:
    fprintf(stderr, "kernels_bench: %s\n", b.err.code ? b.err.msg : "out of memory");
    return 3;
}
