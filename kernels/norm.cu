#include "kernels/columns.cuh"
#include "kernels/fp8_square.cuh"

/* Where row t begins. */
static __device__ __forceinline__ int64_t row_at(const struct norm_heads &h, int64_t t, int64_t c)
{
    uint32_t row = (uint32_t)t, heads = (uint32_t)h.heads; /* which divide faster */

    return heads ? row / heads * h.ld + row % heads * c : t * c;
}

/* ---- forward: a warp a row ---- */

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

/* What backward wants to know of a row. */
template <bool RMS> static __device__ __forceinline__ void put_moments(const struct norm_fwd &p, int64_t t, int lane, float mean,
                                                                       float rstd)
{
    if (lane == 0 && p.rstd)
        p.rstd[t] = rstd;
    if (lane == 0 && p.mean && !RMS)
        p.mean[t] = mean;
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

/* Any rows.  y in FP8 as `to` says, where FP8 is.  A row is read once from memory; what is read again is in the first cache. */
template <enum dtype DT, bool RMS, bool FP8> static __global__ void __launch_bounds__(CUDA_BLOCK, 3)
    fwd_kernel(struct norm_fwd p, struct drop d, struct fp8_quantize to)
{
    __shared__ uint32_t part[CUDA_WARPS];
    uint32_t most = 0;
    float scale = FP8 ? *to.scale : 0, of_row = 1.0f / (float)p.c;
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
            mean = sum * of_row;
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
        rstd = 1.0f / sqrtf(sum * of_row + p.eps);
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
        put_moments<RMS>(p, t, lane, mean, rstd);
    }
    if (FP8 && to.amax)
        add_amax(to.amax, most, part);
}

/* Keeps packs as they are stored, by a zero that the compiler does not know: it would hold on to their floats, which take twice
 * the registers. */
template <int K> static __device__ __forceinline__ void hold(stored<DTYPE_BF16> (&row)[K], uint32_t zero)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 /* where two zeros cancel out if it knows that they are one */
    asm volatile("" : "+r"(zero));
#endif
#pragma unroll
    for (int k = 0; k < K; k++) {
        uint4 *w = row[k].w;
        w->x ^= zero, w->y ^= zero, w->z ^= zero, w->w ^= zero;
    }
}

/* Rows of bf16 without dropout, packs whole and at multiples of 16, 32 K packs at most: a warp has its row in registers, so all
 * of it is on its way at once and nothing is read again.  Added up as by fwd_kernel: the same bits. */
