#include "train/plan_ops.h"

#include <stdio.h>
#include <string.h>

/* An op bound by memory: of each element in bf16 (of fp32 twice that) the bytes that have to come from or go to memory, and more
 * for each of k; the share of a copy's rate that it reaches (a product: of what the largest of its type do); the bytes that its
 * kernel accesses on its hot path, caches included, by which kernels/sass.inc says how many instructions that is.  kernel NULL:
 * not counted. */
struct row {
    const char *name;
    double bytes, bytes_k, reach, accessed;
    const char *file, *kernel;
};

/* Shares are those that an H200 measured, of norms and rows at the widths of GPT-2 1.5B and Llama 7B; those called STREAMS were
 * not measured.  Products by blocks have two rows, for cuBLASLt's kernels of either kind reach other shares. */
#define STREAMS 0.8
static const struct row rows[PLAN_OPS] = {
    [PLAN_COPY] = {"copy", 2, 0, 1, 0, NULL, NULL},
    [PLAN_PRODUCT] = {"product", 0, 0, 1, 0, NULL, NULL},
    [PLAN_PRODUCT_FP8] = {"product in FP8", 0, 0, 1, 0, NULL, NULL},
    [PLAN_PRODUCT_BLOCKS] = {"product in FP8 by blocks", 0, 0, 0.88, 0, NULL, NULL},
    [PLAN_WEIGHT_BLOCKS] = {"weight gradient, blocks", 0, 0, 0.68, 0, NULL, NULL},
    [PLAN_ATTENTION] = {"attention", 0, 0, 1, 0, NULL, NULL},
    [PLAN_ATTENTION_BACK] = {"attention backward", 0, 0, 1, 0, NULL, NULL},
    [PLAN_NORM] = {"layer norm", 8, 0, 0.81, 12, "norm.cu", "row_kernel<false, false, 8>"},
    [PLAN_NORM_BACK] = {"layer norm backward", 8, 0, 0.68, 8, "norm.cu", "bwd_kernel<bf16, false, 1, false>"},
    [PLAN_RMS] = {"RMS norm", 8, 0, 0.76, 10, "norm.cu", "row_kernel<true, false, 8>"},
    [PLAN_RMS_BACK] = {"RMS norm backward", 8, 0, 0.82, 8, "norm.cu", "bwd_kernel<bf16, true, 1, false>"},
    [PLAN_ROPE] = {"rotary positions", 4, 0, STREAMS, 8, "embedding.cu", "rope_kernel<bf16>"},
    [PLAN_SWIGLU] = {"SwiGLU", 6, 0, 0.88, 6, "act.cu", "glu_fwd_kernel<bf16, silu>"},
    [PLAN_SWIGLU_BACK] = {"SwiGLU backward", 10, 0, 0.9, 10, "act.cu", "glu_bwd_kernel<bf16, silu>"},
    [PLAN_BIAS_SUMS] = {"bias gradient", 2, 0, 0.74, 2, "vec.cu", "colsum_kernel<bf16>"},
    [PLAN_NORM_FP8] = {"layer norm to FP8", 9, 0, STREAMS, 11, "norm.cu", "row_kernel<false, true, 8>"},
    [PLAN_RMS_FP8] = {"RMS norm to FP8", 9, 0, STREAMS, 9, "norm.cu", "row_kernel<true, true, 8>"},
    [PLAN_GELU_FP8] = {"GELU to FP8", 4, 0, STREAMS, 3, "fp8.cu", "quantize_kernel<activated<gelu_tanh, false, false>, e4m3>"},
    [PLAN_GELU_BACK_FP8] = {"GELU backward to FP8", 6, 0, STREAMS, 5, "fp8.cu",
                            "quantize_kernel<activated<gelu_tanh, false, true>, e5m2>"},
    [PLAN_SWIGLU_FP8] = {"SwiGLU to FP8", 6, 0, STREAMS, 5, "fp8.cu", "quantize_kernel<activated<silu, true, false>, e4m3>"},
    [PLAN_SWIGLU_BACK_FP8] = {"SwiGLU backward to FP8", 5, 0, STREAMS, 7, "fp8.cu",
                              "quantize_kernel<activated<silu, true, true>, e5m2>"},
    [PLAN_FP8] = {"to FP8", 4, -1, STREAMS, 3, "fp8.cu", "quantize_kernel<plain<bf16>, e5m2>"},
    [PLAN_FP8_BLOCKS] = {"to FP8 by blocks", 4, -1, 0.78, 0, NULL, NULL},
    [PLAN_AMAX] = {"largest value", 2, 0, 0.84, 2, "fp8.cu", "amax_kernel<bf16>"},
    [PLAN_GELU] = {"GELU", 4, 0, STREAMS, 4, "act.cu", "fwd_kernel<bf16, gelu_tanh>"},
    [PLAN_GELU_BACK] = {"GELU backward", 6, 0, STREAMS, 6, "act.cu", "bwd_kernel<bf16, gelu_tanh>"},
    [PLAN_XENT] = {"cross-entropy", 4, 0, 0.75, 6, "xent.cu", "whole_kernel<bf16>"},
    [PLAN_EMBEDDING] = {"embedding", 4, 0, 0.69, 6, "embedding.cu", "fwd_kernel<bf16>"},
    [PLAN_EMBEDDING_BACK] = {"embedding backward", 10, 0, 0.45, 0, NULL, NULL},
    [PLAN_TAKE] = {"route: take rows", 0, 4, 0.96, 0, NULL, NULL},
    [PLAN_JOIN] = {"route: join rows", 2, 2, 0.8, 0, NULL, NULL},
    [PLAN_JOIN_BACK] = {"route: join, backward", 2, 4, 0.73, 0, NULL, NULL},
    [PLAN_SUMSQ] = {"sum of squares", 4, 0, 1, 4, "vec.cu", "sumsq_kernel<f32>"},
    [PLAN_ADAMW] = {"AdamW", 30, 0, 0.84, 30, "update.cu", "update_kernel<adamw, false>"},
    [PLAN_ORTHOGONAL] = {"Newton-Schulz product", 0, 0, 1, 0, NULL, NULL},
};

