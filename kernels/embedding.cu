#include "kernels/lanes.cuh"

/* What is no token or no position makes its row NaN: the host, which would have to wait for the device, is not asked, and
 * the loss shows it. */

/* A block a row. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    fwd_kernel(void *out, struct embedding p, const void *wte, const void *wpe)
{
    for (int64_t r = blockIdx.x; r < p.t; r += gridDim.x) {
        int64_t id = p.token[r], row = id - p.first, at = wpe ? p.pos[r] : 0;
        bool here = row >= 0 && row < p.n_vocab, bad = id < 0 || at < 0 || (wpe && at >= p.n_pos);
        for (int64_t i = threadIdx.x * PACK; i < p.c; i += blockDim.x * PACK) {
            int64_t left = p.c - i;
            pack v = here ? pack_get<DT>(wte, row * p.c + i, left) : pack();
            if (bad) {
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    v.v[j] = nanf("");
            } else if (wpe) {
                pack w = pack_get<DT>(wpe, at * p.c + i, left);
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    v.v[j] += w.v[j];
            }
            pack_put<DT>(out, r * p.c + i, left, v);
        }
    }
}

/* ---- backward: the rows of dout sorted by where they go, stable, so that the additions to a row of the table come in the
 * order of t without atomics ---- */

#define NOWHERE (~(uint64_t)0)

static __global__ void __launch_bounds__(CUDA_BLOCK)
    keys_kernel(uint64_t *key, uint32_t *row, const int32_t *id, int64_t t, int64_t first, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;

    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < t; i += step) {
        int64_t at = id[i] - first;
        key[i] = id[i] >= 0 && at >= 0 && at < n ? (uint64_t)at : NOWHERE;
        row[i] = (uint32_t)i;
    }
}

/* A block has place blockIdx.x of the sorted rows; it works if a run of equal keys begins there.  WHOLE: packs are whole and
 * begin at 16 bytes.  A token in twenty is the same one, so AHEAD rows of a run are fetched at once and added one by one. */
enum { AHEAD = 8 };
template <enum dtype DT, bool WHOLE> static __global__ void __launch_bounds__(CUDA_BLOCK)
    bwd_kernel(float *table, const void *dout, const uint64_t *key, const uint32_t *row, int64_t t, int64_t c)
{
    int64_t first = blockIdx.x;
    uint64_t k = key[first];

    if (k == NOWHERE || (first > 0 && key[first - 1] == k))
        return;
    for (int64_t i = threadIdx.x * PACK; i < c; i += blockDim.x * PACK) {
        pack s = pack_get<DTYPE_F32>(table, (int64_t)k * c + i, c - i);
        for (int64_t r = first, n = AHEAD; n == AHEAD; r += AHEAD) {
            int64_t at[AHEAD];
            n = 0;
#pragma unroll
            for (int a = 0; a < AHEAD; a++) { /* places behind the last stand for it, which is fetched and not added */
                int64_t q = r + a < t ? r + a : t - 1;
                n += r + a < t && key[q] == k;
                at[a] = (int64_t)row[q] * c + i;
            }
            pack d[AHEAD];
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
                d[a] = WHOLE ? pack_whole<DT>((const char *)dout + at[a] * (DT == DTYPE_BF16 ? 2 : 4))
                             : pack_get<DT>(dout, at[a], c - i);
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
#pragma unroll
                for (int j = 0; j < PACK; j++)
                    s.v[j] = a < n ? s.v[j] + d[a].v[j] : s.v[j];
        }
        pack_put<DTYPE_F32>(table, (int64_t)k * c + i, c - i, s);
    }
}

static size_t round256(size_t n) { return (n + 255) / 256 * 256; }

/* Of the numbers up to n, and of NOWHERE, which cut to so many is still behind all below n. */
static int bits_of(int64_t n)
{
    int bits = 1;

    while (n >> bits)
        bits++;
    return bits;
}

