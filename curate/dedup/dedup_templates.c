#include "curate/dedup/dedup_templates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/dedup_note.h"
#include "curate/dedup/dedup_template_list.h"
#include "curate/dedup/dedup_text.h"
#include "curate/dedup/dedup_units.h"
#include "curate/dedup/rank_links.h"
#include "curate/stream/rank_exchange.h"

/* Bytes read at a time; of a bound on memory, what is for counting, and for buffers of files. */
enum { READ = 1 << 18, COUNTING = 2, BUFFERS = 16 };

/* Lines are numbered in the order of the documents; those that came to a rank to be counted there, in the order of the ranks. */
struct templates {
    struct comm *c; /* NULL: this process is alone */
    const char *dir, *path; /* path: of the report; NULL: none */
    bool whole;             /* texts are asked for after lines were left out */
    int64_t memory;
    uint32_t least;            /* documents that have a line of a template */
    struct dedup_units *units; /* the lines that are counted here */
    struct spill docs;         /* struct lines of each document */
    struct spill_reader docs_in;
    struct rank_files out; /* lines, to the rank that counts them; alone: for the report */
    uint64_t own;          /* lines of this rank's documents */
    uint64_t doc, *doc_to; /* documents so far; of ranks: that of the last line that went to each */
    struct spill_map bits; /* of ranks: which of these are of a template */
    uint64_t read;         /*   up to there */
    struct members found;  /* lines of templates: the number of the first of each, and how many documents have it */
    struct { uint64_t lines, of_templates, templates; } count;
    struct file_group files;
};

/* Of a document: how many lines it has, and how many of these are counted. */
struct lines {
    uint32_t all, counted;
};

/* ---- notes ---- */

struct thread {
    struct dedup_noter noter; /* first */
    bool forms;               /* simplified lines are noted too, for a report */
};

static int templates_thread_open(void *stage, void **thread, struct err *e)
{
    const struct templates *t = stage;

    TRY(dedup_noter_open(thread, sizeof(struct thread), t->dir, e));
    ((struct thread *)*thread)->forms = t->path;
    return 0;
}

/* A line in a note: its key, as dedup_text_keys gives it; for a report the length and bytes of the simplified text of one that
 * is counted. */
static int note_line(void *thread, const struct hash128 *key, struct span form, struct err *e)
{
    struct thread *w = thread;
    uint64_t n = form.n;

    TRY(dedup_note_put(&w->noter.note, key, sizeof *key, e));
    if (!w->forms || !key->hi)
        return 0;
    TRY(dedup_note_put(&w->noter.note, &n, sizeof n, e));
    return dedup_note_put(&w->noter.note, form.p, form.n, e);
}

static int templates_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct thread *w = thread;
    struct dedup_keys keys = {DEDUP_LINE, DEDUP_SIMPLE, 1, 1, w->forms, note_line, w};

    (void)stage, (void)v;
    dedup_note_begin(&w->noter.note, d);
    TRY(dedup_text_keys(&w->noter.text, d->text, &keys, e));
    return dedup_note_end(&w->noter.note, d->arena, note, e);
}

/* ---- one after the other ---- */

/* In the number of a line that is counted elsewhere: it is the first of its document that goes there. */
#define OTHER_DOC (UINT64_C(1) << 63)

/* A line that is counted, as a parcel: its number, its key and its simplified text, of which n bytes are next in the note. */
static int put_line(struct templates *t, int to, const struct hash128 *key, struct dedup_note_reader *r, uint64_t n,
                    struct err *e)
{
    struct parcel h = {t->own | (t->c && t->doc_to[to] != t->doc ? OTHER_DOC : 0), sizeof *key + n};
    char bytes[4096];

    if (t->c)
        t->doc_to[to] = t->doc;
    TRY(spill_put(&t->out.file[to], &h, sizeof h, e));
    TRY(spill_put(&t->out.file[to], key, sizeof *key, e));
    for (size_t got; n; n -= got) {
        TRY(dedup_note_next(r, bytes, n < sizeof bytes ? n : sizeof bytes, &got, e));
        if (!got)
            return err_set(e, ERR_IO, "a note is cut off");
        TRY(spill_put(&t->out.file[to], bytes, got, e));
    }
    return 0;
}

