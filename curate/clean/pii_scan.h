/* curate/clean/pii_scan.h -- the scanners of curate/clean/pii.c: where personal data is. */
#ifndef CURATE_PII_SCAN_H
#define CURATE_PII_SCAN_H

#include "base/ascii.h"
#include "curate/clean/pii.h"

struct pii_match {
    size_t start, end;
    enum pii_kind kind;
};
/* The next match in s that begins at `from` or behind it; false: there is none. */
typedef bool pii_next(unsigned kinds, struct span s, size_t from, struct pii_match *m);
pii_next pii_next_email, pii_next_number;
/* By datatrove's regular expressions. */
pii_next pii_next_email_datatrove, pii_next_ip_datatrove;

/* s.p[i], or 0 behind the end. */
static inline char pii_at(struct span s, size_t i) { return i < s.n ? s.p[i] : '\0'; }
/* True if a letter, digit or underscore ends before i, or begins at i. */
bool pii_word_before(struct span s, size_t i);
bool pii_word_at(struct span s, size_t i);
/* Digits from i on, counted up to max. */
static inline int pii_digits(struct span s, size_t i, int max)
{
    int n = 0;

    while (n < max && ascii_is_digit(pii_at(s, i + (size_t)n)))
        n++;
    return n;
}
/* The next digit from i on, or s.n. */
size_t pii_next_digit(struct span s, size_t i);
/* True if the four bytes are an address on the public Internet (IANA's registry). */
bool pii_ipv4_global(const unsigned char a[4]);
#endif
