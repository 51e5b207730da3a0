/* Words, 64 bytes at a time. */
#include "base/block.h"
#include "tokenize/marks.h"

/* Where a character of the 64 at p and the one before it are joined by no token; ascii: where both are of ASCII. */
static inline bits apart(const struct word_marks *m, const uint8_t *p, bits ascii)
{
#if defined(__AVX512VBMI__)
    __m512i kind = _mm512_permutex2var_epi8(_mm512_loadu_si512(m->kind), _mm512_loadu_si512(p), _mm512_loadu_si512(m->kind + 64));
    __m512i joined = _mm512_permutex2var_epi8(_mm512_loadu_si512(m->joined), _mm512_loadu_si512(p - 1),
                                              _mm512_loadu_si512(m->joined + 64));
    return _mm512_testn_epi8_mask(kind, joined) & ascii;
#else
    bits b = 0;
    for (int i = 0; ascii && i < 64; i++)
        b |= (bits)!(m->joined[p[i - 1] & 127] & m->kind[p[i] & 127]) << i;
    return b & ascii;
#endif
}

static bool is_mark(const uint8_t *p)
{
    return p[0] == 0xE2 && p[1] == 0x96 && p[2] == 0x81;
}

/* A mark that may begin at p[i], i > 0, of a token of n bytes. */
static inline void note_mark(struct word_marks *m, const uint8_t *p, size_t n, size_t i)
{
    if (n - i >= 3 && is_mark(p + i) && !(i >= 3 && is_mark(p + i - 3)))
        m->crossed[p[i - 1]] = 1;
}

void ISA_FN(word_marks_note)(struct word_marks *m, const uint8_t *p, size_t n)
{
#if defined(__AVX512VBMI__)
    __m512i kinds = _mm512_loadu_si512(m->kind), more_kinds = _mm512_loadu_si512(m->kind + 64);

    for (size_t i = 1; i < n; i += 64) {
        __mmask64 in = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
        __m512i x = _mm512_maskz_loadu_epi8(in, p + i), before = _mm512_maskz_loadu_epi8(in, p + i - 1);
        __m512i kind = _mm512_permutex2var_epi8(kinds, x, more_kinds);
        __m512i joined = _mm512_permutex2var_epi8(_mm512_loadu_si512(m->joined), before, _mm512_loadu_si512(m->joined + 64));
        bits new = _mm512_testn_epi8_mask(kind, joined) & in & ~_mm512_movepi8_mask(_mm512_or_si512(x, before));
        bits marks = m->at_marks ? _mm512_mask_cmpeq_epi8_mask(in, x, _mm512_set1_epi8((char)0xE2)) : 0;
        for (; new; new &= new - 1) {
            const uint8_t *q = p + i + __builtin_ctzll(new);
            m->joined[q[-1]] |= m->kind[*q];
        }
        for (; marks; marks &= marks - 1)
            note_mark(m, p, n, i + (size_t)__builtin_ctzll(marks));
    }
#else
    for (size_t i = 1; i < n; i++) {
        if ((p[i - 1] | p[i]) < 0x80 && !(m->joined[p[i - 1]] & m->kind[p[i]])) /* what is written is waited for */
            m->joined[p[i - 1]] |= m->kind[p[i]];
        else if (p[i] == 0xE2 && m->at_marks)
            note_mark(m, p, n, i);
    }
#endif
}

/* Without the places whose byte before is crossed. */
static inline bits not_crossed(const struct word_marks *m, const uint8_t *p, bits marks)
{
    for (bits left = marks; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        marks &= ~((bits)m->crossed[p[i - 1]] << i);
    }
    return marks;
}

size_t ISA_FN(word_marks_ends)(const struct word_marks *m, const uint8_t *p, size_t n, size_t *at, uint32_t *ends, size_t max)
{
    uint8_t tail[1 + 64 + 2] = {0};
    bits was_mark = 0, was_high = 1; /* of the block before: its last marks, whether its last byte is not ASCII */
    size_t k = 0;

    /* Places are of the bytes from the word's second on, so that there is one before each. */
    for (size_t i = *at + 1; m->cuts && i < n && k < max; i += 64) {
        const uint8_t *q = p + i;
        bits high, mark, found;
        if (n - i < 66) {
            memcpy(tail, q - 1, n - i + 1);
            memset(tail + (n - i + 1), 0x80, sizeof tail - (n - i + 1));
            q = tail + 1;
        }
        if (i == *at + 1) {
            was_high = q[-1] >> 7;
            was_mark = q[-1] == 0xE2 && q[0] == 0x96 && q[1] == 0x81 ? (bits)4 : 0; /* two bytes before q[1] */
        }
        high = block_high(block_load(q));
        mark = m->at_marks ? block_in(block_load(q), (char)0xE2, 1) : 0;
        if (mark)
            mark &= block_in(block_load(q + 1), (char)0x96, 1) & block_in(block_load(q + 2), (char)0x81, 1);
        found = apart(m, q, ~(high | high << 1 | was_high)) | not_crossed(m, q, mark & ~(mark << 3 | was_mark));
        was_mark = mark >> 61;
        was_high = high >> 63;
        if (max - k > 128) {
            k = (size_t)(put_positions(ends + k, found, (uint32_t)i) - ends);
            continue;
        }
        for (; found && k < max; found &= found - 1)
            ends[k++] = (uint32_t)(i + (size_t)__builtin_ctzll(found));
        if (found)
            break;
    }
    if (k < max && (!k || ends[k - 1] < n)) {
        /* All of the text was looked at. */
        ends[k++] = (uint32_t)n;
    }
    *at = ends[k - 1];
    return k;
}
