/* The encoder: cut, look pieces up, merge those that are new. */
#include <stdlib.h>

#include "tokenize/model.h"
#include "tokenize/normal.h"
#include "tokenize/word_share.h"
#include "tokenize/word_table.h"

enum {
    CUTS = 1024,
    LATE = 64,
    BY_BYTES = 1 << 14, /* an encoder merges before it wants pairs that wait: that takes much less time than these */
    BY_VOCAB = 1 << 10  /* or Unigram's pieces are looked for before their trie is made */
};

/* Pieces that were not found at the first look and are merged together: their ids go in where they are missing. */
struct late {
    struct bpe_word piece[LATE];
    size_t from[LATE]; /* where in what was written, in bytes */
    size_t n;
};

struct encoder {
    const struct tokenizer *t;
    struct word_table words;
    struct word_share *share; /* or NULL */
    struct bpe_scratch scratch;
    size_t merged; /* bytes, up to BY_BYTES */
    struct rules_scratch rules;
    const char *begin; /* of the text, as it came */
    struct buf ids;    /* of one piece that was merged */
    struct buf normal; /* a text in form C */
    uint64_t specials;
    int failure;
    void (*seek)(const struct word_table *w, struct word_batch *b);
    char *(*put2)(const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o);
    char *(*put4)(const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o);
    struct word_batch batch[2], part_batch[2];
    struct late late, part_late;
    bool together; /* short pieces can be merged together */
    size_t (*apart)(const struct bpe_crossings *c, struct span text, uint32_t *cuts, size_t n, size_t *done, size_t keep,
                    uint32_t *parts, size_t max); /* NULL: pieces are not to be taken apart */
    uint32_t cuts[CUTS + 1]; /* a piece begins at the first, and at each but the last */
    uint32_t parts[CUTS], slow_parts[BPE_CUT_ROOM];
};

struct encoder *encoder_new(const struct tokenizer *t)
{
    struct encoder *enc = calloc(1, sizeof *enc);

