/* What the formats share: GPT-2's way to write bytes as characters. */
#include "base/ascii.h"
#include "base/utf8.h"
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

enum { TOKEN_ROOM = 4096 }; /* of one token of a simple vocabulary */

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
    const char *p = token.p, *end = token.p + token.n;
    char *o;

    TRY(buf_reserve(out, token.n));
    for (o = out->p + out->n; p < end; o++) {
        uint32_t cp;
        p += utf8_next(p, end, &cp);
        if (format_byte_of(cp) < 0) {
            TRY(buf_put_span(out, token));
            return 1;
        }
        *o = (char)map.to_byte[cp];
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

/* The character at *p of a JSON string behind which there is a NUL, as a number; -1: none of those that stand for bytes. */
static int next_char(const uint8_t **p)
{
    const uint8_t *s = *p;
    int cp = 0;

    if (s[0] == '\\' && (s[1] == '"' || s[1] == '\\' || s[1] == '/')) {
        *p += 2;
        return s[1];
    }
    if (s[0] == '\\' && s[1] == 'u') {
        for (int i = 2; i < 6; i++) {
            int digit = ascii_hex(s[i]);

            if (digit < 0)
                return -1;
            cp = cp << 4 | digit;
        }
        *p += 6;
        return cp;
    }
    if (s[0] < 0x80) {
        *p += 1;
        return s[0] == '\\' ? -1 : s[0];
    }
    if (s[0] < 0xC2 || s[0] >= 0xE0 || (s[1] & 0xC0) != 0x80)
        return -1;
    *p += 2;
    return (s[0] & 0x1F) << 6 | (s[1] & 0x3F);
}

static const uint8_t *skip_blanks(const uint8_t *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    return p;
}

/* `"token": number` from the quote on, all characters standing for bytes; NULL: it is something else. */
static const uint8_t *read_simple_token(const uint8_t *p, struct buf *bytes, uint32_t *id)
{
    uint64_t n = 0;
    const uint8_t *digits;

    buf_clear(bytes);
    for (p++; *p != '"';) {
        int cp = next_char(&p);
        int byte = cp < 0 ? -1 : format_byte_of((uint32_t)cp);
        if (byte < 0 || bytes->n == TOKEN_ROOM)
            return NULL;
        bytes->p[bytes->n++] = (char)byte;
    }
    p = skip_blanks(p + 1);
    if (*p != ':')
        return NULL;
    digits = p = skip_blanks(p + 1);
    for (; *p >= '0' && *p <= '9' && p < digits + 9; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    *id = (uint32_t)n;
    return p == digits || (*digits == '0' && p > digits + 1) || n > VOCAB_MAX_ID ? NULL : skip_blanks(p);
}

/* An object of nothing but such tokens, all different.  1: it is one; 0: it is not, and some may be in v. */
static int read_simple_vocab(struct vocab *v, const uint8_t *p, struct buf *bytes, struct err *e)
{
    uint32_t id;

    p = skip_blanks(p);
    if (*p++ != '{')
        return 0;
    do {
        p = skip_blanks(p);
        if (*p != '"' || !(p = read_simple_token(p, bytes, &id)) || vocab_is_there(v, id))
            return 0;
        TRY(vocab_put(v, id, buf_span(bytes), e));
    } while (*p++ == ',');
    if (p[-1] != '}' || *skip_blanks(p))
        return 0;
    TRY(vocab_index(v, e));
    return !v->twins;
}

int format_read_simple_vocab(struct tokenizer *t, struct span json, struct err *e)
{
    struct buf bytes = {0};
    int rc = 0;

    if (memchr(json.p, '\0', json.n) == NULL)
        rc = buf_reserve(&bytes, TOKEN_ROOM) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a vocabulary")
                                                 : read_simple_vocab(&t->vocab, (const uint8_t *)json.p, &bytes, e);
    if (rc == 0)
        vocab_free(&t->vocab);
    buf_free(&bytes);
    return rc;
}

/* Gives v the tokens of an object, those that are characters for bytes (raw 0) or the others, which no text makes (raw 1), or
 * all (-1); by vocab_put, or, if `careful`, vocab_add.  Returns whether there were others. */
static int put_tokens(struct vocab *v, const struct node *tokens, int raw, bool careful, struct err *e)
{
    struct buf bytes = {0};
    int rc = 0, others = 0;

    for (const struct node *x = tokens->child; x && rc >= 0; x = x->next) {
        uint32_t id = (uint32_t)x->integer;
        int is_raw = 0;
        buf_clear(&bytes);
        if (x->type != NODE_INT || x->integer < 0 || x->integer > VOCAB_MAX_ID) {
            rc = err_set(e, ERR_FORMAT, "token '%.100s' has no valid id", x->key.p);
        } else if ((rc = is_raw = format_unmap_bytes(x->key, &bytes)) < 0) {
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

int format_read_vocab(struct tokenizer *t, const struct node *tokens, struct err *e)
{
    int rc;

    if (!tokens || tokens->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "the vocabulary is no object");
    TRY(vocab_reserve(&t->vocab, (uint32_t)tokens->count, e));
    TRY(put_tokens(&t->vocab, tokens, -1, false, e));
    TRY(vocab_index(&t->vocab, e));
    if (!t->vocab.twins)
        return 0;
    vocab_free(&t->vocab); /* of two with the same bytes, the one that is characters for bytes is found */
    TRY(rc = put_tokens(&t->vocab, tokens, 0, true, e));
    return rc ? (rc = put_tokens(&t->vocab, tokens, 1, true, e)) < 0 ? rc : 0 : 0;
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
