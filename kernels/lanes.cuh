/* kernels/lanes.cuh -- inside the .cu of the ops of training: eight elements a thread, sums over a
 * warp or a block in a fixed order, dropout's masks.
 *
 * Memory bounds nearly all of these ops, so a thread takes packs of eight elements, 16 or 32 bytes
 * in one or two accesses where they lie so; at the ragged end of a row, or where a row begins
 * anywhere, element by element.  Everything is fp32 inside and rounded once, where it is stored.
 * Products and sums are fused only where fmaf is written (the Makefile forbids it elsewhere), as on the
 * CPU.
 */
#ifndef KERNELS_LANES_CUH
#define KERNELS_LANES_CUH

#include <math.h>

#include "kernels/check.h"
#include "kernels/cuda_op.cuh"

enum { PACK = 8 };
struct pack {
    float v[PACK];
};

/* Two floats as two bf16, a in the low half: to nearest even. */
static __device__ __forceinline__ uint32_t bf16_pair(float a, float b)
{
#if defined(SIMT)
    return ptx_cvt_rn_bf16x2_f32(b, a);
#else
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
#endif
}
static __device__ __forceinline__ float bf16_low(uint32_t pair) { return __uint_as_float(pair << 16); }
static __device__ __forceinline__ float bf16_high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

#define LOG2E 1.44269504f
#define LN2 0.693147181f

/* 2^x, within two units in the last place; 0 from far below. */
static __device__ __forceinline__ float exp2_fast(float x)
{
#if defined(SIMT)
    return ptx_ex2_approx_ftz_f32(x);
#else
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
#endif
}

/* 1 / x, within a unit in the last place; 0 where it would be below 2^-126. */
static __device__ __forceinline__ float reciprocal_fast(float x)
{
#if defined(SIMT)
    return ptx_rcp_approx_ftz_f32(x);
#else
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
#endif
}

static __device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
/* The same to some 2^-16, which is enough for what is rounded to bf16; 0 below -87.3. */
static __device__ __forceinline__ float sigmoid_fast(float x) { return reciprocal_fast(1.0f + exp2_fast(-LOG2E * x)); }

/* What is left of x when it is stored as DT. */
template <enum dtype DT> static __device__ __forceinline__ float rounded(float x)
{
    return DT == DTYPE_BF16 ? bf16_low(bf16_pair(x, 0)) : x;
}

