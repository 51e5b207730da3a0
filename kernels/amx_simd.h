/* kernels/amx_simd.h -- tiles of AMX, for matmul_amx_simd.c and attention_simd.c.
 *
 * Tile registers 0 to 3 are four sums of 16 x 16 in fp32, 4 and 5 two tiles of A, 6 and 7 two of B.  A tile of A has 16 rows of
 * 32 bf16 numbers, a tile of B 16 rows, which are pairs of neighbours along the inner dimension, by 16 columns.  One
 * instruction adds a tile of A times one of B to a sum, 16,384 operations in 16 cycles, in an order that is the processor's
 * and always the same.  The compiler is not told of AMX: whoever calls has asked amx_here (kernels/amx.h).
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. */
#ifndef KERNELS_AMX_SIMD_H
#define KERNELS_AMX_SIMD_H

#include "kernels/simd.h"

#if defined(__AVX512BW__)

enum { AMX_SIDE = 32, AMX_DEPTH = 32, AMX_STEP = AMX_SIDE * AMX_DEPTH }; /* of two tiles: rows or columns, inner, numbers */

/* This thread works with tiles from here to amx_end. */
INLINE void amx_begin(void)
{
    const struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

    __asm__ volatile("ldtilecfg %0" : : "m"(shape));
}
INLINE void amx_end(void) { __asm__ volatile("tilerelease"); }

/* Rows are `bytes` apart. */
#define AMX_LOAD(tile, p, bytes)                                                                                               \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(p), "r"((int64_t)(bytes)) : "memory")
#define AMX_STORE(tile, p, bytes)                                                                                              \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(p), "r"((int64_t)(bytes)) : "memory")
#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile :)
#define AMX_DOT(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum :)

/* The four sums: 0, or as they stand in C (32, 32), and back. */
INLINE void amx_get(const float *c, int64_t ldc, bool add)
{
    int64_t row = ldc * (int64_t)sizeof *c;

    if (add) {
        AMX_LOAD(0, c, row);
        AMX_LOAD(1, c + 16, row);
        AMX_LOAD(2, c + 16 * ldc, row);
        AMX_LOAD(3, c + 16 * ldc + 16, row);
    } else {
        AMX_ZERO(0);
        AMX_ZERO(1);
        AMX_ZERO(2);
        AMX_ZERO(3);
    }
}
INLINE void amx_put(float *c, int64_t ldc)
{
    int64_t row = ldc * (int64_t)sizeof *c;

    AMX_STORE(0, c, row);
    AMX_STORE(1, c + 16, row);
    AMX_STORE(2, c + 16 * ldc, row);
    AMX_STORE(3, c + 16 * ldc + 16, row);
}

/* C (32, 32), its rows one behind the other, = A B, or += with add: of `steps` pairs of tiles of each.  Meanwhile 4 lines a step
 * from `ahead` on come into the second cache. */
INLINE void amx_block(float *c, const uint16_t *a, const uint16_t *b, int64_t steps, bool add, const char *ahead)
{
    enum { HALF = AMX_STEP / 2 };

    amx_get(c, AMX_SIDE, add);
    for (int64_t l = 0; l < steps; l++, a += AMX_STEP, b += AMX_STEP) {
        AMX_LOAD(4, a, 64);
        AMX_LOAD(6, b, 64);
        AMX_LOAD(7, b + HALF, 64);
        AMX_DOT(0, 4, 6);
        AMX_LOAD(5, a + HALF, 64);
        AMX_DOT(1, 4, 7);
        for (int i = 0; i < 8 && l < 8; i++) /* the next block's sums */
            __builtin_prefetch(c + AMX_SIDE * AMX_SIDE + (8 * l + i) * 16);
        for (int i = 0; i < 4; i++)
            __builtin_prefetch(ahead + (4 * l + i) * 64, 0, 2);
        AMX_DOT(2, 5, 6);
        AMX_DOT(3, 5, 7);
    }
    amx_put(c, AMX_SIDE);
}

