/* kernels/gate.h -- rows times the sigmoid of one number each. */
#ifndef KERNELS_GATE_H
#define KERNELS_GATE_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y (T, C)[t] += sigmoid(gate[t]) x[t], in fp32. */
typedef int gate_add_fn(struct device *dev, enum dtype dt, void *y, const void *x, const float *gate, int64_t t, int64_t c,
                        struct err *e);
/* Its backward pass: dx (T, C)[t] = sigmoid(gate[t]) dy[t], and dgate (T), of type dt, is
 * sigmoid(gate[t]) (1 - sigmoid(gate[t])) dy[t] . x[t]. */
typedef int gate_back_fn(struct device *dev, enum dtype dt, void *dx, void *dgate, const void *dy, const void *x,
                         const float *gate, int64_t t, int64_t c, struct err *e);
gate_add_fn gate_add_cpu, gate_add_cuda;
gate_back_fn gate_back_cpu, gate_back_cuda;

#ifdef __cplusplus
}
#endif
#endif
