#include "indexed_dataset/sft_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "indexed_dataset/loss_mask.h"

/* A dataset, of which these documents count. */
struct part {
    struct idx *x, *mask; /* mask NULL: all tokens have a loss */
    uint64_t first;       /* document */
    int64_t before, n;    /* number of its first one among all; how many */
};

struct sft_dataset {
    struct sft_conf conf;
    int32_t seq;
    bool shuffled;
    uint32_t seed;
    struct part *part;
    int parts;
    int64_t docs, cut;
    int64_t *order;  /* bfd, none: documents, sample after sample */
    int64_t *first;  /* (samples + 1): where in it a sample begins; wrapped: (docs + 1) the token at which each document does */
    int64_t n;       /* samples of an epoch */
    uint64_t *drawn; /* (n) those of the epoch at hand, in their order */
    int64_t epoch;   /* -1: none yet */
    int32_t *mask;   /* (seq) */
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for samples of documents");
}

/* ---- documents ---- */

static const struct part *part_of(const struct sft_dataset *d, int64_t doc)
{
    int k = 0;

    while (k + 1 < d->parts && doc >= d->part[k + 1].before)
        k++;
    return &d->part[k];
}

/* Its length in tokens, over its sequences. */
static int document_length(const struct sft_dataset *d, int64_t doc, int64_t *length, struct err *e)
{
    const struct part *p = part_of(d, doc);
    uint64_t first, end;

    *length = 0;
    TRY(idx_document(p->x, p->first + (uint64_t)(doc - p->before), &first, &end, e));
    for (uint64_t s = first; s < end; s++) {
        int32_t n = idx_length(p->x, s);

        if (n < 0)
            return err_set(e, ERR_FORMAT, "'%s.idx': sequence %" PRIu64 " has %" PRId32 " tokens", idx_prefix(p->x), s, n);
        *length += n;
    }
    return 0;
}

/* Tokens [from, from + n) of a document, and their mask. */
static int document_tokens(const struct sft_dataset *d, int64_t doc, int64_t from, int64_t n, int32_t *tokens, int32_t *mask,
                           struct err *e)
{
    const struct part *p = part_of(d, doc);
    uint64_t first, end;

    TRY(idx_document(p->x, p->first + (uint64_t)(doc - p->before), &first, &end, e));
    for (uint64_t s = first; s < end && n > 0; s++) {
        int64_t have = idx_length(p->x, s), take = have - from < n ? have - from : n;

        if (take > 0) {
            TRY(idx_tokens_i32(p->x, s, from, take, tokens, e));
            if (p->mask)
                TRY(idx_tokens_i32(p->mask, s, from, take, mask, e));
            for (int64_t i = 0; i < take && !p->mask; i++)
                mask[i] = 1;
            tokens += take;
            mask += take;
            n -= take;
        }
        from = take > 0 ? 0 : from - have;
    }
    return n ? err_set(e, ERR_FORMAT, "'%s': document %" PRId64 " ends early", idx_prefix(p->x), doc - p->before) : 0;
}

/* ---- opening ---- */

static int open_part(struct sft_dataset *d, const char *prefix, double lo, double hi, struct err *e)
{
    struct part *p = &d->part[d->parts];
    double all;

    TRY(idx_open(&p->x, prefix, e));
    d->parts++;
    TRY(loss_mask_open(&p->mask, p->x, e));
    all = (double)idx_n_documents(p->x);
    p->first = (uint64_t)llround(lo * all);
    p->before = d->docs;
    p->n = (int64_t)((uint64_t)llround(hi * all) - p->first);
    d->docs += p->n;
    return 0;
}

/* The lengths of all documents that are not empty, cut to a sample's, and their numbers in d->order; how many. */
static int measure(struct sft_dataset *d, int32_t *length, int64_t *n, struct err *e)
{
    *n = 0;
    for (int64_t i = 0; i < d->docs; i++) {
        int64_t have;

        TRY(document_length(d, i, &have, e));
        d->cut += have > d->seq;
        if (have == 0)
            continue;
        length[*n] = (int32_t)(have < d->seq ? have : d->seq);
        d->order[(*n)++] = i;
    }
    return 0;
}

/* bfd: packs, by the numbers of documents that are not empty, which order has. */
static int pack(struct sft_dataset *d, const int32_t *length, int64_t n, struct err *e)
{
    int64_t *packed = malloc((size_t)(n + 1) * sizeof *packed);
    int rc = packed ? sft_pack(length, n, d->seq, packed, d->first, &d->n, e) : no_memory(e);

    for (int64_t i = 0; rc == 0 && i < n; i++)
        packed[i] = d->order[packed[i]];
    if (rc == 0)
        memcpy(d->order, packed, (size_t)n * sizeof *packed);
    free(packed);
    return rc;
}

