#include "curate/driver.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/pool.h"
#include "curate/feed.h"

/* How often a rule dropped. */
struct rule_count {
    const char *rule;
    uint64_t n;
};

/* What passed one stage.  Number 0 is the making of documents (parsing, a source). */
struct flow {
    uint64_t docs_in, docs_out, bytes_in, bytes_out;
    struct rule_count *rule;
    int n_rules;
};

/* A document of a block, and what became of it. */
struct slot {
    struct doc d;
    struct verdict v;
    struct span note, reply;
    int by;          /* the stage that dropped it */
    const char *bad; /* it is no document, or a stage could not use it: why */
};

/* The stages from `first` on that run in one pass: up to and with one that must see
 * all documents (then `spool` keeps them for the next pass), or to the end. */
struct run {
    const struct driver_conf *c;
    struct driver_result *r;
    struct feed feed;
    struct gate read_gate, *stage_gate, write_gate;
    int first, last; /* stages [first, last) */
    FILE *spool;     /* where the survivors go; NULL: to the output */
    uint64_t ticket;
    bool ended;
    struct flow *flow; /* n_stages + 1 */
    struct file_out *out, *rejects;
    pthread_mutex_t lock; /* failed, e */
    int failed;
    struct err *e;
    double start;
};

struct worker {
    struct run *run;
    uint64_t ticket; /* of the block in hand, at every gate */
    struct block block;
    struct slot *slot;
    int cap;
    struct json_reader *json;
    void *source_thread, **stage_thread;
    struct flow *flow; /* of the block in hand */
    struct buf out, rejects, scratch;
};

static void fail(struct run *r, const struct err *e)
{
    pthread_mutex_lock(&r->lock);
    if (!r->failed) {
        r->failed = e->code;
        if (r->e)
            *r->e = *e;
    }
    pthread_mutex_unlock(&r->lock);
    gate_stop(&r->read_gate);
    for (int i = r->first; i < r->last; i++)
        gate_stop(&r->stage_gate[i]);
    gate_stop(&r->write_gate);
}

/* ---- a worker's own state ---- */

/* The stages of this pass, and the one that judges what it reads. */
static int first_thread(const struct run *r)
{
    return r->feed.judge ? r->first - 1 : r->first;
}

static int worker_open(struct worker *w, struct run *r, struct err *e)
{
    const struct driver_conf *c = r->c;

    *w = (struct worker){.run = r};
    w->json = json_reader_new();
    w->stage_thread = calloc((size_t)c->n_stages + 1, sizeof *w->stage_thread);
    w->flow = calloc((size_t)c->n_stages + 1, sizeof *w->flow);
    if (!w->json || !w->stage_thread || !w->flow)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    if (r->feed.source && r->feed.source->ops->thread_open)
        TRY(r->feed.source->ops->thread_open(r->feed.source->state, &w->source_thread, e));
    for (int i = first_thread(r); i < r->last; i++)
        if (c->stages[i].ops->thread_open)
            TRY(c->stages[i].ops->thread_open(c->stages[i].state, &w->stage_thread[i], e));
    return 0;
}

static void worker_close(struct worker *w)
{
    struct run *r = w->run;

    for (int i = first_thread(r); i < r->last && w->stage_thread; i++)
        if (w->stage_thread[i] && r->c->stages[i].ops->thread_close)
            r->c->stages[i].ops->thread_close(r->c->stages[i].state, w->stage_thread[i]);
    if (w->source_thread && r->feed.source->ops->thread_close)
        r->feed.source->ops->thread_close(r->feed.source->state, w->source_thread);
    for (int i = 0; i < w->block.n; i++)
        if (w->block.item[i].raw)
            r->feed.source->ops->item_free(r->feed.source->state, w->block.item[i].raw);
    free(w->stage_thread);
    free(w->flow);
    free(w->slot);
    json_reader_free(w->json);
    block_free(&w->block);
    buf_free(&w->out);
    buf_free(&w->rejects);
    buf_free(&w->scratch);
}

/* ---- the way of a block ---- */

/* Takes rc of a document's making or of a stage: a bad document is noted (0), a
 * failure of the run comes back. */
static int note_bad(struct worker *w, struct slot *s, int rc, const struct err *e)
{
    if (rc != ERR_FORMAT && rc != ERR_LIMIT)
        return rc;
    s->bad = arena_dup(&w->block.arena, span_of(e->msg)).p;
    return s->bad ? 0 : ERR_NOMEM;
}

