#include "indexed_dataset/gpt_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One prefix's share of a split. */
struct part {
    const struct idx *x;
    struct gpt_index index;
};

struct gpt_dataset {
    int64_t seq_length;
    uint64_t size;
    struct part *part;
    int n_parts;
    int16_t *blend_part; /* size; NULL for one prefix without weight */
    uint64_t *blend_sample;
    struct idx **shared; /* the mapped files, of all splits; the first set owns them */
    int n_shared;
};

/* What --data-path said. */
struct blend {
    const char **prefix;
    double *weight; /* NULL: none given */
    int n;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a dataset");
}

/* ---- numpy's sums, in numpy's order, for the same last bit ---- */

static double pairwise_sum(const double *a, int n)
{
    double r[8], sum = 0;
    int i;

    if (n < 8) {
        for (i = 0; i < n; i++)
            sum += a[i];
        return sum;
    }
    if (n > 128) {
        int half = n / 2 - n / 2 % 8;
        return pairwise_sum(a, half) + pairwise_sum(a + half, n - half);
    }
    memcpy(r, a, sizeof r);
    for (i = 8; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            r[k] += a[i + k];
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++)
        sum += a[i];
    return sum;
}

static void normalize(double *w, int n)
{
    double sum = pairwise_sum(w, n);
    for (int i = 0; i < n; i++)
        w[i] /= sum;
}

int gpt_split_parse(const char *split, double bound[GPT_SPLITS + 1], struct err *e)
{
    double part[GPT_SPLITS] = {0};
    int n = 0;

    for (const char *p = split; *p;) {
        size_t len = strspn(p, ".0123456789");
        char num[64], *end;
        if (!len) {
            p++;
            continue;
        }
        if (n == GPT_SPLITS || len >= sizeof num)
            return err_set(e, ERR_ARG, "--split '%s': not three numbers", split);
        memcpy(num, p, len);
        num[len] = '\0';
        part[n++] = strtod(num, &end);
        if (*end)
            return err_set(e, ERR_ARG, "--split '%s': '%s' is no number", split, num);
        p += len;
    }
    if (!(part[0] + part[1] + part[2] > 0))
        return err_set(e, ERR_ARG, "--split '%s': nothing is left", split);
    normalize(part, GPT_SPLITS);
    bound[0] = 0;
    for (int i = 0; i < GPT_SPLITS; i++)
        bound[i + 1] = bound[i] + part[i];
    return 0;
}

int gpt_blend_build(const double *weights, int n, uint64_t size, int16_t *dataset,
                    uint64_t *sample, struct err *e)
{
    double *w = malloc((size_t)n * sizeof *w);
    uint64_t *count = calloc((size_t)n, sizeof *count);

    if (!w || !count) {
        free(w);
        free(count);
        return no_memory(e);
    }
    memcpy(w, weights, (size_t)n * sizeof *w);
    normalize(w, n);
    for (uint64_t s = 0; s < size; s++) {
        double at = s ? (double)s : 1.0, most = w[0] * at - (double)count[0];
        int best = 0;
        for (int i = 1; i < n; i++) {
            double error = w[i] * at - (double)count[i];
            if (error > most) {
                most = error;
                best = i;
            }
        }
        dataset[s] = (int16_t)best;
        sample[s] = count[best]++;
    }
    free(w);
    free(count);
    return 0;
}

/* ---- --data-path ---- */

static bool number(const char *s, double *v)
{
    char *end;
    *v = strtod(s, &end);
    return end != s && !*end;
}

static int parse_paths(const struct gpt_conf *c, struct blend *b, struct err *e)
{
    double v;
    int numbers = 0;

    if (c->n_paths < 1 || c->n_paths > 2 * 32766)
        return err_set(e, ERR_ARG, "--data-path has %d parts", c->n_paths);
    b->prefix = calloc((size_t)c->n_paths, sizeof *b->prefix);
    b->weight = calloc((size_t)c->n_paths, sizeof *b->weight);
    if (!b->prefix || !b->weight)
        return no_memory(e);
    for (int i = 0; c->n_paths % 2 == 0 && i < c->n_paths; i += 2)
        numbers += number(c->paths[i], &v);
    if (numbers && numbers != c->n_paths / 2)
        return err_set(e, ERR_ARG, "--data-path: some prefixes have a weight and some have none");
    for (int i = 0; i < c->n_paths; i++) {
        if (numbers) {
            number(c->paths[i++], &b->weight[b->n]);
            if (!(b->weight[b->n] > 0) || !isfinite(b->weight[b->n]))
                return err_set(e, ERR_ARG, "--data-path: the weight '%s' is not above 0", c->paths[i - 1]);
        }
        b->prefix[b->n++] = c->paths[i];
    }
    if (numbers) {
        normalize(b->weight, b->n);
    } else {
        free(b->weight);
        b->weight = NULL;
    }
    return 0;
}

/* ---- one split ---- */

static void close_set(struct gpt_dataset *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n_parts; i++)
        gpt_index_free(&d->part[i].index);
    for (int i = 0; i < d->n_shared; i++)
        idx_close(d->shared[i]);
    free(d->shared);
    free(d->part);
    free(d->blend_part);
    free(d->blend_sample);
    free(d);
}

static int open_part(struct part *p, const struct gpt_conf *c, const struct idx *x,
                     const double *bound, int64_t samples, struct err *e)
{
    double n = (double)idx_n_sequences(x);
    uint64_t begin = (uint64_t)rint(bound[0] * n), end = (uint64_t)rint(bound[1] * n);

    p->x = x;
    if (end > idx_n_sequences(x))
        end = idx_n_sequences(x);
    if (begin >= end)
        return err_set(e, ERR_ARG, "'%s' has %" PRIu64 " sequences: none for the split %.4g..%.4g",
                       idx_prefix(x), idx_n_sequences(x), bound[0], bound[1]);
    return gpt_index_build(&p->index, x, begin, end, c->seq_length, samples, c->seed, e);
}

