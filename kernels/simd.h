/* kernels/simd.h -- vectors of floats for the *_simd.c files, one width an instruction set.
 *
 * vf holds VW floats, vi VW 32-bit integers; + - * / work on vf.  A product and a sum are
 * fused only where vf_fma is written, and fused there only if the instruction set can:
 * results differ in the last bits between instruction sets, never between runs.
 */
#ifndef KERNELS_SIMD_H
#define KERNELS_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "base/isa.h"
#include "kernels/dtype.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline, unused)) /* long, and called for long work */

#if defined(__AVX512BW__)

enum { VW = 16 };
typedef __m512 vf;
typedef __m512i vi;

INLINE vf vf_set(float x) { return _mm512_set1_ps(x); }
INLINE vi vi_set(int32_t x) { return _mm512_set1_epi32(x); }
INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
/* NaN in b comes through; in a it does not. */
INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
INLINE vf vf_if_lt(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
INLINE vf vf_if_ltu(vi a, vi b, vf yes, vf no) /* unsigned */
{
    return _mm512_mask_blend_ps(_mm512_cmplt_epu32_mask(a, b), no, yes);
}
INLINE vf vi_as_f(vi a) { return _mm512_castsi512_ps(a); }
INLINE vi vf_as_i(vf a) { return _mm512_castps_si512(a); }
INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
INLINE vf vf_whole(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* a 2^n where x is not below lo, 0 where it is; n whole. */
INLINE vf vf_ldexp_from(vf lo, vf x, vf a, vf n)
{
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, lo, _CMP_NLT_UQ), a, n);
}
INLINE vi vi_load(const uint32_t *p) { return _mm512_loadu_si512(p); }
INLINE float vf_sum(vf a) { return _mm512_reduce_add_ps(a); }
INLINE float vf_maximum(vf a) { return _mm512_reduce_max_ps(a); }
INLINE vf vf_load_bf16(const uint16_t *p)
{
    __m512i w = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
}
INLINE __m256i vf_to_bf16(vf v)
{
    __m512i u = _mm512_castps_si512(v), one = _mm512_set1_epi32(1), r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));

    r = _mm512_mask_add_epi32(r, _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), r, one);
    r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
    r = _mm512_srli_epi32(r, 16);
    return _mm512_cvtepi32_epi16(r);
}
INLINE void vf_store_bf16(uint16_t *p, vf v) { _mm256_storeu_si256((__m256i *)p, vf_to_bf16(v)); }
INLINE __mmask16 vf_mask(int64_t n) { return (__mmask16)((1u << n) - 1); }
INLINE vf vf_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(vf_mask(n), p); }
INLINE void vf_store_n(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, vf_mask(n), v); }
INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    __m256i h = _mm256_maskz_loadu_epi16(vf_mask(n), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    _mm256_mask_storeu_epi16(p, vf_mask(n), vf_to_bf16(v));
}
/* For processors with AVX512-BF16, of which the compiler is not told: whoever calls these has asked.  All take what is below
 * 2^-126 for 0.  Lanes are rounded to bf16, one vector behind the other, or lane i beside lane i; ... */
INLINE vi vf_narrow(vf first, vf second)
{
    vi r;

    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(r) : "v"(first), "v"(second));
    return r;
}
INLINE vi vf_pair(vf even, vf odd)
{
    static const uint16_t at[32] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

    return _mm512_permutexvar_epi16(_mm512_loadu_si512(at), vf_narrow(even, odd));
}
/* ... and to each lane of sum the two products of a pair with a pair are added. */
INLINE vf vf_dot_bf16(vi a, vi b, vf sum)
{
    __asm__("vdpbf16ps %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
/* 32 x 32 -> 64 bits, lane by lane. */
INLINE void vi_mul_wide(vi a, uint32_t k, vi *hi, vi *lo)
{
    __m512i kk = _mm512_set1_epi32((int)k);
    __m512i even = _mm512_mul_epu32(a, kk), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), kk);

    *lo = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    *hi = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}
/* Within each 128 bits, rows become columns: out[q] has lane q of a, b, c, d. */
INLINE void vi_transpose4(vi a, vi b, vi c, vi d, vi out[4])
{
    vi ab0 = _mm512_unpacklo_epi32(a, b), ab1 = _mm512_unpackhi_epi32(a, b);
    vi cd0 = _mm512_unpacklo_epi32(c, d), cd1 = _mm512_unpackhi_epi32(c, d);

    out[0] = _mm512_unpacklo_epi64(ab0, cd0);
    out[1] = _mm512_unpackhi_epi64(ab0, cd0);
    out[2] = _mm512_unpacklo_epi64(ab1, cd1);
    out[3] = _mm512_unpackhi_epi64(ab1, cd1);
}

