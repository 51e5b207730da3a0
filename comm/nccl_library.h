/* comm/nccl_library.h -- NCCL, found and opened at run time; for comm/ alone. */
#ifndef COMM_NCCL_LIBRARY_H
#define COMM_NCCL_LIBRARY_H

#include <stdbool.h>

#include "base/err.h"
#include "comm/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* $QUERN_NCCL, or libnccl.so.2 as the linker has it or as it lies in /usr/local/cuda.  ERR_UNSUPPORTED with the reason.
 * It stays open. */
int nccl_library(const struct nccl_api **api, struct err *e);
/* Whether it takes the host's memory: a stand-in. */
bool nccl_library_takes_host(void);

#ifdef __cplusplus
}
#endif
#endif
