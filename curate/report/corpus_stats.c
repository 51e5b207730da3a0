#include "curate/report/corpus_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/json_shim.h"
#include "curate/stream/pass.h"
#include "curate/text/scan.h"
#include "curate/filter/urls.h"
#include "curate/report/note.h"

const char *const corpus_size_names[CORPUS_SIZES] = {"bytes", "characters", "words", "lines"};

void corpus_conf_init(struct corpus_conf *c)
{
    *c = (struct corpus_conf){.jobs = 1, .max_hosts = 1000000, .top = 20};
}

/* ---- one document, on any thread: a note of what is counted ----
 *
 * sizes (4 numbers of 64 bits), then strings: language, host, group; with --sources what source_note
 * puts; then each field: its name, and for a number its value. */

struct counter {
    struct corpus_stats *c;
    const struct corpus_conf *conf;
    uint64_t predicted; /* the field that comes next, as in the document before */
    struct corpus_stats own; /* c, unless that is somebody else's */
};

struct thread {
    struct scan scan;
    struct json_reader *json;
    struct buf note;
    struct buf name;
};

static uint64_t count_words(const struct scan *s, size_t n)
{
    uint64_t words = 0, space_before = 1;

    for (size_t i = 0; i < (n + 63) / 64; i++) {
        uint64_t space = s->space[i], starts = ~space & (space << 1 | space_before);

        if (n - i * 64 < 64)
            starts &= (1ULL << (n - i * 64)) - 1;
        words += (uint64_t)__builtin_popcountll(starts);
        space_before = space >> 63;
    }
    return words;
}

static uint64_t count_lines(struct span s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n + (s.n && s.p[s.n - 1] != '\n');
}

/* The host of a URL in small letters, without user, port and last full stop, in `out`; empty if
 * there is none, or it has more than CORPUS_NAME_BYTES bytes. */
static struct span host_of(struct span url, char out[CORPUS_NAME_BYTES])
{
    struct span s = url_authority(url);
    const char *at = s.n ? memrchr(s.p, '@', s.n) : NULL;

    if (at)
        s = (struct span){at + 1, s.n - (size_t)(at + 1 - s.p)};
    at = s.n ? memchr(s.p, s.p[0] == '[' ? ']' : ':', s.n) : NULL;
    if (at)
        s.n = (size_t)(at - s.p) + (s.p[0] == '[');
    while (s.n && s.p[s.n - 1] == '.')
        s.n--;
    if (s.n > CORPUS_NAME_BYTES)
        s.n = 0;
    for (size_t i = 0; i < s.n; i++)
        out[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] | 32 : s.p[i]);
    return (struct span){out, s.n};
}

/* A field by name, with its value if that is a number, or true or false (1 and 0). */
static int put_note_field(struct buf *b, struct span name, enum json_type type, struct span raw)
{
    double x = NAN;

    if (type == JSON_NUMBER)
        x = json_parse_double(raw.p, raw.n);
    else if (type == JSON_BOOL)
        x = *raw.p == 't';
    TRY(note_put_string(b, name));
    return buf_put(b, &x, sizeof x);
}

static enum json_type type_of(struct span raw)
{
    switch (raw.n ? *raw.p : 'n') {
    case '"': return JSON_STRING;
    case '{': return JSON_OBJECT;
    case '[': return JSON_ARRAY;
    case 'n': return JSON_NULL;
    case 't': case 'f': return JSON_BOOL;
    default: return JSON_NUMBER;
    }
}

/* The numbers in an object, as OBJECT.NAME; none if a name is there twice. */
static int note_object(struct thread *t, struct span key, struct span raw)
{
    const struct json_field *f;
    int n = json_read_object(t->json, raw, &f, NULL);

    if (n == ERR_NOMEM)
        return n;
    for (int i = 0; i < n; i++) {
        if (f[i].type != JSON_NUMBER && f[i].type != JSON_BOOL)
            continue;
        buf_clear(&t->name);
        TRY(buf_put_span(&t->name, key));
        TRY(buf_putc(&t->name, '.'));
        TRY(buf_put_span(&t->name, f[i].key));
        TRY(put_note_field(&t->note, buf_span(&t->name), f[i].type, f[i].raw));
    }
    return 0;
}

/* The value that d is grouped by, as text. */
static struct span group_of(struct doc *d, const char *by, struct span host)
{
    struct span s;

    if (!by)
        return (struct span){"", 0};
    s = doc_string(d, by);
    if (!s.p)
        s = doc_raw(d, by);
    if (!s.p && strcmp(by, "host") == 0)
        s = host;
    if (!s.p)
        return (struct span){"", 0};
    if (s.n > CORPUS_NAME_BYTES)
        for (s.n = CORPUS_NAME_BYTES; ((unsigned char)s.p[s.n] & 0xC0) == 0x80; s.n--)
            ; /* not within a character */
    return s;
}

