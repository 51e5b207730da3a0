#include "indexed_dataset/gpt_index.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "indexed_dataset/loss_mask.h"

static int too_large(struct err *e)
{
    return err_set(e, ERR_ARG, "so many samples that their number overflows");
}

static int plan_epochs(struct gpt_plan *p, int64_t samples, int64_t seq, struct err *e)
{
    int64_t want, all;

    p->epochs = 1;
    if (samples >= 0) {
        if (__builtin_mul_overflow(samples, seq, &want) || __builtin_add_overflow(want, 1, &want))
            return too_large(e);
        p->epochs = want / p->tokens + (want % p->tokens != 0);
    }
    if (p->epochs < 1)
        p->epochs = 1;
    if (p->epochs > INT32_MAX || __builtin_mul_overflow(p->epochs, p->tokens, &all))
        return too_large(e);
    p->n = p->head = (all - 1) / seq;
    if (p->epochs > 1) {
        int64_t sans = ((p->epochs - 1) * p->tokens - 1) / seq;
        int64_t per_epoch = (p->tokens - 1) / seq;
        p->separate = samples - sans < (int64_t)(0.80 * (double)per_epoch);
        if (p->separate)
            p->head = sans;
    }
    return 0;
}

static int make_plan(struct gpt_plan *p, const struct idx *x, const struct gpt_index_conf *c, struct err *e)
{
    int64_t n = (int64_t)idx_n_sequences(x), end = n, longest = 0;

    *p = (struct gpt_plan){0};
    if (n > INT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "'%s' has %" PRId64 " sequences; their numbers are 32 bits wide",
                       c->path, n);
    if (c->c->split) { /* rint: half to even, as Python rounds */
        p->first = (int64_t)rint(c->lo[c->split] * (double)n);
        end = (int64_t)rint(c->hi[c->split] * (double)n);
    }
    p->docs = end - p->first;
    for (int64_t i = p->first; i < end; i++) {
        int32_t len = idx_length(x, (uint64_t)i);
        if (len < 0)
            return err_set(e, ERR_FORMAT, "'%s.idx': sequence %" PRId64 " has a length of %d", c->path, i, len);
        p->tokens += len;
    }
    if (p->tokens == 0)
        return 0;
    TRY(plan_epochs(p, c->samples, c->c->seq_length, e));
    /* Megatron looks at the longest of all sequences, but none is beyond 31 bits. */
    longest = p->epochs * p->docs;
    p->sample_type = longest <= INT32_MAX ? NPY_I4 : NPY_I8;
    p->shuffle_type = p->n >= (int64_t)UINT32_MAX - 1 ? NPY_I8 : NPY_U4;
    return 0;
}

/* ---- cache ---- */

static void free_arrays(struct gpt_index *g)
{
    npy_free(&g->document);
    npy_free(&g->sample);
    npy_free(&g->shuffle);
}

static int load(struct gpt_index *g, const struct gpt_plan *p, const char *dir, const char *name, struct err *e)
{
    int rc = gpt_cache_load(dir, name, "document_index", &g->document, NPY_I4, p->epochs * p->docs, 0, e);

    if (rc == 0)
        rc = gpt_cache_load(dir, name, "sample_index", &g->sample, p->sample_type, p->n + 1, 2, e);
    if (rc == 0)
        rc = gpt_cache_load(dir, name, "shuffle_index", &g->shuffle, p->shuffle_type, p->n, 0, e);
    if (rc < 0)
        free_arrays(g);
    return rc;
}

static int save(const struct gpt_index *g, const char *dir, const char *name, struct err *e)
{
    TRY(gpt_cache_make(dir, e));
    TRY(gpt_cache_save(dir, name, "document_index", &g->document, e));
    TRY(gpt_cache_save(dir, name, "sample_index", &g->sample, e));
    TRY(gpt_cache_save(dir, name, "shuffle_index", &g->shuffle, e));
    return gpt_cache_describe(dir, name, buf_span(&g->description), e);
}

static int build_and_save(struct gpt_index *g, const struct gpt_plan *p, const struct gpt_conf *c, const char *name,
                          struct err *e)
{
    struct err why;

    TRY(gpt_build(g, p, c, e));
    if (!c->cache)
        return 0;
    if (save(g, c->cache, name, &why) < 0) {
        log_msg(LOG_WARN, "indices not cached: %s", why.msg);
        return 0;
    }
    free_arrays(g); /* the mapped copy is shared among processes */
    return load(g, p, c->cache, name, e);
}

/* From the cache, or built and put there, by one process while others wait.  A cache that does not fit is replaced; one
 * that cannot be written (another process is at it, the disk is full) is done without. */
static int load_or_build(struct gpt_index *g, const struct gpt_plan *p, const struct gpt_conf *c,
                         enum gpt_split split, struct err *e)
{
    const char *prefix = idx_prefix(g->x);
    char name[GPT_NAME_MAX];
    struct err why;
    int rc, lock = -1;

