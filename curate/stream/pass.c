#include "curate/stream/pass.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "curate/stream/doc_name.h"

enum {
    UNDER_WAY = 32 << 20,        /* bytes of blocks that may be under way when another is read */
    KEEP_MOST = 8 * LINES_BLOCK  /* bytes that a buffer keeps from block to block */
};

/* A document of a block, and what became of it. */
struct slot {
    struct doc d;
    struct verdict v;
    struct span note, reply;
    struct spill_part rest; /* of the note */
    int by;          /* what dropped it: 0 its making, else 1 + the stage */
    const char *bad; /* it is no document, or a stage could not use it: why */
};

struct worker {
    struct pass *pass;
    uint64_t ticket; /* of the block in hand, at every gate */
    struct feed_block block;
    struct source_where where; /* in the feed, after the block */
    struct slot *slot;
    int cap;
    struct json_reader *json;
    void *source_thread, **stage_thread;
    struct flows flows; /* of the block in hand */
    struct doc_out *out; /* what goes to each of the pass's */
    struct spool_piece *piece; /* where, if that is a spool */
    struct buf rejects, packed;
    struct doc_out notes;
    ZSTD_CCtx *zstd;
    struct libdeflate_compressor *gzip;
};

struct pass {
    struct pass_conf c;
    struct gate read_gate, *stage_gate, write_gate;
    uint64_t ticket;
    uint64_t taken, bound; /* bytes of input since pass_run, and the most */
    uint64_t under_way;    /* bytes of blocks that were read and are not done with */
    pthread_cond_t done;   /* there are fewer */
    bool ended;
    struct worker *worker;
    int n_workers, threads; /* that there are, and that a run uses */
    pthread_mutex_t lock; /* failed, e, under_way */
    int failed;
    struct err *e;
};

int sink_file(void *file_out, struct span s, struct err *e)
{
    return file_write(file_out, s.p, s.n, e);
}

static void fail(struct pass *p, const struct err *e)
{
    pthread_mutex_lock(&p->lock);
    if (!p->failed) {
        p->failed = e->code;
        if (p->e)
            *p->e = *e;
    }
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
    gate_stop(&p->read_gate);
    for (int i = p->c.first; i < p->c.last; i++)
        gate_stop(&p->stage_gate[i]);
    gate_stop(&p->write_gate);
}

/* ---- a worker's own state ---- */

/* The stages of this pass, and the one that judges what it reads. */
static int first_thread(const struct pass_conf *c)
{
    return c->feed->judge.ask ? c->first - 1 : c->first;
}

/* What an output needs that is compressed. */
static int open_packer(struct worker *w, enum file_codec codec, struct err *e)
{
    if (codec == FILE_ZSTD && !w->zstd) {
        w->zstd = ZSTD_createCCtx();
        if (!w->zstd)
            return err_set(e, ERR_NOMEM, "out of memory for a compressor");
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
    } else if (codec == FILE_GZIP && !w->gzip) {
        w->gzip = libdeflate_alloc_compressor(6);
        if (!w->gzip)
            return err_set(e, ERR_NOMEM, "out of memory for a compressor");
    }
    return 0;
}

