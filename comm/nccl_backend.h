/* comm/nccl_backend.h -- calls on a device's memory, by NCCL; for comm/ alone. */
#ifndef COMM_NCCL_BACKEND_H
#define COMM_NCCL_BACKEND_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As comm_use_device. */
int nccl_use_device(struct comm *world, const struct comm_device *d, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
