/* curate/text/ccnet.h -- text as CCNet shows it to its language models. */
#ifndef CURATE_CCNET_H
#define CURATE_CCNET_H

#include "base/err.h"
#include "base/mem.h"

/* What a thread needs; zero-initialise. */
struct ccnet_text {
    uint16_t *u[2]; /* UTF-16 */
    size_t cap[2];
};
void ccnet_text_free(struct ccnet_text *t);
/* Appends text (valid UTF-8) as text_normalizer.normalize() of cc_net 1.0.0 makes it: without white space at its ends, lower
 * case, NFD without nonspacing marks, each digit a 0, punctuation of its list as ASCII, without control characters, newlines
 * among them.  ERR_NOMEM, ERR_LIMIT. */
int ccnet_normalize(struct ccnet_text *t, struct span text, struct buf *out, struct err *e);
#endif
