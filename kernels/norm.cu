#include "kernels/columns.cuh"
#include "kernels/fp8_square.cuh"

/* Where row t begins. */
static __device__ __forceinline__ int64_t row_at(const struct norm_heads &h, int64_t t, int64_t c)
{
    return h.heads ? t / h.heads * h.ld + t % h.heads * c : t * c;
}

/* ---- forward: a warp a row.  The row is read once from memory; what is read again is in the first cache ---- */

/* A pack of s, as it is stored; it is made and stored here if there is a residual. */
template <enum dtype DT> static __device__ __forceinline__ pack stream(const struct norm_fwd &p, const struct drop &d,
        int64_t t,
                                                                       int64_t from, int64_t i)
{
    pack v = pack_get<DT>(p.x, from + i, p.c - i);

    if (p.residual) {
        pack r = pack_get<DT>(p.residual, from + i, p.c - i), f = {};
        if (d.keep > 0)
            f = drop_pack(d, t, i);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v.v[j] = rounded<DT>(d.keep > 0 ? fmaf(v.v[j], f.v[j], r.v[j]) : v.v[j] + r.v[j]);
        pack_put<DT>(p.s, from + i, p.c - i, v);
    }
    return v;
}

/* What channels i on are multiplied with. */
template <enum dtype DT> static __device__ __forceinline__ pack gain(const void *gamma, float plus, int64_t i, int64_t left)
{
    pack g = gamma ? pack_get<DT>(gamma, i, left) : pack();

#pragma unroll
    for (int j = 0; j < PACK; j++)
        g.v[j] += plus;
    return g;
}

/* Numbers that would have been stored as DT, in FP8; the largest of them and of `most`. */
template <enum dtype DT> static __device__ __forceinline__ uint32_t put_fp8(const struct fp8_quantize &to, int64_t i,
                                                                            int64_t left, pack v, float scale, uint32_t most)
{
#pragma unroll
    for (int j = 0; j < PACK; j++)
        v.v[j] = j < left ? rounded<DT>(v.v[j]) : 0;
    put_eight(to.y, i, left, to.to == FP8_E4M3 ? fp8_eight<FP8_E4M3>(v, scale) : fp8_eight<FP8_E5M2>(v, scale));
    return larger(most, v);
}

/* y in FP8 as `to` says, where FP8 is. */
template <enum dtype DT, bool RMS, bool FP8> static __global__ void __launch_bounds__(CUDA_BLOCK)
    fwd_kernel(struct norm_fwd p, struct drop d, struct fp8_quantize to)
{
    __shared__ uint32_t part[CUDA_WARPS];
    uint32_t most = 0;
    float scale = FP8 ? *to.scale : 0;
    int lane = (int)threadIdx.x % 32;
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS, c = p.c;
    const void *s = p.residual ? p.s : p.x;

    drop_begin(&d);
    for (int64_t t = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; t < p.t; t += warps) {
        int64_t from = row_at(p.x_heads, t, c), at = row_at(p.y_heads, t, c);
        float sum = 0, mean = 0, rstd;
        for (int64_t i = lane * PACK; i < c; i += 32 * PACK) {
            pack v = stream<DT>(p, d, t, from, i);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                sum = RMS ? fmaf(v.v[j], v.v[j], sum) : sum + v.v[j];
        }
        sum = warp_sum(sum);
        if (!RMS) {
            mean = sum / (float)c;
            sum = 0;
            for (int64_t i = lane * PACK; i < c; i += 32 * PACK) {
                pack v = pack_get<DT>(s, from + i, c - i);
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    if (i + j < c)
                        sum = fmaf(v.v[j] - mean, v.v[j] - mean, sum);
            }
            sum = warp_sum(sum);
        }
        rstd = 1.0f / sqrtf(sum / (float)c + p.eps);
        for (int64_t i = lane * PACK; i < c; i += 32 * PACK) {
            int64_t left = c - i;
            pack v = pack_get<DT>(s, from + i, left), g = gain<DT>(p.gamma, p.plus, i, left);
            pack b = p.beta ? pack_get<DT>(p.beta, i, left) : pack();
#pragma unroll
            for (int j = 0; j < PACK; j++)
                v.v[j] = (v.v[j] - mean) * rstd * g.v[j] + b.v[j];
            if (FP8)
                most = put_fp8<DT>(to, at + i, left, v, scale, most);
            else
                pack_put<DT>(p.y, at + i, left, v);
        }
        if (lane == 0 && p.rstd)
            p.rstd[t] = rstd;
        if (lane == 0 && p.mean && !RMS)
            p.mean[t] = mean;
    }
    if (FP8 && to.amax)
        add_amax(to.amax, most, part);
}

