#include "curate/dedup/dedup_exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/pool.h"
#include "curate/dedup/dedup_best.h"
#include "curate/dedup/dedup_ids.h"
#include "curate/dedup/dedup_normal.h"
#include "curate/stream/note_index.h"

/* ---- set ---- */

struct hash_slot {
    uint64_t lo, hi, value; /* value NO_VALUE: free */
};
struct hash_set {
    struct hash_slot *slot;
    size_t cap, count; /* cap is a power of two; at most three quarters are used */
};
#define NO_VALUE UINT64_MAX
enum { FIRST_CAP = 1024 };

static struct hash_slot *slots_new(size_t cap)
{
    struct hash_slot *s = malloc(cap * sizeof *s);

    for (size_t i = 0; s && i < cap; i++)
        s[i].value = NO_VALUE;
    return s;
}

struct hash_set *hash_set_new(void)
{
    struct hash_set *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->cap = FIRST_CAP;
    s->slot = slots_new(s->cap);
    if (!s->slot) {
        free(s);
        return NULL;
    }
    return s;
}

void hash_set_free(struct hash_set *s)
{
    if (s)
        free(s->slot);
    free(s);
}

size_t hash_set_count(const struct hash_set *s)
{
    return s->count;
}

/* The slot of the key, or the free one where it belongs. */
static struct hash_slot *slot_of(struct hash_slot *slot, size_t cap, uint64_t lo, uint64_t hi)
{
    size_t at = lo & (cap - 1);

    while (slot[at].value != NO_VALUE && (slot[at].lo != lo || slot[at].hi != hi))
        at = (at + 1) & (cap - 1);
    return &slot[at];
}

static int set_grow(struct hash_set *s)
{
    struct hash_slot *slot = s->cap <= SIZE_MAX / 2 / sizeof *slot ? slots_new(2 * s->cap) : NULL;

    if (!slot)
        return ERR_NOMEM;
    for (size_t i = 0; i < s->cap; i++)
        if (s->slot[i].value != NO_VALUE)
            *slot_of(slot, 2 * s->cap, s->slot[i].lo, s->slot[i].hi) = s->slot[i];
    free(s->slot);
    s->slot = slot;
    s->cap *= 2;
    return 0;
}

int hash_set_add(struct hash_set *s, uint64_t lo, uint64_t hi, uint64_t *value)
{
    struct hash_slot *at = slot_of(s->slot, s->cap, lo, hi);

    if (at->value != NO_VALUE) {
        *value = at->value;
        return 0;
    }
    if (s->count >= s->cap / 4 * 3) {
        TRY(set_grow(s));
        at = slot_of(s->slot, s->cap, lo, hi);
    }
    *at = (struct hash_slot){lo, hi, *value};
    s->count++;
    return 1;
}

/* ---- the stage ---- */

struct exact {
    struct dedup_exact_conf conf;
    char kind[64];         /* of indexes */
    uint64_t outside;      /* documents of --against, which come first */
    uint64_t distinct;     /* that stay */
    bool begun;            /* they have been read */
    /* answered as they come */
    struct hash_set *set;  /* text -> number of the document that stays */
    struct id_list ids;    /* of those that stay */
    /* or at the end */
    struct dedup_best *best;
};

struct note {
    struct hash128 key;
    uint64_t rank; /* by the rule of what stays; the higher stays */
};

struct worker {
    struct normal_scratch scratch;
    struct buf text;
};

static int exact_thread_open(void *stage, void **thread, struct err *e)
{
    (void)stage;
    *thread = calloc(1, sizeof(struct worker));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "out of memory for a thread");
}

static void exact_thread_close(void *stage, void *thread)
{
    struct worker *w = thread;

    (void)stage;
    normal_free(&w->scratch);
    buf_free(&w->text);
    free(w);
}

static int normalize(const struct exact *x, struct worker *w, struct span text, struct span *out, struct err *e)
{
    *out = text;
    buf_clear(&w->text);
    if (x->conf.normalize == NORMALIZE_SPACE && normal_space(text, &w->text) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
    if (x->conf.normalize == NORMALIZE_WORDS)
        TRY(normal_words(text, &w->scratch, &w->text, e));
    if (x->conf.normalize != NORMALIZE_NONE)
        *out = buf_span(&w->text);
    return 0;
}

/* The note: struct note, then the id. */
static int exact_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    const struct exact *x = stage;
    struct note *h = arena_alloc(d->arena, sizeof *h + d->id.n);
    struct span text;

    (void)v;
    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory for a hash");
    TRY(normalize(x, thread, d->text, &text, e));
    h->key = hash_xxh3_128(text);
    TRY(dedup_keep_rank(x->conf.keep, x->conf.by, d, &h->rank, e));
    memcpy(h + 1, d->id.p, d->id.n);
    *note = (struct span){(char *)h, sizeof *h + d->id.n};
    return 0;
}

