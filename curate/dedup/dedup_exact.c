#include "curate/dedup/dedup_exact.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/dedup/dedup_best.h"
#include "curate/dedup/dedup_bloom.h"
#include "curate/dedup/dedup_ids.h"
#include "curate/dedup/dedup_key.h"
#include "curate/dedup/dedup_normal.h"
#include "curate/dedup/dedup_set.h"
#include "curate/stream/doc_name.h"
#include "curate/stream/note_index.h"
#include "kernels/text_hash.h"

struct exact {
    struct dedup_exact_conf conf;
    char kind[DEDUP_KEY_MAX + 64]; /* of indexes */
    uint64_t outside;      /* documents of --against, which come first */
    uint64_t distinct;     /* that stay */
    bool begun;            /* they have been read */
    struct dedup_seen keys, ranks; /* of --key, of --by */
    /* answered as they come */
    struct hash_set *set;  /* text -> number of the document that stays */
    struct id_list ids;    /* of those that stay */
    struct dedup_bloom bloom; /* instead of both, if it has bits */
    double mistaken;          /* documents that are expected to have gone by its mistakes */
    /* or at the end */
    struct dedup_best *best;
    struct file_group files;  /* the index, written, and not yet under its name */
};

/* The note of a document: this, then its id. */
struct note {
    struct hash128 key;
    uint64_t rank; /* by the rule of what stays; the higher stays */
};
struct note_parts {
    struct note h;
    struct span id;
};

struct worker {
    struct normal_scratch scratch;
    struct buf text;
};

static void exact_thread_close(void *stage, void *thread)
{
    struct worker *w = thread;

    (void)stage;
    normal_free(&w->scratch);
    buf_free(&w->text);
    free(w);
}

static int exact_thread_open(void *stage, void **thread, struct err *e)
{
    (void)stage;
    *thread = calloc(1, sizeof(struct worker));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "out of memory for a thread");
}

