/* train/machine.h -- the ranks that share a machine with this one, however they were started. */
#ifndef TRAIN_MACHINE_H
#define TRAIN_MACHINE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct machine_ranks {
    int here;    /* ranks on this machine, this one included */
    int alike;   /* of these, those that may use the same processors as this one */
    int64_t key; /* equal on a machine */
    struct comm *world;
};

/* All ranks of world call it; world must outlive it.  A machine is a boot of a kernel under one host name, so containers with
 * names of their own are machines of their own.  ERR_NOMEM; the errors of the group. */
int machine_open(struct machine_ranks *m, struct comm *world, struct err *e);

/* The sum of what those ranks give that have this key (of a machine, of a GPU), and how many they are.  All ranks call it. */
int machine_sum(struct comm *world, int64_t key, int64_t mine, int64_t *sum, int *ranks, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
