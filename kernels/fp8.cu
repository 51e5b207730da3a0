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

/* The larger of each half of two words.  Bits of |x| in bf16 are as large as x is, and those of NaN larger than any number's. */
static __device__ __forceinline__ uint32_t larger_halves(uint32_t a, uint32_t b)
{
#if defined(SIMT)
    uint32_t low = (a & 0xffff) > (b & 0xffff) ? a : b, high = a > b ? a : b;
    return (high & 0xffff0000u) | (low & 0xffff);
#else
    return __vmaxu2(a, b);
#endif
}

enum { LINE = SIDE + 8 }; /* so that 16 threads that write beside one another meet no common bank */
/* The largest of a square's rows and columns, as the UNITS threads that share one have found them: bits of bf16. */
struct alignas(16) block_parts {
    uint16_t of_row[UNITS][LINE], of_col[UNITS][LINE];
};

/* Puts what a thread found in its eight rows and columns to its places among the parts. */
static __device__ __forceinline__ void put_parts(struct block_parts *part, const stored<DTYPE_BF16> x[PACK], int i, int j)
{
    uint4 of_col = {}, of_row;
    uint32_t row[PACK];

#pragma unroll
    for (int k = 0; k < PACK; k++) {
        const uint32_t sign = 0x80008000u;
        uint4 a = {x[k].w[0].x & ~sign, x[k].w[0].y & ~sign, x[k].w[0].z & ~sign, x[k].w[0].w & ~sign};
        of_col.x = larger_halves(of_col.x, a.x), of_col.y = larger_halves(of_col.y, a.y);
        of_col.z = larger_halves(of_col.z, a.z), of_col.w = larger_halves(of_col.w, a.w);
        row[k] = larger_halves(larger_halves(a.x, a.y), larger_halves(a.z, a.w));
    }
#pragma unroll
    for (int k = 0; k < PACK; k += 2)
        row[k] = larger_halves(__byte_perm(row[k], row[k + 1], 0x5410), __byte_perm(row[k], row[k + 1], 0x7632));
    of_row.x = row[0], of_row.y = row[2], of_row.z = row[4], of_row.w = row[6];
    *(uint4 *)&part->of_row[j][8 * i] = of_row;
    *(uint4 *)&part->of_col[i][8 * j] = of_col;
}

/* 1 / scale of line i of n (rows of y, or of yt), of a matrix whose k is `inside` and whose block of it is `block`. */
template <bool SQUARES>
static __device__ __forceinline__ void put_inverse(float *inv, int64_t n, int64_t inside, int64_t i, int64_t block, float scale)
{
    const enum fp8_scales by = SQUARES ? FP8_OF_SQUARES : FP8_OF_ROWS;
    int64_t ld = fp8_scales_ld(by, n, inside), blocks = fp8_blocks_of(inside);

    if constexpr (SQUARES) {
        for (int64_t k = block; i % SIDE == 0 && k < (block == blocks - 1 ? ld : block + 1); k++)
            inv[i / SIDE * ld + k] = k == block ? 1 / scale : 0;
    } else if (i < ld) {
        inv[block * ld + i] = i < n ? 1 / scale : 0;
    }
}

/* The largest of a row (the first threads of a block) or a column (the others), of squares that of all. */
template <bool SQUARES> static __device__ __forceinline__ uint32_t largest_of(const struct block_parts *part, uint32_t *all)
{
    int line = (int)threadIdx.x % SIDE;
    const uint16_t *of = threadIdx.x < SIDE ? &part->of_row[0][line] : &part->of_col[0][line];
    uint32_t most = 0;

#pragma unroll
    for (int u = 0; u < UNITS; u++)
        most = of[u * LINE] > most ? of[u * LINE] : most;
    if constexpr (SQUARES) {
        most = warp_largest(most);
        if (threadIdx.x % 32 == 0)
            all[threadIdx.x / 32] = most;
        __syncthreads();
        for (int k = 0; k < CUDA_WARPS; k++)
            most = all[k] > most ? all[k] : most;
    }
    return most;
}

