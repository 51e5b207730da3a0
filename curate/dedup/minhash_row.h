/* curate/dedup/minhash_row.h -- the words of a text in a row, joined by single spaces, as windows of them are hashed.
 * For what cuts texts into words (minhash_*.c, dedup_normal.c) only. */
#ifndef CURATE_MINHASH_ROW_H
#define CURATE_MINHASH_ROW_H

#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/err.h"
#include "base/mem.h"

/* Zero-initialise to start. */
struct minhash_row {
    char *text; /* words, a space behind each, the last too; then what there is of one that has not ended */
    size_t used, cap;
    uint32_t *start; /* of each word, and where the next one begins */
    size_t n, start_cap;
    size_t kept; /* words that row_begin leaves there */
};

/* No words but those that are kept, and room for so many more, and so many bytes and 64 beyond.  ERR_NOMEM. */
static inline int row_begin(struct minhash_row *r, size_t bytes, size_t words)
{
    r->n = r->kept;
    r->used = r->n ? r->start[r->n] : 0;
    if (r->n) {
        TRY(mem_grow(&r->text, &r->cap, r->used + bytes + 64, 1));
        return mem_grow(&r->start, &r->start_cap, r->n + words + 2, sizeof *r->start);
    }
    TRY(mem_room(&r->text, &r->cap, bytes + 64, 1));
    TRY(mem_room(&r->start, &r->start_cap, words + 2, sizeof *r->start));
    r->start[0] = 0;
    return 0;
}

/* Of words that have all ended the last n stay at the next row_begin. */
static inline void row_keep(struct minhash_row *r, size_t n)
{
    uint32_t from;

    r->kept = n;
    if (!n)
        return;
    from = r->start[r->n - n];
    memmove(r->text, r->text + from, r->start[r->n] - from);
    for (size_t i = 0; i <= n; i++)
        r->start[i] = r->start[r->n - n + i] - from;
    r->n = n;
    r->used = r->start[n];
}

/* Room for so many more. */
static inline int row_more(struct minhash_row *r, size_t bytes, size_t words)
{
    TRY(mem_grow(&r->text, &r->cap, r->used + bytes + 64, 1));
    return mem_grow(&r->start, &r->start_cap, r->n + words + 2, sizeof *r->start);
}

/* Is there something of a word that has not ended? */
static inline bool row_open(const struct minhash_row *r)
{
    return r->used > r->start[r->n];
}

static inline void row_end(struct minhash_row *r)
{
    r->text[r->used++] = ' ';
    r->start[++r->n] = (uint32_t)r->used;
}

static inline void row_free(struct minhash_row *r)
{
    free(r->text);
    free(r->start);
    *r = (struct minhash_row){0};
}

/* Lower case of an ASCII letter, or a digit where these are letters; 0 of everything else. */
static inline char row_ascii(char c, bool digits)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c | 32);
    return (c >= 'a' && c <= 'z') || (digits && c >= '0' && c <= '9') ? c : 0;
}

/* Takes words of ASCII in lower case and what separates them, up to a byte that has to be looked at by itself (beyond
 * ASCII; a digit, if these are no letters) or the last 15.  Sixteen bytes at a time: most words and their
 * separators.  end_word(arg) is told of each separator.  Room for the text is there. */
static inline __attribute__((always_inline)) const char *row_take_ascii(struct minhash_row *r, const char *p, const char *end,
                                                                        bool digits, void (*end_word)(void *arg), void *arg)
{
#if defined(__SSE2__)
    while (end - p >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i low = _mm_or_si128(x, _mm_set1_epi8(32)); /* digits have that bit */
        __m128i d = _mm_sub_epi8(x, _mm_set1_epi8('0')), l = _mm_sub_epi8(low, _mm_set1_epi8('a'));
        unsigned digit, in, apart, n;

        l = _mm_cmpeq_epi8(_mm_min_epu8(l, _mm_set1_epi8(25)), l);
        d = _mm_cmpeq_epi8(_mm_min_epu8(d, _mm_set1_epi8(9)), d);
        digit = (unsigned)_mm_movemask_epi8(d);
        in = (unsigned)_mm_movemask_epi8(l) | (digits ? digit : 0);
        apart = ~(in | digit | (unsigned)_mm_movemask_epi8(x)) & 0xffff;
        n = (unsigned)__builtin_ctz(~in);
        _mm_storeu_si128((__m128i *)(void *)(r->text + r->used), low);
        r->used += n;
        p += n;
        apart = ~(apart >> n);
        if (n == 16)
            continue;
        if (apart & 1)
            return p;
        end_word(arg);
        p += __builtin_ctz(apart);
    }
#else
    (void)end_word, (void)arg;
    for (char c; p < end && (c = row_ascii(*p, digits)); p++)
        r->text[r->used++] = c;
#endif
    return p;
}
#endif
