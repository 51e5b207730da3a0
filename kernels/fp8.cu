#include "kernels/act.cuh"
#include "kernels/columns.cuh"
#include "kernels/fp8_square.cuh"

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) amax_kernel(float *amax, const void *x, int64_t n)
{
    __shared__ uint32_t part[CUDA_WARPS];
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;
    uint32_t most = 0;

#pragma unroll 4
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step)
        most = larger(most, pack_get<DT>(x, i, n - i));
    add_amax(amax, most, part);
}

/* ---- what is converted: elements col .. col + 7 of row r, zeros from `left` on.  Where all of a square is there and lies as
 * packs do (WHOLE, if `packed`) nothing has to be asked for an element ---- */

template <enum dtype DT, bool WHOLE> static __device__ __forceinline__ pack source_get(const void *p, int64_t i, int64_t left)
{
    return WHOLE ? pack_whole<DT>((const char *)p + i * dtype_bytes<DT>()) : pack_get<DT>(p, i, left);
}

template <enum dtype DT> struct plain {
    enum { ROWS = DT == DTYPE_BF16 ? 4 : 2, BLOCKS = 3 }; /* rows that are loaded before the first is stored; blocks at once */
    static __device__ __forceinline__ bool packed(const struct fp8_quantize &p)
    {
        return p.cols % PACK == 0 && (uintptr_t)p.x % 16 == 0;
    }
    template <bool WHOLE>
    static __device__ __forceinline__ pack get(const struct fp8_quantize &p, int64_t r, int64_t col, int64_t left)
    {
        return source_get<DT, WHOLE>(p.x, r * p.cols + col, left);
    }
};

/* What act_fwd, act_bwd, glu_fwd or glu_bwd would have stored. */
template <enum act ACT, bool GLU, bool BACK> struct activated {
    enum { ROWS = 2, BLOCKS = ACT == ACT_GELU_ERF ? 2 : 3 }; /* as registers go */
    static __device__ __forceinline__ bool packed(const struct fp8_quantize &p)
    {
        return p.cols % (GLU && BACK ? 2 * PACK : PACK) == 0 && ((uintptr_t)p.x | (BACK ? (uintptr_t)p.dy : 0)) % 16 == 0;
    }
    template <bool WHOLE>
    static __device__ __forceinline__ pack get(const struct fp8_quantize &p, int64_t r, int64_t col, int64_t left)
    {
        int64_t f = GLU && BACK ? p.cols / 2 : p.cols, wide = GLU ? 2 * f : f, from = col < f ? col : col - f;
        pack a = source_get<DTYPE_BF16, WHOLE>(p.x, r * wide + from, left), up = {}, d = {};
        if (GLU)
            up = source_get<DTYPE_BF16, WHOLE>(p.x, r * wide + f + from, left);
        if (BACK)
            d = source_get<DTYPE_BF16, WHOLE>(p.dy, r * f + from, left);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            float slope, y = act_of<ACT, true>(a.v[j], &slope), up_slope, u = up_of<ACT>(up.v[j], &up_slope);
            if (!BACK)
                y = GLU ? y * u : y;
            else if (GLU)
                y = col < f ? d.v[j] * u * slope : d.v[j] * y * up_slope;
            else
                y = d.v[j] * slope;
            a.v[j] = rounded<DTYPE_BF16>(y);
        }
        return a;
    }
};

/* What a thread makes of its eight rows: their bytes in the square and in y, the columns' sums, the largest. */
struct columns_so_far {
    pack sum;
    uint32_t most;
};

/* Rows r0 + from .. of a square, AT_ONCE of them, which are loaded before the first is stored. */
template <typename SOURCE, enum fp8 TO, bool WHOLE, int AT_ONCE>
static __device__ __forceinline__ void quantize_rows(const struct fp8_quantize &p, uint64_t *square, int64_t r0, int from, int j,
                                                     int64_t col, float scale, struct columns_so_far *so_far)
{
    int64_t left = p.cols - col;
    pack x[AT_ONCE];

#pragma unroll
    for (int k = 0; k < AT_ONCE; k++)
        x[k] = SOURCE::template get<WHOLE>(p, r0 + from + k, col, WHOLE || r0 + from + k < p.rows ? left : 0);
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
        int64_t r = r0 + from + k;
        uint64_t bytes = fp8_eight<TO>(x[k], scale);
        so_far->most = larger(so_far->most, x[k]);
#pragma unroll
        for (int q = 0; q < PACK; q++)
            so_far->sum.v[q] += x[k].v[q];
        square[square_at(from + k, j)] = bytes;
        if (WHOLE && p.y)
            *(uint64_t *)(p.y + r * p.cols + col) = bytes;
        else if (p.y && r < p.rows)
            put_eight(p.y, r * p.cols + col, left, bytes);
    }
}

/* A block has a square of 128 by 128, a thread 8 columns of 8 rows.  sums (NULL: not wanted): those of the columns of each 128
 * rows, in the order of the rows. */
