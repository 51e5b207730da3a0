#include "curate/dedup/dedup_templates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/dedup_template_list.h"
#include "curate/dedup/dedup_text.h"
#include "curate/dedup/dedup_units.h"
#include "curate/dedup/rank_links.h"
#include "curate/stream/rank_exchange.h"

/* Bytes read at a time; of a bound on memory, what is for counting, and for buffers of files. */
enum { READ = 1 << 18, COUNTING = 2, BUFFERS = 16 };

/* Lines are numbered in the order of the documents, each once a document; those that came to a rank to be counted there, in the
 * order of the ranks. */
struct templates {
    struct comm *c; /* NULL: this process is alone */
    const char *dir, *path; /* path: of the report; NULL: none */
    int64_t memory;
    uint32_t least;            /* documents that have a line of a template */
    struct dedup_units *units; /* the lines that are counted here */
    struct spill docs;         /* of each document how many lines it has, and of each line which one, from 1, of the document is
                                  the first like it; 0: it is not counted */
    struct spill_reader docs_in;
    struct rank_files out; /* lines, to the rank that counts them; alone: for the report */
    uint64_t own;          /* lines of this rank's documents */
    struct spill_map bits; /* of ranks: which of these are of a template */
    uint64_t read;         /*   up to there */
    struct members found;  /* lines of templates: the number of the first of each, and how many documents have it */
    struct { uint64_t lines, of_templates, templates; } count;
    struct file_group files;
};

/* ---- notes ---- */

/* A note: how many lines there are; the key of each, as dedup_text_keys gives it; and for a report the simplified text of each
 * that is counted, behind its length. */
struct head {
    uint64_t n, unused;
};

static bool is_counted(const struct hash128 *key)
{
    return key->hi > 1;
}

/* The simplified text of line i. */
static struct span form_of(const struct dedup_text *t, size_t i)
{
    size_t from = i ? t->form_end[i - 1] + 1 : 0;

    return (struct span){t->form.p + from, t->form_end[i] - from};
}

static size_t forms_size(const struct dedup_text *t, const struct hash128 *key)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        n += is_counted(&key[i]) ? sizeof(uint64_t) + form_of(t, i).n : 0;
    return n;
}

static void put_forms(const struct dedup_text *t, const struct hash128 *key, char *to)
{
    for (size_t i = 0; i < t->n; i++) {
        struct span form = form_of(t, i);
        uint64_t n = form.n;

        if (!is_counted(&key[i]))
            continue;
        memcpy(to, &n, sizeof n);
        memcpy(to + sizeof n, form.p, form.n);
        to += sizeof n + form.n;
    }
}

static int make_note(const struct templates *t, const struct dedup_text *text, const struct hash128 *key, struct arena *a,
                     struct span *note, struct err *e)
{
    size_t keys = text->n * sizeof *key, n = sizeof(struct head) + keys + (t->path ? forms_size(text, key) : 0);
    struct head *head = arena_alloc(a, n);

    if (!head)
        return err_set(e, ERR_NOMEM, "out of memory for %zu lines of a text", text->n);
    *head = (struct head){text->n, 0};
    memcpy(head + 1, key, keys);
    if (t->path)
        put_forms(text, key, (char *)(head + 1) + keys);
    *note = (struct span){(const char *)head, n};
    return 0;
}

static int templates_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct dedup_striker *w = thread;
    struct hash128 *key;
    int64_t rc;

    (void)v;
    TRY(dedup_text_cut(&w->text, d->text, DEDUP_LINE, e));
    key = calloc(w->text.n + 1, sizeof *key);
    if (!key)
        return err_set(e, ERR_NOMEM, "out of memory for %zu lines of a text", w->text.n);
    rc = dedup_text_keys(&w->text, d->text, DEDUP_SIMPLE, 1, 1, key, e);
    if (rc >= 0)
        rc = make_note(stage, &w->text, key, d->arena, note, e);
    free(key);
    return (int)rc;
}

/* ---- one after the other ---- */

/* A line that is counted, as a parcel: its number, its key and its simplified text. */
static int put_line(struct templates *t, int to, const struct hash128 *key, struct span form, struct err *e)
{
    struct parcel h = {t->own, sizeof *key + form.n};

    TRY(spill_put(&t->out.file[to], &h, sizeof h, e));
    TRY(spill_put(&t->out.file[to], key, sizeof *key, e));
    return spill_put(&t->out.file[to], form.p, form.n, e);
}

