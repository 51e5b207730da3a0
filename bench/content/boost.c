#include "bench/content/boost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Sums of the first and second derivatives of the loss, in steps of a size that holds the sum of all rows: the first one in
 * the upper half, with its sign, so that both are added at once. */
typedef int64_t sums;
enum { LEAVES_MAX = 1 << CONTENT_DEPTH };
#define ONE_FIRST ((sums)1 << 32)

struct split {
    double gain;
    uint32_t feature;
    uint8_t threshold;
};

/* A row that a tree sees, and what it adds to a histogram. */
struct seen_row {
    uint32_t row, leaf;
    sums sums;
};

typedef sums histogram[LEAVES_MAX / 2][CONTENT_LEVELS];

struct booster {
    const struct boost_data *d;
    const struct boost_conf *c;
    float step; /* how many of the sums' steps are 1 */
    int32_t *score;
    uint32_t n_rows, n_side; /* of the tree; of those on the smaller side of its last test */
    struct seen_row *rows, *side;
    unsigned side_bit;       /* which side that is */
    histogram *hist;         /* by feature: of its rows' leaves */
    struct split *best;      /* by feature */
};

/* A number of [0, 1) that depends on its arguments alone. */
static float draw(uint64_t seed, uint64_t a, uint64_t b)
{
    return (float)(hash_mix64(hash_mix64(seed + a * 0x9E3779B97F4A7C15u) + b) >> 40) * 0x1p-24f;
}

static void derive(struct booster *b, int tree)
{
    const struct boost_data *d = b->d;

    b->n_rows = 0;
    for (uint32_t i = 0; i < d->rows; i++) {
        if (d->w[i] <= 0 || draw(b->c->seed, (uint64_t)tree, i) >= b->c->row_share)
            continue;
        float p = 1 / (1 + expf(-(float)b->score[i] / CONTENT_ONE));
        float w = d->w[i] * b->step;
        b->rows[b->n_rows++] = (struct seen_row){i, 0, lrintf(w * (d->y[i] - p)) * ONE_FIRST + lrintf(w * p * (1 - p))};
    }
}

static double first(sums s)
{
    return (double)(s >> 32);
}

static double second(sums s)
{
    return (double)(s & UINT32_MAX);
}

static double square_over(sums s, double lambda)
{
    return first(s) * first(s) / (second(s) + lambda);
}

static void add_rows(histogram h, const uint8_t *x, const struct seen_row *row, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        h[row[k].leaf][x[row[k].row]] += row[k].sums;
}

/* Brings a feature's histogram to a level of the tree: the smaller side of the last test is added up, the other one is what
 * is left of the level above. */
static void count_rows(const struct booster *b, uint32_t feature, int level)
{
    const uint8_t *x = b->d->x + (size_t)feature * b->d->rows;
    sums (*h)[CONTENT_LEVELS] = b->hist[feature];
    size_t half = level ? (size_t)1 << (level - 1) : 0;

    if (!level) {
        memset(h, 0, sizeof *h);
        add_rows(h, x, b->rows, b->n_rows);
        return;
    }
    memset(h + half, 0, half * sizeof *h);
    add_rows(h + half, x, b->side, b->n_side);
    for (size_t l = 0; l < half; l++)
        for (int v = 0; v < CONTENT_LEVELS; v++) {
            sums side = h[half + l][v], rest = h[l][v] - side;
            h[half + l][v] = b->side_bit ? side : rest;
            h[l][v] = b->side_bit ? rest : side;
        }
}

/* The threshold of a feature that divides all leaves best. */
static struct split best_split(const struct booster *b, uint32_t feature, int leaves)
{
    sums (*hist)[CONTENT_LEVELS] = b->hist[feature];
    double lambda = b->c->lambda * (double)b->step;
    double gain[CONTENT_LEVELS] = {0};
    struct split s = {-1, feature, 0};

    for (int l = 0; l < leaves; l++) {
        sums all = 0, left = 0;
        for (int v = 0; v < CONTENT_LEVELS; v++)
            all += hist[l][v];
        for (int v = 0; v < CONTENT_LEVELS - 1; v++) {
            left += hist[l][v];
            gain[v] += square_over(left, lambda) + square_over(all - left, lambda);
        }
    }
    for (int v = 0; v < CONTENT_LEVELS - 1; v++)
        if (gain[v] > s.gain) {
            s.gain = gain[v];
            s.threshold = (uint8_t)v;
        }
    return s;
}

