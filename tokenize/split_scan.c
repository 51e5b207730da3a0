/* Exact splitters, a character at a time: for what the fast ones leave, and what those
 * are tested against.  Each function follows its pattern's alternatives in order;
 * the patterns stand in split.c. */
#include "tokenize/split_scan.h"

#include <stdbool.h>

#include "base/utf8.h"
#include "tokenize/ucd.h"

/* The class bits of the character at p and its length. */
static inline unsigned class_at(const uint8_t *p, const uint8_t *end, size_t *len)
{
    uint32_t cp;

    if (*p < 0x80) {
        *len = 1;
        return ucd_class(*p);
    }
    if (*p >= 0xC2 && *p < 0xE0 && end - p >= 2 && (p[1] & 0xC0) == 0x80) {
        *len = 2;
        return ucd_class((*p & 0x1Fu) << 6 | (p[1] & 0x3Fu));
    }
    *len = (size_t)utf8_next((const char *)p, (const char *)end, &cp);
    return ucd_class(cp);
}

/* Past the characters from p on that have one of these bits. */
static inline const uint8_t *skip(const uint8_t *p, const uint8_t *end, unsigned bits)
{
    size_t len;

    while (p < end && (class_at(p, end, &len) & bits))
        p += len;
    return p;
}

enum { NOT_SYMBOL = UCD_LETTER | UCD_NUMBER | UCD_SPACE };

/* Past [^\s\p{L}\p{N}]*. */
static inline const uint8_t *skip_symbols(const uint8_t *p, const uint8_t *end)
{
    size_t len;

    while (p < end && !(class_at(p, end, &len) & NOT_SYMBOL))
        p += len;
    return p;
}

static inline const uint8_t *skip_numbers(const uint8_t *p, const uint8_t *end, int most)
{
    size_t len;

    while (most-- > 0 && p < end && (class_at(p, end, &len) & UCD_NUMBER))
        p += len;
    return p;
}

static inline const uint8_t *skip_newlines(const uint8_t *p, const uint8_t *end, bool slash)
{
    while (p < end && (*p == '\n' || *p == '\r' || (slash && *p == '/')))
        p++;
    return p;
}

/* The length of s, t, m, d, ll, ve or re at p (behind an apostrophe), or 0.  fold: upper
 * case too, and U+017F, which folds to s. */
static inline size_t contraction(const uint8_t *p, const uint8_t *end, bool fold)
{
    unsigned a, b, lower = fold ? 0x20 : 0;

    if (p >= end)
        return 0;
    a = p[0] | lower;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 1;
    if (end - p < 2)
        return 0;
    if (fold && p[0] == 0xC5 && p[1] == 0xBF)
        return 2;
    b = p[1] | lower;
    return (a == 'l' && b == 'l') || (a == 'v' && b == 'e') || (a == 'r' && b == 'e') ? 2 : 0;
}

/* White space, which begins at p: all of it when it ends the text (first: before
 * anything else; else only when it has no newline), else through its last newline
 * (newlines), else all but its last character, or that one alone. */
static inline const uint8_t *space_piece(const uint8_t *p, const uint8_t *end, bool newlines, bool first)
{
    const uint8_t *q = p, *last = p, *after_newline = NULL;
    size_t len;

    while (q < end && (class_at(q, end, &len) & UCD_SPACE)) {
        if (*q == '\n' || *q == '\r')
            after_newline = q + 1;
        last = q;
        q += len;
    }
    if (first && q == end)
        return q;
    if (newlines && after_newline)
        return after_newline;
    if (q == end)
        return q;
    return last > p ? last : q;
}

size_t split_scan_gpt2(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q = p;
    size_t len, n;
    unsigned c;

    if (*p == '\'' && (n = contraction(p + 1, end, false)) > 0)
        return 1 + n;
    c = class_at(p, end, &len);
    if (*p == ' ' && end - p > 1) {
        unsigned d = class_at(p + 1, end, &len);
        if (!(d & UCD_SPACE)) {
            c = d;
            q = p + 1;
        }
    }
    if (c & UCD_LETTER)
        q = skip(q, end, UCD_LETTER);
    else if (c & UCD_NUMBER)
        q = skip(q, end, UCD_NUMBER);
    else if (!(c & UCD_SPACE))
        q = skip_symbols(q, end);
    else
        q = space_piece(p, end, false, true);
    return (size_t)(q - p);
}

