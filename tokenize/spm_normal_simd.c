/* Plain text, 64 bytes at a time. */
#include "base/block.h"
#include "tokenize/spm_normal.h"

/* The plain ones of 64 bytes. */
static inline bits plain_bytes(const struct spm_normal *s, const uint8_t *p)
{
    bits high = block_high(block_load(p));
#if defined(__AVX512VBMI__)
    __m512i x = _mm512_permutex2var_epi8(_mm512_loadu_si512(s->plain), _mm512_loadu_si512(p), _mm512_loadu_si512(s->plain + 64));
    return _mm512_test_epi8_mask(x, x) & ~high;
#else
    bits b = 0;
    for (int i = 0; ~high && i < 64; i++)
        b |= (bits)s->plain[p[i] & 127] << i;
    return b & ~high;
#endif
}

char *ISA_FN(spm_put_plain)(const struct spm_normal *s, struct span *in, size_t most, char *o, bool *space)
{
    const uint8_t *p = (const uint8_t *)in->p, *stop = p + (in->n < most ? in->n : most);
    uint64_t mark = ' ';
    size_t width = 1;

    if (s->escape)
        memcpy(&mark, SPACE_MARK, width = 3);
    while (stop - p > 64 + BLOCK_COPY) {
        /* A character before one that is not ASCII may belong to it. */
        bits odd = ~plain_bytes(s, p) | block_high(block_load(p)) >> 1 | (bits)(p[64] >> 7) << 63;
        bits spaces = block_in(block_load(p), ' ', 1), dropped;
        size_t n = odd ? (size_t)__builtin_ctzll(odd) : 64, from = 0;
        spaces &= n < 64 ? ((bits)1 << n) - 1 : ~(bits)0;
        dropped = s->remove_extra ? spaces & (spaces << 1 | *space) : 0;
        for (bits left = spaces; left; left &= left - 1) {
            size_t k = (size_t)__builtin_ctzll(left);
            o = block_copy(o, (const char *)p + from, k - from);
            memcpy(o, &mark, sizeof mark);
            o += dropped >> k & 1 ? 0 : width;
            from = k + 1;
        }
        o = block_copy(o, (const char *)p + from, n - from);
        if (n)
            *space = s->remove_extra && spaces >> (n - 1) & 1;
        p += n;
        if (n < 64)
            break;
    }
    in->n -= (size_t)(p - (const uint8_t *)in->p);
    in->p = (const char *)p;
    return o;
}
