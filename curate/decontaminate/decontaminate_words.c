#include "curate/decontaminate/decontaminate_words.h"

#include <stdlib.h>
#include <unicode/uchar.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/hash.h"
#include "base/utf8.h"
#include "curate/text/chars.h"

/* Words that fit two registers are hashed without a copy. */
enum { SHORT = 16, BLOCK = 64 };

static inline uint64_t hash_short(uint64_t lo, uint64_t hi, size_t n)
{
    unsigned __int128 m = (unsigned __int128)(lo ^ 0x9e3779b97f4a7c15u ^ (uint64_t)n << 56) *
                          (hi ^ 0xc2b2ae3d27d4eb4fu);

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* The hash of a word already in lower case. */
static uint64_t hash_word(const char *p, size_t n)
{
    uint64_t part[2] = {0};
    struct span s = {p, n};

    if (n > SHORT)
        return hash_xxh3_64(s);
    memcpy(part, p, n);
    return hash_short(part[0], part[1], n);
}

static int put_word(struct hashed_words *ws, size_t off, size_t end)
{
    TRY(mem_grow(&ws->w, &ws->cap, ws->n + 1, sizeof *ws->w));
    ws->w[ws->n++] = (struct hashed_word){hash_word(ws->low.p, ws->low.n), (uint32_t)off, (uint32_t)end};
    buf_clear(&ws->low);
    return 0;
}

static int put_low(struct buf *low, uint32_t c)
{
    char utf8[4];

    return buf_put(low, utf8, (size_t)utf8_put(utf8, (uint32_t)u_tolower((UChar32)c)));
}

/* ---- plain words ---- */

/* Of the scripts that put no spaces between words. */
static bool stands_alone(uint32_t c)
{
    switch (u_getIntPropertyValue((UChar32)c, UCHAR_LINE_BREAK)) {
    case U_LB_IDEOGRAPHIC:
    case U_LB_COMPLEX_CONTEXT:
    case U_LB_CONDITIONAL_JAPANESE_STARTER:
    case U_LB_NONSTARTER:
        return true;
    default:
        return false;
    }
}

/* A run with characters beyond ASCII. */
static int take_run(struct hashed_words *ws, struct span text, size_t from, size_t to)
{
    size_t start = from;

    buf_clear(&ws->low);
    for (size_t i = from, n; i < to; i += n) {
        uint32_t c, type;
        n = (size_t)utf8_next(text.p + i, text.p + to, &c);
        type = U_MASK(u_charType((UChar32)c));
        if ((type & U_GC_CF_MASK) || ((type & U_GC_M_MASK) && !ws->low.n))
            continue;
        if (type & (U_GC_L_MASK | U_GC_N_MASK | U_GC_M_MASK)) {
            bool alone = c > 0x7f && stands_alone(c);
            if (alone && ws->low.n)
                TRY(put_word(ws, start, i));
            if (!ws->low.n)
                start = i;
            TRY(put_low(&ws->low, c));
            if (alone)
                TRY(put_word(ws, start, i + n));
        } else if (ws->low.n) {
            TRY(put_word(ws, start, i));
        }
    }
    return ws->low.n ? put_word(ws, start, to) : 0;
}

static bool is_ascii(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] >= 0x80)
            return false;
    return true;
}

/* A run of letters, digits and bytes beyond ASCII, any length, anywhere in the text. */
static int take_any(struct hashed_words *ws, struct span text, size_t from, size_t to)
{
    if (!is_ascii(text.p + from, to - from))
        return take_run(ws, text, from, to);
    buf_clear(&ws->low);
    TRY(buf_reserve(&ws->low, to - from));
    for (size_t i = from; i < to; i++)
        ws->low.p[ws->low.n++] = (char)(text.p[i] | 32); /* digits have that bit */
    return put_word(ws, from, to);
}

static inline bool in_word(unsigned char c)
{
    return c >= 0x80 || (unsigned char)((c | 32) - 'a') < 26 || (unsigned char)(c - '0') < 10;
}

#if defined(__SSE2__)
/* Bits of 64 bytes. */
static inline uint64_t mask_block(const char *p)
{
    uint64_t m = 0;

    for (int i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        __m128i l = _mm_sub_epi8(_mm_or_si128(x, _mm_set1_epi8(32)), _mm_set1_epi8('a'));
        __m128i d = _mm_sub_epi8(x, _mm_set1_epi8('0'));
        l = _mm_cmpeq_epi8(_mm_min_epu8(l, _mm_set1_epi8(25)), l);
        d = _mm_cmpeq_epi8(_mm_min_epu8(d, _mm_set1_epi8(9)), d);
        m |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(l, d), x)) << (16 * i);
    }
    return m;
}

