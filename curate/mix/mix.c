#include "curate/mix/mix.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/rng.h"
#include "curate/stream/feed.h"
#include "curate/mix/mix_out.h"
#include "curate/mix/mix_repeat.h"
#include "curate/mix/mix_sort.h"
#include "curate/mix/mix_sources.h"

/* What chance is for. */
enum { FOR_PICK = 1, FOR_ORDER = 2 };
enum { BY_POSITION, BY_ID };

struct mix {
    const struct mix_conf *c;
    struct mix_sources sources;
    struct mix_splits splits;
    struct mix_repeat repeat;
    bool count_first;
    struct spill picks;
    struct mix_sort *sort;
    struct mix_out *out;
    uint64_t placed[MIX_MAX_SPLITS]; /* records by split */
    uint64_t before; /* documents of the sources before, for input order */
    uint64_t step;   /* of keys, in input order */
    double stored;   /* bytes of all sources, as they are stored */
    double read, written; /* bytes read of the sources before, in both readings; of lines written */
    double to_write;
    uint64_t bad, docs_in, bytes_in, docs_out;
    uint64_t known; /* documents with the field to repeat by */
    double start;
    /* While a source is read. */
    struct feed feed;
    struct mix_source *source;
    bool counting;
    pthread_mutex_t lock;
    int failed;
    struct err e;
};

/* What of a document matters here. */
struct seen {
    uint64_t position, id; /* id: its hash, or the text's where there is none */
    uint64_t size, bytes, line; /* line: its bytes with the newline */
    uint64_t times;             /* that it counts and is taken for one */
    bool known;
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
    if (mix_number(raw, &v))
        return (uint64_t)v;
    err_set(e, ERR_FORMAT, "\"%s\" is no number of tokens", m->c->tokens);
    return UINT64_MAX;
}

/* ---- reading ---- */

static int see(const struct mix *m, struct doc *d, uint64_t position, struct seen *s, struct err *e)
{
    struct span id = doc_raw(d, "id");

    *s = (struct seen){.position = position, .bytes = d->text.n, .size = size_of(m, d, e)};
    if (s->size == UINT64_MAX)
        return ERR_FORMAT;
    TRY(mix_repeat_times(&m->repeat, d, &s->times, &s->known, e));
    s->id = hash_xxh3_64(id.p && !span_is(id, "null") ? d->id : d->text);
    s->split = split_of(m, s->id);
    return 0;
}

/* First reading: sizes, and a pick for each document of the first split. */
static void count_doc(struct mix *m, const struct seen *s, struct mix_source *sum, struct buf *picks, int *rc)
{
    struct mix_pick p = {chance(m, s, FOR_PICK, 0), s->times * s->size};

    if (s->split) {
        sum->held++;
        sum->held_lines += s->line;
        return;
    }
    sum->lines += s->times * s->line;
    sum->docs++;
    sum->size += s->times * s->size;
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
    if (!s->split)
        copies *= s->times;
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
        sum->size += s->split ? 0 : s->times * s->size;
        sum->bytes += s->split ? 0 : s->bytes;
    }
    __atomic_fetch_add(&m->placed[s->split], copies, __ATOMIC_RELAXED);
    return 0;
}