/* Symbols with a space before them and newlines behind, at p; p if there is none. */
static inline const uint8_t *symbol_piece(const uint8_t *p, const uint8_t *end, bool slash)
{
    const uint8_t *q = *p == ' ' ? p + 1 : p, *r = skip_symbols(q, end);

    return r > q ? skip_newlines(r, end, slash) : p;
}

static inline size_t next_cl100k(const uint8_t *p, const uint8_t *end, int digits, bool end_first)
{
    const uint8_t *q;
    size_t len, after, n;
    unsigned c;

    if (*p == '\'' && (n = contraction(p + 1, end, true)) > 0)
        return 1 + n;
    c = class_at(p, end, &len);
    if (c & UCD_LETTER)
        return (size_t)(skip(p + len, end, UCD_LETTER) - p);
    if (c & UCD_NUMBER)
        return (size_t)(skip_numbers(p, end, digits) - p);
    q = p + len;
    if (q < end && *p != '\r' && *p != '\n' && (class_at(q, end, &after) & UCD_LETTER))
        return (size_t)(skip(q + after, end, UCD_LETTER) - p);
    q = symbol_piece(p, end, false);
    if (q == p)
        q = space_piece(p, end, true, end_first);
    return (size_t)(q - p);
}

size_t split_scan_cl100k(const uint8_t *p, const uint8_t *end)
{
    return next_cl100k(p, end, 3, true);
}

size_t split_scan_llama3(const uint8_t *p, const uint8_t *end)
{
    return next_cl100k(p, end, 3, false);
}

size_t split_scan_qwen2(const uint8_t *p, const uint8_t *end)
{
    return next_cl100k(p, end, 1, false);
}

enum {
    HEAD = UCD_UPPER | UCD_CASELESS | UCD_MARK, /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    TAIL = UCD_LOWER | UCD_CASELESS | UCD_MARK  /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
};

/* Past HEAD*TAIL+ at p; NULL if that does not match.  When nothing of TAIL follows the
 * heads, they give back until one of them is a tail too. */
static inline const uint8_t *word_with_tail(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q = p, *back = NULL;
    size_t len;
    unsigned c = 0;

    for (; q < end && ((c = class_at(q, end, &len)) & HEAD); q += len)
        if (c & TAIL)
            back = q + len;
    if (q < end && (c & TAIL))
        return skip(q, end, TAIL);
    return back;
}

/* Past HEAD+TAIL* at p, or NULL. */
static inline const uint8_t *word_with_head(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q = skip(p, end, HEAD);

    return q > p ? skip(q, end, TAIL) : NULL;
}

static inline size_t next_o200k(const uint8_t *p, const uint8_t *end, int digits, bool suffix)
{
    const uint8_t *q = NULL;
    size_t len, n;
    unsigned c = class_at(p, end, &len);
    bool prefix = !(c & (UCD_LETTER | UCD_NUMBER)) && *p != '\r' && *p != '\n';

    if (prefix)
        q = word_with_tail(p + len, end);
    if (!q)
        q = word_with_tail(p, end);
    if (!q && prefix)
        q = word_with_head(p + len, end);
    if (!q)
        q = word_with_head(p, end);
    if (q) {
        if (suffix && q < end && *q == '\'' && (n = contraction(q + 1, end, true)) > 0)
            q += 1 + n;
        return (size_t)(q - p);
    }
    if (c & UCD_NUMBER)
        return (size_t)(skip_numbers(p, end, digits) - p);
    q = symbol_piece(p, end, true);
    if (q == p)
        q = space_piece(p, end, true, false);
    return (size_t)(q - p);
}

size_t split_scan_o200k(const uint8_t *p, const uint8_t *end)
{
    return next_o200k(p, end, 3, true);
}

size_t split_scan_tekken(const uint8_t *p, const uint8_t *end)
{
    return next_o200k(p, end, 1, false);
}
