#include "kernels/attention_mma.cuh"

#include "kernels/attention_plain.cuh"
#include "kernels/mma.cuh"

/* Tiled attention with an online softmax on the tensor cores (arXiv:2205.14135, arXiv:2307.08691).  A block of four warps has
 * 64 queries (dk and dv: 64 keys) of a head, 16 a warp, and goes over the others in tiles through shared memory, of which there
 * are two stages: one is multiplied while the next one's rows are on their way.  A barrier a tile does for both, for behind it
 * a stage has come and the other has been read.  Backward is two kernels, one over queries for dq and one over keys for dk and
 * dv: 7 products where one kernel with atomics would do with 5, but every sum has its order, so the bits are the same every
 * time. */

enum { WARPS = 4, OWN = 16 * WARPS, FEW = 16, STAGES = 2 };

/* Sends rows row0 .. row0 + ROWS - 1 of a head into a tile of rows of S elements; zeros from `rows` on. */
template <int D, int S, int ROWS> static __device__ __forceinline__ void send(uint16_t *tile, const struct attention_view &v,
                                                                              int64_t b, int64_t h, int64_t row0, int64_t rows)
{
    const uint16_t *from = (const uint16_t *)v.p + b * v.batch + row0 * v.row + h * D;

    for (int x = (int)threadIdx.x; x < ROWS * (D / 8); x += 32 * WARPS) {
        int r = x / (D / 8), c = x % (D / 8) * 8;
        copy_async<16>(tile + r * S + c, from + r * v.row + c, row0 + r < rows);
    }
}

/* 64 rows through `tile`, which is free again behind it: the 16 of them that the warp will multiply by. */
template <int D, int S> static __device__ __forceinline__ void take_rows(uint32_t (*a)[4], uint16_t *tile,
                                                                          const struct attention_view &v, int64_t b, int64_t h,
                                                                          int64_t row0, int64_t rows)
{
    send<D, S, OWN>(tile, v, b, h, row0, rows);
    copy_wait();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < D / 16; d++)
        mma_a<S>(a[d], tile, (int)threadIdx.x / 32 * 16, d * 16);
    __syncthreads();
}

/* The warp's 16 rows of a tile of sums to memory, times scale and a factor for rows g and g + 8: rounded, or as they are; added
 * to what is there. */
enum put { PUT_ROUNDED, PUT_WIDE, PUT_ADDED };
template <int D> static __device__ __forceinline__ void store(const struct attention_view &v, enum put how, int64_t b, int64_t h,
                                                              int64_t row, int64_t rows, float (*c)[4], float low, float high)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t r = row + half * 8, at = b * v.batch + r * v.row + h * D + mma_i() * 2;
        float f = half ? high : low;
        if (r < rows)
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                float x = c[n][half * 2] * f, y = c[n][half * 2 + 1] * f;
                if (how == PUT_ROUNDED) {
                    *(uint32_t *)((uint16_t *)v.p + at + n * 8) = bf16_pair(x, y);
                } else {
                    float *to = (float *)v.p + at + n * 8;
                    to[0] = how == PUT_ADDED ? to[0] + x : x;
                    to[1] = how == PUT_ADDED ? to[1] + y : y;
                }
            }
    }
}

/* MASKED: the kernel knows of masks, which takes registers (attention_masked).
 * The first key that query i of sequence b sees, which there may be none of; behind the last that queries before i see. */
template <bool MASKED> static __device__ __forceinline__ int first_of(const struct attention &p, int64_t b, int64_t i)
{
    return i < p.t ? (int)(MASKED ? attention_first_key(&p, b, i) : attention_document(&p, b, i)) : 0;
}
static __device__ __forceinline__ int64_t end_of(const struct attention &p, int64_t i)
{
    return i + attention_reach(&p) < p.t_kv ? i + attention_reach(&p) : p.t_kv;
}

/* n from first on: the keys that a query sees, or the queries that see a key. */
struct window {
    int first;
    unsigned n;
};
static __device__ __forceinline__ struct window window_of(int first, int end)
{
    return {first, first < end ? (unsigned)(end - first) : 0u};
}
static __device__ __forceinline__ bool inside(const struct window &w, int64_t at)
{
    return (unsigned)((int)at - w.first) < w.n;
}
template <bool MASKED> static __device__ __forceinline__ struct window keys_of(const struct attention &p, int64_t b, int64_t i)
{
    int64_t reach = attention_reach(&p);

    return window_of(first_of<MASKED>(p, b, i), (int)(i + reach < p.t_kv ? i + reach + 1 : p.t_kv));
}
static __device__ __forceinline__ struct window queries_of(const struct attention &p, int64_t key)
{
    return window_of((int)attention_first_query(&p, key), (int)attention_last_query(&p, key) + 1);
}

