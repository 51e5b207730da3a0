/* kernels/fp8_square.cuh -- inside fp8.cu and norm.cu: numbers to FP8, their largest, squares of bytes that are turned. */
#ifndef KERNELS_FP8_SQUARE_CUH
#define KERNELS_FP8_SQUARE_CUH

#include "kernels/fp8_convert.h"
#include "kernels/lanes.cuh"

/* Two numbers as FP8, a in the low byte.  Chips before 8.9 have no instruction for it. */
template <enum fp8 TO> static __device__ __forceinline__ uint32_t fp8_pair(float a, float b)
{
#if defined(SIMT)
    return TO == FP8_E4M3 ? ptx_cvt_rn_satfinite_e4m3x2_f32(b, a) : ptx_cvt_rn_satfinite_e5m2x2_f32(b, a);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t r;
    if (TO == FP8_E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(b), "f"(a));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(b), "f"(a));
    return r;
#else
    return (uint32_t)fp8_of(TO, a) | (uint32_t)fp8_of(TO, b) << 8;
#endif
}

/* The larger of two numbers that are not negative; NaN if one is. */
static __device__ __forceinline__ float max_or_nan(float a, float b)
{
#if defined(SIMT)
    return ptx_max_nan_f32(a, b);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890 /* beside conversions by many instructions it would spill registers */
    uint32_t u = __float_as_uint(a), v = __float_as_uint(b);
    return u > v ? a : b;
#else
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#endif
}

/* The largest of the bits of |x| so far; those of NaN are larger than any number's. */
static __device__ __forceinline__ uint32_t larger(uint32_t most, const pack &x)
{
    float m = __uint_as_float(most);

#pragma unroll
    for (int j = 0; j < PACK; j++)
        m = max_or_nan(m, fabsf(x.v[j]));
    return __float_as_uint(m);
}

/* The largest of a warp. */
static __device__ __forceinline__ uint32_t warp_largest(uint32_t most)
{
#pragma unroll
    for (int o = 16; o; o /= 2) {
        uint32_t other = __shfl_xor_sync(~0u, most, o);
        most = other > most ? other : most;
    }
    return most;
}

/* The block's largest to *amax; a maximum has no order.  part: CUDA_WARPS words. */
static __device__ __forceinline__ void add_amax(float *amax, uint32_t most, uint32_t *part)
{
    most = warp_largest(most);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < CUDA_WARPS; i++)
        most = part[i] > most ? part[i] : most;
    if (most)
        atomicMax((uint32_t *)amax, most);
}

/* Eight numbers times scale as bytes, the first lowest. */
template <enum fp8 TO> static __device__ __forceinline__ uint64_t fp8_eight(const pack &x, float scale)
{
    uint64_t r = 0;

#pragma unroll
    for (int q = 0; q < PACK; q += 2)
        r |= (uint64_t)fp8_pair<TO>(x.v[q] * scale, x.v[q + 1] * scale) << 8 * q;
    return r;
}

enum { SIDE = 128, UNITS = SIDE / 8 }; /* a square of bytes, in units of 8 */

/* 8 bytes to p[i]; those from `left` on stay. */
static __device__ __forceinline__ void put_eight(uint8_t *p, int64_t i, int64_t left, uint64_t v)
{
    if (left < 8 || (uintptr_t)(p + i) % 8) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (j < left)
                p[i + j] = (uint8_t)(v >> 8 * j);
    } else {
        *(uint64_t *)(p + i) = v;
    }
}

/* The same 8 bytes, 0 from `left` on. */
static __device__ __forceinline__ uint64_t get_eight(const uint8_t *p, int64_t i, int64_t left)
{
    uint64_t v = 0;

    if (left >= 8 && (uintptr_t)(p + i) % 8 == 0)
        return *(const uint64_t *)(p + i);
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (j < left)
            v |= (uint64_t)p[i + j] << 8 * j;
    return v;
}

/* Four rows of four bytes, turned. */
static __device__ __forceinline__ void turn_four(uint32_t v[4])
{
    uint32_t a = __byte_perm(v[0], v[1], 0x5140), b = __byte_perm(v[2], v[3], 0x5140);
    uint32_t c = __byte_perm(v[0], v[1], 0x7362), d = __byte_perm(v[2], v[3], 0x7362);

    v[0] = __byte_perm(a, b, 0x5410), v[1] = __byte_perm(a, b, 0x7632);
    v[2] = __byte_perm(c, d, 0x5410), v[3] = __byte_perm(c, d, 0x7632);
}

/* Eight rows of eight bytes, turned: by quarters of 4 by 4. */
static __device__ __forceinline__ void turn_eight(uint64_t v[8])
{
    uint32_t quarter[2][2][4]; /* low or high rows, low or high bytes */

#pragma unroll
    for (int q = 0; q < 4; q++) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            quarter[q / 2][q % 2][k] = (uint32_t)(v[q / 2 * 4 + k] >> 32 * (q % 2));
        turn_four(quarter[q / 2][q % 2]);
    }
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = quarter[0][k / 4][k % 4] | (uint64_t)quarter[1][k / 4][k % 4] << 32;
}

/* Where unit j of row r of a square lies: neither neighbours in a row nor those in a column meet a common bank. */
static __device__ __forceinline__ int square_at(int r, int j)
{
    return r * UNITS + (j + r / 8) % UNITS;
}

/* The square at row r0 and column c0, which the whole block has written, to yt (cols, ld) transposed; a thread turns 8 by 8 of it
 * in its registers. */
static __device__ __forceinline__ void square_turn(const uint64_t *square, uint8_t *yt, int64_t r0, int64_t c0, int64_t cols,
                                                   int64_t ld)
{
    int i = (int)threadIdx.x % UNITS, j = (int)threadIdx.x / UNITS;
    int64_t r = r0 + 8 * i, c = c0 + 8 * j;
    uint64_t v[8];

#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = square[square_at(8 * i + k, j)];
    turn_eight(v);
    if (c + 8 <= cols && r + 8 <= ld && ((uintptr_t)yt | (uint64_t)ld) % 8 == 0) {
        uint8_t *at = yt + c * ld + r;
#pragma unroll
        for (int k = 0; k < 8; k++, at += ld)
            *(uint64_t *)at = v[k];
        return;
    }
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (c + k < cols && r < ld)
            put_eight(yt, (c + k) * ld + r, ld - r, v[k]);
}

#endif