static int make_one(struct worker *w, struct item *it, struct slot *s, struct err *e)
{
    struct feed *f = &w->run->feed;
    int rc;

    s->d.file = it->file;
    s->d.offset = it->offset;
    if (it->bad) {
        s->bad = it->bad;
        return 0;
    }
    if (it->raw) {
        rc = f->source->ops->make(f->source->state, w->source_thread, it->raw, &s->d, &s->v, e);
        f->source->ops->item_free(f->source->state, it->raw);
        it->raw = NULL;
    } else {
        rc = doc_parse(&s->d, w->json, it->line, e);
    }
    return note_bad(w, s, rc, e);
}

static bool alive(const struct slot *s)
{
    return !s->bad && !s->v.drop;
}

/* Stage k changes the document by what it replied. */
static int apply(struct worker *w, int k, struct slot *s, struct err *e)
{
    struct span reply = s->reply;
    const struct stage *st;

    if (!alive(s) || !reply.p)
        return 0;
    s->reply = (struct span){0};
    st = &w->run->c->stages[k];
    return note_bad(w, s, st->ops->apply(st->state, w->stage_thread[k], &s->d, reply, &s->v, e), e);
}

/* Documents from items; what the judge of the pass before dropped stays dropped. */
static int make_docs(struct worker *w, struct err *e)
{
    struct block *b = &w->block;
    int by = w->run->first; /* flow[0], or the stage that judged */
    struct flow *f = &w->flow[by];

    if (b->n > w->cap) {
        free(w->slot);
        w->cap = b->n * 2;
        w->slot = malloc((size_t)w->cap * sizeof *w->slot);
        if (!w->slot)
            return err_set(e, ERR_NOMEM, "out of memory for %d documents", w->cap);
    }
    for (int i = 0; i < b->n; i++) {
        struct slot *s = &w->slot[i];
        *s = (struct slot){.by = by, .v = b->item[i].judged, .reply = b->item[i].reply};
        doc_init(&s->d, &b->arena);
        s->d.index = b->first + (uint64_t)i;
        TRY(make_one(w, &b->item[i], s, e));
        TRY(apply(w, by - 1, s, e));
        if (by == 0 && !s->bad) {
            f->docs_in++;
            f->bytes_in += s->d.text.n;
        }
        if (!s->bad && !s->v.drop) {
            f->docs_out++;
            f->bytes_out += s->d.text.n;
        }
    }
    return 0;
}

static int run_stage(struct worker *w, int k, struct err *e)
{
    const struct stage *st = &w->run->c->stages[k];
    struct flow *f = &w->flow[k + 1];

    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        if (!alive(s))
            continue;
        f->docs_in++;
        f->bytes_in += s->d.text.n;
        s->by = k + 1;
        if (st->ops->work)
            TRY(note_bad(w, s, st->ops->work(st->state, w->stage_thread[k], &s->d, &s->v,
                                             &s->note, e), e));
    }
    if (st->ops->commit) {
        TRY(gate_enter(&w->run->stage_gate[k], w->ticket));
        for (int i = 0; i < w->block.n; i++) {
            struct slot *s = &w->slot[i];
            if (alive(s))
                TRY(note_bad(w, s, st->ops->commit(st->state, s->note, &s->v, &s->reply, &w->block.arena, e), e));
        }
        gate_leave(&w->run->stage_gate[k]);
    }
    for (int i = 0; i < w->block.n && !st->ops->resolve; i++) {
        struct slot *s = &w->slot[i];
        TRY(apply(w, k, s, e));
        s->note = (struct span){0};
        if (alive(s)) {
            f->docs_out++;
            f->bytes_out += s->d.text.n;
        }
    }
    return 0;
}

/* ---- the end of the way, in order ---- */

static int put_reject(struct worker *w, const struct slot *s)
{
    const struct driver_conf *c = w->run->c;
    struct buf *b = &w->rejects;
    const char *stage = s->by ? c->stages[s->by - 1].ops->name
                        : c->source ? c->source->ops->name : "read";

    TRY(buf_puts(b, "{\"id\":"));
    TRY(json_put_string(b, s->d.id));
    TRY(json_put_key(b, "stage"));
    TRY(json_put_string(b, span_of(stage)));
    TRY(json_put_key(b, "rule"));
    TRY(json_put_string(b, span_of(s->v.rule)));
    TRY(json_put_key(b, "value"));
    TRY(json_put_num(b, s->v.value));
    TRY(json_put_key(b, "threshold"));
    TRY(json_put_num(b, s->v.threshold));
    if (s->v.survivor.p) {
        TRY(json_put_key(b, "survivor"));
        TRY(json_put_string(b, s->v.survivor));
    }
    return buf_puts(b, "}\n");
}