    gpt_cache_name(name, buf_span(&g->description), "GPTDataset", split);
    if (c->cache && gpt_cache_has(c->cache, name, &prefix, 1)) {
        if (load(g, p, c->cache, name, &why) == 0)
            return 0;
        log_msg(LOG_WARN, "%s; building it anew", why.msg);
    }
    if (c->cache)
        lock = gpt_cache_lock(c->cache, name);
    if (lock >= 0 && gpt_cache_has(c->cache, name, &prefix, 1) && load(g, p, c->cache, name, &why) == 0) {
        gpt_cache_unlock(c->cache, name, lock); /* another process has built them meanwhile */
        return 0;
    }
    rc = build_and_save(g, p, c, name, e);
    gpt_cache_unlock(c->cache, name, lock);
    return rc;
}
int gpt_index_open(struct gpt_index *g, const struct gpt_index_conf *c, bool *none, struct err *e)
{
    struct gpt_plan p;
    int rc;

    *g = (struct gpt_index){0};
    *none = false;
    TRY(idx_open(&g->x, c->path, e));
    rc = make_plan(&p, g->x, c, e);
    *none = rc == 0 && p.docs == 0;
    if (rc == 0 && !*none && p.tokens == 0)
        rc = err_set(e, ERR_ARG, "'%s': the sequences of the split have no tokens", c->path);
    if (rc == 0 && !*none)
        rc = loss_mask_open(&g->mask, g->x, e);
    if (rc == 0 && !*none)
        rc = gpt_describe(&g->description, c, 0, e);
    if (rc == 0 && !*none)
        rc = load_or_build(g, &p, c->c, c->split, e);
    g->n = p.n;
    if (rc < 0 || *none)
        gpt_index_close(g);
    return rc;
}

void gpt_index_close(struct gpt_index *g)
{
    free_arrays(g);
    idx_close(g->x);
    idx_close(g->mask);
    buf_free(&g->description);
    g->x = g->mask = NULL;
}

/* ---- reading ---- */

static int bad_index(const struct gpt_index *g, int64_t i, struct err *e)
{
    return err_set(e, ERR_FORMAT, "sample %" PRId64 " of '%s': its index does not fit the dataset; "
                   "remove the cached indices", i, idx_prefix(g->x));
}

/* Tokens [from, from + n) of a sequence, which are a sample's from `at` on. */
typedef int sequence_fn(void *arg, uint64_t sequence, int64_t from, int64_t n, int64_t at, struct err *e);

/* Calls fn for each sequence that sample i is cut from. */
static int each_sequence(const struct gpt_index *g, int64_t seq_length, int64_t i, sequence_fn *fn, void *arg, struct err *e)
{
    int64_t s, first, from, last, to, have = 0, want = seq_length + 1;

    if (i < 0 || i >= g->n)
        return err_set(e, ERR_ARG, "no sample %" PRId64 " of %" PRId64, i, g->n);
    s = npy_at(&g->shuffle, i);
    if (s < 0 || s >= g->n)
        return bad_index(g, i, e);
    first = npy_at(&g->sample, 2 * s);
    from = npy_at(&g->sample, 2 * s + 1);
    last = npy_at(&g->sample, 2 * s + 2);
    to = npy_at(&g->sample, 2 * s + 3);
    if (first < 0 || from < 0 || to < 0 || last < first || last >= g->document.rows)
        return bad_index(g, i, e);
    for (int64_t k = first; k <= last; k++, from = 0) {
        int64_t doc = npy_at(&g->document, k), n;
        if (doc < 0 || doc >= (int64_t)idx_n_sequences(g->x))
            return bad_index(g, i, e);
        n = (k == last ? to + 1 : idx_length(g->x, (uint64_t)doc)) - from;
        if (n < 0 || n > want - have || (n == 0 && k == last))
            return bad_index(g, i, e);
        TRY(fn(arg, (uint64_t)doc, from, n, have, e));
        have += n;
    }
    return have == want ? 0 : bad_index(g, i, e);
}

struct sample_copy {
    const struct idx *of; /* the dataset or its mask */
    int32_t *tokens;
};

static int copy_sequence(void *arg, uint64_t sequence, int64_t from, int64_t n, int64_t at, struct err *e)
{
    const struct sample_copy *c = arg;

    return idx_tokens_i32(c->of, sequence, from, n, c->tokens + at, e);
}

int gpt_index_get(const struct gpt_index *g, int64_t seq_length, int64_t i, int32_t *tokens, struct err *e)
{
    return each_sequence(g, seq_length, i, copy_sequence, &(struct sample_copy){g->x, tokens}, e);
}

int gpt_index_get_mask(const struct gpt_index *g, int64_t seq_length, int64_t i, int32_t *mask, struct err *e)
{
    if (g->mask)
        return each_sequence(g, seq_length, i, copy_sequence, &(struct sample_copy){g->mask, mask}, e);
    for (int64_t j = 0; j <= seq_length; j++)
        mask[j] = 1;
    return 0;
}

struct piece_call {
    struct sample_piece piece;
    sample_piece_fn *fn;
    void *arg;
};

static int call_piece(void *arg, uint64_t sequence, int64_t from, int64_t n, int64_t at, struct err *e)
{
    struct piece_call *c = arg;

    TRY(idx_document_of(c->piece.x, sequence, &c->piece.document, &c->piece.from, e));
    c->piece.from += from;
    c->piece.n = n;
    c->piece.at = at;
    return n ? c->fn(c->arg, &c->piece, e) : 0;
}

int gpt_index_pieces(const struct gpt_index *g, int part, int64_t seq_length, int64_t i, sample_piece_fn *fn, void *arg,
                     struct err *e)
{
    struct piece_call c = {{.x = g->x, .part = part}, fn, arg};

    return each_sequence(g, seq_length, i, call_piece, &c, e);
}
