/* base/utf8.h -- UTF-8, one code point at a time. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Decodes the code point at p (p < end) and returns its length in bytes, 1..4.
 * An ill-formed sequence gives *cp = 0xFFFD and the length of its maximal subpart,
 * as WHATWG and Unicode 15 (section 3.9) prescribe. */
int utf8_next(const char *p, const char *end, uint32_t *cp);
/* Writes cp (a scalar value) to out[0..3]; returns 1..4. */
int utf8_put(char *out, uint32_t cp);
/* The text behind a byte order mark, with which some programs begin a file. */
struct span utf8_without_mark(struct span text);
/* True if s is well-formed. */
bool utf8_valid(struct span s);
/* Appends s with every ill-formed sequence replaced by U+FFFD.  Errors of buf. */
int utf8_repair(struct span s, struct buf *out);

#ifdef __cplusplus
}
#endif
#endif