static int lay_out_whole(struct sft_dataset *d, struct err *e)
{
    int32_t *length = malloc((size_t)(d->docs + 1) * sizeof *length);
    int64_t n = 0;
    int rc = length ? measure(d, length, &n, e) : no_memory(e);

    if (rc == 0 && d->conf.packing == SFT_BFD) {
        rc = pack(d, length, n, e);
    } else if (rc == 0) {
        d->n = n;
        for (int64_t i = 0; i <= n; i++)
            d->first[i] = i;
    }
    free(length);
    return rc;
}

static int lay_out_wrapped(struct sft_dataset *d, struct err *e)
{
    d->first[0] = 0;
    for (int64_t i = 0; i < d->docs; i++) {
        int64_t length;

        TRY(document_length(d, i, &length, e));
        d->first[i + 1] = d->first[i] + length;
    }
    d->n = (d->first[d->docs] + d->seq - 1) / d->seq;
    return 0;
}

static int lay_out(struct sft_dataset *d, struct err *e)
{
    d->first = malloc((size_t)(d->docs + 1) * sizeof *d->first);
    d->order = malloc((size_t)(d->docs + 1) * sizeof *d->order);
    d->mask = malloc((size_t)d->seq * sizeof *d->mask);
    if (!d->first || !d->order || !d->mask)
        return no_memory(e);
    TRY(d->conf.packing == SFT_WRAPPED ? lay_out_wrapped(d, e) : lay_out_whole(d, e));
    d->drawn = malloc((size_t)(d->n + 1) * sizeof *d->drawn);
    return d->drawn ? 0 : no_memory(e);
}

