/* kernels/route.h -- a mixture of experts: which experts each token goes to, the way there and back.
 *
 * A router gives each of T tokens a logit an expert; its k largest choose (arXiv:1701.06538).  An expert may have a
 * capacity (arXiv:2006.16668): of more choices than that the rest is dropped.  Rows that go to experts stand by expert, and
 * for one expert in the order of tokens: row place[t, j] is token t's for its j-th choice.
 */
#ifndef KERNELS_ROUTE_H
#define KERNELS_ROUTE_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROUTE_MOST = 64, ROUTE_GROUPS = 64 }; /* choices of a token; groups of experts */

/* What makes a token's weights of its logits. */
enum route_score { ROUTE_SOFTMAX, ROUTE_SIGMOID };

struct route {
    int64_t t, experts, k; /* k <= experts, ROUTE_MOST */
    bool pre;              /* softmax over all experts, then the choice; else softmax over the chosen */
    int score;             /* enum route_score; sigmoids are divided by the sum of the chosen ones, unless one is all of them */
    float scale;           /* of the weights; 0: 1 */
    const float *bias;     /* (E) of the device: the choice is by sigmoids plus these, weights are without; NULL: none */
    int64_t groups, of;    /* the choice is among `of` of so many groups of neighbours, those whose k / of largest (of softmaxes
                              over all with pre, else of logits; of sigmoids) have the largest sum; 0: among all */
    bool limited;          /* it is those whose one largest is larger */
    int64_t capacity;      /* rows of an expert at most; 0: t.  Kept are those with the largest weights, of equal ones ... */
    bool by_position;      /* ... or, so, of all, those of the first tokens */
    bool pad;              /* each expert has capacity rows, which is not 0: the last of them may be nobody's */
};

/* By how many of its experts a group is judged. */
TWIN_INLINE int64_t route_judges(const struct route *p)
{
    return p->limited ? 1 : p->k / p->of;
}
TWIN_INLINE int64_t route_capacity(const struct route *p)
{
    return p->capacity ? p->capacity : p->t;
}
/* Rows that an expert has, which so many have chosen; rows of all experts at most. */
TWIN_INLINE int64_t route_kept(const struct route *p, int64_t chosen)
{
    return p->pad || chosen > route_capacity(p) ? route_capacity(p) : chosen;
}
TWIN_INLINE int64_t route_rows(const struct route *p)
{
    int64_t most = p->experts * route_capacity(p);

    return p->pad || p->t * p->k > most ? most : p->t * p->k;
}

TWIN_INLINE float route_scale(const struct route *p)
{
    return p->scale != 0 ? p->scale : 1;
}
/* Added to a sum of sigmoids before it divides. */
#define ROUTE_TINY 1e-20f

/* logits (T, E) become their softmax, but for sigmoids stay as they are; lse (T) their log-sum-exp; choice (T, k) the experts of
 * the k largest, the largest first and of equal ones the lower number; weight (T, k) their softmax (see pre) or sigmoids, times
 * scale. */
typedef int route_fwd_fn(struct device *dev, const struct route *p, float *logits, float *lse, int32_t *choice,
                         float *weight, struct err *e);
/* The gradient by the logits, to dlogits (T, E) of dt: from dweight (T, k), from balance (E; NULL: none), the
 * gradient by each probability of that expert (route_likely's; with `each` (T / each, E), a row for so many tokens), and from
 * z * lse, that by each lse.  logits, as they became, lse, choice and weight are forward's. */
struct route_grad {
    const float *logits, *lse, *weight, *dweight, *balance;
    const int32_t *choice;
    float z;
    int64_t each;
};
typedef int route_bwd_fn(struct device *dev, enum dtype dt, const struct route *p, void *dlogits,
                         const struct route_grad *g, struct err *e);

/* place (T, k) as above, -1 where dropped; from (route_rows) the token of each row, -1 where nobody's; count (E) how many
 * have chosen each expert.  weight is route_fwd's. */
typedef int route_place_fn(struct device *dev, const struct route *p, const int32_t *choice, const float *weight,
                           int32_t *place, int32_t *from, int32_t *count, struct err *e);

/* What an auxiliary loss is of, where it isn't the choice that was made: of logits (T, E) as route_fwd left them the
 * probabilities, which softmax's are, and sigmoids over their sum, to prob (T, E) if that isn't NULL; and how many tokens of
 * each of `parts` equal stretches have an expert among their k likeliest ones, added to count (parts, E). */
typedef int route_likely_fn(struct device *dev, const struct route *p, int64_t parts, const float *logits, float *prob,
                            int32_t *count, struct err *e);

/* load (E) += count (E). */
typedef int route_tally_fn(struct device *dev, int64_t experts, int32_t *load, const int32_t *count, struct err *e);

/* An auxiliary loss that counts how often an expert is chosen and how likely: sums (E) are those of each expert's probabilities,
 * count (E) is route_place's.  *loss (if not NULL) becomes larger by each * (sum over i of sums[i] * count[i]), and sums[i]
 * becomes by * count[i]: with by = each times its weight the loss' gradient by each probability of expert i. */
typedef int route_balance_fn(struct device *dev, int64_t experts, float *sums, const int32_t *count, float by, double each,
                             double *loss, struct err *e);

/* y (n, C)[i] = x[from[i]]; 0 where from is -1. */
typedef int route_take_fn(struct device *dev, enum dtype dt, void *y, const void *x, const int32_t *from, int64_t n,
                          int64_t c, struct err *e);
/* y (T, C)[t] = sum over j that are not dropped of weight[t, j] x[place[t, j]], in fp32 and in the order of j; weight NULL:
 * 1. */
typedef int route_join_fn(struct device *dev, enum dtype dt, const struct route *p, void *y, const void *x,
                          const int32_t *place, const float *weight, int64_t c, struct err *e);
/* Its backward pass: dx (T k, C)[place[t, j]] = weight[t, j] dy[t], and dweight[t, j] = dy[t] . x[place[t, j]], 0
 * where dropped. */
typedef int route_join_bwd_fn(struct device *dev, enum dtype dt, const struct route *p, void *dx, float *dweight,
                              const void *dy, const void *x, const int32_t *place, const float *weight, int64_t c,
                              struct err *e);
route_fwd_fn route_fwd_cpu, route_fwd_cuda;
route_bwd_fn route_bwd_cpu, route_bwd_cuda;
route_place_fn route_place_cpu, route_place_cuda;
route_likely_fn route_likely_cpu, route_likely_cuda;
route_tally_fn route_tally_cpu, route_tally_cuda;
route_balance_fn route_balance_cpu, route_balance_cuda;
route_take_fn route_take_cpu, route_take_cuda;
route_join_fn route_join_cpu, route_join_cuda;
route_join_bwd_fn route_join_bwd_cpu, route_join_bwd_cuda;

#ifdef __cplusplus
}
#endif
#endif
