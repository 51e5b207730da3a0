/* train/squares.h -- the sum of the squares of a device's numbers, on the host. */
#ifndef TRAIN_SQUARES_H
#define TRAIN_SQUARES_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the device's memory that it takes, for n numbers. */
size_t squares_bytes(int64_t n);
/* *sum: of x (n) of type dt, in double, in an order that depends on n alone.  work: squares_bytes.  Waits for the device. */
int squares_sum(struct device *dev, enum dtype dt, const void *x, int64_t n, double *work, double *sum, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
