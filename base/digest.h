/* base/digest.h -- SHA-1 as archives state it: "sha1:" and base32, hexadecimal or
 * base64. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdint.h>

#include "base/mem.h"

enum { DIGEST_HEX = 41 };

/* The SHA-1 of s in lower-case hexadecimal with a NUL. */
void digest_sha1_hex(struct span s, char hex[DIGEST_HEX]);
/* Its first four bytes as a little-endian number. */
uint64_t digest_sha1_32(struct span s);

enum digest_match { DIGEST_UNKNOWN, DIGEST_SAME, DIGEST_OTHER };

/* Compares what a header states with the SHA-1 of s.  DIGEST_UNKNOWN: the header states
 * nothing, or something other than SHA-1. */
enum digest_match digest_check(struct span stated, struct span s);
#endif