/* A line that is counted, and the rest of it in the note. */
static int add_line(struct templates *t, const struct hash128 *key, struct dedup_note_reader *r, struct err *e)
{
    uint64_t n = 0;
    size_t got;

    if (t->path)
        TRY(dedup_note_next(r, &n, sizeof n, &got, e));
    if (t->c)
        return put_line(t, rank_key_owner(t->c, hash_mix64(key->lo)), key, r, n, e);
    TRY(dedup_units_add(t->units, *key, e));
    return t->path ? put_line(t, 0, key, r, n, e) : 0;
}

/* The lines of a note. */
static int add_lines(struct templates *t, struct dedup_note_reader *r, struct lines *lines, struct err *e)
{
    struct hash128 key;
    size_t got;

    for (;; t->own++, lines->all++) {
        TRY(dedup_note_next(r, &key, sizeof key, &got, e));
        if (got < sizeof key)
            return 0;
        lines->counted += key.hi != 0;
        if (key.hi)
            TRY(add_line(t, &key, r, e));
        else if (!t->c)
            TRY(dedup_units_add_unmarked(t->units, e));
    }
}

static int templates_commit_long(void *stage, struct span note, const struct spill_part *rest, struct verdict *v,
                                 struct span *reply, struct arena *a, struct err *e)
{
    struct templates *t = stage;
    struct dedup_note_reader r;
    struct lines lines = {0};
    int rc = dedup_note_open(&r, note, rest, e);

    (void)v, (void)reply, (void)a;
    t->doc++;
    dedup_units_next_doc(t->units);
    if (rc == 0)
        rc = add_lines(t, &r, &lines, e);
    dedup_note_reader_close(&r);
    return rc < 0 ? rc : spill_put(&t->docs, &lines, sizeof lines, e);
}

static int templates_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    return templates_commit_long(stage, note, NULL, v, reply, a, e);
}

/* ---- counting ---- */

static int take_found(void *to, uint64_t line, uint32_t docs, struct err *e)
{
    struct templates *t = to;
    struct member m = member_of_pair(line, docs);

    t->count.of_templates += docs;
    t->count.templates++;
    return t->path ? members_add(&t->found, &m, e) : 0;
}

static int count_lines(struct templates *t, int jobs, struct err *e)
{
    dedup_units_tell(t->units, take_found, t);
    TRY(dedup_units_resolve(t->units, DEDUP_DOCS_NONE, t->least - 1, jobs, e));
    t->count.lines = dedup_units_counted(t->units);
    return 0;
}

/* What is done with each line that is counted here: its number on the rank from which it came, its key and text. */
typedef int line_fn(struct templates *t, int from, const struct parcel *h, struct span line, void *arg, struct err *e);

static int each_line(struct templates *t, const struct rank_files *in, line_fn *fn, void *arg, struct err *e)
{
    int rc = 0;

    for (int r = 0; r < in->n && rc == 0; r++) {
        struct parcels p = {0};
        struct parcel h;
        uint64_t left = in->file[r].size;

        rc = spill_reader_open(&p.in, &in->file[r], 0, left, READ, e);
        for (; left && rc == 0; left -= sizeof h + h.n) {
            rc = parcel_next(&p, &h, e);
            if (rc < 0)
                break;
            rc = fn(t, r, &h, buf_span(&p.note), arg, e);
        }
        parcels_close(&p);
    }
    return rc;
}

static int take_line(struct templates *t, int from, const struct parcel *h, struct span line, void *arg, struct err *e)
{
    struct hash128 key;

    (void)from, (void)arg;
    memcpy(&key, line.p, sizeof key);
    if (h->number & OTHER_DOC)
        dedup_units_next_doc(t->units);
    return dedup_units_add(t->units, key, e);
}