static int note_doc(struct thread *t, const struct counter *w, struct doc *d)
{
    uint64_t size[CORPUS_SIZES] = {d->text.n, 0, 0, count_lines(d->text)};
    struct span lang = doc_string(d, "lang");
    char host_text[CORPUS_NAME_BYTES];
    struct span host = host_of(doc_string(d, "url"), host_text);

    TRY(scan_text(&t->scan, d->text));
    size[CORPUS_CHARS] = t->scan.chars;
    size[CORPUS_WORDS] = count_words(&t->scan, d->text.n);
    buf_clear(&t->note);
    TRY(buf_put(&t->note, size, sizeof size));
    TRY(note_put_string(&t->note, lang.n <= CORPUS_NAME_BYTES ? lang : (struct span){"", 0}));
    TRY(note_put_string(&t->note, host));
    TRY(note_put_string(&t->note, group_of(d, w->conf->by, host)));
    if (w->conf->sources)
        TRY(source_note(d, host, &t->note));
    for (int i = 0; i < d->n_fields; i++) {
        struct span raw = d->field[i].raw;
        enum json_type type = type_of(raw);

        if (type == JSON_NUMBER && span_is(d->field[i].key, "id"))
            type = JSON_STRING;
        TRY(put_note_field(&t->note, d->field[i].key, type, raw));
        if (type == JSON_OBJECT)
            TRY(note_object(t, d->field[i].key, raw));
    }
    return 0;
}

static int count_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct thread *t = thread;
    int rc = note_doc(t, stage, d);

    (void)v;
    if (rc == 0) {
        *note = arena_dup(d->arena, buf_span(&t->note));
        rc = note->p ? 0 : ERR_NOMEM;
    }
    return rc == ERR_NOMEM ? err_set(e, rc, "no memory for a document") : rc;
}

static int count_thread_open(void *stage, void **thread, struct err *e)
{
    struct thread *t = calloc(1, sizeof *t);

    (void)stage;
    *thread = t;
    if (t)
        t->json = json_reader_new();
    return t && t->json ? 0 : err_set(e, ERR_NOMEM, "no memory to count documents");
}

static void count_thread_close(void *stage, void *thread)
{
    struct thread *t = thread;

    (void)stage;
    scan_free(&t->scan);
    json_reader_free(t->json);
    buf_free(&t->note);
    buf_free(&t->name);
    free(t);
}

/* ---- all documents, in order ---- */

/* 1: the number of a field's name; 0: it is one too many. */
static int find_field(struct counter *w, struct span name, size_t *number)
{
    struct corpus_stats *c = w->c;
    int rc;

    *number = w->predicted++;
    if (*number < c->fields.n && span_eq(c->fields.name[*number], name))
        return 1;
    if (!name_table_find(&c->fields, name, number)) {
        if (c->fields.n == CORPUS_NAMES || name.n > CORPUS_NAME_BYTES) {
            c->left_out++;
            return 0;
        }
        rc = name_table_add(&c->fields, name, number);
        TRY(rc);
    }
    w->predicted = *number + 1;
    return 1;
}

static int add_number(struct corpus_stats *c, struct corpus_part *p, size_t field, double x)
{
    if (field >= p->n_numbers) {
        size_t n = c->fields.n + 16;
        struct sketch **q = realloc(p->number, n * sizeof(struct sketch *));
        if (!q)
            return ERR_NOMEM;
        memset(q + p->n_numbers, 0, (n - p->n_numbers) * sizeof(struct sketch *));
        p->number = q;
        p->n_numbers = n;
    }
    if (!p->number[field]) {
        if (c->sketches == CORPUS_SKETCHES) {
            c->left_out++;
            return 0;
        }
        p->number[field] = calloc(1, sizeof **p->number);
        if (!p->number[field])
            return ERR_NOMEM;
        c->sketches++;
    }
    return sketch_add(p->number[field], x);
}

static int add_sizes(struct corpus_part *p, const uint64_t size[CORPUS_SIZES])
{
    p->docs++;
    for (int i = 0; i < CORPUS_SIZES; i++) {
        p->sum[i] += size[i];
        TRY(sketch_add(&p->size[i], (double)size[i]));
    }
    return 0;
}

/* The part of the group; those beyond the bound share the last. */
static int find_group(struct corpus_stats *c, struct span value, struct corpus_part **part)
{
    size_t number = CORPUS_GROUPS;

    if (!name_table_find(&c->groups, value, &number) && c->groups.n < CORPUS_GROUPS)
        TRY(name_table_add(&c->groups, value, &number));
    *part = &c->group[number];
    return 0;
}

