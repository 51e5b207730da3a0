/* kernels/embedding.h -- token and learned position embeddings. */
#ifndef KERNELS_EMBEDDING_H
#define KERNELS_EMBEDDING_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out (T, C)[t] = wte (n_vocab, C)[token[t] - first] + wpe (n_pos, C)[pos[t]].
 * The table holds tokens first .. first + n_vocab - 1 (a slice when the vocabulary
 * is split over ranks; else first 0); a token outside contributes nothing.  wpe
 * NULL: no positions, and pos may be NULL.  Token ids must be >= 0 and positions
 * in [0, n_pos): the CPU answers ERR_ARG otherwise. */
struct embedding {
    int64_t t, c;
    const int32_t *token, *pos; /* (T) */
    int64_t first, n_vocab, n_pos;
};
typedef int embedding_fwd_fn(struct device *dev, enum dtype dt, void *out,
                             const struct embedding *p, const void *wte, const void *wpe,
                             struct err *e);
/* dwte (n_vocab, C) += and dwpe (n_pos, C) += from dout (T, C); fp32; dwpe NULL: no
 * positions.  The additions to a row happen in the order of t: the same bits for
 * any number of threads. */
typedef int embedding_bwd_fn(struct device *dev, enum dtype dt, float *dwte, float *dwpe,
                             const struct embedding *p, const void *dout, struct err *e);
embedding_fwd_fn embedding_fwd_cpu, embedding_fwd_cuda;
embedding_bwd_fn embedding_bwd_cpu, embedding_bwd_cuda;

#ifdef __cplusplus
}
#endif
#endif