static int worker_open(struct worker *w, struct pass *p, struct err *e)
{
    const struct pass_conf *c = &p->c;

    *w = (struct worker){.pass = p};
    w->json = json_reader_new();
    w->stage_thread = calloc((size_t)c->n_stages + 1, sizeof *w->stage_thread);
    w->out = calloc((size_t)c->n_out + 1, sizeof *w->out);
    w->piece = calloc((size_t)c->n_out + 1, sizeof *w->piece);
    if (!w->json || !w->stage_thread || !w->out || !w->piece || flows_init(&w->flows, c->n_stages) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    for (int i = 0; i < c->n_out; i++)
        TRY(open_packer(w, c->out[i].codec, e));
    TRY(open_packer(w, c->rejects_codec, e));
    if (c->feed->source && c->feed->source->ops->thread_open)
        TRY(c->feed->source->ops->thread_open(c->feed->source->state, &w->source_thread, e));
    for (int i = first_thread(c); i < c->last; i++)
        if (c->stages[i].ops->thread_open)
            TRY(c->stages[i].ops->thread_open(c->stages[i].state, &w->stage_thread[i], e));
    return 0;
}

static void worker_close(struct worker *w, const struct pass_conf *c)
{
    const struct source *source = c->feed->source;

    for (int i = first_thread(c); i < c->last && w->stage_thread; i++)
        if (w->stage_thread[i] && c->stages[i].ops->thread_close)
            c->stages[i].ops->thread_close(c->stages[i].state, w->stage_thread[i]);
    if (w->source_thread && source->ops->thread_close)
        source->ops->thread_close(source->state, w->source_thread);
    for (int i = 0; i < w->block.n; i++)
        if (w->block.item[i].raw)
            source->ops->item_free(source->state, w->block.item[i].raw);
    free(w->stage_thread);
    flows_free(&w->flows);
    free(w->slot);
    json_reader_free(w->json);
    block_free(&w->block);
    for (int i = 0; i < c->n_out && w->out; i++)
        doc_out_free(&w->out[i]);
    free(w->out);
    free(w->piece);
    buf_free(&w->rejects);
    doc_out_free(&w->notes);
    buf_free(&w->packed);
    ZSTD_freeCCtx(w->zstd);
    if (w->gzip)
        libdeflate_free_compressor(w->gzip);
}

/* ---- the way of a block ---- */

/* Takes rc of a document's making or of a stage: a bad document is noted (0), a
 * failure of the run comes back. */
static int note_bad(struct worker *w, struct slot *s, int rc, struct err *e)
{
    if (mem_was_short()) /* whatever came of it: with more memory it may be fine */
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    if (rc != ERR_FORMAT && rc != ERR_LIMIT)
        return rc;
    s->bad = arena_dup(&w->block.arena, span_of(e->msg)).p;
    return s->bad ? 0 : ERR_NOMEM;
}

static int make_one(struct worker *w, struct item *it, struct slot *s, struct err *e)
{
    struct feed *f = w->pass->c.feed;
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
        rc = doc_parse_key(&s->d, w->json, it->line, f->spool || f->kept ? NULL : f->text_key, e);
    }
    return note_bad(w, s, rc, e);
}

static bool alive(const struct slot *s)
{
    return !s->bad && !s->v.drop;
}

static void count_out(struct flow *f, const struct slot *s)
{
    if (alive(s)) {
        f->docs_out++;
        f->bytes_out += s->d.text.n;
    }
}

/* Stage k changes the document by what it replied. */
static int apply(struct worker *w, int k, struct slot *s, struct err *e)
{
    struct span reply = s->reply;
    const struct stage *st;

    if (!alive(s) || !reply.p)
        return 0;
    s->reply = (struct span){0};
    st = &w->pass->c.stages[k];
    return note_bad(w, s, st->ops->apply(st->state, w->stage_thread[k], &s->d, reply, &s->v, e), e);
}

/* Documents from items; what the judge of the pass before dropped stays dropped.  Documents are counted when they are made
 * and when they were judged, not when they only come from another pass. */
static int make_docs(struct worker *w, struct err *e)
{
    struct feed_block *b = &w->block;
    const struct feed *feed = w->pass->c.feed;
    int by = feed->judge.ask ? w->pass->c.first : 0; /* the stage that judged, or flow[0] */
    struct flow *f = by || !feed->n_kept ? &w->flows.flow[by] : NULL;

    mem_short_reset();
    if (b->n > w->cap) {
        free(w->slot);
        w->cap = b->n * 2;
        w->slot = calloc((size_t)w->cap, sizeof *w->slot);
        if (!w->slot)
            return err_set(e, ERR_NOMEM, "out of memory for %d documents", w->cap);
    }
    for (int i = 0; i < b->n; i++) {
        struct slot *s = &w->slot[i];
        *s = (struct slot){.by = by, .v = b->item[i].judged, .reply = b->item[i].reply};
        doc_init(&s->d, &b->arena);
        TRY(make_one(w, &b->item[i], s, e));
        TRY(apply(w, by - 1, s, e));
        if (f && by == 0 && !s->bad) {
            f->docs_in++;
            f->bytes_in += s->d.text.n;
        }
        if (f)
            count_out(f, s);
    }
    return 0;
}

