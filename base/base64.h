/* base/base64.h -- base64 (RFC 4648, section 4) to bytes. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>

#include "base/mem.h"

/* Appends what s stands for, with or without '=' at its end.  False: it is none, or memory is short (out->failed). */
bool base64_decode(struct span s, struct buf *out);
bool base64_is_digit(char c);
#endif
