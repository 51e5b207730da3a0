/* comm/nccl_api.h -- the part of NCCL's C interface that nccl_backend.c uses, as functions found at run time.
 *
 * Declared here, so that a build needs neither its header nor its library, and so that tests can put another behind
 * it: tests/fake_nccl.c, which compares the numbers with the header's where that is there.
 * Source: NVIDIA, "NCCL API" (2.28).
 */
#ifndef COMM_NCCL_API_H
#define COMM_NCCL_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NCCL_SUCCESS = 0, NCCL_INVALID_USAGE = 5, NCCL_IN_PROGRESS = 7 };
enum { NCCL_UINT8 = 1, NCCL_INT32 = 2, NCCL_INT64 = 4, NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8, NCCL_BFLOAT16 = 9 };
enum { NCCL_SUM = 0, NCCL_MAX = 2, NCCL_MIN = 3 };
enum { NCCL_SPLIT_NONE = -1, NCCL_OLDEST = 21000 }; /* 2.10: bf16 */

struct nccl_id {
    char bytes[128];
};

/* comm: the library's group; type, op: as above.  Everything returns 0 when it succeeds. */
struct nccl_api {
    int (*version)(int *version); /* 2.28.9: 22809 */
    int (*get_id)(struct nccl_id *id);
    int (*init_rank)(void **comm, int size, struct nccl_id id, int rank);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *state);
    const char *(*error_text)(int rc);
    int (*all_reduce)(const void *send, void *recv, size_t n, int type, int op, void *comm, void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t n, int type, int op, void *comm, void *stream);
    int (*all_gather)(const void *send, void *recv, size_t n, int type, void *comm, void *stream);
    int (*broadcast)(const void *send, void *recv, size_t n, int type, int root, void *comm, void *stream);
    int (*send)(const void *buf, size_t n, int type, int peer, void *comm, void *stream);
    int (*recv)(void *buf, size_t n, int type, int peer, void *comm, void *stream);
    int (*group_start)(void);
    int (*group_end)(void);
    /* NULL where the library has none. */
    int (*split)(void *comm, int colour, int key, void **part, void *config);
    const char *(*last_error)(void *comm);
};

/* A library that takes the host's memory says so by having this: tests/fake_nccl.c. */
#define NCCL_TAKES_HOST_MEMORY "quern_takes_host_memory"

#ifdef __cplusplus
}
#endif
#endif
