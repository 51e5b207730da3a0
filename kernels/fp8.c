#include "kernels/fp8.h"

#include "kernels/check.h"
#include "kernels/fp8_convert.h"
#include "kernels/fp8_simd.h"
#include "kernels/vec.h"

int fp8_amax_cpu(struct device *dev, enum dtype dt, float *amax, const void *x, int64_t n, struct err *e)
{
    uint32_t bits;

    TRY(check_n(dt, n, "fp8_amax", e));
    ISA_PICK(fp8_amax_loop)(dev, dt, &bits, x, n);
    *amax = fp8_float(bits);
    return 0;
}

/* What is to be converted, by the op that makes it, to y. */
static int activate(struct device *dev, const struct fp8_quantize *p, void *y, struct err *e)
{
    int64_t rows = p->rows, cols = p->cols;

    if (p->glu)
        return p->dy ? glu_bwd_cpu(dev, p->dt, p->act, y, p->dy, p->x, rows, cols / 2, e)
                     : glu_fwd_cpu(dev, p->dt, p->act, y, p->x, rows, cols, e);
    return p->dy ? act_bwd_cpu(dev, p->dt, p->act, y, p->dy, p->x, rows * cols, e)
                 : act_fwd_cpu(dev, p->dt, p->act, y, p->x, rows * cols, e);
}

int fp8_quantize_cpu(struct device *dev, const struct fp8_quantize *p, struct err *e)
{
    struct fp8_quantize plain = *p;
    uint32_t bits;
    void *y;

    TRY(check_fp8_quantize(p, e));
    if (p->act != ACT_NONE) {
        TRY(cpu_decoded(dev, &y, (size_t)(p->rows * p->cols) * sizeof(uint16_t), e));
        TRY(activate(dev, p, y, e));
        plain.x = y;
        plain.act = ACT_NONE;
        p = &plain;
    }
    if (p->amax) {
        ISA_PICK(fp8_amax_loop)(dev, p->dt, &bits, p->x, p->rows * p->cols);
        if (bits > fp8_bits(*p->amax))
            *p->amax = fp8_float(bits);
    }
    if (p->y || p->yt)
        ISA_PICK(fp8_quantize_loop)(dev, p, *p->scale);
    return p->colsum ? vec_colsum_cpu(dev, p->dt, p->colsum, p->x, p->rows, p->cols, p->cols, e) : 0;
}

int fp8_blocks_cpu(struct device *dev, const struct fp8_blocks *p, struct err *e)
{
    TRY(check_fp8_blocks(p, e));
    ISA_PICK(fp8_blocks_loop)(dev, p);
    return p->colsum ? vec_colsum_cpu(dev, DTYPE_BF16, p->colsum, p->x, p->rows, p->cols, p->cols, e) : 0;
}

int fp8_update_cpu(struct device *dev, const struct fp8_update *p, struct err *e)
{
    (void)dev;
    TRY(check_fp8_update(p, e));
    for (int64_t i = 0; i < p->n; i++)
        fp8_update_row(p, p->rows + i * p->ld);
    return 0;
}
