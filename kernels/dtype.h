/* kernels/dtype.h -- element types of tensors, and what else every op's header uses.
 *
 * Conventions that hold for every op, said once:
 * - Tensors are dense and row-major unless a stride is given; strides and lengths
 *   count elements.  T is rows (tokens: micro-batch x sequence), C channels.
 * - dt is the type of activations and weights.  Statistics (mean, log-sum-exp),
 *   losses and gradients of weights are always fp32; sums are kept in fp32 or wider
 *   and rounded once, to nearest even, when they are stored.
 * - "+=" means that the op adds to what the buffer holds (gradient accumulation);
 *   everything else is overwritten, whatever it held (NaN included).
 * - Pointers are the device's (on the CPU plain memory); the caller owns all of
 *   them.  They need the alignment of their element only; 64 bytes is faster.
 *   Arguments may not overlap unless an op says so.
 * - Ops return 0 or a negative code with *e filled; ERR_ARG before anything is
 *   written.  A length of 0 is fine and does nothing.
 * - A device belongs to one thread at a time.  On a GPU ops are queued: results
 *   are there after device_sync or device_get.
 */
#ifndef KERNELS_DTYPE_H
#define KERNELS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bf16.h"
#include "base/err.h"

/* What a kernel and its twin on the CPU both call. */
#ifdef __CUDACC__
#define TWIN_INLINE static __host__ __device__ __forceinline__
#else
#define TWIN_INLINE static inline __attribute__((always_inline))
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct device;

enum dtype { DTYPE_F32, DTYPE_BF16, DTYPE_8BIT }; /* the last: moments alone (kernels/eight_bit.h) */

static inline size_t dtype_size(enum dtype dt) { return dt == DTYPE_BF16 ? 2 : dt == DTYPE_8BIT ? 1 : 4; }
static inline const char *dtype_name(enum dtype dt) { return dt == DTYPE_BF16 ? "bf16" : dt == DTYPE_8BIT ? "8bit" : "fp32"; }

/* What stands for numbers in eight bits: kernels/fp8.h. */
enum fp8 { FP8_NONE, FP8_E4M3, FP8_E5M2 };

/* Dropout without a stored mask: element (row, col) of a matrix with `cols` columns
 * uses word col % 4 of Philox4x32-10(key, lo = (row0 + row) * ceil(cols / 4) + col / 4,
 * hi = stream) and is kept exactly if that word >= p * 2^32 (rounded); kept elements
 * are multiplied by 1 / (1 - p).  Backward calls again with the same values.
 * stream must differ for each place, layer, micro-batch and step; row0 is the global
 * number of row 0 when the rows are a slice.  NULL or p == 0: none.  0 <= p < 1.
 * With cut > 0 the rows are number `first` and on of a row of stretches of cut rows: stretch n
 * begins at row0 + n / 2 * every + at[n % 2].  (A rank has two of each sequence.)  first + rows < 2^31.
 * With now, which lies in the device's memory and is read when the op runs, step << DROPOUT_PLACES is added to stream and
 * sample * every to row0: so a call can be run again for other micro-batches. */
enum { DROPOUT_PLACES = 20 };
struct dropout_now {
    uint64_t step;
    int64_t sample;
};
struct dropout {
    float p;
    uint64_t key, stream;
    int64_t row0;
    int64_t cut, first, every, at[2];
    const struct dropout_now *now;
};

/* The global number of a row, but for what `now` adds. */
static inline int64_t dropout_row(const struct dropout *d, int64_t row)
{
    int64_t n;

    if (!d->cut)
        return d->row0 + row;
    row += d->first;
    n = row / d->cut;
    return d->row0 + n / 2 * d->every + d->at[n % 2] + row % d->cut;
}

/* Activations.  GELU_TANH: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's;
 * GELU_ERF: x/2 (1 + erf(x / sqrt 2)); SILU: x / (1 + e^-x); RELU: max(x, 0); RELU2: its square
 * (arXiv:2109.08668); CLAMPED: x / (1 + e^(-QUICK x)) of x up to LIMIT, gpt-oss's. */
#define ACT_LIMIT 7.0f
#define ACT_QUICK 1.702f
#define ACTS(X, ...) \
    X(ACT_GELU_TANH, __VA_ARGS__) X(ACT_GELU_ERF, __VA_ARGS__) X(ACT_SILU, __VA_ARGS__) X(ACT_RELU, __VA_ARGS__) \
    X(ACT_RELU2, __VA_ARGS__) X(ACT_CLAMPED, __VA_ARGS__)
#define ACT_NAME(name, ...) name,
enum act { ACT_NONE, ACTS(ACT_NAME) ACT_KINDS };

#ifdef __cplusplus
}
#endif
#endif
