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
    /* As registers go. */
    enum { ROWS = CUDA_ARCH >= 1200 && ACT == ACT_CLAMPED && GLU && BACK ? 1 : 2, BLOCKS = ACT == ACT_GELU_ERF ? 2 : 3 };
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

/* The sums of a square's columns, by those that each thread has of its rows, in their order.  of: the square's own memory. */
static __device__ __forceinline__ void column_sums(float *of, float *sums, const pack &sum, int i, int j, int64_t c0,
                                                   int64_t cols)
{
    int c = (int)threadIdx.x;
    float s = 0;

    __syncthreads();
    pack_put<DTYPE_F32>(of, i * SIDE + 8 * j, PACK, sum);
    __syncthreads();
    for (int u = 0; u < UNITS && c < SIDE; u++)
        s += of[u * SIDE + c];
    if (c < SIDE && c0 + c < cols)
        sums[c0 + c] = s;
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
    if (sums)
        column_sums((float *)square, sums + blockIdx.x / squares * p.cols, so_far.sum, i, j, c0, p.cols);
    if (p.amax)
        add_amax(p.amax, so_far.most, part);
}

/* ---- by blocks ---- */

static __device__ __forceinline__ float largest_of(const pack &x) { return __uint_as_float(larger(0, x)); }
static __device__ __forceinline__ float inverse(float scale) { return 1 / scale; }

/* The largest of a square's rows, or of all of it, for the eight rows of this thread; `of` is what the threads found in their own
 * columns.  all: CUDA_WARPS floats, for squares. */
template <bool SQUARES> static __device__ __forceinline__ void across_columns(float of[PACK], float *all)
{
#pragma unroll
    for (int k = 0; k < PACK; k++)
#pragma unroll
        for (int o = UNITS / 2; o; o /= 2)
            of[k] = max_or_nan(of[k], __shfl_xor_sync(~0u, of[k], o));
    if constexpr (SQUARES) {
#pragma unroll
        for (int k = 1; k < PACK; k++)
            of[0] = max_or_nan(of[0], of[k]);
        of[0] = max_or_nan(of[0], __shfl_xor_sync(~0u, of[0], UNITS));
        if (threadIdx.x % 32 == 0)
            all[threadIdx.x / 32] = of[0];
        __syncthreads();
        for (int k = 0; k < CUDA_WARPS; k++)
            of[0] = max_or_nan(of[0], all[k]);
#pragma unroll
        for (int k = 1; k < PACK; k++)
            of[k] = of[0];
    }
}

/* 1 / scale of line i of n (rows of y, or of yt), of a matrix whose k is `inside` and whose block of it is `block`. */
template <bool SQUARES>
static __device__ __forceinline__ void put_inverse(float *inv, int64_t n, int64_t inside, int64_t i, int64_t block, float scale)
{
    const enum fp8_scales by = SQUARES ? FP8_OF_SQUARES : FP8_OF_ROWS;
    int64_t ld = fp8_scales_ld(by, n, inside), blocks = fp8_blocks_of(inside);

    if constexpr (SQUARES) {
        for (int64_t k = block; i % SIDE == 0 && k < (block == blocks - 1 ? ld : block + 1); k++)
            inv[i / SIDE * ld + k] = k == block ? inverse(scale) : 0;
    } else if (i < ld) {
        inv[block * ld + i] = i < n ? inverse(scale) : 0;
    }
}

struct blocks_call : fp8_blocks {
    uint32_t bits; /* fp8_block_bits: no register is left for a choice */
};

/* A block has a square of 128 by 128, a thread 8 columns of 8 rows, which it keeps in registers: largest values first, of rows by
 * shuffles among the 16 threads that share them, of columns through shared memory; then the bytes of y, and those of yt, turned
 * in the square. */
