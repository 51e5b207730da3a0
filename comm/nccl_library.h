/* comm/nccl_library.h -- NCCL, found and opened at run time. */
#ifndef COMM_NCCL_LIBRARY_H
#define COMM_NCCL_LIBRARY_H

#include <stdbool.h>

#include "base/err.h"
#include "comm/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where it is looked for, NULL behind the last: $QUERN_NCCL alone, or libnccl.so.2 as the linker has it, then in
 * /usr/local/cuda. */
const char *const *nccl_library_places(void);
/* The first of these that is there and is NCCL.  ERR_UNSUPPORTED with the reason.  It stays open. */
int nccl_library(const struct nccl_api **api, struct err *e);
/* Whether it takes the host's memory: a stand-in. */
bool nccl_library_takes_host(void);

#ifdef __cplusplus
}
#endif
#endif
