#include "kernels/norm.h"

#include "kernels/norm_simd.h"

static int check_shape(enum dtype dt, int64_t t, int64_t c, const struct dropout *drop,
                       const char *op, struct err *e)
{
    TRY(cpu_check_dtype(dt, op, e));
    TRY(cpu_check_dropout(drop, op, e));
    if (t < 0 || c < 1)
        return err_set(e, ERR_ARG, "%s: %lld rows of %lld channels", op, (long long)t,
                       (long long)c);
    return 0;
}

static int check_heads(const struct norm_heads *h, int64_t c, bool others, const char *op, struct err *e)
{
    if (h->heads && (h->heads < 0 || h->ld < h->heads * c || others))
        return err_set(e, ERR_ARG, "%s: %lld heads of %lld in rows of %lld%s", op, (long long)h->heads, (long long)c,
                       (long long)h->ld, others ? ", with what goes only with dense rows" : "");
    return 0;
}

static int fwd(struct device *dev, enum dtype dt, const struct norm_fwd *p, bool rms,
               const char *op, struct err *e)
{
    TRY(check_shape(dt, p->t, p->c, p->drop, op, e));
    if (!(p->eps > 0) || !p->residual != !p->s || (p->drop && !p->residual))
        return err_set(e, ERR_ARG, "%s: %s", op,
                       !(p->eps > 0) ? "eps must be positive"
                                     : "residual and s go together, and dropout with them");
    TRY(check_heads(&p->x_heads, p->c, p->residual != NULL, op, e));
    TRY(check_heads(&p->y_heads, p->c, p->residual != NULL, op, e));
    ISA_PICK(norm_fwd_loop)(dev, dt, p, rms);
    return 0;
}

static int bwd(struct device *dev, enum dtype dt, const struct norm_bwd *p, bool rms,
               const char *op, struct err *e)
{
    void *part;

    TRY(check_shape(dt, p->t, p->c, p->drop, op, e));
    if (!p->drop != !p->dx)
        return err_set(e, ERR_ARG, "%s: dropout and dx go together", op);
    TRY(check_heads(&p->heads, p->c, p->dres || p->drop, op, e));
    TRY(cpu_scratch(dev, &part, (size_t)(CPU_GROUPS * 2 * p->c) * sizeof(float), e));
    ISA_PICK(norm_bwd_loop)(dev, dt, p, rms, part);
    return 0;
}

int layernorm_fwd_cpu(struct device *dev, enum dtype dt, const struct norm_fwd *p, struct err *e)
{
    return fwd(dev, dt, p, false, "layernorm_fwd", e);
}

int layernorm_bwd_cpu(struct device *dev, enum dtype dt, const struct norm_bwd *p, struct err *e)
{
    return bwd(dev, dt, p, false, "layernorm_bwd", e);
}

int rmsnorm_fwd_cpu(struct device *dev, enum dtype dt, const struct norm_fwd *p, struct err *e)
{
    return fwd(dev, dt, p, true, "rmsnorm_fwd", e);
}

int rmsnorm_bwd_cpu(struct device *dev, enum dtype dt, const struct norm_bwd *p, struct err *e)
{
    return bwd(dev, dt, p, true, "rmsnorm_bwd", e);
}
