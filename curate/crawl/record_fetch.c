#include "curate/crawl/record_fetch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/http.h"
#include "curate/crawl/crawl_places.h"

enum {
    RUN_BYTES = 4 << 20, /* of records that are read together */
    GAP_PART = 25,       /* a part of that which may lie between them */
    HEAD_BYTES = 1024,   /* of an archive that are read to learn its dump */
    SLOTS_EACH = 2
};

/* Records that are read together, one slot's work. */
struct record_run {
    size_t first, n; /* in the list */
    uint64_t at;     /* where in its file bytes begin */
    struct buf bytes;
    bool done;
    struct err why;  /* code < 0: it could not be read */
    char *path;
    struct buf head;  /* the archive's beginning, where the list does not say its dump */
};

struct record_fetch {
    const struct record_list *list;
    struct record_fetch_conf conf;
    const char *folder;
    bool remote;
    uint64_t max;
    struct range_in_pace pace;

    pthread_t *thread;
    int n_threads;
    struct record_run *slot;
    size_t n_slots;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    /* Under the lock: */
    size_t taken;       /* records that are in runs */
    uint64_t runs;      /* begun */
    uint64_t read;      /* that the reader is done with */
    bool stop;
    struct record_fetch_counts counts;
    /* The reader's: */
    struct record_run *run;
    size_t at; /* in it */
};

void record_fetch_conf_init(struct record_fetch_conf *c)
{
    *c = (struct record_fetch_conf){.connections = 4};
}

/* ---- runs ---- */

/* How many records from `first` on are read together. */
static size_t run_length(const struct record_fetch *f, size_t first)
{
    const struct record_entry *v = f->list->v + first, *end = f->list->v + f->list->n, *r = v;
    uint64_t wanted = r->length, gaps = 0;

    if (v->length > f->max)
        return 1;
    while (++r < end) {
        uint64_t behind = r[-1].offset + r[-1].length;

        if (r->file != v->file || r->length > f->max || r->offset < behind || r->offset - behind > RUN_BYTES)
            break;
        gaps += r->offset - behind;
        wanted += r->length;
        if (gaps > wanted / GAP_PART || wanted + gaps > RUN_BYTES)
            break;
    }
    return (size_t)(r - v);
}

/* Takes the file of a run in hand. */
static int turn_to(const struct record_fetch *f, struct range_in *r, struct record_run *run, uint32_t *in_hand, struct err *e)
{
    uint32_t file = f->list->v[run->first].file;
    const char *name = f->list->file[file];
    bool whole = f->conf.trust && (name[0] == '/' || http_is_address(name));

    run->path = whole ? strdup(name) : crawl_join(f->folder, name);
    if (!run->path)
        return err_set(e, ERR_NOMEM, "out of memory for a record");
    if (*in_hand == file)
        return 0;
    *in_hand = UINT32_MAX;
    TRY(f->remote || f->conf.trust ? range_in_turn(r, run->path, e) : range_in_turn_beneath(r, f->folder, name, e));
    *in_hand = file;
    return 0;
}