/* Numbers of lines of templates, back to where they came from. */
static int put_answer(struct templates *t, int from, const struct parcel *h, struct span line, void *arg, struct err *e)
{
    struct rank_files *back = arg;
    uint64_t number = h->number & ~OTHER_DOC;
    uint8_t mark;

    (void)line;
    dedup_units_next(t->units, 1, &mark);
    return mark ? spill_put(&back->file[from], &number, sizeof number, e) : 0;
}

static int take_answers(void *to, int from, struct span bytes, struct err *e)
{
    struct templates *t = to;

    (void)from, (void)e;
    for (size_t i = 0; i + sizeof(uint64_t) <= bytes.n; i += sizeof(uint64_t)) {
        uint64_t line;

        memcpy(&line, bytes.p + i, sizeof line);
        t->bits.p[line / 8] |= (unsigned char)(1u << (line & 7));
    }
    return 0;
}

static int answer(struct templates *t, const struct rank_files *in, struct err *e)
{
    struct rank_files back;
    uint64_t sent = 0;
    int rc = rank_files_open(&back, t->c, t->dir, t->memory / BUFFERS, e);

    if (rc == 0)
        rc = each_line(t, in, put_answer, &back, e);
    if (rc == 0)
        rc = rank_files_flush(&back, e);
    if (rc == 0)
        rc = spill_map_open(&t->bits, t->dir, (size_t)(t->own / 8 + 1), e);
    if (rc == 0)
        rc = rank_meet(t->c, e);
    if (rc == 0)
        rc = rank_exchange(t->c, &back, t->memory / BUFFERS, take_answers, t, &sent, e);
    rank_files_close(&back);
    return rc;
}

/* Leaves in `in` the lines that are counted on this rank. */
static int count_with_ranks(struct templates *t, struct rank_files *in, int jobs, struct err *e)
{
    uint64_t sent = 0;

    TRY(rank_meet(t->c, e));
    TRY(rank_files_open(in, t->c, t->dir, t->memory / BUFFERS, e));
    TRY(rank_exchange_files(t->c, &t->out, in, t->memory / BUFFERS, &sent, e));
    TRY(each_line(t, in, take_line, NULL, e));
    TRY(count_lines(t, jobs, e));
    TRY(rank_meet(t->c, e));
    TRY(answer(t, in, e));
    return comm_all_reduce(t->c, &t->count, sizeof t->count / sizeof(uint64_t), COMM_I64, COMM_SUM, e);
}

/* ---- the report ---- */

/* Lines of templates among all that are counted here, on their way into a list. */
struct listing {
    struct template_list list;
    uint64_t line, at; /* of ranks: the next line; of those found the next one */
    struct member next;
};

static int list_line(struct templates *t, int from, const struct parcel *h, struct span line, void *arg, struct err *e)
{
    struct listing *l = arg;
    uint64_t number = t->c ? l->line++ : h->number;

    (void)from;
    if (l->at == t->found.n || number != member_first(&l->next))
        return 0;
    line = (struct span){line.p + sizeof(struct hash128), line.n - sizeof(struct hash128)};
    TRY(template_list_add(&l->list, member_second(&l->next), line, e));
    return ++l->at < t->found.n ? members_get(&t->found, l->at, 1, &l->next, e) : 0;
}

static int list_lines(struct templates *t, const struct rank_files *in, struct listing *l, struct err *e)
{
    TRY(members_sort(&t->found, e));
    if (!t->found.n)
        return 0;
    TRY(members_get(&t->found, 0, 1, &l->next, e));
    return each_line(t, in, list_line, l, e);
}

/* The report, and a line of it. */
struct written {
    struct file_out *out;
    struct buf b;
};

static int put_json(struct buf *b, uint64_t docs, struct span line)
{
    TRY(buf_printf(b, "{\"documents\":%" PRIu64 ",\"line\":", docs));
    TRY(json_put_string(b, line));
    return buf_puts(b, "}\n");
}

