/* kernels/heads.h -- parts of heads moved between tensors that have them in other places: keys put together of what each head has
 * and what all share, values padded, and the way back.
 */
#ifndef KERNELS_HEADS_H
#define KERNELS_HEADS_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C elements of each head of T rows: those of head h of row t begin at t row + h head of a tensor. */
struct heads_at {
    int64_t row, head;
};
struct heads_part {
    int64_t t, heads, c;
    struct heads_at y, x;
};
/* y = x, bit by bit; x.head 0: all heads get the same; x NULL: zeros. */
typedef int heads_move_fn(struct device *dev, enum dtype dt, void *y, const void *x, const struct heads_part *p, struct err *e);
/* y (T, C), rows y.row apart = the sum of all heads of x, in their order. */
typedef int heads_sum_fn(struct device *dev, enum dtype dt, void *y, const void *x, const struct heads_part *p, struct err *e);
heads_move_fn heads_move_cpu, heads_move_cuda;
heads_sum_fn heads_sum_cpu, heads_sum_cuda;

#ifdef __cplusplus
}
#endif
#endif
