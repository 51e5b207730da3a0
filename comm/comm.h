/* comm/comm.h -- groups of ranks and what they do together.
 *
 * A group (struct comm) is a set of ranks 0 .. size-1 that all make the same calls in
 * the same order.  A call is a record (struct comm_call) that is started, runs while
 * the caller does something else, and is waited for; the record also says what hung
 * when a rank never arrives.  The wrappers below start and wait at once.
 *
 * A backend is a table of three functions (struct comm_backend).  Here is `self`, a
 * group of one: what leaves arrives.  Several processes (MPI) and GPUs (NCCL) are
 * further tables; nothing above this header changes for them.
 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum comm_kind {
    COMM_ALL_REDUCE,     /* recv[n] = op over ranks of send[n] */
    COMM_REDUCE_SCATTER, /* recv[n] = this rank's n of op over ranks of send[n * size] */
    COMM_ALL_GATHER,     /* recv[n * size] = the ranks' send[n], in rank order */
    COMM_BROADCAST,      /* recv[n] = send[n] of rank peer; send is not read elsewhere */
    COMM_ALL_TO_ALL,     /* the r-th n of recv = this rank's n of rank r's send */
    COMM_SEND,           /* send[n] to rank peer */
    COMM_RECV            /* recv[n] from rank peer */
};

enum comm_type { COMM_U8, COMM_I32, COMM_I64, COMM_F32, COMM_F64, COMM_BF16 };
enum comm_op { COMM_SUM, COMM_MAX, COMM_MIN };

/* Buffers belong to the caller and must stay until comm_wait.  send == recv is in
 * place where both have the same length; otherwise they must not overlap. */
struct comm_call {
    enum comm_kind kind;
    const void *send;
    void *recv;
    size_t n; /* elements */
    enum comm_type type;
    enum comm_op op;
    int peer;
};

struct comm;

/* A call in flight.  Zeroed is "none", which comm_wait accepts. */
struct comm_handle {
    struct comm *comm;
    struct comm_call call;
    void *state; /* the backend's */
};

struct comm_backend {
    const char *name;
    int (*start)(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e);
    int (*wait)(struct comm_handle *h, struct err *e);
    void (*free)(struct comm *c);
};

struct comm {
    const struct comm_backend *backend;
    int rank, size;
    void *state; /* the backend's */
};

/* The group of this process alone.  ERR_NOMEM. */
int comm_open_self(struct comm **c, struct err *e);
void comm_close(struct comm *c);

/* Starts call.  ERR_ARG for one that makes no sense (a peer outside the group, a
 * message to oneself). */
int comm_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e);
/* Returns when the call is complete and its buffers are the caller's again. */
int comm_wait(struct comm_handle *h, struct err *e);

size_t comm_type_size(enum comm_type t);
const char *comm_kind_name(enum comm_kind k);

/* In place: buf[n] = op over ranks of buf[n], the same bits on every rank. */
int comm_all_reduce(struct comm *c, void *buf, size_t n, enum comm_type type, enum comm_op op,
                    struct err *e);

#ifdef __cplusplus
}
#endif
#endif
