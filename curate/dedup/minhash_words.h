/* curate/dedup/minhash_words.h -- words as text-dedup and RedPajama-Data v2 cut them.
 *
 * text-dedup 0.4: the text in lower case (Python's), every character that is not \w a space, and
 * words between single spaces, empty ones too.
 * RedPajama-Data v2 (app/src/dedupe): words of the normalised text (curate/text/rpv2_text.h).
 */
#ifndef CURATE_MINHASH_WORDS_H
#define CURATE_MINHASH_WORDS_H

#include "curate/dedup/minhash_row.h"
#include "curate/text/rpv2_text.h"

/* The words of text (valid UTF-8 below 2^28 bytes), into *row.  ERR_NOMEM. */
int minhash_words_text_dedup(struct span text, struct minhash_row *row);
int minhash_words_rpv2(struct rpv2_text *t, struct span text, struct minhash_row *row);
#endif
