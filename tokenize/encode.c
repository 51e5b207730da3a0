/* The encoder: cut, look pieces up, merge those that are new. */
#include <stdlib.h>
#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

#include "tokenize/model.h"
#include "tokenize/normal.h"
#include "tokenize/word_table.h"

enum {
    TABLE_LOG2 = 19, /* 16 MiB a thread: the words of a language or two */
    ENDS = 1024,
    AHEAD = 16, /* pieces whose entries are fetched before they are needed */
    PADDING = 16 /* bytes that must be readable behind the beginning of a piece */
};

struct encoder {
    const struct tokenizer *t;
    struct word_table words;
    struct bpe_scratch scratch;
    struct rules_scratch rules;
    const char *begin; /* of the text, as it came */
    struct buf ids;    /* of one piece that was merged */
    struct buf normal; /* a text in form C */
    uint64_t specials;
    int failure;
    uint32_t ends[ENDS];
};

struct encoder *encoder_new(const struct tokenizer *t)
{
    struct encoder *enc = calloc(1, sizeof *enc);

    if (!enc)
        return NULL;
    enc->t = t;
    if (word_table_init(&enc->words, TABLE_LOG2) < 0) {
        free(enc);
        return NULL;
    }
    return enc;
}

void encoder_free(struct encoder *enc)
{
    if (!enc)
        return;
    word_table_free(&enc->words);
    bpe_scratch_free(&enc->scratch);
    rules_scratch_free(&enc->rules);
    buf_free(&enc->ids);
    buf_free(&enc->normal);
    free(enc);
}

uint64_t encoder_specials_seen(const struct encoder *enc)
{
    return enc->specials;
}

/* Where ids go: the width is a constant wherever these are inlined. */
static inline char *put_id(char *o, uint32_t id, int width)
{
    uint16_t half = (uint16_t)id;

    memcpy(o, width == 2 ? (const void *)&half : (const void *)&id, (size_t)width);
    return o + width;
}

/* Writes the ids of an entry with at most WORDS_INLINE; touches 20 bytes of o. */
static inline char *put_word(char *o, const struct word *x, int width)
{
#ifdef __SSSE3__
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)x->ids);
    if (width == 2) {
        const __m128i pick = _mm_setr_epi8(0, 1, 3, 4, 6, 7, 9, 10, 12, 13, -1, -1, -1, -1, -1, -1);
        _mm_storeu_si128((__m128i *)(void *)o, _mm_shuffle_epi8(v, pick));
    } else {
        const __m128i pick = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
        uint32_t fifth = word_id(x, 4);
        _mm_storeu_si128((__m128i *)(void *)o, _mm_shuffle_epi8(v, pick));
        memcpy(o + 16, &fifth, 4);
    }
#else
    char *q = o;
    for (unsigned i = 0; i < WORDS_INLINE; i++)
        q = put_id(q, word_id(x, i), width);
#endif
    return o + x->n * width;
}

/* The ids of a piece that the table has not, and into the table with it.  Their number or an error. */
static int64_t merge_piece(struct encoder *enc, const uint8_t *p, size_t n)
{
    const struct tokenizer *t = enc->t;
    struct span s = {(const char *)p, n};
    uint32_t *ids;
    int64_t count, id;

    enc->ids.n = 0;
    if (buf_reserve(&enc->ids, n * sizeof *ids) < 0)
        return ERR_NOMEM;
    ids = (uint32_t *)(void *)enc->ids.p;
    id = t->whole_first ? vocab_find(&t->vocab, s) : VOCAB_NONE;
    if (id >= 0 && !vocab_is_added(&t->vocab, (uint32_t)id)) {
        ids[0] = (uint32_t)id;
        count = 1;
    } else if (t->rules && t->rules->model != MODEL_BYTES) {
        count = rules_encode(t, &enc->rules, &enc->scratch, p, n, ids);
    } else if (!bpe_has_bytes(&t->bpe, p, n)) {
        return ERR_FORMAT;
    } else {
        count = bpe_encode(&t->bpe, &enc->scratch, p, n, ids);
    }
    if (count > 0)
        word_table_put(&enc->words, p, n, ids, (size_t)count);
    return count;
}

