#include "kernels/attention_mma.cuh"

#include "kernels/attention_plain.cuh"
#include "kernels/mma.cuh"

/* Tiled attention with an online softmax on the tensor cores (arXiv:2205.14135, arXiv:2307.08691).  A block of four warps has
 * 64 queries (dk and dv: 64 keys) of a head, 16 a warp, and goes over the others in tiles through shared memory.  Backward is two
 * kernels, one over queries for dq and one over keys for dk and dv: 7 products where one kernel with atomics would do with
 * 5, but every sum has its order, so the bits are the same every time. */

enum { WARPS = 4, OWN = 16 * WARPS, FEW = 16 };
#define LOG2E 1.44269504f

/* Rows row0 .. row0 + ROWS - 1 of a head into a tile of rows of S elements; zeros from `rows` on. */
template <int D, int S, int ROWS> static __device__ __forceinline__ void fill(uint16_t *tile, const struct attention_view &v,
                                                                              int64_t b, int64_t h, int64_t row0, int64_t rows)
{
    for (int x = (int)threadIdx.x; x < ROWS * (D / 8); x += 32 * WARPS) {
        int r = x / (D / 8), c = x % (D / 8) * 8;
        uint4 w = {0, 0, 0, 0};
        if (row0 + r < rows)
            w = *(const uint4 *)((const uint16_t *)v.p + b * v.batch + (row0 + r) * v.row + h * D + c);
        *(uint4 *)(tile + r * S + c) = w;
    }
}

/* The same, and the 16 rows of them that the warp will multiply by. */
template <int D, int S> static __device__ __forceinline__ void take_rows(uint32_t (*a)[4], uint16_t *tile,
                                                                          const struct attention_view &v, int64_t b, int64_t h,
                                                                          int64_t row0, int64_t rows)
{
    fill<D, S, OWN>(tile, v, b, h, row0, rows);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < D / 16; d++)
        mma_a<S>(a[d], tile, (int)threadIdx.x / 32 * 16, d * 16);
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

/* How many keys beyond its own number a query sees: all, or as far as it is from the end. */
static __device__ __forceinline__ int64_t seen_of(const struct attention &p)
{
    return p.full ? p.t_kv : p.t_kv - p.t;
}

/* The first key that query i of sequence b sees: where its document begins. */
static __device__ __forceinline__ int first_of(const struct attention &p, int64_t b, int64_t i)
{
    int64_t first = p.start && i < p.t ? p.start[b * p.t + i] - p.first_key : 0;

    return first < 0 ? 0 : (int)first;
}