/* ---- one after the other ---- */

static int parse_note(struct span note, struct note *h, struct span *id, struct err *e)
{
    if (note.n < sizeof *h)
        return err_set(e, ERR_IO, "a note of %zu bytes is none of exact duplicates", note.n);
    memcpy(h, note.p, sizeof *h);
    *id = (struct span){note.p + sizeof *h, note.n - sizeof *h};
    return 0;
}

int dedup_exact_note_key(struct span note, uint64_t *key, struct err *e)
{
    struct span id;
    struct note h;

    TRY(parse_note(note, &h, &id, e));
    *key = h.key.lo;
    return 0;
}

/* Adds to the set.  1: the text is new; 0: document *number has it. */
static int add_to_set(struct exact *x, const struct note *h, struct span id, uint64_t *number, struct err *e)
{
    int rc;

    *number = x->ids.n;
    rc = hash_set_add(x->set, h->key.lo, h->key.hi, number);
    if (rc == 1 && id_list_add(&x->ids, id) < 0)
        rc = ERR_NOMEM;
    return rc < 0 ? err_set(e, rc, "out of memory: %zu different texts so far", x->ids.n) : rc;
}

/* A document of --against. */
static int take_outside(void *to, struct span note, struct err *e)
{
    struct exact *x = to;
    struct span id;
    struct note h;
    uint64_t number;

    TRY(parse_note(note, &h, &id, e));
    x->outside++;
    if (x->best)
        return dedup_best_add(x->best, h.key, UINT64_MAX, id, e);
    return add_to_set(x, &h, id, &number, e) < 0 ? e->code : 0;
}

int dedup_exact_outside(void *stage, struct span note, struct err *e)
{
    return take_outside(stage, note, e);
}

int dedup_exact_to_index(struct span note, struct err *e)
{
    union { const char *in; char *out; } u = {note.p};
    struct span id;
    struct note h;

    TRY(parse_note(note, &h, &id, e));
    h.rank = 0;
    memcpy(u.out, &h, sizeof h);
    return 0;
}

const char *dedup_exact_kind(const void *stage)
{
    const struct exact *x = stage;

    return x->kind;
}

static const struct stage_ops exact_ops, exact_settled_ops;

static int begin(struct exact *x, struct err *e)
{
    struct stage st = {x->best ? &exact_settled_ops : &exact_ops, x};

    x->begun = true;
    for (int i = 0; i < x->conf.against.n; i++)
        if (notes_of(x->conf.against.v[i], &st, x->kind, pool_cpus(), take_outside, x, e) < 0)
            return e->code = ERR_IO; /* whatever it is: the document at hand is not bad */
    return 0;
}

static int exact_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    struct exact *x = stage;
    struct span id;
    struct note h;
    uint64_t number;
    int rc;

    (void)reply, (void)a;
    if (!x->begun)
        TRY(begin(x, e));
    TRY(parse_note(note, &h, &id, e));
    rc = add_to_set(x, &h, id, &number, e);
    if (rc == 0) {
        verdict_drop(v, "duplicate", 1, NAN);
        v->survivor = x->ids.id[number];
    }
    x->distinct += rc == 1;
    return rc < 0 ? rc : 0;
}

/* ---- at the end ---- */

static int settled_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                          struct err *e)
{
    struct exact *x = stage;
    struct span id;
    struct note h;

    (void)v, (void)reply, (void)a;
    if (!x->begun)
        TRY(begin(x, e));
    TRY(parse_note(note, &h, &id, e));
    if (x->conf.keep == KEEP_LAST)
        h.rank = dedup_best_count(x->best);
    return dedup_best_add(x->best, h.key, h.rank, id, e);
}

