#include "curate/text/chars.h"

#include <pthread.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <unicode/uchar.h>

static const struct {
    uint32_t first, last;
    uint16_t step, classes;
} ranges[] = {
#define WORDS_DATA_CHARS
#include "curate/text/words_data.inc"
#undef WORDS_DATA_CHARS
};

enum { N_CODES = 0x110000 };
static uint16_t *table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static UBool add_category(const void *unused, UChar32 start, UChar32 limit, UCharCategory type)
{
    uint32_t m = U_MASK(type);
    uint16_t bits = m & U_GC_L_MASK ? CHAR_LETTER : m & U_GC_P_MASK ? CHAR_PUNCT : 0;

    (void)unused;
    if (bits)
        for (UChar32 c = start; c < limit; c++)
            table[c] |= bits;
    return true;
}

static void build(void)
{
    static const uint32_t active[] = {'+', '-', '*', '^', '.', ',', '~', '/', '=', ':', '<', '>', '@'};
    char buf[4];
    int n;

    table = calloc(N_CODES, sizeof *table);
    if (!table)
        return;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (uint32_t c = ranges[i].first; c <= ranges[i].last; c += ranges[i].step)
            table[c] |= ranges[i].classes;
    u_enumCharTypes(add_category, NULL);
    for (uint32_t c = 0; c <= 0x3000; c++) {
        const char *end = buf + utf8_put(buf, c);
        if (chars_space_at(buf, end, &n))
            table[c] |= CHAR_SPACE;
    }
    for (uint32_t c = 0; c < N_CODES; c++)
        if (!(table[c] & (CHAR_PREFIX | CHAR_SUFFIX | CHAR_ICON | CHAR_CURRENCY)) && (c < '0' || c > '9'))
            table[c] |= CHAR_INERT;
    for (size_t i = 0; i < sizeof active / sizeof *active; i++)
        table[active[i]] &= (uint16_t)~CHAR_INERT;
}

const uint16_t *chars_classes(void)
{
    pthread_once(&once, build);
    return table;
}

bool chars_is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
    return (U_GET_GC_MASK((UChar32)c) & U_GC_L_MASK) ||
           u_getIntPropertyValue((UChar32)c, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

size_t chars_count(struct span s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

uint32_t chars_lower_sigma(struct span text, const char *at)
{
    const char *p = at, *end = text.p + text.n;
    uint32_t c;

    do {
        if (p == text.p)
            return 0x3c3;
        while (p > text.p && ((unsigned char)*--p & 0xc0) == 0x80)
            ;
        utf8_next(p, end, &c);
    } while (u_hasBinaryProperty((UChar32)c, UCHAR_CASE_IGNORABLE));
    if (!u_hasBinaryProperty((UChar32)c, UCHAR_CASED))
        return 0x3c3;
    for (p = at + 2; p < end;) {
        p += utf8_next(p, end, &c);
        if (!u_hasBinaryProperty((UChar32)c, UCHAR_CASE_IGNORABLE))
            return u_hasBinaryProperty((UChar32)c, UCHAR_CASED) ? 0x3c3 : 0x3c2;
    }
    return 0x3c2;
}

struct span chars_lstrip(struct span s)
{
    int n;

    while (s.n && chars_space_at(s.p, s.p + s.n, &n)) {
        s.p += n;
        s.n -= (size_t)n;
    }
    return s;
}

struct span chars_rstrip(struct span s)
{
    while (s.n) {
        const char *p = s.p + s.n - 1;
        int n;

        while (p > s.p && ((unsigned char)*p & 0xC0) == 0x80)
            p--;
        if (!chars_space_at(p, s.p + s.n, &n))
            break;
        s.n = (size_t)(p - s.p);
    }
    return s;
}

struct span chars_strip(struct span s)
{
    return chars_lstrip(chars_rstrip(s));
}

/* Bytes of the line end at p, 0 if there is none. */
static int line_end(const char *s, const char *end)
{
    const unsigned char *p = (const unsigned char *)s;
    ptrdiff_t left = end - s;

    if (p[0] == '\r')
        return left > 1 && p[1] == '\n' ? 2 : 1;
    if ((p[0] >= '\n' && p[0] <= '\f') || (p[0] >= 0x1C && p[0] <= 0x1E))
        return 1;
    if (p[0] == 0xC2 && left > 1 && p[1] == 0x85)
        return 2;
    return p[0] == 0xE2 && left > 2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9) ? 3 : 0;
}

const char *chars_find_control(const char *p, const char *end)
{
#ifdef __SSE2__
    while (end - p >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1F)), x);
        __m128i two = _mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xC2));
        __m128i three = _mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xE2));
        int m = _mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(two, three)));
        if (m)
            return p + __builtin_ctz((unsigned)m);
        p += 16;
    }
#endif
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p != 0xC2 && (unsigned char)*p != 0xE2)
        p++;
    return p;
}

bool chars_next_line(struct span *rest, struct span *line)
{
    const char *p = rest->p, *end = rest->p + rest->n;
    int n = 0;

    if (!rest->n)
        return false;
    while ((p = chars_find_control(p, end)) < end && (n = line_end(p, end)) == 0)
        p++;
    line->p = rest->p;
    line->n = (size_t)(p - rest->p);
    rest->p = p + n;
    rest->n -= line->n + (size_t)n;
    return true;
}