static int write_line(void *to, uint64_t docs, struct span line, struct err *e)
{
    struct written *w = to;

    buf_clear(&w->b);
    if (put_json(&w->b, docs, line) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a line of %zu bytes", line.n);
    return file_write(w->out, w->b.p, w->b.n, e);
}

static int send_line(void *to, uint64_t docs, struct span line, struct err *e)
{
    return parcel_put(to, docs, line, e);
}

/* Where this rank writes: the lists of all ranks, in order. */
static int write_merged(const struct templates *t, const struct rank_files *in, struct written *w, struct err *e)
{
    struct template_run *run = calloc((size_t)in->n, sizeof *run);
    int rc = run ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d ranks", in->n);

    for (int r = 0; r < in->n && rc == 0; r++)
        run[r] = (struct template_run){&in->file[r], 0, in->file[r].size};
    if (rc == 0)
        rc = template_merge(run, (size_t)in->n, t->memory / BUFFERS, write_line, w, e);
    free(run);
    return rc;
}

/* The lists of all ranks to the first one, which writes. */
static int write_with_ranks(struct templates *t, struct listing *l, struct written *w, struct err *e)
{
    struct rank_files out, in = {0};
    uint64_t sent = 0;
    int rc = rank_files_open(&out, t->c, t->dir, t->memory / BUFFERS, e);

    if (rc == 0)
        rc = template_list_give(&l->list, send_line, &out.file[0], e);
    if (rc == 0)
        rc = rank_files_flush(&out, e);
    if (rc == 0)
        rc = rank_meet(t->c, e);
    if (rc == 0)
        rc = rank_files_open(&in, t->c, t->dir, t->memory / BUFFERS, e);
    if (rc == 0)
        rc = rank_exchange_files(t->c, &out, &in, t->memory / BUFFERS, &sent, e);
    if (rc == 0 && w->out)
        rc = write_merged(t, &in, w, e);
    rank_files_close(&out);
    rank_files_close(&in);
    return rc;
}

static int write_report(struct templates *t, const struct rank_files *in, struct err *e)
{
    struct listing l = {0};
    struct written w = {0};
    int rc = template_list_open(&l.list, t->memory / COUNTING, t->dir, e);

    if (rc == 0)
        rc = list_lines(t, in, &l, e);
    if (rc == 0 && (!t->c || !t->c->rank))
        rc = file_create(&w.out, t->path, 0, e);
    if (rc == 0)
        rc = t->c ? write_with_ranks(t, &l, &w, e) : template_list_give(&l.list, write_line, &w, e);
    template_list_close(&l.list);
    buf_free(&w.b);
    if (rc == 0 && w.out)
        return file_group_add(&t->files, w.out, e);
    file_abort(w.out);
    return rc;
}

/* ---- the end of the pass ---- */

static int templates_resolve(void *stage, int jobs, struct err *e)
{
    struct templates *t = stage;
    struct rank_files in = {0};
    int rc;

    TRY(rank_files_flush(&t->out, e));
    rc = t->c ? count_with_ranks(t, &in, jobs, e) : count_lines(t, jobs, e);
    if (rc == 0 && t->path)
        rc = write_report(t, t->c ? &in : &t->out, e);
    rank_files_close(&in);
    rank_files_close(&t->out);
    members_close(&t->found);
    TRY(rc);
    TRY(spill_flush(&t->docs, e));
    return spill_reader_open(&t->docs_in, &t->docs, 0, t->docs.size, READ, e);
}

static int templates_finish(void *stage, struct file_group *files, struct err *e)
{
    struct templates *t = stage;

    return file_group_join(files, &t->files, e);
}

/* Which of the next n lines of this rank's documents are of a template. */
static void next_marks(struct templates *t, size_t n, uint8_t *mark)
{
    if (!t->c)
        dedup_units_next(t->units, n, mark);
    for (size_t i = 0; i < n && t->c; i++, t->read++)
        mark[i] = t->bits.p[t->read / 8] >> (t->read & 7) & 1;
}

/* The reply: a byte for each line, 1 if it is left out.  None if there is no such line, or no other. */
static int templates_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct templates *t = stage;
    struct lines lines;
    uint32_t out = 0;
    uint8_t *mark;

    (void)n, (void)v;
    TRY(spill_next(&t->docs_in, &lines, sizeof lines, e));
    mark = arena_alloc(a, lines.all + 1u);
    if (!mark)
        return err_set(e, ERR_NOMEM, "out of memory for %u lines of a text", lines.all);
    next_marks(t, lines.all, mark);
    for (uint32_t i = 0; i < lines.all; i++)
        out += mark[i];
    if (out && out < lines.counted)
        *reply = (struct span){(const char *)mark, lines.all};
    return 0;
}