struct reader {
    struct feed_block block;
    struct json_reader *json;
    struct buf picks, line;
    struct mix_source sum;
    uint64_t bad, docs, bytes, known;
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
    rc = doc_parse_key(&d, r->json, it->line, m->feed.text_key, e);
    if (rc == 0)
        rc = see(m, &d, r->block.first + (uint64_t)i, &s, e);
    if (rc == ERR_FORMAT || rc == ERR_LIMIT) {
        say_bad(m, r, it, e->msg);
        return 0;
    }
    TRY(rc);
    buf_clear(&r->line);
    rc = d.line.p ? 0 : doc_write(&d, &r->line);
    s.line = d.line.p ? it->line.n + 1 : r->line.n;
    r->docs++;
    r->known += s.known;
    r->bytes += d.text.n;
    if (m->counting) {
        count_doc(m, &s, &r->sum, &r->picks, &rc);
        return rc < 0 ? err_set(e, rc, "out of memory") : 0;
    }
    if (rc < 0 || (d.line.p && (buf_put_span(&r->line, it->line) < 0 || buf_putc(&r->line, '\n') < 0)))
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

/* How far all is: the sources read once or twice, and then written. */
static void tell(const struct mix *m, const struct source_where *w)
{
    double read = m->read + (double)w->consumed, readings = m->count_first ? 2 : 1;

    progress_show(&(struct progress){.phase = m->counting ? "counting" : w->input ? "reading" : "writing", .input = w->input,
                                     .done = read + m->written,
                                     .total = m->stored > 0 ? readings * m->stored + m->to_write : 0,
                                     .count = {{"read", (double)m->docs_in}, {"written", (double)m->docs_out}}});
}

static int read_block(struct mix *m, struct reader *r, int thread, struct err *e)
{
    int rc;

    pthread_mutex_lock(&m->lock);
    rc = m->failed ? ERR_STOPPED : feed_fill(&m->feed, &r->block, e);
    if (rc == 0 && progress_due()) {
        struct source_where w;
        feed_where(&m->feed, &w);
        tell(m, &w);
    }
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
    to->lines += r->sum.lines;
    to->held_lines += r->sum.held_lines;
    to->size += r->sum.size;
    to->bytes += r->sum.bytes;
    to->taken_docs += r->sum.taken_docs;
    to->taken_size += r->sum.taken_size;
    to->taken_bytes += r->sum.taken_bytes;
    if (m->counting || !m->count_first) {
        m->bad += r->bad;
        m->docs_in += r->docs;
        m->known += r->known;
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
        m->e = e;
    }
    pthread_mutex_unlock(&m->lock);
    json_reader_free(r.json);
    block_free(&r.block);
    buf_free(&r.picks);
    buf_free(&r.line);
}

static int read_source(struct mix *m, struct mix_source *s, struct err *e)
{
    struct err unused;

    m->source = s;
    m->feed = (struct feed){.lines = {.paths = s->files, .n_paths = s->n_files, .columns = m->c->columns},
                            .text_key = m->c->text_key};
    pool_run(m->c->jobs, read_thread, m, &unused); /* fewer threads do it as well */
    m->read += (double)lines_consumed(&m->feed.lines);
    feed_close(&m->feed);
    if (m->failed && e)
        *e = m->e;
    return m->failed;
}

/* ---- room on disk ---- */

enum { PACKS = 20 }; /* what is compressed is taken to be at least 1 / PACKS of its size, so that nothing is refused in vain */

/* Bytes that are to be written into a folder, and the free ones there; free < 0: not known. */
struct room {
    const char *folder;
    double wanted, free;
    dev_t device;
};

static struct room room_in(const char *folder, double wanted, bool packed)
{
    struct room r = {folder, packed ? wanted / PACKS : wanted, -1, 0};
    struct statvfs f;
    struct stat st;

    if (statvfs(folder, &f) == 0 && stat(folder, &st) == 0) {
        r.free = (double)f.f_bavail * (double)f.f_frsize;
        r.device = st.st_dev;
    }
    return r;
}

static int check_room(const struct room *r, struct err *e)
{
    if (r->free < 0 || r->wanted <= r->free)
        return 0;
    return err_set(e, ERR_IO, "at least %.0f MB are to be written into '%s', where %.0f MB are free", r->wanted / 1e6,
                   r->folder, r->free / 1e6);
}

/* Refuses what the disk has no room for: the output, and beside it what does not fit into memory. */
static int check_space(const struct mix *m, double lines, struct err *e)
{
    const char *name = m->c->output, *slash = name ? strrchr(name, '/') : NULL;
    struct room out = {.free = -1}, tmp = {.free = -1};
    char folder[4096];
    struct stat st;

    if (lines > (double)m->c->memory)
        tmp = room_in(spill_folder(m->c->tmp), lines - (double)m->c->memory, m->c->compress_tmp);
    if (name && strcmp(name, "-") != 0 && (stat(name, &st) < 0 || S_ISREG(st.st_mode))) {
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - name) + 1 : 1, slash ? name : ".");
        out = room_in(folder, lines, file_codec_by_name(name) != FILE_PLAIN);
    }
    if (out.free >= 0 && tmp.free >= 0 && out.device == tmp.device)
        out.wanted += tmp.wanted;
    TRY(check_room(&out, e));
    return check_room(&tmp, e);
}

