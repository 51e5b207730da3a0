#include "tokenize/ranges.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "tokenize/hf_table.h"
#include "tokenize/ucd.h"

int ranges_add(struct ranges *r, uint32_t from, uint32_t to)
{
    struct range x = {from, to};

    return from < to ? buf_put(&r->b, &x, sizeof x) : 0;
}

int ranges_add_all(struct ranges *r, const struct ranges *other)
{
    return buf_put_span(&r->b, buf_span(&other->b));
}

/* Where the class changes, and to what: found once in a process. */
static struct {
    uint32_t from[4096];
    uint8_t class[4096];
    uint32_t n;
} runs;

static void find_runs(void)
{
    for (uint32_t cp = 0; cp < RANGES_END; cp++)
        if (!cp || ucd_class(cp) != runs.class[runs.n - 1]) {
            runs.from[runs.n] = cp;
            runs.class[runs.n++] = (uint8_t)ucd_class(cp);
        }
}

int ranges_add_class(struct ranges *r, unsigned bits)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_runs);
    for (uint32_t i = 0; i < runs.n; i++)
        if (runs.class[i] & bits)
            TRY(ranges_add(r, runs.from[i], i + 1 < runs.n ? runs.from[i + 1] : RANGES_END));
    return 0;
}

int ranges_add_hf_class(struct ranges *r, unsigned bits)
{
    for (uint32_t i = 0; i < hf_n_ranges; i++)
        if (hf_ranges[i] & bits)
            TRY(ranges_add(r, hf_ranges[i] >> 8, i + 1 < hf_n_ranges ? hf_ranges[i + 1] >> 8 : RANGES_END));
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : 0;
}

void ranges_close(struct ranges *r)
{
    struct range *v = (struct range *)(void *)r->b.p;
    size_t n = ranges_n(r), kept = 0;

    if (n)
        qsort(v, n, sizeof *v, compare);
    for (size_t i = 0; i < n; i++) {
        if (kept && v[kept - 1].to >= v[i].from)
            v[kept - 1].to = v[i].to > v[kept - 1].to ? v[i].to : v[kept - 1].to;
        else
            v[kept++] = v[i];
    }
    r->b.n = kept * sizeof *v;
}

int ranges_invert(struct ranges *r)
{
    struct ranges out = {.b = {0}};
    const struct range *v = ranges_get(r);
    uint32_t at = 0;
    int rc = 0;

    for (size_t i = 0; i < ranges_n(r) && rc == 0; at = v[i++].to)
        rc = ranges_add(&out, at, v[i].from);
    if (rc == 0)
        rc = ranges_add(&out, at, RANGES_END);
    ranges_free(r);
    *r = out;
    return rc;
}

int ranges_intersect(struct ranges *r, const struct ranges *other)
{
    struct ranges out = {.b = {0}};
    const struct range *a = ranges_get(r), *b = ranges_get(other);
    int rc = 0;

    for (size_t i = 0, k = 0; i < ranges_n(r) && k < ranges_n(other) && rc == 0;) {
        rc = ranges_add(&out, a[i].from > b[k].from ? a[i].from : b[k].from, a[i].to < b[k].to ? a[i].to : b[k].to);
        if (a[i].to < b[k].to)
            i++;
        else
            k++;
    }
    ranges_free(r);
    *r = out;
    return rc;
}

bool ranges_equal(const struct ranges *a, const struct ranges *b)
{
    return span_eq(buf_span(&a->b), buf_span(&b->b));
}

void ranges_free(struct ranges *r)
{
    buf_free(&r->b);
}
