/* curate/dedup/dedup_normal.h -- the part of a text by which exact copies are told. */
#ifndef CURATE_DEDUP_NORMAL_H
#define CURATE_DEDUP_NORMAL_H

#include "curate/dedup/minhash_units.h"

/* Appends text to out with each run of white space as one space, none at the ends. */
int normal_space(struct span text, struct buf *out);
/* Appends a URL in one of the forms that are taken for the same page (docs/dedup.md has the rules); what has no scheme and
 * "//" but for white space around it as it is.  Any bytes, linear but for sorting the query's parts.  ERR_NOMEM. */
int normal_url(struct span url, struct buf *out);

/* Room that is kept from text to text.  Zero-initialise to start. */
struct normal_scratch {
    struct minhash_units units;
    struct minhash_row row;
};
/* Appends the letters, marks and numbers of text (valid UTF-8) in NFKC_Casefold, Unicode's normalisation for comparison
 * without regard to case, as curate/dedup/minhash_units.h does it.  ERR_NOMEM; ERR_LIMIT from 2^28 bytes on. */
int normal_words(struct span text, struct normal_scratch *s, struct buf *out, struct err *e);
void normal_free(struct normal_scratch *s);
#endif
