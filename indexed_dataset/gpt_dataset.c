/* Splits, and blends of several datasets. */
#include "indexed_dataset/gpt_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "indexed_dataset/gpt_index.h"

/* How much more of each part is laid out than the blend should need. */
#define SURPLUS 0.005
enum { PARTS_MAX = 32766 };

struct gpt_dataset {
    int64_t seq_length, n;
    int n_parts;
    struct gpt_index *part;
    bool blended;
    struct npy which, sample; /* of a blend: the part and its sample, for each sample */
};

/* ---- the split string ---- */

/* numpy.sum of float64: pairwise, in blocks of 128 with eight partial sums. */
static double numpy_sum(const double *a, int64_t n)
{
    double r[8], sum = 0;
    int64_t i;

    if (n < 8) {
        for (i = 0; i < n; i++)
            sum += a[i];
        return sum;
    }
    if (n > 128) {
        int64_t half = n / 2 - n / 2 % 8;
        return numpy_sum(a, half) + numpy_sum(a + half, n - half);
    }
    memcpy(r, a, sizeof r);
    for (i = 8; i < n - n % 8; i += 8)
        for (int k = 0; k < 8; k++)
            r[k] += a[i + k];
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++)
        sum += a[i];
    return sum;
}

static void normalise(double *w, int64_t n)
{
    double sum = numpy_sum(w, n);

    for (int64_t i = 0; i < n; i++)
        w[i] /= sum;
}

int gpt_split_parse(const char *split, double lo[GPT_SPLITS], double hi[GPT_SPLITS], struct err *e)
{
    double v[GPT_SPLITS] = {0};
    const char *p = split;
    int n = 0;

    while (*(p += strcspn(p, ".0123456789"))) {
        size_t len = strspn(p, ".0123456789");
        char word[64], *end;

        if (n == GPT_SPLITS)
            return err_set(e, ERR_ARG, "the split '%s' has more than three parts", split);
        if (len >= sizeof word)
            return err_set(e, ERR_ARG, "the split '%s' has no number at '%.20s'", split, p);
        memcpy(word, p, len);
        word[len] = '\0';
        v[n++] = strtod(word, &end);
        if (end == word || *end)
            return err_set(e, ERR_ARG, "the split '%s' has no number at '%s'", split, word);
        p += len;
    }
    if (v[0] + v[1] + v[2] <= 0)
        return err_set(e, ERR_ARG, "the split '%s' gives nothing to any part", split);
    normalise(v, GPT_SPLITS);
    for (int i = 0; i < GPT_SPLITS; i++) {
        lo[i] = i ? hi[i - 1] : 0;
        hi[i] = lo[i] + v[i];
    }
    return 0;
}

/* ---- what is blended ---- */

struct blend {
    const char **prefix;
    double *weight; /* normalised; NULL: by size */
    int n;
};

static bool is_number(const char *s, double *v)
{
    char *end;
    *v = strtod(s, &end);
    return end != s && *end == '\0' && isfinite(*v);
}

int gpt_paths_word(const struct gpt_paths *p, int part)
{
    double v;

    return p->n % 2 == 0 && p->n && is_number(p->word[0], &v) ? 2 * part + 1 : part;
}

static void blend_free(struct blend *b)
{
    free(b->prefix);
    free(b->weight);
}

static int blend_parse(struct blend *b, const struct gpt_paths *paths, struct err *e)
{
    int n = paths->n, numbers = 0;
    double v;

    for (int i = 0; n % 2 == 0 && i < n; i += 2)
        numbers += is_number(paths->word[i], &v);
    if (numbers && numbers != n / 2)
        return err_set(e, ERR_ARG, "the data path mixes weighted and unweighted prefixes");
    b->n = numbers ? n / 2 : n;
    if (b->n > PARTS_MAX)
        return err_set(e, ERR_ARG, "more than %d datasets in a blend", PARTS_MAX);
    b->prefix = calloc((size_t)b->n + 1, sizeof *b->prefix);
    b->weight = numbers ? calloc((size_t)b->n + 1, sizeof *b->weight) : NULL;
    if (!b->prefix || (numbers && !b->weight))
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < b->n; i++) {
        b->prefix[i] = paths->word[numbers ? 2 * i + 1 : i];
        if (numbers && (!is_number(paths->word[2 * i], &b->weight[i]) || b->weight[i] <= 0))
            return err_set(e, ERR_ARG, "the weight of '%s' is not above 0", b->prefix[i]);
    }
    if (numbers)
        normalise(b->weight, b->n);
    return 0;
}

/* The number of samples of part i that `samples` of the blend take. */
static int64_t share(const struct blend *b, int i, int64_t samples, double surplus)
{
    double n = ceil((double)samples * b->weight[i]);
    return surplus > 0 ? (int64_t)ceil(n * (1 + surplus)) : (int64_t)n;
}