static int normalize(const struct exact *x, struct worker *w, struct span text, struct span *out, struct err *e)
{
    *out = text;
    buf_clear(&w->text);
    if (x->conf.normalize == NORMALIZE_SPACE && normal_space(text, &w->text) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
    if (x->conf.normalize == NORMALIZE_URL && normal_url(text, &w->text) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise an address");
    if (x->conf.normalize == NORMALIZE_WORDS)
        TRY(normal_words(text, &w->scratch, &w->text, e));
    if (x->conf.normalize != NORMALIZE_NONE)
        *out = buf_span(&w->text);
    return 0;
}

/* What of the document is compared.  Without such a field it is where it came from: bytes that begin as no text does. */
static int compared(struct exact *x, struct worker *w, struct doc *d, struct span *text, struct err *e)
{
    int rc = 1;

    *text = d->text;
    if (x->conf.key)
        rc = dedup_key_text(d, x->conf.key, text, e);
    if (x->conf.key && rc >= 0)
        dedup_seen_count(&x->keys, rc);
    if (rc != 0)
        return rc < 0 ? rc : normalize(x, w, *text, text, e);
    buf_clear(&w->text);
    if (buf_putc(&w->text, '\xff') < 0 || buf_puts(&w->text, d->file ? d->file : "") < 0 ||
        buf_put(&w->text, &d->offset, sizeof d->offset) < 0 || buf_put_span(&w->text, d->id) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a document without '%s'", x->conf.key);
    *text = buf_span(&w->text);
    return 0;
}

static int exact_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    struct exact *x = stage;
    struct worker *w = thread;
    struct note h;
    struct span text, id;
    uint64_t hash[2];
    char *to;

    (void)v;
    TRY(compared(x, w, d, &text, e));
    TRY(dedup_keep_rank(x->conf.keep, x->conf.by, d, &h.rank, e));
    if (x->conf.keep == KEEP_BEST)
        dedup_seen_count(&x->ranks, h.rank > 0);
    ISA_PICK(text_hash_one)(text.p, text.n, hash);
    h.key = (struct hash128){hash[0], hash[1]};
    to = doc_name(d, x->conf.places, &id) == 0 ? arena_alloc(d->arena, sizeof h + id.n) : NULL;
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    *note = (struct span){to, sizeof h + id.n};
    memcpy(to, &h, sizeof h);
    memcpy(to + sizeof h, id.p, id.n);
    return 0;
}

/* ---- one after the other ---- */

static int parse_note(struct span note, struct note_parts *p, struct err *e)
{
    if (note.n < sizeof p->h)
        return err_set(e, ERR_IO, "a note of %zu bytes is none of exact duplicates", note.n);
    memcpy(&p->h, note.p, sizeof p->h);
    p->id = (struct span){note.p + sizeof p->h, note.n - sizeof p->h};
    return 0;
}

int dedup_exact_note_key(struct span note, uint64_t *key, struct err *e)
{
    struct note_parts p;

    TRY(parse_note(note, &p, e));
    *key = p.h.key.lo;
    return 0;
}

/* Adds to the filter.  1: the text is new; 0: it is not, or that is a mistake. */
static int add_to_filter(struct exact *x, const struct note_parts *p)
{
    double rate = dedup_bloom_rate(&x->bloom);

    if (dedup_bloom_has(&x->bloom, p->h.key))
        return 0;
    x->mistaken += rate / (1 - rate); /* as many new ones went for each that stays */
    if (x->bloom.keys == (uint64_t)x->conf.bloom_count + 1)
        log_msg(LOG_WARN, "more documents stay than the %" PRId64 " of --bloom-count: more and more are mistaken for copies",
                x->conf.bloom_count);
    return 1;
}

/* Adds to the set.  1: the text is new; 0: document *number has it. */
static int add_to_set(struct exact *x, const struct note_parts *p, uint64_t *number, struct err *e)
{
    int rc;

    *number = x->ids.n;
    rc = hash_set_add(x->set, p->h.key.lo, p->h.key.hi, number);
    if (rc == 1 && id_list_add(&x->ids, p->id) < 0)
        rc = ERR_NOMEM;
    return rc < 0 ? err_set(e, rc, "out of memory: %zu different texts so far", x->ids.n) : rc;
}

/* A document of which the answer comes at the end. */
static int settle(struct exact *x, const struct note_parts *p, uint64_t rank, struct err *e)
{
    return dedup_best_add(x->best, p->h.key,
                          x->conf.keep == KEEP_LAST && rank != UINT64_MAX ? dedup_best_count(x->best) : rank, p->id, e);
}

/* A document of --against. */
static int take_outside(void *to, struct span note, struct err *e)
{
    struct exact *x = to;
    struct note_parts p;
    uint64_t number;

    TRY(parse_note(note, &p, e));
    x->outside++;
    if (x->best)
        return settle(x, &p, UINT64_MAX, e);
    if (x->bloom.bits) {
        add_to_filter(x, &p);
        return 0;
    }
    return add_to_set(x, &p, &number, e) < 0 ? e->code : 0;
}

int dedup_exact_outside(void *stage, struct span note, struct err *e)
{
    return take_outside(stage, note, e);
}

int dedup_exact_to_index(struct span note, struct err *e)
{
    union { const char *in; char *out; } u = {note.p};
    struct note_parts p;

    TRY(parse_note(note, &p, e));
    p.h.rank = 0;
    memcpy(u.out, &p.h, sizeof p.h);
    return 0;
}

const char *dedup_exact_kind(const void *stage)
{
    const struct exact *x = stage;

    return x->kind;
}

const struct stage_rule dedup_exact_rules[] = {
    {"duplicate", NULL, "Another document has the same text, as texts were to be compared.", NULL, false},
    {"bloom-duplicate", NULL, "A Bloom filter takes the text for that of an earlier document, which rarely is a mistake.", NULL,
     false},
    {0},
};

static const struct stage_ops exact_ops, exact_settled_ops;

static int begin(struct exact *x, struct err *e)
{
    struct stage st = {x->best ? &exact_settled_ops : &exact_ops, x};

    x->begun = true;
    return notes_of_all(&x->conf.against, &st, x->kind, take_outside, x, e);
}

static int exact_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    struct exact *x = stage;
    struct note_parts p;
    uint64_t number = 0;
    int rc;

    (void)reply, (void)a;
    if (!x->begun)
        TRY(begin(x, e));
    TRY(parse_note(note, &p, e));
    rc = x->bloom.bits ? add_to_filter(x, &p) : add_to_set(x, &p, &number, e);
    if (rc == 0 && x->bloom.bits) {
        verdict_drop(v, &dedup_exact_rules[1], 1, NAN);
    } else if (rc == 0) {
        verdict_drop(v, &dedup_exact_rules[0], 1, NAN);
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
    struct note_parts p;

    (void)v, (void)reply, (void)a;
    if (!x->begun)
        TRY(begin(x, e));
    TRY(parse_note(note, &p, e));
    return settle(x, &p, p.h.rank, e);
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
    return note_index_end(index, rc, &x->files, e);
}

static int settled_resolve(void *stage, int jobs, struct err *e)
{
    struct exact *x = stage;

    if (!x->begun) /* there was no document */
        TRY(begin(x, e));
    TRY(dedup_best_resolve(x->best, x->conf.keep == KEEP_NONE, jobs, e));
    return x->conf.index ? write_index(x, e) : 0;
}

static int settled_finish(void *stage, struct file_group *files, struct err *e)
{
    struct exact *x = stage;

    return file_group_join(files, &x->files, e);
}

static int settled_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                         struct err *e)
{
    struct exact *x = stage;
    uint64_t survivor;

    TRY(dedup_best_survivor(x->best, x->outside + n, &survivor, e));
    if (survivor == x->outside + n) {
        x->distinct++;
        return x->conf.cluster_size ? dedup_size_reply(dedup_best_size(x->best, survivor), reply, a, e) : 0;
    }
    verdict_drop(v, &dedup_exact_rules[0], 1, NAN);
    return v->account ? dedup_best_id(x->best, survivor, a, &v->survivor, e) : 0;
}

static int settled_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    const struct exact *x = stage;

    (void)thread, (void)v;
    return dedup_size_apply(d, x->conf.cluster_size, reply, e);
}