#elif defined(__AVX2__)

enum { VW = 8 };
typedef __m256 vf;
typedef __m256i vi;

INLINE vf vf_set(float x) { return _mm256_set1_ps(x); }
INLINE vi vi_set(int32_t x) { return _mm256_set1_epi32(x); }
INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
INLINE vf vf_if_lt(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
INLINE vf vf_if_ltu(vi a, vi b, vf yes, vf no)
{
    __m256i ge = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return _mm256_blendv_ps(yes, no, _mm256_castsi256_ps(ge));
}
INLINE vi vf_round(vf a) { return _mm256_cvtps_epi32(a); }
INLINE vf vi_to_f(vi a) { return _mm256_cvtepi32_ps(a); }
INLINE vf vi_as_f(vi a) { return _mm256_castsi256_ps(a); }
INLINE vi vf_as_i(vf a) { return _mm256_castps_si256(a); }
INLINE vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
INLINE vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
INLINE vi vi_shl23(vi a) { return _mm256_slli_epi32(a, 23); }
INLINE vi vi_load(const uint32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE vf vf_load_bf16(const uint16_t *p)
{
    __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}
INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    __m256i u = _mm256_castps_si256(v), hi = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(hi, _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(u, odd), _mm256_set1_epi32(0x7fff)), 16);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));

    r = _mm256_blendv_epi8(r, _mm256_or_si256(hi, _mm256_set1_epi32(0x40)), nan);
    r = _mm256_permute4x64_epi64(_mm256_packus_epi32(r, r), 0x08);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(r));
}
INLINE void vi_mul_wide(vi a, uint32_t k, vi *hi, vi *lo)
{
    __m256i kk = _mm256_set1_epi32((int)k);
    __m256i even = _mm256_mul_epu32(a, kk), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), kk);

    *lo = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *hi = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
INLINE void vi_transpose4(vi a, vi b, vi c, vi d, vi out[4])
{
    vi ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
    vi cd0 = _mm256_unpacklo_epi32(c, d), cd1 = _mm256_unpackhi_epi32(c, d);

    out[0] = _mm256_unpacklo_epi64(ab0, cd0);
    out[1] = _mm256_unpackhi_epi64(ab0, cd0);
    out[2] = _mm256_unpacklo_epi64(ab1, cd1);
    out[3] = _mm256_unpackhi_epi64(ab1, cd1);
}

#else /* any machine: four lanes, and the compiler does what it can */

enum { VW = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));

INLINE vf vf_set(float x) { return (vf){x, x, x, x}; }
INLINE vi vi_set(int32_t x) { return (vi){x, x, x, x}; }
INLINE vf vf_load(const float *p)
{
    vf v;

    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void vf_store(float *p, vf v) { memcpy(p, &v, sizeof v); }
INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
INLINE vf vf_select(vi mask, vf yes, vf no)
{
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}
INLINE vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
INLINE vf vf_min(vf a, vf b) { return vf_select(a < b, a, b); }
INLINE vf vf_sqrt(vf a)
{
    for (int i = 0; i < VW; i++)
        a[i] = __builtin_sqrtf(a[i]);
    return a;
}
INLINE vf vf_if_lt(vf a, vf b, vf yes, vf no) { return vf_select(a < b, yes, no); }
INLINE vf vf_if_ltu(vi a, vi b, vf yes, vf no) { return vf_select((vi)((vu)a < (vu)b), yes, no); }
INLINE vi vf_round(vf a) /* |a| < 2^22: enough for exponents */
{
    vf magic = vf_set(12582912.0f);
    return (vi)(a + magic) - (vi)magic;
}
INLINE vf vi_to_f(vi a) { return __builtin_convertvector(a, vf); }
INLINE vf vi_as_f(vi a) { return (vf)a; }
INLINE vi vf_as_i(vf a) { return (vi)a; }
INLINE vi vi_add(vi a, vi b) { return (vi)((vu)a + (vu)b); }
INLINE vi vi_xor(vi a, vi b) { return a ^ b; }
INLINE vi vi_shl23(vi a) { return (vi)((vu)a << 23); }
INLINE vi vi_load(const uint32_t *p)
{
    vi v;

    memcpy(&v, p, sizeof v);
    return v;
}
INLINE vf vf_load_bf16(const uint16_t *p)
{
    vu u = {p[0], p[1], p[2], p[3]};
    return (vf)(u << 16);
}
INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    for (int i = 0; i < VW; i++)
        p[i] = bf16_of(v[i]);
}
INLINE void vi_mul_wide(vi a, uint32_t k, vi *hi, vi *lo)
{
    vi high = {0}, low = {0};

    for (int i = 0; i < VW; i++) {
        uint64_t w = (uint64_t)(uint32_t)a[i] * k;
        high[i] = (int32_t)(w >> 32);
        low[i] = (int32_t)w;
    }
    *hi = high;
    *lo = low;
}
INLINE void vi_transpose4(vi a, vi b, vi c, vi d, vi out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = (vi){a[i], b[i], c[i], d[i]};
}