template <enum dtype DT> static __device__ __forceinline__ constexpr int dtype_bytes() { return DT == DTYPE_BF16 ? 2 : 4; }
template <enum dtype DT> static __device__ __forceinline__ float one_get(const void *p, int64_t i)
{
    return DT == DTYPE_BF16 ? bf16_low(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}
template <enum dtype DT> static __device__ __forceinline__ void one_put(void *p, int64_t i, float x)
{
    if (DT == DTYPE_BF16)
        ((uint16_t *)p)[i] = (uint16_t)bf16_pair(x, 0);
    else
        ((float *)p)[i] = x;
}

/* The eight elements at `at`, which is a multiple of 16. */
template <enum dtype DT> static __device__ __forceinline__ pack pack_whole(const char *at)
{
    pack r;

    if (DT == DTYPE_BF16) {
        uint4 w = *(const uint4 *)at;
        r.v[0] = bf16_low(w.x), r.v[1] = bf16_high(w.x), r.v[2] = bf16_low(w.y), r.v[3] = bf16_high(w.y);
        r.v[4] = bf16_low(w.z), r.v[5] = bf16_high(w.z), r.v[6] = bf16_low(w.w), r.v[7] = bf16_high(w.w);
    } else {
        float4 a = ((const float4 *)at)[0], b = ((const float4 *)at)[1];
        r.v[0] = a.x, r.v[1] = a.y, r.v[2] = a.z, r.v[3] = a.w;
        r.v[4] = b.x, r.v[5] = b.y, r.v[6] = b.z, r.v[7] = b.w;
    }
    return r;
}

template <enum dtype DT> static __device__ __forceinline__ void pack_put_whole(char *at, const pack &x)
{
    if (DT == DTYPE_BF16) {
        uint4 w = {bf16_pair(x.v[0], x.v[1]), bf16_pair(x.v[2], x.v[3]), bf16_pair(x.v[4], x.v[5]), bf16_pair(x.v[6], x.v[7])};
        *(uint4 *)at = w;
    } else {
        float4 a = {x.v[0], x.v[1], x.v[2], x.v[3]}, b = {x.v[4], x.v[5], x.v[6], x.v[7]};
        ((float4 *)at)[0] = a;
        ((float4 *)at)[1] = b;
    }
}

/* Elements i .. i + 7 of p, zeros from `left` on. */
template <enum dtype DT> static __device__ __forceinline__ pack pack_get(const void *p, int64_t i, int64_t left)
{
    const char *at = (const char *)p + i * dtype_bytes<DT>();
    pack r;

    if (left >= PACK && (uintptr_t)at % 16 == 0)
        return pack_whole<DT>(at);
#pragma unroll
    for (int j = 0; j < PACK; j++)
        r.v[j] = j < left ? one_get<DT>(p, i + j) : 0.0f;
    return r;
}

template <enum dtype DT> static __device__ __forceinline__ void pack_put(void *p, int64_t i, int64_t left, const pack &x)
{
    char *at = (char *)p + i * dtype_bytes<DT>();

    if (left < PACK || (uintptr_t)at % 16) {
#pragma unroll
        for (int j = 0; j < PACK; j++)
            if (j < left)
                one_put<DT>(p, i + j, x.v[j]);
    } else {
        pack_put_whole<DT>(at, x);
    }
}

/* Eight elements as they lie in memory. */
template <enum dtype DT> struct stored {
    uint4 w[DT == DTYPE_BF16 ? 1 : 2];
};
/* Elements i .. i + 7, zeros from `left` on; packed: a pack is whole or none of it is there, at a multiple of 16. */
template <enum dtype DT>
static __device__ __forceinline__ stored<DT> stored_get(const void *p, int64_t i, int64_t left, bool packed)
{
    stored<DT> r = {};

    if (left <= 0)
        return r;
    if (packed) {
        const uint4 *at = (const uint4 *)((const char *)p + i * dtype_bytes<DT>());
        r.w[0] = at[0];
        if (DT == DTYPE_F32)
            r.w[DT == DTYPE_F32] = at[1];
    } else {
        pack x;
#pragma unroll
        for (int j = 0; j < PACK; j++)
            x.v[j] = j < left ? one_get<DT>(p, i + j) : 0.0f;
        pack_put_whole<DT>((char *)&r, x);
    }
    return r;
}
template <enum dtype DT> static __device__ __forceinline__ pack stored_pack(const stored<DT> &x)
{
    return pack_whole<DT>((const char *)&x);
}

/* ---- sums ---- */

template <typename T> static __device__ __forceinline__ T warp_sum(T x)
{
#pragma unroll
    for (int o = 16; o; o /= 2)
        x += __shfl_xor_sync(~0u, x, o);
    return x;
}
static __device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int o = 16; o; o /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
    return x;
}

/* The sum over a block of whole warps, in all threads.  part: 32 numbers of shared memory of this
 * call's own, or as many as it has warps; the same may be used again behind a barrier. */
template <typename T> static __device__ __forceinline__ T block_sum(T x, T *part)
{
    int warps = (int)blockDim.x / 32;

    x = warp_sum(x);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < warps; i++)
        x += part[i];
    return x;
}
static __device__ __forceinline__ float block_max(float x, float *part)
{
    int warps = (int)blockDim.x / 32;

    x = warp_max(x);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
    for (int i = 1; i < warps; i++)
        x = fmaxf(x, part[i]);
    return x;
}

/* Philox4x32-10, as base/rng.h has it: c, the counter, becomes four random words. */
static __device__ __forceinline__ void philox(uint32_t k0, uint32_t k1, uint32_t c[4])
{
#pragma unroll
    for (int i = 0; i < 10; i++) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)b;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* ---- dropout: struct dropout says which word is whose ---- */