static int templates_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    const struct templates *t = stage;
    struct thread *w = thread;
    struct dedup_strike strike = {DEDUP_LINE, 1, reply};
    char *to = t->whole ? arena_alloc(d->arena, d->text.n) : doc_text_bytes(d);
    uint64_t struck;
    size_t n;

    (void)v;
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", d->text.n);
    TRY(dedup_text_strike(&w->noter.text, d->text, &strike, to, &n, &struck, e));
    d->compared = (struct span){to, n};
    return 0;
}

static int templates_stats(void *stage, struct buf *json)
{
    const struct templates *t = stage;

    TRY(json_put_count(json, "lines", t->count.lines));
    TRY(json_put_count(json, "lines_of_templates", t->count.of_templates));
    return json_put_count(json, "template_lines", t->count.templates);
}

static void templates_close(void *stage)
{
    struct templates *t = stage;

    if (!t)
        return;
    dedup_units_close(t->units);
    spill_reader_close(&t->docs_in);
    spill_close(&t->docs);
    rank_files_close(&t->out);
    spill_map_close(&t->bits);
    free(t->doc_to);
    members_close(&t->found);
    file_group_abort(&t->files);
    free(t);
}

static const struct stage_ops templates_ops = {
    .name = "dedup templates",
    .thread_open = templates_thread_open,
    .thread_close = dedup_noter_close,
    .work = templates_work,
    .commit = templates_commit,
    .commit_long = templates_commit_long,
    .resolve = templates_resolve,
    .judge = templates_judge,
    .apply = templates_apply,
    .finish = templates_finish,
    .stats = templates_stats,
    .close = templates_close,
};

/* ---- opening ---- */

static int open_files(struct templates *t, struct err *e)
{
    static const struct comm alone = {.size = 1};

    t->doc_to = calloc(t->c ? (size_t)t->c->size : 1, sizeof *t->doc_to);
    if (!t->doc_to)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(dedup_units_open(&t->units, t->dir, t->memory / COUNTING, e));
    TRY(rank_files_open(&t->out, t->c ? t->c : &alone, t->dir, t->memory / BUFFERS, e));
    TRY(members_open(&t->found, (size_t)t->memory / BUFFERS / sizeof(struct member), t->dir, e));
    return spill_open(&t->docs, t->dir, READ, e);
}

int dedup_templates_ranks_open(struct stage *st, struct comm *c, const struct dedup_fuzzy_conf *conf, struct err *e)
{
    struct templates *t;
    int rc;

    if (conf->index || conf->against.n)
        return err_set(e, ERR_ARG, "--strip-template goes by the lines of this run's documents, which those of --index and "
                       "--against are not: it goes with neither");
    t = calloc(1, sizeof *t);
    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory");
    *t = (struct templates){.c = c, .dir = conf->dir, .path = conf->templates, .whole = conf->report,
                            .least = (uint32_t)conf->strip_template,
                            .memory = conf->memory ? conf->memory : DEDUP_FUZZY_MEMORY, .docs.fd = -1};
    rc = open_files(t, e);
    if (rc < 0) {
        templates_close(t);
        return rc;
    }
    *st = (struct stage){&templates_ops, t};
    return 0;
}

int dedup_templates_stage_open(struct stage *st, const struct dedup_fuzzy_conf *conf, struct err *e)
{
    return dedup_templates_ranks_open(st, NULL, conf, e);
}
