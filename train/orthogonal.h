/* train/orthogonal.h -- a matrix becomes one whose singular values are about 1, by Newton-Schulz iterations.
 *
 * Of X = G / |G|, the norm being Frobenius's, each iteration makes a X + b A X + c A A X, where A = X X^T (of a matrix with more
 * rows than columns the same from the other side): singular values s become a s + b s^3 + c s^5, which drives all of them
 * towards 1 (Jordan et al. 2024, the Muon optimizer; arXiv:2502.16982).
 */
#ifndef TRAIN_ORTHOGONAL_H
#define TRAIN_ORTHOGONAL_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By the names of --muon-coefficient-type: the coefficients of each iteration. */
enum orthogonal_coefficients { ORTHOGONAL_QUINTIC, ORTHOGONAL_SIMPLE, ORTHOGONAL_POLAR_EXPRESS };
/* By those of --muon-scale-mode: the result is multiplied by sqrt(max(rows, cols)), sqrt(rows / cols) or
 * sqrt(max(1, rows / cols)). */
enum orthogonal_scale { ORTHOGONAL_SPECTRAL, ORTHOGONAL_UNIT_RMS_NORM, ORTHOGONAL_SHAPE_SCALING };

struct orthogonal {
    int64_t steps;
    int coefficients, scale; /* of the enums above */
    double factor;           /* that the result is multiplied by, too */
    enum dtype dt;           /* of the matrix products */
};

/* Bytes of the device's memory that a matrix of so many elements takes beside itself; side: its shorter one. */
size_t orthogonal_bytes(const struct orthogonal *o, int64_t elements, int64_t side);

/* w (rows, cols), fp32, becomes that, in place; a matrix of zeros stays one.  work: orthogonal_bytes.
 * Waits for the device once. */
int orthogonal(struct device *dev, const struct orthogonal *o, float *w, int64_t rows, int64_t cols, void *work, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
