#include "curate/dedup/dedup_bands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/pool.h"

/* Keys equal to BUCKET_NONE would read as "no bucket". */
static uint64_t band_key(const uint64_t *sig, int rows)
{
    struct span s = {(const char *)sig, (size_t)rows * sizeof *sig};
    uint64_t key = hash_xxh3_64(s);

    return key == BUCKET_NONE ? 0 : key;
}

int dedup_bands_init(struct dedup_bands *b, int bands, int rows, struct err *e)
{
    *b = (struct dedup_bands){.bands = bands, .rows = rows};
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

void dedup_bands_record(const struct dedup_bands *b, const uint64_t *sig, struct band_record *r)
{
    size_t n = (size_t)b->bands * (size_t)b->rows;

    for (int k = 0; k < b->bands; k++)
        r->key[k] = band_key(sig + (size_t)k * (size_t)b->rows, b->rows);
    for (size_t i = 0; i < n; i++)
        r->sketch[i] = (uint8_t)sig[i];
    memset(r->sketch + n, 0, b->sketch_bytes - n);
}

int dedup_bands_room(struct dedup_bands *b, size_t docs, struct err *e)
{
    size_t cap = b->cap + b->cap / 2;
    void *key, *sketch;

    if (docs > b->cap) {
        cap = docs > cap ? docs : cap;
        key = realloc(b->key, cap * (size_t)b->bands * sizeof *b->key);
        b->key = key ? key : b->key;
        sketch = key ? realloc(b->sketch, cap * b->sketch_bytes) : NULL;
        b->sketch = sketch ? sketch : b->sketch;
        if (!sketch)
            return err_set(e, ERR_NOMEM, "out of memory for the signatures of %zu documents", docs);
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

struct pair {
    uint64_t key;
    uint32_t doc;
};

/* One pass of a stable radix sort on 11 bits. */
static void sort_pass(const struct pair *from, struct pair *to, size_t n, int shift)
{
    size_t count[2048] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        count[from[i].key >> shift & 2047]++;
    for (int d = 0; d < 2048; d++) {
        size_t c = count[d];
        count[d] = sum;
        sum += c;
    }
    for (size_t i = 0; i < n; i++)
        to[count[from[i].key >> shift & 2047]++] = from[i];
}

/* Sorts by key; documents with equal keys stay in order.  The result is in a. */
static void sort_pairs(struct pair *a, struct pair *tmp, size_t n)
{
    for (int pass = 0; pass < 6; pass += 2) {
        sort_pass(a, tmp, n, pass * 11);
        sort_pass(tmp, a, n, (pass + 1) * 11);
    }
}

/* From sorted pairs to the band's buckets; key[] of the members becomes the number. */
static int take_buckets(struct dedup_bands *b, int k, const struct pair *p, size_t n)
{
    struct band *band = &b->band[k];
    size_t buckets = 0, members = 0;

    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && p[j].key == p[i].key; j++)
            ;
        buckets += j - i > 1;
        members += j - i > 1 ? j - i : 0;
    }
    band->bucket = malloc((buckets ? buckets : 1) * sizeof *band->bucket);
    band->member = malloc((members ? members : 1) * sizeof *band->member);
    if (!band->bucket || !band->member)
        return ERR_NOMEM;
    members = 0;
    for (size_t i = 0, j; i < n; i = j) {
        uint64_t number = BUCKET_NONE;
        for (j = i + 1; j < n && p[j].key == p[i].key; j++)
            ;
        if (j - i > 1) {
            number = band->buckets++;
            band->bucket[number] = (struct bucket){(uint32_t)members, (uint32_t)(j - i), 0, 0};
        }
        for (size_t m = i; m < j; m++) {
            b->key[(size_t)p[m].doc * (size_t)b->bands + (size_t)k] = number;
            if (j - i > 1)
                band->member[members++] = p[m].doc;
        }
    }
    return 0;
}

struct index_work {
    struct dedup_bands *b;
    int next; /* band that is to be done */
    int failed;
};

static void index_bands(void *arg, int thread)
{
    struct index_work *w = arg;
    struct dedup_bands *b = w->b;
    struct pair *p = malloc(2 * (b->docs ? b->docs : 1) * sizeof *p);
    int k;

    (void)thread;
    while (p && (k = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < b->bands) {
        size_t n = 0;
        for (size_t i = 0; i < b->docs; i++) {
            uint64_t key = b->key[i * (size_t)b->bands + (size_t)k];
            if (key != BUCKET_NONE)
                p[n++] = (struct pair){key, (uint32_t)i};
        }
        sort_pairs(p, p + b->docs, n);
        if (take_buckets(b, k, p, n) < 0)
            break;
    }
    if (!p || k < b->bands)
        __atomic_store_n(&w->failed, 1, __ATOMIC_RELAXED);
    free(p);
}

int dedup_bands_index(struct dedup_bands *b, int jobs, struct err *e)
{
    struct index_work w = {.b = b};

    pool_run(jobs < b->bands ? jobs : b->bands, index_bands, &w, NULL);
    if (w.failed)
        return err_set(e, ERR_NOMEM, "out of memory for the buckets of %zu documents", b->docs);
    return 0;
}

/* ---- pairs ---- */

bool dedup_bands_first(const struct dedup_bands *b, uint32_t a, uint32_t other, int k)
{
    const uint64_t *x = b->key + (size_t)a * (size_t)b->bands;
    const uint64_t *y = b->key + (size_t)other * (size_t)b->bands;

    for (int i = 0; i < k; i++)
        if (x[i] == y[i] && x[i] != BUCKET_NONE)
            return false;
    return true;
}

int dedup_bands_agree(const struct dedup_bands *b, uint32_t a, uint32_t other)
{
    const uint8_t *x = b->sketch + (size_t)a * b->sketch_bytes;
    const uint8_t *y = b->sketch + (size_t)other * b->sketch_bytes;
    int agree = 0;

    for (size_t i = 0; i < b->sketch_bytes; i += 64) {
        uint8_t some = 0;
        for (int j = 0; j < 64; j++)
            some += x[i + j] == y[i + j];
        agree += some;
    }
    return agree - (int)(b->sketch_bytes - (size_t)b->bands * (size_t)b->rows);
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