/* What query i of sequence b sees: n keys from first on. */
struct window {
    int first;
    unsigned n;
};
static __device__ __forceinline__ struct window window_of(const struct attention &p, int64_t b, int64_t i)
{
    int first = first_of(p, b, i), end = (int)(i + seen_of(p) < p.t_kv ? i + seen_of(p) + 1 : p.t_kv);

    return {first, first < end ? (unsigned)(end - first) : 0u};
}
static __device__ __forceinline__ bool sees(const struct window &w, int64_t key)
{
    return (unsigned)((int)key - w.first) < w.n;
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

/* ---- forward ---- */

template <int D, int N> static __global__ void __launch_bounds__(32 * WARPS) fwd_kernel(struct attention p, struct drop drop)
{
    constexpr int S = D + 8; /* rows lie 4 banks apart */
    __shared__ __align__(16) uint16_t tiles[2 * N * S];
    uint16_t *kt = tiles, *vt = tiles + N * S;
    int64_t bh = blockIdx.y, b = bh / p.heads, h = bh % p.heads, kvh = h / (p.heads / p.kv_heads), seen = seen_of(p);
    int64_t q0 = (int64_t)(gridDim.x - 1 - blockIdx.x) * OWN,
        row = q0 + threadIdx.x / 32 * 16 + mma_g(); /* the long ones first */
    int64_t end = q0 + OWN + seen < p.t_kv ? q0 + OWN + seen : p.t_kv;
    const struct window keys[2] = {window_of(p, b, row), window_of(p, b, row + 8)};
    float m[2] = {-1e30f, -1e30f}, l[2] = {0, 0}, o[D / 8][4] = {}; /* m is finite, since a tile may have no key for a query */
    float k = p.scale * LOG2E;
    uint32_t q[D / 16][4];

    static_assert(2 * N >= OWN, "the queries go through the tiles");
    if (p.block == ATTENTION_FURTHER) /* the state of the softmax after the blocks before; a row's sum is in one of its lanes */
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
    take_rows<D, S>(q, tiles, p.q, b, h, q0, p.t);
    for (int64_t j0 = first_of(p, b, q0); j0 < end; j0 += N) {
        float s[N / 8][4] = {};
        __syncthreads();
        fill<D, S, N>(kt, p.k, b, kvh, j0, p.t_kv);
        fill<D, S, N>(vt, p.v, b, kvh, j0, p.t_kv);
        __syncthreads();
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                uint32_t x[2];
                mma_b_rows<S>(x, kt, n * 8, d * 16);
                mma(s[n], q[d], x);
            }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t col = j0 + mma_i() * 2;
            float most = m[half], sum = 0, alpha;
#pragma unroll
            for (int n = 0; n < N / 8; n++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    float *x = &s[n][half * 2 + c];
                    *x = sees(keys[half], col + n * 8 + c) ? *x * k : __uint_as_float(0xff800000u);
                    most = fmaxf(most, *x);
                }
            most = quad_max(most);
            alpha = exp2f(m[half] - most);
            m[half] = most;
#pragma unroll
            for (int n = 0; n < N / 8; n++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    float *x = &s[n][half * 2 + c];
                    *x = exp2f(*x - most);
                    sum += *x;
                    if (drop.keep > 0)
                        *x *= drop_at(drop, p, b, h, col + n * 8 + c, row + half * 8);
                }
            l[half] = fmaf(l[half], alpha, sum);
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                o[n][half * 2] *= alpha;
                o[n][half * 2 + 1] *= alpha;
            }
        }
#pragma unroll
        for (int j = 0; j < N / 16; j++) {
            uint32_t a[4];
            mma_a_of(a, s[2 * j], s[2 * j + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t x[4];
                mma_b_columns<S>(x, vt, j * 16, n * 16);
                mma(o[2 * n], a, x);
                mma(o[2 * n + 1], a, x + 2);
            }
        }
    }
    l[0] = quad_sum(l[0]);
    l[1] = quad_sum(l[1]);
    store<D>(p.o, p.block ? PUT_WIDE : PUT_ROUNDED, b, h, row, p.t, o, 1.0f / l[0], 1.0f / l[1]);
    if (p.lse && mma_i() == 0)
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (row + half * 8 < p.t)
                p.lse[bh * p.t + row + half * 8] = m[half] * (1.0f / LOG2E) + logf(l[half]);
}

/* ---- backward, dq: a block has 64 queries and goes over the keys that they see ---- */

