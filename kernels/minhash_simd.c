#include "kernels/minhash_simd.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Each loop keeps the coefficients and the minima of a few vectors of functions in
 * registers and runs over the hashes; the caller's chunks stay in the L1 cache. */
#define ALWAYS static inline __attribute__((always_inline))
#define M61 0x1fffffffffffffffull

#if defined(__AVX512F__)

ALWAYS void m61_group(const uint64_t *a, const uint64_t *b, const uint64_t *hash, size_t count,
                      uint64_t *min, const int g)
{
    const __m512i p = _mm512_set1_epi64((long long)M61);
    __m512i va[8], vb[8], vm[8];

    for (int k = 0; k < g; k++) {
        va[k] = _mm512_load_si512(a + 8 * k);
        vb[k] = _mm512_load_si512(b + 8 * k);
        vm[k] = _mm512_load_si512(min + 8 * k);
    }
    for (size_t i = 0; i < count; i++) {
        __m512i h = _mm512_set1_epi64((long long)hash[i]);
        for (int k = 0; k < g; k++) {
            __m512i t = _mm512_add_epi64(_mm512_mullo_epi64(va[k], h), vb[k]);
            t = _mm512_and_si512(_mm512_add_epi64(t, _mm512_srli_epi64(t, 61)), p);
            vm[k] = _mm512_min_epu64(vm[k], t);
        }
    }
    for (int k = 0; k < g; k++)
        _mm512_store_si512(min + 8 * k, vm[k]);
}

ALWAYS void u32_group(const uint32_t *a, const uint32_t *b, const uint64_t *hash, size_t count,
                      uint32_t *min, const int g)
{
    __m512i va[8], vb[8], vm[8];

    for (int k = 0; k < g; k++) {
        va[k] = _mm512_load_si512(a + 16 * k);
        vb[k] = _mm512_load_si512(b + 16 * k);
        vm[k] = _mm512_load_si512(min + 16 * k);
    }
    for (size_t i = 0; i < count; i++) {
        __m512i h = _mm512_set1_epi32((int)(uint32_t)hash[i]);
        for (int k = 0; k < g; k++)
            vm[k] = _mm512_min_epu32(vm[k], _mm512_add_epi32(_mm512_mullo_epi32(va[k], h), vb[k]));
    }
    for (int k = 0; k < g; k++)
        _mm512_store_si512(min + 16 * k, vm[k]);
}
enum { LANES64 = 8, LANES32 = 16, GROUP = 8 };

#elif defined(__AVX2__)

/* No 64-bit product: three of 32 bits.  No unsigned minimum either, but the values are
 * below 2^61, so the signed comparison serves. */
ALWAYS void m61_group(const uint64_t *a, const uint64_t *b, const uint64_t *hash, size_t count,
                      uint64_t *min, const int g)
{
    const __m256i p = _mm256_set1_epi64x((long long)M61);
    __m256i va[2], vb[2], vm[2];

    for (int k = 0; k < g; k++) {
        va[k] = _mm256_load_si256((const __m256i *)(a + 4 * k));
        vb[k] = _mm256_load_si256((const __m256i *)(b + 4 * k));
        vm[k] = _mm256_load_si256((const __m256i *)(min + 4 * k));
    }
    for (size_t i = 0; i < count; i++) {
        __m256i h = _mm256_set1_epi64x((long long)hash[i]);
        __m256i hh = _mm256_set1_epi64x((long long)(hash[i] >> 32));
        for (int k = 0; k < g; k++) {
            __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(va[k], 32), h),
                                             _mm256_mul_epu32(va[k], hh));
            __m256i t = _mm256_add_epi64(_mm256_mul_epu32(va[k], h), vb[k]);
            t = _mm256_add_epi64(t, _mm256_slli_epi64(cross, 32));
            t = _mm256_and_si256(_mm256_add_epi64(t, _mm256_srli_epi64(t, 61)), p);
            vm[k] = _mm256_blendv_epi8(vm[k], t, _mm256_cmpgt_epi64(vm[k], t));
        }
    }
    for (int k = 0; k < g; k++)
        _mm256_store_si256((__m256i *)(min + 4 * k), vm[k]);
}

ALWAYS void u32_group(const uint32_t *a, const uint32_t *b, const uint64_t *hash, size_t count,
                      uint32_t *min, const int g)
{
    __m256i va[2], vb[2], vm[2];

    for (int k = 0; k < g; k++) {
        va[k] = _mm256_load_si256((const __m256i *)(a + 8 * k));
        vb[k] = _mm256_load_si256((const __m256i *)(b + 8 * k));
        vm[k] = _mm256_load_si256((const __m256i *)(min + 8 * k));
    }
    for (size_t i = 0; i < count; i++) {
        __m256i h = _mm256_set1_epi32((int)(uint32_t)hash[i]);
        for (int k = 0; k < g; k++)
            vm[k] = _mm256_min_epu32(vm[k], _mm256_add_epi32(_mm256_mullo_epi32(va[k], h), vb[k]));
    }
    for (int k = 0; k < g; k++)
        _mm256_store_si256((__m256i *)(min + 8 * k), vm[k]);
}
enum { LANES64 = 4, LANES32 = 8, GROUP = 2 };

