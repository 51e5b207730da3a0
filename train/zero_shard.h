/* train/zero_shard.h -- what a rank keeps of a param buffer: its shard of the optimizer's state (ZeRO-1, arXiv:1910.02054).
 *
 * The state is the fp32 weights, where the buffer does not have all of them, and what the optimizer keeps.  It is on the model's
 * device, or on the host.  An undivided buffer has one shard, all of it, so the same code serves, and each element goes through
 * the same arithmetic: the bits are the same.
 */
#ifndef TRAIN_ZERO_SHARD_H
#define TRAIN_ZERO_SHARD_H

#include "kernels/eight_bit.h"
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
    float *scale[PARAM_STATES];  /* of state of eight bits, of each 256 elements; else NULL */
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
/* The state becomes 0 again. */
int zero_forget(struct zero_shard *z, struct err *e);

/* The shard gets initial weights (params_fill); then zero_weights_changed is due. */
int zero_fill(struct zero_shard *z, uint64_t seed, struct err *e);
/* The shard's weights were written: the buffer has them all. */
int zero_weights_changed(struct zero_shard *z, struct err *e);

/* Rows row .. row + rows - 1 of parameter i (of what is here) times a number, as far as the shard has them, unless it is frozen
 * or there is none (-1); then zero_weights_changed is due.  No weights may be on their way. */
int zero_scale_rows(struct zero_shard *z, int i, int64_t row, int64_t rows, double by, struct err *e);

/* The shard as pieces of a checkpoint; v has room for zero_pieces_max.  How many. */
int zero_pieces_max(const struct zero_shard *z);
int zero_pieces(const struct zero_shard *z, enum checkpoint_part part, struct piece *v);

/* Element n of the i-th state of a range; NULL: its parameter has none. */
static inline void *zero_state(const struct zero_shard *z, int i, const struct shard_range *r, size_t n)
{
    size_t at = (i && z->packed ? r->second : r->here) + n;

    return i < r->param->rule.states ? (char *)z->state[i] + at * dtype_size(z->buffer->conf.state[i]) : NULL;
}
/* The scales of such elements of eight bits; n is a multiple of 256. */
static inline float *zero_scale(const struct zero_shard *z, int i, const struct shard_range *r, size_t n)
{
    return z->scale[i] ? z->scale[i] + (r->here + n) / EIGHT_BIT_BLOCK : NULL;
}
/* The update from element n of a range on; where whole matrices made the first state, it stands in fp32 gradients' place. */
static inline struct update zero_update_of(const struct zero_shard *z, const struct optim_step *s, const struct shard_range *r,
                                           size_t n)
{
    struct update u = optim_update(s, r->param);

    u.m_type = r->param->rule.whole ? DTYPE_F32 : z->buffer->conf.state[0];
    u.v_type = z->buffer->conf.state[1];
    u.m_scale = zero_scale(z, 0, r, n);
    u.v_scale = zero_scale(z, 1, r, n);
    return u;
}

/* The weights that it updates, from element `here` of the shard, `at` of the buffer, on; and their type. */
static inline enum dtype zero_weights_type(const struct zero_shard *z)
{
    return z->buffer->conf.bf16_alone ? DTYPE_BF16 : DTYPE_F32;
}
static inline void *zero_weights(const struct zero_shard *z, size_t here, size_t at)
{
    if (!z->buffer->conf.bf16_alone)
        return z->main ? z->main + here : z->buffer->weights + at;
    return z->sent ? (uint16_t *)z->sent + here : z->buffer->low + at;
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
