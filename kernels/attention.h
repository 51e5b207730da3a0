/* kernels/attention.h -- causal attention that never stores the (T, T) matrix.
 *
 *     o = dropout(softmax(scale q k^T, keys 0 .. pos of the query, or from where its document or window begins)) v
 * Tiled with an online softmax; backward recomputes probabilities from the saved
 * log-sum-exp (arXiv:2205.14135, arXiv:2307.08691).
 */
#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include <math.h>

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A (batch, rows, heads, d) tensor inside a larger one: head h of row t of sequence b
 * starts at p + b * batch + t * row + h * d elements.  A packed qkv (B, T, (H + 2 Hkv) d)
 * is three of them, with row (H + 2 Hkv) d, batch T * row. */
struct attention_view {
    void *p;
    int64_t batch, row;
};

/* The keys of a query may come in several calls, the blocks of ring attention (arXiv:2310.01889).
 * Forward of the first, of which every query sees a key, writes o, in fp32, and lse; each further one goes on from what
 * they hold.
 * Backward takes the lse of all blocks, and o of all in dt, and adds its share to dq, dk and dv, which
 * are fp32 then. */
enum attention_block { ATTENTION_ALONE, ATTENTION_FIRST, ATTENTION_FURTHER };

struct attention {
    int64_t b, t, heads, kv_heads, d; /* heads % kv_heads == 0: query head h reads kv
                                         head h / (heads / kv_heads) */
    int64_t t_kv;   /* keys; >= t.  Query i sees keys 0 .. i + t_kv - t: equal to t in
                       training, more when the first ones come from a cache */
    bool full;      /* every query sees all keys, of which there may be any number */
    const int32_t *start; /* (B, t) or NULL: the first key that a query sees, its own place at most and nowhere less than that
                             of the query before; counted as first_key is.  Not with a cache */
    int64_t documents, longest; /* with start: how many documents the call has at most, where each token's start is the place of a
                                   token whose start that is too, and how many tokens each has at most; 0: not known */
    int64_t window; /* > 0: how many keys a query sees at most, its own the last */
    float cap;      /* > 0: cap tanh(x / cap) in place of a logit x */
    const void *sink; /* (heads) of the call's type, or NULL: a logit beside those of the keys, of a value that is 0 */
    bool sink_zero;   /* without sink: that logit is 0 */
    float *dsink;     /* (heads), or NULL: backward adds sink's gradient; of blocks of the same queries one alone may */
    enum attention_block block;
    float scale;    /* 1 / sqrt(d) as a rule */
    struct attention_view q, k, v; /* (B, t, H, d), (B, t_kv, Hkv, d) twice; only read */
    struct attention_view o;       /* (B, t, H, d); forward's of a block is fp32 */
    float *lse;     /* (B, H, t): log of the sum of exponentials, base e; forward writes
                       it (NULL when no backward follows), backward reads it */
    float *most;    /* (heads), numbers of at least 0, or NULL: forward raises each to the largest logit of its head.  Not with
                       cap */
    const struct dropout *drop;    /* of the probabilities, key by query: row
                                      (b all_heads + first_head + h) t_kv + key, column
                                      query, of t columns; or NULL */
    int64_t all_heads, first_head; /* where heads stand among those of all ranks, for drop;
                                      all_heads 0: these are all */
    int64_t all_t, first_query, first_key; /* the same for queries and keys of a sequence of
                                      all_t; 0: these are all */
};

/* Who sees whom, for a kernel and its twin: this alone knows of masks.  Query i of sequence b sees the keys from the first to the
 * last one, neither of which is less for a later query, ... */
