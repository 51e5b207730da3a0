/* Holds comm/nccl_api.h against the library's header, where that is there: compiled, never run. */
#include <nccl.h>

#include "comm/nccl_api.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), "not the number that the library's header has")
SAME(NCCL_SUCCESS, ncclSuccess);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_INT32, ncclInt32);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
SAME(NCCL_BFLOAT16, ncclBfloat16);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_MIN, ncclMin);
SAME(NCCL_SPLIT_NONE, NCCL_SPLIT_NOCOLOR);
SAME(sizeof(struct nccl_id), sizeof(ncclUniqueId));