/* For each sample the part that lags its weight most, the first of several. */
static int draw_parts(struct gpt_dataset *d, const double *weight, struct err *e)
{
    int64_t *count = calloc((size_t)d->n_parts, sizeof *count);
    int16_t *which;
    int64_t *sample;
    int rc = count ? npy_new(&d->which, NPY_I2, d->n, 0, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = npy_new(&d->sample, NPY_I8, d->n, 0, e);
    which = d->which.own;
    sample = d->sample.own;
    for (int64_t s = 0; rc == 0 && s < d->n; s++) {
        double at = s > 1 ? (double)s : 1.0, most = weight[0] * at - (double)count[0];
        int best = 0;
        for (int k = 1; k < d->n_parts; k++) {
            double lag = weight[k] * at - (double)count[k];
            if (lag > most) {
                most = lag;
                best = k;
            }
        }
        which[s] = (int16_t)best;
        sample[s] = count[best]++;
    }
    for (int k = 0; rc == 0 && k < d->n_parts; k++)
        if (count[k] > d->part[k].n)
            rc = err_set(e, ERR_ARG, "the blend takes %" PRId64 " samples of '%s', which has %" PRId64,
                         count[k], idx_prefix(d->part[k].x), d->part[k].n);
    free(count);
    return rc;
}

static int load_blend(struct gpt_dataset *d, const char *dir, const char *name, struct err *e)
{
    int rc = gpt_cache_load(dir, name, "dataset_index", &d->which, NPY_I2, d->n, 0, e);

    if (rc == 0)
        rc = gpt_cache_load(dir, name, "dataset_sample_index", &d->sample, NPY_I8, d->n, 0, e);
    if (rc < 0) {
        npy_free(&d->which);
        npy_free(&d->sample);
    }
    return rc;
}

static int save_blend(const struct gpt_dataset *d, const char *dir, const char *name,
                      struct span description, struct err *e)
{
    TRY(gpt_cache_make(dir, e));
    TRY(gpt_cache_save(dir, name, "dataset_index", &d->which, e));
    TRY(gpt_cache_save(dir, name, "dataset_sample_index", &d->sample, e));
    return gpt_cache_describe(dir, name, description, e);
}

static bool cached_blend(struct gpt_dataset *d, const struct gpt_conf *c, const char *name)
{
    const char **prefix = calloc((size_t)d->n_parts, sizeof *prefix);
    bool hit;

    for (int i = 0; prefix && i < d->n_parts; i++)
        prefix[i] = idx_prefix(d->part[i].x);
    hit = c->cache && prefix && gpt_cache_has(c->cache, name, prefix, d->n_parts) &&
          load_blend(d, c->cache, name, NULL) == 0;
    free(prefix);
    return hit;
}

static int mix(struct gpt_dataset *d, const struct gpt_conf *c, const struct gpt_index_conf *conf,
               const double *weight, struct err *e)
{
    struct buf description = {0};
    char name[GPT_NAME_MAX];
    struct err why;
    int rc = gpt_describe_blend(&description, conf, d->n_parts, weight, d->n, e);

    if (rc == 0)
        gpt_cache_name(name, buf_span(&description), "BlendedDataset", conf->split);
    if (rc == 0 && !cached_blend(d, c, name)) {
        int lock = c->cache ? gpt_cache_lock(c->cache, name) : -1;
        if (lock < 0 || !cached_blend(d, c, name)) { /* another process may have made it meanwhile */
            rc = draw_parts(d, weight, e);
            if (rc == 0 && c->cache && save_blend(d, c->cache, name, buf_span(&description), &why) < 0)
                log_msg(LOG_WARN, "indices not cached: %s", why.msg);
        }
        gpt_cache_unlock(c->cache, name, lock);
    }
    buf_free(&description);
    return rc;
}

/* The parts are open: sets d->n and how they are mixed. */
static int open_blend(struct gpt_dataset *d, const struct gpt_conf *c, const struct blend *b,
                      const struct gpt_index_conf *conf, struct err *e)
{
    double *weight = calloc((size_t)b->n, sizeof *weight);
    int rc;

    if (!weight)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < b->n; i++) {
        d->n += b->weight ? share(b, i, c->samples[conf->split], 0) : d->part[i].n;
        weight[i] = b->weight ? b->weight[i] : (double)d->part[i].n;
    }
    if (!b->weight && c->samples[conf->split] >= 0 && d->n > c->samples[conf->split])
        d->n = c->samples[conf->split];
    normalise(weight, b->n); /* a second time when they were weights */
    rc = mix(d, c, conf, weight, e);
    free(weight);
    return rc;
}

/* ---- one split ---- */

static int open_parts(struct gpt_dataset *d, const struct gpt_conf *c, const struct blend *b,
                      struct gpt_index_conf *conf, enum gpt_split split, bool *none, struct err *e)
{
    double lo[GPT_SPLITS] = {0}, hi[GPT_SPLITS] = {0};