/* Reads n bytes from `at` on, fewer where the file ends before. */
static int read_some(struct range_in *r, uint64_t at, uint64_t n, struct buf *b, struct err *e)
{
    int64_t k;

    if (buf_reserve(b, (size_t)n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a record");
    TRY(range_in_ask(r, at, n, e));
    while ((k = range_in_next(r, b->p + b->n, (size_t)n - b->n, e)) > 0)
        b->n += (size_t)k;
    return (int)(k < 0 ? k : 0);
}

/* Reads a run's bytes, and with the first of a file the beginning of that if it is of use. */
static int read_run(const struct record_fetch *f, struct range_in *r, struct record_run *run, struct err *e)
{
    const struct record_entry *v = f->list->v + run->first, *last = v + run->n - 1;
    bool first = run->first == 0 || v[-1].file != v->file;

    if (first && !f->list->dump[v->file])
        TRY(read_some(r, 0, HEAD_BYTES, &run->head, e));
    run->at = v->offset;
    return v->length > f->max ? 0 : read_some(r, v->offset, last->offset + last->length - v->offset, &run->bytes, e);
}

/* Takes the next run, when a slot is free: false, there is none. */
static struct record_run *take_run(struct record_fetch *f)
{
    struct record_run *run = NULL;

    pthread_mutex_lock(&f->lock);
    while (!f->stop && f->taken < f->list->n && f->runs - f->read >= f->n_slots)
        pthread_cond_wait(&f->turn, &f->lock);
    if (!f->stop && f->taken < f->list->n) {
        run = &f->slot[f->runs++ % f->n_slots];
        run->first = f->taken;
        run->n = run_length(f, f->taken);
        f->taken += run->n;
        buf_clear(&run->bytes);
        buf_clear(&run->head);
        free(run->path);
        run->path = NULL;
        run->why.code = 0;
    }
    pthread_mutex_unlock(&f->lock);
    return run;
}

static void *work(void *fetch)
{
    struct record_fetch *f = fetch;
    uint64_t bytes = 0, requests = 0;
    uint32_t in_hand = UINT32_MAX;
    struct record_run *run;
    struct range_in *r;
    struct err e = {0};
    int rc = range_in_new(&r, &f->pace, &e);

    while ((run = take_run(f))) {
        if (rc == 0)
            rc = turn_to(f, r, run, &in_hand, &e);
        if (rc == 0)
            rc = read_run(f, r, run, &e);
        pthread_mutex_lock(&f->lock);
        if (rc < 0) {
            run->why = e;
            run->why.code = rc;
        }
        if (r) {
            f->counts.fetched_bytes += range_in_bytes(r) - bytes;
            f->counts.requests += range_in_requests(r) - requests;
            bytes = range_in_bytes(r);
            requests = range_in_requests(r);
        }
        run->done = true;
        pthread_cond_broadcast(&f->turn);
        pthread_mutex_unlock(&f->lock);
    }
    range_in_free(r);
    return NULL;
}

/* ---- the reader ---- */

/* Waits for the next run: false, there is none. */
static bool next_run(struct record_fetch *f)
{
    pthread_mutex_lock(&f->lock);
    if (f->run) {
        f->run->done = false;
        f->run = NULL;
        f->read++;
        pthread_cond_broadcast(&f->turn);
    }
    if (f->taken < f->list->n || f->read < f->runs) {
        f->run = &f->slot[f->read % f->n_slots];
        while (!f->run->done)
            pthread_cond_wait(&f->turn, &f->lock);
        f->at = 0;
    }
    pthread_mutex_unlock(&f->lock);
    return f->run != NULL;
}

int record_fetch_next(struct record_fetch *f, struct record_bytes *b, struct err *e)
{
    const struct record_entry *r;
    uint64_t from;

    if ((!f->run || f->at == f->run->n) && !next_run(f))
        return 0;
    r = &f->list->v[f->run->first + f->at];
    *b = (struct record_bytes){.entry = r, .path = f->run->path ? f->run->path : "", .dump = f->list->dump[r->file],
                               .head = f->at == 0 ? buf_span(&f->run->head) : (struct span){NULL, 0}};
    if (f->run->why.code) {
        *e = f->run->why;
        return e->code;
    }
    f->at++;
    f->counts.records++;
    f->counts.bytes += r->length;
    if (r->length > f->max)
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": a record of %" PRIu64 " bytes is longer than %" PRIu64, b->path,
                       r->offset, r->length, f->max);
    from = r->offset - f->run->at;
    if (from + r->length > f->run->bytes.n)
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": the file ends before the %" PRIu64 " bytes that the list names",
                       b->path, r->offset, r->length);
    b->bytes = (struct span){f->run->bytes.p + from, (size_t)r->length};
    return 1;
}

void record_fetch_count(const struct record_fetch *f, struct record_fetch_counts *n)
{
    pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&f->lock);
    *n = f->counts;
    pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&f->lock);
}

/* ---- the whole ---- */

static int start_threads(struct record_fetch *f, struct err *e)
{
    size_t n = f->conf.connections < (int64_t)f->list->n ? (size_t)f->conf.connections : f->list->n;

    f->thread = calloc(n + 1, sizeof *f->thread);
    f->slot = calloc(SLOTS_EACH * n + 1, sizeof *f->slot);
    f->n_slots = SLOTS_EACH * n;
    if (!f->thread || !f->slot)
        return err_set(e, ERR_NOMEM, "out of memory for connections");
    while (f->n_threads < (int)n) {
        int rc = pthread_create(&f->thread[f->n_threads], NULL, work, f);

        if (rc != 0 && f->n_threads == 0)
            return err_set(e, ERR_NOMEM, "out of memory for a thread");
        if (rc != 0)
            break;
        f->n_threads++;
    }
    return 0;
}

int record_fetch_open(struct record_fetch **out, const struct record_list *l, const struct record_fetch_conf *c,
                      const char *folder, uint64_t max, struct err *e)
{
    struct record_fetch *f = calloc(1, sizeof *f);
    int rc;

    *out = NULL;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory for a list");
    f->list = l;
    f->conf = *c;
    f->folder = c->prefix ? c->prefix : folder;
    f->remote = http_is_address(f->folder);
    f->max = max;
    range_in_pace_start(&f->pace, (double)c->max_rate, c->max_requests);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->turn, NULL);
    rc = start_threads(f, e);
    if (rc < 0)
        record_fetch_close(f);
    else
        *out = f;
    return rc;
}

void record_fetch_close(struct record_fetch *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->turn);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_threads; i++)
        pthread_join(f->thread[i], NULL);
    for (size_t i = 0; f->slot && i < f->n_slots; i++) {
        buf_free(&f->slot[i].bytes);
        buf_free(&f->slot[i].head);
        free(f->slot[i].path);
    }
    pthread_cond_destroy(&f->turn);
    pthread_mutex_destroy(&f->lock);
    free(f->thread);
    free(f->slot);
    free(f);
}