struct blocks_call : fp8_blocks {
    uint32_t bits; /* fp8_block_bits */
};

/* A block has a square of 128 by 128, a thread 8 columns of 8 rows, which it keeps as they lie in memory: largest values of rows
 * and columns first, of which each thread then makes one scale; the bytes of y, and those of yt, turned in the square. */
template <enum fp8 TO, bool SQUARES> static __global__ void __launch_bounds__(CUDA_BLOCK, CUDA_ARCH >= 890 ? 3 : 2)
    blocks_kernel(struct blocks_call p, float *sums)
{
    __shared__ union {
        struct block_parts part;
        uint64_t square[SIDE * UNITS];
    } at;
    alignas(16) __shared__ float scales[2][SIDE]; /* of rows, of columns */
    __shared__ uint32_t all[CUDA_WARPS];
    int64_t squares = (p.cols + SIDE - 1) / SIDE, r0 = blockIdx.x / squares * SIDE, c0 = blockIdx.x % squares * SIDE;
    int j = (int)threadIdx.x % UNITS, i = (int)threadIdx.x / UNITS, line = (int)threadIdx.x % SIDE;
    int64_t col = c0 + 8 * j, left = p.cols - col, r = r0 + 8 * i, first = r * p.cols + col;
    bool packed = p.cols % PACK == 0 && (uintptr_t)p.x % 16 == 0;
    bool whole = packed && r0 + SIDE <= p.rows && c0 + SIDE <= p.cols && (uintptr_t)p.y % 8 == 0;
    stored<DTYPE_BF16> x[PACK];
    pack sum = {};
    float scale;

#pragma unroll
    for (int k = 0; k < PACK; k++)
        x[k] = stored_get<DTYPE_BF16>(p.x, first + k * p.cols, whole || r + k < p.rows ? left : 0, packed);
    put_parts(&at.part, x, i, j);
    __syncthreads();
    scale = fp8_block_scale(fp8_max(TO), __uint_as_float(largest_of<SQUARES>(&at.part, all) << 16), p.bits);
    scales[threadIdx.x / SIDE][line] = scale;
    if (threadIdx.x < SIDE && p.y)
        put_inverse<SQUARES>(p.inv, p.rows, p.cols, r0 + line, c0 / SIDE, scale);
    if (threadIdx.x >= SIDE && p.yt)
        put_inverse<SQUARES>(p.inv_t, p.cols, p.yt_ld, c0 + line, r0 / SIDE, scale);
    __syncthreads();
    if (p.y)
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            uint64_t bytes = fp8_eight<TO>(stored_pack(x[k]), scales[0][8 * i + k]);
            if (whole)
                *(uint64_t *)(p.y + first + k * p.cols) = bytes;
            else if (r + k < p.rows)
                put_eight(p.y, first + k * p.cols, left, bytes);
        }
    if (sums)
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            pack add = stored_pack(x[k]);
#pragma unroll
            for (int q = 0; q < PACK; q++)
                sum.v[q] += add.v[q];
        }
    if (p.yt) {
        pack by = pack_get<DTYPE_F32>(scales[1], 8 * j, PACK);
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            pack v = stored_pack(x[k]);
            uint64_t bytes = 0;
#pragma unroll
            for (int q = 0; q < PACK; q += 2)
                bytes |= (uint64_t)fp8_pair<TO>(v.v[q] * by.v[q], v.v[q + 1] * by.v[q + 1]) << 8 * q;
            at.square[square_at(8 * i + k, j)] = bytes;
        }
        __syncthreads();
        square_turn(at.square, p.yt, r0, c0, p.cols, p.yt_ld);
    }
    if (sums)
        column_sums((float *)at.square, sums + blockIdx.x / squares * p.cols, sum, i, j, c0, p.cols);
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