template <bool RMS, bool FP8, int K> static __global__ void __launch_bounds__(CUDA_BLOCK, 16 / K < 3 ? 16 / K : 3)
    row_kernel(struct norm_fwd p, struct fp8_quantize to)
{
    const enum dtype DT = DTYPE_BF16;
    __shared__ uint32_t part[CUDA_WARPS];
    uint32_t most = 0, zero = (uint32_t)(p.t >> 63);
    float scale = FP8 ? *to.scale : 0, of_row = 1.0f / (float)p.c;
    int lane = (int)threadIdx.x % 32, c = (int)p.c;
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS;

    for (int64_t t = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; t < p.t; t += warps) {
        int64_t from = row_at(p.x_heads, t, c), at = row_at(p.y_heads, t, c);
        stored<DT> row[K];
        float sum = 0, mean = 0, rstd;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int i = (k * 32 + lane) * PACK;
            row[k] = stored_get<DT>(p.x, from + i, c - i, true);
        }
        if (p.residual) {
#pragma unroll
            for (int k = 0; k < K; k++) {
                int i = (k * 32 + lane) * PACK;
                pack v = stored_pack<DT>(row[k]), r = stored_pack<DT>(stored_get<DT>(p.residual, from + i, c - i, true));
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    v.v[j] += r.v[j];
                pack_put_whole<DT>((char *)&row[k], v);
            }
        }
        hold(row, zero);
#pragma unroll
        for (int k = 0; k < K; k++) { /* beyond the row there are zeros */
            pack v = stored_pack<DT>(row[k]);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                sum = RMS ? fmaf(v.v[j], v.v[j], sum) : sum + v.v[j];
        }
        sum = warp_sum(sum);
        if (!RMS) {
            mean = sum * of_row;
            sum = 0;
            hold(row, zero);
#pragma unroll
            for (int k = 0; k < K; k++) {
                pack v = stored_pack<DT>(row[k]);
                if ((k * 32 + lane) * PACK < c)
#pragma unroll
                    for (int j = 0; j < PACK; j++)
                        sum = fmaf(v.v[j] - mean, v.v[j] - mean, sum);
            }
            sum = warp_sum(sum);
        }
        rstd = 1.0f / sqrtf(sum * of_row + p.eps);
        hold(row, zero);
#pragma unroll
        for (int k = 0; k < K; k++) {
            int i = (k * 32 + lane) * PACK, left = c - i;
            pack v = stored_pack<DT>(row[k]), g, b;
            if (left <= 0)
                break;
            if (p.residual)
                *(stored<DT> *)((char *)p.s + (from + i) * 2) = row[k];
            g = p.gamma ? stored_pack<DT>(stored_get<DT>(p.gamma, i, left, true)) : pack();
            b = p.beta ? stored_pack<DT>(stored_get<DT>(p.beta, i, left, true)) : pack();
#pragma unroll
            for (int j = 0; j < PACK; j++)
                v.v[j] = (v.v[j] - mean) * rstd * (g.v[j] + p.plus) + b.v[j];
            if (FP8)
                most = put_fp8<DT>(to, at + i, left, v, scale, most);
            else
                pack_put_whole<DT>((char *)p.y + (at + i) * 2, v);
        }
        put_moments<RMS>(p, t, lane, mean, rstd);
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

/* ---- backward: a team of warps has a stretch of rows, a pack of columns a thread, and keeps its columns' part of dgamma and
 * dbeta in registers.  Up to 256 channels a team is one warp; else it is a block, which waits once a row for its sums, while the
 * next row is on its way ---- */

template <enum dtype DT>
static __device__ __forceinline__ void row_put(void *p, int64_t i, int64_t left, bool packed, const pack &x)
{
    if (packed && left > 0) {
        pack_put_whole<DT>((char *)p + i * dtype_bytes<DT>(), x);
        return;
    }
#pragma unroll
    for (int j = 0; j < PACK; j++)
        if (j < left)
            one_put<DT>(p, i + j, x.v[j]);
}

/* Whether each thread's pack of each row of a tensor begins at a multiple of 16. */
static __device__ __forceinline__ bool rows_packed(const struct norm_bwd &p)
{
    uintptr_t all = (uintptr_t)p.dy | (uintptr_t)p.s | (uintptr_t)p.dres | (uintptr_t)p.ds | (uintptr_t)p.dx | (uintptr_t)p.gamma;

    return all % 16 == 0 && p.c % PACK == 0 && p.heads.ld % PACK == 0;
}

/* Where a team is: a row begins at `at`; of those with heads it is the head-th of its token. */
struct place {
    int64_t at;
    uint32_t head;
};
static __device__ __forceinline__ struct place place_of(const struct norm_bwd &p, uint32_t t)
{
    return {row_at(p.heads, t, p.c), p.heads.heads ? t % (uint32_t)p.heads.heads : 0};
}
/* The row behind it. */
static __device__ __forceinline__ void place_next(const struct norm_bwd &p, struct place *at)
{
    at->at += p.c;
    at->head++;
    if (at->head == (uint32_t)p.heads.heads) { /* never without heads */
        at->head = 0;
        at->at += p.heads.ld - p.heads.heads * p.c;
    }
}

/* What backward reads of a row before it knows the row's sums. */
template <enum dtype DT> struct row_back {
    stored<DT> dy, s;
    float mean, rstd;
};
template <enum dtype DT, bool RMS>
static __device__ __forceinline__ row_back<DT> row_back_get(const struct norm_bwd &p, uint32_t t, int64_t at, int i, bool packed)
{
    at += i;
    return {stored_get<DT>(p.dy, at, p.c - i, packed), stored_get<DT>(p.s, at, p.c - i, packed), RMS ? 0 : p.mean[t], p.rstd[t]};
}

/* Of a row's pack: dy times the gain, and the normal numbers. */
template <enum dtype DT>
static __device__ __forceinline__ void row_numbers(const struct norm_bwd &p, const row_back<DT> &row, int i, bool packed,
                                                   pack *dy, pack *hat)
{
    pack g = p.gamma ? stored_pack<DT>(stored_get<DT>(p.gamma, i, p.c - i, packed)) : pack();

    *dy = stored_pack<DT>(row.dy);
    *hat = stored_pack<DT>(row.s);
#pragma unroll
    for (int j = 0; j < PACK; j++) {
        hat->v[j] = (hat->v[j] - row.mean) * row.rstd;
        dy->v[j] *= g.v[j] + p.plus;
    }
}

/* The sums of a and b over the team.  part is another one for the next row, so the last row's may still be read. */
template <bool WARP> static __device__ __forceinline__ void team_sums(float *a, float *b, float (*part)[32])
{
    int lane = (int)threadIdx.x % 32;
    bool there = lane < (int)blockDim.x / 32;

    *a = warp_sum(*a);
    *b = warp_sum(*b);
    if (WARP)
        return;
    if (lane == 0) {
        part[0][threadIdx.x / 32] = *a;
        part[1][threadIdx.x / 32] = *b;
    }
    __syncthreads();
    *a = warp_sum(there ? part[0][lane] : 0.0f);
    *b = warp_sum(there ? part[1][lane] : 0.0f);
}

enum { TEAM_THREADS = 1024 };
/* How many rows a team has, and how many teams have one more; what a sum over a row is multiplied with. */
struct teams {
    uint32_t each, more;
    float of_row;
};

/* A thread has K packs, `lanes` packs apart.  Of fp32 one row at a time is in registers, and read again from the first cache, and
 * there are 512 threads at most; K is 2 for more than 4,096 channels of it, and else 1. */
template <enum dtype DT, bool RMS, int K, bool WARP>
static __global__ void __launch_bounds__(WARP ? CUDA_BLOCK : DT == DTYPE_BF16 ? TEAM_THREADS : TEAM_THREADS / 2)
    bwd_kernel(struct norm_bwd p, struct drop d, struct teams rows, float *part)
{
    __shared__ float sums[2][2][32];
    const bool two = DT == DTYPE_BF16; /* rows in registers */
    int lane = WARP ? (int)threadIdx.x % 32 : (int)threadIdx.x, lanes = WARP ? 32 : (int)blockDim.x, c = (int)p.c;
    uint32_t team = WARP ? blockIdx.x * CUDA_WARPS + threadIdx.x / 32 : blockIdx.x;
    uint32_t t = team * rows.each + (team < rows.more ? team : rows.more), end = t + rows.each + (team < rows.more);
    bool packed = rows_packed(p);
    struct place at = place_of(p, t), ahead = at;
    row_back<DT> next = {};
    pack dg[K] = {}, db[K] = {};

    if (two && t < end)
        next = row_back_get<DT, RMS>(p, t, at.at, lane * PACK, packed);
    for (int odd = 0; t < end; t++, odd ^= 1, at = ahead) {
        row_back<DT> now = next;
        stored<DT> res = {};
        pack dy, hat;
        float a = 0, b = 0, rstd;
        if (two && p.dres)
            res = stored_get<DT>(p.dres, at.at + lane * PACK, c - lane * PACK, packed);
        place_next(p, &ahead);
        if (two && t + 1 < end)
            next = row_back_get<DT, RMS>(p, t + 1, ahead.at, lane * PACK, packed);
#pragma unroll
        for (int k = 0; k < K; k++) {
            int i = (k * lanes + lane) * PACK;
            if (!two)
                now = row_back_get<DT, RMS>(p, t, at.at, i, packed);
            rstd = now.rstd;
            row_numbers<DT>(p, now, i, packed, &dy, &hat);
            pack plain = stored_pack<DT>(now.dy);
#pragma unroll
            for (int j = 0; j < PACK; j++) { /* beyond the row dy is 0 */
                a += dy.v[j];
                b = fmaf(dy.v[j], hat.v[j], b);
                dg[k].v[j] = fmaf(plain.v[j], hat.v[j], dg[k].v[j]);
                db[k].v[j] += plain.v[j];
            }
        }
        team_sums<WARP>(&a, &b, sums[odd]);
        a = RMS ? 0 : a * rows.of_row;
        b *= rows.of_row;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int i = (k * lanes + lane) * PACK, left = c - i;
            int64_t from = at.at + i;
            if (left <= 0)
                break;
            if (!two) {
                row_numbers<DT>(p, row_back_get<DT, RMS>(p, t, at.at, i, packed), i, packed, &dy, &hat);
                res = p.dres ? stored_get<DT>(p.dres, from, left, packed) : stored<DT>();
            }
            pack r = stored_pack<DT>(res);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                dy.v[j] = rounded<DT>(fmaf(fmaf(-hat.v[j], b, dy.v[j] - a), rstd, r.v[j]));
            row_put<DT>(p.ds, from, left, packed, dy);
            if (p.dx) {
                struct drop with = d; /* once for all rows would be registers too many */
                drop_begin(&with);
                pack f = drop_pack(with, t, i);
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    dy.v[j] *= f.v[j];
                row_put<DT>(p.dx, from, left, packed, dy);
            }
        }
    }
    part += (int64_t)team * 2 * c;
#pragma unroll
    for (int k = 0; k < K; k++) {
        int i = (k * lanes + lane) * PACK;
        if (i < c) {
            pack_put<DTYPE_F32>(part, i, c - i, dg[k]);
            pack_put<DTYPE_F32>(part, c + i, c - i, db[k]);
        }
    }
}

