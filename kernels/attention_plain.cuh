/* kernels/attention_plain.cuh -- attention of any shape without tensor cores, for attention.cu; arguments are checked. */
#ifndef KERNELS_ATTENTION_PLAIN_CUH
#define KERNELS_ATTENTION_PLAIN_CUH

#include "kernels/lanes.cuh"

int attention_plain_fwd(struct device *dev, enum dtype dt, const struct attention *p, struct err *e);
/* Scratch: 4 b heads t bytes. */
int attention_plain_bwd(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                        struct attention_view dq, struct attention_view dk, struct attention_view dv, struct err *e);
/* delta (b, heads, t): the sum of dout * o over each row of a head. */
int attention_delta(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout, float *delta,
                    struct err *e);

/* Adds the gradient of the sinks, where one is asked for. */
int attention_sink(struct device *dev, enum dtype dt, const struct attention *p, const float *delta, struct err *e);

/* The logit of head h that somebody asks for is at least the largest x of a warp, each of at least 0. */
static __device__ __forceinline__ void attention_raise(const struct attention &p, int64_t h, float x)
{
    x = warp_max(x);
    if (threadIdx.x % 32 == 0)
        atomicMax((unsigned *)&p.most[h], __float_as_uint(x)); /* of such numbers bits are in order */
}

/* For the kernels: dropout of the rows from this rank's first head and key on, ... */
static inline struct drop attention_drop(const struct attention *p)
{
    struct drop d = drop_of(p->drop, p->all_t ? p->all_t : p->t);

    d.row0 += (uint64_t)(p->first_head * (p->all_t ? p->all_t : p->t_kv) + p->first_key);
    return d;
}
/* ... and arguments without zeros that stand for something. */
static inline struct attention attention_filled(const struct attention *p)
{
    struct attention a = *p;

    a.all_heads = p->all_heads ? p->all_heads : p->heads;
    a.all_t = p->all_t ? p->all_t : p->t_kv;
    return a;
}

#endif
