#include "kernels/lanes.cuh"

/* A block a row; a row of 50,000 logits is read from memory once and, for the gradient, once more from the second
 * cache. */
enum { ROW_MOST = 1024 };

static __device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }

/* A logit as it counts, and the derivative of that. */
template <bool CAP> static __device__ __forceinline__ float capped(const struct xent &p, float x)
{
    return CAP ? xent_capped(p.cap, x) : x;
}
template <bool CAP> static __device__ __forceinline__ float slope(const struct xent &p, float y)
{
    return CAP ? 1.0f - y * y * (1.0f / p.cap / p.cap) : 1.0f;
}

template <enum dtype DT, bool CAP> static __device__ __forceinline__ float row_max(const struct xent &p, int64_t t, float *part)
{
    float m = -infinity();

    for (int64_t i = threadIdx.x * PACK; i < p.v; i += blockDim.x * PACK) {
        pack x = pack_get<DT>(p.logits, t * p.ld + i, p.v - i);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            if (i + j < p.v)
                m = fmaxf(m, x.v[j]);
    }
    return capped<CAP>(p, block_max(m, part));
}

template <enum dtype DT, bool CAP> static __device__ __forceinline__ float row_sum(const struct xent &p, int64_t t, float max,
        float *part)
{
    float s = 0;

    for (int64_t i = threadIdx.x * PACK; i < p.v; i += blockDim.x * PACK) {
        pack x = pack_get<DT>(p.logits, t * p.ld + i, p.v - i);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            s += i + j < p.v ? expf(capped<CAP>(p, x.v[j]) - max) : 0.0f;
    }
    return block_sum(s, part);
}

