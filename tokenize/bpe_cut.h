/* tokenize/bpe_cut.h -- where a long piece can be taken apart: between two characters, of which one is not ASCII,
 * that no token reaches across.  What stands before and behind is merged independently.
 *
 * A token that reaches across is noted by the bytes around the place: two of each side, or the whole character if
 * it is ASCII.  A token with only one byte of a longer character there is noted by the nearest byte of each side.
 */
#ifndef TOKENIZE_BPE_CUT_H
#define TOKENIZE_BPE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/isa.h"
#include "base/mem.h"
#include "tokenize/vocab.h"

enum {
    BPE_CUT_SHORT = 15, /* pieces of so many bytes stay whole */
    BPE_CUT_ROOM = 128, /* the least room for parts */
    BPE_CROSS_NEAR = 1 << 16, BPE_CROSS_WIDE_LOG2 = 18 /* bits */
};

struct bpe_crossings {
    uint64_t *near, *wide; /* bitmaps by the nearest byte of each side, and by two; NULL: no piece is taken apart */
};

/* From the four bytes around a place: what the maps are asked for. */
static inline uint32_t bpe_cross_context(uint32_t x)
{
    if (__builtin_expect((x & 0x808000) != 0x808000, 0)) /* an ASCII character is all there is on its side */
        x &= (x & 0x8000 ? UINT32_MAX : 0xFFFFFF00) & (x & 0x800000 ? UINT32_MAX : 0x00FFFFFF);
    return x;
}
static inline uint32_t bpe_cross_wide(uint32_t context)
{
    return context * 0x9E3779B1u >> (32 - BPE_CROSS_WIDE_LOG2);
}

bool bpe_is_ascii(struct span s);

/* Notes all tokens.  ERR_NOMEM. */
int bpe_crossings_note(struct bpe_crossings *c, const struct vocab *v, struct err *e);
void bpe_crossings_free(struct bpe_crossings *c);

/* Takes the pieces cuts[i]..cuts[i + 1] of text apart, *done <= i < n: those that are long, but for pieces of less than
 * `keep` bytes that begin with characters of one or two.  Writes where parts begin and behind them where the last
 * ends; returns how many there are, at least one and at most max - 1 (max >= BPE_CUT_ROOM).  *done is then the piece to go
 * on with and cuts[*done] the place in it. */
ISA_DECLARE(size_t, bpe_parts, (const struct bpe_crossings *c, struct span text, uint32_t *cuts, size_t n, size_t *done,
                                size_t keep, uint32_t *parts, size_t max));

#endif
