/* kernels/fp8.h -- numbers of eight bits: conversions, scales, and how the two go together.
 *
 * E4M3 (largest 448, no infinity) for activations and weights, E5M2 (largest 57344) for gradients where
 * they are hybrid.  A tensor is stored as x * scale; what is stored times 1 / scale is the tensor again.
 * Scales live on the device and are made there, so that no step waits for the host.  A tensor has one, or each block of it
 * (fp8_blocks).  The product of two such matrices is matmul's (struct matmul, fp8_a).
 * Sources: OCP 8-bit Floating Point Specification 1.0; arXiv:2209.05433; Transformer Engine's recipes; of blocks DeepSeek-V3,
 * arXiv:2412.19437, 3.3, and cuBLAS, "Scaling Factors Layouts".
 */
#ifndef KERNELS_FP8_H
#define KERNELS_FP8_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of floats a tensor, fp8_row_floats long: this, then its largest absolute value in each of the last steps, the one
 * under way first. */
enum fp8_cell {
    FP8_MAX,         /* the largest number of its format, fp8_max() */
    FP8_NOW,         /* largest absolute value of the tensor at hand, for scaling by that alone */
    FP8_SCALE = 3,   /* 0: none yet */
    FP8_INVERSE = 4, /* 1 / scale; of a row that is aligned to FP8_ALIGN bytes, where products want it */
    FP8_HISTORY
};
enum { FP8_ALIGN = 16 }; /* of what a product multiplies by: cuBLASLt refuses others (13.1: status 15, without a reason) */
/* So that each of many rows is aligned as the first is. */
static inline int64_t fp8_row_floats(int64_t history) { return (FP8_HISTORY + history + 3) / 4 * 4; }

/* The sum of a product in FP8 goes over a multiple of so many (cuBLAS, "Tensor Core Usage"), and so its matrices' rows are. */
enum { FP8_WHOLE = 16 };

TWIN_INLINE float fp8_max(enum fp8 f) { return f == FP8_E4M3 ? 448.0f : 57344.0f; }

/* *amax = the largest |x[i]| of x (n); NaN if one is NaN. */
typedef int fp8_amax_fn(struct device *dev, enum dtype dt, float *amax, const void *x, int64_t n, struct err *e);

/* y (rows, cols) = x * *scale, rounded to nearest even; what is beyond the largest number becomes that,
 * infinity too; NaN stays NaN (0x7f).  yt (cols, yt_ld) is the same transposed, and 0 behind the end of each row.  *amax
 * becomes the larger of itself and the largest |x| (NaN if one is NaN); colsum (cols) += the columns of x, as by vec_colsum.
 * None of y, yt, amax and colsum is needed (NULL).  Bits are those of the ops that it stands for, one after the other.
 * Scratch of a GPU: 4 bytes for 128 elements, with colsum; of a CPU: 2 an element, with act. */
struct fp8_quantize {
    int64_t rows, cols;
    enum fp8 to;
    enum dtype dt; /* of x */
    const void *x;
    uint8_t *y, *yt;
    const float *scale;
    float *amax;
    int64_t yt_ld; /* 0: rows; FP8_WHOLE - 1 more than that at most */
    float *colsum;
    enum act act;   /* not ACT_NONE, bf16 alone: not x is converted but what act_fwd makes of it; */
    bool glu;       /* or glu_fwd, of x (rows, 2 cols); */
    const void *dy; /* or, where there is dy, act_bwd or glu_bwd, of dy (rows, cols / 2) and x (rows, cols); cols: of 16 then */
};
typedef int fp8_quantize_fn(struct device *dev, const struct fp8_quantize *p, struct err *e);

/* New scales for n rows, ld floats apart, of FP8_HISTORY + len floats: scale = max / amax / 2^margin, where amax is
 * the largest of the history or (recent) the one of the step that ends.  The history then moves on: the step's
 * goes to its end and the one under way is 0, as Transformer Engine has it.  What is 0 or not finite makes no
 * new scale (where there was none it is 1), and not finite is remembered as 0.
 * now: scale = max / FP8_NOW instead (1 where that is 0 or not finite), FP8_NOW also goes into the step's
 * amax, and the history stays. */
struct fp8_update {
    float *rows;
    int64_t n, ld, len;
    int margin;
    bool recent, now;
};
typedef int fp8_update_fn(struct device *dev, const struct fp8_update *p, struct err *e);

/* ---- by blocks ---- */

/* What has a scale of its own in a matrix (rows, k): all of it; FP8_BLOCK numbers of a row; FP8_BLOCK of each of as many rows. */
enum fp8_scales { FP8_OF_TENSOR, FP8_OF_ROWS, FP8_OF_SQUARES };
enum { FP8_BLOCK = 128 };

/* Where 1 / scale of blocks lie: of rows (blocks of k, rows), of squares (blocks of rows, blocks of k), what is inside up to a
 * multiple of 4, with zeros behind its end.  Their stride, how many floats they all are, and the place of one. */
TWIN_INLINE int64_t fp8_blocks_of(int64_t n) { return (n + FP8_BLOCK - 1) / FP8_BLOCK; }
TWIN_INLINE int64_t fp8_scales_ld(enum fp8_scales by, int64_t rows, int64_t k)
{
    return ((by == FP8_OF_ROWS ? rows : fp8_blocks_of(k)) + 3) / 4 * 4;
}
TWIN_INLINE int64_t fp8_scales_floats(enum fp8_scales by, int64_t rows, int64_t k)
{
    return fp8_blocks_of(by == FP8_OF_ROWS ? k : rows) * fp8_scales_ld(by, rows, k);
}

/* y (rows, cols) = x, bf16, times the scales of its blocks; yt (cols, yt_ld) the same of x transposed, and 0 behind the end of
 * each row; conversion is fp8_quantize's.  A scale is the largest power of two that keeps its block within the format, or with
 * fp32_scales fp8_max / largest value, in fp32; 1 where all of it is 0 or one is not finite.  inv and inv_t: 1 / scale, as
 * above, of rows of y and of yt, or of squares, which are the same both ways.  colsum (cols) += the columns of x.  y with inv,
 * yt with inv_t, and colsum may each be NULL.
 * Scratch: fp8_quantize's. */
struct fp8_blocks {
    int64_t rows, cols;
    enum fp8 to;
    bool squares, fp32_scales;
    const void *x;
    uint8_t *y, *yt;
    float *inv, *inv_t;
    int64_t yt_ld; /* rows, or up to FP8_BLOCK - 1 more */
    float *colsum;
};
typedef int fp8_blocks_fn(struct device *dev, const struct fp8_blocks *p, struct err *e);

fp8_amax_fn fp8_amax_cpu, fp8_amax_cuda;
fp8_quantize_fn fp8_quantize_cpu, fp8_quantize_cuda;
fp8_update_fn fp8_update_cpu, fp8_update_cuda;
fp8_blocks_fn fp8_blocks_cpu, fp8_blocks_cuda;

#ifdef __cplusplus
}
#endif
#endif
