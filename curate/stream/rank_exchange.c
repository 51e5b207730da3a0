#include "curate/stream/rank_exchange.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "curate/stream/stage.h"

/* Bytes at a time from one rank to another, at least and at most; of RANK_RECORDs. */
enum { LEAST = 4096, MOST = 4 << 20 };

int rank_files_open(struct rank_files *f, const struct comm *c, const char *dir, int64_t memory, struct err *e)
{
    int64_t cap = memory / c->size;

    *f = (struct rank_files){calloc((size_t)c->size, sizeof *f->file), c->size};
    if (!f->file)
        return err_set(e, ERR_NOMEM, "out of memory for %d ranks", c->size);
    for (int r = 0; r < f->n; r++)
        f->file[r].fd = -1;
    cap = cap < 4096 ? 4096 : cap > 1 << 18 ? 1 << 18 : cap;
    for (int r = 0; r < f->n; r++)
        TRY(spill_open_small(&f->file[r], dir, (size_t)cap, e));
    return 0;
}

int rank_files_flush(struct rank_files *f, struct err *e)
{
    for (int r = 0; r < f->n; r++)
        TRY(spill_flush(&f->file[r], e));
    return 0;
}

void rank_files_close(struct rank_files *f)
{
    for (int r = 0; r < f->n && f->file; r++)
        spill_close(&f->file[r]);
    free(f->file);
    *f = (struct rank_files){0};
}

/* ---- parcels ---- */

int parcel_put_note(struct spill *to, uint64_t number, struct span note, const struct spill_part *rest, struct err *e)
{
    struct parcel p = {number, note.n + (rest ? rest->n : 0)};

    TRY(spill_put(to, &p, sizeof p, e));
    TRY(spill_put(to, note.p, note.n, e));
    return rest ? spill_put_part(to, rest, e) : 0;
}

int parcel_put(struct spill *to, uint64_t number, struct span bytes, struct err *e)
{
    return parcel_put_note(to, number, bytes, NULL, e);
}

