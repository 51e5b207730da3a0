/* The three arrays of a GPTDataset.
 *
 * Documents are shuffled together with their lengths, as pairs of 64 bits: an exchange on a large
 * array costs a cache line, whatever lies in it, and afterwards the documents are laid end to end in one
 * sequential pass, where looking lengths up in shuffled order would cost a line more for each. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/rng.h"
#include "indexed_dataset/gpt_index.h"

enum { FEW = 1 << 16 /* not worth a thread */ };

struct build {
    struct gpt_index *g;
    const struct gpt_plan *p;
    struct npy pairs; /* length << 32 | document */
    struct rng_mt rng;
};

/* Of the n pairs or samples how many are shuffled before the rest. */
static size_t documents_head(const struct gpt_plan *p)
{
    return (size_t)((p->epochs - p->separate) * p->docs);
}

static void shuffle_documents(struct build *b, struct rng_mt *r)
{
    const struct gpt_plan *p = b->p;
    size_t n = (size_t)b->pairs.rows, docs = (size_t)p->docs, head = documents_head(p);
    uint64_t *pair = b->pairs.own;

    for (size_t i = 0; i < docs; i++) {
        uint64_t d = (uint64_t)p->first + i;
        pair[i] = (uint64_t)(uint32_t)idx_length(b->g->x, d) << 32 | d;
    }
    for (size_t i = docs; i < n; i++)
        pair[i] = pair[i - docs];
    rng_mt_shuffle_u64(r, pair, head);
    rng_mt_shuffle_u64(r, pair + head, n - head);
}

static void shuffle_samples(struct build *b, struct rng_mt *r)
{
    const struct gpt_plan *p = b->p;
    size_t head = (size_t)p->head, n = (size_t)p->n;

    if (p->shuffle_type == NPY_U4) {
        uint32_t *s = b->g->shuffle.own;
        for (size_t i = 0; i < n; i++)
            s[i] = (uint32_t)i;
        rng_mt_shuffle_u32(r, s, head);
        rng_mt_shuffle_u32(r, s + head, n - head);
    } else {
        uint64_t *s = b->g->shuffle.own;
        for (size_t i = 0; i < n; i++)
            s[i] = i;
        rng_mt_shuffle_u64(r, s, head);
        rng_mt_shuffle_u64(r, s + head, n - head);
    }
}

/* Thread 1 draws what the documents draw, and throws it away: that costs a fraction of shuffling. */
static void shuffle(void *arg, int thread)
{
    struct build *b = arg;
    struct rng_mt r = b->rng;

    if (thread == 0) {
        shuffle_documents(b, &r);
    } else {
        size_t head = documents_head(b->p);
        rng_mt_skip_shuffle(&r, head);
        rng_mt_skip_shuffle(&r, (size_t)b->pairs.rows - head);
        shuffle_samples(b, &r);
    }
}

static inline void put_sample(struct npy *a, int64_t i, int64_t document, int64_t token)
{
    if (a->type == NPY_I4) {
        ((int32_t *)a->own)[2 * i] = (int32_t)document;
        ((int32_t *)a->own)[2 * i + 1] = (int32_t)token;
    } else {
        ((int64_t *)a->own)[2 * i] = document;
        ((int64_t *)a->own)[2 * i + 1] = token;
    }
}

/* Sample k begins at token k * seq of the documents laid end to end: the last token of sample k - 1 is the
 * first of sample k.  On the way the pairs become documents, in their own place. */
static int place_samples(struct build *b, int64_t seq, struct err *e)
{
    struct npy *sample = &b->g->sample;
    const char *pair = b->pairs.own;
    char *document = b->pairs.own;
    int64_t at = 0, k = 1, next = seq, n = b->p->n;

    put_sample(sample, 0, 0, 0);
    for (int64_t i = 0; i < b->pairs.rows; i++) {
        uint64_t v;
        memcpy(&v, pair + 8 * i, 8);
        uint32_t d = (uint32_t)v;
        int64_t end = at + (int64_t)(v >> 32);
        memcpy(document + 4 * i, &d, 4);
        for (; next < end && k <= n; k++, next += seq)
            put_sample(sample, k, i, next - at);
        at = end;
    }
    return k == n + 1 ? 0 : err_set(e, ERR_FORMAT, "'%s' changed while its samples were counted", idx_prefix(b->g->x));
}

/* The documents take half the room of the pairs. */
static void keep_documents(struct build *b)
{
    void *half = realloc(b->pairs.own, (size_t)b->pairs.rows * 4 + 1);

    b->g->document = (struct npy){.type = NPY_I4, .rows = b->pairs.rows, .own = b->pairs.own};
    if (half)
        b->g->document.own = half;
    b->g->document.data = b->g->document.own;
    b->pairs.own = NULL;
}

int gpt_build(struct gpt_index *g, const struct gpt_plan *p, const struct gpt_conf *c, struct err *e)
{
    struct build b = {.g = g, .p = p};
    int rc;

    rng_mt_seed(&b.rng, c->seed);
    rc = npy_new(&b.pairs, NPY_I8, p->epochs * p->docs, 0, e);
    if (rc == 0)
        rc = npy_new(&g->shuffle, p->shuffle_type, p->n, 0, e);
    if (rc == 0 && (c->jobs < 2 || b.pairs.rows < FEW || pool_run(2, shuffle, &b, e) < 0)) {
        shuffle_documents(&b, &b.rng);
        shuffle_samples(&b, &b.rng);
    }
    if (rc == 0)
        rc = npy_new(&g->sample, p->sample_type, p->n + 1, 2, e);
    if (rc == 0)
        rc = place_samples(&b, c->seq_length, e);
    if (rc == 0)
        keep_documents(&b);
    npy_free(&b.pairs);
    return rc;
}