static struct split find_split(struct booster *b, int tree, int level)
{
    const struct boost_conf *c = b->c;
    struct split best = {-1, 0, 0};

#pragma omp parallel for schedule(dynamic, 4)
    for (uint32_t f = 0; f < c->features; f++) {
        b->best[f].gain = -1;
        if (draw(c->seed ^ 0xF0F0, (uint64_t)tree, f) >= c->feature_share)
            continue;
        count_rows(b, f, level);
        b->best[f] = best_split(b, f, 1 << level);
    }
    for (uint32_t f = 0; f < c->features; f++)
        if (b->best[f].gain > best.gain)
            best = b->best[f];
    return best;
}

/* Divides the rows by the test of a level. */
static void divide(struct booster *b, const struct split *s, int level)
{
    const uint8_t *x = b->d->x + (size_t)s->feature * b->d->rows;
    uint32_t over = 0;

    for (uint32_t k = 0; k < b->n_rows; k++)
        over += x[b->rows[k].row] > s->threshold;
    b->side_bit = over * 2 <= b->n_rows;
    b->n_side = 0;
    for (uint32_t k = 0; k < b->n_rows; k++) {
        unsigned bit = x[b->rows[k].row] > s->threshold;
        if (bit == b->side_bit)
            b->side[b->n_side++] = b->rows[k];
        b->rows[k].leaf |= bit << level;
    }
}

/* Values of a tree's leaves, and what they add to all rows. */
static void set_leaves(struct booster *b, const uint16_t *feature, const uint8_t *threshold, int16_t *leaf)
{
    int depth = b->c->depth;
    sums sum[LEAVES_MAX] = {0};

    for (uint32_t k = 0; k < b->n_rows; k++)
        sum[b->rows[k].leaf] += b->rows[k].sums;
    for (int l = 0; l < 1 << depth; l++) {
        double v = b->c->rate * first(sum[l]) / (second(sum[l]) + b->c->lambda * (double)b->step) * CONTENT_ONE;
        leaf[l] = (int16_t)lrint(fmax(-4000, fmin(4000, v)));
    }
    for (uint32_t i = 0; i < b->d->rows; i++) {
        unsigned at = 0;
        for (int k = 0; k < depth; k++)
            at |= (unsigned)(b->d->x[(size_t)feature[k] * b->d->rows + i] > threshold[k]) << k;
        b->score[i] += leaf[at];
    }
}

struct content_forest boost_train(const struct boost_data *d, const struct boost_conf *c)
{
    size_t tests = (size_t)c->depth * (size_t)c->trees;
    uint16_t *feature = calloc(tests, sizeof *feature);
    uint8_t *threshold = calloc(tests, 1);
    int16_t *leaf = calloc((size_t)c->trees << c->depth, sizeof *leaf);
    struct booster b = {.d = d,
                        .c = c,
                        .score = malloc(d->rows * sizeof *b.score),
                        .rows = malloc(d->rows * sizeof *b.rows),
                        .side = malloc(d->rows * sizeof *b.side),
                        .hist = malloc(c->features * sizeof *b.hist),
                        .best = malloc(c->features * sizeof *b.best)};
    double yes = 0, all = 0;
    int32_t bias;

    for (uint32_t i = 0; i < d->rows; i++) {
        yes += d->w[i] * d->y[i];
        all += d->w[i];
    }
    b.step = (float)exp2(floor(log2(0x1p30 / (all + 1e-3))));
    bias = (int32_t)lrint(log((yes + 1e-3) / (all - yes + 1e-3)) * CONTENT_ONE);
    for (uint32_t i = 0; i < d->rows; i++)
        b.score[i] = bias;
    for (int t = 0; t < c->trees; t++) {
        derive(&b, t);
        for (int k = 0; k < c->depth; k++) {
            struct split s = find_split(&b, t, k);
            feature[t * c->depth + k] = (uint16_t)s.feature;
            threshold[t * c->depth + k] = s.threshold;
            divide(&b, &s, k);
        }
        set_leaves(&b, feature + t * c->depth, threshold + t * c->depth, leaf + ((size_t)t << c->depth));
    }
    free(b.score);
    free(b.rows);
    free(b.side);
    free(b.hist);
    free(b.best);
    return (struct content_forest){c->depth, c->trees, bias, feature, threshold, leaf};
}

void boost_free(struct content_forest *f)
{
    free((void *)(uintptr_t)f->feature);
    free((void *)(uintptr_t)f->threshold);
    free((void *)(uintptr_t)f->leaf);
    *f = (struct content_forest){0};
}