static int count_rule(struct flow *f, const char *rule)
{
    struct rule_count *p;
    int i = 0;

    while (i < f->n_rules && strcmp(f->rule[i].rule, rule) != 0)
        i++;
    if (i == f->n_rules) {
        p = realloc(f->rule, (size_t)(i + 1) * sizeof *p);
        if (!p)
            return ERR_NOMEM;
        f->rule = p;
        f->rule[f->n_rules++] = (struct rule_count){rule, 0};
    }
    f->rule[i].n++;
    return 0;
}

/* Text of the output and of the rejects: in parallel, before the write gate. */
static int render(struct worker *w, struct err *e)
{
    buf_clear(&w->out);
    buf_clear(&w->rejects);
    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        int rc = 0;
        if (alive(s) && !w->run->spool)
            rc = doc_write(&s->d, &w->out);
        else if (!s->bad && s->v.drop && w->run->rejects)
            rc = put_reject(w, s);
        if (rc < 0)
            return err_set(e, rc, "out of memory for the output of %d documents", w->block.n);
    }
    return 0;
}

static void say_bad(const struct slot *s)
{
    if (s->d.file)
        log_msg(LOG_WARN, "'%s' at byte %" PRIu64 ": %s; skipped", s->d.file, s->d.offset, s->bad);
    else
        log_msg(LOG_WARN, "%s; skipped", s->bad);
}

static void add_flows(struct worker *w)
{
    struct run *r = w->run;

    for (int i = 0; i <= r->c->n_stages; i++) {
        r->flow[i].docs_in += w->flow[i].docs_in;
        r->flow[i].docs_out += w->flow[i].docs_out;
        r->flow[i].bytes_in += w->flow[i].bytes_in;
        r->flow[i].bytes_out += w->flow[i].bytes_out;
    }
    memset(w->flow, 0, ((size_t)r->c->n_stages + 1) * sizeof *w->flow);
}

static int finish_block(struct worker *w, struct err *e)
{
    struct run *r = w->run;
    double secs;

    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        if (s->bad) {
            r->r->bad++;
            say_bad(s);
        } else if (s->v.drop) {
            r->r->dropped++;
            if (count_rule(&r->flow[s->by], s->v.rule) < 0)
                return err_set(e, ERR_NOMEM, "out of memory");
        } else if (r->spool) {
            TRY(spool_put(r->spool, &s->d, &w->scratch, e));
        }
    }
    add_flows(w);
    if (w->out.n)
        TRY(file_write(r->out, w->out.p, w->out.n, e));
    if (w->rejects.n)
        TRY(file_write(r->rejects, w->rejects.p, w->rejects.n, e));
    secs = log_seconds() - r->start;
    log_progress("%" PRIu64 " read, %" PRIu64 " dropped, %" PRIu64 " bad, %.1f MB/s",
                 w->block.first + (uint64_t)w->block.n, r->r->dropped, r->r->bad,
                 (double)r->flow[r->first].bytes_in / 1e6 / (secs > 0 ? secs : 1));
    return 0;
}

/* One block from the feed to the output.  1, 0 at the end, or a failure. */
static int one_block(struct worker *w, struct err *e)
{
    struct run *r = w->run;
    int rc = 0;

    w->ticket = __atomic_fetch_add(&r->ticket, 1, __ATOMIC_RELAXED);
    TRY(gate_enter(&r->read_gate, w->ticket));
    if (!r->ended) {
        rc = feed_fill(&r->feed, &w->block, e);
        r->ended = rc < 0 || w->block.n == 0;
    } else {
        block_reset(&w->block);
    }
    gate_leave(&r->read_gate);
    if (rc < 0 || w->block.n == 0)
        return rc;
    TRY(make_docs(w, e));
    for (int k = r->first; k < r->last; k++)
        TRY(run_stage(w, k, e));
    TRY(render(w, e));
    TRY(gate_enter(&r->write_gate, w->ticket));
    TRY(finish_block(w, e));
    gate_leave(&r->write_gate);
    return 1;
}

