#include "kernels/update_constants.h"
#include "kernels/eight_bit.h"
#include "kernels/lanes.cuh"

/* New bf16 weights w, of which the first is element i of the call; exact in bf16 afterwards. */
static __device__ __forceinline__ void round_pack(const struct update_constants &k, int64_t i, pack &w)
{
    int64_t row = i / k.round.cols, col = i % k.round.cols;
    uint64_t at = ~(uint64_t)0;
    uint32_t c[4];

#pragma unroll
    for (int j = 0; j < PACK; j++) {
        uint64_t e = (uint64_t)(k.round.first + row * k.round.width + col);
        if (e / 8 != at) {
            at = e / 8;
            c[0] = (uint32_t)at, c[1] = (uint32_t)(at >> 32), c[2] = (uint32_t)k.step, c[3] = (uint32_t)(k.step >> 32);
            philox((uint32_t)k.round.key, (uint32_t)(k.round.key >> 32), c);
        }
        w.v[j] = __uint_as_float(update_rounded(__float_as_uint(w.v[j]), c, e));
        if (++col == k.round.cols) {
            col = 0;
            row++;
        }
    }
}

/* A new weight from w, the moments and the gradient x of one element: the same formulas as the CPU's. */
template <enum update_kind KIND>
static __device__ __forceinline__ float updated(const struct update_constants &k, float w, float &m, float &v, float x)
{
    if (KIND == UPDATE_LION) {
        float c = fmaf(k.one_b1, x, k.b1 * m), sign = 0 < c ? 1.0f : c < 0 ? -1.0f : 0.0f;
        m = fmaf(k.one_b2, x, k.b2 * m);
        return w * k.decay - k.lr * sign;
    }
    if (KIND == UPDATE_SGD) {
        m = fmaf(k.b1, m, fmaf(k.wd, w, x));
        return w - k.lr * m;
    }
    m = fmaf(k.one_b1, x, k.b1 * m);
    v = fmaf(k.one_b2 * x, x, k.b2 * v);
    return w * k.decay - k.rate * m / fmaf(sqrtf(v), k.root, k.eps);
}

/* Of AdamW 16 bytes read and 12 or 14 written an element; LOW, bf16 weights alone: 14 and 10.  The scale is read here: no
 * clipping factor goes over the host. */
template <enum update_kind KIND, bool LOW, enum dtype M, enum dtype V>
static __device__ __forceinline__ void update_all(const struct update_constants &k, const float *scale, float *w, void *m,
                                                  void *v, const float *grad, uint16_t *low, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;
    float s = scale ? *scale : 1.0f;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step) {
        pack g = pack_get<DTYPE_F32>(grad, i, n - i), m1 = pack_get<M>(m, i, n - i);
        pack v1 = KIND == UPDATE_ADAMW ? pack_get<V>(v, i, n - i) : m1;
        pack w1 = LOW ? pack_get<DTYPE_BF16>(low, i, n - i) : pack_get<DTYPE_F32>(w, i, n - i);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            uint32_t add = update_random(__float_as_uint(g.v[j]), __float_as_uint(w1.v[j]), k.step);

            w1.v[j] = updated<KIND>(k, w1.v[j], m1.v[j], v1.v[j], g.v[j] * s);
            if (M == DTYPE_BF16)
                m1.v[j] = __uint_as_float(update_cut(__float_as_uint(m1.v[j]), add & 0xffff));
            if (KIND == UPDATE_ADAMW && V == DTYPE_BF16)
                v1.v[j] = __uint_as_float(update_cut(__float_as_uint(v1.v[j]), add >> 16));
        }
        pack_put<M>(m, i, n - i, m1);
        if (KIND == UPDATE_ADAMW)
            pack_put<V>(v, i, n - i, v1);
        if (LOW)
            round_pack(k, i, w1);
        else
            pack_put<DTYPE_F32>(w, i, n - i, w1);
        if (low)
            pack_put<DTYPE_BF16>(low, i, n - i, w1);
    }
}

template <enum update_kind KIND, bool LOW> static __global__ void __launch_bounds__(CUDA_BLOCK)
    update_kernel(struct update_constants k, const float *scale, float *w, void *m, void *v, const float *grad, uint16_t *low,
                  int64_t n)
{
    update_all<KIND, LOW, DTYPE_F32, DTYPE_F32>(k, scale, w, m, v, grad, low, n);
}

/* With bf16 moments, or one of them: two bytes less of each, both ways. */
template <enum update_kind KIND, bool LOW, enum dtype M, enum dtype V> static __global__ void __launch_bounds__(CUDA_BLOCK)
    update_moments_kernel(struct update_constants k, const float *scale, float *w, void *m, void *v, const float *grad,
                          uint16_t *low, int64_t n)
{
    update_all<KIND, LOW, M, V>(k, scale, w, m, v, grad, low, n);
}

/* Which of them; only AdamW has a second moment. */
template <enum update_kind KIND, bool LOW> static auto update_kernel_of(enum dtype m, enum dtype v)
{
    if constexpr (KIND == UPDATE_ADAMW)
        if (v == DTYPE_BF16)
            return m == DTYPE_BF16 ? update_moments_kernel<KIND, LOW, DTYPE_BF16, DTYPE_BF16>
                                   : update_moments_kernel<KIND, LOW, DTYPE_F32, DTYPE_BF16>;
    return m == DTYPE_BF16 ? update_moments_kernel<KIND, LOW, DTYPE_BF16, DTYPE_F32> : update_kernel<KIND, LOW>;
}

