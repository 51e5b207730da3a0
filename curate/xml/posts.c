#include "curate/xml/posts.h"

#include <stdlib.h>

#include "base/spill.h"

enum { RUNS_MAX = 4096, BUFFER = 1 << 20, FIRST = 1 << 12 };

/* A sorted run that is being read. */
struct run {
    struct spill_reader reader;
    struct post post;
};

struct posts {
    struct spill rows, entries;
    struct post *post; /* the run under way; when merging none */
    size_t n, cap;
    uint64_t end[RUNS_MAX]; /* of each run in entries */
    int n_runs;
    struct run *run; /* a heap: the least first */
    int n_open, n_begun;
    bool merging;
};

static int compare(const void *left, const void *right)
{
    const struct post *a = left, *b = right;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

int posts_new(struct posts **out, struct err *e)
{
    struct posts *p = *out = calloc(1, sizeof *p);

    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for posts");
    p->rows.fd = p->entries.fd = -1;
    TRY(spill_open(&p->rows, NULL, BUFFER, e));
    return spill_open(&p->entries, NULL, BUFFER, e);
}

void posts_free(struct posts *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_begun; i++)
        spill_reader_close(&p->run[i].reader);
    free(p->run);
    free(p->post);
    spill_close(&p->rows);
    spill_close(&p->entries);
    free(p);
}

static int end_run(struct posts *p, struct err *e)
{
    if (!p->n)
        return 0;
    if (p->n_runs == RUNS_MAX)
        return err_set(e, ERR_LIMIT, "more than %lld posts", (long long)RUNS_MAX * POSTS_RUN);
    qsort(p->post, p->n, sizeof *p->post, compare);
    TRY(spill_put(&p->entries, p->post, p->n * sizeof *p->post, e));
    p->end[p->n_runs++] = p->entries.size;
    p->n = 0;
    return 0;
}

int posts_add(struct posts *p, struct post post, struct span row, struct err *e)
{
    if (p->n == POSTS_RUN)
        TRY(end_run(p, e));
    if (mem_grow(&p->post, &p->cap, p->n ? p->n + 1 : FIRST, sizeof *p->post) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for posts");
    post.at = p->rows.size;
    post.n = (uint32_t)row.n;
    p->post[p->n++] = post;
    return spill_put(&p->rows, row.p, row.n, e);
}

/* Lets the run at i sink to its place in the heap. */
static void sink(struct posts *p, int i)
{
    for (;;) {
        int least = i;
        for (int k = 2 * i + 1; k <= 2 * i + 2 && k < p->n_open; k++)
            if (compare(&p->run[k].post, &p->run[least].post) < 0)
                least = k;
        if (least == i)
            return;
        struct run swap = p->run[i];
        p->run[i] = p->run[least];
        p->run[least] = swap;
        i = least;
    }
}

static int begin_merge(struct posts *p, struct err *e)
{
    TRY(end_run(p, e));
    free(p->post);
    p->post = NULL;
    p->cap = 0;
    TRY(spill_flush(&p->rows, e));
    TRY(spill_flush(&p->entries, e));
    p->run = calloc((size_t)p->n_runs + 1, sizeof *p->run);
    if (!p->run)
        return err_set(e, ERR_NOMEM, "out of memory for posts");
    for (int i = 0; i < p->n_runs; i++) {
        TRY(spill_reader_open(&p->run[i].reader, &p->entries, i ? p->end[i - 1] : 0, p->end[i], POSTS_READ, e));
        p->n_begun++;
        TRY(spill_next(&p->run[i].reader, &p->run[i].post, sizeof p->run[i].post, e));
    }
    p->n_open = p->n_runs;
    for (int i = p->n_open / 2; i >= 0; i--)
        sink(p, i);
    p->merging = true;
    return 0;
}

int posts_peek(struct posts *p, struct post *post, struct err *e)
{
    if (!p->merging)
        TRY(begin_merge(p, e));
    if (!p->n_open)
        return 0;
    *post = p->run[0].post;
    return 1;
}

int posts_take(struct posts *p, char *to, struct err *e)
{
    struct run *r = &p->run[0];
    size_t got;

    if (to)
        TRY(spill_read(&p->rows, r->post.at, to, r->post.n, e));
    TRY(spill_ahead(&r->reader, sizeof r->post, &got, e));
    if (got < sizeof r->post) { /* the run is done: it stays behind the heap, to be closed */
        struct run done = *r;
        *r = p->run[--p->n_open];
        p->run[p->n_open] = done;
    } else {
        TRY(spill_next(&r->reader, &r->post, sizeof r->post, e));
    }
    sink(p, 0);
    return 0;
}