    if (!enc)
        return NULL;
    enc->t = t;
    enc->together = !t->rules || t->rules->model == MODEL_BYTES || t->rules->model == MODEL_CHARS;
    enc->seek = ISA_PICK(words_seek);
    enc->put2 = ISA_PICK(words_put2);
    enc->put4 = ISA_PICK(words_put4);
    if (word_table_init(&enc->words, WORDS_LOG2) < 0) {
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

void encoder_share(struct encoder *enc, struct word_share *s)
{
    enc->share = s;
}

void encoder_tell_unknown(struct encoder *enc, struct buf *texts) { enc->rules.unigram.unknown = texts; }

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

static inline uint32_t get_id(const char *p, int width)
{
    uint16_t half;
    uint32_t id;

    memcpy(&half, p, 2);
    if (width == 2)
        return half;
    memcpy(&id, p, 4);
    return id;
}

static char *put_packed(char *o, const uint8_t *ids, size_t count, int width)
{
    for (size_t i = 0; i < count; i++)
        o = put_id(o, word_id(ids, i), width);
    return o;
}

/* The id of a piece that is taken as it is, or VOCAB_NONE; asked: vocab_ask's of it. */
static int64_t whole_id(const struct tokenizer *t, const uint8_t *p, size_t n, uint64_t asked)
{
    struct span s = {(const char *)p, n};
    int64_t id = t->whole_first ? vocab_find_asked(&t->vocab, s, asked) : VOCAB_NONE;

    return id >= 0 && vocab_is_added(&t->vocab, (uint32_t)id) ? VOCAB_NONE : id;
}

static uint64_t ask_whole(const struct tokenizer *t, const uint8_t *p, size_t n)
{
    return t->whole_first ? vocab_ask(&t->vocab, (struct span){(const char *)p, n}) : 0;
}

/* Merges n words, of whose bytes or characters all is known; as long as the pairs are not there, the first ones without
 * them.  0 or an error. */
static int merge_words(struct encoder *enc, struct bpe_word *words, size_t n)
{
    const struct tokenizer *t = enc->t;
    const struct chars *chars = t->rules && t->rules->model == MODEL_CHARS ? &t->rules->chars : NULL;
    struct err e;

    for (size_t i = 0; i < n; i++)
        enc->merged += words[i].n;
    if (!ranks_derived(t) && enc->merged < BY_BYTES) {
        for (size_t i = 0; i < n; i++)
            ranks_encode_word(t, &words[i]);
        return 0;
    }
    enc->merged = BY_BYTES;
    TRY(tokenizer_prepare(t, &e));
    if (chars)
        return chars_encode_words(chars, &t->bpe, &t->vocab, &enc->scratch, words, n);
    bpe_encode_words(&t->bpe, words, n);
    return 0;
}

/* Before Unigram's pieces are looked for in n more bytes: where.  0 or an error. */
static int prepare_unigram(struct encoder *enc, size_t n, struct err *e)
{
    const struct tokenizer *t = enc->t;
    bool by_vocab = !ranks_derived(t) && (enc->merged += n) < BY_VOCAB;

    enc->rules.unigram.by_vocab = by_vocab ? &t->vocab : NULL;
    return by_vocab ? 0 : tokenizer_prepare(t, e);
}

/* The ids of a piece that the table has not, and into the table with it.  Their number or an error. */
static int64_t merge_piece(struct encoder *enc, const uint8_t *p, size_t n)
{
    const struct tokenizer *t = enc->t;
    uint32_t *ids;
    struct err e;
    int64_t count, id = whole_id(t, p, n, ask_whole(t, p, n));

    enc->ids.n = 0;
    if (buf_reserve(&enc->ids, n * sizeof *ids) < 0)
        return ERR_NOMEM;
    ids = (uint32_t *)(void *)enc->ids.p;
    if (id >= 0) {
        ids[0] = (uint32_t)id;
        count = 1;
    } else if (t->rules && t->rules->model == MODEL_UNIGRAM) {
        TRY(prepare_unigram(enc, n, &e));
        count = rules_encode(t, &enc->rules, &enc->scratch, p, n, ids);
    } else if (t->rules && t->rules->model != MODEL_BYTES && (n > BPE_SHORT || ranks_derived(t))) {
        TRY(tokenizer_prepare(t, &e));
        count = rules_encode(t, &enc->rules, &enc->scratch, p, n, ids);
    } else if ((!t->rules || t->rules->model == MODEL_BYTES) && !bpe_has_bytes(&t->bpe, p, n)) {
        return ERR_FORMAT;
    } else if (n <= BPE_SHORT) {
        struct bpe_word w = {.p = p, .ids = ids, .n = (uint32_t)n};
        TRY(merge_words(enc, &w, 1));
        count = w.count;
    } else {
        TRY(tokenizer_prepare(t, &e));
        count = bpe_encode(&t->bpe, &enc->scratch, p, n, ids);
    }
    if (count > 0)
        word_table_put(&enc->words, p, n, ids, (size_t)count);
    return count;
}

/* The ids of n pieces that the table has not: another thread knows them, or they are merged.  0 or an error. */
static int merge_late(struct encoder *enc, struct bpe_word **late, size_t n)
{
    struct bpe_word new[LATE];
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        word_share_ask(enc->share, late[i]->p, late[i]->n);
    for (size_t i = 0; i < n; i++) {
        struct bpe_word *w = late[i];
        w->count = (uint32_t)word_share_find(enc->share, w->p, w->n, w->ids);
        if (w->count)
            word_table_put(&enc->words, w->p, w->n, w->ids, w->count);
        else
            new[left++] = *w;
    }
    TRY(merge_words(enc, new, left));
    for (size_t i = 0, k = 0; i < n; i++) {
        struct bpe_word *w = late[i];
        if (w->count)
            continue;
        w->count = new[k++].count;
        if (!w->count) /* characters of which nothing is left */
            continue;
        word_table_put(&enc->words, w->p, w->n, w->ids, w->count);
        word_share_put(enc->share, w->p, w->n, w->ids, w->count);
    }
    return 0;
}

/* Finds the ids of late pieces: in the table after all, or merged and into the table.  0, or why not. */
static int encode_late(struct encoder *enc, struct late *late)
{
    const struct tokenizer *t = enc->t;
    struct bpe_word *new[LATE];
    uint64_t asked[LATE];
    uint32_t *ids;
    size_t room = 0, n = 0, pieces = late->n;

    for (size_t i = 0; i < pieces; i++) {
        room += late->piece[i].n;
        asked[i] = ask_whole(t, late->piece[i].p, late->piece[i].n);
    }
    for (size_t i = 0; i < pieces && t->whole_first; i++)
        vocab_ask_more(&t->vocab, asked[i]);
    enc->ids.n = 0;
    if (buf_reserve(&enc->ids, room * sizeof *ids) < 0)
        return ERR_NOMEM;
    ids = (uint32_t *)(void *)enc->ids.p;
    for (size_t i = 0; i < pieces; i++) {
        struct bpe_word *w = &late->piece[i];
        size_t count;
        const uint8_t *packed = word_table_find(&enc->words, w->p, w->n, &count);
        int64_t id;
        w->ids = ids;
        ids += w->n;
        if (packed) {
            w->count = (uint32_t)count;
            for (size_t k = 0; k < count; k++)
                w->ids[k] = word_id(packed, k);
        } else if ((id = whole_id(t, w->p, w->n, asked[i])) >= 0) {
            w->count = 1;
            w->ids[0] = (uint32_t)id;
            word_table_put(&enc->words, w->p, w->n, w->ids, 1);
        } else if (!bpe_has_bytes(&t->bpe, w->p, w->n)) {
            return ERR_FORMAT;
        } else {
            new[n++] = w;
        }
    }
    return merge_late(enc, new, n);
}

/* Puts the ids of late pieces where they are missing in what was written from begin to o.  Its new end, or NULL. */
static char *put_late(struct encoder *enc, struct late *late, char *begin, char *o, int width)
{
    size_t end = (size_t)(o - begin), more = 0;
    int rc = encode_late(enc, late);

    if (rc < 0) {
        enc->failure = rc;
        late->n = 0;
        return NULL;
    }
    for (size_t i = 0; i < late->n; i++)
        more += late->piece[i].count * (size_t)width;
    o += more;
    for (; late->n; end = late->from[late->n]) {
        const struct bpe_word *w = &late->piece[--late->n];
        size_t from = late->from[late->n];
        memmove(begin + from + more, begin + from, end - from);
        more -= w->count * (size_t)width;
        for (size_t k = 0; k < w->count; k++)
            put_id(begin + from + more + k * (size_t)width, w->ids[k], width);
    }
    return o;
}

/* A piece that is merged by itself.  NULL: enc->failure says why. */
static char *put_alone(struct encoder *enc, const uint8_t *p, size_t n, char *o, int width)
{
    const uint32_t *ids;
    int64_t merged = merge_piece(enc, p, n);

    if (merged < 0) {
        enc->failure = (int)merged;
        return NULL;
    }
    ids = (const uint32_t *)(const void *)enc->ids.p;
    for (size_t i = 0; i < (size_t)merged; i++)
        o = put_id(o, ids[i], width);
    return o;
}

/* A piece that was taken apart, remembered whole if an entry can hold it: its ids end at o. */
static void remember(struct encoder *enc, const uint8_t *p, size_t n, const char *ids, const char *o, int width)
{
    uint32_t copy[WORDS_LINE / 3];
    size_t count = (size_t)(o - ids) / (size_t)width;

    if (n + 3 * count > WORDS_LINE)
        return;
    for (size_t i = 0; i < count; i++)
        copy[i] = get_id(ids + i * (size_t)width, width);
    word_table_put(&enc->words, p, n, copy, count);
}

static char *put_pieces(struct encoder *enc, struct span text, const uint32_t *cuts, size_t n, char *o, int width,
                        struct word_batch b[2]);

/* A long piece of n bytes at the beginning of text, which was not found at the first look: its ids at o if it is known or falls
 * into parts; else o.  NULL: enc->failure says why. */
static char *put_long(struct encoder *enc, struct span text, size_t n, bool is_part, char *o, int width)
{
    const uint8_t *p = (const uint8_t *)text.p, *packed;
    uint32_t cuts[2] = {0, (uint32_t)n};
    size_t count, done = 0;
    char *begin = o;

    if (n <= WORDS_LONGEST && (packed = word_table_find(&enc->words, p, n, &count)))
        return put_packed(o, packed, count, width);
    /* What no line holds was taken apart before. */
    if (is_part || n >= WORDS_LINE || !enc->apart)
        return o;
    count = enc->apart(&enc->t->bpe.crossings, text, cuts, 1, &done, 0, enc->slow_parts, BPE_CUT_ROOM);
    if (count == 1)
        return o;
    o = put_pieces(enc, text, enc->slow_parts, count, o, width, enc->part_batch);
    if (o)
        remember(enc, p, n, begin, o, width);
    return o;
}

/* True if a piece of n bytes can be merged together with others. */
static bool is_late(const struct encoder *enc, size_t n)
{
    const struct rules *r = enc->t->rules;

    /* Symbols count; long pieces have characters of three bytes, mostly. */
    return enc->together && n <= (r && r->model == MODEL_CHARS && ranks_derived(enc->t) ? 3 * BPE_SHORT : BPE_SHORT);
}

/* A piece that is not where it is looked for first: its ids at o, or it joins the late ones. */
static char *put_missing(struct encoder *enc, struct span text, const uint32_t *cut, bool is_part, struct late *late,
                         char *begin, char *o, int width)
{
    const uint8_t *p = (const uint8_t *)text.p + cut[0];
    size_t len = cut[1] - cut[0];

    if (len > WORDS_SHORT) {
        char *end = put_long(enc, (struct span){(const char *)p, text.n - cut[0]}, len, is_part, o, width);
        if (end != o)
            return end;
    }
    if (!is_late(enc, len))
        return put_alone(enc, p, len, o, width);
    late->from[late->n] = (size_t)(o - begin);
    late->piece[late->n++] = (struct bpe_word){.p = p, .n = (uint32_t)len};
    return late->n == LATE ? put_late(enc, late, begin, o, width) : o;
}

/* The pieces cuts[0]..cuts[1], ..., ..cuts[n] of text.  o has room for an id a byte, and
 * WORDS_SLACK.  With b the encoder's part_batch they are parts of a piece. */
static char *put_pieces(struct encoder *enc, struct span text, const uint32_t *cuts, size_t n, char *o, int width,
                        struct word_batch b[2])
{
    bool parts = b == enc->part_batch;
    struct late *late = parts ? &enc->part_late : &enc->late;
    char *begin = o;
    int i = 0;

    word_batch_begin(&b[0], text, cuts, n);
    for (; n; i ^= 1) {
        struct word_batch *x = &b[i], *ahead = &b[!i];
        cuts += x->n;
        n -= x->n;
        word_batch_begin(ahead, text, cuts, n);
        enc->seek(&enc->words, x);
        while (o = (width == 2 ? enc->put2 : enc->put4)(&enc->words, x, ahead, o), x->next < x->n) {
            o = put_missing(enc, text, x->cuts + x->next, parts, late, begin, o, width);
            if (!o)
                return NULL;
            x->next++;
        }
    }
    return late->n ? put_late(enc, late, begin, o, width) : o;
}

static int64_t next_cuts(struct encoder *enc, struct split_state *st, struct err *e)
{
    const struct tokenizer *t = enc->t;

    return t->rules && t->rules->model != MODEL_BYTES ? rules_cut(t->rules, st, enc->cuts + 1, CUTS)
                                                      : split_next(&t->split, st, enc->cuts + 1, CUTS, e);
}

/* The n pieces of text from enc->cuts on, appended.  Long ones in scripts without spaces, which are whole sentences
 * and do not come again, are taken apart first. */
static int put_ids(struct encoder *enc, struct span text, size_t n, int width, struct buf *out, struct err *e)
{
    const struct tokenizer *t = enc->t;
    uint32_t *cuts = enc->cuts;
    size_t done = 0;
    char *o;
    int rc = buf_reserve(out, (size_t)(cuts[n] - cuts[0]) * (size_t)width + WORDS_SLACK);

    if (rc < 0)
        return err_set(e, rc, rc == ERR_LIMIT ? "too many tokens" : "out of memory for tokens");
    if (!enc->apart && ranks_derived(t) && t->bpe.crossings.near && (!t->rules || t->rules->joins))
        enc->apart = ISA_PICK(bpe_parts);
    o = out->p + out->n;
    word_table_make_room(&enc->words);
    if (!enc->apart)
        o = put_pieces(enc, text, cuts, n, o, width, enc->batch);
    while (enc->apart && o && done < n) {
        size_t k = enc->apart(&enc->t->bpe.crossings, text, cuts, n, &done, WORDS_LINE, enc->parts, CUTS);
        o = put_pieces(enc, text, enc->parts, k, o, width, enc->batch);
    }
    if (!o)
        enc->late.n = enc->part_late.n = 0; /* of this text */
    if (!o)
        return err_set(e, enc->failure, enc->failure == ERR_NOMEM
                                            ? "out of memory for a piece"
                                            : "the text has a byte or a word that the tokenizer has no token for");
    out->n = (size_t)(o - out->p);
    return 0;
}

/* Text that steps cut. */
static int encode_steps(struct encoder *enc, struct span text, int width, struct buf *out, struct err *e)
{
    const struct strings *pieces = &enc->rules.pieces;
    size_t n;

    TRY(rules_pieces(enc->t->rules, &enc->rules, text, e));
    enc->cuts[0] = 0;
    for (size_t i = 0, all = strings_n(pieces); i < all; i += n) {
        n = all - i < CUTS ? all - i : CUTS;
        memcpy(enc->cuts + 1, pieces->ends.p + i * sizeof *enc->cuts, n * sizeof *enc->cuts);
        TRY(put_ids(enc, buf_span(&pieces->text), n, width, out, e));
        enc->cuts[0] = enc->cuts[n];
    }
    return 0;
}

/* Text without added tokens. */
static int encode_plain(struct encoder *enc, struct span text, int width, struct buf *out, struct err *e)
{
    struct split_state st;
    int64_t n;

    if (enc->t->rules && rules_has_steps(enc->t->rules))
        return encode_steps(enc, text, width, out, e);
    if (enc->t->rules && enc->t->rules->model == MODEL_UNIGRAM) {
        TRY(prepare_unigram(enc, text.n, e));
        return unigram_text(&enc->t->rules->unigram, &enc->rules.unigram, &enc->words, text, width, out, e);
    }
    split_begin(&st, text.p, text.n);
    enc->cuts[0] = 0;
    while ((n = next_cuts(enc, &st, e)) > 0) {
        TRY(put_ids(enc, text, (size_t)n, width, out, e));
        enc->cuts[0] = enc->cuts[n];
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
    struct added_match m = {0};
    size_t done = 0;

    if (stage == 1 && enc->t->rules)
        TRY(rules_normalize(enc->t->rules, &enc->rules, text, text.p == enc->begin, &enc->normal, &text, e));
    else if (stage == 1 && enc->t->nfc)
        TRY(normal_form(NORMAL_NFC, text, &enc->normal, &text, e));
    if (!text.n)
        return 0;
    while (stage < 2 && added_find(&enc->t->added, stage == 1, text, m.next, done, &m)) {
        if (m.token->special && !(flags & ENCODER_SPECIAL)) {
            enc->specials++;
            continue;
        }
        if (m.begin > done)
            TRY(encode_stage(enc, stage + 1, (struct span){text.p + done, m.begin - done}, flags, width, out, e));
        if (m.end > m.begin) /* else the white space of the one before was all there was */
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
