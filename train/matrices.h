/* train/matrices.h -- what of an update looks at whole matrices (struct optim's direct).
 *
 * Its momentum is kept element by element, by who keeps the shard; the matrix that the update is made of stands in the gradients'
 * place then, and so does the update when the matrix has been seen whole.
 */
#ifndef TRAIN_MATRICES_H
#define TRAIN_MATRICES_H

#include "train/zero_shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix: rows of a logical tensor, or all. */
struct whole_matrix {
    struct zero_shard *shard;
    int64_t rows, cols;
    size_t at, n; /* elements that are here, of the flat buffer */
};

struct matrices {
    struct device *dev;
    const struct optim_conf *optim;
    struct whole_matrix *v;
    int n, room;
    void *work;
};

/* Bytes for matrices up to that size. */
size_t matrices_bytes(const struct optim_conf *c, const struct matrix_size *most);

/* Zeroed is none.  most: of all shards that are added. */
int matrices_open(struct matrices *m, struct device *dev, const struct optim_conf *c, const struct matrix_size *most,
                  struct err *e);
int matrices_add(struct matrices *m, struct zero_shard *z, struct err *e);
void matrices_close(struct matrices *m); /* zeroed is fine */

/* After zero_momentum of all shards. */
int matrices_direct(struct matrices *m, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
