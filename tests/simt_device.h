/* tests/simt_device.h -- the CUDA kernels as ops that run on the CPU (tests/simt.h). */
#ifndef TESTS_SIMT_DEVICE_H
#define TESTS_SIMT_DEVICE_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread of the program at a time. */
extern const struct dedup_ops simt_dedup_ops;
extern const struct device_ops simt_ops;
/* tests/simt_backend.cpp: a device with these, and with memory of its own. */
int simt_open(struct device **dev, int number, struct err *e);
/* Order of blocks, warps and lanes: 0 ascending, 1 descending, 2 random from the seed. */
void simt_set_order(int order, uint64_t seed);

/* tests/simt_lt.cpp: how often cuBLASLt's stand-in was asked for algorithms. */
extern int simt_lt_asked;
/* Whether it proposes to split k and to add the parts up in the type of the result where that is not allowed. */
extern bool simt_lt_disobeys;

/* Bits of keys that CUB's stand-in sorted by, of all calls. */
extern int simt_sorted_bits;

/* tests/simt_dnn.cpp: calls of cuDNN's stand-in so far; whether they are to fail. */
extern struct simt_dnn_calls {
    int forward, backward;
    bool fail;
} simt_dnn_calls;
/* tests/simt_dnn_library.cpp: how many engines of cuDNN's at this path take our graph of attention on an H200.  ERR_UNSUPPORTED:
 * none is there, or it refuses the graph. */
struct simt_dnn_shape {
    int64_t b, t, heads, kv_heads, d; /* with documents: b of them, of up to t tokens */
    int backward, documents;
    double drop;
};
int simt_dnn_engines(const char *library, const struct simt_dnn_shape *of, int *engines, struct err *e);
/* tests/simt_dnn_text.cpp: the graph as text, until the next call; NULL: cuDNN's stand-in, which must be there, refuses it. */
const char *simt_dnn_text(const struct simt_dnn_shape *of, struct err *e);
/* Frees what ops keep with a device. */
void simt_forget(void);

/* tests/simt_kernels.cu: kernels that use every part of tests/simt.h, right or with a mistake.
 * Each returns 0 if the result is what it should be. */
enum simt_mistake { SIMT_RIGHT, SIMT_NO_BARRIER, SIMT_WRONG_MASK, SIMT_WRONG_LANE, SIMT_TWO_BARRIERS, SIMT_NO_ATOMIC,
                    SIMT_STUCK, SIMT_NO_WAIT, SIMT_LEFT_BEHIND, SIMT_HOST_ARGUMENT, SIMT_HOST_FOLLOWED, SIMT_BEHIND_END,
                    SIMT_BEFORE, SIMT_FREED, SIMT_INNER_ADDRESS, SIMT_HOST_READS, SIMT_LONG_COPY, SIMT_COPY_OF_HOST,
                    SIMT_MISALIGNED, SIMT_MISALIGNED_COPY, SIMT_MISALIGNED_ROW, SIMT_THREADS, SIMT_BLOCKS, SIMT_SHARED,
                    SIMT_DYNAMIC };
int simt_block_sums(enum simt_mistake mistake);
int simt_warp_calls(enum simt_mistake mistake);
int simt_atomics(enum simt_mistake mistake);
int simt_copies(enum simt_mistake mistake);
int simt_shapes(void);
int simt_launches(enum simt_mistake mistake);

#ifdef __cplusplus
}
#endif
#endif
