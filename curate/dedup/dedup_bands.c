#include "curate/dedup/dedup_bands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "curate/dedup/dedup_buckets.h"

int dedup_bands_init(struct dedup_bands *b, int bands, int rows, struct err *e)
{
    *b = (struct dedup_bands){.bands = bands, .rows = rows, .hash_bytes = sizeof(uint64_t)};
    b->sketch_bytes = ((size_t)bands * (size_t)rows + 63) / 64 * 64;
    b->band = calloc((size_t)bands, sizeof *b->band);
    return b->band ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d bands", bands);
}

void dedup_bands_free(struct dedup_bands *b)
{
    for (int k = 0; b->band && k < b->bands; k++) {
        free(b->band[k].bucket);
        free(b->band[k].member);
    }
    free(b->band);
    free(b->key);
    free(b->sketch);
    *b = (struct dedup_bands){0};
}

int dedup_bands_room(struct dedup_bands *b, size_t docs, struct err *e)
{
    size_t cap = b->cap + b->cap / 2;
    void *key, *sketch;

    if (docs > b->cap) {
        cap = docs > cap ? docs : cap;
        key = realloc(b->key, cap * (size_t)b->bands * sizeof *b->key);
        if (key)
            b->key = key;
        sketch = key ? realloc(b->sketch, cap * b->sketch_bytes) : NULL;
        if (!sketch)
            return err_set(e, ERR_NOMEM, "out of memory for the signatures of %zu documents", docs);
        b->sketch = sketch;
        b->cap = cap;
    }
    b->docs = docs;
    return 0;
}

struct band_record dedup_bands_at(struct dedup_bands *b, size_t doc)
{
    return (struct band_record){b->key + doc * (size_t)b->bands, b->sketch + doc * b->sketch_bytes};
}

size_t dedup_bands_bytes(const struct dedup_bands *b)
{
    return (size_t)b->bands * (sizeof *b->key + sizeof(uint32_t) + sizeof(struct bucket) / 2) + b->sketch_bytes;
}

/* ---- buckets ---- */

/* Finds band k's buckets; key[] of the members becomes their number. */
static int index_band(struct dedup_bands *b, int k, struct dedup_buckets *f, struct err *e)
{
    struct band *band = &b->band[k];
    uint64_t *key = b->key + k;

    f->key = key;
    dedup_buckets_find(f);
    band->buckets = f->buckets;
    band->bucket = malloc((f->buckets + 1) * sizeof *band->bucket);
    band->member = malloc((f->members + 1) * sizeof *band->member);
    if (!band->bucket || !band->member)
        return err_set(e, ERR_NOMEM, "out of memory for the buckets of %zu documents", b->docs);
    memcpy(band->member, f->member, f->members * sizeof *band->member);
    for (size_t d = 0; d < b->docs; d++)
        key[d * (size_t)b->bands] = BUCKET_NONE;
    for (size_t i = 0; i < f->buckets; i++) {
        band->bucket[i] = (struct bucket){f->start[i], f->start[i + 1] - f->start[i], 0, 0};
        for (uint32_t m = f->start[i]; m < f->start[i + 1]; m++)
            key[(size_t)f->member[m] * (size_t)b->bands] = i;
    }
    return 0;
}

struct index_work {
    struct dedup_bands *b;
    int next; /* band that is to be done */
};

/* Bands of which this thread finds the buckets. */
static int index_some(void *arg, int thread, struct err *e)
{
    struct index_work *w = arg;
    struct dedup_bands *b = w->b;
    struct dedup_buckets f = {.docs = b->docs, .stride = (size_t)b->bands};
    int rc = 0, k;

    (void)thread;
    f.room = malloc((2 * b->docs + 1) * sizeof *f.room);
    f.member = malloc((b->docs + 1) * sizeof *f.member);
    f.start = malloc((b->docs / 2 + 2) * sizeof *f.start);
    if (!f.room || !f.member || !f.start)
        rc = err_set(e, ERR_NOMEM, "out of memory for the buckets of %zu documents", b->docs);
    while (rc == 0 && (k = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < b->bands)
        rc = index_band(b, k, &f, e);
    free(f.room);
    free(f.member);
    free(f.start);
    return rc;
}

int dedup_bands_index(struct dedup_bands *b, int jobs, struct err *e)
{
    struct index_work w = {.b = b};

    if (!b->docs) /* no keys, no buckets */
        return 0;
    return pool_share(jobs < b->bands ? jobs : b->bands, index_some, &w, e);
}

/* ---- pairs ---- */

int dedup_bands_meet(const struct dedup_bands *b, uint32_t a, uint32_t other)
{
    const uint64_t *x = b->key + (size_t)a * (size_t)b->bands;
    const uint64_t *y = b->key + (size_t)other * (size_t)b->bands;

    for (int k = 0; k < b->bands; k++)
        if (x[k] == y[k] && x[k] != BUCKET_NONE)
            return k;
    return -1;
}

static int agree(const struct dedup_bands *b, const uint8_t *x, const uint8_t *y)
{
    int places = 0;

    for (size_t i = 0; i < b->sketch_bytes; i += 64) {
        uint8_t some = 0;
        for (int j = 0; j < 64; j++)
            some += x[i + j] == y[i + j];
        places += some;
    }
    return places - (int)(b->sketch_bytes - (size_t)b->bands * (size_t)b->rows);
}

int dedup_bands_agree(const struct dedup_bands *b, uint32_t a, uint32_t other)
{
    return agree(b, b->sketch + (size_t)a * b->sketch_bytes, b->sketch + (size_t)other * b->sketch_bytes);
}

/* Of places in which the hashes differ one in 256 agrees all the same. */
double dedup_bands_estimate(const struct dedup_bands *b, const uint8_t *x, const uint8_t *y)
{
    double share = (double)agree(b, x, y) / (b->bands * b->rows), similarity = (share - 1. / 256) / (1 - 1. / 256);

    return similarity > 0 ? similarity : 0;
}

int dedup_bands_least(const struct dedup_bands *b, double threshold)
{
    int n = b->bands * b->rows, k = 0;
    double sum = 0;

    if (threshold >= 1)
        return n;
    for (; k <= n; k++) {
        sum += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) +
                   k * log(threshold) + (n - k) * log1p(-threshold));
        if (sum >= 1e-6)
            break;
    }
    return k;
}