/* Waits for the block's turn at a gate. */
static int enter(struct worker *w, struct gate *g)
{
    uint64_t t = laps_now();
    int rc = gate_enter(g, w->ticket);

    laps_add(w->pass->c.laps, PASS_WAITING, t);
    return rc;
}

static int commit_one(struct worker *w, const struct stage *st, struct slot *s, struct err *e)
{
    TRY(stage_commit(st, s->note, &s->rest, &s->v, &s->reply, &w->block.arena, e));
    return spill_part_done(&s->rest, e);
}

/* Stage k, in input order. */
static int commit(struct worker *w, int k, struct err *e)
{
    TRY(enter(w, &w->pass->stage_gate[k]));
    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        if (alive(s))
            TRY(note_bad(w, s, commit_one(w, &w->pass->c.stages[k], s, e), e));
    }
    gate_leave(&w->pass->stage_gate[k]);
    return 0;
}

static int run_stage(struct worker *w, int k, struct err *e)
{
    const struct pass_conf *c = &w->pass->c;
    const struct stage *st = &c->stages[k];
    struct flow *f = &w->flows.flow[k + 1];
    bool later = c->later && k == c->last - 1;

    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        if (!alive(s))
            continue;
        f->docs_in++;
        f->bytes_in += s->d.text.n;
        s->by = k + 1;
        s->rest = (struct spill_part){0};
        s->d.note_rest = st->ops->commit_long ? &s->rest : NULL;
        if (st->ops->work)
            TRY(note_bad(w, s, st->ops->work(st->state, w->stage_thread[k], &s->d, &s->v, &s->note, e), e));
    }
    if (st->ops->commit && !(c->notes.put && k == c->last - 1)) {
        TRY(st->ops->work_end ? st->ops->work_end(st->state, w->stage_thread[k], e) : 0);
        TRY(commit(w, k, e));
    }
    if (later)
        return 0;
    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        TRY(apply(w, k, s, e));
        if (k < c->last - 1) /* the last one's says where the document goes */
            s->note = (struct span){0};
        count_out(f, s);
    }
    return 0;
}

/* ---- the end of the way ---- */

/* Where the document came from, so that it can be found again, and with full accounts all of it. */
static int put_origin(struct worker *w, struct slot *s, const struct item *it)
{
    struct span url = doc_raw(&s->d, "url"), source = doc_raw(&s->d, "source");
    struct buf *b = &w->rejects;

    if (url.p) {
        TRY(json_put_key(b, "url"));
        TRY(buf_put_span(b, url));
    }
    if (s->d.file) {
        TRY(json_put_key(b, "file"));
        TRY(json_put_name(b, s->d.file));
        TRY(json_put_count(b, "offset", s->d.offset));
    }
    if (source.p && !w->pass->c.full) {
        TRY(json_put_key(b, "source"));
        TRY(buf_put_span(b, source));
    }
    if (!w->pass->c.full)
        return 0;
    TRY(json_put_key(b, "document"));
    if (it->line.p)
        return buf_put_span(b, utf8_without_mark(it->line));
    TRY(doc_write(&s->d, b));
    b->n--; /* the newline */
    return 0;
}

/* Where the survivor came from, FILE:OFFSET. */
static int put_place(struct buf *b, struct span place)
{
    char file[4096];
    size_t n = place.n;

    while (n > 0 && place.p[n - 1] != ':')
        n--;
    if (!n || n > sizeof file)
        return 0;
    memcpy(file, place.p, n - 1);
    file[n - 1] = '\0';
    TRY(json_put_key(b, "survivor_file"));
    TRY(json_put_name(b, file));
    TRY(json_put_key(b, "survivor_offset"));
    return buf_put(b, place.p + n, place.n - n);
}

