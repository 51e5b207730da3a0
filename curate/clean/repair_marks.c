#include "curate/clean/repair_marks.h"

#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "curate/text/chars.h"
#include "curate/text/html_entity.h"

/* ---- HTML entities ---- */

enum { ENTITY_NAME = 24, ENTITY_MAX = ENTITY_NAME + 3 /* bytes with & # ; */ };

bool marks_is_entity(const char *p, size_t n)
{
    size_t i = n > 1 && p[1] == '#' ? 2 : 1, first = i;

    while (i < n && i - first < ENTITY_NAME && ascii_is_alnum((unsigned char)p[i]))
        i++;
    return i > first && i < n && p[i] == ';';
}

/* The entity at t[i] as bytes; its length, 0 if there is none. */
static size_t take_entity(const struct cps *t, size_t i, char name[ENTITY_MAX])
{
    size_t n = 0;

    for (; n < ENTITY_MAX && i + n < t->n && t->p[i + n] < 0x80; n++)
        name[n] = (char)t->p[i + n];
    if (!marks_is_entity(name, n))
        return 0;
    return (size_t)((char *)memchr(name, ';', n) - name) + 1;
}

/* Code points that a number must not name: nothing comes of them. */
static bool is_invalid(uint32_t c)
{
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\f' && c != '\r') || (c >= 0x7F && c < 0xA0) ||
           (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

/* &#DIGITS; or &#xDIGITS;: the number of code points it gives, -1 if it is none. */
static int from_number(const char *s, size_t n, uint32_t out[1])
{
    bool hex = s[2] == 'x' || s[2] == 'X';
    size_t i = hex ? 3 : 2;
    uint64_t c = 0;

    if (i + 1 >= n)
        return -1;
    for (; i + 1 < n; i++) {
        int d = s[i] <= '9' ? s[i] - '0' : (s[i] | 0x20) - 'a' + 10;
        if (d >= (hex ? 16 : 10))
            return -1;
        if (c <= 0x10FFFF)
            c = c * (hex ? 16 : 10) + (uint64_t)d;
    }
    if (c == ';') /* would look like half of an entity */
        return -1;
    out[0] = (uint32_t)c;
    if (c == 0 || (c >= 0xD800 && c <= 0xDFFF) || c > 0x10FFFF)
        out[0] = 0xFFFD;
    else if (c >= 0x80 && c < 0xA0)
        out[0] = mojibake_charsets[MOJIBAKE_WINDOWS_1252].high[c - 0x80];
    else if (is_invalid((uint32_t)c))
        return 0;
    return 1;
}

static int from_utf8(const char *s, int n, uint32_t out[8])
{
    int k = 0, len;

    for (int i = 0; i < n; i += len)
        out[k++] = chars_decode(s + i, &len);
    return k;
}

/* A name in capitals that means nothing, but does in small letters. */
static int from_capitals(const char *s, size_t n, uint32_t out[8])
{
    char small[ENTITY_MAX], value[8], upper[32];
    UChar from[8], to[24];
    int32_t m, len;
    int bytes;
    UErrorCode u = U_ZERO_ERROR;

    for (size_t i = 0; i < n; i++) {
        if (s[i] >= 'a' && s[i] <= 'z')
            return -1;
        small[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 0x20 : s[i]);
    }
    if (html_entity(s, s + n, false, value, &bytes) || html_entity(small, small + n, false, value, &bytes) != n)
        return -1;
    u_strFromUTF8(from, 8, &m, value, bytes, &u);
    m = u_strToUpper(to, 24, from, m, "", &u);
    u_strToUTF8(upper, sizeof upper, &len, to, m, &u);
    return U_FAILURE(u) || len > 8 ? -1 : from_utf8(upper, len, out);
}

static int from_name(const char *s, size_t n, uint32_t out[8])
{
    char value[8];
    int bytes;

    if (s[1] == '#')
        return from_number(s, n, out);
    if (html_entity(s, s + n, false, value, &bytes) == n)
        return from_utf8(value, bytes, out);
    return from_capitals(s, n, out);
}

int marks_unescape(struct cps *t, struct cps *next)
{
    size_t done = 0;
    struct cps swap;

    next->n = 0;
    for (size_t i = 0; i < t->n;) {
        char name[ENTITY_MAX];
        uint32_t out[8];
        size_t n = t->p[i] == '&' ? take_entity(t, i, name) : 0;
        int k = n ? from_name(name, n, out) : -1;

        if (k >= 0) {
            TRY(cps_put(next, t->p + done, i - done));
            TRY(cps_put(next, out, (size_t)k));
            done = i + n;
        }
        i += n ? n : 1;
    }
    if (!done)
        return 0;
    TRY(cps_put(next, t->p + done, t->n - done));
    swap = *t;
    *t = *next;
    *next = swap;
    return 0;
}

/* ---- characters that have plainer forms ---- */

static const struct plain {
    uint16_t from;
    uint8_t kind;
    uint16_t to[3];
} plain[] = {
#define REPAIR_PLAIN
#define LIGATURE MARKS_LIGATURE
#define WIDTH MARKS_WIDTH
#include "curate/clean/repair_data.inc"
#undef REPAIR_PLAIN
#undef LIGATURE
#undef WIDTH
};

static const struct plain *find_plain(uint32_t c)
{
    size_t lo = 0, hi = sizeof plain / sizeof *plain;

    if (c < plain[0].from)
        return NULL;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (plain[mid].from == c)
            return &plain[mid];
        if (plain[mid].from < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

int marks_plain(struct cps *t, struct cps *next, int kind)
{
    struct cps swap;

    TRY(cps_reserve(next, t->n * 3));
    next->n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct plain *q = find_plain(t->p[i]);
        if (q && q->kind == kind) {
            for (int k = 0; k < 3 && q->to[k]; k++)
                next->p[next->n++] = q->to[k];
        } else {
            next->p[next->n++] = t->p[i];
        }
    }
    swap = *t;
    *t = *next;
    *next = swap;
    return 0;
}

static uint32_t straight(uint32_t c)
{
    if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B))
        return '\'';
    return c >= 0x201C && c <= 0x201F ? '"' : c;
}

void marks_quotes(struct cps *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->p[i] = straight(t->p[i]);
}

void marks_terminal(struct cps *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        if (t->p[i] == 0x1B && i + 1 < t->n && t->p[i + 1] == '[') {
            size_t k = i + 2;
            while (k < t->n && (t->p[k] == ';' || u_isdigit((UChar32)t->p[k])))
                k++;
            if (k < t->n && t->p[k] < 0x80 && (t->p[k] | 0x20) >= 'a' && (t->p[k] | 0x20) <= 'z') {
                i = k;
                continue;
            }
        }
        t->p[n++] = t->p[i];
    }
    t->n = n;
}

size_t repair_marks_find(struct span s, size_t from, size_t to, bool quotes, bool ligatures, bool width)
{
    int n;

    for (size_t i = from; i < to; i += (size_t)n) {
        uint32_t c = (unsigned char)s.p[i];
        const struct plain *q;

        n = 1;
        if (c < 0x80)
            continue;
        c = chars_decode(s.p + i, &n);
        if (quotes && straight(c) != c)
            return i;
        if ((ligatures || width) && (q = find_plain(c)) && (q->kind == MARKS_WIDTH ? width : ligatures))
            return i;
    }
    return to;
}
