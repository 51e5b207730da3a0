#include "curate/dedup/dedup_tokens.h"

#include <stdlib.h>
#include <unicode/uchar.h>

#include "base/hash.h"
#include "curate/text/chars.h"

enum { MAX_TEXT = 1 << 30 };

const struct dedup_cutter *dedup_tokenizers;

void dedup_tokens_free(struct dedup_tokens *t)
{
    free(t->hash);
    free(t->place);
    *t = (struct dedup_tokens){0};
}

int dedup_tokens_room(struct dedup_tokens *t, size_t n, struct err *e)
{
    int rc = mem_grow(&t->hash, &t->cap_hash, n, sizeof *t->hash);

    if (rc == 0)
        rc = mem_grow(&t->place, &t->cap_place, n, sizeof *t->place);
    return rc < 0 ? err_set(e, rc, "out of memory for %zu tokens of a text", n) : 0;
}

static int add(struct dedup_tokens *t, struct span text, size_t from, size_t to)
{
    struct span s = {text.p + from, to - from};

    TRY(mem_grow(&t->hash, &t->cap_hash, t->n + 1, sizeof *t->hash));
    TRY(mem_grow(&t->place, &t->cap_place, t->n + 1, sizeof *t->place));
    t->hash[t->n] = (uint32_t)hash_xxh3_64(s);
    t->place[t->n++] = (struct token_place){(uint32_t)from, (uint32_t)to};
    return 0;
}

enum kind { SPACE, SINGLE, WORD };

static enum kind kind_of(uint32_t c)
{
    if (c < 0x80) {
        unsigned char low = (unsigned char)(c | 32);
        if (low - 'a' + 0u < 26 || c - '0' < 10)
            return WORD;
        return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f) ? SPACE : SINGLE;
    }
    if ((c >= 0xe00 && c < 0xf00) || (c >= 0x1000 && c < 0x10a0) || (c >= 0x1780 && c < 0x1800) ||
        (c >= 0x2e80 && c < 0xa000) || (c >= 0xf900 && c < 0xfb00) || (c >= 0x20000 && c < 0x40000))
        return u_isUWhiteSpace((UChar32)c) ? SPACE : SINGLE;
    if (u_isUWhiteSpace((UChar32)c))
        return SPACE;
    return U_MASK(u_charType((UChar32)c)) & (U_GC_L_MASK | U_GC_N_MASK | U_GC_M_MASK) ? WORD : SINGLE;
}

int dedup_tokens_cut(struct dedup_tokens *t, struct span text, struct err *e)
{
    size_t from = 0, i = 0;
    bool word = false;
    int n, rc = 0;

    t->n = 0;
    if (text.n >= MAX_TEXT)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to compare", text.n);
    for (; i < text.n && rc == 0; i += (size_t)n) {
        enum kind k = kind_of(chars_decode(text.p + i, &n));
        if (k == WORD) {
            from = word ? from : i;
            word = true;
            continue;
        }
        if (word)
            rc = add(t, text, from, i);
        word = false;
        if (k == SINGLE && rc == 0)
            rc = add(t, text, i, i + (size_t)n);
    }
    if (word && rc == 0)
        rc = add(t, text, from, text.n);
    return rc < 0 ? err_set(e, rc, "out of memory for the tokens of a text of %zu bytes", text.n) : 0;
}