/* The line in the account of drops. */
static int put_reject(struct worker *w, struct slot *s, const struct item *it)
{
    const struct pass_conf *c = &w->pass->c;
    struct buf *b = &w->rejects;
    const char *stage = s->by ? c->stages[s->by - 1].ops->name : c->source ? c->source->ops->name : "read";

    TRY(buf_puts(b, "{\"id\":"));
    TRY(json_put_string(b, s->d.id));
    TRY(json_put_key(b, "stage"));
    TRY(json_put_string(b, span_of(stage)));
    if (c->branch) {
        TRY(json_put_key(b, "branch"));
        TRY(json_put_string(b, span_of(c->branch)));
    }
    TRY(json_put_key(b, "rule"));
    TRY(json_put_string(b, span_of(s->v.rule)));
    TRY(json_put_key(b, "value"));
    TRY(json_put_num(b, s->v.value));
    TRY(json_put_key(b, "threshold"));
    TRY(json_put_num(b, s->v.threshold));
    if (s->v.survivor.p) {
        TRY(json_put_key(b, "survivor"));
        TRY(json_put_string(b, doc_name_id(s->v.survivor)));
        TRY(put_place(b, doc_name_place(s->v.survivor)));
    }
    TRY(put_origin(w, s, it));
    return buf_puts(b, "}\n");
}

/* Compresses what goes to an output, or to the account. */
static int pack(struct worker *w, struct buf *docs, enum file_codec codec)
{
    struct buf packed = w->packed;
    size_t bound, n;

    if (!docs->n || codec == FILE_PLAIN)
        return 0;
    bound = codec == FILE_ZSTD ? ZSTD_compressBound(docs->n) : libdeflate_gzip_compress_bound(w->gzip, docs->n);
    buf_clear(&packed);
    TRY(buf_reserve(&packed, bound));
    w->packed = *docs;
    n = codec == FILE_ZSTD ? ZSTD_compress2(w->zstd, packed.p, bound, docs->p, docs->n)
                           : libdeflate_gzip_compress(w->gzip, docs->p, docs->n, packed.p, bound);
    packed.n = n;
    *docs = packed;
    return n == 0 || (codec == FILE_ZSTD && ZSTD_isError(n)) ? ERR_NOMEM : 0;
}

static int pack_docs(struct worker *w, struct doc_out *docs, enum file_codec codec)
{
    if (codec == FILE_PLAIN)
        return 0;
    TRY(doc_out_join(docs));
    return pack(w, &docs->b, codec);
}

static int render_one(struct worker *w, struct slot *s, const struct item *it)
{
    const struct pass_conf *c = &w->pass->c;

    if (s->bad)
        return 0;
    if (s->v.drop)
        return c->rejects.put ? put_reject(w, s, it) : 0;
    if (c->notes.put)
        TRY(frame_put_note_of(&w->notes, s->note, &s->rest));
    for (int i = 0; i < c->n_out; i++) {
        const struct pass_out *o = &c->out[i];

        if (o->route < 1 || ((size_t)o->route <= s->note.n && s->note.p[o->route - 1]))
            TRY(o->frames ? frame_put_doc(&w->out[i], &s->d) : doc_out_put(&w->out[i], &s->d));
    }
    return 0;
}

/* The bytes of the output: in parallel, before the write gate. */
static int render(struct worker *w, struct err *e)
{
    const struct pass_conf *c = &w->pass->c;
    int rc = 0;

    for (int i = 0; i < w->block.n && rc == 0; i++)
        rc = render_one(w, &w->slot[i], &w->block.item[i]);
    for (int i = 0; i < c->n_out && rc == 0; i++)
        rc = pack_docs(w, &w->out[i], c->out[i].codec);
    if (rc == 0)
        rc = pack(w, &w->rejects, c->rejects_codec);
    return rc < 0 ? err_set(e, rc, "out of memory for the output of %d documents", w->block.n) : 0;
}

static int put(void *sink, struct span bytes, struct err *e)
{
    const struct sink *to = sink;

    return bytes.n && to->put ? to->put(to->to, bytes, e) : 0;
}

static void clear_flows(struct flows *t)
{
    for (int i = 0; i < t->n; i++)
        t->flow[i].docs_in = t->flow[i].docs_out = t->flow[i].bytes_in = t->flow[i].bytes_out = 0;
}

