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

/* Gives the world dev, if its backend takes a device's memory: then the buffers of what follows go to it as they are, and
 * whoever waits lets dev's stream wait.  Else those of a GPU go through pinned memory of the host, which dev keeps.  All
 * ranks call it, before groups are split from world; dev must outlive the world. */
int exchange_use(struct device *dev, struct comm *world, struct err *e);

/* Runs call, whose buffers are dev's, behind the work queued there; what is queued afterwards has its result. */
int exchange(struct device *dev, struct comm *c, const struct comm_call *call, struct err *e);

/* In place: buf[n] = sum over the ranks. */
int exchange_sum(struct device *dev, struct comm *c, void *buf, size_t n, enum comm_type type, struct err *e);

/* Bytes of pinned memory that dev keeps, of those that are not in use. */
size_t exchange_kept_bytes(const struct device *dev);

/* A call under way.  Zeroed is none. */
struct exchange_call {
    struct device *dev;
    struct comm_handle handle;
    void *to;                           /* the device's */
    struct exchange_staging *from, *in; /* of the host, for a GPU */
    size_t bytes;                       /* that come in */
    bool running, arrived;
};
/* The same in two halves, between which the caller does something else.  x must be none; after a failure
 * it is none again.  Sends and receives of a group that are started one after another begin together, at the next poke or wait
 * of one of them. */
int exchange_start(struct exchange_call *x, struct device *dev, struct comm *c, const struct comm_call *call, struct err *e);
/* Gets calls on; without waiting. */
int exchange_poke(struct exchange_call *x, struct err *e);
/* Afterwards x is none.  None is fine. */
int exchange_wait(struct exchange_call *x, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
