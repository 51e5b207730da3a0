/* kernels/cpu.h -- what the CPU's ops share; for kernels/ alone. */
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matmul_plans;

struct device_impl {
    void *scratch;
    size_t scratch_bytes;
    void *decoded; /* of FP8 ops */
    size_t decoded_bytes;
    bool amx; /* bf16 by tiles (kernels/amx.h); training alone, as plans */
    struct matmul_plans *plans;
    void (*plans_free)(struct matmul_plans *plans);
};

/* At least bytes of 64-byte aligned scratch, valid until the next call: an op asks once.
 * Grows and never shrinks. */
int cpu_scratch(struct device *dev, void **p, size_t bytes, struct err *e);

/* The same for what an op of FP8 hands to others, which take scratch themselves. */
int cpu_decoded(struct device *dev, void **p, size_t bytes, struct err *e);

/* Matmul plans (oneDNN's primitives by shape). */
int matmul_plans_new(struct matmul_plans **plans, struct err *e);
void matmul_plans_free(struct matmul_plans *plans);
size_t matmul_plans_bytes(const struct matmul_plans *plans);
/* Whether bf16 products run as such: oneDNN is there and the processor has AVX-512. */
bool matmul_has_bf16(const char **how);

/* This thread's part of n inside a parallel region: [*lo, *hi), cut at multiples of unit. */
void cpu_share(int64_t n, int64_t unit, int64_t *lo, int64_t *hi);
/* A team for work of n elements: one thread when waking others costs more. */
static inline int cpu_team(const struct device *dev, int64_t n)
{
    return n < 8192 ? 1 : dev->team;
}
/* Runs CALL with the constant DT for the type dt: one loop compiled for each. */
#define BY_DTYPE(dt, CALL)                                                     \
    do {                                                                       \
        if ((dt) == DTYPE_BF16) {                                              \
            const enum dtype DT = DTYPE_BF16;                                          \
            CALL;                                                              \
        } else {                                                               \
            const enum dtype DT = DTYPE_F32;                                           \
            CALL;                                                              \
        }                                                                      \
    } while (0)

/* Rows are summed in this many groups, whatever the number of threads. */
enum { CPU_GROUPS = 32 };
static inline int64_t cpu_group_begin(int64_t g, int64_t t) { return g * t / CPU_GROUPS; }

#ifdef __cplusplus
}
#endif
#endif