/* Where the next bytes of what is put aside go. */
struct aside {
    const struct spool *spool;
    struct spool_piece at;
};

static int put_aside(void *to, struct span bytes, struct err *e)
{
    struct aside *a = to;

    a->at.n = bytes.n;
    TRY(spool_write(a->spool, &a->at, bytes.p, e));
    a->at.at += bytes.n;
    return 0;
}

/* In input order. */
static int finish_block(struct worker *w, struct err *e)
{
    struct pass *p = w->pass;
    struct flows *t = p->c.flows;

    for (int i = 0; i < w->block.n; i++) {
        struct slot *s = &w->slot[i];
        if (s->bad) {
            t->bad++;
            log_skipped(s->d.file, s->d.offset, s->bad);
        } else if (s->v.drop) {
            t->dropped++;
            if (flow_count_rule(&t->flow[s->by], s->v.rule, 1) < 0)
                return err_set(e, ERR_NOMEM, "out of memory");
        }
    }
    if (flows_add(t, &w->flows) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    clear_flows(&w->flows);
    for (int i = 0; i < p->c.n_out; i++) {
        struct sink to = p->c.out[i].to;
        struct spool *spool = p->c.out[i].spool;

        TRY(spool ? spool_reserve(spool, doc_out_size(&w->out[i]), &w->piece[i], e) : doc_out_give(&w->out[i], put, &to, e));
    }
    TRY(doc_out_give(&w->notes, put, &p->c.notes, e));
    TRY(put(&p->c.rejects, buf_span(&w->rejects), e));
    if (p->c.tell)
        p->c.tell(p->c.tell_of, &(struct pass_now){w->where, w->block.first + (uint64_t)w->block.n, t});
    return 0;
}

void pass_show(void *unused, const struct pass_now *now)
{
    (void)unused;
    progress_show(&(struct progress){
        .input = now->where.input, .done = (double)now->where.consumed, .total = (double)now->where.total,
        .count = {{"read", (double)now->items}, {"dropped", (double)now->flows->dropped}, {"bad", (double)now->flows->bad}}});
}

/* ---- running ---- */

/* The next block from the feed; an empty one at the end or at the bound. */
static int take_block(struct worker *w, struct err *e)
{
    struct pass *p = w->pass;

    if (p->ended || (p->bound && p->taken >= p->bound)) {
        block_reset(&w->block);
        return 0;
    }
    p->ended = true; /* unless this goes well */
    TRY(feed_fill(p->c.feed, &w->block, e));
    feed_where(p->c.feed, &w->where);
    p->ended = w->block.n == 0;
    p->taken += w->block.weight;
    return 0;
}

/* Before a block is read: until there is room for one, or none under way.  So of very long documents few are held at a time,
 * whatever the number of threads. */
static int wait_for_room(struct pass *p)
{
    uint64_t most = (uint64_t)p->n_workers * LINES_BLOCK;
    bool failed;

    most = most > UNDER_WAY ? most : UNDER_WAY;
    pthread_mutex_lock(&p->lock);
    while (p->under_way > most && !p->failed)
        pthread_cond_wait(&p->done, &p->lock);
    failed = p->failed;
    pthread_mutex_unlock(&p->lock);
    return failed ? ERR_STOPPED : 0;
}

static void count_under_way(struct pass *p, uint64_t more, uint64_t less)
{
    pthread_mutex_lock(&p->lock);
    p->under_way += more - less;
    if (less)
        pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* The block is done with, and what long documents took is given back. */
static void end_block(struct worker *w)
{
    uint64_t weight = w->block.weight;

    block_reset(&w->block);
    for (int i = 0; i < w->pass->c.n_out; i++)
        doc_out_clear(&w->out[i], KEEP_MOST);
    buf_clear_most(&w->rejects, KEEP_MOST);
    doc_out_clear(&w->notes, KEEP_MOST);
    buf_clear_most(&w->packed, KEEP_MOST);
    if (weight > KEEP_MOST)
        mem_trim();
    count_under_way(w->pass, 0, weight);
}

/* Reads a block, in its turn. */
static int read_block(struct worker *w, struct err *e)
{
    struct pass *p = w->pass;
    uint64_t t;
    int rc;

    w->ticket = __atomic_fetch_add(&p->ticket, 1, __ATOMIC_RELAXED);
    TRY(enter(w, &p->read_gate));
    TRY(wait_for_room(p));
    t = laps_now();
    rc = take_block(w, e);
    laps_add(p->c.laps, PASS_READING, t);
    if (rc == 0 && w->block.n)
        count_under_way(p, w->block.weight, 0);
    gate_leave(&p->read_gate);
    return rc;
}

/* One block from the feed to the output.  1, 0 at the end, or a failure. */
static int one_block(struct worker *w, struct err *e)
{
    struct pass *p = w->pass;
    uint64_t t;

    TRY(read_block(w, e));
    if (w->block.n == 0)
        return 0;
    TRY(make_docs(w, e));
    for (int k = p->c.first; k < p->c.last; k++)
        TRY(run_stage(w, k, e));
    TRY(render(w, e));
    TRY(enter(w, &p->write_gate));
    t = laps_now();
    TRY(finish_block(w, e));
    laps_add(p->c.laps, PASS_WRITING, t);
    gate_leave(&p->write_gate);
    for (int i = 0; i < p->c.n_out; i++)
        if (p->c.out[i].spool)
            TRY(doc_out_give(&w->out[i], put_aside, &(struct aside){p->c.out[i].spool, w->piece[i]}, e));
    end_block(w);
    return 1;
}

static void work(void *arg, int thread)
{
    struct pass *p = arg;
    struct err e = {0};
    int rc;

    do
        rc = one_block(&p->worker[thread], &e);
    while (rc > 0);
    if (rc < 0 && rc != ERR_STOPPED)
        fail(p, &e);
}

int pass_run(struct pass *p, uint64_t bytes, struct err *e)
{
    struct err thread_error;

    gate_init(&p->read_gate);
    gate_init(&p->write_gate);
    for (int i = p->c.first; i < p->c.last; i++)
        gate_init(&p->stage_gate[i]);
    p->ticket = 0;
    p->taken = p->under_way = 0;
    p->bound = bytes;
    p->ended = false;
    p->e = e;
    if (pool_run(p->threads, work, p, &thread_error) < 0)
        log_msg(LOG_WARN, "%s; going on with fewer", thread_error.msg);
    gate_destroy(&p->read_gate);
    gate_destroy(&p->write_gate);
    for (int i = p->c.first; i < p->c.last; i++)
        gate_destroy(&p->stage_gate[i]);
    return p->failed ? p->failed : !p->ended;
}

void pass_use(struct pass *p, double threads)
{
    p->threads = threads < p->n_workers ? (int)threads : p->n_workers;
}

int pass_open(struct pass **out, const struct pass_conf *c, struct err *e)
{
    struct pass *p = calloc(1, sizeof *p);
    int rc = 0;

    *out = NULL;
    c->feed->lines.threads = c->jobs;
    if (c->feed->source && c->feed->source->ops->set_jobs)
        c->feed->source->ops->set_jobs(c->feed->source->state, c->jobs);
    if (p) {
        p->c = *c;
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->done, NULL);
        p->worker = calloc((size_t)c->jobs, sizeof *p->worker);
        p->stage_gate = calloc((size_t)c->n_stages + 1, sizeof *p->stage_gate);
    }
    if (!p || !p->worker || !p->stage_gate)
        rc = err_set(e, ERR_NOMEM, "out of memory for %d threads", c->jobs);
    while (rc == 0 && p->n_workers < c->jobs)
        rc = worker_open(&p->worker[p->n_workers++], p, e);
    if (p)
        p->threads = p->n_workers;
    if (rc < 0)
        pass_close(p);
    else
        *out = p;
    return rc;
}

void pass_close(struct pass *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_workers; i++)
        worker_close(&p->worker[i], &p->c);
    free(p->worker);
    free(p->stage_gate);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
