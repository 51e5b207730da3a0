/* kernels/check.h -- what both twins of an op ask of its arguments before they write anything; for
 * kernels/ alone.  Inline, for the CUDA backend has nothing of the program that opens it.
 *
 * What lies in the device's memory (tokens, positions, targets) is looked at by the CPU alone.
 */
#ifndef KERNELS_CHECK_H
#define KERNELS_CHECK_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int check_dtype(enum dtype dt, const char *op, struct err *e)
{
    if (dt != DTYPE_F32 && dt != DTYPE_BF16)
        return err_set(e, ERR_ARG, "%s: no such element type", op);
    return 0;
}

static inline int check_dropout(const struct dropout *d, const char *op, struct err *e)
{
    if (d && !(d->p >= 0 && d->p < 1 && d->row0 >= 0))
        return err_set(e, ERR_ARG, "%s: dropout %g, first row %lld", op, (double)d->p, (long long)d->row0);
    return 0;
}

static inline int check_n(enum dtype dt, int64_t n, const char *op, struct err *e)
{
    TRY(check_dtype(dt, op, e));
    if (n < 0)
        return err_set(e, ERR_ARG, "%s: %lld elements", op, (long long)n);
    return 0;
}

static inline int check_colsum(enum dtype dt, int64_t t, int64_t c, int64_t ldx, struct err *e)
{
    TRY(check_n(dt, t, "vec_colsum", e));
    if (c < 0 || ldx < c)
        return err_set(e, ERR_ARG, "vec_colsum: %lld columns, rows %lld apart", (long long)c, (long long)ldx);
    return 0;
}

static inline int check_act(enum dtype dt, enum act act, int64_t t, int64_t f, const char *op, struct err *e)
{
    TRY(check_dtype(dt, op, e));
    if (act <= ACT_NONE || act >= ACT_KINDS)
        return err_set(e, ERR_ARG, "%s: no such activation", op);
    if (t < 0 || f < 0)
        return err_set(e, ERR_ARG, "%s: %lld by %lld elements", op, (long long)t, (long long)f);
    return 0;
}

static inline int check_update(const struct update *p, const float *w, const uint16_t *low, int64_t n, struct err *e)
{
    if (n && !w && (!low || p->round.cols < 1 || p->round.width < p->round.cols || p->round.first < 0))
        return err_set(e, ERR_ARG, "update: no weights, or bf16 ones of rows of %lld of %lld", (long long)p->round.cols,
                       (long long)p->round.width);
    bool adamw = p->kind == UPDATE_ADAMW;

    if (n && update_is_blocks(p) && (!w || p->m_type == DTYPE_BF16 || (adamw && p->v_type == DTYPE_BF16) ||
                        (p->m_type == DTYPE_8BIT && !p->m_scale) || (adamw && p->v_type == DTYPE_8BIT && !p->v_scale)))
        return err_set(e, ERR_ARG, "update: moments of eight bits without their scales, or beside bf16");
    if (n < 0 || p->kind < 0 || p->kind >= UPDATE_KINDS || p->step < 1 || !(p->beta1 >= 0 && p->beta1 < 1) ||
        !(p->beta2 >= 0 && p->beta2 < 1) || !(p->eps > 0))
        return err_set(e, ERR_ARG, "update: %lld elements, step %lld, betas %g and %g, eps %g", (long long)n,
                       (long long)p->step, p->beta1, p->beta2, p->eps);
    return 0;
}

static inline int check_factored(const struct factored *p, const float *col, struct err *e)
{
    if (p->rows < 1 || p->cols < 1 || (!col && p->cols > 1) || !(p->fresh >= 0 && p->fresh <= 1) || !(p->eps > 0))
        return err_set(e, ERR_ARG, "factored: %lld by %lld elements, %g of them fresh, eps %g", (long long)p->rows,
                       (long long)p->cols, p->fresh, p->eps);
    return 0;
}

static inline int check_embedding(enum dtype dt, const struct embedding *p, const char *op, struct err *e)
{
    TRY(check_dtype(dt, op, e));
    if (p->t < 0 || p->c < 1 || p->n_vocab < 0 || p->first < 0)
        return err_set(e, ERR_ARG, "%s: %lld tokens of %lld channels, vocabulary %lld + %lld", op, (long long)p->t,
                       (long long)p->c, (long long)p->first, (long long)p->n_vocab);
    return 0;
}

static inline int check_rope(enum dtype dt, const struct rope *p, struct err *e)
{
    TRY(check_dtype(dt, "rope", e));
    if (p->t < 0 || p->heads < 0 || p->rot < 0 || p->rot % 2 || p->rot > p->d || p->ldx < p->heads * p->d)
        return err_set(e, ERR_ARG, "rope: %lld of %lld elements in %lld heads, rows %lld apart", (long long)p->rot,
                       (long long)p->d, (long long)p->heads, (long long)p->ldx);
    return 0;
}

