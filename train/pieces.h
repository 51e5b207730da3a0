/* train/pieces.h -- what of the logical tensors a rank holds, as rectangles.
 *
 * A checkpoint is of logical tensors (train/params.h), whoever holds which part of them: a rank
 * gives the rectangles that it has, or asks for those that it wants.  A tensor cut by tensor
 * parallelism is a rectangle for each part, a flat range of one at most three.
 */
#ifndef TRAIN_PIECES_H
#define TRAIN_PIECES_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/comm.h"
#include "kernels/device.h"
#include "train/params.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a tensor is of the state of training.  Its name in a file begins with the prefix. */
enum checkpoint_part {
    CHECKPOINT_WEIGHTS, CHECKPOINT_EXP_AVG, CHECKPOINT_EXP_AVG_SQ, CHECKPOINT_MOMENTUM,
    CHECKPOINT_PARTS,                  /* those that a parameter may have (train/optim.h); */
    CHECKPOINT_FP8 = CHECKPOINT_PARTS, /* scales (train/fp8.h) */
    CHECKPOINT_KINDS
};
extern const char *const checkpoint_prefix[CHECKPOINT_KINDS];

/* Rows row .. row + rows - 1, columns col .. col + cols - 1 of a logical fp32 tensor of dims 1
 * or 2.  A vector has one column, and shape[1] is ignored. */
struct piece {
    enum checkpoint_part part;
    const char *name; /* of the logical tensor; the caller's */
    int dims;
    int64_t shape[2];
    int64_t row, rows, col, cols;
    void *data;  /* its first element; the device's, or the host's where there is none */
    bool bf16;   /* data has bf16 numbers; a file has fp32 of them all the same */
    int64_t ld;  /* elements from a row to the next, at least cols */
};

/* Where element n of data is. */
static inline void *piece_at(const struct piece *p, int64_t n)
{
    return (char *)p->data + n * (int64_t)dtype_size(p->bf16 ? DTYPE_BF16 : DTYPE_F32);
}

static inline int64_t piece_width(const struct piece *p)
{
    return p->dims == 2 ? p->shape[1] : 1;
}
static inline bool piece_whole(const struct piece *p)
{
    return p->rows == p->shape[0] && p->cols == piece_width(p);
}

/* The pieces of a slab of fp32 or bf16 numbers laid out by p (NULL: their places alone), in its order; v has room for
 * PIECES_PER_PARAM of each parameter.  How many. */
enum { PIECES_PER_PARAM = PARAM_PARTS };
int params_pieces(const struct params *p, enum checkpoint_part part, void *slab, enum dtype dt, struct piece *v);

/* Elements first .. first + n - 1 of p, counted row by row, as at most three pieces.  How many. */
int piece_range(const struct piece *p, int64_t first, int64_t n, struct piece out[3]);

/* Copies elements first .. first + n - 1 of p, counted row by row, to out in host memory.  dev NULL: p is there too. */
int piece_get(struct device *dev, const struct piece *p, int64_t first, int64_t n, float *out, struct err *e);

/* What of the pieces of all ranks this rank writes, in *out (to be freed) in the order of v: every
 * rank gives its own, n > 0 or none, and those that several have are shared: what the same ranks
 * hold is laid end to end and cut in equal stretches, at rows.  Only the table of
 * pieces travels.  ERR_ARG names a tensor of which no rank has some of the elements. */
int pieces_share(struct comm *group, const struct piece *v, int n, struct piece **out, int *n_out, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