/* One split of paths, [lo, hi) of the documents of each; none where that leaves no sample. */
static int open_split(struct sft_dataset **out, const struct gpt_paths *paths, double lo, double hi,
                      const struct sft_dataset *like, struct err *e)
{
    struct sft_dataset *d = malloc(sizeof *d);
    char *end;
    int rc = 0;

    if (!d)
        return no_memory(e);
    *d = *like;
    d->part = calloc((size_t)paths->n, sizeof *d->part);
    if (!d->part)
        rc = no_memory(e);
    for (int i = 0; rc == 0 && i < paths->n; i++) {
        strtod(paths->word[i], &end);
        if (!*end)
            rc = err_set(e, ERR_ARG, "whole documents have no blend by weight: '%s' in the data path", paths->word[i]);
        else
            rc = open_part(d, paths->word[i], lo, hi, e);
    }
    if (rc == 0)
        rc = lay_out(d, e);
    if (rc < 0 || d->n == 0) {
        sft_dataset_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

int sft_dataset_open(struct sft_dataset *out[GPT_SPLITS], const struct gpt_conf *c, const struct sft_conf *s, struct err *e)
{
    double lo[GPT_SPLITS] = {0}, hi[GPT_SPLITS] = {1, 1, 1};
    int rc = c->split ? gpt_split_parse(c->split, lo, hi, e) : 0;

    memset(out, 0, GPT_SPLITS * sizeof *out);
    for (int i = 0; i < GPT_SPLITS && rc == 0; i++) {
        const struct gpt_paths *paths = c->split ? &c->paths : &c->split_paths[i];
        const struct sft_dataset like = {
            .conf = *s, .seq = (int32_t)c->seq_length, .shuffled = i == GPT_TRAIN, .seed = c->seed, .epoch = -1,
        };

        if (c->samples[i] && paths->n && lo[i] < hi[i])
            rc = open_split(&out[i], paths, lo[i], hi[i], &like, e);
    }
    for (int i = 0; i < GPT_SPLITS && rc < 0; i++) {
        sft_dataset_close(out[i]);
        out[i] = NULL;
    }
    return rc;
}

void sft_dataset_close(struct sft_dataset *d)
{
    if (!d)
        return;
    for (int i = 0; d->part && i < d->parts; i++) {
        idx_close(d->part[i].x);
        if (d->part[i].mask)
            idx_close(d->part[i].mask);
    }
    free(d->part);
    free(d->order);
    free(d->first);
    free(d->drawn);
    free(d->mask);
    free(d);
}

int64_t sft_dataset_samples(const struct sft_dataset *d)
{
    return d->n;
}

int64_t sft_dataset_documents(const struct sft_dataset *d)
{
    return d->docs;
}

int64_t sft_dataset_cut(const struct sft_dataset *d)
{
    return d->conf.packing == SFT_WRAPPED ? 0 : d->cut;
}

/* ---- samples ---- */

/* What the epoch draws at that place. */
static int64_t draw(struct sft_dataset *d, int64_t epoch, int64_t at)
{
    struct rng_mt r;

    if (!d->shuffled)
        return at;
    if (epoch != d->epoch) {
        for (int64_t i = 0; i < d->n; i++)
            d->drawn[i] = (uint64_t)i;
        rng_mt_seed(&r, d->seed + (uint32_t)epoch);
        rng_mt_shuffle_u64(&r, d->drawn, (size_t)d->n);
        d->epoch = epoch;
    }
    return (int64_t)d->drawn[at];
}

/* n tokens of a document, from one on, which are a sample's from `at` on. */
typedef int stretch_fn(void *arg, int64_t doc, int64_t from, int64_t n, int64_t at, struct err *e);

/* Calls fn for each document of sample i of an epoch, in which they end at *at. */
static int gather_whole(const struct sft_dataset *d, int64_t i, stretch_fn *fn, void *arg, int64_t *at, struct err *e)
{
    for (int64_t k = d->first[i]; k < d->first[i + 1]; k++) {
        int64_t n;

        TRY(document_length(d, d->order[k], &n, e));
        n = n < d->seq ? n : d->seq;
        if (*at + n > d->seq)
            return err_set(e, ERR_FORMAT, "the lengths of documents changed while they are read");
        TRY(fn(arg, d->order[k], 0, n, *at, e));
        *at += n;
    }
    return 0;
}

static int gather_wrapped(const struct sft_dataset *d, int64_t i, stretch_fn *fn, void *arg, int64_t *at, struct err *e)
{
    int64_t begin = i * d->seq, all = d->first[d->docs], end = begin + d->seq < all ? begin + d->seq : all, lo = 0, hi = d->docs;

    while (lo < hi) { /* the first document that ends behind begin */
        int64_t mid = (lo + hi) / 2;

        if (d->first[mid + 1] > begin)
            hi = mid;
        else
            lo = mid + 1;
    }
    for (; begin < end; lo++) {
        int64_t to = d->first[lo + 1] < end ? d->first[lo + 1] : end;

        TRY(fn(arg, lo, begin - d->first[lo], to - begin, *at, e));
        *at += to - begin;
        begin = to;
    }
    return 0;
}

static int gather(struct sft_dataset *d, int64_t i, stretch_fn *fn, void *arg, int64_t *n, struct err *e)
{
    int64_t drawn = draw(d, i / d->n, i % d->n);

    *n = 0;
    return (d->conf.packing == SFT_WRAPPED ? gather_wrapped : gather_whole)(d, drawn, fn, arg, n, e);
}

struct filling {
    struct sft_dataset *d;
    const struct sft_sample *s;
};

static int fill(void *arg, int64_t doc, int64_t from, int64_t n, int64_t at, struct err *e)
{
    const struct filling *f = arg;

    for (int64_t i = 0; i < n; i++)
        f->s->starts[at + i] = (int32_t)at;
    return document_tokens(f->d, doc, from, n, f->s->tokens + at, f->d->mask + at, e);
}

int sft_dataset_get(struct sft_dataset *d, int64_t i, const struct sft_sample *s, struct err *e)
{
    bool across = d->conf.packing == SFT_WRAPPED && !d->conf.apart;
    int64_t n;

    TRY(gather(d, i, fill, &(struct filling){d, s}, &n, e));
    for (int64_t j = n; j < d->seq; j++) { /* padding is a document of its own */
        s->tokens[j] = 0;
        s->starts[j] = (int32_t)n;
        d->mask[j] = 0;
    }
    for (int64_t j = 0; j < d->seq; j++) {
        bool next = j + 1 < d->seq && d->mask[j + 1] && (across || s->starts[j + 1] == s->starts[j]);

        s->targets[j] = next ? s->tokens[j + 1] : -1;
    }
    return 0;
}

struct stretch_call {
    const struct sft_dataset *d;
    sample_piece_fn *fn;
    void *arg;
};

static int call_stretch(void *arg, int64_t doc, int64_t from, int64_t n, int64_t at, struct err *e)
{
    const struct stretch_call *c = arg;
    const struct part *p = part_of(c->d, doc);

    const struct sample_piece piece = {p->x, (int)(p - c->d->part), p->first + (uint64_t)(doc - p->before), from, n, at};

    return c->fn(c->arg, &piece, e);
}

int sft_dataset_pieces(struct sft_dataset *d, int64_t i, sample_piece_fn *fn, void *arg, struct err *e)
{
    int64_t n;

    return gather(d, i, call_stretch, &(struct stretch_call){d, fn, arg}, &n, e);
}
