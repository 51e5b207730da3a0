#include "pipelines/ablation/ablation_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Student's t ---- */

/* The regularised incomplete beta function I_x(a, b) by its continued fraction (Lentz), where it converges fast. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), sum;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    sum = d;
    for (int m = 1; m < 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

        d = 1 / (1 + even * d);
        c = 1 + even / c;
        sum *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        step = d * c;
        sum *= step;
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) * sum / a;
}

/* The probability of a value above t >= 0. */
static double student_tail(double t, double freedom)
{
    double x = freedom / (freedom + t * t), a = freedom / 2, b = .5;

    if (t == 0)
        return .5;
    return x < (a + 1) / (a + b + 2) ? beta_fraction(a, b, x) / 2 : (1 - beta_fraction(b, a, t * t / (freedom + t * t))) / 2;
}

double student_quantile(double p, int freedom)
{
    double low = 0, high = 1, tail = 1 - p;

    while (student_tail(high, freedom) > tail && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-13 * high; i++) {
        double mid = (low + high) / 2;

        if (student_tail(mid, freedom) > tail)
            low = mid;
        else
            high = mid;
    }
    return (low + high) / 2;
}

struct rank_interval interval_of(const double *value, int n, double alpha)
{
    struct rank_interval v = {0, NAN, 0};
    double squares = 0;

    for (int i = 0; i < n; i++)
        if (!isnan(value[i])) {
            v.mean += value[i];
            v.n++;
        }
    if (v.n == 0)
        return (struct rank_interval){NAN, NAN, 0};
    v.mean /= v.n;
    for (int i = 0; i < n; i++)
        if (!isnan(value[i]))
            squares += (value[i] - v.mean) * (value[i] - v.mean);
    if (v.n == 1)
        v.half = INFINITY;
    else
        v.half = student_quantile(1 - alpha / 2, v.n - 1) * sqrt(squares / (v.n - 1) / v.n);
    return v;
}

/* ---- who is given which seeds ---- */

int rank_active(int variants, int s, bool halving)
{
    for (int k = 2; halving && k <= s && variants > 2; k *= 2)
        variants = (variants + 1) / 2;
    return variants;
}

/* The mean of the first n scores; NAN if one is not there. */
static double mean_of(const double *score, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += score[i];
    return sum / n;
}

/* How many of those that have got as far as seed s are better than variant v by their mean, or as good and before it. */
static int place_of(const struct rank_scores *x, int s, const int *upto, int v)
{
    double own = mean_of(x->score + v * x->stride, s);
    int place = 0;

    for (int w = 0; w < x->variants; w++) {
        double other = upto[w] == s ? mean_of(x->score + w * x->stride, s) : NAN;

        place += x->higher ? other > own : other < own;
        place += w < v && other == own;
    }
    return place;
}

bool rank_schedule(const struct rank_scores *x, int *upto)
{
    int keep, before = x->variants;
    bool left[RANK_VARIANTS];

    memset(upto, 0, (size_t)x->variants * sizeof *upto);
    for (int s = 0; s < x->seeds; s++, before = keep) {
        keep = rank_active(x->variants, s, x->halving);
        for (int v = 0; v < x->variants; v++) {
            left[v] = upto[v] == s;
            if (!left[v] || keep == before)
                continue;
            if (isnan(mean_of(x->score + v * x->stride, s)))
                return false;
            left[v] = place_of(x, s, upto, v) < keep;
        }
        for (int v = 0; v < x->variants; v++)
            upto[v] += left[v];
    }
    return true;
}

/* ---- the ranking ---- */

/* Whether v stands before w. */
static bool is_before(const struct ranking *r, const int *upto, bool higher, int v, int w)
{
    double a = r->score[v].mean, b = r->score[w].mean;

    if (upto[v] != upto[w])
        return upto[v] > upto[w];
    if (isnan(a) || isnan(b) || a == b)
        return isnan(a) == isnan(b) ? v < w : isnan(b);
    return higher ? a > b : a < b;
}

/* How many seeds of a variant count: what it was to have, where variants are stopped. */
static int counted(const struct rank_scores *x, const int *upto, int v)
{
    return x->halving ? upto[v] : x->seeds;
}

/* How much better one is than the other, at the seeds that both have. */
static struct rank_interval gain_of(const struct rank_scores *x, const int *upto, int a, int b, double alpha)
{
    int n = counted(x, upto, a) < counted(x, upto, b) ? counted(x, upto, a) : counted(x, upto, b);
    double gain[RANK_SEEDS];

    for (int s = 0; s < n; s++) {
        gain[s] = x->score[a * x->stride + s] - x->score[b * x->stride + s];
        gain[s] = x->higher ? gain[s] : -gain[s];
    }
    return interval_of(gain, n, alpha);
}

/* Puts the variants in order, by insertion. */
static void sort_variants(struct ranking *r, const int *upto, bool higher)
{
    for (int v = 0; v < r->variants; v++) {
        int at = v;

        for (; at > 0 && is_before(r, upto, higher, v, r->order[at - 1]); at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = v;
    }
}

int rank_variants(struct ranking *r, const struct rank_scores *x, const int *upto, double alpha, struct err *e)
{
    int n = x->variants, looks = 1;

    *r = (struct ranking){.variants = n, .alpha = alpha, .n_pairs = n * (n - 1) / 2};
    r->order = calloc((size_t)n, sizeof *r->order);
    r->score = calloc((size_t)n, sizeof *r->score);
    r->pair = calloc((size_t)r->n_pairs + 1, sizeof *r->pair);
    if (!r->order || !r->score || !r->pair) {
        ranking_free(r);
        return err_set(e, ERR_NOMEM, "out of memory for the ranking");
    }
    for (int s = 1; s < x->seeds; s++)
        looks += rank_active(n, s, x->halving) < rank_active(n, s - 1, x->halving);
    r->comparisons = r->n_pairs * looks;
    for (int v = 0; v < n; v++)
        r->score[v] = interval_of(x->score + v * x->stride, counted(x, upto, v), alpha);
    sort_variants(r, upto, x->higher);
    for (int i = 0, at = 0; i < n; i++)
        for (int k = i + 1; k < n; k++, at++) {
            struct ranked_pair *p = &r->pair[at];

            *p = (struct ranked_pair){.a = r->order[i], .b = r->order[k]};
            p->gain = gain_of(x, upto, p->a, p->b, alpha / r->comparisons);
            if (p->gain.n > 1 && fabs(p->gain.mean) > p->gain.half)
                p->decided = p->gain.mean > 0 ? 1 : -1;
        }
    return 0;
}

void ranking_free(struct ranking *r)
{
    free(r->order);
    free(r->score);
    free(r->pair);
    *r = (struct ranking){0};
}
