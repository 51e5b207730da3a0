#include "tokenize/train_spm.h"

enum wire { VARINT = 0, BYTES = 2, FIXED32 = 5 };
enum piece_type { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };
enum { UNIGRAM = 1, BPE = 2 };

/* Numbers of fields in sentencepiece_model.proto. */
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_MODEL_TYPE = 3, TRAINER_VOCAB_SIZE = 4, TRAINER_BYTE_FALLBACK = 35, TRAINER_UNK_ID = 40, TRAINER_UNK_PIECE = 45 };
enum { NORMALIZER_NAME = 1, NORMALIZER_DUMMY_PREFIX = 3, NORMALIZER_REMOVE_EXTRA = 4, NORMALIZER_ESCAPE = 5 };

static void put_varint(struct buf *b, uint64_t x)
{
    for (; x > 127; x >>= 7)
        buf_putc(b, (char)(x | 128));
    buf_putc(b, (char)x);
}

static void put_number(struct buf *b, unsigned field, int64_t x)
{
    put_varint(b, field << 3 | VARINT);
    put_varint(b, (uint64_t)x);
}

static void put_bytes(struct buf *b, unsigned field, struct span s)
{
    put_varint(b, field << 3 | BYTES);
    put_varint(b, s.n);
    buf_put_span(b, s);
}

static void put_float(struct buf *b, unsigned field, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    put_varint(b, field << 3 | FIXED32);
    for (int i = 0; i < 4; i++)
        buf_putc(b, (char)(bits >> 8 * i));
}

/* <unk>, <s>, </s> and <pad>, by their ids or -1: fields one after another, and their texts' fields too. */
static void put_named(struct buf *b, const struct train_options *x, const struct train_symbols *s)
{
    const char *const names[] = {x->specials[0], "<s>", "</s>", "<pad>"};

    for (unsigned i = 0; i < 4; i++) {
        int64_t id = vocab_find(&s->vocab, span_of(names[i]));
        put_number(b, TRAINER_UNK_ID + i, id < (int64_t)s->first_joined ? id : -1);
        put_bytes(b, TRAINER_UNK_PIECE + i, span_of(names[i]));
    }
}

int train_spm_put(struct buf *b, const struct train_options *x, const struct train_symbols *s, struct err *e)
{
    uint32_t specials = train_specials(x);
    struct buf part = {0};
    int rc;

    for (uint32_t id = 0; id < s->vocab.n; id++) {
        int type = id == 0 ? UNKNOWN : id < specials ? CONTROL : id < s->first_joined ? BYTE : NORMAL;
        buf_clear(&part);
        put_bytes(&part, PIECE_TEXT, vocab_get(&s->vocab, id));
        put_float(&part, PIECE_SCORE, type != NORMAL ? 0 : s->kind->scored ? train_symbols_score(s, id)
                                                                           : -(float)(id - s->first_joined));
        put_number(&part, PIECE_TYPE, type);
        put_bytes(b, MODEL_PIECE, buf_span(&part));
    }
    buf_clear(&part);
    put_number(&part, TRAINER_MODEL_TYPE, s->kind->scored ? UNIGRAM : BPE);
    put_number(&part, TRAINER_VOCAB_SIZE, s->vocab.n);
    put_number(&part, TRAINER_BYTE_FALLBACK, s->kind->bytes || x->byte_fallback);
    put_named(&part, x, s);
    put_bytes(b, MODEL_TRAINER, buf_span(&part));
    buf_clear(&part);
    put_bytes(&part, NORMALIZER_NAME, span_of("identity"));
    put_number(&part, NORMALIZER_DUMMY_PREFIX, 1);
    put_number(&part, NORMALIZER_REMOVE_EXTRA, 0);
    put_number(&part, NORMALIZER_ESCAPE, 1);
    put_bytes(b, MODEL_NORMALIZER, buf_span(&part));
    rc = part.failed ? part.failed : b->failed;
    buf_free(&part);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a SentencePiece model") : 0;
}
