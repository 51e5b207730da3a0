#include "kernels/attention_plain.cuh"

/* Attention for every shape and type, and the check of the tensor cores': a warp has one query (backward also: one key) and
 * takes 32 partners at a time, a lane each for the dot products, then all lanes for the weighted sum.  J: how many elements of
 * a head a lane has, every 32nd. */

enum { WARPS = 4, MOST = 256 };

struct shared_warp {
    float x[MOST], y[MOST]; /* the query and dout, or the key and the value */
    float a[32], b[32];     /* what the 32 partners are weighted with */
};

static __device__ __forceinline__ int64_t view_at(const struct attention_view &v, int64_t b, int64_t t, int64_t h, int64_t d)
{
    return b * v.batch + t * v.row + h * d;
}

template <enum dtype DT> static __device__ __forceinline__ float dot(const float *x, const void *p, int64_t at, int64_t d)
{
    float s = 0;

#pragma unroll 1
    for (int64_t c = 0; c < d; c += PACK) {
        pack v = pack_get<DT>(p, at + c, d - c);
#pragma unroll
        for (int j = 0; j < PACK; j++) /* x is 0 behind its end */
            s = fmaf(x[c + j], v.v[j], s);
    }
    return s;
}

/* A row of a head to shared memory, zeros up to a whole pack. */
template <enum dtype DT> static __device__ __forceinline__ void keep_row(float *x, const struct attention_view &v, int64_t at,
                                                                         int64_t d, float scale)
{
    for (int64_t c = threadIdx.x % 32; c < (d + PACK - 1) / PACK * PACK; c += 32)
        x[c] = c < d ? one_get<DT>(v.p, at + c) * scale : 0.0f;
}

/* An element of a gradient: a block's is added. */
template <enum dtype DT> static __device__ __forceinline__ void grad_put(const struct attention &p, void *to, int64_t at, float x)
{
    if (p.block)
        ((float *)to)[at] += x;
    else
        one_put<DT>(to, at, x);
}

/* The factor of one probability. */
static __device__ __forceinline__ float drop_one(const struct drop &d, const struct attention &p, int64_t bh, int64_t key,
                                                 int64_t query)
{
    unsigned heads = (unsigned)p.heads;
    float f[4];

    if (d.keep == 0)
        return 1;
    query += p.first_query;
    drop_four(d, ((unsigned)bh / heads * p.all_heads + (unsigned)bh % heads) * p.all_t + key, query / 4, f);
    return query % 4 == 0 ? f[0] : query % 4 == 1 ? f[1] : query % 4 == 2 ? f[2] : f[3];
}

/* Kernels ask for a block at a time at least: what the compiler would have by itself spills registers. */
template <enum dtype DT, int J> static __global__ void __launch_bounds__(32 * WARPS, 1) fwd_kernel(struct attention p,
        struct drop drop)
{
    __shared__ struct shared_warp shared[WARPS];
    struct shared_warp *w = &shared[threadIdx.x / 32];
    unsigned heads = (unsigned)p.heads, group = heads / (unsigned)p.kv_heads;
    int64_t bh = blockIdx.x, i = (int64_t)blockIdx.y * WARPS + threadIdx.x / 32, d = p.d;
    int64_t b = blockIdx.x / heads, h = blockIdx.x % heads, kvh = blockIdx.x % heads / group, last = attention_last_key(&p, i);
    int lane = (int)threadIdx.x % 32;
    float m = __uint_as_float(0xff800000u), l = 0, most_logit = 0, o[J] = {};