static int count_note(struct counter *w, struct span note)
{
    struct corpus_stats *c = w->c;
    struct corpus_part *group = NULL;
    uint64_t size[CORPUS_SIZES];
    struct name_count one;
    struct span value;

    memcpy(size, note_take(&note, sizeof size).p, sizeof size);
    one = (struct name_count){1, size[CORPUS_BYTES], size[CORPUS_CHARS], size[CORPUS_WORDS], 0};
    TRY(add_sizes(&c->all, size));
    TRY(name_tally_add(&c->langs, note_take_string(&note), &one));
    TRY(name_tally_add(&c->hosts, note_take_string(&note), &one));
    value = note_take_string(&note);
    if (w->conf->by) {
        TRY(find_group(c, value, &group));
        TRY(add_sizes(group, size));
    }
    if (w->conf->sources)
        TRY(source_stats_add(&c->sources, &note, &one));
    w->predicted = 0;
    while (note.n) {
        struct span name = note_take_string(&note);
        size_t field;
        double x;
        int rc;

        memcpy(&x, note_take(&note, sizeof x).p, sizeof x);
        rc = find_field(w, name, &field);
        TRY(rc);
        if (!rc)
            continue;
        c->field_docs[field]++;
        if (isfinite(x)) {
            TRY(add_number(c, &c->all, field, x));
            TRY(group ? add_number(c, group, field, x) : 0);
        }
    }
    return 0;
}

static int count_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    (void)v;
    (void)reply;
    (void)a;
    return count_note(stage, note) < 0 ? err_set(e, ERR_NOMEM, "out of memory for the numbers of documents") : 0;
}

static int count_finish(void *stage, struct file_group *files, struct err *e)
{
    const struct counter *w = stage;
    struct buf b = {0};
    int rc = corpus_put(w->c, w->conf, &b, e);

    if (rc == 0)
        rc = file_group_write(files, w->conf->output, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

static void count_close(void *stage)
{
    struct counter *w = stage;

    corpus_free(&w->own);
    free(w);
}

static const struct stage_ops ops = {
    .name = "stats",
    .thread_open = count_thread_open,
    .thread_close = count_thread_close,
    .work = count_work,
    .commit = count_commit,
    .finish = count_finish,
    .close = count_close,
};

/* Begins to count into c, which is to be freed whatever comes back. */
static int begin(struct corpus_stats *c, const struct corpus_conf *conf, struct err *e)
{
    *c = (struct corpus_stats){.langs.bound = 10000, .hosts.bound = (size_t)conf->max_hosts};
    source_stats_init(&c->sources, (size_t)conf->max_hosts);
    c->field_docs = calloc(CORPUS_NAMES, sizeof *c->field_docs);
    c->group = conf->by ? calloc(CORPUS_GROUPS + 1, sizeof *c->group) : NULL;
    return c->field_docs && (c->group || !conf->by) ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int corpus_stage_open(struct stage *s, const struct corpus_conf *conf, struct err *e)
{
    struct counter *w = calloc(1, sizeof *w);

    if (!w)
        return err_set(e, ERR_NOMEM, "out of memory");
    *w = (struct counter){.c = &w->own, .conf = conf};
    *s = (struct stage){&ops, w};
    if (begin(&w->own, conf, e) == 0)
        return 0;
    count_close(w);
    return ERR_NOMEM;
}

int corpus_read(struct corpus_stats *c, const struct corpus_conf *conf, struct err *e)
{
    struct counter w = {.c = c, .conf = conf};
    struct stage stage = {&ops, &w};
    struct feed feed = {.lines = {.paths = conf->inputs, .n_paths = conf->n_inputs, .columns = conf->columns},
                        .text_key = conf->text_key};
    struct flows flows;
    struct pass_conf pc = {.stages = &stage, .n_stages = 1, .last = 1, .feed = &feed, .jobs = conf->jobs, .flows = &flows,
                           .tell = pass_show};
    struct pass *pass = NULL;
    int rc;

    TRY(begin(c, conf, e));
    rc = flows_init(&flows, 1) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : feed_check(&feed, e);
    if (rc == 0)
        rc = pass_open(&pass, &pc, e);
    if (rc == 0)
        rc = pass_run(pass, 0, e);
    c->bad = flows.bad;
    pass_close(pass);
    feed_close(&feed);
    flows_free(&flows);
    return rc;
}

static void free_part(struct corpus_part *p)
{
    for (int i = 0; i < CORPUS_SIZES; i++)
        sketch_free(&p->size[i]);
    for (size_t i = 0; i < p->n_numbers; i++) {
        if (p->number[i])
            sketch_free(p->number[i]);
        free(p->number[i]);
    }
    free(p->number);
}

void corpus_free(struct corpus_stats *c)
{
    free_part(&c->all);
    for (size_t i = 0; c->group && i <= CORPUS_GROUPS; i++)
        free_part(&c->group[i]);
    free(c->group);
    free(c->field_docs);
    name_table_free(&c->fields);
    name_table_free(&c->groups);
    name_tally_free(&c->langs);
    name_tally_free(&c->hosts);
    source_stats_free(&c->sources);
    *c = (struct corpus_stats){0};
}