static inline int check_norm_shape(enum dtype dt, int64_t t, int64_t c, const struct dropout *drop, const char *op,
                                   struct err *e)
{
    TRY(check_dtype(dt, op, e));
    TRY(check_dropout(drop, op, e));
    if (t < 0 || c < 1)
        return err_set(e, ERR_ARG, "%s: %lld rows of %lld channels", op, (long long)t, (long long)c);
    return 0;
}

static inline int check_norm_heads(const struct norm_heads *h, int64_t c, bool others, const char *op, struct err *e)
{
    if (h->heads && (h->heads < 0 || h->ld < h->heads * c || others))
        return err_set(e, ERR_ARG, "%s: %lld heads of %lld in rows of %lld%s", op, (long long)h->heads, (long long)c,
                       (long long)h->ld, others ? ", with what goes only with dense rows" : "");
    return 0;
}

static inline int check_fp8_quantize(const struct fp8_quantize *p, struct err *e)
{
    TRY(check_dtype(p->dt, "fp8_quantize", e));
    if (p->rows < 0 || p->cols < 0 || (p->to != FP8_E4M3 && p->to != FP8_E5M2) || !p->scale)
        return err_set(e, ERR_ARG, "fp8_quantize: %lld x %lld", (long long)p->rows, (long long)p->cols);
    if (p->act != ACT_NONE)
        TRY(check_act(p->dt, p->act, p->rows, p->cols, "fp8_quantize", e));
    if (p->act != ACT_NONE && (p->dt != DTYPE_BF16 || (p->glu && p->dy && p->cols % 16)))
        return err_set(e, ERR_ARG, "fp8_quantize: %lld columns of %s behind an activation", (long long)p->cols,
                       dtype_name(p->dt));
    if (p->yt_ld && (p->yt_ld < p->rows || p->yt_ld >= p->rows + FP8_WHOLE))
        return err_set(e, ERR_ARG, "fp8_quantize: %lld rows, %lld in columns", (long long)p->rows, (long long)p->yt_ld);
    return 0;
}

static inline int check_fp8_blocks(const struct fp8_blocks *p, struct err *e)
{
    if (p->rows < 0 || p->cols < 0 || (p->to != FP8_E4M3 && p->to != FP8_E5M2) || !p->y != !p->inv || !p->yt != !p->inv_t)
        return err_set(e, ERR_ARG, "fp8_blocks: %lld x %lld", (long long)p->rows, (long long)p->cols);
    if (p->yt && (p->yt_ld < p->rows || p->yt_ld >= p->rows + FP8_BLOCK))
        return err_set(e, ERR_ARG, "fp8_blocks: %lld rows, %lld in columns", (long long)p->rows, (long long)p->yt_ld);
    return 0;
}

static inline int check_norm_fwd(enum dtype dt, const struct norm_fwd *p, const char *op, struct err *e)
{
    TRY(check_norm_shape(dt, p->t, p->c, p->drop, op, e));
    if (!(p->eps > 0) || !p->residual != !p->s || (p->drop && !p->residual))
        return err_set(e, ERR_ARG, "%s: %s", op, !(p->eps > 0) ? "eps must be positive"
                                                               : "residual and s go together, and dropout with them");
    if (p->fp8) {
        const struct fp8_quantize *q = p->fp8;

        TRY(check_fp8_quantize(q, e));
        if (dt != DTYPE_BF16 || q->dt != dt || q->rows != p->t || q->cols != p->c || !q->y || q->act != ACT_NONE || q->colsum ||
            p->y_heads.heads)
            return err_set(e, ERR_ARG, "%s: no such output in FP8", op);
    }
    TRY(check_norm_heads(&p->x_heads, p->c, p->residual != NULL, op, e));
    return check_norm_heads(&p->y_heads, p->c, p->residual != NULL, op, e);
}

static inline int check_norm_bwd(enum dtype dt, const struct norm_bwd *p, const char *op, struct err *e)
{
    TRY(check_norm_shape(dt, p->t, p->c, p->drop, op, e));
    if (!p->drop != !p->dx)
        return err_set(e, ERR_ARG, "%s: dropout and dx go together", op);
    return check_norm_heads(&p->heads, p->c, p->dres || p->drop, op, e);
}

