#include "train/schedule.h"

#include <math.h>

struct schedule schedule_of(const struct train_config *c)
{
    struct schedule s = {
        .style = (enum lr_style)c->lr_style,
        .wsd_style = (enum wsd_style)c->wsd_style,
        .max_lr = c->lr,
        .min_lr = c->min_lr,
    };
    double batch = (double)c->global_batch;

    /* Where samples say how long a run is, the default is all of them; anything else counts whole batches. */
    s.decay = c->train_samples && c->decay_iters == c->iters ? (double)c->samples : (double)c->decay_iters * batch;
    if (c->decay_samples)
        s.decay = (double)c->decay_samples;
    s.warmup = c->warmup_fraction > 0 ? c->warmup_fraction * s.decay : (double)c->warmup_iters * batch;
    if (c->warmup_samples)
        s.warmup = (double)c->warmup_samples;
    s.wsd = (double)c->wsd_iters * batch;
    return s;
}

static double wsd_coefficient(const struct schedule *s, double at)
{
    double r = (at - (s->decay - s->wsd)) / s->wsd;

    if (r <= 0)
        return 1;
    switch (s->wsd_style) {
    case WSD_LINEAR:
        return 1 - r;
    case WSD_COSINE:
        return 0.5 * (cos(M_PI * r) + 1);
    case WSD_MINUS_SQRT:
        return 1 - sqrt(r);
    default:
        return 2 * pow(0.5, r) - 1;
    }
}

double schedule_lr(const struct schedule *s, int64_t consumed)
{
    double at = (double)consumed, share, k;

    if (s->warmup > 0 && at <= s->warmup)
        return s->max_lr * at / s->warmup;
    if (s->style == LR_CONSTANT)
        return s->max_lr;
    if (at > s->decay)
        return s->min_lr;
    share = (at - s->warmup) / (s->decay - s->warmup);
    switch (s->style) {
    case LR_INVERSE_SQRT:
        return fmax(s->min_lr, s->max_lr * sqrt(fmax(s->warmup, 1)) / sqrt(fmax(at, 1)));
    case LR_COSINE:
        k = 0.5 * (cos(M_PI * share) + 1);
        break;
    case LR_WSD:
        k = wsd_coefficient(s, at);
        break;
    default:
        k = 1 - share;
    }
    return s->min_lr + k * (s->max_lr - s->min_lr);
}
