/* kernels/adamw_constants.h -- what an update of adamw multiplies by, for both twins. */
#ifndef KERNELS_ADAMW_CONSTANTS_H
#define KERNELS_ADAMW_CONSTANTS_H

#include <math.h>

#include "kernels/adamw.h"

struct adamw_constants {
    float scale, b1, b2, one_b1, one_b2, decay, rate, root, eps;
};

/* All but scale, which is the device's. */
static inline struct adamw_constants adamw_constants_of(const struct adamw *p)
{
    struct adamw_constants k;

    k.scale = 1;
    k.b1 = (float)p->beta1;
    k.b2 = (float)p->beta2;
    k.one_b1 = (float)(1 - p->beta1);
    k.one_b2 = (float)(1 - p->beta2);
    k.decay = (float)(1 - p->lr * p->weight_decay);
    k.rate = (float)(p->lr / (1 - pow(p->beta1, (double)p->step)));
    k.root = (float)(1 / sqrt(1 - pow(p->beta2, (double)p->step)));
    k.eps = (float)p->eps;
    return k;
}

#endif
