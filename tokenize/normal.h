/* tokenize/normal.h -- normalisation form C as Hugging Face's library does it, by ICU.
 *
 * That library knows the characters of Unicode 9.0; later ones it leaves where they are.
 */
#ifndef TOKENIZE_NORMAL_H
#define TOKENIZE_NORMAL_H

#include "base/err.h"
#include "base/mem.h"

/* 0 if this build can normalise, else ERR_UNSUPPORTED. */
int normal_ready(struct err *e);
/* Text in form C: *out is text itself when it already is, else in b (overwritten).
 * Bytes that are not UTF-8 become U+FFFD then. */
int normal_nfc(struct span text, struct buf *b, struct span *out, struct err *e);

#endif
