/* Rank files: from the ranks of tokens to pairs. */
#include <stdlib.h>

#include "tokenize/bpe_pairs.h"

enum { TOGETHER = 64 };

/* ---- the pairs, from short tokens to long ones ---- */

struct ranked {
    const char *p;
    uint32_t n, id;
};

static int longer(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The bytes of a token of the model. */
static struct span token_of(const struct vocab *v, uint32_t id)
{
    return vocab_is_added(v, id) ? (struct span){NULL, 0} : vocab_get(v, id);
}

/* The model's tokens of two bytes and more, by length and then by id; NULL: out of memory. */
static struct ranked *by_length(const struct vocab *v, size_t *n)
{
    struct ranked *r = malloc(((size_t)v->n + 1) * sizeof *r);
    size_t at[BPE_SHORT + 3] = {0}; /* where tokens of a length begin; longer than BPE_SHORT: the last but one */

    for (uint32_t id = 0; r && id < v->n; id++) {
        size_t len = token_of(v, id).n;
        at[(len <= BPE_SHORT ? len : BPE_SHORT + 1) + 1] += len > 1;
    }
    for (size_t i = 1; i < sizeof at / sizeof *at; i++)
        at[i] += at[i - 1];
    *n = at[BPE_SHORT + 2];
    for (uint32_t id = 0; r && id < v->n; id++) {
        struct span s = token_of(v, id);
        if (s.n > 1)
            r[at[s.n <= BPE_SHORT ? s.n : BPE_SHORT + 1]++] = (struct ranked){s.p, (uint32_t)s.n, id};
    }
    if (r)
        qsort(r + at[BPE_SHORT], *n - at[BPE_SHORT], sizeof *r, longer);
    return r;
}

static int add_pair(struct bpe *b, uint32_t left, uint32_t right, uint32_t id, struct err *e)
{
    uint32_t other;

    if (b->dense && bpe_pair_rank(b, left, right, &other) != BPE_NO_RANK)
        return 0;
    if (b->dense && !bpe_dense_put(b, left, right, id))
        TRY(bpe_dense_undo(b, e));
    b->n += b->dense != NULL;
    return b->dense ? 0 : bpe_add_merge(b, left, right, id, id, e);
}

/* A token, and what merging makes of it without its pair.  Wherever two neighbours have its bytes, these were joined as
 * here, where nothing is around them; so there is one pair at most. */
static int learn(struct bpe *b, const struct ranked *r, const uint32_t *ids, size_t n, struct err *e)
{
    struct bpe_byte_pair *bytes = &b->byte_pairs[(uint8_t)r->p[0] << 8 | (uint8_t)r->p[1]];

    if (n != 2) {
        b->unreached |= n != 1 && !bpe_is_ascii((struct span){r->p, r->n});
        return 0;
    }
    if (r->n == 2 && bytes->rank == BPE_NO_RANK)
        *bytes = (struct bpe_byte_pair){r->id, r->id};
    return add_pair(b, ids[0], ids[1], r->id, e);
}

/* The first of n tokens: as many as have one length and are encoded at once.  Returns how many, or an error. */
static int64_t learn_some(struct bpe *b, const struct ranked *r, size_t n, struct err *e)
{
    uint32_t ids[TOGETHER][BPE_SHORT];
    struct bpe_word w[TOGETHER];
    size_t k = 0;

    for (; k < n && k < TOGETHER && r[k].n == r[0].n; k++)
        w[k] = (struct bpe_word){.p = (const uint8_t *)r[k].p, .ids = ids[k], .n = r[k].n};
    for (size_t i = k; i < n && i < 2 * TOGETHER; i++)
        __builtin_prefetch(r[i].p);
    bpe_encode_words(b, w, k);
    for (size_t i = 0; i < k; i++)
        TRY(learn(b, &r[i], ids[i], w[i].count, e));
    return (int64_t)k;
}

static int learn_long(struct bpe *b, const struct ranked *r, struct bpe_scratch *scratch, struct buf *ids, struct err *e)
{
    uint32_t *at;
    int64_t n;

    buf_clear(ids);
    if (buf_reserve(ids, r->n * sizeof *at) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    at = (uint32_t *)(void *)ids->p;
    n = bpe_encode(b, scratch, (const uint8_t *)r->p, r->n, at);
    return n < 0 ? err_set(e, ERR_NOMEM, "out of memory for merges") : learn(b, r, at, (size_t)n, e);
}

/* Without tokens that have bytes without a token: nothing is encoded to these. */
static size_t only_encoded(const struct bpe *b, struct ranked *r, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (bpe_has_bytes(b, (const uint8_t *)r[i].p, r[i].n))
            r[k++] = r[i];
    return k;
}

int bpe_add_ranks(struct bpe *b, const struct vocab *v, struct err *e)
{
    struct bpe_scratch scratch = {0};
    struct buf ids = {0};
    size_t n;
    struct ranked *r = by_length(v, &n);
    int64_t rc = r ? bpe_byte_pairs_begin(b, e) : err_set(e, ERR_NOMEM, "out of memory for merges");

    if (rc == 0 && v->n <= BPE_DENSE_IDS)
        rc = bpe_dense_begin(b, (uint32_t)n, e);
    if (rc == 0 && b->lacks_bytes)
        n = only_encoded(b, r, n);
    for (size_t i = 0; i < n && rc >= 0; i += (size_t)rc) {
        if (r[i].n <= BPE_SHORT)
            rc = learn_some(b, r + i, n - i, e);
        else if ((rc = learn_long(b, r + i, &scratch, &ids, e)) == 0)
            rc = 1;
    }
    b->ranked = true;
    if (b->dense)
        bpe_dense_only(b);
    bpe_scratch_free(&scratch);
    buf_free(&ids);
    free(r);
    return rc < 0 ? (int)rc : 0;
}

/* ---- long pieces that are taken apart ---- */

int bpe_check_cuts(struct bpe *b, const struct vocab *v, struct err *e)
{
    struct bpe_scratch scratch = {0};
    struct buf ids = {0};
    int rc = b->unreached;

    for (uint32_t id = 0; id < v->n && rc == 0 && !b->ranked; id++) {
        struct span s = vocab_get(v, id);
        const uint8_t *p = (const uint8_t *)s.p;
        if (bpe_is_ascii(s) || s.n < 2 || vocab_is_added(v, id) || !bpe_has_bytes(b, p, s.n))
            continue;
        buf_clear(&ids);
        if (buf_reserve(&ids, s.n * sizeof(uint32_t)) < 0)
            rc = ERR_NOMEM;
        else if (bpe_encode(b, &scratch, p, s.n, (uint32_t *)(void *)ids.p) != 1)
            rc = 1;
    }
    if (rc == 1)
        bpe_crossings_free(&b->crossings);
    bpe_scratch_free(&scratch);
    buf_free(&ids);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for merges") : 0;
}