/* Joins the parts in the order of the blend. */
static int build_blend(struct gpt_dataset *d, const double *weight, int64_t samples, struct err *e)
{
    double *w = calloc((size_t)d->n_parts, sizeof *w);
    uint64_t total = 0;
    int rc = 0;

    if (!w)
        return no_memory(e);
    for (int i = 0; i < d->n_parts; i++) {
        w[i] = weight ? weight[i] : (double)d->part[i].index.n_samples;
        total += weight ? (uint64_t)ceil((double)samples * weight[i]) : d->part[i].index.n_samples;
    }
    d->size = weight || samples < 0 || total < (uint64_t)samples ? total : (uint64_t)samples;
    d->blend_part = malloc((d->size + 1) * sizeof *d->blend_part);
    d->blend_sample = malloc((d->size + 1) * sizeof *d->blend_sample);
    if (!d->blend_part || !d->blend_sample)
        rc = no_memory(e);
    else
        rc = gpt_blend_build(w, d->n_parts, d->size, d->blend_part, d->blend_sample, e);
    free(w);
    for (uint64_t s = 0; rc == 0 && s < d->size; s++)
        if (d->blend_sample[s] >= d->part[d->blend_part[s]].index.n_samples)
            rc = err_set(e, ERR_ARG, "the blend wants more samples of '%s' than there are",
                         idx_prefix(d->part[d->blend_part[s]].x));
    return rc;
}

static int open_set(struct gpt_dataset **out, const struct gpt_conf *c, const struct blend *b,
                    struct idx **x, const double *bound, int64_t samples, struct err *e)
{
    struct gpt_dataset *d = calloc(1, sizeof *d);
    bool single = b->n == 1 && !b->weight;
    int rc = 0;

    if (d)
        d->part = calloc((size_t)b->n, sizeof *d->part);
    if (!d || !d->part) {
        free(d);
        return no_memory(e);
    }
    d->seq_length = c->seq_length;
    for (; rc == 0 && d->n_parts < b->n; d->n_parts++) {
        int i = d->n_parts;
        int64_t want = single ? samples : -1;
        if (b->weight && samples >= 0)
            want = (int64_t)ceil(ceil((double)samples * b->weight[i]) * (1 + 0.005));
        rc = open_part(&d->part[i], c, x[i], bound, want, e);
    }
    if (rc == 0 && b->weight && samples < 0)
        rc = err_set(e, ERR_ARG, "--data-path with weights needs a number of samples");
    if (rc == 0 && !single)
        rc = build_blend(d, b->weight, samples, e);
    else
        d->size = d->part[0].index.n_samples;
    if (rc < 0)
        close_set(d);
    else
        *out = d;
    return rc;
}

static int open_sets(struct gpt_dataset *out[GPT_SPLITS], const struct gpt_conf *c,
                     const struct blend *b, struct idx **x, struct err *e)
{
    static const char *const name[] = {"train", "valid", "test"};
    double bound[GPT_SPLITS + 1];

    TRY(gpt_split_parse(c->split, bound, e));
    for (int i = 0; i < b->n; i++)
        TRY(idx_open(&x[i], b->prefix[i], e));
    for (int s = 0; s < GPT_SPLITS; s++)
        if (c->samples[s] != 0 && bound[s + 1] > bound[s] &&
            open_set(&out[s], c, b, x, bound + s, c->samples[s], e) < 0)
            return err_wrap(e, "%s set", name[s]);
    return 0;
}

int gpt_datasets_open(struct gpt_dataset *out[GPT_SPLITS], const struct gpt_conf *c, struct err *e)
{
    struct blend b = {0};
    struct idx **x = NULL;
    int rc = parse_paths(c, &b, e), owner = -1;

    memset(out, 0, GPT_SPLITS * sizeof *out);
    if (rc == 0 && !(x = calloc((size_t)b.n, sizeof *x)))
        rc = no_memory(e);
    if (rc == 0)
        rc = open_sets(out, c, &b, x, e);
    for (int s = GPT_SPLITS; s-- > 0;)
        owner = out[s] ? s : owner;
    if (rc == 0 && owner < 0)
        rc = err_set(e, ERR_ARG, "--split '%s' leaves no sample", c->split);
    if (rc == 0) {
        out[owner]->shared = x;
        out[owner]->n_shared = b.n;
    } else {
        gpt_datasets_close(out);
        for (int i = 0; x && i < b.n; i++)
            idx_close(x[i]);
        free(x);
    }
    free(b.prefix);
    free(b.weight);
    return rc;
}

void gpt_datasets_close(struct gpt_dataset *sets[GPT_SPLITS])
{
    for (int s = GPT_SPLITS; s-- > 0; sets[s] = NULL) /* the owner of the files last */
        close_set(sets[s]);
}

uint64_t gpt_dataset_size(const struct gpt_dataset *d)
{
    return d->size;
}

int gpt_dataset_get(const struct gpt_dataset *d, uint64_t s, int32_t *out, struct err *e)
{
    const struct part *p = &d->part[0];

    if (s >= d->size)
        return err_set(e, ERR_ARG, "there is no sample %" PRIu64 " of %" PRIu64, s, d->size);
    if (d->blend_part) {
        p = &d->part[d->blend_part[s]];
        s = d->blend_sample[s];
    }
    return gpt_index_get(&p->index, p->x, s, d->seq_length, out, e);
}
