#include "kernels/route.h"

#include <math.h>
#include <omp.h>

#include "kernels/check.h"
#include "kernels/route_simd.h"

/* ---- the choice ---- */

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* The n first so far by their keys, of equal ones those that came first. */
struct top {
    int64_t n;
    float key[ROUTE_MOST];
    int32_t id[ROUTE_MOST];
};

/* NaN counts as the least. */
static void top_add(struct top *t, int64_t most, float key, int64_t id)
{
    int64_t j = t->n < most ? t->n++ : most;

    key = isnan(key) ? -INFINITY : key;
    for (; j > 0 && key > t->key[j - 1]; j--)
        if (j < most) {
            t->key[j] = t->key[j - 1];
            t->id[j] = t->id[j - 1];
        }
    if (j < most) {
        t->key[j] = key;
        t->id[j] = (int32_t)id;
    }
}

static float biased(const struct route *p, const float *x, int64_t i)
{
    return sigmoid(x[i]) + (p->bias ? p->bias[i] : 0);
}

/* What an expert counts to its group. */
static float in_group(const struct route *p, const float *x, float max, int64_t i)
{
    if (p->score == ROUTE_SIGMOID)
        return biased(p, x, i);
    return p->pre ? expf(x[i] - max) : x[i];
}

/* The groups of which a row may choose, a bit each. */
static uint64_t groups_of(const struct route *p, const float *x, float max)
{
    struct top groups = {0};
    uint64_t bits = 0;

    for (int64_t g = 0; g < p->groups; g++) {
        struct top best = {0};
        int64_t each = p->experts / p->groups;
        float sum = 0;

        for (int64_t i = g * each; i < (g + 1) * each; i++)
            top_add(&best, route_judges(p), in_group(p, x, max, i), i);
        for (int64_t j = 0; j < best.n; j++)
            sum += best.key[j];
        top_add(&groups, p->of, sum, g);
    }
    for (int64_t j = 0; j < groups.n; j++)
        bits |= UINT64_C(1) << groups.id[j];
    return bits;
}

/* The k first of a row of logits. */
static void choose(const struct route *p, const float *x, float max, int32_t *choice)
{
    uint64_t groups = p->groups ? groups_of(p, x, max) : 1;
    int64_t each = p->groups ? p->experts / p->groups : p->experts;
    struct top best = {0};

    for (int64_t i = 0; i < p->experts; i++)
        if (groups >> i / each & 1)
            top_add(&best, p->k, p->bias ? biased(p, x, i) : x[i], i);
    memcpy(choice, best.id, (size_t)p->k * sizeof *choice);
}

static void route_row(const struct route *p, float *x, float *lse, int32_t *choice, float *weight)
{
    float max = -INFINITY, sum = 0, of_chosen = 0, over;
    bool softmax = p->score == ROUTE_SOFTMAX;

    for (int64_t i = 0; i < p->experts; i++)
        max = x[i] > max ? x[i] : max;
    choose(p, x, max, choice);
    for (int64_t j = 0; j < p->k; j++)
        of_chosen += weight[j] = softmax ? expf(x[choice[j]] - max) : sigmoid(x[choice[j]]);
    for (int64_t i = 0; i < p->experts; i++) {
        float v = expf(x[i] - max);

        sum += v;
        x[i] = softmax ? v : x[i];
    }
    *lse = max + logf(sum);
    over = softmax ? p->pre ? sum : of_chosen : p->k > 1 ? of_chosen + ROUTE_TINY : 1;
    for (int64_t j = 0; j < p->k; j++)
        weight[j] = weight[j] / over * route_scale(p);
    for (int64_t i = 0; i < p->experts && softmax; i++)
        x[i] /= sum;
}

int route_fwd_cpu(struct device *dev, const struct route *p, float *logits, float *lse, int32_t *choice, float *weight,
                  struct err *e)
{
    TRY(check_route(p, "route_fwd", e));
#pragma omp parallel for num_threads(cpu_team(dev, 8 * p->t * p->experts)) schedule(static)
    for (int64_t t = 0; t < p->t; t++)
        route_row(p, logits + t * p->experts, lse + t, choice + t * p->k, weight + t * p->k);
    return 0;
}

/* The gradient of token t by its probabilities; NULL: there is none. */
static const float *balance_of(const struct route *p, const struct route_grad *g, int64_t t)
{
    return g->balance && g->each ? g->balance + t / g->each * p->experts : g->balance;
}

/* d: room for a row. */
static void softmax_row_bwd(const struct route *p, int64_t t, const struct route_grad *g, float *d)
{
    const float *prob = g->logits + t * p->experts, *w = g->weight + t * p->k, *dw = g->dweight + t * p->k;
    const float *balance = balance_of(p, g, t);
    const int32_t *choice = g->choice + t * p->k;
    float sum = 0, of_chosen = 0, z = g->z * g->lse[t], scale = route_scale(p);

    for (int64_t i = 0; i < p->experts; i++)
        d[i] = balance ? balance[i] : 0;
    for (int64_t j = 0; j < p->k; j++) {
        d[choice[j]] += p->pre ? dw[j] * scale : 0;
        of_chosen += w[j] * dw[j];
    }
    for (int64_t i = 0; i < p->experts; i++)
        sum += prob[i] * d[i];
    for (int64_t i = 0; i < p->experts; i++)
        d[i] = prob[i] * (d[i] - sum + z);
    for (int64_t j = 0; j < p->k && !p->pre; j++)
        d[choice[j]] += w[j] * (dw[j] - of_chosen / scale);
}

