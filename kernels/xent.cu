#include "kernels/lanes.cuh"

/* A block a row; a row of 50,000 logits is read from memory once and, for the gradient, once more from the second
 * cache. */
/* Blocks of a multiprocessor, of half its threads at most; more registers for what would spill. */
static constexpr int blocks_of(enum dtype dt, bool cap) { return cap && dt == DTYPE_F32 ? 1 : 2; }
#define ROW_BOUNDS(cap) __launch_bounds__(CUDA_THREADS / 2, blocks_of(DT, cap))

static __device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }

/* A logit as it counts, in bf16 by the GPU's own approximations, within 2^-21 of the cap; and the derivative of that. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ float capped(const struct xent &p, float x)
{
    if (!CAP)
        return x;
    if (DT != DTYPE_BF16)
        return xent_capped(p.cap, x);
    return fmaf(-2 * p.cap, reciprocal_fast(1.0f + exp2_fast(2 * LOG2E / p.cap * x)), p.cap);
}
template <bool CAP> static __device__ __forceinline__ float slope(const struct xent &p, float y)
{
    return CAP ? 1.0f - y * y * (1.0f / p.cap / p.cap) : 1.0f;
}

/* A row as the threads of its block take it: packs of which all is there and lies as it should, then what is left one by one. */
struct row {
    char *at;
    int64_t whole; /* elements in packs */
};
template <enum dtype DT> static __device__ __forceinline__ struct row row_of(const struct xent &p, int64_t t)
{
    struct row r = {(char *)p.logits + t * p.ld * dtype_bytes<DT>(), 0};

    if ((uintptr_t)r.at % 16 == 0)
        r.whole = p.v / PACK * PACK;
    return r;
}
/* How far the pack or element of a thread lies from the next one of its own. */
static __device__ __forceinline__ int64_t step_of(int64_t each) { return (int64_t)blockDim.x * each; }

/* e^x as 2^(x log2 e - shift), or in fp32 as e^(x - shift), which is no less exact for numbers of the size of logits: shift is of
 * the largest. */
template <enum dtype DT> static __device__ __forceinline__ float shift_of(float max)
{
    return DT == DTYPE_BF16 ? max * LOG2E : max;
}
template <enum dtype DT> static __device__ __forceinline__ float power(float x, float shift)
{
    return DT == DTYPE_BF16 ? exp2_fast(fmaf(x, LOG2E, -shift)) : expf(x - shift);
}
/* What a power becomes when another shift takes the place of the one it was made with. */
template <enum dtype DT> static __device__ __forceinline__ float shifted(float from, float to)
{
    return DT == DTYPE_BF16 ? exp2_fast(from - to) : expf(from - to);
}
/* What a power is multiplied with to be e^(x - max): the shift is rounded. */
template <enum dtype DT> static __device__ __forceinline__ float unrounded(float max, float shift)
{
    return DT == DTYPE_BF16 ? fmaf(-LN2, fmaf(max, LOG2E, -shift), 1.0f) : 1.0f;
}

template <enum dtype DT, bool CAP> static __device__ __forceinline__ float row_max(const struct xent &p, int64_t t, float *part)
{
    struct row r = row_of<DT>(p, t);
    float m = -infinity();

    for (int64_t i = threadIdx.x * PACK; i < r.whole; i += step_of(PACK)) {
        pack x = pack_whole<DT>(r.at + i * dtype_bytes<DT>());
#pragma unroll
        for (int j = 0; j < PACK; j++)
            m = fmaxf(m, x.v[j]);
    }
#pragma unroll 1
    for (int64_t i = r.whole + threadIdx.x; i < p.v; i += step_of(1))
        m = fmaxf(m, one_get<DT>(r.at, i));
    return capped<DT, CAP>(p, block_max(m, part));
}

template <enum dtype DT, bool CAP> static __device__ __forceinline__ float row_sum(const struct xent &p, int64_t t, float max,
        float *part)
{
    struct row r = row_of<DT>(p, t);
    float s = 0, shift = shift_of<DT>(max);

    for (int64_t i = threadIdx.x * PACK; i < r.whole; i += step_of(PACK)) {
        pack x = pack_whole<DT>(r.at + i * dtype_bytes<DT>());
#pragma unroll
        for (int j = 0; j < PACK; j++)
            s += power<DT>(capped<DT, CAP>(p, x.v[j]), shift);
    }
#pragma unroll 1
    for (int64_t i = r.whole + threadIdx.x; i < p.v; i += step_of(1))
        s += power<DT>(capped<DT, CAP>(p, one_get<DT>(r.at, i)), shift);
    s = block_sum(s, part);
    return s == 0 ? 0 : s * unrounded<DT>(max, shift);
}

