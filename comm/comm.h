/* comm/comm.h -- groups of ranks and what they do together.
 *
 * A group (struct comm) is a set of ranks 0 .. size-1 that all make the same calls in
 * the same order; messages between two ranks are ordered by themselves.  A call is a
 * record (struct comm_call) that is started, runs while the caller does something else,
 * and is waited for; the record also says what hung when a rank never arrives.  The
 * wrappers below start and wait at once.
 *
 * Several calls may be in flight, and be waited for in any order.  No thread works
 * behind the caller's back: calls get on during comm_test and comm_wait, of whichever
 * call and group.  One thread of a process at a time may be in here.
 *
 * Reductions give the same bits on every rank and in every run: for each element the
 * ranks' values are combined as a balanced tree over rank order, ((0+1)+(2+3))+((4+5)+6),
 * in the element's type; bf16 in fp32, rounded once at the end.  Integers wrap; a NaN
 * wins over every number.
 *
 * A call that gets nowhere for the timeout fails with ERR_LIMIT, and says which rank of
 * which group waited in which collective, of how many elements of which type, and for
 * whom.  After any failure of a call the group and those split from the same world are
 * of no more use: close them (which leaves MPI as it is) and exit with a status that is
 * not 0; the launcher then ends the other ranks.
 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdbool.h>
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
    COMM_RECV,           /* recv[n] from rank peer */
    COMM_ALL_TO_ALL_V,   /* the same with counts by rank, see struct comm_call */
    COMM_BARRIER         /* returns when all ranks have started it; n is 0 */
};

enum comm_type { COMM_U8, COMM_I32, COMM_I64, COMM_F32, COMM_F64, COMM_BF16 };
enum comm_op { COMM_SUM, COMM_MAX, COMM_MIN };

/* Buffers belong to the caller and must stay until comm_wait.  send == recv is in
 * place where both have the same length, but for all-to-all; so is send == recv + rank * n
 * of an all-gather, and recv == send + rank * n of a reduce-scatter.  Otherwise they must
 * not overlap.  n may be any size_t. */
struct comm_call {
    enum comm_kind kind;
    const void *send;
    void *recv;
    size_t n; /* elements */
    enum comm_type type;
    enum comm_op op;
    int peer;
    /* COMM_ALL_TO_ALL_V: how many elements go to, and come from, each rank; they stand one
     * after another in send and recv.  Copied by comm_start. */
    const size_t *send_counts, *recv_counts;
    bool on_device; /* send and recv are memory of the device: comm_use_device */
};

struct comm;

/* A call in flight.  Zeroed is "none", which comm_wait accepts.  May be moved. */
struct comm_handle {
    struct comm *comm;
    struct comm_call call;
    void *state; /* the backend's */
    double from, came; /* when it was started and, by the backend, found done, where somebody watches */
};

/* To whoever watches a group: a call was started and found done at these times (log_seconds), and the caller stood in
 * comm_wait for `waited` seconds of them. */
typedef void comm_watch_fn(void *arg, const struct comm_handle *h, double from, double to, double waited);

/* A backend: how calls are carried out.  test must get this call on, and sets *done; it
 * releases the state when it is done or has failed.  wait is test until done. */
struct comm_backend {
    const char *name;
    int (*start)(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e);
    int (*test)(struct comm_handle *h, bool *done, struct err *e);
    int (*wait)(struct comm_handle *h, struct err *e);
    int (*split)(struct comm *c, int colour, int key, struct comm *to, struct err *e);
    void (*free)(struct comm *c);
    int (*join)(struct comm_handle *h, struct err *e); /* NULL: there is no device */
    int (*progress)(struct comm *c, struct err *e);    /* NULL: calls need none */
};

struct comm {
    const struct comm_backend *backend;
    int rank, size;
    int world_rank;
    char name[32];
    double timeout; /* seconds */
    void *state;    /* the backend's */
    bool can_use_device;
    bool starts_again; /* a rank may be started again by itself, and has to make the same calls with the same bytes then */
    const struct comm_backend *device_backend; /* for calls on_device; NULL: there are none */
    void *device_state;
    comm_watch_fn *watch; /* NULL: nobody; groups that are split from this one take it over */
    void *watch_arg;
};

/* Megatron's default; --distributed-timeout-minutes. */
#define COMM_TIMEOUT_MINUTES 10.0

/* The group of all ranks, named "world", by backend:
 *     self    this process alone
 *     mpi     Open MPI
 *     tcp     connections of our own, for ranks that torchrun or a bare srun started (comm/rendezvous.h)
 *     nccl    mpi under mpirun, else tcp, for what is in the host's memory; for a device's, NCCL: comm_use_device
 *     auto    mpi where mpirun or srun started this process as one of several, tcp where RANK and WORLD_SIZE are
 *             set, else self
 * A call may stand still for timeout seconds.  One world a process, since MPI starts and ends
 * once.  ERR_ARG: no such backend.  ERR_UNSUPPORTED: MPI or NCCL is not here, with the reason. */
