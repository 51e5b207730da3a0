/* kernels/factored.h -- gradients over the root of their second moment, which is kept by rows and columns (Adafactor,
 * arXiv:1804.04235, as PyTorch has it). */
#ifndef KERNELS_FACTORED_H
#define KERNELS_FACTORED_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct factored {
    int64_t rows, cols;
    double fresh; /* the share of the gradient at hand in the means, 0 to 1 */
    double eps;   /* of the mean of `row`, and of the root of a second moment the least; > 0 */
};
/* Of a matrix g (rows, cols):
 *     row (rows) += fresh (means over the columns of g^2 - row)
 *     col (cols) += fresh (means over the rows of g^2 - col)
 *     g = g / sqrt(max(row col^T / max(mean of row, eps), eps^2))
 * Of a vector g (rows), with cols 1 and col NULL:
 *     row += fresh (g^2 - row);  g = g / sqrt(max(row, eps^2))
 * All fp32.  The order of the sums depends on the shape alone; rows are summed in 32 fixed groups for col.  Scratch: 32 cols
 * floats. */
typedef int factored_fn(struct device *dev, const struct factored *p, float *g, float *row, float *col, struct err *e);
factored_fn factored_cpu, factored_cuda;

#ifdef __cplusplus
}
#endif
#endif
