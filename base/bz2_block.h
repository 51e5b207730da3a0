/* base/bz2_block.h -- single blocks of bzip2 streams, for base/file_bz2.c alone.
 *
 * A stream is "BZh" and a level, blocks, and an end; each block begins with a mark of 48 bits
 * and a check sum, at any bit, and says nothing of its length.  The same 48 bits can occur
 * within a block, by chance or on purpose: only decoding tells.  Bits count from the highest
 * of byte 0.  Source: the bzip2 1.0 format as Wikipedia and libbz2 1.0.8 describe it.
 */
#ifndef BASE_BZ2_BLOCK_H
#define BASE_BZ2_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum bz2_mark { BZ2_NO_MARK, BZ2_BLOCK, BZ2_STREAM_END };
enum {
    BZ2_MARK_BITS = 48,
    BZ2_CRC_BITS = 32,  /* behind the mark of a block: of its bytes; of an end: of its stream's blocks */
    BZ2_OUT_MAX = 4 << 20 /* decoded bytes kept of a block: all but what runs of one byte make longer */
};

/* What mark is at this bit; there are 55 bits of p from there to read. */
enum bz2_mark bz2_mark_at(const uint8_t *p, size_t bit);
/* The first mark at or behind this bit that lies wholly in the n bytes; SIZE_MAX: there is none. */
size_t bz2_find_mark(const uint8_t *p, size_t n, size_t bit);
/* The 32 bits at this bit. */
uint32_t bz2_bits32(const uint8_t *p, size_t bit);

/* Makes of the bits [from, to) of p, a block, a stream of this level ('1' to '9'), in out.
 * ERR_NOMEM. */
int bz2_wrap(const uint8_t *p, size_t from, size_t to, char level, struct buf *out);
/* Decodes a stream of bz2_wrap.  0: it was exactly one block, whole and with the right check sum;
 * out has its bytes, or, if they are more than BZ2_OUT_MAX, none, and *big is set.  ERR_FORMAT,
 * ERR_NOMEM: out has nothing of use. */
int bz2_decode(const struct buf *wrapped, struct buf *out, bool *big);
/* In how many of the n bytes of p, from this bit (0 to 7) of the first on, there is a whole block, whatever
 * its check sum; 0: in none.  *more: there could be one if more bytes followed.  It is slow: libbz2
 * is given a byte at a time. */
size_t bz2_block_bytes(const uint8_t *p, size_t n, unsigned bit, char level, bool *more);

#endif