static void work(void *arg, int thread)
{
    struct run *r = arg;
    struct worker w;
    struct err e = {0};
    int rc = worker_open(&w, r, &e);

    (void)thread;
    if (rc == 0)
        do
            rc = one_block(&w, &e);
        while (rc > 0);
    if (rc < 0 && rc != ERR_STOPPED)
        fail(r, &e);
    worker_close(&w);
}

/* ---- passes ---- */

/* One pass over the feed; then the stage that had to see everything, if any. */
static int one_pass(struct run *r, struct err *e)
{
    const struct driver_conf *c = r->c;
    struct err thread_error;

    gate_init(&r->read_gate);
    gate_init(&r->write_gate);
    for (int i = r->first; i < r->last; i++)
        gate_init(&r->stage_gate[i]);
    r->ticket = 0;
    r->ended = false;
    r->e = e;
    if (pool_run(c->jobs, work, r, &thread_error) < 0)
        log_msg(LOG_WARN, "%s; going on with fewer", thread_error.msg);
    gate_destroy(&r->read_gate);
    gate_destroy(&r->write_gate);
    for (int i = r->first; i < r->last; i++)
        gate_destroy(&r->stage_gate[i]);
    if (r->failed)
        return r->failed;
    if (r->spool)
        return c->stages[r->last - 1].ops->resolve(c->stages[r->last - 1].state, c->jobs, e);
    return 0;
}

static const char *spool_dir(const struct driver_conf *c, char *buf, size_t size)
{
    const char *tmp = getenv("TMPDIR"), *slash;

    if (tmp && *tmp)
        return tmp;
    slash = c->output ? strrchr(c->output, '/') : NULL;
    if (slash && (size_t)(slash - c->output) < size) {
        snprintf(buf, size, "%.*s", (int)(slash - c->output) + (slash == c->output), c->output);
        return buf;
    }
    return c->output && strcmp(c->output, "-") != 0 ? "." : "/tmp";
}

static int all_passes(struct run *r, struct err *e)
{
    const struct driver_conf *c = r->c;
    char dir[4096];

    for (r->first = 0;; r->first = r->last) {
        r->last = r->first;
        while (r->last < c->n_stages && !c->stages[r->last++].ops->resolve)
            ;
        r->spool = NULL;
        if (r->last > r->first && c->stages[r->last - 1].ops->resolve)
            TRY(spool_open(&r->spool, spool_dir(c, dir, sizeof dir), e));
        TRY(one_pass(r, e));
        if (!r->spool)
            return 0;
        if (fflush(r->spool) != 0 || fseeko(r->spool, 0, SEEK_SET) != 0)
            return err_sys(e, ERR_IO, "cannot write the temporary file");
        feed_close(&r->feed);
        r->feed = (struct feed){.spool = r->spool, .judge = &c->stages[r->last - 1]};
        r->spool = NULL;
    }
}

/* ---- statistics ---- */

static int put_count(struct buf *b, const char *key, uint64_t n)
{
    TRY(json_put_key(b, key));
    return json_put_int(b, (int64_t)n);
}

static int put_flow(struct buf *b, const char *name, const struct flow *f,
                    int (*own)(void *state, struct buf *json), void *state)
{
    TRY(buf_puts(b, "{\"stage\":"));
    TRY(json_put_string(b, span_of(name)));
    TRY(put_count(b, "docs_in", f->docs_in));
    TRY(put_count(b, "docs_out", f->docs_out));
    TRY(put_count(b, "bytes_in", f->bytes_in));
    TRY(put_count(b, "bytes_out", f->bytes_out));
    TRY(json_put_key(b, "dropped_by"));
    TRY(buf_putc(b, '{'));
    for (int i = 0; i < f->n_rules; i++)
        TRY(put_count(b, f->rule[i].rule, f->rule[i].n));
    TRY(buf_putc(b, '}'));
    if (own)
        TRY(own(state, b));
    return buf_putc(b, '}');
}