static inline int check_xent(enum dtype dt, const struct xent *p, const char *op, struct err *e)
{
    TRY(check_dtype(dt, op, e));
    if (p->t < 0 || p->v < 0 || p->ld < p->v || p->first < 0)
        return err_set(e, ERR_ARG, "%s: %lld rows of %lld columns, %lld apart, from %lld", op, (long long)p->t,
                       (long long)p->v, (long long)p->ld, (long long)p->first);
    return 0;
}

/* xent's: the whole vocabulary. */
static inline int check_xent_whole(const struct xent *p, struct err *e)
{
    if (p->first != 0)
        return err_set(e, ERR_ARG, "xent: a split vocabulary goes through the three phases");
    return 0;
}

static inline int check_attention(enum dtype dt, const struct attention *p, const char *op, struct err *e)
{
    TRY(check_dtype(dt, op, e));
    TRY(check_dropout(p->drop, op, e));
    if (p->b < 0 || p->t < 0 || p->t_kv < (p->full ? 1 : p->t) || p->d < 1 || p->d > 256 || p->heads < 1 || p->kv_heads < 1 ||
        p->heads % p->kv_heads)
        return err_set(e, ERR_ARG, "%s: %lld x %lld queries, %lld keys, %lld heads on %lld of %lld elements", op,
                       (long long)p->b, (long long)p->t, (long long)p->t_kv, (long long)p->heads, (long long)p->kv_heads,
                       (long long)p->d);
    if (p->most && p->cap > 0)
        return err_set(e, ERR_ARG, "%s: the largest of logits that are bounded", op);
    if (p->block && !p->lse)
        return err_set(e, ERR_ARG, "%s: a block needs its log-sum-exp", op);
    if (p->start && !p->full && p->t_kv != p->t)
        return err_set(e, ERR_ARG, "%s: documents do not go with a cache", op);
    return 0;
}

static inline int check_attention_bwd(enum dtype dt, const struct attention *p, struct err *e)
{
    TRY(check_attention(dt, p, "attention_bwd", e));
    if (!p->lse)
        return err_set(e, ERR_ARG, "attention_bwd: forward's log-sum-exp is missing");
    return 0;
}

/* Whether so many of its groups have k experts, and each as many as it is judged by. */
static inline bool route_groups_fit(const struct route *p)
{
    int64_t each = p->groups > 0 ? p->experts / p->groups : 0;

    return p->groups == 0 || (p->groups > 0 && p->groups <= ROUTE_GROUPS && each * p->groups == p->experts && p->of >= 1 &&
                              p->of <= p->groups && p->of * each >= p->k && route_judges(p) >= 1 && route_judges(p) <= each);
}

static inline int check_route(const struct route *p, const char *op, struct err *e)
{
    if (p->t < 0 || p->experts < 1 || p->k < 1 || p->k > p->experts || p->k > ROUTE_MOST || p->t * p->k > INT32_MAX ||
        p->capacity < 0 || (p->pad && (p->capacity == 0 || p->capacity > INT32_MAX / p->experts)) || !route_groups_fit(p) ||
        (p->bias && p->score != ROUTE_SIGMOID))
        return err_set(e, ERR_ARG, "%s: %lld tokens, %lld of %lld experts each", op, (long long)p->t, (long long)p->k,
                       (long long)p->experts);
    return 0;
}

static inline int check_parts(const struct route *p, int64_t parts, struct err *e)
{
    if (parts < 1 || p->t % parts)
        return err_set(e, ERR_ARG, "route_likely: %lld tokens in %lld parts", (long long)p->t, (long long)parts);
    return 0;
}

static inline int check_rows(enum dtype dt, int64_t n, int64_t c, const char *op, struct err *e)
{
    TRY(check_dtype(dt, op, e));
    if (n < 0 || c < 1)
        return err_set(e, ERR_ARG, "%s: %lld rows of %lld channels", op, (long long)n, (long long)c);
    return 0;
}

static inline int check_gate_rows(enum dtype dt, const struct gate_rows *g, const char *op, struct err *e)
{
    TRY(check_rows(dt, g->t, g->c, op, e));
    if (g->ld < g->c)
        return err_set(e, ERR_ARG, "%s: rows of %lld elements, %lld apart", op, (long long)g->c, (long long)g->ld);
    return 0;
}

static inline int check_heads(enum dtype dt, const struct heads_part *p, const char *op, struct err *e)
{
    TRY(check_rows(dt, p->t, p->c, op, e));
    if (p->heads < 1)
        return err_set(e, ERR_ARG, "%s: %lld heads", op, (long long)p->heads);
    return 0;
}

static inline int check_fp8_update(const struct fp8_update *p, struct err *e)
{
    if (p->n < 0 || p->len < 1 || p->ld < p->len + FP8_HISTORY || p->margin < 0 || p->margin > 100)
        return err_set(e, ERR_ARG, "fp8_update: %lld rows of %lld steps, margin %d", (long long)p->n, (long long)p->len,
                       p->margin);
    return 0;
}

