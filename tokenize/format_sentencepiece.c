/* SentencePiece's .model: a protocol buffer (sentencepiece_model.proto) of pieces with scores and types, and
 * what the trainer and the normaliser were told. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "tokenize/model.h"

/* ---- protocol buffers ---- */

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct proto {
    const unsigned char *p, *end;
};

struct field {
    uint32_t number;
    enum wire wire;
    uint64_t value; /* VARINT, FIXED32, FIXED64 */
    struct span bytes;
};

static bool varint(struct proto *m, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; m->p < m->end && shift < 64; shift += 7) {
        *v |= (uint64_t)(*m->p & 127) << shift;
        if (*m->p++ < 128)
            return true;
    }
    return false;
}

static bool fixed(struct proto *m, int n, uint64_t *v)
{
    *v = 0;
    if (m->end - m->p < n)
        return false;
    for (int i = 0; i < n; i++)
        *v |= (uint64_t)*m->p++ << 8 * i;
    return true;
}

/* The next field: 1, 0 at the end, or ERR_FORMAT. */
static int next_field(struct proto *m, struct field *f, struct err *e)
{
    uint64_t key, n;
    bool ok;

    if (m->p == m->end)
        return 0;
    ok = varint(m, &key);
    f->number = (uint32_t)(key >> 3);
    f->wire = (enum wire)(key & 7);
    f->value = 0;
    f->bytes = (struct span){NULL, 0};
    if (ok && f->wire == VARINT) {
        ok = varint(m, &f->value);
    } else if (ok && (f->wire == FIXED64 || f->wire == FIXED32)) {
        ok = fixed(m, f->wire == FIXED64 ? 8 : 4, &f->value);
    } else if (ok && f->wire == BYTES) {
        ok = varint(m, &n) && n <= (uint64_t)(m->end - m->p);
        if (ok) {
            f->bytes = (struct span){(const char *)m->p, (size_t)n};
            m->p += n;
        }
    } else {
        ok = false;
    }
    return ok ? 1 : err_set(e, ERR_FORMAT, "it is damaged %zd bytes before the end of a message", m->end - m->p);
}

/* A message that is not there is an empty one. */
static struct proto message(struct span s)
{
    const unsigned char *p = (const unsigned char *)(s.p ? s.p : "");

    return (struct proto){p, p + s.n};
}

/* ---- the model ---- */

