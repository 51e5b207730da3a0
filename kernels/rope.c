#include "kernels/rope.h"

#include <math.h>

#include "kernels/check.h"
#include "kernels/embedding_simd.h"

int rope_cpu(struct device *dev, enum dtype dt, void *x, const struct rope *p, struct err *e)
{
    TRY(check_rope(dt, p, e));
    for (int64_t t = 0; t < p->t; t++)
        if (p->pos[t] < 0 || p->pos[t] >= p->n_pos)
            return err_set(e, ERR_ARG, "rope: position %d at %lld is not in 0 .. %lld", p->pos[t],
                           (long long)t, (long long)p->n_pos - 1);
    ISA_PICK(rope_loop)(dev, dt, x, p);
    return 0;
}

static double scaled(double f, const struct rope_scaling *s)
{
    double turns = (double)s->original * f / (2 * M_PI), share; /* in the original context */

    if (turns >= s->high)
        return f;
    if (turns <= s->low)
        return f / s->factor;
    share = (turns - s->low) / (s->high - s->low);
    return (1 - share) * f / s->factor + share * f;
}

void rope_table(float *cs, int64_t n_pos, int64_t rot, double base, const struct rope_scaling *s)
{
    for (int64_t i = 0; i < rot / 2; i++) {
        double f = pow(base, -2.0 * (double)i / (double)rot);

        if (s)
            f = scaled(f, s);
        for (int64_t t = 0; t < n_pos; t++) {
            cs[t * rot + i] = (float)cos((double)t * f);
            cs[t * rot + rot / 2 + i] = (float)sin((double)t * f);
        }
    }
}