/* Maximum and sum in one go over the row: a sum so far is scaled when a larger value comes. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ void row_both(const struct xent &p, int64_t t, float *max,
        float *sum,
                                                                         float (*part)[32])
{
    float m = -infinity(), s = 0;

    for (int64_t i = threadIdx.x * PACK; i < p.v; i += blockDim.x * PACK) {
        pack x = pack_get<DT>(p.logits, t * p.ld + i, p.v - i);
        float old = m;
#pragma unroll
        for (int j = 0; j < PACK; j++)
            x.v[j] = capped<CAP>(p, x.v[j]);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            if (i + j < p.v)
                m = fmaxf(m, x.v[j]);
        if (m > old)
            s *= expf(old - m);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            s += i + j < p.v ? expf(x.v[j] - m) : 0.0f;
    }
    *max = block_max(m, part[0]);
    *sum = block_sum(s == 0 ? 0 : s * expf(m - *max), part[1]);
}

/* The target's logit - max if it is among the local columns, else 0.  NaN for a target beyond a whole vocabulary. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ float row_target(const struct xent &p, int64_t t, float max,
        bool whole)
{
    int64_t j = p.target[t] - p.first;

    if (whole && j >= p.v)
        return nanf("");
    return p.target[t] < 0 || j < 0 || j >= p.v ? 0.0f : capped<CAP>(p, one_get<DT>(p.logits, t * p.ld + j)) - max;
}

/* Every thread reads and writes the same elements of the row, so no barrier is needed here. */
template <enum dtype DT, bool CAP> static __device__ __forceinline__ void row_gradient(const struct xent &p, int64_t t, float max,
        float sum)
{
    int64_t target = p.target[t] - p.first;
    float scale = p.target[t] < 0 ? 0.0f : p.scale[t], k = xent_softmax_scale(&p, scale, max, sum);

    for (int64_t i = threadIdx.x * PACK; i < p.ld; i += blockDim.x * PACK) {
        pack x = scale == 0 ? pack() : pack_get<DT>(p.logits, t * p.ld + i, p.ld - i);
#pragma unroll
        for (int j = 0; j < PACK; j++)
        {
            float y = capped<CAP>(p, x.v[j]), g = expf(y - max) * k;
            x.v[j] = scale == 0 || i + j >= p.v ? 0.0f : i + j == target ? (g - scale) * slope<CAP>(p, y) : g * slope<CAP>(p, y);
        }
        pack_put<DT>(p.logits, t * p.ld + i, p.ld - i, x);
    }
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

template <enum dtype DT> static __global__ void __launch_bounds__(ROW_MOST) whole_kernel(struct xent p, float *loss)
{
    __shared__ float part[2][32];

    whole_row<DT, false>(p, loss, part);
}

template <enum dtype DT> static __global__ void __launch_bounds__(ROW_MOST) capped_kernel(struct xent p, float *loss)
{
    __shared__ float part[2][32];

    whole_row<DT, true>(p, loss, part);
}

template <enum dtype DT, bool CAP> static __global__ void __launch_bounds__(ROW_MOST) max_kernel(struct xent p, float *max)
{
    __shared__ float part[32];
    float m = row_max<DT, CAP>(p, blockIdx.x, part);

    if (threadIdx.x == 0)
        max[blockIdx.x] = m;
}

template <enum dtype DT, bool CAP> static __global__ void __launch_bounds__(ROW_MOST)
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

template <enum dtype DT, bool CAP> static __global__ void __launch_bounds__(ROW_MOST)
    finish_kernel(struct xent p, const float *max, const float *sum, const float *at, float *loss)
{
    int64_t t = blockIdx.x;

    if (threadIdx.x == 0 && loss)
        loss[t] = p.target[t] < 0 ? 0.0f : logf(sum[t]) - at[t];
    if (p.scale)
        row_gradient<DT, CAP>(p, t, max[t], sum[t]);
}

/* ---- the ops ---- */

static unsigned threads_of(const struct xent *p)
{
    int64_t n = (packs_of(p->ld) + 31) / 32 * 32, most = ROW_MOST;

    return (unsigned)(n > most ? most : n < 32 ? 32 : n);
}

extern "C" int xent_cuda(struct device *dev, enum dtype dt, const struct xent *p, float *loss, struct err *e)
{
    TRY(check_xent(dt, p, "xent", e));
    TRY(check_xent_whole(p, e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH(capped_kernel<DT>, dim3((unsigned)p->t), threads_of(p), dev, *p, loss));
    else
        BY_TYPE(dt, LAUNCH(whole_kernel<DT>, dim3((unsigned)p->t), threads_of(p), dev, *p, loss));
    return cuda_launched(dev, "xent", e);
}

extern "C" int xent_max_cuda(struct device *dev, enum dtype dt, const struct xent *p, float *max, struct err *e)
{
    TRY(check_xent(dt, p, "xent_max", e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH((max_kernel<DT, true>), dim3((unsigned)p->t), threads_of(p), dev, *p, max));
    else
        BY_TYPE(dt, LAUNCH((max_kernel<DT, false>), dim3((unsigned)p->t), threads_of(p), dev, *p, max));
    return cuda_launched(dev, "xent_max", e);
}

extern "C" int xent_sum_cuda(struct device *dev, enum dtype dt, const struct xent *p, const float *max, float *sum, float *at,
                             struct err *e)
{
    TRY(check_xent(dt, p, "xent_sum", e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH((sum_kernel<DT, true>), dim3((unsigned)p->t), threads_of(p), dev, *p, max, sum, at));
    else
        BY_TYPE(dt, LAUNCH((sum_kernel<DT, false>), dim3((unsigned)p->t), threads_of(p), dev, *p, max, sum, at));
    return cuda_launched(dev, "xent_sum", e);
}

extern "C" int xent_finish_cuda(struct device *dev, enum dtype dt, const struct xent *p, const float *max, const float *sum,
                                const float *at, float *loss, struct err *e)
{
    TRY(check_xent(dt, p, "xent_finish", e));
    if (p->t == 0)
        return 0;
    if (p->cap > 0)
        BY_TYPE(dt, LAUNCH((finish_kernel<DT, true>), dim3((unsigned)p->t), threads_of(p), dev, *p, max, sum, at, loss));
    else
        BY_TYPE(dt, LAUNCH((finish_kernel<DT, false>), dim3((unsigned)p->t), threads_of(p), dev, *p, max, sum, at, loss));
    return cuda_launched(dev, "xent_finish", e);
}
