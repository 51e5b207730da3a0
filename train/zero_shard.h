/* train/zero_shard.h -- what a rank keeps of a param buffer: its shard of the optimizer's state (ZeRO-1, arXiv:1910.02054).
 *
 * The state is the fp32 weights, where the buffer does not have all of them, and what the optimizer keeps.  It is on the model's
 * device, or on the host.  An undivided buffer has one shard, all of it, so the same code serves, and each element goes through
 * the same arithmetic: the bits are the same.
 */
#ifndef TRAIN_ZERO_SHARD_H
#define TRAIN_ZERO_SHARD_H

#include "train/optim.h"
#include "train/param_buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct zero_shard {
    struct param_buffer *buffer;
    struct device *dev;          /* where main and state are: the buffer's, or the CPU */
    float *main;                 /* the fp32 weights of the shard; NULL: they are the buffer's, or there are none */
    void *state[PARAM_STATES];   /* the optimizer's, of the shard, of the conf's types; NULL: no parameter has it */
    bool packed;                 /* the second is of those parameters alone that have it: shard_range's `second` says where */
    void *sent;                  /* the shard's weights as they are sent, with state on the host or bf16 weights alone where
                                    weights are divided; else NULL */
    float *stage_grad[2];        /* with state on the host: elements on their way */
    void *stage_weight;
};

/* Of a buffer that is not trained there is no state, no square, no update.
 *
 * Bytes beside the buffer's: weights of the shard as they are sent; the optimizer's state; and what is on the host instead. */
struct zero_memory {
    size_t weights, optimizer, host;
};
struct zero_memory zero_plan(const struct param_buffer_memory *m, const struct param_buffer_conf *c, enum dtype dt);

/* The shard of an open buffer; its state is 0.  host: the CPU, if the buffer's conf says offload.  ERR_NOMEM. */
int zero_open(struct zero_shard *z, struct param_buffer *b, struct device *host, struct err *e);
void zero_close(struct zero_shard *z); /* the buffer stays; zeroed is fine */

/* The shard gets initial weights (params_fill); then zero_weights_changed is due. */
int zero_fill(struct zero_shard *z, uint64_t seed, struct err *e);
/* The shard's weights were written: the buffer has them all. */
int zero_weights_changed(struct zero_shard *z, struct err *e);

/* The shard as pieces of a checkpoint; v has room for zero_pieces_max.  How many. */
int zero_pieces_max(const struct zero_shard *z);
int zero_pieces(const struct zero_shard *z, enum checkpoint_part part, struct piece *v);

/* Element n of the i-th state of a range; NULL: its parameter has none. */
static inline void *zero_state(const struct zero_shard *z, int i, const struct shard_range *r, size_t n)
{
    size_t at = (i && z->packed ? r->second : r->here) + n;

    return i < r->param->rule.states ? (char *)z->state[i] + at * dtype_size(z->buffer->conf.state[i]) : NULL;
}
/* Its parameter's update; where whole matrices have made the first state, that stands in fp32 gradients' place. */
static inline struct update zero_update_of(const struct zero_shard *z, const struct optim_step *s, const struct param *p)
{
    struct update u = optim_update(s, p);

    u.m_type = p->rule.whole ? DTYPE_F32 : z->buffer->conf.state[0];
    u.v_type = z->buffer->conf.state[1];
    return u;
}

/* How many blocks the norm has; sums[blocks] (the device's) get the squares of the shard's gradients that no other rank of the
 * model counts. */
int64_t zero_blocks(const struct zero_shard *z);
int zero_squares(const struct zero_shard *z, double *sums, struct err *e);

/* Of parameters that are updated by whole matrices: the momentum takes up gradients times grad_scale, and what the update is
 * to be made of stands in the gradients' place. */
int zero_momentum(struct zero_shard *z, const struct optim_momentum *m, double grad_scale, struct err *e);

/* The optimizer's update of the shard; then the buffer has all new weights, or they are under way. */
int zero_update(struct zero_shard *z, const struct optim_step *s, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
