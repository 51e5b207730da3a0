#include "tokenize/train_across.h"

#include "base/hash.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for segments");
}

int train_across_open(struct train_across *a, struct span json, const char *pattern, uint64_t bytes, uint64_t sample,
                      struct err *e)
{
    const uint64_t all = (uint64_t)1 << 32;

    a->share = sample >= bytes ? all : (uint64_t)((double)sample / (double)bytes * (double)all);
    TRY(tokenizer_open_json(&a->words, "words", json, NULL, e));
    return split_find(&a->split, pattern, e);
}

void train_across_close(struct train_across *a)
{
    tokenizer_close(a->words);
    split_free(&a->split);
}

void across_cutter_free(struct across_cutter *k)
{
    encoder_free(k->encoder);
    buf_free(&k->ids);
    buf_free(&k->ends);
}

/* A segment ends with the token that reaches the byte `end` of the slice; *at is the token to go on with, *done the byte. */
static int end_segment(struct across_cutter *k, const struct train_across *a, uint32_t end, size_t *at, size_t *done)
{
    const uint32_t *ids = (const uint32_t *)(const void *)k->ids.p;
    size_t n = k->ids.n / sizeof *ids;
    uint32_t here;

    if (*done >= end) /* a token reached across */
        return 0;
    for (; *at < n && *done < end; ++*at)
        *done += tokenizer_bytes(a->words, ids[*at]).n;
    here = (uint32_t)(*at * sizeof *ids);
    return buf_put(&k->ends, &here, sizeof here);
}

int across_cut(struct across_cutter *k, const struct train_across *a, struct span slice, struct err *e)
{
    struct split_state st;
    uint32_t ends[SPLIT_MIN_ENDS];
    size_t at = 0, done = 0;
    int64_t n;

    buf_clear(&k->ids);
    buf_clear(&k->ends);
    if (hash_xxh3_64(slice) >> 32 >= a->share)
        return 0;
    if (!k->encoder && !(k->encoder = encoder_new(a->words)))
        return no_memory(e);
    TRY(encoder_encode(k->encoder, slice, 0, 4, &k->ids, e));
    split_begin(&st, slice.p, slice.n);
    while ((n = split_next(&a->split, &st, ends, SPLIT_MIN_ENDS, e)) > 0)
        for (int64_t i = 0; i < n; i++)
            if (end_segment(k, a, ends[i], &at, &done) < 0)
                return no_memory(e);
    return n < 0 ? (int)n : 0;
}