#endif

#if !defined(__AVX512BW__)
INLINE vf vf_whole(vf a) { return vi_to_f(vf_round(a)); } /* |a| < 2^22; NaN need not stay */
/* a 2^n where x is not below lo, 0 where it is; n whole, -126 < n <= 128, a near 1: as 2 * 2^(n-1), so that n = 128 does not
 * overflow on the way. */
INLINE vf vf_ldexp_from(vf lo, vf x, vf a, vf n)
{
    vf p = a * vf_set(2.0f) * vi_as_f(vi_shl23(vi_add(vf_round(n), vi_set(126))));

    return vf_if_lt(x, lo, vf_set(0.0f), p);
}
/* No such processor has AVX512-BF16: never called. */
INLINE vi vf_narrow(vf first, vf second)
{
    (void)first, (void)second;
    __builtin_trap();
}
INLINE vi vf_pair(vf even, vf odd) { return vf_narrow(even, odd); }
INLINE vf vf_dot_bf16(vi a, vi b, vf sum)
{
    (void)a, (void)b, (void)sum;
    __builtin_trap();
}
/* The sum of the lanes, in a fixed order. */
INLINE float vf_sum(vf a)
{
    float s[VW];

    vf_store(s, a);
    for (int w = VW / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            s[i] += s[i + w];
    return s[0];
}
INLINE float vf_maximum(vf a)
{
    float m = a[0];

    for (int i = 1; i < VW; i++)
        m = a[i] > m ? a[i] : m;
    return m;
}
/* The first n lanes, 0 < n < VW; loads give 0 in the others. */
INLINE vf vf_load_n(const float *p, int64_t n)
{
    float s[VW] = {0};

    memcpy(s, p, (size_t)n * 4);
    return vf_load(s);
}
INLINE void vf_store_n(float *p, vf v, int64_t n)
{
    float s[VW];

    vf_store(s, v);
    memcpy(p, s, (size_t)n * 4);
}
INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    uint16_t s[VW] = {0};

    memcpy(s, p, (size_t)n * 2);
    return vf_load_bf16(s);
}
INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    uint16_t s[VW];

    vf_store_bf16(s, v);
    memcpy(p, s, (size_t)n * 2);
}
#endif

/* Lanes i .. of a tensor of either type, `left` elements to its end: a whole vector or
 * the rest of the row. */
INLINE vf vf_get(enum dtype dt, const void *p, int64_t i, int64_t left)
{
    if (dt == DTYPE_BF16)
        return left >= VW ? vf_load_bf16((const uint16_t *)p + i)
                          : vf_load_bf16_n((const uint16_t *)p + i, left);
    return left >= VW ? vf_load((const float *)p + i) : vf_load_n((const float *)p + i, left);
}
INLINE void vf_put(enum dtype dt, void *p, int64_t i, int64_t left, vf v)
{
    if (dt == DTYPE_BF16) {
        if (left >= VW)
            vf_store_bf16((uint16_t *)p + i, v);
        else
            vf_store_bf16_n((uint16_t *)p + i, v, left);
    } else if (left >= VW) {
        vf_store((float *)p + i, v);
    } else {
        vf_store_n((float *)p + i, v, left);
    }
}
/* e^x.  Relative error under 1e-7; 0 below -86.9 (1.8e-38, near the smallest
 * normal float), infinity above 88.72; NaN stays.  2^n times a polynomial of degree 6,
 * minimax on [-ln 2 / 2, ln 2 / 2]. */
INLINE vf vf_exp(vf x)
{
    vf lo = vf_set(-86.9f), y = vf_min(vf_set(89.0f), vf_max(lo, x)), r, p, n = vf_whole(y * vf_set(1.44269504f));

    r = vf_fma(n, vf_set(-0.693145752f), y);
    r = vf_fma(n, vf_set(-1.42860677e-6f), r);
    p = vf_fma(vf_set(0.00138145941f), r, vf_set(0.00836871692f));
    p = vf_fma(p, r, vf_set(0.0416683881f));
    p = vf_fma(p, r, vf_set(0.166665206f));
    p = vf_fma(p, r, vf_set(0.499999934f));
    p = vf_fma(p, r * r, r) + vf_set(1.0f);
    return vf_ldexp_from(lo, x, p, n); /* above 88.72 too large for a float, so infinity by itself */
}