template <enum fp8 TO, bool SQUARES> static __global__ void __launch_bounds__(CUDA_BLOCK, SQUARES ? 1 : 2)
    blocks_kernel(struct blocks_call p, float *sums)
{
    __shared__ uint64_t square[SIDE * UNITS];
    __shared__ float most[SIDE], all[CUDA_WARPS];
    int64_t squares = (p.cols + SIDE - 1) / SIDE, r0 = blockIdx.x / squares * SIDE, c0 = blockIdx.x % squares * SIDE;
    int j = (int)threadIdx.x % UNITS, i = (int)threadIdx.x / UNITS, c = (int)threadIdx.x;
    int64_t col = c0 + 8 * j, left = p.cols - col;
    bool whole = r0 + SIDE <= p.rows && c0 + SIDE <= p.cols && p.cols % PACK == 0 && (uintptr_t)p.x % 16 == 0;
    float *of = (float *)square, of_row[PACK];
    pack x[PACK], of_col = {}, sum = {};

#pragma unroll
    for (int k = 0; k < PACK; k++) {
        int64_t r = r0 + 8 * i + k;
        x[k] = whole ? source_get<DTYPE_BF16, true>(p.x, r * p.cols + col, left)
                     : source_get<DTYPE_BF16, false>(p.x, r * p.cols + col, r < p.rows ? left : 0);
        of_row[k] = largest_of(x[k]);
#pragma unroll
        for (int q = 0; q < PACK; q++) {
            of_col.v[q] = max_or_nan(of_col.v[q], fabsf(x[k].v[q]));
            sum.v[q] += x[k].v[q];
        }
    }
    across_columns<SQUARES>(of_row, all);
#pragma unroll
    for (int k = 0; k < PACK; k++) {
        int64_t r = r0 + 8 * i + k;
        float scale = fp8_block_scale(fp8_max(TO), of_row[k], p.bits);
        if (p.y && j == 0)
            put_inverse<SQUARES>(p.inv, p.rows, p.cols, r, c0 / SIDE, scale);
        if (p.y && r < p.rows)
            put_eight(p.y, r * p.cols + col, left, fp8_eight<TO>(x[k], scale));
    }
    if (p.yt) {
        if constexpr (!SQUARES) {
            pack_put<DTYPE_F32>(of, i * SIDE + 8 * j, PACK, of_col);
            __syncthreads();
            for (int u = 1; u < UNITS && c < SIDE; u++)
                of[c] = max_or_nan(of[c], of[u * SIDE + c]);
        }
        if (c < SIDE) {
            float scale = fp8_block_scale(fp8_max(TO), SQUARES ? of_row[0] : of[c], p.bits);
            most[c] = scale;
            put_inverse<SQUARES>(p.inv_t, p.cols, p.yt_ld, c0 + c, r0 / SIDE, scale);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            uint64_t bytes = 0;
#pragma unroll
            for (int q = 0; q < PACK; q += 2)
                bytes |= (uint64_t)fp8_pair<TO>(x[k].v[q] * most[8 * j + q], x[k].v[q + 1] * most[8 * j + q + 1]) << 8 * q;
            square[square_at(8 * i + k, j)] = bytes;
        }
        __syncthreads();
        square_turn(square, p.yt, r0, c0, p.cols, p.yt_ld);
    }
    if (sums)
        column_sums(of, sums + blockIdx.x / squares * p.cols, sum, i, j, c0, p.cols);
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

/* A kernel that has a square a block, over a matrix; the sums of the columns of each square are added up behind it. */
template <class P>
static int by_squares(struct device *dev, const char *op, const P *p, void (*kernel)(P, float *), struct err *e)
{
    int64_t bands = (p->rows + SIDE - 1) / SIDE, squares = bands * ((p->cols + SIDE - 1) / SIDE);
    void *sums = NULL;

    if (squares == 0)
        return 0;
    if (squares > INT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "%s: %lld x %lld", op, (long long)p->rows, (long long)p->cols);
    if (p->colsum)
        TRY(cuda_scratch(dev, &sums, (size_t)(bands * p->cols) * sizeof(float), e));
    LAUNCH(kernel, dim3((unsigned)squares), CUDA_BLOCK, dev, *p, (float *)sums);
    if (p->colsum)
        columns_add(dev, p->colsum, p->cols, NULL, 0, (const float *)sums, (int)bands);
    return cuda_launched(dev, op, e);
}

extern "C" int fp8_quantize_cuda(struct device *dev, const struct fp8_quantize *p, struct err *e)
{
    TRY(check_fp8_quantize(p, e));
    return by_squares(dev, "fp8_quantize", p, kernel_of(p), e);
}

extern "C" int fp8_blocks_cuda(struct device *dev, const struct fp8_blocks *p, struct err *e)
{
    const struct blocks_call call = {*p, fp8_block_bits(p->fp32_scales)};

    TRY(check_fp8_blocks(p, e));
    if (p->to == FP8_E4M3)
        return by_squares(dev, "fp8_blocks", &call,
                          p->squares ? blocks_kernel<FP8_E4M3, true> : blocks_kernel<FP8_E4M3, false>, e);
    return by_squares(dev, "fp8_blocks", &call,
                      p->squares ? blocks_kernel<FP8_E5M2, true> : blocks_kernel<FP8_E5M2, false>, e);
}

extern "C" int fp8_update_cuda(struct device *dev, const struct fp8_update *p, struct err *e)
{
    TRY(check_fp8_update(p, e));
    if (p->n == 0)
        return 0;
    LAUNCH(update_kernel, dim3((unsigned)((p->n + CUDA_BLOCK - 1) / CUDA_BLOCK)), CUDA_BLOCK, dev, *p);
    return cuda_launched(dev, "fp8_update", e);
}
