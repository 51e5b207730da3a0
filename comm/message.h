/* comm/message.h -- what a network has to offer, for comm/collective.c to make collectives of.
 *
 * A port is a group as the network sees it.  Messages between two ranks of a port with one
 * tag arrive in the order in which they were posted, whatever their size.
 */
#ifndef COMM_MESSAGE_H
#define COMM_MESSAGE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct port;

struct network {
    /* The port of all ranks; *rank and *size of this process. */
    int (*open)(struct port **world, int *rank, int *size, struct err *e);
    /* Collective over the port.  colour < 0: none. */
    int (*split)(struct port *p, int colour, int key, struct port **to, int *rank, int *size, struct err *e);
    /* Closing the world leaves the network, with all ranks. */
    void (*close)(struct port *p);
    /* Posts a message of exactly n bytes from peer, or to it: then buf is only read.  buf stays until test says done.
     * tag: 0 to 32767. */
    int (*post)(struct port *p, bool to_us, void *buf, size_t n, int peer, int tag, void **message, struct err *e);
    /* *done: the message is over and released.  *moved: part of it is over that was not.
     * ERR_FORMAT: it was not of n bytes. */
    int (*test)(void *message, bool *done, bool *moved, struct err *e);
    void (*idle)(int rounds); /* as comm_idle, in its place; NULL */
    double tell_after; /* seconds after which it is told whom a call waits for, and whenever they have doubled; 0: never */
};

/* The groups of a network behind comm.h, by the name of the backend.  Takes nothing over but the tables. */
int collective_open(struct comm **c, const struct comm_backend *backend, const struct network *net, struct err *e);
extern const struct comm_backend comm_mpi, comm_tcp, comm_files;
/* The next call is the first one: calls are numbered in what is sent.  c: the world, with nothing in flight. */
void collective_begin(struct comm *c);

/* For backends: "rank 1 of 3 in group 'data' (world rank 1): all-reduce of 64 bf16 elements". */
void comm_describe(const struct comm *c, const struct comm_call *call, char *to, size_t size);
/* For the rounds-th time in a row there is nothing to do: sleeps ever longer. */
void comm_idle(int rounds);

/* The one thing that quern-mpi.so shows. */
enum { MPI_BACKEND_ABI = 3 };
struct mpi_backend {
    int abi;
    const char *(*library)(void); /* what it is, for people */
    struct network net;
};
#define MPI_BACKEND_SYMBOL "quern_mpi_backend"

/* Opens the shared object, not MPI: $QUERN_MPI, or quern-mpi.so as base/plugin.h finds it.
 * ERR_UNSUPPORTED with the reason. */
int mpi_backend_open(const struct mpi_backend **b, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
