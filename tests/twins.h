/* tests/twins.h -- one implementation of the ops against another: of deduplication bit for bit, of training within
 * tolerances.
 *
 * make gpu-check: the CPU's against the GPU's.  tests/unit/twins_test.c: the CPU's against the
 * CUDA kernels run on the CPU.
 */
#ifndef TESTS_TWINS_H
#define TESTS_TWINS_H

#include "kernels/device.h"

struct twins {
    struct device *cpu, *other;
    int scale;      /* 1: small; work grows with it */
    bool short_sums;  /* other adds FP8 products in some 14 bits, as Hopper's tensor cores do (arXiv:2412.19437, 3.3.2) */
    matmul_fn *plain; /* other's product without a library, to be checked too; or NULL */
    char wrong[256]; /* what a case found, or "" */
};

struct twins_case {
    const char *name;
    void (*run)(struct twins *t);
};
/* Ends with a name of NULL. */
extern const struct twins_case twins_cases[], train_twins_cases[];
#endif