/* The bytes y to yt transposed. */
static __global__ void __launch_bounds__(CUDA_BLOCK) turn_kernel(struct fp8_quantize p)
{
    __shared__ uint64_t square[SIDE * UNITS];
    int64_t squares = (p.cols + SIDE - 1) / SIDE, r0 = blockIdx.x / squares * SIDE, c0 = blockIdx.x % squares * SIDE;
    int j = (int)threadIdx.x % UNITS, i = (int)threadIdx.x / UNITS;
    int64_t col = c0 + 8 * j, left = p.cols - col;

#pragma unroll
    for (int k = 0; k < 8; k++) {
        int64_t r = r0 + 8 * i + k;
        square[square_at(8 * i + k, j)] = get_eight(p.y, r * p.cols + col, r < p.rows ? left : 0);
    }
    __syncthreads();
    square_turn(square, p.yt, r0, c0, p.cols, p.yt_ld ? p.yt_ld : p.rows);
}

/* ---- backward: a team of threads (a warp up to 256 channels, else a block) has a stretch of rows and keeps its columns' part
 * of dgamma and dbeta in registers, K packs a thread ---- */

/* The sums of a and b over the team. */
template <bool WARP> static __device__ __forceinline__ void team_sums(float *a, float *b, float (*part)[32])
{
    if (WARP) {
        *a = warp_sum(*a);
        *b = warp_sum(*b);
        return;
    }
    __syncthreads(); /* part is free: all have read the last row's */
    *a = warp_sum(*a);
    if (threadIdx.x % 32 == 0)
        part[0][threadIdx.x / 32] = *a;
    *b = block_sum(*b, part[1]);
    *a = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++)
        *a += part[0][i];
}

template <enum dtype DT, bool RMS, int K, bool WARP> static __global__ void __launch_bounds__(WARP ? CUDA_BLOCK : 512)
    bwd_kernel(struct norm_bwd p, struct drop d, float *part)
{
    __shared__ float sums[2][32];
    int lane = WARP ? (int)threadIdx.x % 32 : (int)threadIdx.x, lanes = WARP ? 32 : (int)blockDim.x;
    int64_t team = WARP ? (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32 : blockIdx.x;
    int64_t teams = WARP ? (int64_t)gridDim.x * CUDA_WARPS : gridDim.x, c = p.c;
    pack dg[K] = {}, db[K] = {};

    for (int64_t t = team * p.t / teams; t < (team + 1) * p.t / teams; t++) {
        int64_t at = row_at(p.heads, t, c);
        float mean = RMS ? 0 : p.mean[t], rstd = p.rstd[t], a = 0, b = 0;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int64_t i = (int64_t)(k * lanes + lane) * PACK, left = c - i;
            if (left <= 0)
                break;
            pack dy = pack_get<DT>(p.dy, at + i, left), s = pack_get<DT>(p.s, at + i, left);
            pack g = gain<DT>(p.gamma, p.plus, i, left);
#pragma unroll
            for (int j = 0; j < PACK; j++) { /* beyond the row dy is 0 */
                float hat = (s.v[j] - mean) * rstd, gdy = dy.v[j] * g.v[j];
                a += gdy;
                b = fmaf(gdy, hat, b);
                dg[k].v[j] = fmaf(dy.v[j], hat, dg[k].v[j]);
                db[k].v[j] += dy.v[j];
            }
        }
        team_sums<WARP>(&a, &b, sums);
        a = RMS ? 0 : a / (float)c;
        b = b / (float)c;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int64_t i = (int64_t)(k * lanes + lane) * PACK, left = c - i;
            if (left <= 0)
                break;
            pack dy = pack_get<DT>(p.dy, at + i, left), s = pack_get<DT>(p.s, at + i, left);
            pack g = gain<DT>(p.gamma, p.plus, i, left);
            pack r = p.dres ? pack_get<DT>(p.dres, at + i, left) : pack();
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                float hat = (s.v[j] - mean) * rstd;
                dy.v[j] = rounded<DT>((dy.v[j] * g.v[j] - a - hat * b) * rstd + r.v[j]);
            }
            pack_put<DT>(p.ds, at + i, left, dy);
            if (p.dx) {
                struct drop now = d; /* once for all rows would be registers too many */
                drop_begin(&now);
                pack f = drop_pack(now, t, i);
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    dy.v[j] *= f.v[j];
                pack_put<DT>(p.dx, at + i, left, dy);
            }
        }
    }
    part += team * 2 * c;
