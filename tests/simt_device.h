/* tests/simt_device.h -- the CUDA kernels as ops that run on the CPU (tests/simt.h). */
#ifndef TESTS_SIMT_DEVICE_H
#define TESTS_SIMT_DEVICE_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For the tables of a CPU device.  One thread of the program at a time. */
extern const struct dedup_ops simt_dedup_ops;
extern const struct device_ops simt_ops;
/* Order of blocks, warps and lanes: 0 ascending, 1 descending, 2 random from the seed. */
void simt_set_order(int order, uint64_t seed);

/* tests/simt_lt.cpp: how often cuBLASLt's stand-in was asked for algorithms. */
extern int simt_lt_asked;

/* Bits of keys that CUB's stand-in sorted by, of all calls. */
extern int simt_sorted_bits;

/* tests/simt_dnn.cpp: how many engines of cuDNN's at this path take our graph of attention on an H200.  ERR_UNSUPPORTED:
 * none is there, or it refuses the graph. */
int simt_dnn_engines(const char *library, int64_t b, int64_t t, int64_t heads, int64_t kv_heads, int64_t d, int backward,
                     int *engines, struct err *e);
/* Frees what ops keep with a device. */
void simt_forget(void);

/* tests/simt_kernels.cu: kernels that use every part of tests/simt.h, right or with a mistake.
 * Each returns 0 if the result is what it should be. */
enum simt_mistake { SIMT_RIGHT, SIMT_NO_BARRIER, SIMT_WRONG_MASK, SIMT_WRONG_LANE, SIMT_TWO_BARRIERS, SIMT_NO_ATOMIC,
                    SIMT_STUCK, SIMT_NO_WAIT, SIMT_LEFT_BEHIND };
int simt_block_sums(enum simt_mistake mistake);
int simt_warp_calls(enum simt_mistake mistake);
int simt_atomics(enum simt_mistake mistake);
int simt_copies(enum simt_mistake mistake);
int simt_shapes(void);

#ifdef __cplusplus
}
#endif
#endif