/* The notes of what stays; of a key the index needs the hash alone. */
static int write_index(struct exact *x, struct err *e)
{
    struct note_index *index;
    struct arena a = {0};
    int rc = note_index_create(&index, x->conf.index, x->kind, e);

    if (rc < 0)
        return rc;
    for (uint64_t n = x->outside; n < dedup_best_count(x->best) && rc == 0; n++) {
        struct note h = {.rank = 0};
        struct buf note = {0};
        uint64_t survivor;
        struct span id;

        rc = dedup_best_survivor(x->best, n, &survivor, e);
        if (rc == 0 && survivor != n)
            continue;
        if (rc == 0)
            rc = dedup_best_key(x->best, n, &h.key, e);
        if (rc == 0)
            rc = dedup_best_id(x->best, n, &a, &id, e);
        if (rc == 0 && (buf_put(&note, &h, sizeof h) < 0 || buf_put_span(&note, id) < 0))
            rc = err_set(e, ERR_NOMEM, "out of memory for an index");
        if (rc == 0)
            rc = note_index_put(index, buf_span(&note), e);
        buf_free(&note);
        arena_reset(&a);
    }
    arena_free(&a);
    if (rc == 0)
        return note_index_commit(index, e);
    note_index_abort(index);
    return rc;
}

static int settled_resolve(void *stage, int jobs, struct err *e)
{
    struct exact *x = stage;

    if (!x->begun) /* there was no document */
        TRY(begin(x, e));
    TRY(dedup_best_resolve(x->best, x->conf.keep == KEEP_NONE, jobs, e));
    return x->conf.index ? write_index(x, e) : 0;
}

static int settled_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                         struct err *e)
{
    struct exact *x = stage;
    uint64_t survivor;

    (void)reply;
    TRY(dedup_best_survivor(x->best, x->outside + n, &survivor, e));
    if (survivor == x->outside + n) {
        x->distinct++;
        return 0;
    }
    verdict_drop(v, "duplicate", 1, NAN);
    return v->account ? dedup_best_id(x->best, survivor, a, &v->survivor, e) : 0;
}

/* ---- both ---- */

static int exact_stats(void *stage, struct buf *json)
{
    struct exact *x = stage;

    TRY(json_put_key(json, "distinct"));
    TRY(json_put_int(json, (int64_t)x->distinct));
    TRY(json_put_key(json, "against"));
    return json_put_int(json, (int64_t)x->outside);
}

static void exact_close(void *stage)
{
    struct exact *x = stage;

    if (!x)
        return;
    hash_set_free(x->set);
    id_list_free(&x->ids);
    dedup_best_close(x->best);
    free(x->conf.against.v);
    free(x);
}

static const struct stage_ops exact_ops = {
    .name = "dedup exact",
    .thread_open = exact_thread_open,
    .thread_close = exact_thread_close,
    .work = exact_work,
    .commit = exact_commit,
    .stats = exact_stats,
    .close = exact_close,
};

static const struct stage_ops exact_settled_ops = {
    .name = "dedup exact",
    .thread_open = exact_thread_open,
    .thread_close = exact_thread_close,
    .work = exact_work,
    .commit = settled_commit,
    .resolve = settled_resolve,
    .judge = settled_judge,
    .stats = exact_stats,
    .close = exact_close,
};

void dedup_exact_conf_init(struct dedup_exact_conf *c)
{
    *c = (struct dedup_exact_conf){0};
}

static int check(const struct dedup_exact_conf *c, struct err *e)
{
    TRY(dedup_keep_check(c->keep, c->by, e));
    if (c->memory && c->memory < 64 << 20)
        return err_set(e, ERR_ARG, "memory of less than 64M");
    for (int i = 0; i < c->against.n; i++)
        if (access(c->against.v[i], R_OK) < 0)
            return err_sys(e, ERR_IO, "cannot open '%s'", c->against.v[i]);
    return 0;
}

static int open_parts(struct exact *x, const struct dedup_exact_conf *c, bool settled, struct err *e)
{
    static const char *const how[] = {"none", "space", "words"};

    snprintf(x->kind, sizeof x->kind, "dedup exact normalize=%s", how[c->normalize]);
    x->conf = *c;
    x->conf.against = (struct opt_list){0};
    for (int i = 0; i < c->against.n; i++)
        TRY(opt_list_add(&x->conf.against, c->against.v[i], e));
    if (settled)
        return dedup_best_open(&x->best, c->dir, c->memory ? c->memory : 1 << 30, e);
    x->set = hash_set_new();
    return x->set ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int dedup_exact_stage_open(struct stage *st, const struct dedup_exact_conf *conf, struct err *e)
{
    bool settled = conf->keep != KEEP_FIRST || conf->memory || conf->index;
    struct exact *x;
    int rc;

    TRY(check(conf, e));
    x = calloc(1, sizeof *x);
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = open_parts(x, conf, settled, e);
    if (rc < 0) {
        exact_close(x);
        return rc;
    }
    *st = (struct stage){settled ? &exact_settled_ops : &exact_ops, x};
    return 0;
}