/* ---- both ---- */

static int exact_stats(void *stage, struct buf *json)
{
    struct exact *x = stage;

    TRY(json_put_key(json, "distinct"));
    TRY(json_put_int(json, (int64_t)x->distinct));
    TRY(json_put_count(json, "against", x->outside));
    if (!x->bloom.bits)
        return 0;
    TRY(json_put_count(json, "bloom_bytes", x->bloom.bits / 8));
    TRY(json_put_key(json, "bloom_mistaken"));
    return json_put_num(json, x->mistaken);
}

static void exact_close(void *stage)
{
    struct exact *x = stage;

    if (!x)
        return;
    dedup_seen_tell(&x->keys, "--key", x->conf.key);
    dedup_seen_tell(&x->ranks, "--by", x->conf.by);
    file_group_abort(&x->files);
    hash_set_free(x->set);
    dedup_bloom_close(&x->bloom);
    id_list_free(&x->ids);
    dedup_best_close(x->best);
    opt_list_free(&x->conf.against);
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
    .apply = settled_apply,
    .finish = settled_finish,
    .stats = exact_stats,
    .close = exact_close,
};

void dedup_exact_conf_init(struct dedup_exact_conf *c)
{
    *c = (struct dedup_exact_conf){.bloom_rate = 1e-6};
}

static int check(const struct dedup_exact_conf *c, struct err *e)
{
    TRY(dedup_keep_check(c->keep, c->by, e));
    if (c->key)
        TRY(dedup_key_check(c->key, e));
    if (c->cluster_size)
        TRY(dedup_size_check(c->cluster_size, e));
    if (c->memory && c->memory < 64 << 20)
        return err_set(e, ERR_ARG, "memory of less than 64M");
    if (c->bloom_count && (c->keep != KEEP_FIRST || c->memory || c->index || c->cluster_size))
        return err_set(e, ERR_ARG, "a Bloom filter keeps the first and knows no more: no --keep, --memory, --index, "
                       "--cluster-size");
    return 0;
}

static int open_parts(struct exact *x, const struct dedup_exact_conf *c, struct err *e)
{
    static const char *const how[] = {"none", "space", "words", "url"};
    int64_t memory = c->memory ? c->memory : 1 << 30;

    snprintf(x->kind, sizeof x->kind, "dedup exact normalize=%s%s%s", how[c->normalize], c->key ? " key=" : "",
             c->key ? c->key : "");
    x->conf = *c;
    TRY(notes_list(&x->conf.against, &c->against, e));
    if (c->bloom_count)
        return dedup_bloom_open(&x->bloom, (uint64_t)c->bloom_count, c->bloom_rate, e);
    if (c->keep != KEEP_FIRST || c->memory || c->index || c->cluster_size)
        return dedup_best_open(&x->best, c->dir, memory, e);
    x->set = hash_set_new();
    return x->set ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int dedup_exact_stage_open(struct stage *st, const struct dedup_exact_conf *conf, struct err *e)
{
    struct exact *x;
    int rc;

    TRY(check(conf, e));
    x = calloc(1, sizeof *x);
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = open_parts(x, conf, e);
    if (rc < 0) {
        exact_close(x);
        return rc;
    }
    *st = (struct stage){x->best ? &exact_settled_ops : &exact_ops, x};
    return 0;
}