/* The normal distribution function: 1/2 erfc(-x / sqrt 2).  erfc(z) = e^(-z^2) g / (1 + 2 z)
 * with g a minimax polynomial of degree 9 in (z - 4) / (z + 4), z >= 0 (the substitution is
 * Shepherd and Laframboise's, 1981).  Absolute error under 2.5e-7; relative under 5e-7 for
 * x > -1, growing with x^2 in the left tail (the rounding of z^2). */
INLINE vf vf_normal_cdf(vf x)
{
    vf a = x * vf_set(0.707106781f), zero = vf_set(0.0f);
    vf z = vf_min(vf_set(10.9f), vf_if_lt(a, zero, zero - a, a));
    vf q = (z - vf_set(4.0f)) / (z + vf_set(4.0f)), g, tail;

    g = vf_fma(vf_set(0.00452262575f), q, vf_set(-0.0178963194f));
    g = vf_fma(g, q, vf_set(0.0366971899f));
    g = vf_fma(g, q, vf_set(-0.0657182162f));
    g = vf_fma(g, q, vf_set(0.0939826783f));
    g = vf_fma(g, q, vf_set(-0.101116345f));
    g = vf_fma(g, q, vf_set(0.0680651545f));
    g = vf_fma(g, q, vf_set(0.0153832411f));
    g = vf_fma(g, q, vf_set(-0.139620142f));
    g = vf_fma(g, q, vf_set(1.23299509f));
    tail = vf_set(0.5f) * vf_exp(zero - z * z) * g / vf_fma(vf_set(2.0f), z, vf_set(1.0f));
    return vf_if_lt(x, zero, tail, vf_set(1.0f) - tail);
}

/* Dropout's factors (0 or 1 / (1 - p)) for 4 VW consecutive elements of a row: groups
 * g .. g + VW - 1 of four words each.  See struct dropout. */
struct drop_row {
    uint64_t key, stream, lo; /* lo: the counter of the row's first group */
    uint32_t threshold;
    float keep;
};
INLINE struct drop_row drop_row_of(const struct dropout *d, int64_t row, int64_t cols)
{
    struct drop_row r = {d->key, d->stream, 0, 0, 1.0f / (1.0f - d->p)};
    double t = (double)d->p * 4294967296.0 + 0.5;

    row = dropout_row(d, row);
    if (d->now) {
        r.stream += d->now->step << DROPOUT_PLACES;
        row += d->now->sample * d->every;
    }
    r.lo = (uint64_t)row * (uint64_t)((cols + 3) / 4);
    r.threshold = t >= 4294967295.0 ? 4294967295u : (uint32_t)t;
    return r;
}
INLINE void drop_factors(const struct drop_row *d, int64_t g, vf out[4])
{
    uint32_t w0[VW], w1[VW];
    uint32_t k0 = (uint32_t)d->key, k1 = (uint32_t)(d->key >> 32);
    vi c0, c1, c2 = vi_set((int32_t)(uint32_t)d->stream);
    vi c3 = vi_set((int32_t)(uint32_t)(d->stream >> 32)), t[4];

    /* Lane 4 L + q takes group q * VW / 4 + L: vi_transpose4 then yields elements in order. */
    for (int i = 0; i < VW; i++) {
        uint64_t c = d->lo + (uint64_t)(g + i % 4 * (VW / 4) + i / 4);
        w0[i] = (uint32_t)c;
        w1[i] = (uint32_t)(c >> 32);
    }
    c0 = vi_load(w0);
    c1 = vi_load(w1);
    for (int i = 0; i < 10; i++) {
        vi ahi, alo, bhi, blo;

        vi_mul_wide(c0, 0xD2511F53u, &ahi, &alo);
        vi_mul_wide(c2, 0xCD9E8D57u, &bhi, &blo);
        c0 = vi_xor(vi_xor(bhi, c1), vi_set((int32_t)k0));
        c2 = vi_xor(vi_xor(ahi, c3), vi_set((int32_t)k1));
        c1 = blo;
        c3 = alo;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    vi_transpose4(c0, c1, c2, c3, t);
    for (int q = 0; q < 4; q++)
        out[q] = vf_if_ltu(t[q], vi_set((int32_t)d->threshold), vf_set(0.0f), vf_set(d->keep));
}
/* The factors of columns c .. c + n - 1 (c a multiple of 4) to buf, which has room for
 * n rounded up to 4 VW. */
INLINE void drop_fill(const struct drop_row *d, int64_t c, int64_t n, float *buf)
{
    for (int64_t i = 0; i < n; i += 4 * VW) {
        vf f[4];

        drop_factors(d, (c + i) / 4, f);
        for (int q = 0; q < 4; q++)
            vf_store(buf + i + q * VW, f[q]);
    }
}

#endif
