/* curate/language/fasttext_model.h -- the inside of a fastText model, for curate/fasttext*.c. */
#ifndef CURATE_FASTTEXT_MODEL_H
#define CURATE_FASTTEXT_MODEL_H

#include "base/file.h"
#include "curate/language/fasttext.h"

enum fasttext_loss { FASTTEXT_HS = 1, FASTTEXT_NS, FASTTEXT_SOFTMAX, FASTTEXT_OVA };

/* Points into the file: numbers are little-endian and lie at any address. */
struct fasttext_matrix {
    int64_t rows;
    int cols;
    const uint8_t *dense; /* rows x cols floats; NULL: quantised */
    /* A row is n_sub codes, each a centroid of sub floats (the last: last floats); times
     * its norm if there are norms. */
    const uint8_t *codes, *centroids, *norm_codes, *norms;
    int n_sub, sub, last;
};

/* Open addressing; id < 0: free. */
struct fasttext_slot {
    uint32_t key;
    int32_t id;
};
struct fasttext_table {
    struct fasttext_slot *slot;
    uint32_t mask;
};

struct fasttext {
    struct file_map map;
    char *name;
    int dim, minn, maxn, word_ngrams, loss;
    uint32_t bucket;
    uint64_t bucket_inverse; /* for the remainder by bucket */
    int n_words, n_labels;
    struct span *entry;      /* words, then labels */
    struct fasttext_table words, kept; /* by FNV-1a; bucket -> row behind the words */
    bool pruned;             /* only the buckets in kept have rows */
    uint64_t *maybe;         /* bits by the scattered bucket: 0 where kept has none */
    uint32_t maybe_mask;
    struct fasttext_matrix input;
    float *output;           /* dim x n_labels: the transpose of the file's */
    int32_t (*tree)[2];      /* the children of node n_labels + i; hierarchical softmax */
    float sigmoid[513];
};

/* FNV-1a of fastText: bytes are signed there. */
static inline uint32_t fasttext_hash_byte(uint32_t h, char c)
{
    return (h ^ (uint32_t)(int32_t)(int8_t)c) * 16777619u;
}
#define FASTTEXT_HASH 2166136261u

/* Where a bucket begins to look for its slot. */
static inline uint32_t fasttext_scatter(uint32_t bucket)
{
    return (uint32_t)(bucket * 0x9E3779B97F4A7C15ULL >> 32);
}

static inline float fasttext_f32(const uint8_t *p, int64_t i)
{
    float f;

    memcpy(&f, p + 4 * i, 4);
    return f;
}

/* The rows of a token seen before, for the many that come again. */
enum { FASTTEXT_TOKEN_MAX = 22, FASTTEXT_ROWS_MAX = 32, FASTTEXT_CACHE = 4096 };
struct fasttext_token {
    uint32_t hash;
    uint8_t n, n_rows; /* n 0: free */
    char p[FASTTEXT_TOKEN_MAX];
    uint32_t row[FASTTEXT_ROWS_MAX];
};

/* The entry of a token, words and labels alike; -1: there is none. */
static inline int32_t fasttext_find(const struct fasttext *m, struct span token, uint32_t h)
{
    for (uint32_t i = h;; i++) {
        const struct fasttext_slot *s = &m->words.slot[i & m->words.mask];
        if (s->id < 0)
            return -1;
        if (s->key == h && span_eq(m->entry[s->id], token))
            return s->id;
    }
}

/* Adds row i of a matrix to x. */
void fasttext_add_row(const struct fasttext_matrix *m, int64_t i, float *x);
#endif