#pragma unroll
    for (int k = 0; k < K; k++) {
        int64_t i = (int64_t)(k * lanes + lane) * PACK;
        if (i < c) {
            pack_put<DTYPE_F32>(part, i, c - i, dg[k]);
            pack_put<DTYPE_F32>(part, c + i, c - i, db[k]);
        }
    }
}

/* ---- the ops ---- */

/* n elements on; NULL stays. */
static const void *on(const void *p, int64_t n, size_t size)
{
    return p ? (const char *)p + (size_t)n * size : NULL;
}
static void *on(void *p, int64_t n, size_t size)
{
    return p ? (char *)p + (size_t)n * size : NULL;
}
template <typename T> static T *on(T *p, int64_t n)
{
    return p ? p + n : NULL;
}

/* Of rows of one stretch of dropout after the other. */
static int fwd_rows(struct device *dev, enum dtype dt, const struct norm_fwd *p, const struct fp8_quantize *to, bool rms,
                    const char *op, struct err *e)
{
    size_t w = dtype_size(dt);

    for (int64_t r = 0, n; p->drop && p->drop->cut; r += n) {
        struct norm_fwd q = *p;
        struct fp8_quantize low = *to;
        struct dropout one;
        if (r == p->t)
            return 0;
        n = q.t = drop_stretch(p->drop, r, p->t, &one);
        q.drop = &one;
        q.x = on(p->x, r * p->c, w), q.residual = on(p->residual, r * p->c, w);
        q.s = on(p->s, r * p->c, w), q.y = on(p->y, r * p->c, w);
        q.mean = on(p->mean, r), q.rstd = on(p->rstd, r);
        low.y = on(to->y, r * p->c);
        TRY(fwd_rows(dev, dt, &q, &low, rms, op, e));
    }
    dim3 blocks(cuda_blocks(dev, p->t, CUDA_WARPS));
    if (p->fp8) {
        auto *kernel = rms ? fwd_kernel<DTYPE_BF16, true, true> : fwd_kernel<DTYPE_BF16, false, true>;
        LAUNCH(kernel, blocks, CUDA_BLOCK, dev, *p, drop_of(p->drop, p->c), *to);
    } else {
        BY_TYPE(dt, {
            auto *kernel = rms ? fwd_kernel<DT, true, false> : fwd_kernel<DT, false, false>;
            LAUNCH(kernel, blocks, CUDA_BLOCK, dev, *p, drop_of(p->drop, p->c), *to);
        });
    }
    return cuda_launched(dev, op, e);
}

static int fwd(struct device *dev, enum dtype dt, const struct norm_fwd *p, bool rms, const char *op, struct err *e)
{
    struct fp8_quantize to = {};
    int64_t squares = (p->t + SIDE - 1) / SIDE * ((p->c + SIDE - 1) / SIDE);

    TRY(check_norm_fwd(dt, p, op, e));
    if (p->t == 0)
        return 0;
    if (p->fp8)
        to = *p->fp8;
    TRY(fwd_rows(dev, dt, p, &to, rms, op, e));
    if (!to.yt)
        return 0;
    if (squares > INT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "%s: %lld x %lld", op, (long long)p->t, (long long)p->c);
    LAUNCH(turn_kernel, dim3((unsigned)squares), CUDA_BLOCK, dev, to);
    return cuda_launched(dev, op, e);
}

