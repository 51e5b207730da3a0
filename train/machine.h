/* train/machine.h -- the ranks that share a machine with this one, however they were started. */
#ifndef TRAIN_MACHINE_H
#define TRAIN_MACHINE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct machine_ranks {
    int here;     /* ranks on this machine, this one included */
    int alike;    /* of these, those that may use the same processors as this one */
    int64_t *key; /* of each rank of the world: equal on a machine */
    struct comm *world;
};

/* All ranks of world call it; world must outlive it.  A machine is a boot of a kernel under one host name, so containers with
 * names of their own are machines of their own.  ERR_NOMEM; the errors of the group. */
int machine_open(struct machine_ranks *m, struct comm *world, struct err *e);
void machine_close(struct machine_ranks *m);

/* The sum of what the ranks of a machine give, of this rank's machine.  All ranks call it. */
int machine_sum(const struct machine_ranks *m, int64_t mine, int64_t *sum, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