int comm_open(struct comm **c, const char *backend, double timeout, struct err *e);
/* Ranks that have only a folder in common are opened by comm/files.h. */
/* The group of this process alone.  ERR_NOMEM. */
int comm_open_self(struct comm **c, struct err *e);
/* How many ranks mpirun, srun or torchrun says it started: 1 when none did. */
int comm_ranks_started(void);

/* What NCCL has to know of a device: its streams and events (opaque), by functions of the caller's. */
struct comm_device {
    void *device; /* handed to each */
    bool host;    /* its memory is the host's: for tests, where the library allows it */
    int (*bind)(void *device, struct err *e); /* makes it the calling thread's */
    void *(*stream)(void *device);            /* in which the caller's work is queued now */
    int (*stream_new)(void *device, void **stream, struct err *e);
    void (*stream_free)(void *device, void *stream);
    int (*event_new)(void *device, void **event, struct err *e);
    void (*event_free)(void *device, void *event);
    int (*record)(void *device, void *event, void *stream, struct err *e); /* behind what the stream holds */
    int (*after)(void *device, void *event, void *stream, struct err *e);  /* the stream goes on when the event has come */
    int (*query)(void *device, void *event, bool *come, struct err *e);    /* by any thread */
    int (*copy)(void *device, void *to, const void *from, size_t bytes, void *stream, struct err *e);
};

/* Of a backend that can (world->can_use_device): world, and groups that are split from it from now on, take calls on_device.
 * All ranks call it, each with a device of its own; *d is copied, and the device must stay until comm_leave_device.
 *
 * Such a call runs in a stream of its group's, behind what the device's stream held when it was started, and beside what
 * comes after.  Sums of numbers with a fraction are in NCCL's order, the same in each run of one layout, and NaN may get lost in
 * MAX and MIN.  Sends and receives are gathered, and begin together at the next comm_test, comm_wait or comm_join
 * of one of them, or the group's next collective; those that must not wait for each other are either gathered or of
 * different groups.  A barrier is the host's.  A call that stands still is named as others are, also while the caller waits for
 * the device, and ended: the device's stream goes on, and the next call fails with ERR_LIMIT. */
int comm_use_device(struct comm *world, const struct comm_device *d, struct err *e);
/* The device may go, when groups that were split from world are closed; comm_close does the same. */
void comm_leave_device(struct comm *world);
/* Whether c takes calls on_device. */
static inline bool comm_takes_device(const struct comm *c)
{
    return c->device_backend != NULL;
}

/* All ranks of c call it: those of one colour make a group, ranked by key, then by rank in c; a
 * negative colour makes none (*to is NULL).  name is for messages.  A group is closed before
 * the one it came from. */
int comm_split(struct comm *c, int colour, int key, const char *name, struct comm **to, struct err *e);
/* NULL is fine.  All ranks close the world together, unless a call has failed. */
void comm_close(struct comm *c);

/* Starts call.  ERR_ARG for one that makes no sense (a peer outside the group, a
 * message to oneself). */
int comm_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e);
/* Gets the calls in flight on, without waiting; *done: this one is complete, as after comm_wait. */
int comm_test(struct comm_handle *h, bool *done, struct err *e);
/* Gets all calls in flight on that stand still while nobody asks for them, of all groups of c's world; without waiting.  A large
 * message, where processes may not read each other's memory, is not carried by the network alone.  A call's failure is kept for
 * who waits for it, if it is not of the network itself. */
int comm_progress(struct comm *c, struct err *e);
/* Returns when the call is complete and its buffers are the caller's again. */
int comm_wait(struct comm_handle *h, struct err *e);
/* The same for what is queued in the device's stream from now on; the caller does not wait.  For a call that is not
 * on_device, comm_wait. */
int comm_join(struct comm_handle *h, struct err *e);

size_t comm_type_size(enum comm_type t);
const char *comm_type_name(enum comm_type t);
const char *comm_kind_name(enum comm_kind k);
/* Elements of a call; of COMM_ALL_TO_ALL_V those that this rank sends. */
size_t comm_elements(const struct comm *c, const struct comm_call *call);

/* Start and wait. */
int comm_run(struct comm *c, const struct comm_call *call, struct err *e);
/* In place: buf[n] = op over ranks of buf[n], the same bits on every rank. */
int comm_all_reduce(struct comm *c, void *buf, size_t n, enum comm_type type, enum comm_op op,
                    struct err *e);
/* recv[n * size] = the ranks' send[n]. */
int comm_all_gather(struct comm *c, const void *send, void *recv, size_t n, enum comm_type type,
                    struct err *e);
/* buf[n] of rank root to all. */
int comm_broadcast(struct comm *c, void *buf, size_t n, enum comm_type type, int root, struct err *e);
int comm_barrier(struct comm *c, struct err *e);
/* What each rank did by itself has failed for all if it has for one: all ranks get *rc and *why of
 * the lowest rank whose *rc is negative; the others' message begins with "rank N: ".  < 0: the
 * group itself has failed.  why may be e. */
int comm_agree(struct comm *c, int *rc, struct err *why, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