/* Sends a tile of keys and one of values, unless they begin behind the last that is seen. */
template <int D, int S, int N> static __device__ __forceinline__ void send_pair(uint16_t *tiles, const struct attention_view &k,
                                                                                const struct attention_view &v, int64_t b,
                                                                                int64_t h, int64_t j0, int64_t end, int64_t rows)
{
    if (j0 < end) {
        send<D, S, N>(tiles, k, b, h, j0, rows);
        send<D, S, N>(tiles + N * S, v, b, h, j0, rows);
    }
}

/* sum += s times a tile: s has the warp's 16 rows and a column for each of the tile's N rows, and is rounded. */
template <int D, int S, int N> static __device__ __forceinline__ void add_product(float (*sum)[4], const float (*s)[4],
                                                                                  const uint16_t *tile)
{
#pragma unroll
    for (int j = 0; j < N / 16; j++) {
        uint32_t a[4];
        mma_a_of(a, s[2 * j], s[2 * j + 1]);
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            uint32_t x[4];
            mma_b_columns<S>(x, tile, j * 16, n * 16);
            mma(sum[2 * n], a, x);
            mma(sum[2 * n + 1], a, x + 2);
        }
    }
}

/* Sum and maximum over the four lanes that share a row. */
static __device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
static __device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* The factor of a probability of head h of sequence b. */
static __device__ __forceinline__ float drop_at(const struct drop &d, const struct attention &p, int64_t b, int64_t h,
                                                int64_t key, int64_t query)
{
    float f[4];

    query += p.first_query;
    drop_four(d, (b * p.all_heads + h) * p.all_t + key, query / 4, f);
    return query % 4 < 2 ? (query % 2 ? f[1] : f[0]) : (query % 2 ? f[3] : f[2]);
}

/* The same, where drop_begin was not called: what it knows would take registers over all tiles that keep a block away. */
static __device__ __forceinline__ float drop_late(struct drop d, const struct attention &p, int64_t b, int64_t h, int64_t key,
                                                  int64_t query)
{
    drop_begin(&d);
    return drop_at(d, p, b, h, key, query);
}

/* The logit of a product x of a query and a key, and its slope. */
static __device__ __forceinline__ float capped(const struct attention &p, float x)
{
    return p.cap - 2 * p.cap / (1 + exp2_fast(x * (2 * LOG2E * p.scale / p.cap)));
}
static __device__ __forceinline__ float slope_of(const struct attention &p, float logit)
{
    return 1 - logit / p.cap * (logit / p.cap);
}

/* ---- forward ---- */

/* The state of the softmax after the blocks before, for rows row and row + 8; a row's sum is in one of its lanes. */
template <int D> static __device__ __forceinline__ void take_up(const struct attention &p, int64_t bh, int64_t b, int64_t h,
                                                                int64_t row, float *m, float *l, float (*o)[4])
{
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row + half * 8 < p.t) {
            const float *from = (const float *)p.o.p + b * p.o.batch + (row + half * 8) * p.o.row + h * D + mma_i() * 2;
            m[half] = p.lse[bh * p.t + row + half * 8] * LOG2E;
            l[half] = mma_i() == 0 ? 1.0f : 0.0f;
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                o[n][half * 2] = from[n * 8];
                o[n][half * 2 + 1] = from[n * 8 + 1];
            }
        }
}

/* Scores s of rows row and row + 8 with the N keys from j0 on, times k, to what the values are multiplied by; the maxima m, the
 * sums l and the outputs o so far go along, and with MOST the largest scores. */