int parcel_note(struct parcels *p, const struct parcel *h, struct err *e)
{
    buf_clear(&p->note);
    if (buf_reserve(&p->note, h->n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a note of %" PRIu64 " bytes", h->n);
    p->note.n = h->n;
    return spill_next(&p->in, p->note.p, h->n, e);
}

int parcel_next(struct parcels *p, struct parcel *h, struct err *e)
{
    TRY(spill_next(&p->in, h, sizeof *h, e));
    return parcel_note(p, h, e);
}

int parcel_head(struct parcels *p, struct spill *file, const struct parcel *h, struct spill_part *rest, struct err *e)
{
    struct parcel head = {h->number, NOTE_HEAD};

    *rest = (struct spill_part){0};
    if (h->n < NOTE_LONG)
        return parcel_note(p, h, e);
    TRY(parcel_note(p, &head, e));
    *rest = (struct spill_part){file, 0, h->n - NOTE_HEAD};
    rest->at = spill_skip(&p->in, rest->n);
    return 0;
}

void parcels_close(struct parcels *p)
{
    spill_reader_close(&p->in);
    buf_free(&p->note);
}

/* ---- rounds ---- */

/* What a rank tells each other one before a round. */
struct announcement {
    int64_t bytes; /* for that one, now */
    int64_t more;  /* after this round there is more, for whomever */
};

struct exchange {
    struct comm *c;
    struct rank_files *out;
    size_t cap;
    uint64_t *at; /* in each file */
    struct announcement *mine, *theirs;
    size_t *send_n, *recv_n;
    char *send, *recv;
};

static int exchange_open(struct exchange *x, int64_t memory, struct err *e)
{
    size_t n = (size_t)x->c->size, cap = (size_t)memory / 2 / n;

    x->cap = (cap < LEAST ? LEAST : cap > MOST ? MOST : cap) / RANK_RECORD * RANK_RECORD;
    x->at = calloc(n, sizeof *x->at);
    x->mine = calloc(n, sizeof *x->mine);
    x->theirs = calloc(n, sizeof *x->theirs);
    x->send_n = calloc(n, sizeof *x->send_n);
    x->recv_n = calloc(n, sizeof *x->recv_n);
    x->send = malloc(n * x->cap);
    x->recv = malloc(n * x->cap);
    if (!x->at || !x->mine || !x->theirs || !x->send_n || !x->recv_n || !x->send || !x->recv)
        return err_set(e, ERR_NOMEM, "out of memory for an exchange among %zu ranks", n);
    return 0;
}

static void exchange_close(struct exchange *x)
{
    free(x->at);
    free(x->mine);
    free(x->theirs);
    free(x->send_n);
    free(x->recv_n);
    free(x->send);
    free(x->recv);
}

static int load(struct exchange *x, uint64_t *sent, struct err *e)
{
    bool more = false;
    size_t at = 0;

    for (int r = 0; r < x->c->size; r++) {
        uint64_t left = x->out->file[r].size - x->at[r];
        size_t n = left < x->cap ? (size_t)left : x->cap;

        if (n)
            TRY(spill_read(&x->out->file[r], x->at[r], x->send + at, n, e));
        x->at[r] += n;
        at += n;
        more |= x->at[r] < x->out->file[r].size;
        x->send_n[r] = n;
        x->mine[r].bytes = (int64_t)n;
        *sent += r == x->c->rank ? 0 : n;
    }
    for (int r = 0; r < x->c->size; r++)
        x->mine[r].more = more;
    return 0;
}

/* *more: for any rank. */
static int one_round(struct exchange *x, rank_taker *take, void *to, uint64_t *sent, bool *more, struct err *e)
{
    struct comm_call told = {.kind = COMM_ALL_TO_ALL, .send = x->mine, .recv = x->theirs, .n = 2, .type = COMM_I64};
    struct comm_call call = {.kind = COMM_ALL_TO_ALL_V, .send = x->send, .recv = x->recv, .type = COMM_U8,
                             .send_counts = x->send_n, .recv_counts = x->recv_n};
    const char *p = x->recv;

    TRY(load(x, sent, e));
    TRY(comm_run(x->c, &told, e));
    *more = false;
    for (int r = 0; r < x->c->size; r++) {
        x->recv_n[r] = (size_t)x->theirs[r].bytes;
        *more |= x->theirs[r].more != 0;
    }
    TRY(comm_run(x->c, &call, e));
    for (int r = 0; r < x->c->size; p += x->recv_n[r++])
        if (x->recv_n[r])
            TRY(take(to, r, (struct span){p, x->recv_n[r]}, e));
    return 0;
}

int rank_exchange(struct comm *c, struct rank_files *out, int64_t memory, rank_taker *take, void *to, uint64_t *sent,
                  struct err *e)
{
    struct exchange x = {.c = c, .out = out};
    bool more = true;
    int rc = exchange_open(&x, memory, e);

    while (rc == 0 && more)
        rc = one_round(&x, take, to, sent, &more, e);
    exchange_close(&x);
    rank_files_close(out);
    return rc;
}

static int take_file(void *to, int from, struct span bytes, struct err *e)
{
    struct rank_files *f = to;

    return spill_put(&f->file[from], bytes.p, bytes.n, e);
}

int rank_exchange_files(struct comm *c, struct rank_files *out, struct rank_files *in, int64_t memory, uint64_t *sent,
                        struct err *e)
{
    TRY(rank_exchange(c, out, memory, take_file, in, sent, e));
    return rank_files_flush(in, e);
}

int rank_meet(struct comm *c, struct err *e)
{
    double timeout = c->timeout;
    int rc;

    c->timeout = INFINITY;
    rc = comm_barrier(c, e);
    c->timeout = timeout;
    return rc;
}

int rank_any(struct comm *c, bool *any, struct err *e)
{
    int32_t v = *any;

    TRY(comm_all_reduce(c, &v, 1, COMM_I32, COMM_MAX, e));
    *any = v != 0;
    return 0;
}
