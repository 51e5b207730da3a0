/* kernels/matmul.h -- matrix product with epilogue.
 *
 *     C (m, n) = epilogue(op(A) (m, k) . op(B) (k, n)) + beta C
 *
 * A layer of weights W (out, in), input X (T, in), output Y (T, out):
 *     forward   Y  = X . W^T + b     m T, n out, k in, trans_b, bias, act + aux
 *     input     dX = dY . W          m T, n in, k out; dact_aux where X = act(aux)
 *     weight    dW += dY^T . X       m out, n in, k T, trans_a, beta 1, fp32 C; sums: db
 */
#ifndef KERNELS_MATMUL_H
#define KERNELS_MATMUL_H

#include "kernels/fp8.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matmul {
    int64_t m, n, k;
    bool trans_a, trans_b;  /* A is stored (k, m); B is stored (n, k) */
    enum dtype dt;          /* of A, B, bias, aux */
    enum dtype dt_c;        /* of C: dt, or fp32 */
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;  /* between stored rows; 0: dense */
    float beta;             /* 0 or 1; 1 excludes the epilogue below, bias too */
    const void *bias;       /* (n), added to each row; or NULL */
    enum act act;           /* C = act(product + bias) ... */
    void *aux;              /* ... and product + bias goes to aux (m, n) for the
                               backward pass; needed with act */
    enum act dact;          /* C = product * dact'(dact_aux): backward through an */
    const void *dact_aux;   /* activation, dact_aux (m, n) being what went into it */
    float *sums;            /* (m), with trans_a: the sums of A's columns are added, as by vec_colsum; or NULL */
    bool ragged;            /* the rows (see matmul_rows_inside) are others at every call, as those of an expert */
    enum fp8 fp8_a, fp8_b;  /* A and B are of these formats (kernels/fp8.h), or neither: then dt is bf16, */
    const float *inv_a, *inv_b; /* the product is multiplied by both (the device's, FP8_ALIGN), and both matrices lie */
    bool fast;              /* with k inside (trans_b alone).  fast: sums may be of fewer bits than fp32 */
    enum fp8_scales by_a, by_b; /* of blocks: each number is multiplied by the inverse of its own, k is whole blocks, not fast; */
    bool fp32_scales;           /* these are any numbers, not powers of two */
};

/* Whether the rows of a layer are what is summed over, as for the gradient of its weight: with trans_a, or of FP8 into fp32; else
 * they are m. */
static inline bool matmul_rows_inside(const struct matmul *p)
{
    return p->trans_a || (p->fp8_a && p->dt_c == DTYPE_F32);
}

/* Accumulates in fp32.  The same call gives the same bits every time with the same number
 * of threads.  Another number may change the last bits where oneDNN splits k over
 * threads (docs/numerics.md).
 * bf16 of many rows goes through our own product where the processor has AMX (kernels/matmul_amx_simd.h); of
 * oneDNN's a shape seen for the first time makes a plan, of which 384 are kept, and ragged ones are computed in
 * pieces of few sizes.  Scratch:
 * what either asks for; without fast_bf16 the fp32 copies, 4 (mk + kn + mn) bytes.  FP8 on a CPU:
 * the same numbers as bf16 (as fp32 with fp32_scales), into fp32, 2 (or 4) (mk + kn) + 4 mn bytes more.
 * Errors: ERR_ARG, ERR_NOMEM, ERR_DEVICE (oneDNN's). */
typedef int matmul_fn(struct device *dev, const struct matmul *p, struct err *e);
matmul_fn matmul_cpu, matmul_cuda;

/* The same without oneDNN: a blocked loop, any type, fp32 sums.  What machines
 * without oneDNN use and the tests compare with. */
matmul_fn matmul_plain_cpu, matmul_plain_cuda;

#ifdef __cplusplus
}
#endif
#endif