template <typename SOURCE, enum fp8 TO> static __global__ void __launch_bounds__(CUDA_BLOCK, SOURCE::BLOCKS)
    quantize_kernel(struct fp8_quantize p, float *sums)
{
    __shared__ uint64_t square[SIDE * UNITS];
    __shared__ uint32_t part[CUDA_WARPS];
    int64_t squares = (p.cols + SIDE - 1) / SIDE, r0 = blockIdx.x / squares * SIDE, c0 = blockIdx.x % squares * SIDE;
    int j = (int)threadIdx.x % UNITS, i = (int)threadIdx.x / UNITS;
    int64_t col = c0 + 8 * j;
    float scale = *p.scale;
    struct columns_so_far so_far = {};

    bool whole = r0 + SIDE <= p.rows && c0 + SIDE <= p.cols && SOURCE::packed(p) && (uintptr_t)p.y % 8 == 0;

#pragma unroll 1
    for (int from = 8 * i, end = from + 8; from < end; from += whole ? SOURCE::ROWS : 1)
        if (whole)
            quantize_rows<SOURCE, TO, true, SOURCE::ROWS>(p, square, r0, from, j, col, scale, &so_far);
        else
            quantize_rows<SOURCE, TO, false, 1>(p, square, r0, from, j, col, scale, &so_far);
    __syncthreads();
    if (p.yt)
        square_turn(square, p.yt, r0, c0, p.cols, p.yt_ld ? p.yt_ld : p.rows);
    if (sums) {
        float *of = (float *)square, s = 0;
        int c = (int)threadIdx.x;
        __syncthreads();
        pack_put<DTYPE_F32>(of, i * SIDE + 8 * j, PACK, so_far.sum);
        __syncthreads();
        for (int u = 0; u < UNITS && c < SIDE; u++)
            s += of[u * SIDE + c];
        if (c < SIDE && c0 + c < p.cols)
            sums[blockIdx.x / squares * p.cols + c0 + c] = s;
    }
    if (p.amax)
        add_amax(p.amax, so_far.most, part);
}

/* A thread a tensor: there are few, and their histories short. */
static __global__ void __launch_bounds__(CUDA_BLOCK) update_kernel(struct fp8_update p)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.n)
        fp8_update_row(&p, p.rows + i * p.ld);
}

/* ---- the ops ---- */

typedef void quantize_kernel_fn(struct fp8_quantize p, float *sums);

template <typename SOURCE> static quantize_kernel_fn *to_format(const struct fp8_quantize *p)
{
    return p->to == FP8_E4M3 ? quantize_kernel<SOURCE, FP8_E4M3> : quantize_kernel<SOURCE, FP8_E5M2>;
}
template <enum act ACT> static quantize_kernel_fn *through(const struct fp8_quantize *p)
{
    if (p->glu)
        return p->dy ? to_format<activated<ACT, true, true>>(p) : to_format<activated<ACT, true, false>>(p);
    return p->dy ? to_format<activated<ACT, false, true>>(p) : to_format<activated<ACT, false, false>>(p);
}
#define THROUGH(name, ...) \
    case name: return through<name>(p);
static quantize_kernel_fn *kernel_of(const struct fp8_quantize *p)
{
    if (p->act == ACT_NONE)
        return p->dt == DTYPE_BF16 ? to_format<plain<DTYPE_BF16>>(p) : to_format<plain<DTYPE_F32>>(p);
    switch (p->act) {
        ACTS(THROUGH)
    default: return NULL;
    }
}

extern "C" int fp8_amax_cuda(struct device *dev, enum dtype dt, float *amax, const void *x, int64_t n, struct err *e)
{
    TRY(check_n(dt, n, "fp8_amax", e));
    TRY(cuda_fill(dev, amax, 0, sizeof *amax, e));
    if (n == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(amax_kernel<DT>, dim3(cuda_blocks(dev, packs_of(n), CUDA_BLOCK * 4)), CUDA_BLOCK, dev, amax, x, n));
    return cuda_launched(dev, "fp8_amax", e);
}

extern "C" int fp8_quantize_cuda(struct device *dev, const struct fp8_quantize *p, struct err *e)
{
    int64_t bands = (p->rows + SIDE - 1) / SIDE, squares = bands * ((p->cols + SIDE - 1) / SIDE);
    void *sums = NULL;

    TRY(check_fp8_quantize(p, e));
    if (p->rows == 0 || p->cols == 0)
        return 0;
    if (squares > INT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "fp8_quantize: %lld x %lld", (long long)p->rows, (long long)p->cols);
    if (p->colsum)
        TRY(cuda_scratch(dev, &sums, (size_t)(bands * p->cols) * sizeof(float), e));
    LAUNCH(kernel_of(p), dim3((unsigned)squares), CUDA_BLOCK, dev, *p, (float *)sums);
    if (p->colsum)
        columns_add(dev, p->colsum, p->cols, NULL, 0, (const float *)sums, (int)bands);
    return cuda_launched(dev, "fp8_quantize", e);
}

extern "C" int fp8_update_cuda(struct device *dev, const struct fp8_update *p, struct err *e)
{
    TRY(check_fp8_update(p, e));
    if (p->n == 0)
        return 0;
    LAUNCH(update_kernel, dim3((unsigned)((p->n + CUDA_BLOCK - 1) / CUDA_BLOCK)), CUDA_BLOCK, dev, *p);
    return cuda_launched(dev, "fp8_update", e);
}
