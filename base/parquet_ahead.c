#include "base/parquet_ahead.h"

#include <pthread.h>
#include <stdlib.h>

struct made {
    struct parquet_block block;
    struct made *next;
};

/* A row group: its blocks that have been made and not been taken. */
struct slot {
    struct made *first, **last;
    size_t bytes;
    bool busy, ended; /* a thread is in it; all of it is made */
    bool no_memory;   /* but for what there was no memory for */
};

struct parquet_ahead {
    struct parquet_reader reader[PARQUET_AHEAD_THREADS];
    pthread_t thread[PARQUET_AHEAD_THREADS];
    int n_readers, n_threads, begun; /* begun: threads that have taken a reader */
    size_t n_groups;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    /* Under the lock: group g is made in slot g % n_slots. */
    struct slot slot[PARQUET_AHEAD_THREADS + 1];
    size_t n_slots, bytes_each;
    size_t current, next; /* the group that is taken from; the first that no thread has begun */
    struct made *spare;   /* blocks whose memory is used again */
    bool stop;
};

void parquet_block_make(struct parquet_block *b, struct parquet_reader *r)
{
    int rc = 1;

    buf_clear(&b->lines);
    if (b->lines.cap > 16 * (size_t)PARQUET_BLOCK) /* one long row: give it back */
        buf_free(&b->lines);
    b->lines.max = PARQUET_ROW_MAX;
    while (rc == 1 && b->lines.n < PARQUET_BLOCK)
        rc = parquet_reader_row(r, &b->lines, &b->why);
    b->why.code = rc < 0 ? rc : 0;
    b->row = r->row;
}

/* ---- threads ---- */

/* Waits for a group to make: false, there is none. */
static bool take_group(struct parquet_ahead *a, size_t *g)
{
    bool some;

    pthread_mutex_lock(&a->lock);
    while (!a->stop && a->next < a->n_groups && (a->next >= a->current + a->n_slots || a->slot[a->next % a->n_slots].busy))
        pthread_cond_wait(&a->turn, &a->lock);
    some = !a->stop && a->next < a->n_groups;
    if (some) {
        struct slot *s = &a->slot[a->next % a->n_slots];

        *g = a->next++;
        *s = (struct slot){.last = &s->first, .busy = true};
    }
    pthread_mutex_unlock(&a->lock);
    return some;
}

/* Puts a block where it is taken from, when there is room.  False: the group is not wanted any more. */
static bool put_block(struct parquet_ahead *a, size_t g, struct made *m)
{
    struct slot *s = &a->slot[g % a->n_slots];
    bool wanted;

    pthread_mutex_lock(&a->lock);
    while (!a->stop && g >= a->current && s->bytes >= a->bytes_each)
        pthread_cond_wait(&a->turn, &a->lock);
    wanted = !a->stop && g >= a->current;
    if (wanted) {
        *s->last = m;
        s->last = &m->next;
        s->bytes += m->block.lines.n;
    }
    pthread_cond_broadcast(&a->turn);
    pthread_mutex_unlock(&a->lock);
    return wanted;
}

static void free_made(struct made *m)
{
    if (m)
        buf_free(&m->block.lines);
    free(m);
}

/* An empty block; NULL: out of memory. */
static struct made *new_made(struct parquet_ahead *a)
{
    struct made *m;

    pthread_mutex_lock(&a->lock);
    m = a->spare;
    if (m)
        a->spare = m->next;
    pthread_mutex_unlock(&a->lock);
    if (m)
        m->next = NULL;
    return m ? m : calloc(1, sizeof *m);
}

/* Makes the blocks of a group.  False: out of memory. */
static bool make_group(struct parquet_ahead *a, struct parquet_reader *r, size_t g)
{
    bool more = true;

    r->group = g;
    parquet_reader_start(r);
    while (more) {
        struct made *m = new_made(a);

        if (!m)
            return false;
        parquet_block_make(&m->block, r);
        more = m->block.lines.n >= PARQUET_BLOCK && m->block.why.code == 0;
        if (!put_block(a, g, m)) {
            free_made(m);
            return true;
        }
    }
    return true;
}