/* A piece, or a part of one that is merged by itself.  NULL: enc->failure says why. */
static inline char *put_part(struct encoder *enc, const uint8_t *p, size_t n, char *o, int width)
{
    const uint32_t *ids = NULL;
    size_t count = 0;
    const struct word *x = n <= WORDS_LONGEST ? word_table_find(&enc->words, p, n, &ids, &count) : NULL;

    if (x && !ids)
        return put_word(o, x, width);
    if (!x) {
        int64_t merged = merge_piece(enc, p, n);
        if (merged < 0) {
            enc->failure = (int)merged;
            return NULL;
        }
        ids = (const uint32_t *)(const void *)enc->ids.p;
        count = (size_t)merged;
    }
    for (size_t i = 0; i < count; i++)
        o = put_id(o, ids[i], width);
    return o;
}

/* A piece that was not found at the first look.  A long one is taken apart where no token
 * reaches across: scripts without spaces have pieces of whole sentences. */
static __attribute__((noinline)) char *put_slowly(struct encoder *enc, const uint8_t *p, size_t n, char *o, int width)
{
    while (n > WORDS_KEY && (!enc->t->rules || enc->t->rules->joins)) {
        size_t cut = bpe_cut(&enc->t->bpe, p, n, 1);
        if (cut == n)
            break;
        o = put_part(enc, p, cut, o, width);
        if (!o)
            return NULL;
        p += cut;
        n -= cut;
    }
    return put_part(enc, p, n, o, width);
}

/* The pieces begin..ends[0], ..., ..ends[n-1] of text, each with PADDING readable bytes
 * from its beginning on.  o has room for an id a byte, and 20 bytes. */
static inline char *put_pieces(struct encoder *enc, const uint8_t *text, uint32_t begin, const uint32_t *ends,
                               size_t n, char *o, int width)
{
    const struct word *entries = enc->words.entries;
    uint64_t mask = enc->words.mask;
    struct word_key keys[AHEAD];
    uint32_t starts[AHEAD], fetch = begin;

#define FETCH(j)                                                                       \
    do {                                                                               \
        uint32_t len_ = ends[j] - fetch;                                               \
        keys[(j) % AHEAD] = word_key_of(text + fetch, len_ <= WORDS_KEY ? len_ : 16);    \
        starts[(j) % AHEAD] = fetch;                                                   \
        __builtin_prefetch(entries + (keys[(j) % AHEAD].hash & mask));                 \
        fetch = ends[j];                                                               \
    } while (0)
    for (size_t j = 0; j < n && j < AHEAD - 1; j++)
        FETCH(j);
    for (size_t i = 0; i < n; i++) {
        const struct word_key *k = &keys[i % AHEAD];
        const struct word *x = entries + (k->hash & mask);
        uint32_t start = starts[i % AHEAD];

        if (i + AHEAD - 1 < n)
            FETCH(i + AHEAD - 1);
        if (__builtin_expect(((x->lo ^ k->lo) | (x->hi ^ k->hi)) == 0 && x->n <= WORDS_INLINE, 1)) {
            o = put_word(o, x, width);
        } else {
            o = put_slowly(enc, text + start, ends[i] - start, o, width);
            if (!o)
                return NULL;
        }
    }
#undef FETCH
    return o;
}

static inline char *put_chunk(struct encoder *enc, const uint8_t *text, size_t size, uint32_t begin,
                              const uint32_t *ends, size_t n, char *o, int width)
{
    uint8_t tail[2 * PADDING];
    uint32_t tail_ends[PADDING], from = begin;
    size_t safe = n;

    /* The last pieces, which begin within 16 bytes of the end, are copied. */
    while (safe && (safe > 1 ? ends[safe - 2] : begin) + PADDING > size)
        safe--;
    o = put_pieces(enc, text, begin, ends, safe, o, width);
    if (!o || safe == n)
        return o;
    from = safe ? ends[safe - 1] : begin;
    memset(tail, 0, sizeof tail);
    memcpy(tail, text + from, size - from);
    for (size_t i = safe; i < n; i++)
        tail_ends[i - safe] = ends[i] - from;
    return put_pieces(enc, tail, 0, tail_ends, n - safe, o, width);
}

