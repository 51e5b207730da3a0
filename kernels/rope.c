#include "kernels/rope.h"

#include <math.h>

#include "kernels/embedding_simd.h"

int rope_cpu(struct device *dev, enum dtype dt, void *x, const struct rope *p, struct err *e)
{
    TRY(cpu_check_dtype(dt, "rope", e));
    if (p->t < 0 || p->heads < 0 || p->rot < 0 || p->rot % 2 || p->rot > p->d ||
        p->ldx < p->heads * p->d)
        return err_set(e, ERR_ARG, "rope: %lld of %lld elements in %lld heads, rows %lld apart",
                       (long long)p->rot, (long long)p->d, (long long)p->heads,
                       (long long)p->ldx);
    for (int64_t t = 0; t < p->t; t++)
        if (p->pos[t] < 0 || p->pos[t] >= p->n_pos)
            return err_set(e, ERR_ARG, "rope: position %d at %lld is not in 0 .. %lld", p->pos[t],
                           (long long)t, (long long)p->n_pos - 1);
    ISA_PICK(rope_loop)(dev, dt, x, p);
    return 0;
}

void rope_table(float *cs, int64_t n_pos, int64_t rot, double base)
{
    for (int64_t i = 0; i < rot / 2; i++) {
        double f = pow(base, -2.0 * (double)i / (double)rot);

        for (int64_t t = 0; t < n_pos; t++) {
            cs[t * rot + i] = (float)cos((double)t * f);
            cs[t * rot + rot / 2 + i] = (float)sin((double)t * f);
        }
    }
}
