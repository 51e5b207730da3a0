/* Classes of bytes, 64 at a time. */
#include "curate/text/scan_simd.h"

#include "base/block.h"

struct counts {
    size_t chars, plain, digits, white, brackets;
};

static inline size_t ones(bits b) { return (size_t)__builtin_popcountll(b); }

/* One block, of which the bytes in `in` count.  Returns white space; adds to *high. */
static inline bits count_block(const uint8_t *p, bits in, struct counts *c, bits *high)
{
    struct block b = block_load(p), folded = block_or(b, 0x20); /* [ ] become { } */
    bits digit = block_in(b, '0', 10), newline = block_eq(b, '\n'), blank = block_eq(b, ' ');
    bits letter = block_in(folded, 'a', 26);
    bits mark = block_eq(b, '?') | block_eq(b, '!') | block_eq(b, ',') | block_eq(b, '.');
    bits bracket = block_in(b, '(', 2) | block_eq(folded, '{') | block_eq(folded, '}');

    *high |= block_high(b) & in;
    c->chars += ones(~block_in(b, (char)0x80, 0x40) & in);
    c->plain += ones((digit | newline | letter | mark) & in);
    c->digits += ones(digit & in);
    c->white += ones((blank | newline | block_eq(b, '\t') | block_eq(b, '\r') | block_eq(b, '\b')) & in);
    c->brackets += ones(bracket & in);
    return (blank | block_in(b, 9, 5) | block_in(b, 0x1C, 4)) & in;
}

bool ISA_FN(scan_classes)(const uint8_t *p, size_t n, struct scan *s)
{
    struct counts c = {0};
    uint64_t *space = s->space;
    bits high = 0;

    for (; n >= 64; n -= 64, p += 64)
        *space++ = count_block(p, ~(bits)0, &c, &high);
    if (n) {
        uint8_t last[64] = {0};

        memcpy(last, p, n);
        *space = count_block(last, ~(bits)0 >> (64 - n), &c, &high) | ~(bits)0 << n;
    }
    s->chars = c.chars;
    s->plain = c.plain;
    s->digits = c.digits;
    s->white = c.white;
    s->brackets = c.brackets;
    return !high;
}

uint32_t *ISA_FN(scan_edges)(const uint64_t *space, size_t first, size_t n, uint64_t *last, uint32_t *out)
{
    uint64_t before = *last;

    for (size_t i = first; i < n; i++) {
        out = put_positions(out, space[i] ^ (space[i] << 1 | before), (uint32_t)(i * 64));
        before = space[i] >> 63;
    }
    *last = before;
    return out;
}
