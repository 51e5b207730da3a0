/* train/model_room.h -- where a model's activations lie: pieces cut off slabs, in one order for measuring and for use. */
#ifndef TRAIN_MODEL_ROOM_H
#define TRAIN_MODEL_ROOM_H

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cuts pieces off a slab; without a slab it only measures. */
struct carve {
    char *base;
    size_t used;
};
/* The next n elements of so many bytes; without a base NULL, and only counted. */
static inline void *carve(struct carve *c, int64_t n, size_t size)
{
    void *p = c->base ? c->base + c->used : NULL;

    c->used += ((size_t)n * size + 63) / 64 * 64;
    return p;
}

/* Where things are cut from: what each slot has, what all micro-batches and parts share, and what is this part's alone. */
struct carves {
    struct carve slot, work, alone;
    int slot_rooms, work_rooms;
};

/* Sets all pointers of a model whose parameters are laid out and whose slots have their tables; k gets what was used. */
void model_room(struct model *m, struct carves *k);

#ifdef __cplusplus
}
#endif
#endif
