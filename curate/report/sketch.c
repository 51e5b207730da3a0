#include "curate/report/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"

/* The bin of a number is the top of its bits: sign, exponent and 7 bits of the rest. */
enum { BIN_SHIFT = 45 };

struct sketch_slot {
    uint32_t key; /* 1 + the bin; 0: empty */
    uint64_t n;
};

static uint32_t bin_of(double x)
{
    uint64_t bits;

    if (fabs(x) < 0x1p-32)
        return 0;
    if (fabs(x) > 0x1p64)
        x = copysign(0x1p64, x);
    memcpy(&bits, &x, sizeof bits);
    return (uint32_t)(bits >> BIN_SHIFT);
}

static double edge(uint64_t bin)
{
    uint64_t bits = bin << BIN_SHIFT;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The number that stands for a bin. */
static double middle(const struct sketch *s, uint32_t bin)
{
    double low = edge(bin), high = edge((uint64_t)bin + 1), x = (low + high) / 2;

    if (bin == 0)
        x = 0;
    else if (!s->broken)
        x = fabs(high - low) <= 1 ? low : round(x);
    return x < s->min ? s->min : x > s->max ? s->max : x;
}

static struct sketch_slot *look(struct sketch_slot *slot, size_t slots, uint32_t key)
{
    size_t i = hash_mix64(key) & (slots - 1);

    while (slot[i].key && slot[i].key != key)
        i = (i + 1) & (slots - 1);
    return &slot[i];
}

static int grow(struct sketch *s)
{
    size_t slots = s->slots ? 2 * s->slots : 1024;
    struct sketch_slot *p = calloc(slots, sizeof *p);

    if (!p)
        return ERR_NOMEM;
    for (size_t i = 0; i < s->slots; i++)
        if (s->slot[i].key)
            *look(p, slots, s->slot[i].key) = s->slot[i];
    free(s->slot);
    s->slot = p;
    s->slots = slots;
    return 0;
}

static int count(struct sketch *s, double x)
{
    struct sketch_slot *p;

    if (2 * s->used >= s->slots)
        TRY(grow(s));
    p = look(s->slot, s->slots, bin_of(x) + 1);
    s->used += !p->key;
    p->key = bin_of(x) + 1;
    p->n++;
    return 0;
}

static int keep(struct sketch *s, double x)
{
    TRY(mem_grow(&s->exact, &s->cap, s->n + 1, sizeof *s->exact));
    s->exact[s->n] = x;
    return 0;
}

static void add_up(struct sketch *s, double x)
{
    double sum = s->sum + x;

    s->sum_low += fabs(s->sum) >= fabs(x) ? (s->sum - sum) + x : (x - sum) + s->sum;
    s->sum = sum;
}

int sketch_add(struct sketch *s, double x)
{
    if (s->n == SKETCH_EXACT) {
        for (size_t i = 0; i < s->n; i++)
            TRY(count(s, s->exact[i]));
        free(s->exact);
        s->exact = NULL;
    }
    TRY(s->n < SKETCH_EXACT ? keep(s, x) : count(s, x));
    if (s->n == 0 || x < s->min)
        s->min = x;
    if (s->n == 0 || x > s->max)
        s->max = x;
    s->broken |= x != floor(x);
    add_up(s, x);
    s->n++;
    return 0;
}

double sketch_mean(const struct sketch *s)
{
    return s->n ? (s->sum + s->sum_low) / (double)s->n : NAN;
}

static int by_x(const void *a, const void *b)
{
    const struct sketch_point *x = a, *y = b;

    return x->x < y->x ? -1 : x->x > y->x;
}

int sketch_points(const struct sketch *s, struct sketch_point **points, size_t *n)
{
    size_t most = s->exact ? s->n : s->used, k = 0, m = 0;
    struct sketch_point *p = most ? malloc(most * sizeof *p) : NULL;

    *points = p;
    *n = 0;
    if (!p)
        return most ? ERR_NOMEM : 0;
    for (size_t i = 0; s->exact && i < s->n; i++)
        p[k++] = (struct sketch_point){s->exact[i], 1};
    for (size_t i = 0; !s->exact && i < s->slots; i++)
        if (s->slot[i].key)
            p[k++] = (struct sketch_point){middle(s, s->slot[i].key - 1), s->slot[i].n};
    qsort(p, k, sizeof *p, by_x);
    for (size_t i = 0; i < k; i++) /* equal ones together */
        if (m && p[m - 1].x == p[i].x)
            p[m - 1].n += p[i].n;
        else
            p[m++] = p[i];
    *n = m;
    return 0;
}

double sketch_quantile(const struct sketch_point *points, size_t n, double q)
{
    uint64_t all = 0, rank, seen = 0;

    for (size_t i = 0; i < n; i++)
        all += points[i].n;
    rank = (uint64_t)ceil(q * (double)all);
    for (size_t i = 0; i < n; i++) {
        seen += points[i].n;
        if (seen >= rank && seen)
            return points[i].x;
    }
    return NAN;
}

void sketch_free(struct sketch *s)
{
    free(s->exact);
    free(s->slot);
    memset(s, 0, sizeof *s);
}
