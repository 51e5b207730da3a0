#include "kernels/matmul.h"

#include <omp.h>

#include "kernels/check.h"
#include "kernels/fp8_simd.h"
#include "kernels/matmul_amx_simd.h"
#include "kernels/matmul_dnnl.h"
#include "kernels/matmul_simd.h"

/* A product of given strides and no epilogue but the bias. */
typedef int product_fn(struct device *dev, const struct matmul *p, struct err *e);

static int product_plain(struct device *dev, const struct matmul *p, struct err *e)
{
    void *scratch;

    TRY(cpu_scratch(dev, &scratch, (size_t)dev->threads * MATMUL_SCRATCH * sizeof(float), e));
    ISA_PICK(matmul_loop)(dev, p, scratch);
    return 0;
}

/* FP8: every number of it is one of bf16, but for scales that are no powers of two.  Ragged sums are cut into powers of two, as
 * oneDNN's are. */
static int product_fp8(struct device *dev, const struct matmul *p, product_fn *product, struct err *e)
{
    struct matmul of = {.m = p->m, .n = p->n, .trans_b = true, .dt = p->fp32_scales ? DTYPE_F32 : DTYPE_BF16, .dt_c = DTYPE_F32,
                        .ldc = p->n, .ragged = p->ragged && !matmul_rows_inside(p)};
    bool cut = p->ragged && matmul_rows_inside(p);
    struct fp8_matrix ma = {p->fp8_a, p->a, p->m, p->lda, p->by_a, p->inv_a, fp8_scales_ld(p->by_a, p->m, p->k)};
    struct fp8_matrix mb = {p->fp8_b, p->b, p->n, p->ldb, p->by_b, p->inv_b, fp8_scales_ld(p->by_b, p->n, p->k)};
    size_t na = (size_t)(p->m * p->k), nb = (size_t)(p->n * p->k), nc = (size_t)(p->m * p->n);
    void *memory, *a, *b;

    TRY(cpu_decoded(dev, &memory, nc * sizeof(float) + (na + nb) * dtype_size(of.dt), e));
    of.c = memory;
    of.a = a = (float *)memory + nc;
    of.b = b = (char *)a + na * dtype_size(of.dt);
    for (int64_t at = 0; at < p->k; at += of.k) {
        for (of.k = p->k - at; cut && of.k & (of.k - 1);)
            of.k &= of.k - 1;
        of.lda = of.ldb = of.k;
        of.beta = at > 0;
        ISA_PICK(fp8_decode_loop)(dev, of.dt, a, &ma, at, of.k);
        ISA_PICK(fp8_decode_loop)(dev, of.dt, b, &mb, at, of.k);
        TRY(product(dev, &of, e));
    }
    ISA_PICK(fp8_finish_loop)(dev, p, memory, p->by_a ? 1 : *p->inv_a * *p->inv_b);
    return 0;
}

static int run(struct device *dev, const struct matmul *q, product_fn *product, struct err *e)
{
    struct matmul p;

    TRY(check_matmul(q, &p, e));
    if (p.sums)
        TRY(vec_colsum_cpu(dev, p.dt, p.sums, p.a, p.k, p.m, p.lda, e));
    if (p.m == 0 || p.n == 0)
        return 0;
    if (p.act != ACT_NONE)
        p.c = p.aux;
    if (p.k == 0) /* nothing to multiply: the bias, or what was there */
        TRY(product_plain(dev, &p, e));
    else
        TRY(p.fp8_a ? product_fp8(dev, &p, product, e) : product(dev, &p, e));
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

/* The fastest way: of few rows, or of fp32, that is oneDNN's. */
static int product_best(struct device *dev, const struct matmul *p, struct err *e)
{
    int team = cpu_team(dev, p->m * p->n);
    void *scratch;

    if (dev->impl->amx && p->dt == DTYPE_BF16 && (matmul_rows_inside(p) ? p->k : p->m) >= MATMUL_AMX_LEAST) {
        TRY(cpu_scratch(dev, &scratch, matmul_amx_scratch(p, team), e));
        ISA_PICK(matmul_amx_loop)(p, scratch, team);
        return 0;
    }
#if HAVE_DNNL
    omp_set_num_threads(dev->threads); /* what oneDNN goes by */
    return matmul_dnnl(dev, p, e);
#else
    return product_plain(dev, p, e);
#endif
}

int matmul_cpu(struct device *dev, const struct matmul *p, struct err *e)
{
    return run(dev, p, product_best, e);
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
