#include "curate/text/ccnet.h"

#include <stdlib.h>
#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include "base/icu_normal.h"
#include "curate/text/chars.h"

enum { TEXT_MAX = 1 << 28 };

/* Punctuation that becomes ASCII, by code point.  The full-width 1 is a digit before it comes to this. */
static const struct mark {
    uint16_t c;
    char as[6];
} marks[] = {
    {0x00ab, "\""}, {0x00b4, "'"}, {0x00bb, "\""}, {0x2013, "-"}, {0x2014, " - "}, {0x2019, "'"}, {0x201c, "\""}, {0x201d, "\""},
    {0x201e, "\""}, {0x2026, "..."}, {0x2236, ":"}, {0x2501, "-"}, {0x25ba, "-"}, {0x3001, ","}, {0x3002, "."}, {0x3008, "<"},
    {0x3009, ">"}, {0x300a, "\""}, {0x300b, "\""}, {0x300c, "\""}, {0x300d, "\""}, {0x3010, "["}, {0x3011, "]"}, {0xff01, "!"},
    {0xff05, "%"}, {0xff08, "("}, {0xff09, ")"}, {0xff0c, ","}, {0xff0e, ". "}, {0xff1a, ":"}, {0xff1b, ";"}, {0xff1f, "?"},
    {0xff5e, "~"},
};

static const char *mark_of(uint32_t c)
{
    size_t lo = 0, hi = sizeof marks / sizeof *marks;

    while (lo < hi) {
        size_t at = (lo + hi) / 2;
        if (marks[at].c == c)
            return marks[at].as;
        if (marks[at].c < c)
            lo = at + 1;
        else
            hi = at;
    }
    return NULL;
}

/* Appends a character of the decomposed text in lower case; out has room for 4 bytes. */
static void put_char(uint32_t c, struct buf *out)
{
    const char *as;

    if (c < 32 || (c >= 127 && c < 160))
        return;
    if (c < 127) {
        out->p[out->n++] = (char)(c - '0' < 10 ? '0' : c);
        return;
    }
    as = mark_of(c);
    if (as) {
        memcpy(out->p + out->n, as, strlen(as));
        out->n += strlen(as);
        return;
    }
    switch (u_charType((UChar32)c)) {
    case U_NON_SPACING_MARK:
        return;
    case U_DECIMAL_DIGIT_NUMBER:
        out->p[out->n++] = '0';
        return;
    default:
        out->n += (size_t)utf8_put(out->p + out->n, c);
    }
}

static bool is_ascii(struct span s)
{
    unsigned char any = 0;

    for (size_t i = 0; i < s.n; i++)
        any |= (unsigned char)s.p[i];
    return any < 0x80;
}

/* Any text, by UTF-16. */
static int normalize_any(struct ccnet_text *t, struct span s, struct buf *out)
{
    UErrorCode u = U_ZERO_ERROR;
    const UNormalizer2 *nfd = unorm2_getNFDInstance(&u);
    int32_t most = (int32_t)(3 * s.n + 16), n = 0, at = 0; /* lower case and NFD lengthen UTF-16 below this */
    UChar32 c;
    int len;

    for (int i = 0; i < 2; i++)
        TRY(mem_room(&t->u[i], &t->cap[i], (size_t)most, sizeof *t->u[i]));
    for (size_t i = 0; i < s.n; i += (size_t)len) {
        uint32_t x = chars_decode(s.p + i, &len);
        U16_APPEND_UNSAFE(t->u[0], n, x);
    }
    n = u_strToLower(t->u[1], most, t->u[0], n, "", &u);
    if (U_SUCCESS(u))
        n = icu_normalize(nfd, t->u[1], n, t->u[0], most, &u);
    if (U_FAILURE(u) || buf_reserve(out, 3 * (size_t)n + 4) < 0)
        return ERR_NOMEM;
    while (at < n) {
        U16_NEXT_UNSAFE(t->u[0], at, c);
        put_char((uint32_t)c, out);
    }
    return 0;
}

int ccnet_normalize(struct ccnet_text *t, struct span text, struct buf *out, struct err *e)
{
    struct span s = chars_strip(text);
    int rc;

    if (s.n >= TEXT_MAX)
        return err_set(e, ERR_LIMIT, "text of %zu bytes: normalisation takes less than 2^28", s.n);
    if (!is_ascii(s)) {
        rc = normalize_any(t, s, out);
    } else {
        rc = buf_reserve(out, s.n + 4);
        for (size_t i = 0; rc == 0 && i < s.n; i++) {
            unsigned char c = (unsigned char)s.p[i];
            put_char(c - 'A' + 0u < 26 ? c | 32u : c, out);
        }
    }
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory to normalise a text") : 0;
}

void ccnet_text_free(struct ccnet_text *t)
{
    free(t->u[0]);
    free(t->u[1]);
    *t = (struct ccnet_text){0};
}
