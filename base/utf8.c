#include "base/utf8.h"

#include "base/err.h"

int utf8_next(const char *s, const char *end, uint32_t *cp)
{
    const unsigned char *p = (const unsigned char *)s;
    ptrdiff_t left = end - s;
    uint32_t c = p[0];
    unsigned lo = 0x80, hi = 0xBF;
    int n;

    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    *cp = 0xFFFD;
    if (c >= 0xC2 && c <= 0xDF) {
        n = 2;
        c &= 0x1F;
    } else if (c >= 0xE0 && c <= 0xEF) {
        if (c == 0xE0)
            lo = 0xA0;
        if (c == 0xED)
            hi = 0x9F;
        n = 3;
        c &= 0x0F;
    } else if (c >= 0xF0 && c <= 0xF4) {
        if (c == 0xF0)
            lo = 0x90;
        if (c == 0xF4)
            hi = 0x8F;
        n = 4;
        c &= 0x07;
    } else {
        return 1;
    }
    for (int i = 1; i < n; i++) {
        if (i >= left || p[i] < lo || p[i] > hi)
            return i;
        c = c << 6 | (p[i] & 0x3Fu);
        lo = 0x80;
        hi = 0xBF;
    }
    *cp = c;
    return n;
}

int utf8_put(char *out, uint32_t cp)
{
    unsigned char *o = (unsigned char *)out;

    if (cp < 0x80) {
        o[0] = (unsigned char)cp;
        return 1;
    }
    if (cp < 0x800) {
        o[0] = (unsigned char)(0xC0 | cp >> 6);
        o[1] = (unsigned char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        o[0] = (unsigned char)(0xE0 | cp >> 12);
        o[1] = (unsigned char)(0x80 | (cp >> 6 & 0x3F));
        o[2] = (unsigned char)(0x80 | (cp & 0x3F));
        return 3;
    }
    o[0] = (unsigned char)(0xF0 | cp >> 18);
    o[1] = (unsigned char)(0x80 | (cp >> 12 & 0x3F));
    o[2] = (unsigned char)(0x80 | (cp >> 6 & 0x3F));
    o[3] = (unsigned char)(0x80 | (cp & 0x3F));
    return 4;
}

/* The length of the well-formed prefix of s. */
static size_t valid_prefix(struct span s)
{
    const char *p = s.p, *end = s.p + s.n;
    uint32_t cp;

    while (p < end) {
        uint64_t w;
        while (end - p >= 8) {
            memcpy(&w, p, 8);
            if (w & 0x8080808080808080ULL)
                break;
            p += 8;
        }
        if (p == end)
            break;
        int n = utf8_next(p, end, &cp);
        /* U+FFFD itself is well-formed: EF BF BD */
        if (cp == 0xFFFD && !(n == 3 && (unsigned char)p[0] == 0xEF))
            break;
        p += n;
    }
    return (size_t)(p - s.p);
}

bool utf8_valid(struct span s)
{
    return s.n == 0 || valid_prefix(s) == s.n;
}

int utf8_repair(struct span s, struct buf *out)
{
    while (s.n) {
        size_t n = valid_prefix(s);
        uint32_t cp;

        TRY(buf_put(out, s.p, n));
        s.p += n;
        s.n -= n;
        if (!s.n)
            break;
        n = (size_t)utf8_next(s.p, s.p + s.n, &cp);
        TRY(buf_put(out, "\xEF\xBF\xBD", 3));
        s.p += n;
        s.n -= n;
    }
    return 0;
}

struct span utf8_without_mark(struct span text)
{
    bool marked = text.n >= 3 && memcmp(text.p, "\xEF\xBB\xBF", 3) == 0;

    return marked ? (struct span){text.p + 3, text.n - 3} : text;
}
