#include "curate/mix/mix.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/rng.h"
#include "curate/stream/feed.h"
#include "curate/mix/mix_out.h"
#include "curate/mix/mix_sort.h"
#include "curate/mix/mix_sources.h"

/* What chance is for. */
enum { FOR_PICK = 1, FOR_ORDER = 2 };
enum { BY_POSITION, BY_ID };

struct mix {
    const struct mix_conf *c;
    struct mix_sources sources;
    struct mix_splits splits;
    bool count_first;
    struct spill picks;
    struct mix_sort *sort;
    struct mix_out *out;
    uint64_t placed[MIX_MAX_SPLITS]; /* records by split */
    uint64_t before; /* documents of the sources before, for input order */
    uint64_t step;   /* of keys, in input order */
    uint64_t bad, docs_in, bytes_in, docs_out;
    double start;
    /* While a source is read. */
    struct feed feed;
    struct mix_source *source;
    bool counting;
    pthread_mutex_t lock;
    int failed;
    struct err *e;
};

/* What of a document matters here. */
struct seen {
    uint64_t position, id; /* id: its hash, or the text's where there is none */
    uint64_t size, bytes;
    int split;
};

/* ---- chance ---- */

static uint64_t chance(const struct mix *m, const struct seen *d, int purpose, uint64_t epoch)
{
    uint64_t source = (uint64_t)(m->source - m->sources.v);
    uint64_t lo = m->c->key == BY_ID ? d->id : d->position;
    uint32_t w[4];

    rng_philox((uint64_t)m->c->seed, lo, (uint64_t)purpose << 56 | source << 32 | (epoch & UINT32_MAX), w);
    return (uint64_t)w[0] << 32 | w[1];
}

/* The first split is the one that is blended; by id, so that a document stays in its split
 * when the corpus grows. */
static int split_of(const struct mix *m, uint64_t id)
{
    uint64_t h = hash_mix64(id ^ hash_mix64((uint64_t)m->c->split_seed + 1));

    return mix_splits_at(&m->splits, (double)(h >> 11) * 0x1p-53);
}

static uint64_t size_of(const struct mix *m, struct doc *d, struct err *e)
{
    struct span raw = m->c->tokens && *m->c->tokens ? doc_raw(d, m->c->tokens) : (struct span){0};
    char number[32], *end;
    double v;

    if (m->c->unit == MIX_DOCUMENTS)
        return 1;
    if (m->c->unit == MIX_BYTES)
        return d->text.n;
    if (!raw.p) {
        if (!m->c->tokens)
            return (uint64_t)ceil((double)d->text.n / m->c->bytes_per_token);
        err_set(e, ERR_FORMAT, "no \"%s\" in the document", m->c->tokens);
        return UINT64_MAX;
    }
    if (raw.n < sizeof number) {
        memcpy(number, raw.p, raw.n);
        number[raw.n] = '\0';
        v = strtod(number, &end);
        if (end == number + raw.n && v >= 0 && v < 1e15)
            return (uint64_t)v;
    }
    err_set(e, ERR_FORMAT, "\"%s\" is no number of tokens", m->c->tokens);
    return UINT64_MAX;
}

/* ---- reading ---- */

static int see(const struct mix *m, struct doc *d, uint64_t position, struct seen *s, struct err *e)
{
    *s = (struct seen){.position = position, .bytes = d->text.n, .size = size_of(m, d, e)};
    if (s->size == UINT64_MAX)
        return ERR_FORMAT;
    s->id = hash_xxh3_64(doc_raw(d, "id").p ? d->id : d->text);
    s->split = split_of(m, s->id);
    return 0;
}

/* First reading: sizes, and a pick for each document of the first split. */
static void count_doc(struct mix *m, const struct seen *s, struct mix_source *sum, struct buf *picks, int *rc)
{
    struct mix_pick p = {chance(m, s, FOR_PICK, 0), s->size};

    if (s->split) {
        sum->held++;
        return;
    }
    sum->docs++;
    sum->size += s->size;
    sum->bytes += s->bytes;
    if (buf_put(picks, &p, sizeof p) < 0)
        *rc = ERR_NOMEM;
}

