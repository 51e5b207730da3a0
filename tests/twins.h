/* tests/twins.h -- one implementation of the ops against another: of deduplication bit for bit, of training within
 * tolerances.
 *
 * make gpu-check: the CPU's against the GPU's.  tests/unit/twins_test.c: the CPU's against the
 * CUDA kernels run on the CPU.
 */
#ifndef TESTS_TWINS_H
#define TESTS_TWINS_H

#include "kernels/device.h"

/* One comparison, as it is reported. */
struct twins_found {
    const char *what;    /* op, shape, types, layout, epilogue */
    const char *how;     /* which of its ways the other device took (struct device), "": it has one */
    int64_t n, wrong;    /* elements; those beyond the tolerance */
    double most, norm;   /* the largest error, the norm of all as shares of what is allowed; 0 where bits must be the same */
    const char *why;     /* the first thing wrong; "": nothing */
};

struct twins {
    struct device *cpu, *other;
    int scale;      /* 1: small; work grows with it */
    bool short_sums;  /* other adds FP8 products in some 14 bits, as Hopper's tensor cores do (arXiv:2412.19437, 3.3.2) */
    matmul_fn *plain; /* other's product without a library, to be checked too; or NULL */
    char wrong[256]; /* the first thing wrong that a case found, or "" */
    int compared, failed; /* comparisons of the case */
    void (*found)(const struct twins_found *f); /* told of each comparison; or NULL */
    char how[DEVICE_HOW_BYTES];
};

struct twins_case {
    const char *name;
    void (*run)(struct twins *t);
};
/* Ends with a name of NULL. */
extern const struct twins_case twins_cases[], train_twins_cases[];
#endif
