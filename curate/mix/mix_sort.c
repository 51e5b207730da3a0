#include "curate/mix/mix_sort.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/pool.h"
#include "base/spill.h"

enum { BUCKETS = 256, LEAST_BUFFER = 8 << 10, MOST_BUFFER = 1 << 20, LAST_LEVEL = 7 };

/* Some records of a bucket: on disk, or still in memory. */
struct frame {
    uint64_t at;
    size_t packed, raw; /* packed 0: in memory */
    char *bytes;
};
struct bucket {
    struct frame *frame;
    size_t n, cap;
    uint64_t raw;
};

struct lane {
    struct buf buf[BUCKETS];
    struct buf packed;
    ZSTD_CCtx *zstd;
};

struct mix_sort {
    const char *dir;
    uint64_t memory;
    int jobs, level;
    bool compress;
    size_t buffer;
    struct spill spill; /* opened when it is needed */
    uint64_t size;
    struct bucket bucket[BUCKETS];
    struct lane *lane;
    pthread_mutex_t lock;
    /* While records are given out. */
    struct gate gate;
    uint64_t ticket;
    int (*each)(void *arg, const struct mix_record *r, struct span line, struct err *e);
    void *arg;
    int failed;
    struct err e;
};

int mix_sort_open(struct mix_sort **out, const char *dir, uint64_t memory, int jobs, bool compress, struct err *e)
{
    struct mix_sort *s = calloc(1, sizeof *s);
    uint64_t buffer = memory / 2 / (uint64_t)jobs / BUCKETS;

    *out = s;
    if (s)
        s->lane = calloc((size_t)jobs, sizeof *s->lane);
    if (!s || !s->lane) {
        free(s);
        *out = NULL;
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    s->dir = dir;
    s->memory = memory;
    s->jobs = jobs;
    s->compress = compress;
    s->buffer = buffer < LEAST_BUFFER ? LEAST_BUFFER : buffer > MOST_BUFFER ? MOST_BUFFER : (size_t)buffer;
    s->spill.fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    gate_init(&s->gate);
    return 0;
}

void mix_sort_close(struct mix_sort *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->jobs; i++) {
        for (int b = 0; b < BUCKETS; b++)
            buf_free(&s->lane[i].buf[b]);
        buf_free(&s->lane[i].packed);
        ZSTD_freeCCtx(s->lane[i].zstd);
    }
    for (int b = 0; b < BUCKETS; b++) {
        for (size_t i = 0; i < s->bucket[b].n; i++)
            free(s->bucket[b].frame[i].bytes);
        free(s->bucket[b].frame);
    }
    spill_close(&s->spill);
    gate_destroy(&s->gate);
    pthread_mutex_destroy(&s->lock);
    free(s->lane);
    free(s);
}

uint64_t mix_sort_spilled(const struct mix_sort *s)
{
    return s->size;
}

/* ---- in ---- */

static int add_frame(struct mix_sort *s, int b, const struct frame *f)
{
    struct bucket *k = &s->bucket[b];

    TRY(mem_grow(&k->frame, &k->cap, k->n + 1, sizeof *k->frame));
    k->frame[k->n++] = *f;
    k->raw += f->raw;
    return 0;
}

