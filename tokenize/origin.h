/* tokenize/origin.h -- what a ledger says of a document, taken from its line. */
#ifndef TOKENIZE_ORIGIN_H
#define TOKENIZE_ORIGIN_H

#include "tokenize/line_text.h"

/* Appends the record (indexed_dataset/ledger.h) of line i: id, URL and the object `source` that the document has; for want of
 * them its file and place in that, FILE:OFFSET and {"file":FILE,"within":OFFSET}.  ERR_NOMEM, ERR_LIMIT. */
int origin_put(const struct line *x, struct line_reader *r, struct buf *records, struct err *e);
#endif