static bool product_in_fp8(enum plan_op op)
{
    return op == PLAN_PRODUCT_FP8 || op == PLAN_PRODUCT_BLOCKS || op == PLAN_WEIGHT_BLOCKS;
}

/* Those whose numbers are fp32 whatever the model computes in. */
static bool of_its_own(enum plan_op op)
{
    return op == PLAN_COPY || op == PLAN_SUMSQ || op == PLAN_ADAMW;
}

static const char *const bound_names[] = {"FLOPs", "bytes", "instructions", "launches", "measured"};

const char *plan_op_name(enum plan_op op)
{
    return rows[op].name;
}

enum plan_op plan_op_named(const char *name, size_t n)
{
    int op = 0;

    while (op < PLAN_OPS && !(strlen(rows[op].name) == n && memcmp(rows[op].name, name, n) == 0))
        op++;
    return (enum plan_op)op;
}

/* ---- instructions ---- */

/* A row of kernels/sass.inc: instructions along the hot path, and its accesses by 16 and by 8 bytes a thread. */
struct kernel {
    const char *file, *name;
    int loop, wide, half;
};
#define SASS(file, name, threads, regs, shared, stack, blocks, all, loop, hmma, mufu, bar, wide, half, narrow, local, ...) \
    {file, name, loop, wide, half},
static const struct kernel kernels[] = {
#include "kernels/sass.inc"
};

static const struct kernel *kernel_of(const struct row *w)
{
    for (size_t i = 0; w->kernel && i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, w->kernel) == 0 && strcmp(kernels[i].file, w->file) == 0)
            return &kernels[i];
    return NULL;
}