TWIN_INLINE int64_t attention_place(const struct attention *p, int64_t i) /* the number of its own key, which may not be here */
{
    return p->full ? i + p->first_query - p->first_key : i + p->t_kv - p->t;
}
TWIN_INLINE int64_t attention_document(const struct attention *p, int64_t b, int64_t i) /* the first key but for masks */
{
    int64_t first = p->start ? p->start[b * p->t + i] - p->first_key : 0;

    return first < 0 ? 0 : first;
}
TWIN_INLINE bool attention_masked(const struct attention *p)
{
    return p->window > 0;
}
TWIN_INLINE int64_t attention_first_key(const struct attention *p, int64_t b, int64_t i)
{
    int64_t first = attention_document(p, b, i), far = p->window > 0 ? attention_place(p, i) - p->window + 1 : 0;

    return first < far ? far : first;
}
TWIN_INLINE int64_t attention_reach(const struct attention *p) /* keys beyond its own number */
{
    return p->full ? p->t_kv : p->t_kv - p->t;
}
TWIN_INLINE int64_t attention_last_key(const struct attention *p, int64_t i)
{
    int64_t last = i + attention_reach(p);

    return last < p->t_kv ? last : p->t_kv - 1;
}
/* ... and a key is seen by the queries from the first to the last one, but for documents. */
TWIN_INLINE int64_t attention_first_query(const struct attention *p, int64_t key)
{
    return p->full || key < p->t_kv - p->t ? 0 : key - (p->t_kv - p->t);
}
TWIN_INLINE int64_t attention_last_query(const struct attention *p, int64_t key)
{
    int64_t last = p->window > 0 ? key + p->window - 1 - attention_place(p, 0) : p->t - 1;

    return last < p->t ? last : p->t - 1;
}
/* The logit that the product x of a query and a key, times scale, gives; and its slope, by the logit. */
TWIN_INLINE float attention_logit(const struct attention *p, float x)
{
    return p->cap > 0 ? p->cap * tanhf(x / p->cap) : x;
}
TWIN_INLINE float attention_logit_slope(const struct attention *p, float logit)
{
    float t = p->cap > 0 ? logit / p->cap : 0;

    return 1 - t * t;
}
TWIN_INLINE bool attention_sinks(const struct attention *p)
{
    return p->sink || p->sink_zero;
}
/* Whether documents aside a query of the call sees a key of it; and whether one may see none, though keys stand before it. */
TWIN_INLINE bool attention_any(const struct attention *p)
{
    return p->window <= 0 || attention_place(p, 0) - p->window + 1 < p->t_kv;
}
TWIN_INLINE bool attention_hides(const struct attention *p)
{
    return p->start || attention_masked(p);
}
/* How many pairs of a query and a key that it sees there are among t tokens. */
static inline double attention_pairs(const struct attention *p, double t)
{
    double w = p->window > 0 && (double)p->window < t ? (double)p->window : t;

    return t * w - w * w / 2;
}
/* Whether it is causal attention over a sequence of its own and nothing else. */
static inline bool attention_common(const struct attention *p)
{
    bool whole = !p->block && !p->full && p->t == p->t_kv, seen = p->start || attention_masked(p);

    return whole && !seen && !attention_sinks(p) && !(p->cap > 0) && !(p->drop && p->drop->p > 0);
}

/* Few queries and many keys (generation) take a path of their own, without tiles.  d is at
 * most 256.  Scratch a thread: 8 t_kv d bytes, and under 1 MiB. */
typedef int attention_fwd_fn(struct device *dev, enum dtype dt, const struct attention *p,
                             struct err *e);
/* dq, dk, dv from dout, with forward's arguments (o and lse included) in p.  They are
 * overwritten (but see enum attention_block); they may lie packed as q, k and v do.  A kv head's gradient is summed
 * over its query heads in order, so the bits do not depend on the number of threads.
 * dout may not overlap the gradients.  Scratch a thread: 16 t_kv d bytes,
 * and under 1 MiB. */
typedef int attention_bwd_fn(struct device *dev, enum dtype dt, const struct attention *p,
                             struct attention_view dout, struct attention_view dq,
                             struct attention_view dk, struct attention_view dv, struct err *e);
attention_fwd_fn attention_fwd_cpu, attention_fwd_cuda;
attention_bwd_fn attention_bwd_cpu, attention_bwd_cuda;

#ifdef __cplusplus
}
#endif
#endif
