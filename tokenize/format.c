/* What the formats share: GPT-2's way to write bytes as characters. */
#include "base/utf8.h"
#include "tokenize/format_rows.h"
#include "tokenize/model.h"

/* Bytes that GPT-2 writes as the character of the same number; the 68 others, in
 * order, are U+0100 and following. */
static bool maps_to_itself(unsigned b)
{
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

struct byte_map {
    uint16_t to_char[256];
    int16_t to_byte[256 + 68]; /* -1: no byte is written so */
};

static struct byte_map make_byte_map(void)
{
    struct byte_map m;
    uint16_t next = 256;

    memset(m.to_byte, -1, sizeof m.to_byte);
    for (unsigned b = 0; b < 256; b++) {
        m.to_char[b] = maps_to_itself(b) ? (uint16_t)b : next++;
        m.to_byte[m.to_char[b]] = (int16_t)b;
    }
    return m;
}

static struct byte_map map;

__attribute__((constructor)) static void fill_map(void)
{
    map = make_byte_map();
}

int format_byte_of(uint32_t cp)
{
    return cp < sizeof map.to_byte / sizeof *map.to_byte ? map.to_byte[cp] : -1;
}

int format_unmap_bytes(struct span token, struct buf *out)
{
    const uint8_t *p = (const uint8_t *)token.p, *end = p + token.n;
    char *o;

    TRY(buf_reserve(out, token.n));
    for (o = out->p + out->n; p < end; o++) {
        uint32_t cp = *p++;
        int byte;
        if (cp >= 0x80) /* two bytes, or none that is mapped */
            cp = cp >= 0xC2 && cp < 0xE0 && p < end && (*p & 0xC0) == 0x80 ? (cp & 0x1F) << 6 | (*p++ & 0x3F) : UINT32_MAX;
        byte = format_byte_of(cp);
        if (byte < 0) {
            TRY(buf_put_span(out, token));
            return 1;
        }
        *o = (char)byte;
    }
    out->n = (size_t)(o - out->p);
    return 0;
}

int format_map_bytes(struct span bytes, struct buf *out)
{
    char c[4];

    for (size_t i = 0; i < bytes.n; i++)
        TRY(buf_put(out, c, (size_t)utf8_put(c, map.to_char[(unsigned char)bytes.p[i]])));
    return 0;
}

int format_decode_bytes(const struct tokenizer *t, uint32_t id, struct span text, struct buf *out)
{
    bool added = vocab_is_added(&t->vocab, id) || !span_eq(text, vocab_get(&t->vocab, id));
    int rc = t->added_mapped && added ? format_unmap_bytes(text, out) : buf_put_span(out, text);

    return rc < 0 ? rc : 0;
}

/* Gives v the tokens of an object, those that are characters for bytes (raw 0) or the others, which no text makes (raw 1), or
 * all (-1); by vocab_put, or, if `careful`, vocab_add.  Returns whether there were others. */
static int put_tokens(struct vocab *v, struct row_reader *tokens, int raw, bool careful, struct err *e)
{
    struct buf bytes = {0};
    struct row x;
    int rc = 0, others = 0;

    for (size_t i = 0; i < tokens->n && rc >= 0 && (rc = row_reader_get(tokens, i, &x, e)) == 0; i++) {
        uint32_t id = (uint32_t)x.integer;
        int is_raw = 0;
        buf_clear(&bytes);
        if (x.integer < 0 || x.integer > VOCAB_MAX_ID) {
            rc = err_set(e, ERR_FORMAT, "token '%.100s' has no valid id", x.text.p);
        } else if ((rc = is_raw = format_unmap_bytes(x.text, &bytes)) < 0) {
            rc = err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
        } else if (raw < 0 || is_raw == raw) {
            rc = (careful ? vocab_add : vocab_put)(v, id, buf_span(&bytes), e);
            if (rc == 0 && is_raw)
                vocab_mark_added(v, id);
        }
        others |= rc >= 0 && is_raw;
    }
    buf_free(&bytes);
    return rc < 0 ? rc : others;
}

static int read_vocab(struct tokenizer *t, struct row_reader *tokens, struct err *e)
{
    int rc;

    TRY(vocab_reserve(&t->vocab, (uint32_t)tokens->n, e));
    TRY(put_tokens(&t->vocab, tokens, -1, false, e));
    TRY(vocab_index(&t->vocab, e));
    if (!t->vocab.twins)
        return 0;
    if (!tokens->items) /* or it is the same key twice */
        return err_set(e, ERR_FORMAT, "two tokens have the same bytes");
    vocab_free(&t->vocab); /* of two with the same bytes, the one that is characters for bytes is found */
    TRY(rc = put_tokens(&t->vocab, tokens, 0, true, e));
    return rc ? (rc = put_tokens(&t->vocab, tokens, 1, true, e)) < 0 ? rc : 0 : 0;
}

int format_read_vocab(struct tokenizer *t, const struct node *list, struct err *e)
{
    struct row_reader tokens;
    int rc;

    if (!hf_is_map(list))
        return err_set(e, ERR_FORMAT, "the vocabulary is no object");
    TRY(row_reader_begin(&tokens, list, e));
    rc = read_vocab(t, &tokens, e);
    row_reader_free(&tokens);
    return rc;
}

int format_add_merge(struct tokenizer *t, struct span left, struct span right, size_t prefix, uint32_t rank,
                     struct buf *scratch, struct err *e)
{
    int64_t l = vocab_find(&t->vocab, left), r = vocab_find(&t->vocab, right), id;

    buf_clear(scratch);
    prefix = prefix < right.n ? prefix : right.n;
    if (buf_put_span(scratch, left) < 0 || buf_put(scratch, right.p + prefix, right.n - prefix) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    id = vocab_find_likely(&t->vocab, buf_span(scratch), t->likely);
    if (l < 0 || r < 0 || id < 0) {
        struct span s = l < 0 ? left : r < 0 ? right : buf_span(scratch);
        t->lacks_token = true;
        return err_set(e, ERR_FORMAT, "merge %u needs the token '%.*s', which the vocabulary lacks", rank,
                       s.n > 100 ? 100 : (int)s.n, s.p);
    }
    t->likely = (uint32_t)id + 1;
    return bpe_add_merge(&t->bpe, (uint32_t)l, (uint32_t)r, rank, (uint32_t)id, e);
}

int format_add_token(struct tokenizer *t, const struct added_token *token, struct err *e)
{
    if (!vocab_get(&t->vocab, token->id).p) {
        TRY(vocab_add(&t->vocab, token->id, token->text, e));
        vocab_mark_added(&t->vocab, token->id);
    }
    return added_add(&t->added, token, e);
}