template <int D, int N, bool CAPPED, bool MOST>
static __device__ __forceinline__ void soften(const struct attention &p, const struct drop &drop, int64_t b, int64_t h,
                                              int64_t row, int64_t j0, const struct window *keys, float k, float (*s)[4],
                                              float *m, float *l, float (*o)[4], float *largest)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t col = j0 + mma_i() * 2;
        float most = __uint_as_float(0xff800000u), sum = 0, alpha;
        bool whole = inside(keys[half], j0) && inside(keys[half], j0 + N - 1);
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float *x = &s[n][half * 2 + c];
                if (CAPPED)
                    *x = capped(p, *x);
                *x = whole || inside(keys[half], col + n * 8 + c) ? *x : __uint_as_float(0xff800000u);
                most = fmaxf(most, *x);
            }
        if (MOST)
            largest[half] = fmaxf(largest[half], most);
        most = fmaxf(m[half], quad_max(most) * k);
        alpha = exp2_fast(m[half] - most);
        m[half] = most;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float *x = &s[n][half * 2 + c];
                *x = exp2_fast(fmaf(*x, k, -most));
                sum += *x;
                if (drop.keep > 0)
                    *x *= drop_late(drop, p, b, h, col + n * 8 + c, row + half * 8);
            }
        l[half] = fmaf(l[half], alpha, sum);
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            o[n][half * 2] *= alpha;
            o[n][half * 2 + 1] *= alpha;
        }
    }
}

template <int D, int N, bool MASKED, bool CAPPED, bool MOST> static __global__ void __launch_bounds__(32 * WARPS)
    fwd_kernel(struct attention p, struct drop drop)
{
    constexpr int S = D + 8; /* rows lie 4 banks apart */
    __shared__ __align__(16) uint16_t tiles[STAGES * 2 * N * S]; /* of each stage keys, then values */
    int64_t bh = blockIdx.y, b = bh / p.heads, h = bh % p.heads, kvh = h / (p.heads / p.kv_heads);
    int64_t q0 = (int64_t)(gridDim.x - 1 - blockIdx.x) * OWN,
        row = q0 + threadIdx.x / 32 * 16 + mma_g(); /* the long ones first */
    int64_t end = end_of(p, q0 + OWN);
    const struct window keys[2] = {keys_of<MASKED>(p, b, row), keys_of<MASKED>(p, b, row + 8)};
    float m[2] = {-1e30f, -1e30f}, l[2] = {0, 0}, o[D / 8][4] = {}; /* m is finite, since a tile may have no key for a query */
    float k = CAPPED ? LOG2E : p.scale * LOG2E, largest[2] = {0, 0};
    uint32_t q[D / 16][4];

    static_assert(STAGES * 2 * N >= OWN, "the queries go through the tiles");
    if (p.block == ATTENTION_FURTHER)
        take_up<D>(p, bh, b, h, row, m, l, o);
    else if (attention_sinks(&p))
#pragma unroll
        for (int half = 0; half < 2; half++) {
            m[half] = p.sink ? one_get<DTYPE_BF16>(p.sink, h) * LOG2E : 0.0f;
            l[half] = mma_i() == 0 ? 1.0f : 0.0f;
        }
    take_rows<D, S>(q, tiles, p.q, b, h, q0, p.t);
    int64_t j0 = first_of<MASKED>(p, b, q0);
    send_pair<D, S, N>(tiles, p.k, p.v, b, kvh, j0, end, p.t_kv);
    for (uint16_t *kt = tiles, *next = tiles + 2 * N * S; j0 < end; j0 += N) {
        const uint16_t *vt = kt + N * S;
        float s[N / 8][4] = {};
        copy_wait();
        __syncthreads();
        send_pair<D, S, N>(next, p.k, p.v, b, kvh, j0 + N, end, p.t_kv);
#pragma unroll
        for (int n = 0; n < N / 16; n++)
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                uint32_t x[4];
                mma_b_rows<S>(x, kt, n * 16, d * 16);
                mma(s[2 * n], q[d], x);
                mma(s[2 * n + 1], q[d], x + 2);
            }
        soften<D, N, CAPPED, MOST>(p, drop, b, h, row, j0, keys, k, s, m, l, o, largest);
        add_product<D, S, N>(o, s, vt);
        uint16_t *read = kt;
        kt = next;
        next = read;
    }
    l[0] = quad_sum(l[0]);
    l[1] = quad_sum(l[1]);
    store<D>(p.o, p.block ? PUT_WIDE : PUT_ROUNDED, b, h, row, p.t, o, 1.0f / l[0], 1.0f / l[1]);
    if (p.lse && mma_i() == 0)
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (row + half * 8 < p.t)
                p.lse[bh * p.t + row + half * 8] = m[half] * (1.0f / LOG2E) + logf(l[half]);
    if (MOST) /* rows behind the last are zeros */
        attention_raise(p, h, fmaxf(largest[0], largest[1]) * p.scale);
}

