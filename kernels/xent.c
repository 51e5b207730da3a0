#include "kernels/xent.h"

#include "kernels/check.h"
#include "kernels/xent_simd.h"

static int check(enum dtype dt, const struct xent *p, int64_t vocabulary, const char *op,
                 struct err *e)
{
    TRY(check_xent(dt, p, op, e));
    for (int64_t t = 0; t < p->t; t++)
        if (p->target[t] >= vocabulary)
            return err_set(e, ERR_ARG, "%s: target %d at %lld is beyond the vocabulary of %lld", op,
                           p->target[t], (long long)t, (long long)vocabulary);
    return 0;
}

int xent_cpu(struct device *dev, enum dtype dt, const struct xent *p, float *loss, struct err *e)
{
    TRY(check(dt, p, p->v, "xent", e));
    TRY(check_xent_whole(p, e));
    ISA_PICK(xent_loop)(dev, dt, p, loss);
    return 0;
}

int xent_max_cpu(struct device *dev, enum dtype dt, const struct xent *p, float *max,
                 struct err *e)
{
    TRY(check(dt, p, INT64_MAX, "xent_max", e));
    ISA_PICK(xent_max_loop)(dev, dt, p, max);
    return 0;
}

int xent_sum_cpu(struct device *dev, enum dtype dt, const struct xent *p, const float *max,
                 float *sum, float *at, struct err *e)
{
    TRY(check(dt, p, INT64_MAX, "xent_sum", e));
    ISA_PICK(xent_sum_loop)(dev, dt, p, max, sum, at);
    return 0;
}

int xent_finish_cpu(struct device *dev, enum dtype dt, const struct xent *p, const float *max,
                    const float *sum, const float *at, float *loss, struct err *e)
{
    TRY(check(dt, p, INT64_MAX, "xent_finish", e));
    ISA_PICK(xent_finish_loop)(dev, dt, p, max, sum, at, loss);
    return 0;
}
