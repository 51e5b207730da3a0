#include "train/bucketing.h"

#include <stdlib.h>
#include <string.h>

size_t bucketing_align(int64_t parameters)
{
    size_t align = 64;

    while ((size_t)parameters > align << 18)
        align *= 2;
    return align;
}

/* Where the buckets end, from the last to the first, in at[0..]; how many.  A tied embedding that has a copy, and the copy, are
 * buckets of their own, so that they are divided alike. */
static int cut(const struct params *p, size_t multiple, size_t bucket, size_t *at)
{
    int n = 0;
    size_t end = p->elements;

    at[n++] = end;
    for (int i = p->n - 1; i >= 0; i--) {
        size_t from = p->v[i].at / multiple * multiple;
        bool own = params_apart(p, i) || params_apart(p, i - 1);

        if (from < end && from > 0 && (end - from >= bucket || own))
            at[n++] = end = from;
    }
    if (end > 0)
        at[n++] = 0;
    return n - 1;
}

/* The same with a bucket for each unit. */
static int cut_units(const struct params *p, size_t *at)
{
    for (int i = 0; i <= p->units; i++)
        at[p->units - i] = params_unit_at(p, i);
    return p->units;
}

int bucketing_open(struct bucketing *s, const struct params *p, size_t align, int ranks, int rank, size_t bucket, struct err *e)
{
    size_t *at = malloc(((size_t)p->n + (size_t)p->units + 2) * sizeof *at);

    *s = (struct bucketing){.ranks = ranks, .rank = rank, .align = align};
    if (!at)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->n = bucket ? cut(p, bucketing_multiple(align, ranks), bucket, at) : cut_units(p, at);
    for (int i = 0, k = s->n; i < k; i++, k--) {
        size_t swap = at[i];

        at[i] = at[k];
        at[k] = swap;
    }
    s->at = at;
    return 0;
}

void bucketing_close(struct bucketing *s)
{
    free(s->at);
    memset(s, 0, sizeof *s);
}

enum { STATE_ALIGN = 16 }; /* as tensors begin in a flat buffer */

static size_t state_room(size_t n)
{
    return (n + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
}

bool bucketing_all_have(const struct params *p, int k)
{
    for (int i = 0; i < p->n; i++)
        if (p->v[i].rule.states <= k)
            return false;
    return true;
}

/* Adds to each rank's elements in `of` those of a parameter that it keeps. */
static void add_shards(const struct bucketing *s, const struct param *q, size_t *of)
{
    for (int i = 0; i < s->n; i++) {
        size_t share = bucketing_share(s, i);
        size_t lo = q->at > s->at[i] ? q->at : s->at[i], end = q->at + q->n < s->at[i + 1] ? q->at + q->n : s->at[i + 1];

        while (lo < end) {
            size_t rank = (lo - s->at[i]) / share, to = s->at[i] + (rank + 1) * share;

            to = to < end ? to : end;
            of[rank] += state_room(to - lo);
            lo = to;
        }
    }
}

size_t bucketing_state(const struct bucketing *s, const struct params *p, int k)
{
    size_t *of, most = 0;

    if (bucketing_all_have(p, k))
        return bucketing_own(s);
    of = calloc((size_t)s->ranks, sizeof *of);
    for (int i = 0; i < p->n && of; i++)
        if (p->v[i].rule.states > k)
            add_shards(s, &p->v[i], of);
    for (int r = 0; r < s->ranks && of; r++)
        most = of[r] > most ? of[r] : most;
    free(of);
    return of ? most : bucketing_own(s);
}

bool bucketing_next(const struct bucketing *s, const struct params *p, struct shard_range *r)
{
    if (r->param && r->param->rule.states > 1)
        r->second += state_room(r->n);
    for (; r->bucket < s->n; r->bucket++, r->next = 0) {
        size_t from = bucketing_from(s, r->bucket), to = from + bucketing_share(s, r->bucket);

        while (r->next < p->n && p->v[r->next].at < to) {
            const struct param *q = &p->v[r->next++];
            size_t lo = q->at > from ? q->at : from, hi = q->at + q->n < to ? q->at + q->n : to;

            if (lo >= hi)
                continue;
            r->param = q;
            r->at = lo;
            r->n = hi - lo;
            r->here = bucketing_here(s, r->bucket) + lo - from;
            return true;
        }
    }
    return false;
}

int bucketing_pieces_max(const struct bucketing *s, const struct params *p)
{
    return s->ranks == 1 ? p->n * PIECES_PER_PARAM : (p->n + s->n) * PIECES_PER_PARAM * 3;
}

int bucketing_rectangles(const struct shard_range *r, enum checkpoint_part part, struct piece *v)
{
    struct param q = *r->param;
    const struct params one = {.v = &q, .n = 1};
    struct piece whole[PIECES_PER_PARAM];
    int n = 0, k = params_pieces(&one, part, NULL, DTYPE_F32, whole);
    int64_t first = (int64_t)(r->at - q.at), end = first + (int64_t)r->n, before = 0;

    for (int i = 0; i < k; i++) {
        int64_t all = whole[i].rows * whole[i].cols, lo = first - before, hi = end - before;

        lo = lo > 0 ? lo : 0;
        hi = hi < all ? hi : all;
        before += all;
        if (lo < hi)
            n += piece_range(&whole[i], lo, hi - lo, v + n);
    }
    for (int i = 0; i < n; i++)
        v[i].name = r->param->name;
    return n;
}

int bucketing_range_pieces(const struct shard_range *r, enum checkpoint_part part, void *data, enum dtype dt, struct piece *v)
{
    int n = bucketing_rectangles(r, part, v);
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        v[i].data = (char *)data + at * dtype_size(dt);
        v[i].dt = dt;
        at += (size_t)(v[i].rows * v[i].cols);
    }
    return n;
}

int bucketing_pieces(const struct bucketing *s, const struct params *p, enum checkpoint_part part, void *data, enum dtype dt,
                  bool in_flat, struct piece *v)
{
    struct shard_range r = {0};
    int n = 0;

    if (s->ranks == 1)
        return params_pieces(p, part, data, dt, v);
    while (bucketing_next(s, p, &r)) {
        char *from = (char *)data + (in_flat ? r.at : r.here) * dtype_size(dt);

        n += bucketing_range_pieces(&r, part, from, dt, v + n);
    }
    return n;
}
