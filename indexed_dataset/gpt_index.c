#include "indexed_dataset/gpt_index.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/rng.h"

static int no_memory(struct err *e, uint64_t n)
{
    return err_set(e, ERR_NOMEM, "out of memory for an index of %" PRIu64 " samples", n);
}

static int count_tokens(struct gpt_index *g, const struct idx *x, uint64_t begin, uint64_t end,
                        struct err *e)
{
    for (uint64_t i = begin; i < end; i++) {
        const void *p = NULL;
        int32_t n = 0;
        TRY(idx_sequence(x, i, &p, &n, e));
        g->tokens_per_epoch += (uint64_t)n;
    }
    return 0;
}

/* How many epochs, and whether the last is shuffled on its own: exactly if less than
 * 80 % of it is needed.  Returns the samples before the last epoch. */
static uint64_t plan_epochs(struct gpt_index *g, uint64_t seq, int64_t samples)
{
    uint64_t tok = g->tokens_per_epoch, need, sans;

    g->epochs = 1;
    if (samples < 0)
        return 0;
    need = (uint64_t)samples * seq + 1;
    if (need > tok)
        g->epochs = (need + tok - 1) / tok;
    if (g->epochs == 1)
        return 0;
    sans = ((g->epochs - 1) * tok - 1) / seq;
    g->separate_last_epoch =
        (uint64_t)samples - sans < (uint64_t)(0.80 * (double)((tok - 1) / seq));
    return sans;
}

static int build_documents(struct gpt_index *g, uint64_t begin, uint64_t end, struct rng_mt *r,
                           struct err *e)
{
    uint64_t n = end - begin, first;
    union { int32_t *i; uint32_t *u; } a;

    if (n > INT32_MAX || g->epochs > UINT64_MAX / 4 / n)
        return err_set(e, ERR_LIMIT, "%" PRIu64 " sequences in %" PRIu64 " epochs are too many", n, g->epochs);
    g->n_documents = n * g->epochs;
    a.i = g->document = malloc(g->n_documents * sizeof *g->document);
    if (!a.i)
        return no_memory(e, g->n_documents);
    for (uint64_t i = 0; i < g->n_documents; i++)
        a.i[i] = (int32_t)(begin + i % n);
    first = g->separate_last_epoch ? g->n_documents - n : g->n_documents;
    rng_mt_shuffle_u32(r, a.u, first);
    if (first < g->n_documents)
        rng_mt_shuffle_u32(r, a.u + first, n);
    return 0;
}

/* Walks seq + 1 tokens and steps back one, n_samples times. */
static int build_samples(struct gpt_index *g, const struct idx *x, uint64_t seq, struct err *e)
{
    uint64_t doc = 0, offset = 0;

    g->n_samples = (g->epochs * g->tokens_per_epoch - 1) / seq;
    g->sample = malloc((g->n_samples + 1) * 2 * sizeof *g->sample);
    if (!g->sample)
        return no_memory(e, g->n_samples);
    g->sample[0] = g->sample[1] = 0;
    for (uint64_t s = 1; s <= g->n_samples; s++) {
        uint64_t left = seq + 1;
        for (;;) {
            uint64_t have = (uint64_t)idx_length(x, (uint64_t)g->document[doc]) - offset;
            if (left <= have) {
                offset += left - 1;
                break;
            }
            left -= have;
            doc++; /* there is one: the samples were counted from the tokens */
            offset = 0;
        }
        g->sample[2 * s] = doc;
        g->sample[2 * s + 1] = offset;
    }
    return 0;
}

/* numpy shuffles u32 and i64 indices with the same draws. */
static int build_shuffle(struct gpt_index *g, uint64_t sans, struct rng_mt *r, struct err *e)
{
    uint64_t first = g->separate_last_epoch ? sans : g->n_samples;

    g->shuffle = malloc((g->n_samples + 1) * sizeof *g->shuffle);
    if (!g->shuffle)
        return no_memory(e, g->n_samples);
    for (uint64_t i = 0; i < g->n_samples; i++)
        g->shuffle[i] = i;
    rng_mt_shuffle_u64(r, g->shuffle, first);
    if (first < g->n_samples)
        rng_mt_shuffle_u64(r, g->shuffle + first, g->n_samples - first);
    return 0;
}

int gpt_index_build(struct gpt_index *g, const struct idx *x, uint64_t begin, uint64_t end,
                    int64_t seq_length, int64_t samples, uint32_t seed, struct err *e)
{
    struct rng_mt r;
    uint64_t sans, seq = (uint64_t)seq_length;
    int rc;

    *g = (struct gpt_index){0};
    if (seq_length < 1 || samples > INT64_MAX / 2 / seq_length)
        return err_set(e, ERR_ARG, "%" PRId64 " samples of %" PRId64 " tokens", samples, seq_length);
    TRY(count_tokens(g, x, begin, end, e));
    if (g->tokens_per_epoch < seq + 1 && (samples < 0 || g->tokens_per_epoch < 2))
        return err_set(e, ERR_ARG, "'%s' has %" PRIu64 " tokens in sequences %" PRIu64 " to %" PRIu64
                       ": not one sample of %" PRIu64, idx_prefix(x), g->tokens_per_epoch, begin, end,
                       seq + 1);
    sans = plan_epochs(g, seq, samples);
    rng_mt_seed(&r, seed);
    rc = build_documents(g, begin, end, &r, e);
    if (rc == 0)
        rc = build_samples(g, x, seq, e);
    if (rc == 0)
        rc = build_shuffle(g, sans, &r, e);
    if (rc < 0)
        gpt_index_free(g);
    return rc;
}

void gpt_index_free(struct gpt_index *g)
{
    free(g->document);
    free(g->sample);
    free(g->shuffle);
    *g = (struct gpt_index){0};
}

int gpt_index_get(const struct gpt_index *g, const struct idx *x, uint64_t s,
                  int64_t seq_length, int32_t *out, struct err *e)
{
    int64_t have = 0, want = seq_length + 1;
    uint64_t doc, offset;

    if (s >= g->n_samples)
        return err_set(e, ERR_ARG, "there is no sample %" PRIu64 " of %" PRIu64, s, g->n_samples);
    doc = g->sample[2 * g->shuffle[s]];
    offset = g->sample[2 * g->shuffle[s] + 1];
    while (have < want) {
        uint64_t seq = (uint64_t)g->document[doc++];
        int64_t n = idx_length(x, seq) - (int64_t)offset;
        if (n > want - have)
            n = want - have;
        TRY(idx_tokens_i32(x, seq, (int64_t)offset, n, out + have, e));
        have += n;
        offset = 0;
    }
    return 0;
}