enum piece_type { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

/* Whether text is made of such pieces. */
static bool is_text(int type)
{
    return type == NORMAL || type == USER_DEFINED;
}

enum { UNIGRAM = 1, BPE = 2, CHARS = 4 };

struct spm {
    struct span trainer, normalizer, denormalizer;
    uint32_t n; /* pieces */
    float *scores;
    uint64_t model_type;
    bool byte_fallback, suffix;
    struct span unknown_surface;
};

static int read_piece(struct tokenizer *t, struct spm *m, struct span body, struct err *e)
{
    struct proto p = message(body);
    struct field f;
    struct span text = {"", 0};
    uint64_t type = NORMAL;
    uint32_t bits = 0;
    int rc;

    while ((rc = next_field(&p, &f, e)) > 0) {
        if (f.number == 1 && f.wire == BYTES)
            text = f.bytes;
        else if (f.number == 2 && f.wire == FIXED32)
            bits = (uint32_t)f.value;
        else if (f.number == 3 && f.wire == VARINT)
            type = f.value;
    }
    if (rc < 0)
        return err_wrap(e, "piece %u", m->n);
    if (type < NORMAL || type > BYTE)
        return err_set(e, ERR_UNSUPPORTED, "piece %u has the type %llu, which is unknown here", m->n,
                       (unsigned long long)type);
    if (!text.n)
        return err_set(e, ERR_FORMAT, "piece %u is empty", m->n);
    if (type == BYTE && !(text.n == 6 && memcmp(text.p, "<0x", 3) == 0 && text.p[5] == '>'))
        return err_set(e, ERR_FORMAT, "piece %u is no byte", m->n);
    memcpy(&m->scores[m->n], &bits, sizeof bits);
    if (!isfinite(m->scores[m->n]))
        return err_set(e, ERR_FORMAT, "the score of piece %u is no number", m->n);
    t->rules->types[m->n] = (uint8_t)type;
    return vocab_put(&t->vocab, m->n++, text, e);
}

/* Makes the pieces findable, which are all different. */
static int index_pieces(struct tokenizer *t, struct err *e)
{
    TRY(vocab_index(&t->vocab, e));
    for (uint32_t id = 0; id < t->vocab.n && t->vocab.twins; id++) {
        struct span s = vocab_get(&t->vocab, id);
        if (vocab_find(&t->vocab, s) != (int64_t)id)
            return err_set(e, ERR_FORMAT, "piece %u, '%.*s', is there twice", id, s.n > 60 ? 60 : (int)s.n, s.p);
    }
    return 0;
}

/* The first pass counts the pieces and finds the other parts; the second reads the pieces. */
static int read_model(struct tokenizer *t, struct spm *m, struct span file, struct err *e)
{
    uint32_t pieces = 0;
    struct field f;
    int rc = 0;

    for (int pass = 0; pass < 2 && rc >= 0; pass++) {
        struct proto p = message(file);
        while ((rc = next_field(&p, &f, e)) > 0) {
            if (f.wire != BYTES)
                continue;
            if (f.number == 1 && pass == 0)
                pieces++;
            else if (f.number == 1 && (rc = read_piece(t, m, f.bytes, e)) < 0)
                break;
            else if (f.number == 2)
                m->trainer = f.bytes;
            else if (f.number == 3)
                m->normalizer = f.bytes;
            else if (f.number == 5)
                m->denormalizer = f.bytes;
        }
        if (rc < 0 || pass)
            break;
        if (!pieces)
            return err_set(e, ERR_FORMAT, "it has no pieces");
        if (pieces > VOCAB_MAX_ID)
            return err_set(e, ERR_LIMIT, "it has %u pieces", pieces);
        m->scores = calloc(pieces, sizeof *m->scores);
        t->rules->types = calloc(pieces, 1);
        if (!m->scores || !t->rules->types)
            return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
        TRY(vocab_reserve(&t->vocab, pieces, e));
    }
    return rc < 0 ? rc : index_pieces(t, e);
}

static int read_trainer(struct spm *m, struct err *e)
{
    struct proto p = message(m->trainer);
    struct field f;
    int rc;

    m->model_type = UNIGRAM;
    m->unknown_surface = span_of(" \xe2\x81\x87 ");
    while ((rc = next_field(&p, &f, e)) > 0) {
        if (f.number == 3 && f.wire == VARINT)
            m->model_type = f.value;
        else if (f.number == 24 && f.wire == VARINT)
            m->suffix = f.value != 0;
        else if (f.number == 35 && f.wire == VARINT)
            m->byte_fallback = f.value != 0;
        else if (f.number == 44 && f.wire == BYTES)
            m->unknown_surface = f.bytes;
    }
    if (rc < 0)
        return err_wrap(e, "trainer_spec");
    if (m->model_type != UNIGRAM && m->model_type != BPE && m->model_type != CHARS)
        return err_set(e, ERR_UNSUPPORTED, "trainer_spec.model_type %s is unknown here: unigram, bpe and char are not",
                       m->model_type == 3 ? "word" : "of another kind");
    return 0;
}

static int read_normalizer(struct spm_normal *s, struct span body, struct err *e)
{
    struct proto p = message(body);
    struct field f;
    int rc;

    s->dummy_prefix = s->remove_extra = s->escape = true;
    while ((rc = next_field(&p, &f, e)) > 0) {
        if (f.number == 2 && f.wire == BYTES) {
            charsmap_free(&s->map);
            TRY(charsmap_read(&s->map, f.bytes, e));
        } else if (f.number == 3 && f.wire == VARINT) {
            s->dummy_prefix = f.value != 0;
        } else if (f.number == 4 && f.wire == VARINT) {
            s->remove_extra = f.value != 0;
        } else if (f.number == 5 && f.wire == VARINT) {
            s->escape = f.value != 0;
        }
    }
    return rc;
}

/* ---- what it makes ---- */

/* The piece for the mark, if text is made of it; else -1. */
static int64_t find_mark(const struct tokenizer *t)
{
    int64_t id = vocab_find(&t->vocab, span_of(SPACE_MARK));

    return id >= 0 && is_text(t->rules->types[id]) ? id : -1;
}

static int make_unigram(struct tokenizer *t, const struct spm *m, struct err *e)
{
    struct unigram *u = &t->rules->unigram;
    float least = FLT_MAX, most = FLT_MIN; /* as SentencePiece begins */

    t->rules->model = MODEL_UNIGRAM;
    t->rules->by_version = true;
    u->sums = t->spm_version == TOKENIZER_SPM_0_2_1 ? UNIGRAM_ROUNDED_LAST : UNIGRAM_ROUNDED;
    for (uint32_t id = 0; id < m->n; id++) {
        int type = t->rules->types[id];
        if (type == NORMAL) {
            least = m->scores[id] < least ? m->scores[id] : least;
            most = m->scores[id] > most ? m->scores[id] : most;
        }
        if (is_text(type))
            TRY(unigram_add(u, id, vocab_get(&t->vocab, id), m->scores[id], m->n, e));
        if (type == USER_DEFINED)
            u->user[id] = 1;
    }
    if (!u->scores)
        return err_set(e, ERR_FORMAT, "it has no pieces for text");
    u->bonus = most;
    u->unknown_score = least - 10.0f;
    u->fuse_unknown = !m->byte_fallback;
    u->byte_fallback = m->byte_fallback;
    chars_set_bytes(u->byte_id, &t->vocab);
    unigram_finish(u, &t->vocab, find_mark(t));
    if (u->longest > UNIGRAM_SHORT || t->vocab.bytes.n >= TRIE_NODES_MAX)
        return unigram_add_pieces(u, &t->vocab, e);
    return ranks_later_begin(t, 0, NULL, NULL, e);
}

/* BPE; or characters, which are BPE without a pair. */
static int make_bpe(struct tokenizer *t, struct spm *m, struct err *e)
{
    bool joins = m->model_type == BPE, any = false, zeros[2] = {false, false};
    bool older = t->spm_version == TOKENIZER_SPM_0_2_1;
    struct chars *c = &t->rules->chars;

    t->rules->model = MODEL_CHARS;
    c->sentencepiece = true;
    c->fuse_unknown = !m->byte_fallback;
    c->byte_fallback = m->byte_fallback;
    chars_set_bytes(c->byte_id, &t->vocab);
    for (uint32_t id = 0; id < m->n; id++) {
        int type = t->rules->types[id];
        bool text = is_text(type) || (type == UNUSED && older);
        struct span s = vocab_get(&t->vocab, id);
        if (type == UNUSED && joins)
            return err_set(e, ERR_UNSUPPORTED, "a BPE model with unused pieces (%u) is unknown here", id);
        if (text && s.n > CHARS_PIECE_MAX)
            return err_set(e, ERR_LIMIT, "piece %u is longer than %d bytes", id, CHARS_PIECE_MAX);
        if (type == USER_DEFINED)
            TRY(trie_add(&c->user, s, (int32_t)id, e));
        any |= text;
        zeros[signbit(m->scores[id]) != 0] |= text && m->scores[id] == 0;
        if (!text)
            m->scores[id] = NAN;
        else if (older)
            m->scores[id] += 0.0f; /* there -0 is 0, later below it */
        t->rules->by_version |= type == UNUSED;
    }
    if (!any)
        return err_set(e, ERR_FORMAT, "it has no pieces for text");
    c->first_virtual = m->n;
    c->scores = m->scores;
    m->scores = NULL;
    t->rules->by_version |= joins && zeros[0] && zeros[1];
    t->rules->joins = m->byte_fallback;
    word_marks_find(&t->rules->marks, &t->vocab, find_mark(t) >= 0, m->byte_fallback);
    return joins && t->vocab.bytes.n < TRIE_NODES_MAX ? ranks_later_begin(t, 0, NULL, NULL, e)
                                                      : chars_make(c, &t->bpe, &t->vocab, joins, e);
}

/* Control pieces, which are found in text only when special tokens are asked for; and what stays as it is. */
static int add_kept(struct tokenizer *t, const struct spm *m, struct err *e)
{
    int64_t unknown = -1;

    for (uint32_t id = 0; id < m->n; id++) {
        struct span s = vocab_get(&t->vocab, id);
        int type = t->rules->types[id];
        if (type == CONTROL)
            TRY(format_add_token(t, &(struct added_token){.text = s, .id = id, .special = true}, e));
        if (type == USER_DEFINED) {
            TRY(trie_add(&t->rules->spm.user, s, (int32_t)id, e));
            t->rules->spm.has_user = true;
        }
        if (type == UNKNOWN && unknown >= 0)
            return err_set(e, ERR_FORMAT, "it has two unknown pieces");
        if (type == UNKNOWN)
            unknown = id;
    }
    if (unknown < 0)
        return err_set(e, ERR_FORMAT, "it has no unknown piece");
    t->rules->chars.unknown = t->rules->unigram.unknown = unknown;
    return 0;
}

static int make(struct tokenizer *t, struct spm *m, struct span file, struct err *e)
{
    struct rules *r = t->rules;

    TRY(read_model(t, m, file, e));
    TRY(read_trainer(m, e));
    r->sentencepiece = true;
    r->spm.suffix = m->suffix;
    if (read_normalizer(&r->spm, m->normalizer, e) < 0)
        return err_wrap(e, "normalizer_spec");
    if (read_normalizer(&r->denormal, m->denormalizer, e) < 0)
        return err_wrap(e, "denormalizer_spec");
    r->denormalizes = r->denormal.map.units != NULL;
    r->unknown_surface = strndup(m->unknown_surface.p, m->unknown_surface.n);
    if (!r->unknown_surface)
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    TRY(add_kept(t, m, e));
    spm_normal_finish(&r->spm);
    spm_normal_finish(&r->denormal);
    if (m->byte_fallback) {
        int64_t bytes[256];
        chars_set_bytes(bytes, &t->vocab);
        if (!chars_has_all_bytes(bytes, NULL))
            return err_set(e, ERR_FORMAT, "byte_fallback wants a piece for each byte, <0x00> to <0xFF>");
    }
    return m->model_type == UNIGRAM ? make_unigram(t, m, e) : make_bpe(t, m, e);
}

int format_read_sentencepiece(struct tokenizer *t, const char *name, struct span file, const char *pattern,
                              struct err *e)
{
    struct spm m = {0};
    int rc;

    if (pattern)
        return err_set(e, ERR_ARG, "'%s': a SentencePiece model has no pattern to replace", name);
    t->format = "SentencePiece model";
    t->rules = calloc(1, sizeof *t->rules);
    rc = t->rules ? make(t, &m, file, e) : err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    if (rc == 0)
        t->rules->hash = hash_xxh3_64(file) + (t->rules->by_version && t->spm_version != TOKENIZER_SPM_0_2_1);
    free(m.scores);
    return rc < 0 ? err_wrap(e, "'%s'", name) : 0;
}
