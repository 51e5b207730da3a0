/* curate/text/words_rules.h -- the rules of the word splitter.  Inside curate/words*.c only,
 * but for minhash_text.c, which asks words_maybe_special() for each of its words. */
#ifndef CURATE_WORDS_RULES_H
#define CURATE_WORDS_RULES_H

#include "curate/text/words.h"

/* An exception: text that is cut in a way of its own. */
struct special {
    const char *text;
    const char *parts; /* bytes of each token, a digit of base 36 each */
    const char *cut;   /* how the other rules cut it; NULL: not looked for across tokens */
};

enum { SPECIAL_MAX = 29 }; /* bytes of the longest */

static inline unsigned words_part_len(char c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

/* Tables made once; false when memory is out. */
bool words_rules_init(void);
/* The exception that s is, or NULL. */
const struct special *words_special(struct span s);
/* Exceptions found across tokens whose first byte is c: a list ended by NULL. */
const struct special *const *words_patterns(unsigned char c);

/* In the code points cp[a..b), a < b: how many make a prefix or a suffix, 0 if none. */
size_t words_prefix(const uint32_t *cp, size_t a, size_t b);
size_t words_suffix(const uint32_t *cp, size_t a, size_t b);
/* The length of the infix that begins at i (a <= i < b), 0 if none. */
size_t words_infix(const uint32_t *cp, size_t a, size_t b, size_t i);
/* True if all of cp[a..b) is a URL, by the pattern of spaCy (after D. Perini). */
bool words_url(const uint32_t *cp, size_t a, size_t b);

/* Quick noes, for n bytes at p of which eight must be readable: not an exception; not
 * the first token of one that is looked for across tokens. */
extern uint64_t words_bloom[512], words_first_bloom[512];
static inline uint32_t words_bloom_slot(const char *p, size_t n)
{
    uint64_t k;

    memcpy(&k, p, 8);
    /* the first n or 8; no branch, since lengths cannot be foreseen */
    k &= ~0ULL >> ((8 - n) * 8 & 56 & (0 - (size_t)(n < 8)));
    return (uint32_t)(((k ^ n << 58) * 0x9E3779B97F4A7C15ULL) >> 49);
}
static inline bool words_maybe_special(const char *p, size_t n)
{
    uint32_t s = words_bloom_slot(p, n);

    return words_bloom[s >> 6] >> (s & 63) & 1;
}
static inline bool words_maybe_first(const char *p, size_t n)
{
    uint32_t s = words_bloom_slot(p, n);

    return words_first_bloom[s >> 6] >> (s & 63) & 1;
}
#endif