/* The same of sigmoids: d becomes the gradient by each, then that by its logit. */
static void sigmoid_row_bwd(const struct route *p, int64_t t, const struct route_grad *g, float *d)
{
    const float *x = g->logits + t * p->experts, *w = g->weight + t * p->k, *dw = g->dweight + t * p->k;
    const float *balance = balance_of(p, g, t);
    const int32_t *choice = g->choice + t * p->k;
    float sum = 0, dot = 0, chosen = 0, of_chosen = 0, z = g->z * g->lse[t], scale = route_scale(p);

    for (int64_t i = 0; i < p->experts && balance; i++) {
        sum += sigmoid(x[i]);
        dot += sigmoid(x[i]) * balance[i];
    }
    for (int64_t i = 0; i < p->experts; i++)
        d[i] = balance ? (balance[i] - dot / (sum + ROUTE_TINY)) / (sum + ROUTE_TINY) : 0;
    for (int64_t j = 0; j < p->k; j++) {
        chosen += sigmoid(x[choice[j]]);
        of_chosen += w[j] * dw[j];
    }
    for (int64_t j = 0; j < p->k; j++)
        d[choice[j]] += p->k > 1 ? (scale * dw[j] - of_chosen) / (chosen + ROUTE_TINY) : scale * dw[j];
    for (int64_t i = 0; i < p->experts; i++) {
        float s = sigmoid(x[i]);

        d[i] = d[i] * s * (1 - s) + z * expf(x[i] - g->lse[t]);
    }
}

int route_bwd_cpu(struct device *dev, enum dtype dt, const struct route *p, void *dlogits, const struct route_grad *g,
                  struct err *e)
{
    int64_t room = (p->experts + 15) / 16 * 16; /* threads write no cache line together */
    void *scratch;

    TRY(check_dtype(dt, "route_bwd", e));
    TRY(check_route(p, "route_bwd", e));
    TRY(cpu_scratch(dev, &scratch, (size_t)(dev->threads * room) * sizeof(float), e));
#pragma omp parallel num_threads(cpu_team(dev, 8 * p->t * p->experts))
    {
        int64_t lo, hi;
        float *d = (float *)scratch + omp_get_thread_num() * room;

        cpu_share(p->t, 1, &lo, &hi);
        for (int64_t t = lo; t < hi; t++) {
            (p->score == ROUTE_SIGMOID ? sigmoid_row_bwd : softmax_row_bwd)(p, t, g, d);
            for (int64_t i = 0; i < p->experts; i++)
                if (dt == DTYPE_BF16)
                    ((uint16_t *)dlogits)[t * p->experts + i] = bf16_of(d[i]);
                else
                    ((float *)dlogits)[t * p->experts + i] = d[i];
        }
    }
    return 0;
}

/* ---- the way ---- */

/* What a choice is kept by: the larger the sooner. */
static uint32_t key_of(const struct route *p, const float *weight, int64_t i)
{
    uint32_t bits = 0;

    if (p->capacity && !p->by_position)
        memcpy(&bits, weight + i, sizeof bits);
    return bits & INT32_MAX; /* weights are not negative, so these order them; NaN comes first */
}

/* Of one expert. */
struct expert {
    int64_t next;   /* row */
    int64_t chosen; /* by how many; in the search, by how many of large keys */
    uint32_t least; /* key that is kept */
    int64_t ties;   /* how many with just that key are */
};

/* The capacity-th largest key of each expert, bit by bit; 0 where there are fewer. */
static void find_least(const struct route *p, const int32_t *choice, const float *weight, struct expert *x)
{
    for (uint32_t bit = 1u << 30; bit; bit >>= 1) {
        for (int64_t i = 0; i < p->experts; i++)
            x[i].chosen = 0;
        for (int64_t i = 0; i < p->t * p->k; i++)
            x[choice[i]].chosen += key_of(p, weight, i) >= (x[choice[i]].least | bit);
        for (int64_t i = 0; i < p->experts; i++)
            if (x[i].chosen >= p->capacity)
                x[i].least |= bit;
    }
    for (int64_t i = 0; i < p->t * p->k; i++)
        x[choice[i]].ties -= key_of(p, weight, i) > x[choice[i]].least;
}

static void place_rows(const struct route *p, const int32_t *choice, const float *weight, struct expert *x, int32_t *place,
                       int32_t *from)
{
    for (int64_t i = 0; i < p->t * p->k; i++) {
        struct expert *to = &x[choice[i]];
        uint32_t key = key_of(p, weight, i);

        place[i] = -1;
        if (key < to->least || (key == to->least && to->ties-- <= 0))
            continue;
        place[i] = (int32_t)to->next;
        from[to->next++] = (int32_t)(i / p->k);
    }
}