static int add_line(struct templates *t, const struct hash128 *key, struct span form, struct err *e)
{
    if (t->c)
        TRY(put_line(t, rank_key_owner(t->c, hash_mix64(key->lo)), key, form, e));
    else
        TRY(dedup_units_add(t->units, *key, e));
    if (!t->c && t->path)
        TRY(put_line(t, 0, key, form, e));
    t->own++;
    return 0;
}

static int templates_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct templates *t = stage;
    const struct head *head = (const void *)note.p;
    const struct hash128 *key = (const void *)(head + 1);
    const char *at = (const char *)(key + head->n);
    uint32_t first = (uint32_t)head->n;

    (void)v, (void)reply, (void)a;
    TRY(spill_put(&t->docs, &first, sizeof first, e));
    for (uint32_t i = 0; i < head->n; i++) {
        struct span form = {at, 0};

        first = !key[i].hi ? 0 : is_counted(&key[i]) ? i + 1 : (uint32_t)key[i].lo + 1;
        TRY(spill_put(&t->docs, &first, sizeof first, e));
        if (!is_counted(&key[i]))
            continue;
        if (t->path) {
            uint64_t n;

            memcpy(&n, at, sizeof n);
            form = (struct span){at + sizeof n, n};
            at += sizeof n + n;
        }
        TRY(add_line(t, &key[i], form, e));
    }
    return 0;
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
    return dedup_units_resolve(t->units, true, t->least - 1, jobs, e);
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

    (void)from, (void)h, (void)arg;
    memcpy(&key, line.p, sizeof key);
    return dedup_units_add(t->units, key, e);
}

/* Numbers of lines of templates, back to where they came from. */
static int put_answer(struct templates *t, int from, const struct parcel *h, struct span line, void *arg, struct err *e)
{
    struct rank_files *back = arg;
    uint8_t mark;

    (void)line;
    dedup_units_next(t->units, 1, &mark);
    return mark ? spill_put(&back->file[from], &h->number, sizeof h->number, e) : 0;
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
    uint64_t line, at; /* the next line; of those found the next one */
    struct member next;
};

static int list_line(struct templates *t, int from, const struct parcel *h, struct span line, void *arg, struct err *e)
{
    struct listing *l = arg;

    (void)from, (void)h;
    if (l->at == t->found.n || l->line++ != member_first(&l->next))
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

    t->count.lines = t->own;
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

/* Whether the next line of this rank's documents is of a template. */
static uint8_t next_mark(struct templates *t)
{
    uint8_t mark;

    if (t->c)
        mark = t->bits.p[t->read / 8] >> (t->read & 7) & 1;
    else
        dedup_units_next(t->units, 1, &mark);
    t->read++;
    return mark;
}

/* The reply: a byte for each line, 1 if it is left out.  None if there is no such line, or no other. */
static int templates_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct templates *t = stage;
    uint32_t count, *first;
    bool out = false, left = false;
    uint8_t *mark;

    (void)n, (void)v;
    TRY(spill_next(&t->docs_in, &count, sizeof count, e));
    first = arena_alloc(a, (count + 1u) * (sizeof *first + 1));
    if (!first)
        return err_set(e, ERR_NOMEM, "out of memory for %u lines of a text", count);
    mark = (uint8_t *)(first + count);
    TRY(spill_next(&t->docs_in, first, count * sizeof *first, e));
    for (uint32_t i = 0; i < count; i++) {
        mark[i] = !first[i] ? 0 : first[i] == i + 1 ? next_mark(t) : mark[first[i] - 1];
        out |= mark[i];
        left |= first[i] && !mark[i];
    }
    if (out && left)
        *reply = (struct span){(const char *)mark, count};
    return 0;
}

static int templates_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    struct dedup_striker *w = thread;
    size_t kept;

    (void)stage, (void)v;
    TRY(dedup_striker_cut(w, d->text, DEDUP_LINE, e));
    memcpy(w->drop, reply.p, reply.n < w->text.n ? reply.n : w->text.n);
    if (dedup_text_join(&w->text, d->text, DEDUP_LINE, w->drop, &w->out, &kept) == 0)
        d->compared = arena_dup(d->arena, buf_span(&w->out));
    return d->compared.p ? 0 : err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", d->text.n);
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
    members_close(&t->found);
    file_group_abort(&t->files);
    free(t);
}

static const struct stage_ops templates_ops = {
    .name = "dedup templates",
    .thread_open = dedup_striker_open,
    .thread_close = dedup_striker_close,
    .work = templates_work,
    .commit = templates_commit,
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
    *t = (struct templates){.c = c, .dir = conf->dir, .path = conf->templates, .least = (uint32_t)conf->strip_template,
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
