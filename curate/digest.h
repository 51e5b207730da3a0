/* curate/digest.h -- SHA-1 as archives state it: "sha1:" and base32, hexadecimal or
 * base64. */
#ifndef CURATE_DIGEST_H
#define CURATE_DIGEST_H

#include <stdint.h>

#include "base/mem.h"

enum { DIGEST_HEX = 41 };

enum digest_match { DIGEST_UNKNOWN, DIGEST_SAME, DIGEST_OTHER };

/* The SHA-1 of s in lower-case hexadecimal with a NUL. */
void digest_sha1_hex(struct span s, char hex[DIGEST_HEX]);
/* Compares what a header states with the SHA-1 of s.  DIGEST_UNKNOWN: the header states
 * nothing, or something other than SHA-1. */
enum digest_match digest_check(struct span stated, struct span s);
#endif