int route_place_cpu(struct device *dev, const struct route *p, const int32_t *choice, const float *weight, int32_t *place,
                    int32_t *from, int32_t *count, struct err *e)
{
    int64_t row = 0;
    bool drops = false;
    struct expert *x;
    void *scratch;

    TRY(check_route(p, "route_place", e));
    for (int64_t i = 0; i < p->t * p->k; i++)
        if (choice[i] < 0 || choice[i] >= p->experts)
            return err_set(e, ERR_ARG, "route_place: expert %d at %lld is not in 0 .. %lld", choice[i], (long long)i,
                           (long long)p->experts - 1);
    TRY(cpu_scratch(dev, &scratch, (size_t)p->experts * sizeof *x, e));
    x = scratch;
    memset(count, 0, (size_t)p->experts * sizeof *count);
    for (int64_t i = 0; i < p->t * p->k; i++)
        count[choice[i]]++;
    for (int64_t i = 0; i < p->experts; i++) {
        x[i] = (struct expert){.next = row, .ties = route_capacity(p)};
        row += route_kept(p, count[i]);
        drops |= count[i] > route_capacity(p);
    }
    for (int64_t i = 0; i < row && p->pad; i++)
        from[i] = -1;
    if (drops && !p->by_position)
        find_least(p, choice, weight, x);
    place_rows(p, choice, weight, x, place, from);
    return 0;
}

int route_likely_cpu(struct device *dev, const struct route *p, int64_t parts, const float *logits, float *prob, int32_t *count,
                     struct err *e)
{
    struct route all = *p;

    TRY(check_route(p, "route_likely", e));
    TRY(check_parts(p, parts, e));
    all.groups = 0;
    all.bias = NULL;
#pragma omp parallel for num_threads(cpu_team(dev, 8 * p->t * p->experts)) schedule(static)
    for (int64_t t = 0; t < p->t; t++) {
        const float *x = logits + t * p->experts;
        int32_t likely[ROUTE_MOST];
        float sum = 0;

        for (int64_t i = 0; i < p->experts && prob; i++)
            sum += prob[t * p->experts + i] = p->score == ROUTE_SIGMOID ? sigmoid(x[i]) : x[i];
        for (int64_t i = 0; i < p->experts && prob && p->score == ROUTE_SIGMOID; i++)
            prob[t * p->experts + i] /= sum + ROUTE_TINY;
        choose(&all, x, 0, likely);
        for (int64_t j = 0; j < p->k; j++)
#pragma omp atomic
            count[t / (p->t / parts) * p->experts + likely[j]]++;
    }
    return 0;
}

int route_tally_cpu(struct device *dev, int64_t experts, int32_t *load, const int32_t *count, struct err *e)
{
    (void)dev, (void)e;
    for (int64_t i = 0; i < experts; i++)
        load[i] += count[i];
    return 0;
}

int route_balance_cpu(struct device *dev, int64_t experts, float *sums, const int32_t *count, float by, double each, double *loss,
                      struct err *e)
{
    double sum = 0;

    (void)dev, (void)e;
    for (int64_t i = 0; i < experts; i++) {
        sum += (double)sums[i] * count[i];
        sums[i] = by * (float)count[i];
    }
    if (loss)
        *loss += each * sum;
    return 0;
}

int route_take_cpu(struct device *dev, enum dtype dt, void *y, const void *x, const int32_t *from, int64_t n, int64_t c,
                   struct err *e)
{
    size_t row = (size_t)c * dtype_size(dt);

    TRY(check_rows(dt, n, c, "route_take", e));
#pragma omp parallel for num_threads(cpu_team(dev, n * c)) schedule(static)
    for (int64_t i = 0; i < n; i++)
        if (from[i] < 0)
            memset((char *)y + (size_t)i * row, 0, row);
        else
            memcpy((char *)y + (size_t)i * row, (const char *)x + (size_t)from[i] * row, row);
    return 0;
}

int route_join_cpu(struct device *dev, enum dtype dt, const struct route *p, void *y, const void *x, const int32_t *place,
                   const float *weight, int64_t c, struct err *e)
{
    TRY(check_route(p, "route_join", e));
    TRY(check_rows(dt, p->t, c, "route_join", e));
    ISA_PICK(route_join_loop)(dev, dt, p, y, x, place, weight, c);
    return 0;
}

int route_join_bwd_cpu(struct device *dev, enum dtype dt, const struct route *p, void *dx, float *dweight, const void *dy,
                       const void *x, const int32_t *place, const float *weight, int64_t c, struct err *e)
{
    TRY(check_route(p, "route_join_bwd", e));
    TRY(check_rows(dt, p->t, c, "route_join_bwd", e));
    ISA_PICK(route_join_bwd_loop)(dev, dt, p, dx, dweight, dy, x, place, weight, c);
    return 0;
}