static void *work(void *ahead)
{
    struct parquet_ahead *a = ahead;
    struct parquet_reader *r = &a->reader[__atomic_fetch_add(&a->begun, 1, __ATOMIC_RELAXED)];
    size_t g;

    while (take_group(a, &g)) {
        bool fine = make_group(a, r, g);

        pthread_mutex_lock(&a->lock);
        a->slot[g % a->n_slots].busy = false;
        a->slot[g % a->n_slots].ended = true;
        a->slot[g % a->n_slots].no_memory = !fine;
        pthread_cond_broadcast(&a->turn);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

/* ---- who reads ---- */

/* Leaves out what is left of a group. */
static void clear(struct slot *s)
{
    while (s->first) {
        struct made *m = s->first;

        s->first = m->next;
        free_made(m);
    }
    s->last = &s->first;
    s->bytes = 0;
}

int parquet_ahead_next(struct parquet_ahead *a, struct parquet_block *b)
{
    struct slot *s = &a->slot[a->current % a->n_slots];
    bool no_memory = false;
    struct made *m;

    buf_clear(&b->lines);
    pthread_mutex_lock(&a->lock);
    while (a->next <= a->current || (!s->first && !s->ended))
        pthread_cond_wait(&a->turn, &a->lock);
    m = s->first;
    if (m) {
        struct parquet_block old = *b;

        s->first = m->next;
        s->last = s->first ? s->last : &s->first;
        s->bytes -= m->block.lines.n;
        *b = m->block;
        m->block = old;
        m->next = a->spare;
        a->spare = m;
        pthread_cond_broadcast(&a->turn);
    } else {
        no_memory = s->no_memory;
        s->no_memory = false;
    }
    pthread_mutex_unlock(&a->lock);
    if (no_memory)
        err_set(&b->why, ERR_NOMEM, "out of memory for rows");
    return m || no_memory;
}

void parquet_ahead_turn(struct parquet_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (a->next > a->current)
        clear(&a->slot[a->current % a->n_slots]);
    a->current++;
    pthread_cond_broadcast(&a->turn);
    pthread_mutex_unlock(&a->lock);
}

/* Starts threads: false, there is none. */
static bool start(struct parquet_ahead *a)
{
    while (a->n_threads < a->n_readers && pthread_create(&a->thread[a->n_threads], NULL, work, a) == 0)
        a->n_threads++;
    return a->n_threads > 0;
}

int parquet_ahead_open(struct parquet_ahead **out, const struct parquet_reader *r, size_t first, int n, struct err *e)
{
    struct parquet_ahead *a = calloc(1, sizeof *a);
    int rc = 0;

    *out = NULL;
    if (!a)
        return err_set(e, ERR_NOMEM, "out of memory for rows");
    n = n < PARQUET_AHEAD_THREADS ? n : PARQUET_AHEAD_THREADS;
    a->n_slots = (size_t)n + 1;
    a->bytes_each = PARQUET_AHEAD_BYTES / a->n_slots;
    a->n_groups = r->meta->n_groups;
    a->current = a->next = first;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->turn, NULL);
    for (; rc == 0 && a->n_readers < n; a->n_readers++) {
        a->reader[a->n_readers].source = r->source;
        rc = parquet_reader_open_with(&a->reader[a->n_readers], r->meta, e);
    }
    if (rc == 0 && !start(a))
        rc = err_set(e, ERR_NOMEM, "out of memory for a thread");
    if (rc < 0) {
        parquet_ahead_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

void parquet_ahead_close(struct parquet_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->turn);
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < a->n_threads; i++)
        pthread_join(a->thread[i], NULL);
    for (size_t i = 0; i < a->n_slots; i++)
        clear(&a->slot[i]);
    while (a->spare) {
        struct made *m = a->spare;

        a->spare = m->next;
        free_made(m);
    }
    for (int i = 0; i < a->n_readers; i++)
        parquet_reader_close(&a->reader[i]);
    pthread_cond_destroy(&a->turn);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