/* 16 rows of 16 32-bit units become columns. */
INLINE void amx_turn(vi v[16])
{
    vi t[16];

    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            v[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
            v[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
        }
    /* Now each 128 bits q of v[4 g + r] are units 4 g .. of column 4 q + r. */
    for (int r = 0; r < 4; r++) {
        t[r] = _mm512_shuffle_i32x4(v[r], v[4 + r], 0x88);
        t[4 + r] = _mm512_shuffle_i32x4(v[8 + r], v[12 + r], 0x88);
        t[8 + r] = _mm512_shuffle_i32x4(v[r], v[4 + r], 0xdd);
        t[12 + r] = _mm512_shuffle_i32x4(v[8 + r], v[12 + r], 0xdd);
    }
    for (int r = 0; r < 4; r++) {
        v[r] = _mm512_shuffle_i32x4(t[r], t[4 + r], 0x88);
        v[8 + r] = _mm512_shuffle_i32x4(t[r], t[4 + r], 0xdd);
        v[4 + r] = _mm512_shuffle_i32x4(t[8 + r], t[12 + r], 0x88);
        v[12 + r] = _mm512_shuffle_i32x4(t[8 + r], t[12 + r], 0xdd);
    }
}

/* C (m, n) = scale A B, or += A B with add: A (m, k) and B (k, n) of pairs as 32-bit units, of which k counts; element (i, l)
 * of A is a[i * ai + l * ak].  m and n are multiples of 32, k of 16; either ak is 1, or ai is, m 64 at most and k 32. */
NOINLINE void amx_mm_pairs(float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak, const float *b, int64_t ldb, int64_t m,
                           int64_t n, int64_t k, bool add, float scale)
{
    float turned[64 * 32];
    int64_t rb = ldb * (int64_t)sizeof *b, ra;

    if (ak != 1) {
        for (int64_t i = 0; i < m; i += 16)
            for (int64_t l = 0; l < k; l += 16) {
                vi v[16];

                for (int64_t q = 0; q < 16; q++)
                    v[q] = vf_as_i(vf_load(a + i + (l + q) * ak));
                amx_turn(v);
                for (int64_t q = 0; q < 16; q++)
                    vf_store(turned + (i + q) * k + l, vi_as_f(v[q]));
            }
        a = turned;
        ai = k;
    }
    ra = ai * (int64_t)sizeof *a;
    for (int64_t j = 0; j < n; j += 32)
        for (int64_t i = 0; i < m; i += 32) {
            float *at = c + i * ldc + j;

            amx_get(at, ldc, add);
            for (int64_t l = 0; l < k; l += 16) {
                AMX_LOAD(4, a + i * ai + l, ra);
                AMX_LOAD(6, b + l * ldb + j, rb);
                AMX_LOAD(7, b + l * ldb + j + 16, rb);
                AMX_DOT(0, 4, 6);
                AMX_LOAD(5, a + (i + 16) * ai + l, ra);
                AMX_DOT(1, 4, 7);
                AMX_DOT(2, 5, 6);
                AMX_DOT(3, 5, 7);
            }
            amx_put(at, ldc);
            for (int64_t q = 0; q < 32 && !add && scale != 1; q++)
                for (int64_t r = 0; r < 32; r += VW)
                    vf_store(at + q * ldc + r, vf_load(at + q * ldc + r) * vf_set(scale));
        }
}

INLINE __mmask32 amx_mask(int64_t n) { return n <= 0 ? 0 : n >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1; }

/* 16 rows of 32 numbers of x, of which `rows` and `cols` are there; zeros else. */
INLINE void amx_rows(vi v[16], const uint16_t *x, int64_t ld, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < 16; i++)
        v[i] = i < rows ? _mm512_maskz_loadu_epi16(amx_mask(cols), x + i * ld) : _mm512_setzero_si512();
}

/* 32 rows of 16 numbers, likewise: two rows become one of pairs. */
INLINE void amx_pairs(vi v[16], const uint16_t *x, int64_t ld, int64_t rows, int64_t cols)
{
    __mmask16 here = (__mmask16)amx_mask(cols < 16 ? cols : 16);

    for (int64_t i = 0; i < 16; i++) {
        __m256i even = _mm256_setzero_si256(), odd = even;

        if (2 * i < rows)
            even = _mm256_maskz_loadu_epi16(here, x + 2 * i * ld);
        if (2 * i + 1 < rows)
            odd = _mm256_maskz_loadu_epi16(here, x + (2 * i + 1) * ld);
        v[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
    }
}

#else
INLINE void amx_begin(void) { __builtin_trap(); }
INLINE void amx_end(void) { __builtin_trap(); }
INLINE void amx_mm_pairs(float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak, const float *b, int64_t ldb, int64_t m,
                         int64_t n, int64_t k, bool add, float scale)
{
    (void)c, (void)ldc, (void)a, (void)ai, (void)ak, (void)b, (void)ldb, (void)m, (void)n, (void)k, (void)add, (void)scale;
    __builtin_trap();
}
#endif
#endif
