/* tokenize/normal.h -- normalisation forms as Hugging Face's library does them, by ICU.
 *
 * That library knows the characters of Unicode 9.0; later ones it leaves where they are.
 */
#ifndef TOKENIZE_NORMAL_H
#define TOKENIZE_NORMAL_H

#include "base/err.h"
#include "base/mem.h"

enum normal_form { NORMAL_NFC, NORMAL_NFD, NORMAL_NFKC, NORMAL_NFKD };

/* 0 if this build can normalise, else ERR_UNSUPPORTED. */
int normal_ready(struct err *e);
/* Text in a form: *out is text itself when it already is, else in b (overwritten).
 * Bytes that are not UTF-8 become U+FFFD then. */
int normal_form(enum normal_form form, struct span text, struct buf *b, struct span *out, struct err *e);
/* How many bytes at p belong to the same grapheme cluster as the character cp before them: combining
 * and enclosing marks, joiners.  Enough for clusters of up to five bytes. */
size_t normal_extends(uint32_t cp, const char *p, const char *end);

#endif
