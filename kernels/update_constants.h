/* kernels/update_constants.h -- what an update multiplies by, for both twins. */
#ifndef KERNELS_UPDATE_CONSTANTS_H
#define KERNELS_UPDATE_CONSTANTS_H

#include <math.h>

#include "kernels/update.h"

struct update_constants {
    float scale, lr, wd, b1, b2, one_b1, one_b2, eps;
    float decay, rate, root; /* 1 - lr wd; lr and the root of v through the bias corrections of Adam */
    uint64_t step;
    struct update_round round;
};

/* All but scale, which is the device's. */
static inline struct update_constants update_constants_of(const struct update *p)
{
    struct update_constants k;

    k.scale = 1;
    k.b1 = (float)p->beta1;
    k.b2 = (float)p->beta2;
    k.one_b1 = (float)(1 - p->beta1);
    k.one_b2 = (float)(1 - p->beta2);
    k.lr = (float)p->lr;
    k.wd = (float)p->weight_decay;
    k.decay = (float)(1 - p->lr * p->weight_decay);
    k.rate = (float)(p->lr / (1 - pow(p->beta1, (double)p->step)));
    k.root = (float)(1 / sqrt(1 - pow(p->beta2, (double)p->step)));
    k.eps = (float)p->eps;
    k.step = (uint64_t)p->step;
    k.round = p->round;
    return k;
}

/* The bits of x rounded to bf16 by sixteen random ones; the lower half is 0. */
TWIN_INLINE uint32_t update_cut(uint32_t x, uint32_t add)
{
    if ((x & 0x7f800000u) == 0x7f800000u)
        return (x & 0x7fffffu ? x | 0x400000u : x) & 0xffff0000u;
    return (x + add) & 0xffff0000u;
}

/* The same by the bits for element e, of a Philox block. */
TWIN_INLINE uint32_t update_rounded(uint32_t x, const uint32_t block[4], uint64_t e)
{
    return update_cut(x, block[e % 8 / 2] >> (e % 2 ? 16 : 0) & 0xffff);
}

/* Random bits for the moments of an element, of the bits of its gradient (before it is scaled) and of its weight (before the
 * update), mixed as MurmurHash3 does at its end. */
TWIN_INLINE uint32_t update_random(uint32_t grad, uint32_t weight, uint64_t step)
{
    uint32_t x = (grad ^ (uint32_t)step * 0x85ebca77u) * 0x9e3779b1u ^ weight;

    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

#endif
