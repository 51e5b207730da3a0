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

/* The bits of x rounded to bf16 by the bits for element e, of a Philox block; the lower half is 0. */
TWIN_INLINE uint32_t update_rounded(uint32_t x, const uint32_t block[4], uint64_t e)
{
    uint32_t add = block[e % 8 / 2] >> (e % 2 ? 16 : 0) & 0xffff;

    if ((x & 0x7f800000u) == 0x7f800000u)
        return (x & 0x7fffffu ? x | 0x400000u : x) & 0xffff0000u;
    return (x + add) & 0xffff0000u;
}

#endif