static int64_t next_ends(struct encoder *enc, struct split_state *st, struct err *e)
{
    const struct tokenizer *t = enc->t;

    return t->rules && t->rules->model != MODEL_BYTES ? rules_cut(t->rules, st, enc->ends, ENDS)
                                                      : split_next(&t->split, st, enc->ends, ENDS, e);
}

/* Text without added tokens. */
static int encode_plain(struct encoder *enc, struct span text, int width, struct buf *out, struct err *e)
{
    const uint8_t *p = (const uint8_t *)text.p;
    struct split_state st = {.text = p, .n = text.n};
    uint32_t begin = 0;
    int64_t n;

    if (enc->t->rules && enc->t->rules->model == MODEL_UNIGRAM)
        return unigram_text(&enc->t->rules->unigram, &enc->rules.unigram, &enc->words, text, width, out, e);
    while ((n = next_ends(enc, &st, e)) > 0) {
        uint32_t end = enc->ends[n - 1];
        char *o;
        int rc = buf_reserve(out, (size_t)(end - begin) * (size_t)width + 32);

        if (rc < 0)
            return err_set(e, rc, rc == ERR_LIMIT ? "too many tokens" : "out of memory for tokens");
        o = out->p + out->n;
        o = width == 2 ? put_chunk(enc, p, text.n, begin, enc->ends, (size_t)n, o, 2)
                       : put_chunk(enc, p, text.n, begin, enc->ends, (size_t)n, o, 4);
        if (!o)
            return err_set(e, enc->failure, enc->failure == ERR_NOMEM
                                                ? "out of memory for a piece"
                                                : "the text has a byte that the tokenizer has no token for");
        out->n = (size_t)(o - out->p);
        begin = end;
    }
    return n < 0 ? (int)n : 0;
}

static int put_token(struct buf *out, uint32_t id, int width, struct err *e)
{
    int rc = buf_reserve(out, 4);

    if (rc < 0)
        return err_set(e, rc, rc == ERR_LIMIT ? "too many tokens" : "out of memory for tokens");
    put_id(out->p + out->n, id, width);
    out->n += (size_t)width;
    return 0;
}

/* Finds the added tokens of set number `stage` in text and encodes what lies between by
 * the next stage: 0 raw tokens, 1 normalisation and normalised tokens, 2 plain text. */
static int encode_stage(struct encoder *enc, int stage, struct span text, int flags, int width, struct buf *out,
                        struct err *e)
{
    const struct added_set *set = stage == 0 ? &enc->t->added.raw : &enc->t->added.normalized;
    struct added_match m = {0};
    size_t done = 0;

    if (stage == 1 && enc->t->rules)
        TRY(rules_normalize(enc->t->rules, text, text.p == enc->begin, &enc->normal, &text, e));
    else if (stage == 1 && enc->t->nfc)
        TRY(normal_nfc(text, &enc->normal, &text, e));
    while (stage < 2 && set->n && added_find(set, text, m.next, done, &m)) {
        if (m.token->special && !(flags & ENCODER_SPECIAL)) {
            enc->specials++;
            continue;
        }
        if (m.begin > done)
            TRY(encode_stage(enc, stage + 1, (struct span){text.p + done, m.begin - done}, flags, width, out, e));
        TRY(put_token(out, m.token->id, width, e));
        done = m.end;
    }
    text = (struct span){text.p + done, text.n - done};
    if (stage < 1)
        return encode_stage(enc, stage + 1, text, flags, width, out, e);
    return encode_plain(enc, text, width, out, e);
}

int encoder_encode(struct encoder *enc, struct span text, int flags, int width, struct buf *out, struct err *e)
{
    if (text.n > INT32_MAX)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long: at most 2 GiB", text.n);
    if (width == 2 && enc->t->vocab.n > 65536)
        return err_set(e, ERR_ARG, "%u ids do not fit into 16 bits", enc->t->vocab.n);
    enc->begin = text.p;
    return encode_stage(enc, 0, text, flags, width, out, e);
}
