#include "curate/dedup/dedup_template_list.h"

#include <stdlib.h>

#include "curate/stream/rank_exchange.h"

enum { READ = 1 << 18, LEAST = 4096 };

/* A line in memory. */
struct template_line {
    uint64_t docs;
    struct span text;
};

/* The order of two lines. */
static int order(const struct template_line *a, const struct template_line *b)
{
    if (a->docs != b->docs)
        return a->docs > b->docs ? -1 : 1;
    return span_cmp(a->text, b->text);
}

static int by_order(const void *a, const void *b)
{
    return order(a, b);
}

/* ---- merging ---- */

/* A run, its next line at hand. */
struct head {
    struct parcels p;
    struct parcel h;
    uint64_t left; /* bytes behind that line */
    bool more;
};

static int next(struct head *x, struct err *e)
{
    x->more = x->left > 0;
    if (!x->more)
        return 0;
    TRY(parcel_next(&x->p, &x->h, e));
    x->left -= sizeof x->h + x->h.n;
    return 0;
}

static bool is_before(const struct head *a, const struct head *b)
{
    const struct template_line x = {a->h.number, buf_span(&a->p.note)}, y = {b->h.number, buf_span(&b->p.note)};

    return order(&x, &y) < 0;
}

/* Gives always the first line of all that are at hand. */
static int merge(struct head *head, size_t n, template_taker *take, void *to, struct err *e)
{
    for (;;) {
        struct head *first = NULL;

        for (size_t i = 0; i < n; i++)
            if (head[i].more && (!first || is_before(&head[i], first)))
                first = &head[i];
        if (!first)
            return 0;
        TRY(take(to, first->h.number, buf_span(&first->p.note), e));
        TRY(next(first, e));
    }
}

int template_merge(const struct template_run *run, size_t n, int64_t memory, template_taker *take, void *to, struct err *e)
{
    struct head *head = calloc(n + 1, sizeof *head);
    size_t cap = (size_t)memory / (n + 1);
    int rc = head ? 0 : err_set(e, ERR_NOMEM, "out of memory for a list of lines");

    cap = cap < LEAST ? LEAST : cap > READ ? READ : cap;
    for (size_t i = 0; i < n && rc == 0; i++) {
        head[i].left = run[i].to - run[i].from;
        rc = spill_reader_open(&head[i].p.in, run[i].in, run[i].from, run[i].to, cap, e);
        if (rc == 0)
            rc = next(&head[i], e);
    }
    if (rc == 0)
        rc = merge(head, n, take, to, e);
    for (size_t i = 0; i < n && head; i++)
        parcels_close(&head[i].p);
    free(head);
    return rc;
}

/* ---- the list ---- */

int template_list_open(struct template_list *l, int64_t memory, const char *dir, struct err *e)
{
    *l = (struct template_list){.room = (size_t)memory / 2, .runs.fd = -1};
    l->room = l->room < LEAST ? LEAST : l->room;
    return spill_open_small(&l->runs, dir, READ, e);
}

void template_list_close(struct template_list *l)
{
    buf_free(&l->text);
    free(l->line);
    free(l->end);
    spill_close(&l->runs);
}

/* What is in memory becomes a run. */
static int put_run(struct template_list *l, struct err *e)
{
    if (!l->n)
        return 0;
    qsort(l->line, l->n, sizeof *l->line, by_order);
    for (size_t i = 0; i < l->n; i++)
        TRY(parcel_put(&l->runs, l->line[i].docs, l->line[i].text, e));
    if (mem_grow(&l->end, &l->runs_cap, l->n_runs + 1, sizeof *l->end) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a list of lines");
    l->end[l->n_runs++] = l->runs.size;
    buf_clear(&l->text);
    l->n = 0;
    return 0;
}

int template_list_add(struct template_list *l, uint64_t docs, struct span line, struct err *e)
{
    size_t room = line.n > l->room ? line.n : l->room;

    if (l->text.n + line.n + (l->n + 1) * sizeof *l->line > l->room)
        TRY(put_run(l, e));
    /* the lines' bytes stay where they are: there is room for all that come until the next run */
    if ((!l->n && buf_reserve(&l->text, room) < 0) || mem_grow(&l->line, &l->cap, l->n + 1, sizeof *l->line) < 0 ||
        buf_put_span(&l->text, line) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a list of lines");
    l->line[l->n++] = (struct template_line){docs, {l->text.p + l->text.n - line.n, line.n}};
    return 0;
}

int template_list_give(struct template_list *l, template_taker *take, void *to, struct err *e)
{
    struct template_run *run;
    int rc;

    TRY(put_run(l, e));
    TRY(spill_flush(&l->runs, e));
    buf_free(&l->text);
    run = calloc(l->n_runs + 1, sizeof *run);
    if (!run)
        return err_set(e, ERR_NOMEM, "out of memory for a list of lines");
    for (size_t i = 0; i < l->n_runs; i++)
        run[i] = (struct template_run){&l->runs, i ? l->end[i - 1] : 0, l->end[i]};
    rc = template_merge(run, l->n_runs, (int64_t)l->room, take, to, e);
    free(run);
    return rc;
}