/* Maximum and sum in one go over the row: a sum so far is scaled when a larger value comes. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ void row_both(const struct xent &p, int64_t t, float *max,
        float *sum, float (*part)[32])
{
    struct row r = row_of<DT>(p, t);
    float m = -infinity(), shift = m, s = 0;

#pragma unroll 1
    for (int64_t i = threadIdx.x * PACK; i < r.whole; i += step_of(PACK)) {
        pack x = pack_whole<DT>(r.at + i * dtype_bytes<DT>());
        float old = m;
#pragma unroll
        for (int j = 0; j < PACK; j++)
            m = fmaxf(m, x.v[j] = capped<DT, CAP>(p, x.v[j]));
        if (m > old) {
            float from = shift;
            shift = shift_of<DT>(m);
            s *= shifted<DT>(from, shift);
        }
#pragma unroll
        for (int j = 0; j < PACK; j++)
            s += power<DT>(x.v[j], shift);
    }
#pragma unroll 1
    for (int64_t i = r.whole + threadIdx.x; i < p.v; i += step_of(1)) {
        float x = capped<DT, CAP>(p, one_get<DT>(r.at, i)), from = shift;
        m = fmaxf(m, x);
        shift = shift_of<DT>(m);
        s = s * shifted<DT>(from, shift) + power<DT>(x, shift);
    }
    *max = block_max(m, part[0]);
    m = shift_of<DT>(*max);
    s = block_sum(s == 0 ? 0 : s * shifted<DT>(shift, m), part[1]);
    *sum = s * unrounded<DT>(*max, m);
}

/* The target's logit - max if it is among the local columns, else 0.  NaN for a target beyond a whole vocabulary. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ float row_target(const struct xent &p, int64_t t, float max,
        bool whole)
{
    int64_t j = p.target[t] - p.first;

    if (whole && j >= p.v)
        return nanf("");
    return p.target[t] < 0 || j < 0 || j >= p.v ? 0.0f : capped<DT, CAP>(p, one_get<DT>(p.logits, t * p.ld + j)) - max;
}

/* Of one logit x: its softmax is power times k. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ float gradient(const struct xent &p, float x, float shift,
        float k, float less)
{
    float y = capped<DT, CAP>(p, x);

    return (power<DT>(y, shift) * k - less) * slope<CAP>(p, y);
}

/* Zeros in columns `from` to ld. */
template <enum dtype DT> static __device__ __forceinline__ void row_zeros(const struct xent &p, char *at, int64_t from)
{
#pragma unroll 1
    for (int64_t i = from + threadIdx.x; i < p.ld; i += step_of(1))
        one_put<DT>(at, i, 0);
}

/* Every thread reads and writes the same elements of the row, so no barrier is needed here; the target's is written once more by
 * the thread that has it. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ void row_gradient(const struct xent &p, int64_t t, float max,
        float sum)
{
    struct row r = row_of<DT>(p, t);
    int64_t target = p.target[t] - p.first, owner;
    float scale = p.target[t] < 0 ? 0.0f : p.scale[t], shift = shift_of<DT>(max), at = 0;
    float k = xent_softmax_scale(&p, scale, max, sum) * unrounded<DT>(max, shift);

    if (scale == 0) {
        row_zeros<DT>(p, r.at, 0);
        return;
    }
    owner = target < r.whole ? target / PACK % blockDim.x : (target - r.whole) % blockDim.x;
    if (target < 0 || target >= p.v)
        owner = -1;
    if (owner == threadIdx.x)
        at = one_get<DT>(r.at, target);
#pragma unroll 1
    for (int64_t i = threadIdx.x * PACK; i < r.whole; i += step_of(PACK)) {
        pack x = pack_whole<DT>(r.at + i * dtype_bytes<DT>());
#pragma unroll
        for (int j = 0; j < PACK; j++)
            x.v[j] = gradient<DT, CAP>(p, x.v[j], shift, k, 0);
        pack_put_whole<DT>(r.at + i * dtype_bytes<DT>(), x);
    }
#pragma unroll 1
    for (int64_t i = r.whole + threadIdx.x; i < p.v; i += step_of(1))
        one_put<DT>(r.at, i, gradient<DT, CAP>(p, one_get<DT>(r.at, i), shift, k, 0));
    if (owner == threadIdx.x)
        one_put<DT>(r.at, target, gradient<DT, CAP>(p, at, shift, k, scale));
    row_zeros<DT>(p, r.at, p.v);
}

template <enum dtype DT, bool CAP> static __device__ __forceinline__ void whole_row(const struct xent &p, float *loss,
                                                                                   float (*part)[32])
{
    int64_t t = blockIdx.x;
    float max, sum, at;

    row_both<DT, CAP>(p, t, &max, &sum, part);
    at = threadIdx.x == 0 ? row_target<DT, CAP>(p, t, max, true) : 0;
    if (threadIdx.x == 0)
        loss[t] = p.target[t] < 0 ? 0.0f : logf(sum) - at;
    __syncthreads(); /* the target's logit was read */
    if (p.scale)
        row_gradient<DT, CAP>(p, t, max, sum);
}

