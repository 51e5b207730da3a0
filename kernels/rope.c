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

/* The number of the pair, of rot / 2, that turns so often in the original context. */
static double pair_of(double turns, const struct rope_scaling *s, int64_t rot, double base)
{
    return (double)rot * log((double)s->original / (turns * 2 * M_PI)) / (2 * log(base));
}

/* The share of its own frequency f that pair i keeps; of the rest it has f / factor. */
static double kept(int64_t i, double f, const struct rope_scaling *s, int64_t rot, double base)
{
    double lo, hi;

    if (s->kind == ROPE_LINEAR || s->kind == ROPE_DYNAMIC)
        return s->kind == ROPE_DYNAMIC;
    if (s->kind == ROPE_LLAMA3)
        return fmin(1, fmax(0, ((double)s->original * f / (2 * M_PI) - s->low) / (s->high - s->low)));
    lo = pair_of(s->high, s, rot, base);
    hi = pair_of(s->low, s, rot, base);
    lo = fmax(s->exact ? lo : floor(lo), 0);
    hi = fmin(s->exact ? hi : ceil(hi), (double)rot - 1);
    if (lo == hi)
        hi += 0.001;
    return 1 - fmin(1, fmax(0, ((double)i - lo) / (hi - lo)));
}

void rope_table(float *cs, int64_t n_pos, int64_t rot, double base, const struct rope_scaling *s)
{
    double size = s && s->kind == ROPE_YARN ? s->attention : 1;

    for (int64_t i = 0; i < rot / 2; i++) {
        double f = pow(base, -2.0 * (double)i / (double)rot), share = s ? kept(i, f, s, rot, base) : 1;

        f = share * f + (1 - share) * f / (s ? s->factor : 1);
        for (int64_t t = 0; t < n_pos; t++) {
            cs[t * rot + i] = (float)(size * cos((double)t * f));
            cs[t * rot + rot / 2 + i] = (float)(size * sin((double)t * f));
        }
    }
}
