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

/* What an optimizer may keep of a parameter (train/optim.h), and what its name in a file begins with. */
#define CHECKPOINT_STATES(X) \
    X(CHECKPOINT_EXP_AVG, "exp_avg.") \
    X(CHECKPOINT_EXP_AVG_SQ, "exp_avg_sq.") \
    X(CHECKPOINT_MOMENTUM, "momentum_buffer.") \
    X(CHECKPOINT_EXP_AVG_SCALE, "exp_avg_scale.") \
    X(CHECKPOINT_EXP_AVG_SQ_SCALE, "exp_avg_sq_scale.") \
    X(CHECKPOINT_MOMENTUM_SCALE, "momentum_buffer_scale.") \
    X(CHECKPOINT_ROW_VAR, "row_var.") \
    X(CHECKPOINT_COL_VAR, "col_var.") \
    X(CHECKPOINT_VARIANCE, "variance.")
#define CHECKPOINT_PART(part, prefix) part,
/* What a tensor is of the state of training.  Its name in a file begins with the prefix. */
enum checkpoint_part {
    CHECKPOINT_WEIGHTS, CHECKPOINT_STATES(CHECKPOINT_PART)
    CHECKPOINT_PARTS,                  /* those of a parameter; */
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
    enum dtype dt; /* of data; a file has fp32 numbers of it all the same */
    int64_t ld;  /* elements from a row to the next, at least cols */
    /* Of eight bits (kernels/eight_bit.h): the array that data lies in, and the scales of its blocks. */
    const uint8_t *codes;
    const float *scale;
};

/* Where element n of data is. */
static inline void *piece_at(const struct piece *p, int64_t n)
{
    return (char *)p->data + n * (int64_t)dtype_size(p->dt);
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