/* ---- the ops ---- */

enum { ROW_MOST = 16 * 32 * PACK };

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

/* Whether row_kernel may have it. */
static bool in_registers(enum dtype dt, const struct norm_fwd *p)
{
    uintptr_t all = (uintptr_t)p->x | (uintptr_t)p->residual | (uintptr_t)p->s | (uintptr_t)p->y | (uintptr_t)p->gamma |
                    (uintptr_t)p->beta;

    return dt == DTYPE_BF16 && !(p->drop && p->drop->p > 0) && p->c % PACK == 0 && p->c <= ROW_MOST && all % 16 == 0 &&
           p->x_heads.ld % PACK == 0 && p->y_heads.ld % PACK == 0;
}

template <bool RMS, bool FP8> static void launch_rows(struct device *dev, dim3 blocks, const struct norm_fwd *p,
                                                      const struct fp8_quantize *to)
{
    auto *kernel = p->c <= 4 * 32 * PACK ? row_kernel<RMS, FP8, 4> : p->c <= 8 * 32 * PACK ? row_kernel<RMS, FP8, 8>
                                                                                          : row_kernel<RMS, FP8, 16>;

    LAUNCH(kernel, blocks, CUDA_BLOCK, dev, *p, *to);
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
    if (in_registers(dt, p)) {
        if (p->fp8)
            rms ? launch_rows<true, true>(dev, blocks, p, to) : launch_rows<false, true>(dev, blocks, p, to);
        else
            rms ? launch_rows<true, false>(dev, blocks, p, to) : launch_rows<false, false>(dev, blocks, p, to);
    } else if (p->fp8) {
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
    if (p->t > UINT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "%s: %lld rows", op, (long long)p->t);
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

/* How many teams share the rows: by the shape alone, so that the same sums are added everywhere.  Of blocks as many as an H100
 * has at once, 32 warps a multiprocessor: one more would be waited for by all. */
enum { WARP_TEAMS = 2048, MULTIPROCESSORS = 132, TEAM_WARPS = 32, TEAM_MOST = TEAM_THREADS * PACK };

template <enum dtype DT, int K, bool WARP> static void launch_bwd(struct device *dev, const struct norm_bwd *p, bool rms,
                                                         unsigned blocks, unsigned threads, int64_t teams, float *part)
{
    struct teams rows = {(uint32_t)(p->t / teams), (uint32_t)(p->t % teams), 1.0f / (float)p->c};
    auto *kernel = rms ? bwd_kernel<DT, true, K, WARP> : bwd_kernel<DT, false, K, WARP>;
    struct drop d = drop_of(p->drop, p->c);

    if (d.keep == 0)
        d.keep = 1; /* with a threshold of 0 */
    LAUNCH(kernel, dim3(blocks), threads, dev, *p, d, rows, part);
}

static int bwd(struct device *dev, enum dtype dt, const struct norm_bwd *p, bool rms, const char *op, struct err *e)
{
    bool warp = p->c <= 32 * PACK;
    int k = dt == DTYPE_F32 && p->c > TEAM_MOST / 2 ? 2 : 1;
    int64_t warps = (packs_of(p->c) + 32 * k - 1) / (32 * k);
    int64_t most = warp ? (int64_t)WARP_TEAMS : TEAM_WARPS / warps * MULTIPROCESSORS;
    int64_t teams = p->t < most ? p->t : most;
    size_t w = dtype_size(dt);
    void *part;

    TRY(check_norm_bwd(dt, p, op, e));
    if (p->c > TEAM_MOST)
        return err_set(e, ERR_UNSUPPORTED, "%s: %lld channels are more than %d", op, (long long)p->c, TEAM_MOST);
    if (p->t == 0)
        return 0;
    if (p->t > UINT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "%s: %lld rows", op, (long long)p->t);
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
    unsigned threads = warp ? (unsigned)CUDA_BLOCK : (unsigned)warps * 32;
    if (warp)
        teams = (teams + CUDA_WARPS - 1) / CUDA_WARPS * CUDA_WARPS;
    unsigned blocks = (unsigned)(warp ? teams / CUDA_WARPS : teams);
    TRY(cuda_scratch(dev, &part, (size_t)teams * 2 * (size_t)p->c * sizeof(float), e));
    BY_TYPE(dt, {
        if (warp)
            launch_bwd<DT, 1, true>(dev, p, rms, blocks, threads, teams, (float *)part);
        else if (k == 1)
            launch_bwd<DT, 1, false>(dev, p, rms, blocks, threads, teams, (float *)part);
        else
            launch_bwd<DTYPE_F32, 2, false>(dev, p, rms, blocks, threads, teams, (float *)part);
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