#else

ALWAYS void m61_group(const uint64_t *a, const uint64_t *b, const uint64_t *hash, size_t count,
                      uint64_t *min, const int g)
{
    uint64_t va[4], vb[4], vm[4];

    for (int k = 0; k < g; k++) {
        va[k] = a[k];
        vb[k] = b[k];
        vm[k] = min[k];
    }
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < g; k++) {
            uint64_t t = va[k] * hash[i] + vb[k];
            t = (t + (t >> 61)) & M61;
            vm[k] = vm[k] < t ? vm[k] : t;
        }
    for (int k = 0; k < g; k++)
        min[k] = vm[k];
}

ALWAYS void u32_group(const uint32_t *a, const uint32_t *b, const uint64_t *hash, size_t count,
                      uint32_t *min, const int g)
{
    uint32_t va[16], vb[16], vm[16];

    for (int k = 0; k < 4 * g; k++) {
        va[k] = a[k];
        vb[k] = b[k];
        vm[k] = min[k];
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t h = (uint32_t)hash[i];
        for (int k = 0; k < 4 * g; k++) {
            uint32_t t = va[k] * h + vb[k];
            vm[k] = vm[k] < t ? vm[k] : t;
        }
    }
    for (int k = 0; k < 4 * g; k++)
        min[k] = vm[k];
}
enum { LANES64 = 1, LANES32 = 4, GROUP = 4 };

#endif

void ISA_FN(minhash_m61_min)(const uint64_t *a, const uint64_t *b1, int padded,
                             const uint64_t *hash, size_t count, uint64_t *min)
{
    int j = 0;

    for (; padded - j >= GROUP * LANES64; j += GROUP * LANES64)
        m61_group(a + j, b1 + j, hash, count, min + j, GROUP);
    if (padded - j >= GROUP / 2 * LANES64) {
        m61_group(a + j, b1 + j, hash, count, min + j, GROUP / 2);
        j += GROUP / 2 * LANES64;
    }
    for (; padded - j >= 2 * LANES64; j += 2 * LANES64)
        m61_group(a + j, b1 + j, hash, count, min + j, 2);
}

void ISA_FN(minhash_u32_min)(const uint32_t *a, const uint32_t *b, int padded,
                             const uint64_t *hash, size_t count, uint32_t *min)
{
    int j = 0;

    for (; padded - j >= GROUP * LANES32; j += GROUP * LANES32)
        u32_group(a + j, b + j, hash, count, min + j, GROUP);
    for (; j < padded; j += LANES32)
        u32_group(a + j, b + j, hash, count, min + j, 1);
}

/* x mod p of x = q 2^61 + r is q + r, less p if that is not below p. */
#if defined(__AVX512F__)
static void low32_group(const uint64_t *a, const uint64_t *b, const uint64_t *hash, size_t count, uint64_t *min)
{
    const __m512i p = _mm512_set1_epi64((long long)M61), low = _mm512_set1_epi64(UINT32_MAX);
    __m512i va[2], vb[2], vm[2];

    for (int k = 0; k < 2; k++) {
        va[k] = _mm512_load_si512(a + 8 * k);
        vb[k] = _mm512_load_si512(b + 8 * k);
        vm[k] = _mm512_load_si512(min + 8 * k);
    }
    for (size_t i = 0; i < count; i++) {
        __m512i h = _mm512_set1_epi64((long long)hash[i]);
        for (int k = 0; k < 2; k++) {
            __m512i t = _mm512_add_epi64(_mm512_mullo_epi64(va[k], h), vb[k]);
            t = _mm512_add_epi64(_mm512_and_si512(t, p), _mm512_srli_epi64(t, 61));
            t = _mm512_min_epu64(t, _mm512_sub_epi64(t, p));
            vm[k] = _mm512_min_epu64(vm[k], _mm512_and_si512(t, low));
        }
    }
    for (int k = 0; k < 2; k++)
        _mm512_store_si512(min + 8 * k, vm[k]);
}
#else
static void low32_group(const uint64_t *a, const uint64_t *b, const uint64_t *hash, size_t count, uint64_t *min)
{
    for (int k = 0; k < 16; k++) {
        uint64_t va = a[k], vb = b[k], vm = min[k];
        for (size_t i = 0; i < count; i++) {
            uint64_t t = va * hash[i] + vb;
            t = (t & M61) + (t >> 61);
            t = (uint32_t)(t >= M61 ? t - M61 : t);
            vm = vm < t ? vm : t;
        }
        min[k] = vm;
    }
}
#endif

void ISA_FN(minhash_low32_min)(const uint64_t *a, const uint64_t *b, int padded, const uint64_t *hash, size_t count,
                               uint64_t *min)
{
    for (int j = 0; j < padded; j += 16)
        low32_group(a + j, b + j, hash, count, min + j);
}
