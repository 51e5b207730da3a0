/* curate/text/chars.h -- what a code point is to the rules that look at text.
 *
 * Two kinds of classes.  Those of spaCy's English tokenizer and of datatrove's filters
 * are explicit sets (curate/text/words_data.inc).  Those of Python's str (isalpha, isspace)
 * and of \d are computed from ICU's Unicode data.
 */
#ifndef CURATE_CHARS_H
#define CURATE_CHARS_H

#include "base/mem.h"
#include "base/utf8.h"

enum {
    CHAR_ALPHA = 1 << 0,      /* spaCy: letters of the scripts it knows */
    CHAR_LOWER = 1 << 1,      /* of these, lower case or without case */
    CHAR_UPPER = 1 << 2,      /* of these, upper case or without case */
    CHAR_QUOTE = 1 << 3,      /* spaCy: quotation marks and brackets */
    CHAR_ICON = 1 << 4,       /* spaCy: symbols, dingbats, emoji */
    CHAR_DOT_AFTER = 1 << 5,  /* spaCy: a full stop after it at the end is a suffix */
    CHAR_PREFIX = 1 << 6,     /* spaCy: is cut off in front */
    CHAR_SUFFIX = 1 << 7,     /* spaCy: is cut off behind */
    CHAR_CURRENCY = 1 << 8,   /* spaCy: is cut off behind a digit */
    CHAR_TERMINAL = 1 << 9,   /* datatrove: may end a line */
    CHAR_SYMBOL = 1 << 10,    /* datatrove: a word of these alone is no word */
    CHAR_SENTENCE_END = 1 << 11, /* spaCy's sentencizer */
    CHAR_LETTER = 1 << 12,    /* Python: isalpha(), general category L* */
    CHAR_SPACE = 1 << 13,     /* Python: isspace() */
    CHAR_PUNCT = 1 << 14,     /* general category P* */
    CHAR_INERT = 1 << 15      /* no rule of the tokenizer looks at it */
};

/* The classes of every code point; NULL when memory is out.  Made once, kept to the
 * end of the process; thread-safe. */
const uint16_t *chars_classes(void);

/* The code point at p (valid UTF-8); *n is its length. */
static inline uint32_t chars_decode(const char *s, int *n)
{
    const unsigned char *p = (const unsigned char *)s;

    if (p[0] < 0x80) {
        *n = 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *n = 2;
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        *n = 3;
        return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    }
    *n = 4;
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/* The last code point of non-empty valid UTF-8; *n is its length. */
static inline uint32_t chars_last(struct span s, int *n)
{
    const char *p = s.p + s.n - 1;

    while (p > s.p && ((unsigned char)*p & 0xC0) == 0x80)
        p--;
    return chars_decode(p, n);
}

/* As Python's \w: letters, what has a numeric value, the underscore. */
bool chars_is_word(uint32_t c);

/* Code points in valid UTF-8. */
size_t chars_count(struct span s);

/* True if white space (Python's isspace) stands at p; *n is its length. */
static inline bool chars_space_at(const char *p, const char *end, int *n)
{
    unsigned char c = (unsigned char)*p;
    uint32_t cp;

    *n = 1;
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
    if (c != 0xC2 && (c < 0xE1 || c > 0xE3)) /* first bytes of the others */
        return false;
    *n = utf8_next(p, end, &cp);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* What a capital sigma at `at` in text becomes in lower case: the final one behind a letter
 * unless a letter follows, as str.lower() and Unicode's SpecialCasing have it. */
uint32_t chars_lower_sigma(struct span text, const char *at);

/* s without white space in front, behind, both. */
struct span chars_lstrip(struct span s);
struct span chars_rstrip(struct span s);
struct span chars_strip(struct span s);

/* The first byte that is a control or may begin a character that ends a line (C2 85, E2
 * 80 A8, E2 80 A9); end if there is none. */
const char *chars_find_control(const char *p, const char *end);
/* The next line as Python's splitlines() cuts: takes it off the front of *rest (its
 * end goes with it) and puts it into *line.  False when *rest is empty. */
bool chars_next_line(struct span *rest, struct span *line);
#endif
