/* curate/text/uax29.h -- words by Unicode's default word boundaries (UAX #29, no dictionaries).
 *
 * A word is a piece between two boundaries that begins with a letter or a number.
 * Word_Break is from ICU's Unicode data.
 */
#ifndef CURATE_UAX29_H
#define CURATE_UAX29_H

#include "curate/text/words.h"

/* Letters and what has a numeric value: Python's isalnum(). */
bool uax29_alnum(uint32_t c);

/* Cuts text (valid UTF-8, below 2^30 bytes, else ERR_LIMIT) into ws->w[0..n).
 * ERR_NOMEM.  Linear. */
int uax29_split(struct words *ws, struct span text, struct err *e);
#endif