struct drop {
    uint32_t key[2], stream[2], threshold;
    float keep; /* 0: nothing is dropped */
    uint64_t row0, groups;
    const struct dropout_now *now;
    int64_t every;
};

static inline struct drop drop_of(const struct dropout *d, int64_t cols)
{
    struct drop r = {};
    double t;

    if (!d || !(d->p > 0))
        return r;
    t = (double)d->p * 4294967296.0 + 0.5;
    r.key[0] = (uint32_t)d->key, r.key[1] = (uint32_t)(d->key >> 32);
    r.stream[0] = (uint32_t)d->stream, r.stream[1] = (uint32_t)(d->stream >> 32);
    r.threshold = t >= 4294967295.0 ? 4294967295u : (uint32_t)t;
    r.keep = 1.0f / (1.0f - d->p);
    r.row0 = (uint64_t)d->row0;
    r.groups = (uint64_t)((cols + 3) / 4);
    r.now = d->now;
    r.every = d->every;
    return r;
}

/* To be called by a kernel before anything else: what is known only when it runs. */
static __device__ __forceinline__ void drop_begin(struct drop *d)
{
    uint64_t stream = (uint64_t)d->stream[1] << 32 | d->stream[0];

    if (!d->now)
        return;
    stream += d->now->step << DROPOUT_PLACES;
    d->stream[0] = (uint32_t)stream, d->stream[1] = (uint32_t)(stream >> 32);
    d->row0 += (uint64_t)(d->now->sample * d->every);
}

/* A kernel takes rows of one stretch: how many of row .. rows - 1 there are, and their dropout. */
static inline int64_t drop_stretch(const struct dropout *d, int64_t row, int64_t rows, struct dropout *one)
{
    int64_t n = d->cut - (d->first + row) % d->cut;

    *one = *d;
    one->row0 = dropout_row(d, row);
    one->cut = 0;
    return n < rows - row ? n : rows - row;
}

/* The factors (0 or 1 / (1 - p)) of columns 4 group .. 4 group + 3 of a row. */
static __device__ __forceinline__ void drop_four(const struct drop &d, int64_t row, int64_t group, float f[4])
{
    uint64_t at = (d.row0 + (uint64_t)row) * d.groups + (uint64_t)group;
    uint32_t c[4] = {(uint32_t)at, (uint32_t)(at >> 32), d.stream[0], d.stream[1]};

    philox(d.key[0], d.key[1], c);
#pragma unroll
    for (int j = 0; j < 4; j++)
        f[j] = c[j] < d.threshold ? 0.0f : d.keep;
}
static __device__ __forceinline__ pack drop_pack(const struct drop &d, int64_t row, int64_t col)
{
    pack f;

    drop_four(d, row, col / 4, f.v);
    drop_four(d, row, col / 4 + 1, f.v + 4);
    return f;
}

/* ---- launching ---- */

static inline int64_t packs_of(int64_t c) { return (c + PACK - 1) / PACK; }
/* Threads of a block that has a row of c elements to itself. */
static inline unsigned row_threads(int64_t c)
{
    int64_t n = (packs_of(c) + 31) / 32 * 32, most = CUDA_BLOCK;

    return (unsigned)(n > most ? most : n < 32 ? 32 : n);
}

/* In how many parts so many rows are summed by columns (columns.cuh); each has as many floats of scratch as there are columns. */
static inline int column_parts(int64_t rows) { return (int)(rows < 32 * 512 ? (rows + 31) / 32 : 512); }

/* The rest with the constant DT for the type dt. */
#define BY_TYPE(dt, ...)                            \
    do {                                            \
        if ((dt) == DTYPE_BF16) {                   \
            constexpr enum dtype DT = DTYPE_BF16;   \
            __VA_ARGS__;                            \
        } else {                                    \
            constexpr enum dtype DT = DTYPE_F32;    \
            __VA_ARGS__;                            \
        }                                           \
    } while (0)

#endif
