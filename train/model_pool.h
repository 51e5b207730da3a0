/* train/model_pool.h -- memory for activations, shared by the parts of a model that a rank has.
 *
 * What a micro-batch leaves for its backward pass is in a slot, which any part takes for any micro-batch: a rank needs as
 * many as its schedule ever has between forward and backward, in all parts together (train/pipeline.h).  What a
 * pass needs only while it runs lies in one place for all parts, since a rank is at one of them at a time.  The rows
 * of layers with experts have rooms of their own, which grow: how many come is known only when they do.
 */
#ifndef TRAIN_MODEL_POOL_H
#define TRAIN_MODEL_POOL_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How much of it. */
struct model_pool_size {
    int slots;
    size_t slot, work;          /* bytes of a slot, and of what all share */
    int slot_rooms, work_rooms; /* rooms in a slot, and shared ones */
    int64_t rows, row;          /* rows that a room is planned for, bytes of one */
    int64_t most;               /* rows that may come at most */
    int64_t scratch_row;        /* bytes of one in the room of the layer under way, which is planned for as many; 0: none */
};

/* Bytes of all slots and of what they share. */
static inline size_t model_pool_slab(const struct model_pool_size *s)
{
    return (size_t)s->slots * s->slot + s->work;
}
/* *all becomes enough for `part` too; zeroed is enough for none. */
void model_pool_fit(struct model_pool_size *all, const struct model_pool_size *part);
size_t model_pool_bytes(const struct model_pool_size *s);
/* The same if as many rows come to all rooms as may. */
size_t model_pool_most(const struct model_pool_size *s);

struct model_room {
    void *mem;
    int64_t rows, row; /* it has now; bytes of one */
};

struct model_pool {
    struct device *dev;
    struct model_pool_size size;
    char *slab;                       /* the slots, then what all share */
    struct model_room *rooms, scratch; /* the shared ones, then slot by slot */
    size_t grown;                     /* bytes of rooms beyond what was planned */
};

/* Allocates it, as MEMORY_ACTIVATIONS; dev must outlive it.  ERR_NOMEM and the device's errors, after which it is to be
 * closed too. */
int model_pool_open(struct model_pool *p, struct device *dev, const struct model_pool_size *size, struct err *e);
void model_pool_close(struct model_pool *p); /* zeroed is fine */

/* Room for `rows` rows at least, an eighth more than is needed if it must grow; what was in it is lost then. */
int model_pool_room(struct model_pool *p, struct model_room *r, int64_t rows, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