/* ---- backward, dq: a block has 64 queries and goes over the keys that they see ---- */

template <int D, int N, bool CAPPED> static __global__ void __launch_bounds__(32 * WARPS)
    dq_kernel(struct attention p, struct attention_view dout, struct attention_view dq, const float *delta, struct drop drop)
{
    constexpr int S = D + 8;
    __shared__ __align__(16) uint16_t tiles[(OWN > STAGES * 2 * N ? OWN : STAGES * 2 * N) * S];
    int64_t bh = blockIdx.y, b = bh / p.heads, h = bh % p.heads, kvh = h / (p.heads / p.kv_heads);
    int64_t q0 = (int64_t)(gridDim.x - 1 - blockIdx.x) * OWN, row = q0 + threadIdx.x / 32 * 16 + mma_g();
    int64_t end = end_of(p, q0 + OWN);
    const struct window keys[2] = {keys_of<true>(p, b, row), keys_of<true>(p, b, row + 8)};
    float lse[2], del[2], g[D / 8][4] = {}, k = CAPPED ? LOG2E : p.scale * LOG2E;
    uint32_t q[D / 16][4], dy[D / 16][4];

    drop_begin(&drop);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        bool in = row + half * 8 < p.t;
        lse[half] = in ? p.lse[bh * p.t + row + half * 8] * LOG2E : 0;
        del[half] = in ? delta[bh * p.t + row + half * 8] : 0;
    }
    take_rows<D, S>(q, tiles, p.q, b, h, q0, p.t);
    take_rows<D, S>(dy, tiles, dout, b, h, q0, p.t);
    int64_t j0 = first_of<true>(p, b, q0);
    send_pair<D, S, N>(tiles, p.k, p.v, b, kvh, j0, end, p.t_kv);
    for (uint16_t *kt = tiles, *next = tiles + 2 * N * S; j0 < end; j0 += N) {
        const uint16_t *vt = kt + N * S;
        float s[N / 8][4] = {};
        copy_wait();
        __syncthreads();
        send_pair<D, S, N>(next, p.k, p.v, b, kvh, j0 + N, end, p.t_kv);
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            float dp[2][4] = {};
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                uint32_t x[4];
                mma_b_rows<S>(x, kt, n * 16, d * 16);
                mma(s[2 * n], q[d], x);
                mma(s[2 * n + 1], q[d], x + 2);
                mma_b_rows<S>(x, vt, n * 16, d * 16);
                mma(dp[0], dy[d], x);
                mma(dp[1], dy[d], x + 2);
            }
#pragma unroll
            for (int c = 0; c < 8; c++) {
                float *x = &s[2 * n + c / 4][c % 4], g_p = dp[c / 4][c % 4];
                int64_t key = j0 + n * 16 + c / 4 * 8 + mma_i() * 2 + c % 2, query = row + c % 4 / 2 * 8;
                if (CAPPED)
                    *x = capped(p, *x);
                float pr = inside(keys[c % 4 / 2], key) ? exp2_fast(fmaf(*x, k, -lse[c % 4 / 2])) : 0.0f;
                if (drop.keep > 0)
                    g_p *= drop_at(drop, p, b, h, key, query);
                *x = pr * (g_p - del[c % 4 / 2]) * (CAPPED ? slope_of(p, *x) : 1.0f);
            }
        }
        add_product<D, S, N>(g, s, kt);
        uint16_t *read = kt;
        kt = next;
        next = read;
    }
    store<D>(dq, p.block ? PUT_ADDED : PUT_ROUNDED, b, h, row, p.t, g, p.scale, p.scale);
}

/* ---- backward, dk and dv: a block has 64 keys and goes over the heads that read them and the queries that see them, in order.
 * Everything is held key by query ---- */

/* What a tile has of its queries beside their rows: zeros behind the last one, whose rows of zeros then add nothing. */
template <int N> struct of_query {
    float lse[N], delta[N];
    int32_t begin[N];
};
template <int D, int S, int N> static __device__ __forceinline__ void send_queries(uint16_t *tile, struct of_query<N> *of,
                                                                                   const struct attention &p,
                                                                                   const struct attention_view &dout,
                                                                                   const float *delta, int64_t b, int64_t h,
                                                                                   int64_t i0)
{
    int x = (int)threadIdx.x;
    int64_t at = (b * p.heads + h) * p.t + i0 + x;
    bool in = i0 + x < p.t;

    send<D, S, N>(tile, p.q, b, h, i0, p.t);
    send<D, S, N>(tile + N * S, dout, b, h, i0, p.t);
    if (x < N) {
        copy_async<4>(&of->lse[x], p.lse + at, in);
        copy_async<4>(&of->delta[x], delta + at, in);
        if (p.start)
            copy_async<4>(&of->begin[x], p.start + b * p.t + i0 + x, in);
    }
}

