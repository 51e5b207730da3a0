/* train/exchange.h -- collectives on buffers of the device. */
#ifndef TRAIN_EXCHANGE_H
#define TRAIN_EXCHANGE_H

#include "comm/comm.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type of elements on the wire. */
static inline enum comm_type exchange_type(enum dtype dt)
{
    return dt == DTYPE_BF16 ? COMM_BF16 : COMM_F32;
}

/* Runs call, whose buffers are dev's, behind the work queued there.  A GPU's go through memory of
 * the host. */
int exchange(struct device *dev, struct comm *c, const struct comm_call *call, struct err *e);

/* In place: buf[n] = sum over the ranks. */
int exchange_sum(struct device *dev, struct comm *c, void *buf, size_t n, enum comm_type type, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