bool plan_count_instructions(struct plan_rates *r)
{
    bool all = true;

    for (int op = 0; op < PLAN_OPS; op++) {
        const struct kernel *k = kernel_of(&rows[op]);
        double bytes = k ? 16.0 * k->wide + 8.0 * k->half : 0;
        bool known = k && bytes > 0;

        r->instructions[op] = known ? rows[op].accessed * k->loop / bytes / 32 : 0;
        all = all && (known || !rows[op].kernel);
    }
    return all;
}

/* ---- what bounds an op ---- */

/* Tiles of products that libraries have, and what they reach of the best. */
static const struct tile {
    int64_t m, n;
    double reach;
} tiles[] = {{256, 128, 1}, {128, 256, 1}, {192, 128, 0.97}, {128, 192, 0.97}, {128, 128, 0.92}, {64, 128, 0.75}, {64, 64, 0.5}};
/* Until the first tiles of k are there, and while the last are written, nothing is multiplied: as long as so much of k takes. */
#define TILE_BEGINS 64.0
enum { SPLIT_MOST = 16, SPLIT_LEAST_K = 512 };

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The share of its best that a product reaches in tiles of one size: their ends beyond the matrix, multiprocessors idle in the
 * last wave, less so where k is split among several. */
static double tiled(const struct tile *t, const struct plan_dims *d, int processors)
{
    int64_t all = over(d->m, t->m) * over(d->n, t->n);
    double inside = (double)(d->m * d->n) / (double)(all * t->m * t->n), best = 0;

    for (int64_t s = 1; s <= SPLIT_MOST && (s == 1 || d->k / s >= SPLIT_LEAST_K); s++) {
        double k = (double)d->k / (double)s, waves = (double)over(all * s, processors);
        double reach = (double)(all * s) / (waves * processors) * k / (k + TILE_BEGINS);
        best = reach > best ? reach : best;
    }
    return t->reach * inside * best;
}

static double product_reach(const struct plan_rates *r, const struct plan_dims *d)
{
    double best = 0;

    if (!r->processors)
        return 1;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        double reach = tiled(&tiles[i], d, r->processors);
        best = reach > best ? reach : best;
    }
    return best;
}

/* The share of the peak that attention of long sequences reaches, and the length of those that reach half of it, for heads of 64
 * and of 128: near what cuDNN and FlashAttention-3 were published with on an H100. */
static double attention_reach(const struct plan_rates *r, const struct plan_dims *d, bool back, bool bf16)
{
    double wide = d->d <= 64 ? 0 : d->d >= 128 ? 1 : (double)(d->d - 64) / 64;
    double most = back ? 0.39 + 0.18 * wide : 0.50 + 0.17 * wide, half = 700 + 200 * wide;

    if (!r->processors)
        return 1;
    if (!bf16)
        return 0.15; /* without tensor cores, attention_plain.cu */
    return most * (d->d < 64 ? (double)d->d / 64 : 1) * (double)d->n / ((double)d->n + half);
}

static double flops_seconds(const struct plan_rates *r, enum plan_op op, const struct plan_dims *d, bool bf16)
{
    enum plan_type type = product_in_fp8(op) && r->flops[PLAN_FP8_TYPE] > 0 ? PLAN_FP8_TYPE : bf16 ? PLAN_BF16 : PLAN_FP32;
    double heads = (double)(d->m * d->k * d->d), n = (double)d->n, keys = d->keys > 0 ? 2 * d->keys : n;

    if (op == PLAN_ATTENTION || op == PLAN_ATTENTION_BACK)
        return (op == PLAN_ATTENTION ? 2 : 5) * heads * n * keys /
               (r->flops[type] * attention_reach(r, d, op == PLAN_ATTENTION_BACK, bf16));
    if (op == PLAN_ORTHOGONAL)
        type = d->d == 2 ? PLAN_BF16 : PLAN_FP32;
    else if (op != PLAN_PRODUCT && !product_in_fp8(op))
        return 0;
    return 2.0 * (double)d->m * n * (double)d->k / (r->flops[type] * r->reach[type] * rows[op].reach * product_reach(r, d));
}