/* Second reading, or the only one: every copy of the document that is taken. */
static int place_doc(struct mix *m, int thread, const struct seen *s, struct span line, struct mix_source *sum,
                     struct err *e)
{
    uint64_t copies = 1;
    struct mix_record r = {.place = (uint64_t)(m->source - m->sources.v) << 48 | s->position,
                           .split = (uint32_t)s->split, .n = line.n};

    if (!s->split && m->count_first)
        copies = m->source->epochs + (chance(m, s, FOR_PICK, 0) < m->source->below);
    for (uint64_t k = 0; k < copies; k++) {
        r.epoch = (uint32_t)k;
        r.key = m->step ? (m->before + s->position) * m->step : chance(m, s, FOR_ORDER, k);
        TRY(mix_sort_put(m->sort, thread, &r, line.p, e));
    }
    if (!s->split) {
        sum->taken_docs += copies;
        sum->taken_size += copies * s->size;
        sum->taken_bytes += copies * s->bytes;
    }
    if (!m->count_first) {
        sum->docs += !s->split;
        sum->held += s->split != 0;
        sum->size += s->split ? 0 : s->size;
        sum->bytes += s->split ? 0 : s->bytes;
    }
    __atomic_fetch_add(&m->placed[s->split], copies, __ATOMIC_RELAXED);
    return 0;
}

struct reader {
    struct block block;
    struct json_reader *json;
    struct buf picks, line;
    struct mix_source sum;
    uint64_t bad, docs, bytes;
};

static void say_bad(struct mix *m, struct reader *r, const struct item *it, const char *why)
{
    r->bad++;
    if (m->counting || !m->count_first)
        log_skipped(it->file, it->offset, why);
}