/* Of keys row and row + 8 and the N queries from i0 on: pr from scores to probabilities, ds from slopes of those to slopes of
 * the scores. */
template <int N, bool CAPPED>
static __device__ __forceinline__ void weigh(const struct attention &p, const struct drop &drop, int64_t b, int64_t h,
                                             int64_t row, int64_t i0, const struct window *queries, const struct of_query<N> &of,
                                             float k, float (*pr)[4], float (*ds)[4])
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int at = n * 8 + mma_i() * 2 + c % 2;
            int64_t query = i0 + at, j = row + c / 2 * 8;
            bool seen_by = inside(queries[c / 2], query) && (!p.start || j >= of.begin[at] - p.first_key);
            float logit = CAPPED ? capped(p, pr[n][c]) : pr[n][c];
            float x = seen_by ? exp2_fast(fmaf(logit, k, -of.lse[at] * LOG2E)) : 0.0f;
            float f = drop.keep > 0 ? drop_late(drop, p, b, h, j, query) : 1.0f;
            ds[n][c] = x * (ds[n][c] * f - of.delta[at]) * (CAPPED ? slope_of(p, logit) : 1.0f);
            pr[n][c] = x * f;
        }
}

template <int D, int N, bool CAPPED> static __global__ void __launch_bounds__(32 * WARPS, CAPPED ? 1 : D == 64 ? 3 : 2)
    dkv_kernel(struct attention p, struct attention_view dout, struct attention_view dk, struct attention_view dv,
               const float *delta, struct drop drop)
{
    constexpr int S = D + 8;
    __shared__ __align__(16) uint16_t vt[OWN * S], tiles[(OWN > STAGES * 2 * N ? OWN : STAGES * 2 * N) * S];
    __shared__ struct of_query<N> all[STAGES];
    int64_t b = blockIdx.y / p.kv_heads, kvh = blockIdx.y % p.kv_heads, group = p.heads / p.kv_heads;
    int64_t j0 = (int64_t)blockIdx.x * OWN, row = j0 + threadIdx.x / 32 * 16 + mma_g();
    int64_t first = attention_first_query(&p, j0) / N * N, end = attention_last_query(&p, j0 + OWN - 1) + 1, stop;
    const struct window queries[2] = {queries_of(p, row), queries_of(p, row + 8)};
    float gk[D / 8][4] = {}, gv[D / 8][4] = {}, k = CAPPED ? LOG2E : p.scale * LOG2E;
    uint32_t key[D / 16][4];

    send<D, S, OWN>(vt, p.v, b, kvh, j0, p.t_kv);
    take_rows<D, S>(key, tiles, p.k, b, kvh, j0, p.t_kv);
    for (stop = first; stop < end && first_of<true>(p, b, stop) < j0 + OWN; stop = p.start ? stop + N : end)
        ; /* documents behind these keys */
    int64_t h = kvh * group, i0 = first, left = stop > first ? group * ((stop - first + N - 1) / N) : 0;
    if (left)
        send_queries<D, S, N>(tiles, all, p, dout, delta, b, h, i0);
    for (int stage = 0; left > 0; left--, stage = !stage) {
        const uint16_t *qt = tiles + stage * 2 * N * S, *yt = qt + N * S;
        const struct of_query<N> &of = all[stage];
        int64_t now_h = h, now = i0;
        float pr[N / 8][4] = {}, ds[N / 8][4] = {};
        i0 += N;
        if (i0 >= stop) {
            i0 = first;
            h++;
        }
        copy_wait();
        __syncthreads();
        if (left > 1)
            send_queries<D, S, N>(tiles + !stage * 2 * N * S, all + !stage, p, dout, delta, b, h, i0);
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
            uint32_t value[4];
            mma_a<S>(value, vt, (int)threadIdx.x / 32 * 16, d * 16);
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                uint32_t x[4];
                mma_b_rows<S>(x, qt, n * 16, d * 16);
                mma(pr[2 * n], key[d], x);
                mma(pr[2 * n + 1], key[d], x + 2);
                mma_b_rows<S>(x, yt, n * 16, d * 16);
                mma(ds[2 * n], value, x);
                mma(ds[2 * n + 1], value, x + 2);
            }
        }
        /* Keys fit an int, which spares sm_100 a register. */
        weigh<N, CAPPED>(p, drop, b, now_h, CUDA_ARCH < 1000 ? row : (int)row, now, queries, of, k, pr, ds);
