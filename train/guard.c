#include "train/guard.h"

#include <math.h>

enum verdict_of_step guard_judge(const struct guard *g, double loss, double norm, double factor, int64_t window)
{
    if (!isfinite(loss) || !isfinite(norm))
        return STEP_NOT_FINITE;
    if (factor > 0 && 2 * g->n >= window && (loss > factor * g->loss || norm > factor * g->norm))
        return STEP_SPIKE;
    return STEP_GOOD;
}

void guard_add(struct guard *g, double loss, double norm, int64_t window)
{
    double w;

    g->n++;
    w = 1.0 / (double)(g->n < window ? g->n : window);
    g->loss += w * (loss - g->loss);
    g->norm += w * (norm - g->norm);
}