/* Checks q, and makes p the same with its strides filled in. */
static inline int check_matmul(const struct matmul *q, struct matmul *p, struct err *e)
{
    bool epilogue = q->bias || q->act != ACT_NONE || q->dact != ACT_NONE;

    TRY(check_dtype(q->dt, "matmul", e));
    TRY(check_dtype(q->dt_c, "matmul", e));
    if (q->m < 0 || q->n < 0 || q->k < 0 || q->lda < 0 || q->ldb < 0 || q->ldc < 0)
        return err_set(e, ERR_ARG, "matmul: %lld x %lld x %lld", (long long)q->m, (long long)q->n, (long long)q->k);
    if (q->dt_c != q->dt && q->dt_c != DTYPE_F32)
        return err_set(e, ERR_ARG, "matmul: %s times %s is not stored as %s", dtype_name(q->dt), dtype_name(q->dt),
                       dtype_name(q->dt_c));
    if ((q->beta != 0 && q->beta != 1) || (q->beta == 1 && epilogue))
        return err_set(e, ERR_ARG, "matmul: beta is 0, or 1 without an epilogue");
    if ((q->act != ACT_NONE && (!q->aux || q->dt_c != q->dt)) || (q->dact != ACT_NONE && (!q->dact_aux || q->dt_c != q->dt)) ||
        (q->act != ACT_NONE && q->dact != ACT_NONE))
        return err_set(e, ERR_ARG, "matmul: an activation needs its other matrix, and one type");
    if ((q->act != ACT_NONE || q->dact != ACT_NONE) && q->ldc && q->ldc != q->n)
        return err_set(e, ERR_ARG, "matmul: an activation needs a dense result");
    if ((q->fp8_a || q->fp8_b) && (!q->fp8_a || !q->fp8_b || !q->inv_a || !q->inv_b || q->dt != DTYPE_BF16 || q->trans_a ||
                                   !q->trans_b))
        return err_set(e, ERR_ARG, "matmul: FP8 is of both matrices, k inside, with their scales");
    if (!q->by_a != !q->by_b || (q->by_a && (!q->fp8_a || q->k % FP8_BLOCK || q->fast)) ||
        (q->by_a == FP8_OF_SQUARES && q->by_b == FP8_OF_SQUARES))
        return err_set(e, ERR_ARG, "matmul: scales of blocks are both matrices', of squares one's, and k a multiple of %d",
                       FP8_BLOCK);
    if (q->sums && !q->trans_a)
        return err_set(e, ERR_ARG, "matmul: sums are of the columns of what lies turned");
    if (q->fp8_a && ((uintptr_t)q->inv_a | (uintptr_t)q->inv_b) % FP8_ALIGN)
        return err_set(e, ERR_ARG, "matmul: scales of FP8 that are not aligned to %d bytes", FP8_ALIGN);
    *p = *q;
    p->lda = p->lda ? p->lda : (p->trans_a ? p->m : p->k);
    p->ldb = p->ldb ? p->ldb : (p->trans_b ? p->k : p->n);
    p->ldc = p->ldc ? p->ldc : p->n;
    if (p->m && p->n && (p->lda < (p->trans_a ? p->m : p->k) || p->ldb < (p->trans_b ? p->k : p->n) || p->ldc < p->n))
        return err_set(e, ERR_ARG, "matmul: rows overlap: strides %lld, %lld, %lld", (long long)p->lda, (long long)p->ldb,
                       (long long)p->ldc);
    return 0;
}

/* The same for groups; the counts, which are the device's, the CPU alone looks at. */
static inline int check_matmul_grouped(const struct matmul_grouped *q, struct matmul_grouped *p, struct err *e)
{
    const struct matmul *of = &q->of;

    *p = *q;
    TRY(check_matmul(of, &p->of, e));
    if (q->groups < 1 || of->act != ACT_NONE || of->dact != ACT_NONE || of->fp8_a || (q->sums && !of->trans_a) ||
        (of->trans_a && (of->trans_b || of->bias || of->dt_c != DTYPE_F32)))
        return err_set(e, ERR_ARG, "matmul_grouped: %lld groups, or what they cannot have", (long long)q->groups);
    if (!q->count && (of->trans_a ? of->k : of->m) % q->groups)
        return err_set(e, ERR_ARG, "matmul_grouped: %lld rows for %lld groups", (long long)(of->trans_a ? of->k : of->m),
                       (long long)q->groups);
    return 0;
}

#ifdef __cplusplus
}
#endif
#endif
