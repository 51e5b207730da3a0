/* kernels/gate.h -- rows times the sigmoid of one number each, or of one for each element. */
#ifndef KERNELS_GATE_H
#define KERNELS_GATE_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y (T, C)[t] += sigmoid(gate[t]) x[t], in fp32. */
typedef int gate_add_fn(struct device *dev, enum dtype dt, void *y, const void *x, const float *gate, int64_t t, int64_t c,
                        struct err *e);
/* Its backward pass: dx (T, C)[t] = sigmoid(gate[t]) dy[t], which may be dy, and dgate (T), of type dt, is
 * sigmoid(gate[t]) (1 - sigmoid(gate[t])) dy[t] . x[t]. */
typedef int gate_back_fn(struct device *dev, enum dtype dt, void *dx, void *dgate, const void *dy, const void *x,
                         const float *gate, int64_t t, int64_t c, struct err *e);
gate_add_fn gate_add_cpu, gate_add_cuda;
gate_back_fn gate_back_cpu, gate_back_cuda;

/* A gate of its own for each element of (T, C): rows ld >= C apart. */
struct gate_rows {
    const void *gate;
    int64_t ld, t, c;
};
/* y (T, C) = sigmoid(gate) x; y may be x.  So it is for the gradient of x too. */
typedef int gate_mul_fn(struct device *dev, enum dtype dt, void *y, const void *x, const struct gate_rows *g, struct err *e);
/* dgate, rows as the gate's = dx x (1 - sigmoid(gate)): its gradient, from that of x. */
typedef int gate_slope_fn(struct device *dev, enum dtype dt, void *dgate, const void *dx, const void *x,
                          const struct gate_rows *g, struct err *e);
gate_mul_fn gate_mul_cpu, gate_mul_cuda;
gate_slope_fn gate_slope_cpu, gate_slope_cuda;

#ifdef __cplusplus
}
#endif
#endif