    if (c->split)
        TRY(gpt_split_parse(c->split, lo, hi, e));
    *none = c->split && !(lo[split] < hi[split]);
    for (int i = 0; i < b->n && !*none; i++) {
        struct gpt_index_conf *k = &conf[i];
        *k = (struct gpt_index_conf){.c = c, .split = split, .path = b->prefix[i]};
        memcpy(k->lo, lo, sizeof lo);
        memcpy(k->hi, hi, sizeof hi);
        k->samples = !d->blended ? c->samples[split] : b->weight ? share(b, i, c->samples[split], SURPLUS) : -1;
        TRY(gpt_index_open(&d->part[i], k, none, e));
        if (*none && b->n > 1)
            return err_set(e, ERR_ARG, "'%s' has no sequence for one of the splits", b->prefix[i]);
        if (!*none)
            d->n_parts++;
    }
    return 0;
}

static int open_split(struct gpt_dataset **out, const struct gpt_conf *c, enum gpt_split split,
                      struct err *e)
{
    const struct gpt_paths *paths = c->split ? &c->paths : &c->split_paths[split];
    struct gpt_dataset *d = NULL;
    struct gpt_index_conf *conf = NULL;
    struct blend b = {0};
    bool none = true;
    int rc;

    *out = NULL;
    if (c->samples[split] == 0 || paths->n == 0)
        return 0;
    rc = blend_parse(&b, paths, e);
    if (rc == 0 && c->samples[split] < 0 && b.weight)
        rc = err_set(e, ERR_ARG, "a blend by weight has no epoch: say how many samples");
    if (rc == 0) {
        d = calloc(1, sizeof *d);
        conf = calloc((size_t)b.n, sizeof *conf);
        if (d)
            d->part = calloc((size_t)b.n, sizeof *d->part);
        if (!d || !conf || !d->part)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    if (rc == 0) {
        d->seq_length = c->seq_length;
        /* Megatron blends a single weighted prefix, but not under --train-data-path. */
        d->blended = b.n > 1 || (b.weight && c->split);
        rc = open_parts(d, c, &b, conf, split, &none, e);
    }
    if (rc == 0 && !none) {
        if (d->blended)
            rc = open_blend(d, c, &b, conf, e);
        else
            d->n = d->part[0].n;
    }
    if (rc == 0 && !none)
        *out = d;
    else
        gpt_dataset_close(d);
    free(conf);
    blend_free(&b);
    return rc;
}

int gpt_dataset_open(struct gpt_dataset *out[GPT_SPLITS], const struct gpt_conf *c, struct err *e)
{
    int rc = 0;

    memset(out, 0, GPT_SPLITS * sizeof *out);
    if (c->seq_length < 1 || c->seq_length > INT32_MAX - 1)
        return err_set(e, ERR_ARG, "the sequence length is not within 1..%d", INT32_MAX - 1);
    if (c->split && c->paths.n == 0)
        return err_set(e, ERR_ARG, "no data path");
    for (int i = 0; i < GPT_SPLITS && rc == 0; i++)
        rc = open_split(&out[i], c, (enum gpt_split)i, e);
    for (int i = 0; i < GPT_SPLITS && rc < 0; i++) {
        gpt_dataset_close(out[i]);
        out[i] = NULL;
    }
    return rc;
}

int64_t gpt_dataset_samples(const struct gpt_dataset *d)
{
    return d->n;
}

/* The part that sample i comes from, and its number there. */
static int find_sample(const struct gpt_dataset *d, int64_t i, int64_t *part, int64_t *sample, struct err *e)
{
    *part = 0;
    *sample = i;
    if (i < 0 || i >= d->n)
        return err_set(e, ERR_ARG, "no sample %" PRId64 " of %" PRId64, i, d->n);
    if (d->blended) {
        *part = npy_at(&d->which, i);
        *sample = npy_at(&d->sample, i);
        if (*part < 0 || *part >= d->n_parts)
            return err_set(e, ERR_FORMAT, "the cached blend has no dataset %" PRId64 "; remove it", *part);
    }
    return 0;
}

int gpt_dataset_get(const struct gpt_dataset *d, int64_t i, int32_t *tokens, struct err *e)
{
    int64_t part, sample;

    TRY(find_sample(d, i, &part, &sample, e));
    return gpt_index_get(&d->part[part], d->seq_length, sample, tokens, e);
}

bool gpt_dataset_masked(const struct gpt_dataset *d)
{
    for (int i = 0; i < d->n_parts; i++)
        if (d->part[i].mask)
            return true;
    return false;
}

int gpt_dataset_get_mask(const struct gpt_dataset *d, int64_t i, int32_t *mask, struct err *e)
{
    int64_t part, sample;

    TRY(find_sample(d, i, &part, &sample, e));
    return gpt_index_get_mask(&d->part[part], d->seq_length, sample, mask, e);
}

int gpt_dataset_pieces(const struct gpt_dataset *d, int64_t i, sample_piece_fn *fn, void *arg, struct err *e)
{
    int64_t part, sample;

    TRY(find_sample(d, i, &part, &sample, e));
    return gpt_index_pieces(&d->part[part], (int)part, d->seq_length, sample, fn, arg, e);
}

void gpt_dataset_close(struct gpt_dataset *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n_parts; i++)
        gpt_index_close(&d->part[i]);
    npy_free(&d->which);
    npy_free(&d->sample);
    free(d->part);
    free(d);
}
