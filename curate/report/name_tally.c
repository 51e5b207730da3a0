#include "curate/report/name_tally.h"

#include <stdlib.h>

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The median of what the names may have had. */
static int find_median(const struct name_tally *t, uint64_t *median)
{
    size_t n = t->names.n;
    uint64_t *v = malloc(n * sizeof *v);

    if (!v)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        v[i] = t->count[i].docs + t->count[i].missed;
    qsort(v, n, sizeof *v, by_number);
    *median = v[n / 2];
    free(v);
    return 0;
}

static int forget(struct name_tally *t)
{
    struct name_table kept = {0};
    uint64_t median;
    size_t number;
    int rc = find_median(t, &median);

    for (size_t i = 0; i < t->names.n && rc >= 0; i++)
        if (t->count[i].docs + t->count[i].missed > median) {
            rc = name_table_add(&kept, t->names.name[i], &number);
            if (rc > 0)
                t->count[number] = t->count[i];
        }
    if (rc < 0) {
        name_table_free(&kept);
        return rc;
    }
    name_table_free(&t->names);
    t->names = kept;
    t->missed = median;
    return 0;
}

int name_tally_add(struct name_tally *t, struct span name, const struct name_count *more)
{
    struct name_count *c;
    size_t number;

    if (!name_table_find(&t->names, name, &number)) {
        if (t->names.n == t->bound)
            TRY(forget(t));
        TRY(mem_grow(&t->count, &t->cap, t->names.n + 1, sizeof *t->count));
        TRY(name_table_add(&t->names, name, &number));
        t->count[number] = (struct name_count){.missed = t->missed};
    }
    c = &t->count[number];
    c->docs += more->docs;
    c->bytes += more->bytes;
    c->chars += more->chars;
    c->words += more->words;
    return 0;
}

static int by_count(const void *a, const void *b, void *of)
{
    const struct name_tally *t = of;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const struct name_count *x = &t->count[i], *y = &t->count[k];

    if (x->docs != y->docs)
        return x->docs > y->docs ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return span_compare(t->names.name[i], t->names.name[k]);
}

size_t *name_tally_order(const struct name_tally *t)
{
    size_t *order = malloc((t->names.n + 1) * sizeof *order);
    union { const struct name_tally *in; void *out; } u = {t};

    for (size_t i = 0; i < t->names.n && order; i++)
        order[i] = i;
    if (order)
        qsort_r(order, t->names.n, sizeof *order, by_count, u.out);
    return order;
}

void name_tally_free(struct name_tally *t)
{
    name_table_free(&t->names);
    free(t->count);
    *t = (struct name_tally){0};
}