template <int D, int N> static __global__ void __launch_bounds__(32 * WARPS)
    dq_kernel(struct attention p, struct attention_view dout, struct attention_view dq, const float *delta, struct drop drop)
{
    constexpr int S = D + 8;
    __shared__ __align__(16) uint16_t tiles[OWN * S > 2 * N * S ? OWN * S : 2 * N * S];
    uint16_t *kt = tiles, *vt = tiles + N * S;
    int64_t bh = blockIdx.y, b = bh / p.heads, h = bh % p.heads, kvh = h / (p.heads / p.kv_heads), seen = seen_of(p);
    int64_t q0 = (int64_t)(gridDim.x - 1 - blockIdx.x) * OWN, row = q0 + threadIdx.x / 32 * 16 + mma_g();
    int64_t end = q0 + OWN + seen < p.t_kv ? q0 + OWN + seen : p.t_kv;
    const struct window keys[2] = {window_of(p, b, row), window_of(p, b, row + 8)};
    float lse[2], del[2], g[D / 8][4] = {}, k = p.scale * LOG2E;
    uint32_t q[D / 16][4], dy[D / 16][4];

#pragma unroll
    for (int half = 0; half < 2; half++) {
        bool in = row + half * 8 < p.t;
        lse[half] = in ? p.lse[bh * p.t + row + half * 8] * LOG2E : 0;
        del[half] = in ? delta[bh * p.t + row + half * 8] : 0;
    }
    take_rows<D, S>(q, tiles, p.q, b, h, q0, p.t);
    __syncthreads();
    take_rows<D, S>(dy, tiles, dout, b, h, q0, p.t);
    for (int64_t j0 = first_of(p, b, q0); j0 < end; j0 += N) {
        float s[N / 8][4] = {};
        __syncthreads();
        fill<D, S, N>(kt, p.k, b, kvh, j0, p.t_kv);
        fill<D, S, N>(vt, p.v, b, kvh, j0, p.t_kv);
        __syncthreads();
#pragma unroll
        for (int n = 0; n < N / 8; n++) {
            float dp[4] = {};
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                uint32_t x[2];
                mma_b_rows<S>(x, kt, n * 8, d * 16);
                mma(s[n], q[d], x);
                mma_b_rows<S>(x, vt, n * 8, d * 16);
                mma(dp, dy[d], x);
            }
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int64_t key = j0 + n * 8 + mma_i() * 2 + c % 2, query = row + c / 2 * 8;
                float pr = sees(keys[c / 2], key) ? exp2f(s[n][c] * k - lse[c / 2]) : 0.0f;
                if (drop.keep > 0)
                    dp[c] *= drop_at(drop, p, b, h, key, query);
                s[n][c] = pr * (dp[c] - del[c / 2]);
            }
        }
#pragma unroll
        for (int j = 0; j < N / 16; j++) {
            uint32_t a[4];
            mma_a_of(a, s[2 * j], s[2 * j + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t x[4];
                mma_b_columns<S>(x, kt, j * 16, n * 16);
                mma(g[2 * n], a, x);
                mma(g[2 * n + 1], a, x + 2);
            }
        }
    }
    store<D>(dq, p.block ? PUT_ADDED : PUT_ROUNDED, b, h, row, p.t, g, p.scale, p.scale);
}

/* ---- backward, dk and dv: a block has 64 keys and goes over the heads that read them and the queries that see them, in order.
 * Everything is held key by query ---- */

