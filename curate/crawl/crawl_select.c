#include "curate/crawl/crawl_select.h"

#include <stdlib.h>

#include "base/pool.h"

enum {
    HELD = 4 << 20,   /* bytes of a list that a thread keeps while those before it are not done */
    HELD_BAD = 16     /* bad entries, likewise */
};

struct selection {
    struct crawl_index *index;
    const struct crawl_sink *sink;
    struct gate take, give;
    uint64_t tickets;
    struct crawl_counts n; /* of what has been given */
    uint64_t range_bytes, range_requests;
    struct err e; /* code below 0: it ended early */
};

/* A thread, and what it has of its piece. */
struct worker {
    struct selection *s;
    struct crawl_reader *reader;
    struct crawl_piece piece;
    uint64_t ticket;
    bool in_turn; /* it is through the gate behind which lists are given */
    struct crawl_index_counts taken; /* as its piece was */
    struct buf lines;
    struct err bad[HELD_BAD];
    int n_bad;
    uint64_t records, record_bytes;
    struct crawl_piece_counts told;  /* of the reader, so far */
    uint64_t told_bytes, told_requests;
};

/* ---- giving ---- */

/* Ends all: the first error in order is the one that counts. */
static int fail(struct worker *w, const struct err *e)
{
    w->s->e = *e;
    gate_stop(&w->s->take);
    gate_stop(&w->s->give);
    return e->code;
}

static void add_counts(struct worker *w)
{
    struct crawl_piece_counts n;
    struct crawl_counts *all = &w->s->n;

    crawl_reader_count(w->reader, &n);
    all->entries += n.entries - w->told.entries;
    all->members += n.members - w->told.members;
    w->told = n;
    w->s->range_bytes += crawl_reader_bytes(w->reader) - w->told_bytes;
    w->s->range_requests += crawl_reader_requests(w->reader) - w->told_requests;
    w->told_bytes = crawl_reader_bytes(w->reader);
    w->told_requests = crawl_reader_requests(w->reader);
    all->index = w->taken;
    all->index.bytes += w->s->range_bytes;
    all->index.requests += w->s->range_requests;
    all->records += w->records;
    all->record_bytes += w->record_bytes;
    all->bad += (uint64_t)w->n_bad;
}

/* Gives what the thread holds, in its turn. */
static int give(struct worker *w)
{
    const struct crawl_sink *k = w->s->sink;
    struct err e;

    if (!w->in_turn)
        TRY(gate_enter(&w->s->give, w->ticket));
    w->in_turn = true;
    for (int i = 0; i < w->n_bad; i++)
        k->bad(k->arg, &w->bad[i]);
    add_counts(w);
    if (w->lines.n && k->put(k->arg, buf_span(&w->lines), &e) < 0)
        return fail(w, &e);
    k->show(k->arg, &w->s->n, w->piece.name);
    buf_clear(&w->lines);
    w->n_bad = 0;
    w->records = w->record_bytes = 0;
    return 0;
}

/* Keeps a bad entry; ends all by another error, in its turn. */
static int take_error(struct worker *w, const struct err *e)
{
    if (e->code != ERR_FORMAT && e->code != ERR_LIMIT) {
        TRY(give(w));
        return fail(w, e);
    }
    w->bad[w->n_bad++] = *e;
    return w->n_bad == HELD_BAD ? give(w) : 0;
}

/* ---- a piece ---- */

static int take_entry(struct worker *w, struct crawl_entry *entry)
{
    if (crawl_entry_put(entry, &w->lines) < 0)
        return take_error(w, &(struct err){ERR_NOMEM, "out of memory for a line"});
    w->records++;
    w->record_bytes += entry->length;
    return w->lines.n >= HELD ? give(w) : 0;
}

static int read_piece(struct worker *w)
{
    struct crawl_entry *entry;
    struct err e;
    int rc = crawl_reader_begin(w->reader, &w->piece, &e);

    if (rc < 0)
        return take_error(w, &e);
    while ((rc = crawl_reader_next(w->reader, &entry, &e)) != 0)
        TRY(rc < 0 ? take_error(w, &e) : take_entry(w, entry));
    return 0;
}

/* Takes the next piece, reads it, and gives what it has: 1; 0: there is none, which gives the counts of the end. */
static int work_once(struct worker *w)
{
    struct selection *s = w->s;
    struct err e = {.code = 0};
    int got, rc = 0;

    w->ticket = __atomic_fetch_add(&s->tickets, 1, __ATOMIC_RELAXED);
    TRY(gate_enter(&s->take, w->ticket));
    got = crawl_index_next(s->index, &w->piece, &e);
    crawl_index_count(s->index, &w->taken);
    if (got == 0)
        gate_stop(&s->take);
    else
        gate_leave(&s->take);
    if (got > 0)
        rc = read_piece(w);
    else if (got < 0)
        rc = take_error(w, &e);
    if (rc == 0 && w->piece.why.code < 0)
        rc = take_error(w, &w->piece.why);
    TRY(rc);
    TRY(give(w));
    w->in_turn = false;
    gate_leave(&s->give);
    return got != 0;
}

static void work(void *workers, int thread)
{
    struct worker *w = (struct worker *)workers + thread;

    while (work_once(w) == 1)
        ;
}

/* ---- the whole ---- */

static void free_workers(struct worker *w, int n)
{
    for (int i = 0; w && i < n; i++) {
        crawl_reader_free(w[i].reader);
        crawl_piece_free(&w[i].piece);
        buf_free(&w[i].lines);
    }
    free(w);
}

int crawl_select(struct crawl_index *x, const struct crawl_index_conf *c, int threads, const struct crawl_sink *sink,
                 struct crawl_counts *n, struct err *e)
{
    struct selection s = {.index = x, .sink = sink};
    struct worker *w = calloc((size_t)threads, sizeof *w);
    int rc = w ? 0 : err_set(e, ERR_NOMEM, "out of memory for threads");

    for (int i = 0; rc == 0 && i < threads; i++) {
        w[i].s = &s;
        rc = crawl_reader_new(&w[i].reader, c->where, c->pace, e);
    }
    gate_init(&s.take);
    gate_init(&s.give);
    if (rc == 0) {
        struct err fewer;

        pool_run(threads, work, w, &fewer); /* with fewer threads it is as well */
        *n = s.n;
        *e = s.e;
        rc = s.e.code;
    }
    gate_destroy(&s.take);
    gate_destroy(&s.give);
    free_workers(w, threads);
    return rc;
}
