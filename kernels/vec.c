#include "kernels/vec.h"

#include <math.h>

#include "kernels/check.h"
#include "kernels/vec_simd.h"

int vec_cast_cpu(struct device *dev, void *y, enum dtype dy, const void *x, enum dtype dx,
                 int64_t n, struct err *e)
{
    TRY(check_n(dy, n, "vec_cast", e));
    TRY(check_n(dx, n, "vec_cast", e));
    ISA_PICK(vec_cast_loop)(dev, y, dy, x, dx, n);
    return 0;
}

int vec_scale_cpu(struct device *dev, enum dtype dt, void *y, float a, int64_t n, struct err *e)
{
    TRY(check_n(dt, n, "vec_scale", e));
    ISA_PICK(vec_axpby_loop)(dev, dt, y, 0, NULL, a, n);
    return 0;
}

int vec_axpy_cpu(struct device *dev, enum dtype dt, void *y, float a, const void *x, int64_t n,
                 struct err *e)
{
    TRY(check_n(dt, n, "vec_axpy", e));
    ISA_PICK(vec_axpby_loop)(dev, dt, y, a, x, 1, n);
    return 0;
}

int vec_add_cpu(struct device *dev, enum dtype dt, void *y, const void *a, const void *b,
                int64_t n, struct err *e)
{
    TRY(check_n(dt, n, "vec_add", e));
    ISA_PICK(vec_add_loop)(dev, dt, y, a, b, n);
    return 0;
}

int vec_dropout_cpu(struct device *dev, enum dtype dt, void *y, const void *x, int64_t t,
                    int64_t c, const struct dropout *drop, struct err *e)
{
    const struct dropout none = {0};

    TRY(check_n(dt, t, "vec_dropout", e));
    TRY(check_n(dt, c, "vec_dropout", e));
    TRY(check_dropout(drop, "vec_dropout", e));
    ISA_PICK(vec_dropout_loop)(dev, dt, y, x, t, c, drop ? drop : &none);
    return 0;
}

int vec_colsum_cpu(struct device *dev, enum dtype dt, float *sum, const void *x, int64_t t,
                   int64_t c, int64_t ldx, struct err *e)
{
    void *part;

    TRY(check_colsum(dt, t, c, ldx, e));
    TRY(cpu_scratch(dev, &part, (size_t)(CPU_GROUPS * c) * sizeof(float), e));
    ISA_PICK(vec_colsum_loop)(dev, dt, sum, part, x, t, c, ldx);
    return 0;
}

int vec_sumsq_cpu(struct device *dev, enum dtype dt, double *sum, int64_t block, const void *x, int64_t n,
                  struct err *e)
{
    TRY(check_n(dt, n, "vec_sumsq", e));
    TRY(check_n(dt, block, "vec_sumsq", e));
    if (n)
        ISA_PICK(vec_sumsq_loop)(dev, dt, sum, block, x, n);
    return 0;
}

int vec_total_cpu(struct device *dev, double *sum, const float *x, int64_t n, struct err *e)
{
    double s = 0;

    (void)dev;
    TRY(check_n(DTYPE_F32, n, "vec_total", e));
    for (int64_t i = 0; i < n; i++)
        s += (double)x[i];
    *sum = s;
    return 0;
}

int clip_scale_cpu(struct device *dev, float *scale, double *sum, int64_t n, float max_norm,
                   struct err *e)
{
    double f;

    (void)dev;
    (void)e;
    for (int64_t i = 1; i < n; i++)
        *sum += sum[i];
    f = (double)max_norm / (sqrt(*sum) + 1e-6);
    *scale = max_norm <= 0 || f > 1 ? 1.0f : (float)f;
    return 0;
}