static int pack(struct lane *l, const struct buf *from, struct err *e)
{
    size_t bound = ZSTD_compressBound(from->n), n;

    if (!l->zstd)
        l->zstd = ZSTD_createCCtx();
    buf_clear(&l->packed);
    if (!l->zstd || buf_reserve(&l->packed, bound) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to compress");
    n = ZSTD_compressCCtx(l->zstd, l->packed.p, bound, from->p, from->n, 1);
    if (ZSTD_isError(n))
        return err_set(e, ERR_NOMEM, "cannot compress: %s", ZSTD_getErrorName(n));
    l->packed.n = n;
    return 0;
}

/* A place in the file for what a lane has of a bucket. */
static int reserve(struct mix_sort *s, int b, struct frame *f, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->spill.fd < 0)
        rc = spill_open(&s->spill, s->dir, 1, e);
    f->at = s->size;
    if (rc == 0 && add_frame(s, b, f) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for the places of documents");
    s->size += f->packed;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int flush_buffer(struct mix_sort *s, struct lane *l, int b, struct err *e)
{
    const struct buf *from = &l->buf[b];
    struct frame f = {.raw = from->n};

    if (s->compress) {
        TRY(pack(l, from, e));
        from = &l->packed;
    }
    f.packed = from->n;
    TRY(reserve(s, b, &f, e));
    TRY(spill_write(&s->spill, f.at, from->p, from->n, e));
    if (l->buf[b].cap > 2 * s->buffer)
        buf_free(&l->buf[b]);
    buf_clear(&l->buf[b]);
    return 0;
}

int mix_sort_put(struct mix_sort *s, int thread, const struct mix_record *r, const char *line, struct err *e)
{
    struct lane *l = &s->lane[thread];
    int b = (int)(r->key >> (56 - 8 * s->level) & 255);
    struct buf *to = &l->buf[b];

    if (to->n && to->n + sizeof *r + r->n > s->buffer)
        TRY(flush_buffer(s, l, b, e));
    if ((!to->cap && buf_reserve(to, s->buffer) < 0) || buf_put(to, r, sizeof *r) < 0 || buf_put(to, line, r->n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a document of %llu bytes; less --memory sends more by the disk",
                       (unsigned long long)r->n);
    return 0;
}

/* What is in the lanes' buffers stays in memory. */
static int gather(struct mix_sort *s, struct err *e)
{
    for (int i = 0; i < s->jobs; i++)
        for (int b = 0; b < BUCKETS; b++) {
            struct buf *from = &s->lane[i].buf[b];
            struct frame f = {.raw = from->n, .bytes = from->p};
            if (from->n && add_frame(s, b, &f) < 0)
                return err_set(e, ERR_NOMEM, "out of memory for the places of documents");
            if (!from->n)
                buf_free(from);
            *from = (struct buf){0};
        }
    return 0;
}

/* ---- out ---- */

/* Appends the records of a frame. */
static int read_frame(const struct mix_sort *s, struct frame *f, struct buf *packed, struct buf *out, struct err *e)
{
    size_t n;

    if (buf_reserve(out, f->raw) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu bytes of documents", f->raw);
    if (!f->packed) {
        memcpy(out->p + out->n, f->bytes, f->raw);
        free(f->bytes);
        f->bytes = NULL;
    } else if (!s->compress) {
        TRY(spill_read(&s->spill, f->at, out->p + out->n, f->raw, e));
    } else {
        buf_clear(packed);
        if (buf_reserve(packed, f->packed) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for %zu bytes of documents", f->packed);
        TRY(spill_read(&s->spill, f->at, packed->p, f->packed, e));
        n = ZSTD_decompress(out->p + out->n, f->raw, packed->p, f->packed);
        if (n != f->raw)
            return err_set(e, ERR_IO, "the temporary file does not hold what was written to it");
    }
    out->n += f->raw;
    return 0;
}

static struct mix_record record_at(const char *p)
{
    struct mix_record r;

    memcpy(&r, p, sizeof r);
    return r;
}

static int by_key(const void *a, const void *b)
{
    struct mix_record x = record_at(*(const char *const *)a), y = record_at(*(const char *const *)b);

    if (x.key != y.key)
        return x.key < y.key ? -1 : 1;
    if (x.place != y.place)
        return x.place < y.place ? -1 : 1;
    return x.epoch < y.epoch ? -1 : x.epoch > y.epoch;
}

/* The records of a bucket in memory, in order: where they begin. */
struct loaded {
    struct buf bytes, packed;
    const char **at;
    size_t n, cap;
};

static void loaded_free(struct loaded *l)
{
    buf_free(&l->bytes);
    buf_free(&l->packed);
    free(l->at);
}

static int load(const struct mix_sort *s, struct bucket *k, struct loaded *l, struct err *e)
{
    buf_clear(&l->bytes);
    l->n = 0;
    if (buf_reserve(&l->bytes, k->raw) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %llu bytes of documents", (unsigned long long)k->raw);
    for (size_t i = 0; i < k->n; i++)
        TRY(read_frame(s, &k->frame[i], &l->packed, &l->bytes, e));
    for (size_t i = 0; i < l->bytes.n; i += sizeof(struct mix_record) + record_at(l->bytes.p + i).n) {
        if (mem_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for %zu documents", l->n + 1);
        l->at[l->n++] = l->bytes.p + i;
    }
    if (l->n)
        qsort(l->at, l->n, sizeof *l->at, by_key);
    return 0;
}

static int give(const struct mix_sort *s, const struct loaded *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        struct mix_record r = record_at(l->at[i]);
        TRY(s->each(s->arg, &r, (struct span){l->at[i] + sizeof r, r.n}, e));
    }
    return 0;
}

static uint64_t most(const struct mix_sort *s)
{
    return s->memory / 2 / (uint64_t)s->jobs;
}

static int give_all(struct mix_sort *s, struct err *e);

/* A bucket that does not fit is dealt again by the next byte, and its parts given. */
static int deal_again(struct mix_sort *s, struct bucket *k, struct err *e)
{
    struct mix_sort *t;
    struct buf packed = {0}, bytes = {0};
    int rc = mix_sort_open(&t, s->dir, most(s), 1, s->compress, e);

    if (rc < 0)
        return rc;
    t->level = s->level + 1;
    t->each = s->each;
    t->arg = s->arg;
    for (size_t i = 0; i < k->n && rc == 0; i++) {
        buf_clear(&bytes);
        rc = read_frame(s, &k->frame[i], &packed, &bytes, e);
        for (size_t at = 0; at < bytes.n && rc == 0;) {
            struct mix_record r = record_at(bytes.p + at);
            rc = mix_sort_put(t, 0, &r, bytes.p + at + sizeof r, e);
            at += sizeof r + r.n;
        }
    }
    buf_free(&packed);
    buf_free(&bytes);
    if (rc == 0)
        rc = gather(t, e);
    if (rc == 0)
        rc = give_all(t, e);
    mix_sort_close(t);
    return rc;
}

static bool fits(const struct mix_sort *s, const struct bucket *k)
{
    return k->raw <= most(s) || s->level == LAST_LEVEL;
}

/* One after the other, on this thread. */
static int give_all(struct mix_sort *s, struct err *e)
{
    struct loaded l = {0};
    int rc = 0;

    for (int b = 0; b < BUCKETS && rc == 0; b++) {
        struct bucket *k = &s->bucket[b];
        if (!fits(s, k)) {
            rc = deal_again(s, k, e);
            continue;
        }
        rc = load(s, k, &l, e);
        if (rc == 0)
            rc = give(s, &l, e);
    }
    loaded_free(&l);
    return rc;
}

/* Loads in parallel, gives in turn. */
static int give_bucket(struct mix_sort *s, uint64_t ticket, struct loaded *l, struct err *e)
{
    struct bucket *k = &s->bucket[ticket];
    bool fit = fits(s, k);

    if (fit)
        TRY(load(s, k, l, e));
    TRY(gate_enter(&s->gate, ticket));
    TRY(fit ? give(s, l, e) : deal_again(s, k, e));
    gate_leave(&s->gate);
    return 0;
}

static void give_thread(void *arg, int thread)
{
    struct mix_sort *s = arg;
    struct loaded l = {0};
    struct err e = {0};
    int rc = 0;

    (void)thread;
    for (uint64_t t; rc == 0 && (t = __atomic_fetch_add(&s->ticket, 1, __ATOMIC_RELAXED)) < BUCKETS;)
        rc = give_bucket(s, t, &l, &e);
    loaded_free(&l);
    if (rc == 0 || rc == ERR_STOPPED)
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->failed) {
        s->failed = rc;
        s->e = e;
    }
    pthread_mutex_unlock(&s->lock);
    gate_stop(&s->gate);
}

int mix_sort_each(struct mix_sort *s,
                  int (*each)(void *arg, const struct mix_record *r, struct span line, struct err *e), void *arg,
                  struct err *e)
{
    struct err unused;

    s->each = each;
    s->arg = arg;
    TRY(gather(s, e));
    pool_run(s->jobs, give_thread, s, &unused); /* fewer threads do it as well */
    if (s->failed && e)
        *e = s->e;
    return s->failed;
}