/* table (n, C) += the rows of dout, each where its id - first says. */
static int add_rows(struct device *dev, enum dtype dt, float *table, int64_t n, const int32_t *id, int64_t first, int64_t t,
                    int64_t c, const void *dout, struct err *e)
{
    size_t keys = round256((size_t)t * 8), rows = round256((size_t)t * 4), temp;
    char *s;

    TRY(cub_temp(dev, t, &temp, e));
    TRY(cuda_scratch(dev, (void **)&s, 2 * keys + 2 * rows + temp, e));
    uint64_t *key = (uint64_t *)s, *sorted = (uint64_t *)(s + keys);
    uint32_t *row = (uint32_t *)(s + 2 * keys), *order = (uint32_t *)(s + 2 * keys + rows);
    LAUNCH(keys_kernel, dim3(cuda_blocks(dev, t, CUDA_BLOCK)), CUDA_BLOCK, dev, key, row, id, t, first, n);
    TRY(cub_sort(dev, s + 2 * keys + 2 * rows, temp, key, sorted, row, order, t, bits_of(n), e));
    BY_TYPE(dt, {
        auto *kernel = c % PACK == 0 && (uintptr_t)dout % 16 == 0 ? bwd_kernel<DT, true> : bwd_kernel<DT, false>;
        LAUNCH(kernel, dim3((unsigned)t), row_threads(c), dev, table, dout, (const uint64_t *)sorted, (const uint32_t *)order, t,
               c);
    });
    return cuda_launched(dev, "embedding_bwd", e);
}

/* ---- rotary positions: a block a row, eight pairs a thread ---- */

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) rope_kernel(void *x, struct rope p)
{
    int64_t half = p.rot / 2;
    int per = (int)((half + PACK - 1) / PACK), work = per * (int)p.heads;

    for (int64_t r = blockIdx.x; r < p.t; r += gridDim.x) {
        int64_t pos = p.pos[r];
        bool bad = pos < 0 || pos >= p.n_pos;
        const float *cs = p.cs + (bad ? 0 : pos * p.rot);
        for (int w = (int)threadIdx.x; w < work; w += (int)blockDim.x) {
            int64_t i = w % per * PACK, at = r * p.ldx + w / per * p.d + i, left = half - i;
            pack c = pack_get<DTYPE_F32>(cs, i, left), s = pack_get<DTYPE_F32>(cs, half + i, left);
            pack a = pack_get<DT>(x, at, left), b = pack_get<DT>(x, at + half, left);
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                float u = a.v[j], v = b.v[j], sine = p.inverse ? -s.v[j] : s.v[j];
                a.v[j] = bad ? nanf("") : u * c.v[j] - v * sine;
                b.v[j] = bad ? nanf("") : v * c.v[j] + u * sine;
            }
            pack_put<DT>(x, at, left, a);
            pack_put<DT>(x, at + half, left, b);
        }
    }
}

/* ---- the ops ---- */

extern "C" int embedding_fwd_cuda(struct device *dev, enum dtype dt, void *out, const struct embedding *p, const void *wte,
                                  const void *wpe, struct err *e)
{
    TRY(check_embedding(dt, p, "embedding_fwd", e));
    if (p->t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(fwd_kernel<DT>, dim3(cuda_blocks(dev, p->t, 1)), row_threads(p->c), dev, out, *p, wte, wpe));
    return cuda_launched(dev, "embedding_fwd", e);
}

extern "C" int embedding_bwd_cuda(struct device *dev, enum dtype dt, float *dwte, float *dwpe, const struct embedding *p,
                                  const void *dout, struct err *e)
{
    TRY(check_embedding(dt, p, "embedding_bwd", e));
    if (p->t == 0)
        return 0;
    TRY(add_rows(dev, dt, dwte, p->n_vocab, p->token, p->first, p->t, p->c, dout, e));
    return dwpe ? add_rows(dev, dt, dwpe, p->n_pos, p->pos, 0, p->t, p->c, dout, e) : 0;
}

extern "C" int rope_cuda(struct device *dev, enum dtype dt, void *x, const struct rope *p, struct err *e)
{
    TRY(check_rope(dt, p, e));
    if (p->t == 0 || p->heads == 0 || p->rot == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(rope_kernel<DT>, dim3(cuda_blocks(dev, p->t, 1)), row_threads(p->heads * packs_of(p->rot / 2) * PACK),
                       dev, x, *p));
    return cuda_launched(dev, "rope", e);
}