/* Bytes of all lines that will be written. */
static double bytes_to_write(const struct mix_sources *s)
{
    double sum = 0;

    for (int i = 0; i < s->n; i++) {
        const struct mix_source *v = &s->v[i];
        sum += (double)v->held_lines + (v->size ? (double)v->lines * (v->target / (double)v->size) : 0);
    }
    return sum;
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
    m->to_write = bytes_to_write(&m->sources);
    TRY(check_space(m, m->to_write, e));
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
    m->written += (double)line.n;
    if (m->docs_out % 1024 == 0)
        tell(m, &(struct source_where){0});
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

/* What the plan of the sources and the names of the shards come to. */
static int account(struct mix *m, const struct mix_out_conf *out, struct err *e)
{
    struct run_files *files = m->c->files;

    for (int i = 0; files && m->c->plan && i < m->sources.n; i++)
        for (int k = 0; k < m->sources.v[i].n_files; k++)
            TRY(run_reads(files, m->c->plan, m->sources.v[i].files[k], e));
    if (!files)
        return 0;
    TRY(mix_out_names(out, files, e));
    return run_files_check(files, e);
}

/* Everything that can be wrong before any work. */
static int prepare(struct mix *m, struct err *e)
{
    const struct mix_conf *c = m->c;
    struct mix_out_conf out = {c->output, &m->splits, c->shards, c->shard_size};

    file_set_row_group(c->row_group);
    TRY(mix_splits_parse(&m->splits, c->split, e));
    TRY(mix_repeat_parse(&m->repeat, c->repeat_by, c->repeat, e));
    TRY(mix_out_open(&m->out, &out, e));
    TRY(mix_sources_read(&m->sources, c, e));
    TRY(account(m, &out, e));
    m->count_first = c->budget > 0 || c->by == MIX_EPOCHS || c->order || m->sources.n > 1;
    if (c->budget > 0 && c->by == MIX_EPOCHS)
        return err_set(e, ERR_ARG, "epochs say how much is taken: they leave nothing to a budget");
    for (int i = 0; i < m->sources.n; i++) {
        struct mix_source *s = &m->sources.v[i];
        struct feed f = {.lines = {.paths = s->files, .n_paths = s->n_files}};
        for (int k = 0; k < s->n_files; k++)
            if (m->count_first && lines_is_pipe(s->files[k]))
                return err_set(e, ERR_ARG, "weights, a budget and input order need the sources twice: "
                                           "'%s' can be read only once", s->files[k]);
        TRY(feed_check(&f, e));
        m->stored += (double)f.size;
    }
    m->to_write = m->stored; /* until it is known what is taken */
    return m->count_first ? 0 : check_space(m, m->to_write, e);
}

static int run(struct mix *m, struct err *e)
{
    TRY(prepare(m, e));
    if (m->count_first)
        TRY(count_sources(m, e));
    TRY(place_sources(m, e));
    if (m->docs_in == 0 && m->bad)
        return err_set(e, ERR_FORMAT, "none of %" PRIu64 " records is a document: nothing is written", m->bad);
    if (m->repeat.field && !m->known && m->docs_in)
        log_msg(LOG_WARN, "no document has \"%s\": none is repeated by it", m->repeat.field);
    mix_out_expect(m->out, m->placed);
    TRY(mix_sort_each(m->sort, put_out, m, e));
    TRY(mix_out_finish(m->out, e));
    tell(m, &(struct source_where){0});
    return m->c->stats ? write_stats(m, e) : 0;
}

void mix_conf_init(struct mix_conf *c)
{
    *c = (struct mix_conf){.bytes_per_token = 4, .max_epochs = 4, .memory = (int64_t)1 << 30, .jobs = 1};
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
