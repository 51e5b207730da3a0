#include "curate/text/segment.h"

#include <stdlib.h>
#include <unicode/ubrk.h>
#include <unicode/ustring.h>

void segment_free(struct segmenter *s)
{
    if (s->breaks)
        ubrk_close(s->breaks);
    free(s->u);
    memset(s, 0, sizeof *s);
}

/* Length of an apostrophe (' or U+2019) at p, 0 if there is none. */
static size_t apostrophe_at(const char *p, const char *end)
{
    return *p == '\'' ? 1 : end - p >= 3 && memcmp(p, "\xE2\x80\x99", 3) == 0 ? 3 : 0;
}

static int add_elided(struct words *ws, struct span text, size_t from, size_t to)
{
    const uint16_t *class = chars_classes();
    int n;

    for (size_t i = from + 1; i < to; i++) {
        size_t k = apostrophe_at(text.p + i, text.p + to);
        struct span before = {text.p + from, i - from};

        if (!k || i + k >= to || !(class[chars_last(before, &n)] & CHAR_LETTER) ||
            !(class[chars_decode(text.p + i + k, &n)] & CHAR_LETTER))
            continue;
        TRY(words_put(ws, from, i + k));
        from = i + k;
        i = from;
    }
    return words_put(ws, from, to);
}

/* The piece of bytes from..to, less the white space around it. */
static int add_piece(struct words *ws, const struct lang *l, struct span text, size_t from, size_t to)
{
    struct span piece = {text.p + from, to - from}, w;

    if (piece.n == 1 && (piece.p[0] == ' ' || piece.p[0] == '\n'))
        return 0;
    w = chars_strip(piece);
    if (!w.n)
        return 0;
    from = (size_t)(w.p - text.p);
    if (lang_traits(l) & LANG_ELIDES && w.n > 2)
        return add_elided(ws, text, from, from + w.n);
    return words_put(ws, from, from + w.n);
}

static int open_breaks(struct segmenter *s, struct err *e)
{
    UErrorCode u = U_ZERO_ERROR;

    if (s->breaks)
        return 0;
    s->breaks = ubrk_open(UBRK_WORD, "", NULL, 0, &u);
    if (U_FAILURE(u))
        s->breaks = NULL;
    return s->breaks ? 0 : err_set(e, ERR_UNSUPPORTED, "ICU has no word breaks: %s", u_errorName(u));
}

int segment_split(struct segmenter *s, const struct lang *l, struct span text, struct words *ws, struct err *e)
{
    UErrorCode u = U_ZERO_ERROR;
    size_t byte = 0, from = 0;
    int32_t n = 0, unit = 0;

    ws->n = 0;
    if (text.n >= 1U << 28)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes, 2^28 or more", text.n);
    TRY(open_breaks(s, e));
    if (text.n >= s->cap_u) {
        free(s->u);
        s->cap_u = 0;
        s->u = malloc((text.n + 1) * sizeof *s->u);
        if (!s->u)
            return err_set(e, ERR_NOMEM, "no memory for the words of a text");
        s->cap_u = text.n + 1;
    }
    u_strFromUTF8(s->u, (int32_t)s->cap_u, &n, text.p, (int32_t)text.n, &u);
    ubrk_setText(s->breaks, s->u, n, &u);
    if (U_FAILURE(u))
        return err_set(e, ERR_NOMEM, "ICU: %s", u_errorName(u));
    for (int32_t at = ubrk_next(s->breaks); at != UBRK_DONE; at = ubrk_next(s->breaks), from = byte) {
        for (; unit < at; unit++) { /* a low surrogate counts with the high one */
            uint16_t c = s->u[unit];
            byte += c < 0x80 ? 1 : c < 0x800 ? 2 : U16_IS_TRAIL(c) ? 0 : U16_IS_LEAD(c) ? 4 : 3;
        }
        if (add_piece(ws, l, text, from, byte) < 0)
            return err_set(e, ERR_NOMEM, "no memory for the words of a text");
    }
    return 0;
}
