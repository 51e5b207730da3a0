/* curate/archive/charset_guess.h -- which one-byte charset a text without a label is in.
 *
 * For each pair of a charset and a language: how probable are the bytes beyond ASCII,
 * were they letters of that language in that charset?  The letters' order by frequency
 * is all that is known of a language; no order of bytes is looked at, so a histogram
 * does.  Inside charset*.c only.
 */
#ifndef CURATE_CHARSET_GUESS_H
#define CURATE_CHARSET_GUESS_H

#include "base/mem.h"
#include "curate/archive/charset_label.h"

struct charset_guess;

/* The tables are built once; NULL when memory is out. */
struct charset_guess *charset_guess_new(void);
void charset_guess_free(struct charset_guess *g);

/* The best charset of the text; *score is the mean logarithm of a byte's probability,
 * comparable between texts: above -3.5 the text is most likely what it says. */
const struct charset_entry *charset_guess(const struct charset_guess *g, struct span text, double *score);
#endif