static int read_item(struct mix *m, struct reader *r, int thread, int i, struct err *e)
{
    const struct item *it = &r->block.item[i];
    struct doc d;
    struct seen s = {0};
    int rc;

    if (it->bad) {
        say_bad(m, r, it, it->bad);
        return 0;
    }
    doc_init(&d, &r->block.arena);
    d.file = it->file;
    d.offset = it->offset;
    rc = doc_parse(&d, r->json, it->line, e);
    if (rc == 0)
        rc = see(m, &d, r->block.first + (uint64_t)i, &s, e);
    if (rc == ERR_FORMAT || rc == ERR_LIMIT) {
        say_bad(m, r, it, e->msg);
        return 0;
    }
    TRY(rc);
    r->docs++;
    r->bytes += d.text.n;
    if (m->counting) {
        count_doc(m, &s, &r->sum, &r->picks, &rc);
        return rc < 0 ? err_set(e, rc, "out of memory") : 0;
    }
    buf_clear(&r->line);
    if (buf_put_span(&r->line, it->line) < 0 || buf_putc(&r->line, '\n') < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a line");
    return place_doc(m, thread, &s, buf_span(&r->line), &r->sum, e);
}

static int flush_picks(struct mix *m, struct reader *r, struct err *e)
{
    uint64_t at = __atomic_fetch_add(&m->source->end, r->picks.n, __ATOMIC_RELAXED);
    int rc = r->picks.n ? spill_write(&m->picks, at, r->picks.p, r->picks.n, e) : 0;

    buf_clear(&r->picks);
    return rc;
}

static int read_block(struct mix *m, struct reader *r, int thread, struct err *e)
{
    int rc;

    pthread_mutex_lock(&m->lock);
    rc = m->failed ? ERR_STOPPED : feed_fill(&m->feed, &r->block, e);
    pthread_mutex_unlock(&m->lock);
    TRY(rc);
    for (int i = 0; i < r->block.n; i++)
        TRY(read_item(m, r, thread, i, e));
    if (m->counting)
        TRY(flush_picks(m, r, e));
    return r->block.n;
}

/* Adds what a thread has seen. */
static void add_sums(struct mix *m, const struct reader *r)
{
    struct mix_source *to = m->source;

    to->docs += r->sum.docs;
    to->held += r->sum.held;
    to->size += r->sum.size;
    to->bytes += r->sum.bytes;
    to->taken_docs += r->sum.taken_docs;
    to->taken_size += r->sum.taken_size;
    to->taken_bytes += r->sum.taken_bytes;
    if (m->counting || !m->count_first) {
        m->bad += r->bad;
        m->docs_in += r->docs;
        m->bytes_in += r->bytes;
    }
}

static void read_thread(void *arg, int thread)
{
    struct mix *m = arg;
    struct reader r = {.json = json_reader_new()};
    struct err e = {0};
    int rc = r.json ? 1 : err_set(&e, ERR_NOMEM, "out of memory for a thread");

    while (rc > 0)
        rc = read_block(m, &r, thread, &e);
    pthread_mutex_lock(&m->lock);
    add_sums(m, &r);
    if (rc < 0 && rc != ERR_STOPPED && !m->failed) {
        m->failed = rc;
        *m->e = e;
    }
    pthread_mutex_unlock(&m->lock);
    json_reader_free(r.json);
    block_free(&r.block);
    buf_free(&r.picks);
    buf_free(&r.line);
}

static int read_source(struct mix *m, struct mix_source *s, struct err *e)
{
    struct err own = {0}, unused;

    m->source = s;
    m->e = &own;
    m->feed = (struct feed){.inputs = s->files, .n_inputs = s->n_files};
    pool_run(m->c->jobs, read_thread, m, &unused); /* fewer threads do it as well */
    feed_close(&m->feed);
    log_progress("%.1f MB read, %.1f MB/s", (double)m->bytes_in / 1e6,
                 (double)m->bytes_in / 1e6 / (log_seconds() - m->start + 1e-9));
    if (m->failed && e)
        *e = own;
    return m->failed;
}

/* ---- the whole ---- */

static int count_sources(struct mix *m, struct err *e)
{
    uint64_t at = 0, docs;

    TRY(spill_open(&m->picks, m->c->tmp, 1, e));
    m->counting = true;
    for (int i = 0; i < m->sources.n; i++) {
        m->sources.v[i].begin = m->sources.v[i].end = at;
        TRY(read_source(m, &m->sources.v[i], e));
        at = m->sources.v[i].end;
    }
    m->counting = false;
    TRY(mix_sources_decide(&m->sources, m->c, &m->picks, e));
    docs = m->docs_in + m->bad + 1;
    m->step = m->c->order ? UINT64_MAX / docs : 0;
    return 0;
}

static int place_sources(struct mix *m, struct err *e)
{
    TRY(mix_sort_open(&m->sort, m->c->tmp, (uint64_t)m->c->memory, m->c->jobs, m->c->compress_tmp, e));
    for (int i = 0; i < m->sources.n; i++) {
        TRY(read_source(m, &m->sources.v[i], e));
        m->before += m->feed.count;
    }
    return 0;
}

static int put_out(void *arg, const struct mix_record *r, struct span line, struct err *e)
{
    struct mix *m = arg;

    m->docs_out++;
    if (m->docs_out % 4096 == 0)
        log_progress("%" PRIu64 " written", m->docs_out);
    return mix_out_put(m->out, (int)r->split, line, e);
}

static int put_source(struct buf *b, const struct mix *m, const struct mix_source *s)
{
    TRY(buf_putc(b, '{'));
    TRY(json_put_key(b, "name"));
    TRY(json_put_string(b, s->name));
    TRY(json_put_key(b, "weight"));
    TRY(json_put_num(b, s->weight));
    TRY(json_put_count(b, "documents", s->docs));
    TRY(json_put_count(b, "bytes", s->bytes));
    TRY(json_put_count(b, "size", s->size));
    TRY(json_put_count(b, "held_out", s->held));
    if (m->count_first) {
        TRY(json_put_key(b, "target"));
        TRY(json_put_num(b, s->target));
    }
    TRY(json_put_count(b, "taken_documents", s->taken_docs));
    TRY(json_put_count(b, "taken_bytes", s->taken_bytes));
    TRY(json_put_count(b, "taken_size", s->taken_size));
    TRY(json_put_key(b, "epochs"));
    TRY(json_put_num(b, s->size ? (double)s->taken_size / (double)s->size : 0));
    return buf_putc(b, '}');
}

static int put_stats(struct buf *b, const struct mix *m)
{
    static const char *const units[] = {"bytes", "tokens", "documents"};

    TRY(buf_puts(b, "{\"unit\":"));
    TRY(json_put_string(b, span_of(units[m->c->unit])));
    TRY(json_put_count(b, "seed", (uint64_t)m->c->seed));
    TRY(json_put_count(b, "documents_in", m->docs_in));
    TRY(json_put_count(b, "bad", m->bad));
    TRY(json_put_count(b, "documents_out", m->docs_out));
    TRY(json_put_key(b, "sources"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < m->sources.n; i++) {
        TRY(i ? buf_putc(b, ',') : 0);
        TRY(put_source(b, m, &m->sources.v[i]));
    }
    TRY(buf_puts(b, "],\"files\":"));
    TRY(mix_out_list(m->out, b));
    return buf_puts(b, "}\n");
}

static int write_stats(const struct mix *m, struct err *e)
{
    struct buf b = {0};
    int rc = put_stats(&b, m);

    if (rc < 0)
        err_set(e, rc, "out of memory for the statistics");
    else
        rc = file_write_all(m->c->stats, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* Everything that can be wrong before any work. */
static int prepare(struct mix *m, struct err *e)
{
    const struct mix_conf *c = m->c;
    struct mix_out_conf out = {c->output, &m->splits, c->shards, c->shard_size};

    TRY(mix_splits_parse(&m->splits, c->split, e));
    TRY(mix_out_open(&m->out, &out, e));
    TRY(mix_sources_read(&m->sources, c, e));
    m->count_first = c->budget > 0 || c->by == MIX_EPOCHS || c->order || m->sources.n > 1;
    if (c->budget > 0 && c->by == MIX_EPOCHS)
        return err_set(e, ERR_ARG, "epochs say how much is taken: they leave nothing to a budget");
    for (int i = 0; i < m->sources.n; i++) {
        struct mix_source *s = &m->sources.v[i];
        struct feed f = {.inputs = s->files, .n_inputs = s->n_files};
        for (int k = 0; k < s->n_files; k++)
            if (m->count_first && feed_is_pipe(s->files[k]))
                return err_set(e, ERR_ARG, "weights, a budget and input order need the sources twice: "
                                           "'%s' can be read only once", s->files[k]);
        TRY(feed_check(&f, e));
    }
    return 0;
}

static int run(struct mix *m, struct err *e)
{
    TRY(prepare(m, e));
    if (m->count_first)
        TRY(count_sources(m, e));
    TRY(place_sources(m, e));
    mix_out_expect(m->out, m->placed);
    TRY(mix_sort_each(m->sort, put_out, m, e));
    TRY(mix_out_finish(m->out, e));
    return m->c->stats ? write_stats(m, e) : 0;
}

void mix_conf_init(struct mix_conf *c)
{
    *c = (struct mix_conf){.bytes_per_token = 4, .memory = (int64_t)1 << 30, .jobs = 1};
}

int mix_run(const struct mix_conf *c, struct mix_result *res, struct err *e)
{
    struct mix m = {.c = c, .start = log_seconds(), .picks = {.fd = -1}};
    int rc;

    pthread_mutex_init(&m.lock, NULL);
    rc = run(&m, e);
    *res = (struct mix_result){.docs_in = m.docs_in, .docs_out = m.docs_out, .bad = m.bad, .bytes_in = m.bytes_in,
                               .spilled = m.sort ? mix_sort_spilled(m.sort) : 0, .seconds = log_seconds() - m.start};
    mix_sort_close(m.sort);
    mix_out_close(m.out);
    spill_close(&m.picks);
    mix_sources_free(&m.sources);
    pthread_mutex_destroy(&m.lock);
    return rc;
}