template <int D, int N> static __global__ void __launch_bounds__(32 * WARPS)
    dkv_kernel(struct attention p, struct attention_view dout, struct attention_view dk, struct attention_view dv,
               const float *delta, struct drop drop)
{
    constexpr int S = D + 8;
    __shared__ __align__(16) uint16_t vt[OWN * S], tiles[OWN * S > 2 * N * S ? OWN * S : 2 * N * S];
    __shared__ float lse[N], del[N];
    __shared__ int begin[N];
    uint16_t *qt = tiles, *yt = tiles + N * S;
    int64_t b = blockIdx.y / p.kv_heads, kvh = blockIdx.y % p.kv_heads, group = p.heads / p.kv_heads, seen = seen_of(p);
    int64_t j0 = (int64_t)blockIdx.x * OWN, row = j0 + threadIdx.x / 32 * 16 + mma_g();
    int64_t first = j0 > seen ? (j0 - seen) / N * N : 0;
    float gk[D / 8][4] = {}, gv[D / 8][4] = {}, k = p.scale * LOG2E;
    uint32_t key[D / 16][4];

    fill<D, S, OWN>(vt, p.v, b, kvh, j0, p.t_kv);
    take_rows<D, S>(key, tiles, p.k, b, kvh, j0, p.t_kv);
    for (int64_t h = kvh * group; h < (kvh + 1) * group; h++)
        for (int64_t i0 = first; i0 < p.t && first_of(p, b, i0) < j0 + OWN; i0 += N) { /* then documents behind these keys */
            int64_t bh = b * p.heads + h;
            float pr[N / 8][4] = {}, ds[N / 8][4] = {};
            __syncthreads();
            fill<D, S, N>(qt, p.q, b, h, i0, p.t);
            fill<D, S, N>(yt, dout, b, h, i0, p.t);
            for (int x = (int)threadIdx.x; x < N; x += 32 * WARPS) {
                lse[x] = i0 + x < p.t ? p.lse[bh * p.t + i0 + x] * LOG2E : 0.0f;
                del[x] = i0 + x < p.t ? delta[bh * p.t + i0 + x] : 0.0f;
                begin[x] = i0 + x < p.t ? first_of(p, b, i0 + x) : INT32_MAX;
            }
            __syncthreads();
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                uint32_t value[4];
                mma_a<S>(value, vt, (int)threadIdx.x / 32 * 16, d * 16);
#pragma unroll
                for (int n = 0; n < N / 8; n++) {
                    uint32_t x[2];
                    mma_b_rows<S>(x, qt, n * 8, d * 16);
                    mma(pr[n], key[d], x);
                    mma_b_rows<S>(x, yt, n * 8, d * 16);
                    mma(ds[n], value, x);
                }
            }
#pragma unroll
            for (int n = 0; n < N / 8; n++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    int at = n * 8 + mma_i() * 2 + c % 2;
                    int64_t query = i0 + at, j = row + c / 2 * 8;
                    float x = j >= begin[at] && j <= query + seen ? exp2f(pr[n][c] * k - lse[at]) : 0.0f;
                    float f = drop.keep > 0 ? drop_at(drop, p, b, h, j, query) : 1.0f;
                    ds[n][c] = x * (ds[n][c] * f - del[at]);
                    pr[n][c] = x * f;
                }
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
    return dt == DTYPE_BF16 && (p->d == 64 || p->d == 128) && p->t >= FEW && p->b * p->heads <= 65535 &&
           attention_mma_view_fits(&p->q) && attention_mma_view_fits(&p->k) && attention_mma_view_fits(&p->v) &&
           attention_mma_view_fits(&p->o);
}

static dim3 grid_of(int64_t rows, int64_t heads) { return dim3((unsigned)((rows + OWN - 1) / OWN), (unsigned)heads); }

int attention_mma_fwd(struct device *dev, const struct attention *p, struct err *e)
{
    auto *kernel = p->d == 64 ? fwd_kernel<64, 64> : fwd_kernel<128, 64>;

    LAUNCH(kernel, grid_of(p->t, p->b * p->heads), 32 * WARPS, dev, attention_filled(p), attention_drop(p));
    return cuda_launched(dev, "attention_fwd", e);
}

int attention_mma_bwd(struct device *dev, const struct attention *p, struct attention_view dout, struct attention_view dq,
                      struct attention_view dk, struct attention_view dv, struct err *e)
{
    auto *over_queries = p->d == 64 ? dq_kernel<64, 64> : dq_kernel<128, 16>;
    auto *over_keys = p->d == 64 ? dkv_kernel<64, 32> : dkv_kernel<128, 16>;
    struct drop drop = attention_drop(p);
    void *s;

    TRY(cuda_scratch(dev, &s, (size_t)(p->b * p->heads * p->t) * sizeof(float), e));
    const float *delta = (const float *)s;
    TRY(attention_delta(dev, DTYPE_BF16, p, dout, (float *)s, e));
    LAUNCH(over_queries, grid_of(p->t, p->b * p->heads), 32 * WARPS, dev, attention_filled(p), dout, dq, delta, drop);
    LAUNCH(over_keys, grid_of(p->t_kv, p->b * p->kv_heads), 32 * WARPS, dev, attention_filled(p), dout, dk, dv, delta, drop);
    return cuda_launched(dev, "attention_bwd", e);
}