#pragma unroll
        for (int i = 0; i < N / 16; i++) {
            uint32_t a[4], c[4];
            mma_a_of(a, pr[2 * i], pr[2 * i + 1]);
            mma_a_of(c, ds[2 * i], ds[2 * i + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t x[4];
                mma_b_columns<S>(x, yt, i * 16, n * 16);
                mma(gv[2 * n], a, x);
                mma(gv[2 * n + 1], a, x + 2);
                mma_b_columns<S>(x, qt, i * 16, n * 16);
                mma(gk[2 * n], c, x);
                mma(gk[2 * n + 1], c, x + 2);
            }
        }
    }
    store<D>(dk, p.block ? PUT_ADDED : PUT_ROUNDED, b, kvh, row, p.t_kv, gk, p.scale, p.scale);
    store<D>(dv, p.block ? PUT_ADDED : PUT_ROUNDED, b, kvh, row, p.t_kv, gv, 1, 1);
}

/* ---- launching ---- */

bool attention_mma_view_fits(const struct attention_view *v)
{
    return (uintptr_t)v->p % 16 == 0 && v->batch % 8 == 0 && v->row % 8 == 0;
}

bool attention_mma_fits(enum dtype dt, const struct attention *p)
{
    return dt == DTYPE_BF16 && (p->d == 64 || p->d == 128) && p->scale > 0 && p->t >= FEW && p->b * p->heads <= 65535 &&
           attention_mma_view_fits(&p->q) && attention_mma_view_fits(&p->k) && attention_mma_view_fits(&p->v) &&
           attention_mma_view_fits(&p->o);
}

static dim3 grid_of(int64_t rows, int64_t heads) { return dim3((unsigned)((rows + OWN - 1) / OWN), (unsigned)heads); }

/* The forward kernel that can do what p asks and little more. */
#define BY_KIND(p, KERNEL, D, N) \
    ((p)->cap > 0 ? KERNEL<D, N, true, true, false> : (p)->most ? KERNEL<D, N, true, false, true> \
     : attention_masked(p) ? KERNEL<D, N, true, false, false> : KERNEL<D, N, false, false, false>)

int attention_mma_fwd(struct device *dev, const struct attention *p, struct err *e)
{
    auto *kernel = p->d == 64 ? BY_KIND(p, fwd_kernel, 64, 64) : BY_KIND(p, fwd_kernel, 128, 32);

    LAUNCH(kernel, grid_of(p->t, p->b * p->heads), 32 * WARPS, dev, attention_filled(p), attention_drop(p));
    return cuda_launched(dev, "attention_fwd", e);
}

#define BY_CAP(p, KERNEL, D, N) ((p)->cap > 0 ? KERNEL<D, N, true> : KERNEL<D, N, false>)

int attention_mma_bwd(struct device *dev, const struct attention *p, struct attention_view dout, struct attention_view dq,
                      struct attention_view dk, struct attention_view dv, struct err *e)
{
    auto *over_queries = p->d == 64 ? BY_CAP(p, dq_kernel, 64, 64) : BY_CAP(p, dq_kernel, 128, 16);
    auto *over_keys = p->d == 64 ? BY_CAP(p, dkv_kernel, 64, 32) : BY_CAP(p, dkv_kernel, 128, 16);
    struct drop drop = attention_drop(p);
    void *s;

    TRY(cuda_scratch(dev, &s, (size_t)(p->b * p->heads * p->t) * sizeof(float), e));
    const float *delta = (const float *)s;
    TRY(attention_delta(dev, DTYPE_BF16, p, dout, (float *)s, e));
    TRY(attention_sink(dev, DTYPE_BF16, p, delta, e));
    LAUNCH(over_queries, grid_of(p->t, p->b * p->heads), 32 * WARPS, dev, attention_filled(p), dout, dq, delta, drop);
    LAUNCH(over_keys, grid_of(p->t_kv, p->b * p->kv_heads), 32 * WARPS, dev, attention_filled(p), dout, dk, dv, delta, drop);
    return cuda_launched(dev, "attention_bwd", e);
}