/* The eight elements of a lane: codes from the address `code` on, of which `left` are there; others are 0. */
static __device__ __forceinline__ pack codes_get(const float *level, bool is_signed, const uint8_t *code, int64_t left,
                                                 float scale)
{
    pack r;

#pragma unroll
    for (int j = 0; j < PACK; j++)
        r.v[j] = j < left ? eight_bit_number(level, is_signed, code[j]) * scale : 0.0f;
    return r;
}

/* Back, by a warp that has a block: *scale is new. */
static __device__ __forceinline__ void codes_put(const float *level, bool is_signed, uint8_t *code, int64_t left, float *scale,
                                                 const pack &x)
{
    float most = 0;

#pragma unroll
    for (int j = 0; j < PACK; j++)
        most = j < left ? fmaxf(most, fabsf(x.v[j])) : most;
    most = eight_bit_scale(warp_max(most));
    if (threadIdx.x % 32 == 0)
        *scale = most;
#pragma unroll
    for (int j = 0; j < PACK; j++) {
        float y = fabsf(x.v[j]) / most;
        int q = eight_bit_nearest(level, eight_bit_last(is_signed), y < 1 ? y : 1.0f);

        if (j < left)
            code[j] = eight_bit_code(is_signed, q, x.v[j] < 0);
    }
}

/* With moments of eight bits, or one of them, the other being fp32 and its scale NULL: a warp a block. */
template <enum update_kind KIND> static __global__ void __launch_bounds__(CUDA_BLOCK)
    update_blocks_kernel(struct update_constants k, const float *grad_scale, float *w, void *m, float *m_scale, void *v,
                         float *v_scale, const float *grad, uint16_t *low, int64_t n)
{
    __shared__ float level[2][EIGHT_BIT_LEVELS]; /* of v, of m */
    int64_t step = (int64_t)gridDim.x * CUDA_WARPS;
    float s = grad_scale ? *grad_scale : 1.0f;

    for (int i = (int)threadIdx.x; i < 2 * EIGHT_BIT_LEVELS; i += CUDA_BLOCK)
        if (i % EIGHT_BIT_LEVELS <= eight_bit_last(i / EIGHT_BIT_LEVELS) + 1)
            level[i / EIGHT_BIT_LEVELS][i % EIGHT_BIT_LEVELS] = eight_bit_level(i / EIGHT_BIT_LEVELS, i % EIGHT_BIT_LEVELS);
    __syncthreads();
    for (int64_t b = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; b < eight_bit_blocks(n); b += step) {
        int64_t i = b * EIGHT_BIT_BLOCK + threadIdx.x % 32 * PACK, left = n - i;
        pack g = pack_get<DTYPE_F32>(grad, i, left), w1 = pack_get<DTYPE_F32>(w, i, left), m1, v1 = pack();

        m1 = m_scale ? codes_get(level[1], true, (const uint8_t *)m + i, left, m_scale[b]) : pack_get<DTYPE_F32>(m, i, left);
        if (KIND == UPDATE_ADAMW)
            v1 = v_scale ? codes_get(level[0], false, (const uint8_t *)v + i, left, v_scale[b]) : pack_get<DTYPE_F32>(v, i, left);
        __syncwarp(); /* all have read the scales */
#pragma unroll
        for (int j = 0; j < PACK; j++)
            w1.v[j] = updated<KIND>(k, w1.v[j], m1.v[j], v1.v[j], g.v[j] * s);
        if (m_scale)
            codes_put(level[1], true, (uint8_t *)m + i, left, m_scale + b, m1);
        else
            pack_put<DTYPE_F32>(m, i, left, m1);
        if (KIND == UPDATE_ADAMW && v_scale)
            codes_put(level[0], false, (uint8_t *)v + i, left, v_scale + b, v1);
        else if (KIND == UPDATE_ADAMW)
            pack_put<DTYPE_F32>(v, i, left, v1);
        pack_put<DTYPE_F32>(w, i, left, w1);
        if (low)
            pack_put<DTYPE_BF16>(low, i, left, w1);
    }
}

#define UPDATE_BLOCKS(name, ...)                                                                                          \
    case name:                                                                                                            \
        LAUNCH(update_blocks_kernel<name>, dim3(cuda_blocks(dev, eight_bit_blocks(n), CUDA_WARPS)), CUDA_BLOCK, dev,      \
               update_constants_of(p), p->grad_scale, w, m, p->m_type == DTYPE_8BIT ? p->m_scale : NULL, v,               \
               p->v_type == DTYPE_8BIT ? p->v_scale : NULL, grad, low, n);                                                \
        break;

#define UPDATE_CASE(name, ...)                                                                                            \
    case name: {                                                                                                          \
        auto *kernel = w ? update_kernel_of<name, false>(p->m_type, p->v_type) :                                          \
                           update_kernel_of<name, true>(p->m_type, p->v_type);                                            \
        LAUNCH(kernel, dim3(cuda_blocks(dev, packs_of(n), CUDA_BLOCK)), CUDA_BLOCK, dev, update_constants_of(p),          \
               p->grad_scale, w, m, v, grad, low, n);                                                                     \
        break;                                                                                                            \
    }

extern "C" int update_cuda(struct device *dev, const struct update *p, float *w, void *m, void *v, const float *grad,
                          uint16_t *low, int64_t n, struct err *e)
{
    TRY(check_update(p, w, low, n, e));
    if (n == 0)
        return 0;
    switch (update_is_blocks(p) ? p->kind : UPDATE_KINDS) {
        UPDATES(UPDATE_BLOCKS)
    default: break;
    }
    switch (update_is_blocks(p) ? UPDATE_KINDS : p->kind) {
        UPDATES(UPDATE_CASE)
    default: break;
    }
    return cuda_launched(dev, "update", e);
}