/* A run with 16 bytes to read: most words.  False: it is none of ASCII that fits. */
static inline bool take_short(struct hashed_words *ws, const char *text, size_t from, size_t to)
{
    static const char cut[2 * SHORT] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    size_t n = to - from;
    __m128i x, keep;

    if (n > SHORT)
        return false;
    x = _mm_loadu_si128((const __m128i *)(const void *)(text + from));
    keep = _mm_loadu_si128((const __m128i *)(const void *)(cut + SHORT - n));
    x = _mm_and_si128(x, keep);
    if (_mm_movemask_epi8(x))
        return false;
    x = _mm_and_si128(_mm_or_si128(x, _mm_set1_epi8(32)), keep);
    ws->w[ws->n++] = (struct hashed_word){
        hash_short((uint64_t)_mm_cvtsi128_si64(x), (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x)), n),
        (uint32_t)from, (uint32_t)to};
    return true;
}
#else
static inline uint64_t mask_block(const char *p)
{
    uint64_t m = 0;

    for (int i = 0; i < BLOCK; i++)
        m |= (uint64_t)in_word((unsigned char)p[i]) << i;
    return m;
}
static inline bool take_short(struct hashed_words *ws, const char *text, size_t from, size_t to)
{
    (void)ws, (void)text, (void)from, (void)to;
    return false;
}
#endif

/* The bits of all bytes, and 64 zeroes at least behind them. */
static int make_mask(struct hashed_words *ws, struct span text)
{
    size_t blocks = text.n / BLOCK, i;

    if (blocks + 2 > ws->cap_mask) {
        free(ws->mask);
        ws->cap_mask = 0;
        ws->mask = malloc((blocks + blocks / 4 + 2) * sizeof *ws->mask);
        if (!ws->mask)
            return ERR_NOMEM;
        ws->cap_mask = blocks + blocks / 4 + 2;
    }
    for (i = 0; i < blocks; i++)
        ws->mask[i] = mask_block(text.p + i * BLOCK);
    ws->mask[blocks] = ws->mask[blocks + 1] = 0;
    for (i = blocks * BLOCK; i < text.n; i++)
        ws->mask[blocks] |= (uint64_t)in_word((unsigned char)text.p[i]) << (i % BLOCK);
    return 0;
}

static int split_plain(struct hashed_words *ws, struct span text)
{
    size_t start = 0, blocks = text.n / BLOCK + 2;
    uint64_t carry = 0;
    bool in = false;

    TRY(make_mask(ws, text));
    for (size_t i = 0; i < blocks; i++) {
        uint64_t m = ws->mask[i], edges = m ^ (m << 1 | carry);
        carry = m >> 63;
        TRY(mem_grow(&ws->w, &ws->cap, ws->n + BLOCK, sizeof *ws->w));
        for (; edges; edges &= edges - 1) {
            size_t at = i * BLOCK + (size_t)__builtin_ctzll(edges);
            in = !in;
            if (in) {
                start = at;
            } else if (start + SHORT > text.n || !take_short(ws, text.p, start, at)) {
                TRY(take_any(ws, text, start, at));
                TRY(mem_grow(&ws->w, &ws->cap, ws->n + BLOCK, sizeof *ws->w));
            }
        }
    }
    return 0;
}

/* ---- cleaned words ---- */

static bool is_blank(uint32_t c)
{
    return c < 0x80 ? c == ' ' || (c >= 9 && c <= 13) || (c > ' ' && c < 0x7f && !in_word((unsigned char)c))
                    : c == 0x2014 || c == 0x2018 || c == 0x2019 || c == 0x201c || c == 0x201d ||
                          u_isUWhiteSpace((UChar32)c);
}

static int split_cleaned(struct hashed_words *ws, struct span text)
{
    size_t start = 0;

    buf_clear(&ws->low);
    for (size_t i = 0, n; i < text.n; i += n) {
        uint32_t c;
        n = (size_t)utf8_next(text.p + i, text.p + text.n, &c);
        if (is_blank(c)) {
            if (ws->low.n)
                TRY(put_word(ws, start, i));
            continue;
        }
        if (!ws->low.n)
            start = i;
        if (c < 0x80)
            TRY(buf_putc(&ws->low, (char)(c >= 'A' && c <= 'Z' ? c + 32 : c)));
        else
            TRY(put_low(&ws->low, c));
    }
    return ws->low.n ? put_word(ws, start, text.n) : 0;
}

static int split(struct hashed_words *ws, struct span text, int (*how)(struct hashed_words *, struct span),
                 struct err *e)
{
    int rc;

    ws->n = 0;
    if (text.n > UINT32_MAX)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to compare", text.n);
    rc = how(ws, text);
    return rc < 0 ? err_set(e, rc, "out of memory for the words of a text of %zu bytes", text.n) : 0;
}

int hashed_words_plain(struct hashed_words *ws, struct span text, struct err *e)
{
    return split(ws, text, split_plain, e);
}

int hashed_words_cleaned(struct hashed_words *ws, struct span text, struct err *e)
{
    return split(ws, text, split_cleaned, e);
}

void hashed_words_free(struct hashed_words *ws)
{
    free(ws->w);
    free(ws->mask);
    buf_free(&ws->low);
    *ws = (struct hashed_words){0};
}