template <enum dtype DT> static __global__ void ROW_BOUNDS(false) whole_kernel(struct xent p, float *loss)
{
    __shared__ float part[2][32];

    whole_row<DT, false>(p, loss, part);
}

template <enum dtype DT> static __global__ void ROW_BOUNDS(true) capped_kernel(struct xent p, float *loss)
{
    __shared__ float part[2][32];

    whole_row<DT, true>(p, loss, part);
}

template <enum dtype DT, bool CAP> static __global__ void ROW_BOUNDS(false) max_kernel(struct xent p, float *max)
{
    __shared__ float part[32];
    float m = row_max<DT, CAP>(p, blockIdx.x, part);

    if (threadIdx.x == 0)
        max[blockIdx.x] = m;
}

template <enum dtype DT, bool CAP> static __global__ void ROW_BOUNDS(false)
    sum_kernel(struct xent p, const float *max, float *sum, float *at)
{
    __shared__ float part[32];
    int64_t t = blockIdx.x;
    float s = row_sum<DT, CAP>(p, t, max[t], part);

    if (threadIdx.x == 0) {
        sum[t] = s;
        at[t] = row_target<DT, CAP>(p, t, max[t], false);
    }
}

template <enum dtype DT, bool CAP> static __global__ void ROW_BOUNDS(CAP)
    finish_kernel(struct xent p, const float *max, const float *sum, const float *at, float *loss)
{
    int64_t t = blockIdx.x;

    if (threadIdx.x == 0 && loss)
        loss[t] = p.target[t] < 0 ? 0.0f : logf(sum[t]) - at[t];
    if (p.scale)
        row_gradient<DT, CAP>(p, t, max[t], sum[t]);
}

/* ---- the ops ---- */

static unsigned threads_of(const struct device *dev, const struct xent *p)
{
    int64_t n = (packs_of(p->ld) + 31) / 32 * 32, most = cuda_threads(dev) / 2;

    return (unsigned)(n > most ? most : n < 32 ? 32 : n);
}

extern "C" int xent_cuda(struct device *dev, enum dtype dt, const struct xent *p, float *loss, struct err *e)
{
    TRY(check_xent(dt, p, "xent", e));
    TRY(check_xent_whole(p, e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH(capped_kernel<DT>, dim3((unsigned)p->t), threads_of(dev, p), dev, *p, loss));
    else
        BY_TYPE(dt, LAUNCH(whole_kernel<DT>, dim3((unsigned)p->t), threads_of(dev, p), dev, *p, loss));
    return cuda_launched(dev, "xent", e);
}

extern "C" int xent_max_cuda(struct device *dev, enum dtype dt, const struct xent *p, float *max, struct err *e)
{
    TRY(check_xent(dt, p, "xent_max", e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH((max_kernel<DT, true>), dim3((unsigned)p->t), threads_of(dev, p), dev, *p, max));
    else
        BY_TYPE(dt, LAUNCH((max_kernel<DT, false>), dim3((unsigned)p->t), threads_of(dev, p), dev, *p, max));
    return cuda_launched(dev, "xent_max", e);
}

extern "C" int xent_sum_cuda(struct device *dev, enum dtype dt, const struct xent *p, const float *max, float *sum, float *at,
                             struct err *e)
{
    TRY(check_xent(dt, p, "xent_sum", e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH((sum_kernel<DT, true>), dim3((unsigned)p->t), threads_of(dev, p), dev, *p, max, sum, at));
    else
        BY_TYPE(dt, LAUNCH((sum_kernel<DT, false>), dim3((unsigned)p->t), threads_of(dev, p), dev, *p, max, sum, at));
    return cuda_launched(dev, "xent_sum", e);
}

extern "C" int xent_finish_cuda(struct device *dev, enum dtype dt, const struct xent *p, const float *max, const float *sum,
                                const float *at, float *loss, struct err *e)
{
    TRY(check_xent(dt, p, "xent_finish", e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH((finish_kernel<DT, true>), dim3((unsigned)p->t), threads_of(dev, p), dev, *p, max, sum, at, loss));
    else
        BY_TYPE(dt, LAUNCH((finish_kernel<DT, false>), dim3((unsigned)p->t), threads_of(dev, p), dev, *p, max, sum, at, loss));
    return cuda_launched(dev, "xent_finish", e);
}
