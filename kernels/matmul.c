#include "kernels/matmul.h"

#include <omp.h>

#include "kernels/matmul_dnnl.h"
#include "kernels/matmul_simd.h"

static int check(const struct matmul *p, struct err *e)
{
    bool epilogue = p->bias || p->act != ACT_NONE || p->dact != ACT_NONE;

    TRY(cpu_check_dtype(p->dt, "matmul", e));
    TRY(cpu_check_dtype(p->dt_c, "matmul", e));
    if (p->m < 0 || p->n < 0 || p->k < 0 || p->lda < 0 || p->ldb < 0 || p->ldc < 0)
        return err_set(e, ERR_ARG, "matmul: %lld x %lld x %lld", (long long)p->m, (long long)p->n,
                       (long long)p->k);
    if (p->dt_c != p->dt && p->dt_c != DTYPE_F32)
        return err_set(e, ERR_ARG, "matmul: %s times %s is not stored as %s", dtype_name(p->dt),
                       dtype_name(p->dt), dtype_name(p->dt_c));
    if ((p->beta != 0 && p->beta != 1) || (p->beta == 1 && epilogue))
        return err_set(e, ERR_ARG, "matmul: beta is 0, or 1 without an epilogue");
    if ((p->act != ACT_NONE && (!p->aux || p->dt_c != p->dt)) ||
        (p->dact != ACT_NONE && (!p->dact_aux || p->dt_c != p->dt)) ||
        (p->act != ACT_NONE && p->dact != ACT_NONE))
        return err_set(e, ERR_ARG, "matmul: an activation needs its other matrix, and one type");
    if ((p->act != ACT_NONE || p->dact != ACT_NONE) && p->ldc && p->ldc != p->n)
        return err_set(e, ERR_ARG, "matmul: an activation needs a dense result");
    return 0;
}

/* A product of given strides and no epilogue but the bias. */
typedef int product_fn(struct device *dev, const struct matmul *p, struct err *e);

static int product_plain(struct device *dev, const struct matmul *p, struct err *e)
{
    void *scratch;

    TRY(cpu_scratch(dev, &scratch, (size_t)dev->threads * MATMUL_SCRATCH * sizeof(float), e));
    ISA_PICK(matmul_loop)(dev, p, scratch);
    return 0;
}

static int run(struct device *dev, const struct matmul *q, product_fn *product, struct err *e)
{
    struct matmul p = *q;

    TRY(check(q, e));
    if (p.m == 0 || p.n == 0)
        return 0;
    p.lda = p.lda ? p.lda : (p.trans_a ? p.m : p.k);
    p.ldb = p.ldb ? p.ldb : (p.trans_b ? p.k : p.n);
    p.ldc = p.ldc ? p.ldc : p.n;
    if (p.lda < (p.trans_a ? p.m : p.k) || p.ldb < (p.trans_b ? p.k : p.n) || p.ldc < p.n)
        return err_set(e, ERR_ARG, "matmul: rows overlap: strides %lld, %lld, %lld",
                       (long long)p.lda, (long long)p.ldb, (long long)p.ldc);
    if (p.act != ACT_NONE)
        p.c = p.aux;
    if (p.k == 0) /* nothing to multiply: the bias, or what was there */
        TRY(product_plain(dev, &p, e));
    else
        TRY(product(dev, &p, e));
    if (p.act != ACT_NONE)
        return act_fwd_cpu(dev, p.dt, p.act, q->c, p.aux, p.m * p.n, e);
    if (p.dact != ACT_NONE)
        return act_bwd_cpu(dev, p.dt, p.dact, p.c, p.c, p.dact_aux, p.m * p.n, e);
    return 0;
}

int matmul_plain_cpu(struct device *dev, const struct matmul *p, struct err *e)
{
    return run(dev, p, product_plain, e);
}

int matmul_cpu(struct device *dev, const struct matmul *p, struct err *e)
{
#if HAVE_DNNL
    omp_set_num_threads(dev->threads); /* what oneDNN goes by */
    return run(dev, p, matmul_dnnl, e);
#else
    return run(dev, p, product_plain, e);
#endif
}

#if !HAVE_DNNL
struct matmul_plans { char unused; };
int matmul_plans_new(struct matmul_plans **plans, struct err *e)
{
    (void)e;
    *plans = NULL;
    return 0;
}
void matmul_plans_free(struct matmul_plans *plans) { (void)plans; }
size_t matmul_plans_bytes(const struct matmul_plans *plans)
{
    (void)plans;
    return 0;
}
bool matmul_has_bf16(const char **how)
{
    *how = "without oneDNN";
    return false;
}
#endif