/* How many teams share the rows: by the shape alone, so that the same sums are added everywhere. */
enum { WARP_TEAMS = 2048, BLOCK_TEAMS = 512, TEAM_MOST = 2 * 512 * PACK };

template <enum dtype DT, int K, bool WARP> static void launch_bwd(struct device *dev, const struct norm_bwd *p, bool rms,
                                                                 unsigned blocks, unsigned threads, float *part)
{
    auto *kernel = rms ? bwd_kernel<DT, true, K, WARP> : bwd_kernel<DT, false, K, WARP>;
    struct drop d = drop_of(p->drop, p->c);

    if (d.keep == 0)
        d.keep = 1; /* with a threshold of 0 */
    LAUNCH(kernel, dim3(blocks), threads, dev, *p, d, part);
}

static int bwd(struct device *dev, enum dtype dt, const struct norm_bwd *p, bool rms, const char *op, struct err *e)
{
    bool warp = p->c <= 32 * PACK;
    int64_t most = warp ? WARP_TEAMS : BLOCK_TEAMS, teams = p->t < most ? p->t : most;
    size_t w = dtype_size(dt);
    int k = warp || p->c <= 512 * PACK ? 1 : 2;
    void *part;

    TRY(check_norm_bwd(dt, p, op, e));
    if (p->c > TEAM_MOST)
        return err_set(e, ERR_UNSUPPORTED, "%s: %lld channels are more than %d", op, (long long)p->c, TEAM_MOST);
    if (p->t == 0)
        return 0;
    for (int64_t r = 0, n; p->drop && p->drop->cut; r += n) {
        struct norm_bwd q = *p;
        struct dropout one;
        if (r == p->t)
            return 0;
        n = q.t = drop_stretch(p->drop, r, p->t, &one);
        q.drop = &one;
        q.dy = on(p->dy, r * p->c, w), q.dres = on(p->dres, r * p->c, w), q.s = on(p->s, r * p->c, w);
        q.mean = on(p->mean, r), q.rstd = on(p->rstd, r);
        q.ds = on(p->ds, r * p->c, w), q.dx = on(p->dx, r * p->c, w);
        TRY(bwd(dev, dt, &q, rms, op, e));
    }
    unsigned threads = warp ? (unsigned)CUDA_BLOCK : (unsigned)((packs_of(p->c) + k - 1) / k + 31) / 32 * 32;
    if (warp)
        teams = (teams + CUDA_WARPS - 1) / CUDA_WARPS * CUDA_WARPS;
    unsigned blocks = (unsigned)(warp ? teams / CUDA_WARPS : teams);
    TRY(cuda_scratch(dev, &part, (size_t)teams * 2 * (size_t)p->c * sizeof(float), e));
    BY_TYPE(dt, {
        if (warp)
            launch_bwd<DT, 1, true>(dev, p, rms, blocks, threads, (float *)part);
        else if (k == 1)
            launch_bwd<DT, 1, false>(dev, p, rms, blocks, threads, (float *)part);
        else
            launch_bwd<DT, 2, false>(dev, p, rms, blocks, threads, (float *)part);
    });
    columns_add(dev, p->dgamma, p->c, p->dbeta, p->c, (const float *)part, (int)teams);
    return cuda_launched(dev, op, e);
}

extern "C" int layernorm_fwd_cuda(struct device *dev, enum dtype dt, const struct norm_fwd *p, struct err *e)
{
    return fwd(dev, dt, p, false, "layernorm_fwd", e);
}

extern "C" int layernorm_bwd_cuda(struct device *dev, enum dtype dt, const struct norm_bwd *p, struct err *e)
{
    return bwd(dev, dt, p, false, "layernorm_bwd", e);
}

extern "C" int rmsnorm_fwd_cuda(struct device *dev, enum dtype dt, const struct norm_fwd *p, struct err *e)
{
    return fwd(dev, dt, p, true, "rmsnorm_fwd", e);
}

extern "C" int rmsnorm_bwd_cuda(struct device *dev, enum dtype dt, const struct norm_bwd *p, struct err *e)
{
    return bwd(dev, dt, p, true, "rmsnorm_bwd", e);
}
