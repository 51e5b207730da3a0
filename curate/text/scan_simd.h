/* curate/text/scan_simd.h -- the loops of scan_simd.c, for scan.c. */
#ifndef CURATE_SCAN_SIMD_H
#define CURATE_SCAN_SIMD_H

#include "base/isa.h"
#include "curate/text/scan.h"

/* Counts the ASCII of n bytes, and code points; sets the bits of ASCII white space.
 * Bits beyond the text are set.  True if all is ASCII. */
ISA_DECLARE(bool, scan_classes, (const uint8_t *p, size_t n, struct scan *s));
/* The places below n blocks of 64 at which the bits change, from block `first` on; *last is
 * the bit before them.  Returns the end of what was written; writes up to 63 beyond. */
ISA_DECLARE(uint32_t *, scan_edges, (const uint64_t *space, size_t first, size_t n, uint64_t *last, uint32_t *out));
#endif
