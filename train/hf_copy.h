/* train/hf_copy.h -- elements of another type, and transposed; for hf_import.c and hf_export.c. */
#ifndef TRAIN_HF_COPY_H
#define TRAIN_HF_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where rows of ours stand in a tensor of theirs: row r is first + r / block apart + r % block of its `of` rows, with block 0
 * first + r; turned: the tensor's transpose has them.  With pairs, which need a block, the last so many rows of each block stand
 * there in pairs of neighbours: here the first of each pair come first, then the second ones.  With halves, those of each block
 * change places. */
struct hf_at {
    int64_t first, block, apart, of, pairs;
    bool turned, halves;
};
/* How many rows, and how wide. */
struct hf_shape {
    int64_t rows, cols;
};

/* out (rows, cols) fp32 from in, which is of dtype "F32", "BF16", "F16" or "F64"; anything else is ERR_UNSUPPORTED. */
int hf_widen(float *out, const void *in, const char *dtype, struct hf_shape s, const struct hf_at *at, struct err *e);

/* The way back to "F32", "BF16" or "F16", rounded to nearest even; ERR_LIMIT: a value that is
 * finite, but not in F16. */
int hf_narrow(void *out, const float *in, const char *dtype, struct hf_shape s, const struct hf_at *at, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
