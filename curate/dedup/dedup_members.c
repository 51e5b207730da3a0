#include "curate/dedup/dedup_members.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 4096, MOST = 1 << 20 };

int members_open(struct members *s, size_t room, const char *dir, struct err *e)
{
    *s = (struct members){.room = room, .dir = dir, .runs = {.fd = -1}, .sorted = {.fd = -1}};
    while (!(s->m = malloc(s->room * sizeof *s->m)) && s->room > LEAST) /* under a ulimit: the rest is on disk */
        s->room /= 2;
    return s->m ? 0 : err_set(e, ERR_NOMEM, "out of memory for a table of %zu entries", s->room);
}

void members_clear(struct members *s)
{
    spill_close(&s->runs);
    spill_close(&s->sorted);
    s->used = 0;
    s->n = 0;
    s->on_disk = false;
}

void members_close(struct members *s)
{
    if (!s->room)
        return;
    members_clear(s);
    free(s->m);
    *s = (struct members){0};
}

static int in_order(const void *x, const void *y)
{
    const struct member *a = x, *b = y;

    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* What is in memory becomes a run. */
static int put_run(struct members *s, struct err *e)
{
    if (s->runs.fd < 0)
        TRY(spill_open(&s->runs, s->dir, LEAST, e));
    qsort(s->m, s->used, sizeof *s->m, in_order);
    TRY(spill_put(&s->runs, s->m, s->used * sizeof *s->m, e));
    s->used = 0;
    return 0;
}

int members_add(struct members *s, const struct member *m, struct err *e)
{
    if (s->used == s->room)
        TRY(put_run(s, e));
    s->m[s->used++] = *m;
    s->n++;
    return 0;
}

/* A run that is being read, and its next member. */
struct run {
    struct spill_reader in;
    uint64_t left;
    struct member next;
};

static int step(struct run *r, struct err *e)
{
    return spill_next(&r->in, &r->next, sizeof r->next, e);
}

/* Puts run[at] in its place in the heap of runs below it, of which the one at the head has the least member. */
static void sift(struct run **run, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        struct run *above = run[at];

        child += child + 1 < n && in_order(&run[child + 1]->next, &run[child]->next) < 0;
        if (in_order(&above->next, &run[child]->next) <= 0)
            return;
        run[at] = run[child];
        run[child] = above;
    }
}

/* Always the least of those at the heads of the runs, none of which is empty. */
static int merge_runs(struct run **run, size_t n, struct spill *to, struct err *e)
{
    for (size_t i = n; i-- > 0;)
        sift(run, n, i);
    while (n) {
        TRY(spill_put(to, &run[0]->next, sizeof run[0]->next, e));
        if (--run[0]->left)
            TRY(step(run[0], e));
        else
            run[0] = run[--n];
        sift(run, n, 0);
    }
    return 0;
}

static int merge(struct members *s, struct err *e)
{
    size_t n = (size_t)((s->n + s->room - 1) / s->room), cap = s->room * sizeof(struct member) / 2 / n;
    struct run *run = calloc(n, sizeof *run), **heap = calloc(n, sizeof *heap);
    int rc = run && heap ? 0 : err_set(e, ERR_NOMEM, "out of memory for linked documents");

    cap = cap < LEAST ? LEAST : cap > MOST ? MOST : cap;
    for (size_t i = 0; i < n && rc == 0; i++) {
        uint64_t at = (uint64_t)i * s->room, left = s->n - at;

        heap[i] = &run[i];
        run[i].left = left < s->room ? left : s->room;
        rc = spill_reader_open(&run[i].in, &s->runs, at * sizeof(struct member),
                               (at + run[i].left) * sizeof(struct member), cap, e);
        if (rc == 0)
            rc = step(&run[i], e);
    }
    if (rc == 0)
        rc = spill_open(&s->sorted, s->dir, cap, e);
    if (rc == 0)
        rc = merge_runs(heap, n, &s->sorted, e);
    if (rc == 0)
        rc = spill_flush(&s->sorted, e);
    for (size_t i = 0; i < n && run; i++)
        spill_reader_close(&run[i].in);
    free(run);
    free(heap);
    return rc;
}

int members_sort(struct members *s, struct err *e)
{
    if (s->runs.fd < 0) {
        qsort(s->m, s->used, sizeof *s->m, in_order);
        return 0;
    }
    TRY(put_run(s, e));
    TRY(spill_flush(&s->runs, e));
    s->on_disk = true;
    TRY(merge(s, e));
    spill_close(&s->runs);
    return 0;
}

int members_get(const struct members *s, uint64_t at, size_t n, struct member *to, struct err *e)
{
    if (s->on_disk)
        return spill_read(&s->sorted, at * sizeof *to, to, n * sizeof *to, e);
    memcpy(to, s->m + at, n * sizeof *to);
    return 0;
}