    if (i >= p.t)
        return;
    drop_begin(&drop);
    if (p.block == ATTENTION_FURTHER) { /* the state of the softmax after the blocks before */
        m = p.lse[bh * p.t + i];
        l = 1;
#pragma unroll
        for (int j = 0; j < J; j++)
            o[j] = lane + 32 * j < d ? ((const float *)p.o.p)[view_at(p.o, b, i, h, d) + lane + 32 * j] : 0.0f;
    } else if (attention_sinks(&p)) {
        m = p.sink ? one_get<DT>(p.sink, h) : 0.0f;
        l = 1;
    }
    keep_row<DT>(w->x, p.q, view_at(p.q, b, i, h, d), d, p.scale);
    __syncwarp();
    for (int64_t j0 = attention_first_key(&p, b, i); j0 <= last; j0 += 32) {
        int64_t key = j0 + lane;
        int n = last - j0 < 31 ? (int)(last - j0) + 1 : 32;
        float s = __uint_as_float(0xff800000u);
        if (lane < n)
            s = attention_logit(&p, dot<DT>(w->x, p.k.p, view_at(p.k, b, key, kvh, d), d));
        most_logit = fmaxf(most_logit, s);
        float most = fmaxf(m, warp_max(s)), alpha = expf(m - most), pr = lane < n ? expf(s - most) : 0.0f;
        m = most;
        l = fmaf(l, alpha, warp_sum(pr));
        w->a[lane] = lane < n ? pr * drop_one(drop, p, bh, key, i) : 0.0f;
        __syncwarp();
#pragma unroll
        for (int j = 0; j < J; j++)
            o[j] *= alpha;
#pragma unroll 1
        for (int k = 0; k < n; k++) {
            int64_t at = view_at(p.v, b, j0 + k, kvh, d);
#pragma unroll
            for (int j = 0; j < J; j++)
                if (lane + 32 * j < d)
                    o[j] = fmaf(w->a[k], one_get<DT>(p.v.p, at + lane + 32 * j), o[j]);
        }
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < J; j++)
        if (lane + 32 * j < d) {
            int64_t at = view_at(p.o, b, i, h, d) + lane + 32 * j;
            if (p.block)
                ((float *)p.o.p)[at] = o[j] * (1.0f / l);
            else
                one_put<DT>(p.o.p, at, o[j] * (1.0f / l));
        }
    if (p.lse && lane == 0)
        p.lse[bh * p.t + i] = m + logf(l);
    if (p.most)
        attention_raise(p, h, most_logit);
}

/* ---- backward ---- */

/* delta = the sum of dout * o, which is also that of probability * its gradient; (B, H, t). */
template <enum dtype DT> static __global__ void __launch_bounds__(32 * WARPS, 1)
    delta_kernel(struct attention p, struct attention_view dout, float *delta)
{
    unsigned heads = (unsigned)p.heads;
    int64_t i = (int64_t)blockIdx.y * WARPS + threadIdx.x / 32, item = blockIdx.x * p.t + i;
    int64_t b = blockIdx.x / heads, h = blockIdx.x % heads;
    float s = 0;

    if (i >= p.t)
        return;
    for (int64_t c = threadIdx.x % 32 * PACK; c < p.d; c += 32 * PACK) {
        pack x = pack_get<DT>(p.o.p, view_at(p.o, b, i, h, p.d) + c, p.d - c);
        pack y = pack_get<DT>(dout.p, view_at(dout, b, i, h, p.d) + c, p.d - c);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            s = fmaf(x.v[j], y.v[j], s);
    }
    s = warp_sum(s);
    if (threadIdx.x % 32 == 0)
        delta[item] = s;
}

