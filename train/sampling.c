#include "train/sampling.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct choice {
    float logit;
    int32_t id;
};

/* Larger for a larger logit, and of one size for both zeros. */
static uint32_t key_of(float logit)
{
    uint32_t bits;

    logit += 0; /* -0 becomes 0 */
    memcpy(&bits, &logit, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

/* Choices in bins by the first bits of their keys, the largest first.  A bin is put in order when its choices are asked for:
 * most of a vocabulary never is. */
enum { BIN_BITS = 11, BINS = 1 << BIN_BITS, REST_BITS = 32 - BIN_BITS };
struct ranking {
    struct choice *c, *spare; /* (n) each */
    double *weight, top, temperature; /* (n) exp((logit - top) / temperature) of the first `weighed`; top: the largest logit */
    int64_t weighed;
    int64_t ordered;          /* c[0 .. ordered), bins [0, bin), are in order */
    int bin;
    int64_t end[BINS];        /* of each bin in c */
};

/* The bits of a key from `shift` on, the largest for the smallest. */
static int place_of(const struct choice *c, int shift)
{
    return BINS - 1 - (int)(key_of(c->logit) >> shift & (BINS - 1));
}

/* from (n) to `to` by such bits; those with the same ones stay as they come.  end: of each value of them. */
static void scatter(const struct choice *from, struct choice *to, int64_t n, int shift, int64_t end[BINS])
{
    memset(end, 0, BINS * sizeof *end);
    for (int64_t i = 0; i < n; i++)
        if (place_of(&from[i], shift) + 1 < BINS)
            end[place_of(&from[i], shift) + 1]++;
    for (int i = 1; i < BINS; i++)
        end[i] += end[i - 1];
    for (int64_t i = 0; i < n; i++)
        to[end[place_of(&from[i], shift)]++] = from[i];
}

/* Choice i of all, the likeliest first; ties by id. */
static const struct choice *ranked(struct ranking *r, int64_t i)
{
    for (; r->ordered <= i; r->ordered = r->end[r->bin++]) {
        struct choice *at = r->c + r->ordered;
        int64_t n = r->end[r->bin] - r->ordered, end[BINS];

        if (n < 2)
            continue;
        scatter(at, r->spare, n, 0, end);
        scatter(r->spare, at, n, REST_BITS - BIN_BITS, end);
    }
    return &r->c[i];
}

static double weigh(const struct ranking *r, const struct choice *c)
{
    return exp((c->logit - r->top) / r->temperature);
}

/* Of choice i; the first time of all in turn. */
static double weight(struct ranking *r, int64_t i)
{
    if (i == r->weighed)
        r->weight[r->weighed++] = weigh(r, ranked(r, i));
    return r->weight[i];
}

/* Draws among n choices: their softmax at the temperature, cut to the likeliest top_k and of these to top_p. */
static int32_t draw(const struct sampling *s, struct ranking *r, int64_t n, double u)
{
    int64_t k = s->top_k > 0 && s->top_k < n ? s->top_k : n, last = k - 1, i = 0;
    double sum = 0, kept = 0, at = 0;

    r->top = ranked(r, 0)->logit;
    for (int64_t j = 0; j < k; j++)
        sum += k < n ? weight(r, j) : weigh(r, &r->c[j]);
    if (s->top_p < 1)
        for (last = 0; (kept += weight(r, last)) < s->top_p * sum && last < k - 1;)
            last++;
    else
        kept = sum;
    while (i < last && (at += weight(r, i)) <= u * kept)
        i++;
    return ranked(r, i)->id;
}

/* The ids that may be drawn, to c; how many. */
static int64_t choices(const struct sampling *s, const float *logits, int64_t n, struct choice *c, struct err *e)
{
    int64_t m = 0;

    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(logits[i]))
            return err_set(e, ERR_LIMIT, "the logit of token %" PRId64 " is not finite", i);
        if (!s->drawn || s->drawn[i])
            c[m++] = (struct choice){logits[i], (int32_t)i};
    }
    return m ? m : err_set(e, ERR_LIMIT, "none of the %" PRId64 " ids may be drawn", n);
}

/* The first of the likeliest. */
static int32_t likeliest(const struct choice *c, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        best = c[i].logit > c[best].logit ? i : best;
    return c[best].id;
}

size_t sampling_room(int64_t n)
{
    return (size_t)n * (2 * sizeof(struct choice) + sizeof(double));
}

int32_t sampling_draw(const struct sampling *s, const float *logits, int64_t n, double u, void *room, struct err *e)
{
    struct ranking r = {.weight = room, .temperature = s->temperature};
    int64_t m;

    r.spare = (struct choice *)(r.weight + n), r.c = r.spare + n;
    m = choices(s, logits, n, r.spare, e);
    if (m < 0)
        return (int32_t)m;
    if (s->temperature <= 0)
        return likeliest(r.spare, m);
    scatter(r.spare, r.c, m, REST_BITS, r.end);
    return draw(s, &r, m, u);
}

void sampling_penalize(const struct sampling *s, const bool *seen, float *logits, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (seen[i])
            logits[i] = (float)(logits[i] < 0 ? logits[i] * s->penalty : logits[i] / s->penalty);
}
