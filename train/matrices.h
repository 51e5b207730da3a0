/* train/matrices.h -- what of an update looks at whole matrices (train/optim.h: struct optim's direct); a vector is one of one
 * column.
 *
 * A momentum is kept element by element, by who keeps the shard; what the update is to be made of stands in the gradients'
 * place then, and so does the update when the matrix has been seen whole.  Where ranks share the weights, tensor ranks and
 * data-parallel ones, the matrices are taken in rounds, one of each rank, its owner: what others have of it comes to that rank,
 * and what it has made goes back to all.  Largest ones first, so those of a round take about as long.  A matrix is whole when it
 * is computed with, so the bits do not depend on how data-parallel ranks divide it.  What is kept of its rows and columns its
 * owner keeps.
 */
#ifndef TRAIN_MATRICES_H
#define TRAIN_MATRICES_H

#include "train/exchange.h"
#include "train/layout.h"
#include "train/zero_shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix: rows of a logical tensor, or all. */
struct whole_matrix {
    const struct zero_shard *shard;
    const struct param *param;
    bool experts;
    int64_t rows, cols;
    size_t at, n; /* elements that this tensor rank has, of the flat buffer */
    int number;   /* as they were added, on all ranks that share it */
    float *lines; /* what this rank keeps of its rows, then of its columns; NULL: nothing */
};

struct matrices {
    struct device *dev;
    const struct optim_conf *optim;
    const struct layout *layout;
    struct whole_matrix *v; /* dense ones, then experts'; the largest first */
    int n, room;
    void *work;
    float *lines;  /* of all matrices, of which this rank keeps some; NULL: the kind has none */
    float *whole;  /* the matrix of this rank in a round; NULL: this rank has all of its matrices, and alone */
    float *slices; /* what each tensor rank has of it, where that are columns; NULL: there is one tensor rank */
    struct exchange_call *calls; /* under way */
    int n_calls;
};

/* Bytes for matrices up to that size, of so many tensor ranks with so many replicas; those of them for rows and columns. */
size_t matrices_bytes(const struct optim_conf *c, const struct matrix_size *most, int tensor, int replicas);
size_t matrices_lines(const struct optim_conf *c, const struct matrix_size *most);

/* most: of all shards that are added.  Zeroed is none. */
int matrices_open(struct matrices *m, struct device *dev, const struct optim_conf *c, const struct layout *l,
                  const struct matrix_size *most, struct err *e);
int matrices_add(struct matrices *m, const struct zero_shard *z, struct err *e);
/* After the last was added. */
int matrices_ready(struct matrices *m, struct err *e);
void matrices_close(struct matrices *m); /* zeroed is fine */
/* The rows and columns that are kept of them become 0 again. */
int matrices_forget(struct matrices *m, struct err *e);

/* What this rank keeps of rows and columns, as pieces of a checkpoint; v has room for matrices_pieces_max.  How many.  They are
 * vectors, by the name of their parameter. */
int matrices_pieces_max(const struct matrices *m);
int matrices_pieces(const struct matrices *m, enum checkpoint_part part, struct piece *v);

/* After zero_momentum of all shards, if the kind has a momentum.  clip: what gradients are multiplied by, if it has none. */
int matrices_direct(struct matrices *m, const struct optim_step *s, double clip, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