/* A block a head. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) sink_kernel(struct attention p, const float *delta)
{
    __shared__ float part[32];
    int64_t h = blockIdx.x;
    float sink = p.sink ? one_get<DT>(p.sink, h) : 0.0f, sum = 0;

    for (int64_t b = 0; b < p.b; b++)
        for (int64_t i = threadIdx.x; i < p.t; i += blockDim.x)
            sum = fmaf(expf(sink - p.lse[(b * p.heads + h) * p.t + i]), delta[(b * p.heads + h) * p.t + i], sum);
    sum = block_sum(sum, part);
    if (threadIdx.x == 0)
        p.dsink[h] -= sum;
}

template <enum dtype DT, int J> static __global__ void __launch_bounds__(32 * WARPS, 1)
    dq_kernel(struct attention p, struct attention_view dout, struct attention_view dq, const float *delta, struct drop drop)
{
    __shared__ struct shared_warp shared[WARPS];
    struct shared_warp *w = &shared[threadIdx.x / 32];
    unsigned heads = (unsigned)p.heads, group = heads / (unsigned)p.kv_heads;
    int64_t bh = blockIdx.x, i = (int64_t)blockIdx.y * WARPS + threadIdx.x / 32, item = bh * p.t + i, d = p.d;
    int64_t b = blockIdx.x / heads, h = blockIdx.x % heads, kvh = blockIdx.x % heads / group, last = attention_last_key(&p, i);
    int lane = (int)threadIdx.x % 32;
    float g[J] = {};

    if (i >= p.t)
        return;
    drop_begin(&drop);
    keep_row<DT>(w->x, p.q, view_at(p.q, b, i, h, d), d, p.scale);
    keep_row<DT>(w->y, dout, view_at(dout, b, i, h, d), d, 1);
    __syncwarp();
    for (int64_t j0 = attention_first_key(&p, b, i); j0 <= last; j0 += 32) {
        int64_t key = j0 + lane;
        int n = last - j0 < 31 ? (int)(last - j0) + 1 : 32;
        if (lane < n) {
            float s = attention_logit(&p, dot<DT>(w->x, p.k.p, view_at(p.k, b, key, kvh, d), d));
            float dp = dot<DT>(w->y, p.v.p, view_at(p.v, b, key, kvh, d), d) * drop_one(drop, p, bh, key, i);
            w->a[lane] = expf(s - p.lse[item]) * (dp - delta[item]) * attention_logit_slope(&p, s);
        }
        __syncwarp();
#pragma unroll 1
        for (int k = 0; k < n; k++) {
            int64_t at = view_at(p.k, b, j0 + k, kvh, d);
#pragma unroll
            for (int j = 0; j < J; j++)
                if (lane + 32 * j < d)
                    g[j] = fmaf(w->a[k], one_get<DT>(p.k.p, at + lane + 32 * j), g[j]);
        }
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < J; j++)
        if (lane + 32 * j < d)
            grad_put<DT>(p, dq.p, view_at(dq, b, i, h, d) + lane + 32 * j, g[j] * p.scale);
}

/* The query heads of the group in order, and the queries of each in order. */
template <enum dtype DT, int J> static __global__ void __launch_bounds__(32 * WARPS, 1)
    dkv_kernel(struct attention p, struct attention_view dout, struct attention_view dk, struct attention_view dv,
               const float *delta, struct drop drop)
{
    __shared__ struct shared_warp shared[WARPS];
    struct shared_warp *w = &shared[threadIdx.x / 32];
    unsigned kv_heads = (unsigned)p.kv_heads, group = (unsigned)p.heads / kv_heads;
    int64_t key = (int64_t)blockIdx.y * WARPS + threadIdx.x / 32, d = p.d;
    int64_t b = blockIdx.x / kv_heads, kvh = blockIdx.x % kv_heads, first = attention_first_query(&p, key);
    int64_t end = attention_last_query(&p, key) + 1;
    int lane = (int)threadIdx.x % 32;
    float gk[J] = {}, gv[J] = {};

    if (key >= p.t_kv)
        return;
    drop_begin(&drop);
    keep_row<DT>(w->x, p.k, view_at(p.k, b, key, kvh, d), d, p.scale);
    keep_row<DT>(w->y, p.v, view_at(p.v, b, key, kvh, d), d, 1);
    __syncwarp();
    for (int64_t h = kvh * group; h < (kvh + 1) * group; h++)
        for (int64_t i0 = first; i0 < end && attention_first_key(&p, b, i0) <= key; i0 += 32) {
            int64_t i = i0 + lane, bh = b * p.heads + h;
            int n = end - i0 < 32 ? (int)(end - i0) : 32;
            if (p.start)
                n = __popc(__ballot_sync(~0u, lane < n && attention_first_key(&p, b, i) <= key));
            if (lane < n) {
                float f = drop_one(drop, p, bh, key, i);
                float s = attention_logit(&p, dot<DT>(w->x, p.q.p, view_at(p.q, b, i, h, d), d));
                float dp = dot<DT>(w->y, dout.p, view_at(dout, b, i, h, d), d) * f, pr = expf(s - p.lse[bh * p.t + i]);
                w->a[lane] = pr * f;
                w->b[lane] = pr * (dp - delta[bh * p.t + i]) * attention_logit_slope(&p, s) * p.scale;
            }
            __syncwarp();
#pragma unroll 1
            for (int k = 0; k < n; k++) {
                int64_t at = view_at(p.q, b, i0 + k, h, d), dat = view_at(dout, b, i0 + k, h, d);
#pragma unroll
                for (int j = 0; j < J; j++)
                    if (lane + 32 * j < d) {
                        gv[j] = fmaf(w->a[k], one_get<DT>(dout.p, dat + lane + 32 * j), gv[j]);
                        gk[j] = fmaf(w->b[k], one_get<DT>(p.q.p, at + lane + 32 * j), gk[j]);
                    }
            }
            __syncwarp();
        }
#pragma unroll
    for (int j = 0; j < J; j++)
        if (lane + 32 * j < d) {
            grad_put<DT>(p, dk.p, view_at(dk, b, key, kvh, d) + lane + 32 * j, gk[j]);
            grad_put<DT>(p, dv.p, view_at(dv, b, key, kvh, d) + lane + 32 * j, gv[j]);
        }
}