static int put_stats(struct buf *b, const struct run *r)
{
    const struct driver_conf *c = r->c;

    TRY(buf_puts(b, "{\"quern\":\"" QUERN_VERSION "\""));
    TRY(put_count(b, "docs_in", r->r->docs_in));
    TRY(put_count(b, "docs_out", r->r->docs_out));
    TRY(put_count(b, "dropped", r->r->dropped));
    TRY(put_count(b, "bad", r->r->bad));
    TRY(put_count(b, "bytes_in", r->r->bytes_in));
    TRY(put_count(b, "bytes_out", r->r->bytes_out));
    TRY(json_put_key(b, "seconds"));
    TRY(json_put_num(b, r->r->seconds));
    TRY(json_put_key(b, "stages"));
    TRY(buf_putc(b, '['));
    if (c->source)
        TRY(put_flow(b, c->source->ops->name, &r->flow[0], c->source->ops->stats, c->source->state));
    for (int i = 0; i < c->n_stages; i++) {
        if (i || c->source)
            TRY(buf_putc(b, ','));
        TRY(put_flow(b, c->stages[i].ops->name, &r->flow[i + 1], c->stages[i].ops->stats,
                     c->stages[i].state));
    }
    return buf_puts(b, "]}\n");
}

static int write_stats(const struct run *r, struct err *e)
{
    struct buf b = {0};
    int rc = put_stats(&b, r);

    if (rc < 0)
        err_set(e, rc, "out of memory for the statistics");
    else
        rc = file_write_all(r->c->stats, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* ---- the whole ---- */

static int open_outputs(struct run *r, struct err *e)
{
    const char *out = r->c->output ? r->c->output : "-";

    TRY(file_create(&r->out, out, 0, e));
    if (r->c->rejects)
        TRY(file_create(&r->rejects, r->c->rejects, 0, e));
    return 0;
}

/* The output last: while it is not there the run has to be done again. */
static int commit_outputs(struct run *r, struct err *e)
{
    struct file_out *f;

    if (r->rejects) {
        f = r->rejects;
        r->rejects = NULL;
        TRY(file_commit(f, e));
    }
    if (r->c->stats)
        TRY(write_stats(r, e));
    f = r->out;
    r->out = NULL;
    return file_commit(f, e);
}

static int run_all(struct run *r, struct err *e)
{
    struct driver_result *res = r->r;
    int n = r->c->n_stages;

    TRY(feed_check(&r->feed, e));
    TRY(open_outputs(r, e));
    TRY(all_passes(r, e));
    res->docs_in = r->flow[0].docs_in;
    res->bytes_in = r->flow[0].bytes_in;
    res->docs_out = r->flow[n].docs_out;
    res->bytes_out = r->flow[n].bytes_out;
    res->seconds = log_seconds() - r->start;
    return commit_outputs(r, e);
}

int driver_run(const struct driver_conf *c, struct driver_result *res, struct err *e)
{
    struct run r = {.c = c, .r = res, .start = log_seconds()};
    int rc;

    *res = (struct driver_result){0};
    r.feed = (struct feed){.inputs = c->inputs, .n_inputs = c->n_inputs, .source = c->source,
                           .max_line = c->max_line ? c->max_line : 256 << 20};
    r.flow = calloc((size_t)c->n_stages + 1, sizeof *r.flow);
    r.stage_gate = calloc((size_t)c->n_stages + 1, sizeof *r.stage_gate);
    if (!r.flow || !r.stage_gate) {
        free(r.flow);
        free(r.stage_gate);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    pthread_mutex_init(&r.lock, NULL);
    rc = run_all(&r, e);
    feed_close(&r.feed);
    if (r.spool)
        fclose(r.spool);
    file_abort(r.out);
    file_abort(r.rejects);
    for (int i = 0; i <= c->n_stages; i++)
        free(r.flow[i].rule);
    free(r.flow);
    free(r.stage_gate);
    pthread_mutex_destroy(&r.lock);
    return rc;
}

int driver_main(const struct tool *t, struct driver_conf *c, int n_operands, char **argv)
{
    struct driver_result r;
    struct err e;

    c->inputs = argv + 1;
    c->n_inputs = n_operands;
    c->jobs = tool_jobs(t);
    if (driver_run(c, &r, &e) < 0)
        return tool_fail(t, &e);
    log_progress_end();
    log_msg(LOG_INFO, "%" PRIu64 " in, %" PRIu64 " out, %" PRIu64 " dropped, %" PRIu64
            " bad; %.1f MB in %.1f s", r.docs_in, r.docs_out, r.dropped, r.bad,
            (double)r.bytes_in / 1e6, r.seconds);
    return tool_end(t, r.bad ? EXIT_SOME_BAD : EXIT_FINE);
}
