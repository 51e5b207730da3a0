/* comm/nccl_calls.h -- what the groups of a device are, and their calls as NCCL has them; for nccl_backend.c alone. */
#ifndef COMM_NCCL_CALLS_H
#define COMM_NCCL_CALLS_H

#include <pthread.h>

#include "comm/comm.h"
#include "comm/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A call. */
struct flight {
    struct flight *next;
    struct nccl_group *group;
    struct comm_handle handle; /* for whoever watches */
    size_t *counts;            /* of an all-to-all-v, to each and from each */
    void *before, *after;      /* events */
    double since;
    bool launched, joined;
};

struct nccl_group {
    struct nccl_group *next;
    struct nccl_world *world;
    struct comm *comm;
    void *nccl;   /* NULL: alone, calls are copies */
    void *stream;
    struct flight *gathered, **last; /* sends and receives that have not begun */
    unsigned met;        /* kinds of which there was a call */
    unsigned char *peer; /* 1: has been sent to; 2: received from */
    /* What a thread is sent out to do, by itself, and with what. */
    int (*errand)(struct nccl_group *g);
    struct flight *list; /* calls to be made */
    int colour, key;     /* how to split the group */
    struct nccl_id id;   /* of a group to be made */
    void *made;          /* the library's */
};

/* What the groups of a world share; the lock is for what the watcher looks at. */
struct nccl_world {
    const struct nccl_api *api;
    struct comm_device dev;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t watcher;
    bool watching, ending;
    bool apart; /* a thread is in a call of NCCL, and whoever waits for it looks after it */
    struct flight *first, *spare; /* under way, newest first; to be used again */
    struct nccl_group *groups;
    struct nccl_group *failed; /* where the first failure was, until it is known who is missing */
    int rc;
    struct err err;
};

/* Hands a list of calls to NCCL as one; its answer.  Nothing is done for those of no elements. */
int nccl_enqueue(struct nccl_group *g, const struct flight *list);
/* Whether NCCL may have to connect ranks for it first; the next time it has. */
bool nccl_is_first(struct nccl_group *g, const struct flight *list);

#ifdef __cplusplus
}
#endif
#endif