/* KERNEL for dt and d. */
#define BY_HEAD(dt, d, KERNEL, ...)                                                                        \
    BY_TYPE(dt, {                                                                                          \
        auto *kernel = (d) <= 32 ? KERNEL<DT, 1> : (d) <= 64 ? KERNEL<DT, 2> : (d) <= 128 ? KERNEL<DT, 4> : KERNEL<DT, 8>; \
        LAUNCH(kernel, __VA_ARGS__);                                                                       \
    })

/* A warp for each of rows of each head.  No division of 64 bits in a kernel: it is a call, and costs registers. */
static dim3 warps_for(int64_t heads, int64_t rows) { return dim3((unsigned)heads, (unsigned)((rows + WARPS - 1) / WARPS)); }

int attention_plain_fwd(struct device *dev, enum dtype dt, const struct attention *p, struct err *e)
{
    if (p->t_kv > 65535 * WARPS)
        return err_set(e, ERR_UNSUPPORTED, "attention_fwd: %lld keys", (long long)p->t_kv);
    BY_HEAD(dt, p->d, fwd_kernel, warps_for(p->b * p->heads, p->t), 32 * WARPS, dev, attention_filled(p), attention_drop(p));
    return cuda_launched(dev, "attention_fwd", e);
}

int attention_delta(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout, float *delta,
                    struct err *e)
{
    BY_TYPE(dt, LAUNCH(delta_kernel<DT>, warps_for(p->b * p->heads, p->t), 32 * WARPS, dev, *p, dout, delta));
    return cuda_launched(dev, "attention_bwd", e);
}

int attention_sink(struct device *dev, enum dtype dt, const struct attention *p, const float *delta, struct err *e)
{
    if (!p->dsink)
        return 0;
    BY_TYPE(dt, LAUNCH(sink_kernel<DT>, dim3((unsigned)p->heads), CUDA_BLOCK, dev, *p, delta));
    return cuda_launched(dev, "attention_bwd", e);
}

int attention_plain_bwd(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                        struct attention_view dq, struct attention_view dk, struct attention_view dv, struct err *e)
{
    struct drop drop = attention_drop(p);
    void *s;

    if (p->t_kv > 65535 * WARPS)
        return err_set(e, ERR_UNSUPPORTED, "attention_bwd: %lld keys", (long long)p->t_kv);
    TRY(cuda_scratch(dev, &s, (size_t)(p->b * p->heads * p->t) * sizeof(float), e));
    float *delta = (float *)s;
    TRY(attention_delta(dev, dt, p, dout, delta, e));
    TRY(attention_sink(dev, dt, p, delta, e));
    BY_HEAD(dt, p->d, dq_kernel, warps_for(p->b * p->heads, p->t), 32 * WARPS, dev, attention_filled(p), dout, dq, delta, drop);
    BY_HEAD(dt, p->d, dkv_kernel, warps_for(p->b * p->kv_heads, p->t_kv), 32 * WARPS, dev, attention_filled(p), dout, dk, dv,
            delta, drop);
    return cuda_launched(dev, "attention_bwd", e);
}