static double op_bytes(enum plan_op op, const struct plan_dims *d, bool bf16)
{
    double m = (double)d->m, n = (double)d->n, k = (double)d->k, w = bf16 ? 2 : 4;

    if (op == PLAN_ATTENTION || op == PLAN_ATTENTION_BACK)
        return (op == PLAN_ATTENTION ? 2 : 4) * w * m * n * (double)((d->k + d->kv) * d->d);
    if (op == PLAN_PRODUCT || product_in_fp8(op))
        return (op == PLAN_PRODUCT ? w : 1) * k * (m + n) + (d->d ? (double)d->d : w) * m * n;
    if (op == PLAN_ORTHOGONAL)
        return (double)d->d * k * (m + n) + (double)d->kv * m * n;
    return (rows[op].bytes + rows[op].bytes_k * k) * m * n * (of_its_own(op) ? 1 : w / 2);
}

double plan_op_seconds(const struct plan_rates *r, enum plan_op op, const struct plan_dims *d, bool bf16, enum plan_bound *bound)
{
    double by[BOUND_MEASURED] = {
        [BOUND_FLOPS] = flops_seconds(r, op, d, bf16),
        [BOUND_BYTES] = op_bytes(op, d, bf16) / (r->bytes * r->copy * rows[op].reach),
        [BOUND_ISSUE] = r->issue > 0 ? r->instructions[op] * (double)(d->m * d->n) / r->issue : 0,
    };
    int most = BOUND_FLOPS;

    for (int b = BOUND_BYTES; b <= BOUND_ISSUE; b++)
        if (by[b] > by[most])
            most = b;
    by[BOUND_LAUNCH] = r->launch;
    if (bound)
        *bound = r->measured[op] > 0 ? BOUND_MEASURED : by[most] < r->launch ? BOUND_LAUNCH : (enum plan_bound)most;
    return (by[most] + r->launch) * (r->measured[op] > 0 ? r->measured[op] : 1);
}

/* ---- sums ---- */

void plan_sum_add(void *arg, enum plan_op op, const struct plan_dims *d, double times)
{
    struct plan_sum *s = arg;
    enum plan_bound bound;
    double seconds = times * plan_op_seconds(s->rates, op, d, s->bf16, &bound);

    s->all += seconds;
    s->op[op] += seconds;
    s->times[op] += times;
    if (seconds > s->longest[op]) {
        s->longest[op] = seconds;
        s->bound[op] = bound;
    }
}

void plan_sum_times(struct plan_sum *s, double n)
{
    s->all *= n;
    for (int i = 0; i < PLAN_OPS; i++) {
        s->op[i] *= n;
        s->times[i] *= n;
        s->longest[i] *= n;
    }
}

/* The op with i before it by seconds; PLAN_OPS: none. */
static int ranked(const struct plan_sum *s, int i)
{
    for (int op = 0; op < PLAN_OPS; op++) {
        int before = 0;
        for (int other = 0; other < PLAN_OPS; other++)
            before += s->op[other] > s->op[op] || (other < op && s->op[other] == s->op[op]);
        if (before == i && s->op[op] > 0)
            return op;
    }
    return PLAN_OPS;
}

bool plan_sum_line(const struct plan_sum *s, int i, char *line, size_t size)
{
    int op = ranked(s, i);

    if (op == PLAN_OPS)
        return false;
    snprintf(line, size, "%-24s %8.0f %12.6f %6.1f %%  %s", rows[op].name, s->times[op], s->op[op], 100 * s->op[op] / s->all,
             bound_names[s->bound[op]]);
    return true;
}
