#include "curate/extract/extract.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file_kind.h"
#include "base/http.h"
#include "base/log.h"
#include "base/utf8.h"
#include "curate/extract/extract_format.h"
#include "curate/extract/walk.h"

/* In the order of precedence. */
static const struct extract_format *const formats[EXTRACT_FORMATS] = {
    &extract_warc, &extract_tar, &extract_wiki, &extract_html, &extract_latex, &extract_posts, &extract_xml,
    &extract_zip, &extract_records,
};
enum { N_FORMATS = EXTRACT_FORMATS };

struct extract {
    struct extract_conf conf;
    struct extract_counts counts;
    struct walk files;
    int at; /* the file after the one that is open */
    bool sized;
    uint64_t size, passed; /* bytes of all files as they are stored, and of those that were closed */
    uint64_t remote; /* the same of all addresses so far */
    struct file_in *in;
    char state[HTTP_STATE_MAX]; /* of the file that was opened last (file_state) */
    int jobs;
    struct extract_input input;
    const struct extract_format *format; /* of the open file; NULL: not told yet */
    void *reader;
};

struct extract_thread {
    void *maker[N_FORMATS];
};

void extract_conf_init(struct extract_conf *c)
{
    html_conf_init(&c->html);
    c->html.max_bytes = UINT32_MAX / 2; /* max_page bounds it */
    latex_conf_init(&c->latex);
    c->max_page = 16 << 20;
    c->verify = false;
    c->namespaces = "0";
    record_fetch_conf_init(&c->fetch);
}

/* ---- what formats use ---- */

void extract_count(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

bool extract_named(const char *path, const char *const *endings)
{
    static const char *const packed[] = {".gz", ".zst", ".bz2", ".xz", ".lz4"};
    struct span s = span_of(path);

    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (span_ends(s, packed[i])) {
            s.n -= strlen(packed[i]);
            break;
        }
    for (; *endings; endings++)
        if (span_ends(s, *endings))
            return true;
    return false;
}

struct span extract_pack(char **at, struct span s)
{
    struct span copy = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

static bool is_list(const char *list)
{
    for (;; list++) {
        list += *list == '-';
        if (*list < '0' || *list > '9')
            return false;
        list += strspn(list, "0123456789");
        if (*list != ',')
            return *list == '\0';
    }
}

bool extract_has_namespace(const char *list, int64_t ns)
{
    for (char *end;; list = end + 1) {
        if (strtoll(list, &end, 10) == ns)
            return true;
        if (*end != ',')
            return false;
    }
}

/* Sets a field from bytes that may be anything. */
static int set_any(struct doc *d, const char *key, struct span value)
{
    struct buf repaired = {0};
    int rc;

    if (value.n == 0)
        value.p = "";
    if (utf8_valid(value))
        return doc_set_string(d, key, value);
    rc = utf8_repair(value, &repaired);
    if (rc == 0)
        rc = doc_set_string(d, key, buf_span(&repaired));
    buf_free(&repaired);
    return rc;
}

static int set_id(struct doc *d, const struct extract_item *it)
{
    struct buf name = {0};
    int rc;

    if (it->id.n)
        return set_any(d, "id", it->id);
    rc = buf_printf(&name, "%s:%" PRIu64, d->file, it->record ? it->member : it->offset);
    if (rc == 0 && it->record && it->behind)
        rc = buf_printf(&name, "+%" PRIu64, it->behind);
    if (rc == 0)
        rc = set_any(d, "id", buf_span(&name));
    buf_free(&name);
    return rc;
}

static int set_source(struct doc *d, const struct extract_item *it, const struct extract_source *stated)
{
    struct extract_source s = *stated;
    struct buf json = {0};
    int rc;

    if (!s.record)
        s.within = it->offset;
    if (it->id.n != strlen(d->file) || memcmp(it->id.p, d->file, it->id.n) != 0) /* a file that is one document is its id */
        s.file = span_of(d->file);
    rc = extract_put_source(&json, &s);
    if (rc == 0 && json.n > sizeof "{}" - 1)
        rc = doc_set_raw(d, "source", buf_span(&json));
    buf_free(&json);
    return rc;
}

static int set_fields(struct doc *d, const struct extract_item *it, const struct extract_fields *f)
{
    TRY(set_id(d, it));
    TRY(set_any(d, "url", f->url));
    TRY(set_any(d, "title", f->title));
    TRY(set_any(d, "date", f->date));
    TRY(set_any(d, "lang", f->lang));
    if (f->author.n)
        TRY(set_any(d, "author", f->author));
    if (f->canonical.n)
        TRY(set_any(d, "canonical", f->canonical));
    for (int i = 0; i < f->n_more; i++)
        if (f->more[i].value.n)
            TRY(set_any(d, f->more[i].key, f->more[i].value));
    if (f->page_kind) {
        TRY(doc_set_string(d, "page_kind", span_of(f->page_kind)));
        TRY(doc_set_num(d, "page_kind_score", f->page_kind_score));
    }
    if (f->extractor)
        TRY(doc_set_string(d, "extractor", span_of(f->extractor)));
    TRY(set_source(d, it, &f->source));
    return set_any(d, "text", f->text);
}

int extract_set_fields(struct doc *d, const struct extract_item *it, const struct extract_fields *f, struct err *e)
{
    return set_fields(d, it, f) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a document") : 0;
}

/* ---- files ---- */

static void close_file(struct extract *x)
{
    if (x->format)
        x->format->close(&x->input, x->reader);
    warc_close(x->input.stream);
    x->passed += x->in ? file_size(x->in) : 0;
    file_close(x->in);
    x->format = NULL;
    x->reader = NULL;
    x->input.stream = NULL;
    x->in = NULL;
}

int extract_recognise(struct extract_input *in, const struct extract_format **format, struct err *e)
{
    enum extract_match best = EXTRACT_NO;

    *format = NULL;
    TRY(warc_kind(in->stream, e));
    in->start = warc_peek(in->stream);
    for (int i = 0; i < N_FORMATS && best < EXTRACT_SURE; i++) {
        enum extract_match m = formats[i]->probe(in);
        if (m > best) {
            best = m;
            *format = formats[i];
        }
    }
    return 0;
}

void extract_count_file(struct extract_counts *n, const struct extract_format *format)
{
    for (int i = 0; i < N_FORMATS; i++)
        n->of_format[i] += formats[i] == format;
}

/* Whether lines of JSON objects begin so. */
static bool is_json(struct span s)
{
    static const char blanks[] = " \t\r\n";
    size_t at = 0;

    while (at < s.n && strchr(blanks, s.p[at]))
        at++;
    if (at == s.n || s.p[at] != '{')
        return false;
    for (at++; at < s.n && strchr(blanks, s.p[at]);)
        at++;
    return at < s.n && (s.p[at] == '"' || s.p[at] == '}');
}

static bool is_binary(struct span start)
{
    return start.n && memchr(start.p, '\0', start.n < 4096 ? start.n : 4096) != NULL;
}

bool extract_is_other(struct span start)
{
    return file_kind(start) || is_json(start) || is_binary(start);
}

int extract_refuse(const struct extract_input *in, struct err *e)
{
    const char *kind = file_kind(in->start);

    if (kind)
        return err_set(e, ERR_FORMAT, "'%s' is %s, which is not read%s", in->path, kind, in->depth ? " here" : "");
    if (is_json(in->start))
        return err_set(e, ERR_FORMAT, "'%s' is JSON: documents already, which other commands read", in->path);
    return err_set(e, ERR_FORMAT, "'%s' is neither a WARC or ARC file nor HTML, LaTeX, a wiki's export or XML of a known kind%s",
                   in->path, is_binary(in->start) ? " but binary data" : "");
}

int extract_item_within(struct extract_item *it, const struct extract_format *format, const char *path, struct err *e)
{
    if (!it->format)
        it->format = format;
    if (!it->within)
        it->within = strdup(path);
    if (it->within)
        return 1;
    free(it->also);
    free(it);
    return err_set(e, ERR_NOMEM, "out of memory for a document");
}

/* Whether a file whose first member is damaged may be an archive all the same: those have many. */
static bool is_damaged_archive(const struct extract *x)
{
    enum file_codec codec = file_codec(x->in);
    struct span all;
    struct err e;

    return x->input.named && (codec == FILE_GZIP || codec == FILE_ZSTD) && !extract_is_other(x->input.start) &&
           warc_read_whole(x->input.stream, x->input.start.n, &all, &e) == ERR_FORMAT;
}

/* Decides what the open file is and begins to read it: 1; 0: it is of no interest. */
static int begin_file(struct extract *x, const struct walk_file *f, struct err *e)
{
    const struct extract_format *format;
    struct span all;

    x->input.path = f->path;
    x->input.named = f->named;
    TRY(extract_recognise(&x->input, &format, e));
    if (!format && is_damaged_archive(x))
        format = &extract_warc;
    if (format) {
        TRY(format->open(&x->input, &x->reader, e));
        extract_count_file(&x->counts, format);
        x->format = format;
        return 1;
    }
    if (!f->named) {
        x->counts.unread++;
        return 0;
    }
    if (x->input.start.n == 0) /* an empty file holds no records, whatever it is; or it is damaged */
        return warc_read_whole(x->input.stream, (size_t)x->conf.max_page, &all, e);
    return extract_refuse(&x->input, e);
}

/* The reader's state: whether the file has been read. */
int extract_whole_open(struct extract_input *in, void **reader, struct err *e)
{
    (void)in;
    *reader = calloc(1, sizeof(bool));
    return *reader ? 0 : err_set(e, ERR_NOMEM, "out of memory for a file");
}

int extract_whole_next(struct extract_input *in, void *reader, size_t max, struct span *all, struct err *e)
{
    bool *done = reader;
    int rc;

    if (*done)
        return 0;
    *done = true;
    rc = warc_read_whole(in->stream, max, all, e);
    if (rc == ERR_LIMIT)
        return e->code = ERR_FORMAT;
    return rc < 0 ? rc : 1;
}

void extract_whole_close(struct extract_input *in, void *reader)
{
    (void)in;
    free(reader);
}

/* What was found in a folder is opened beneath it: a link that leads out of there is not followed. */
static int open_found(struct extract *x, const struct walk_file *f, struct err *e)
{
    char *top;
    int rc;

    if (f->named)
        return file_open(&x->in, f->address ? f->address : f->path, e);
    top = strndup(f->path, f->top);
    rc = top ? file_open_beneath(&x->in, top, f->path + f->top, e) : err_set(e, ERR_NOMEM, "out of memory");
    free(top);
    return rc;
}

/* Opens the next file that is worth reading: 1, or 0 after the last.  ERR_FORMAT: one
 * that cannot be read. */
static int open_next(struct extract *x, struct err *e)
{
    while (x->at < x->files.n) {
        const struct walk_file *f = &x->files.file[x->at++];
        int rc = open_found(x, f, e);

        if (rc == ERR_IO && !f->named)
            return e->code = ERR_FORMAT;
        if (rc < 0)
            return rc;
        x->remote += f->address ? file_size(x->in) : 0;
        snprintf(x->state, sizeof x->state, "%s", file_state(x->in));
        file_set_threads(x->in, x->jobs);
        rc = warc_open(&x->input.stream, x->in, (size_t)x->conf.max_page + EXTRACT_HEAD_ROOM, e);
        if (rc == 0)
            rc = begin_file(x, f, e);
        if (rc == 1)
            return 1;
        close_file(x);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- the source ---- */

static int extract_read(void *source, void **item, size_t *size, bool *bad, struct err *e)
{
    struct extract *x = source;
    struct extract_item *it;
    int rc;

    do {
        rc = x->format ? 1 : open_next(x, e);
        if (rc == 0)
            return 0;
        if (rc == 1)
            rc = x->format->next(&x->input, x->reader, &it, e);
        if (rc == 1) {
            if (!it->format)
                it->format = x->format;
            it->file = x->input.path;
            *item = it;
            *size = it->size;
        }
        if (rc == 0)
            close_file(x);
    } while (rc == 0);
    if (rc != ERR_FORMAT)
        return rc < 0 ? rc : 0;
    *bad = true;
    return 0;
}

static void where(void *source, struct source_where *w)
{
    struct extract *x = source;
    struct stat st;

    for (int i = 0; i < x->files.n && !x->sized; i++)
        x->size += !x->files.file[i].address && stat(x->files.file[i].path, &st) == 0 && S_ISREG(st.st_mode)
                       ? (uint64_t)st.st_size : 0;
    x->sized = true;
    w->input = x->in ? x->files.file[x->at - 1].path : NULL;
    w->consumed = x->passed + (x->in ? file_consumed(x->in) : 0);
    w->state = x->state;
    w->total = x->size + x->remote;
    for (int i = x->at; i < x->files.n; i++) /* an address that was not opened yet */
        if (x->files.file[i].address)
            w->total = 0;
}

static void set_jobs(void *source, int jobs)
{
    struct extract *x = source;

    x->jobs = jobs;
}

static void item_free(void *source, void *item)
{
    (void)source;
    free(((struct extract_item *)item)->also);
    free(((struct extract_item *)item)->within);
    free(item);
}

static int thread_open(void *source, void **thread, struct err *e)
{
    (void)source;
    *thread = calloc(1, sizeof(struct extract_thread));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "out of memory for a thread");
}

static void thread_close(void *source, void *thread)
{
    struct extract_thread *t = thread;

    (void)source;
    for (int i = 0; i < N_FORMATS; i++)
        if (t->maker[i])
            formats[i]->maker_close(t->maker[i]);
    free(t);
}

static bool is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(" \t\r\n\f", s.p[i]))
            return false;
    return true;
}

static int extract_make(void *source, void *thread, void *item, struct doc *d, struct verdict *v,
                        struct err *e)
{
    struct extract *x = source;
    struct extract_thread *t = thread;
    const struct extract_item *it = item;
    int i = 0;

    d->file = it->within ? arena_dup(d->arena, span_of(it->within)).p : it->file;
    d->offset = it->offset;
    if (!d->file)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    while (formats[i] != it->format)
        i++;
    if (!t->maker[i])
        TRY(it->format->maker_open(&x->conf, &x->counts, &t->maker[i], e));
    TRY(it->format->make(t->maker[i], it, d, v, e));
    if (!v->drop && is_blank(d->text))
        verdict_drop(v, &extract_rules[EXTRACT_EMPTY], 0, 1);
    return 0;
}

const struct stage_rule extract_rules[] = {
    [EXTRACT_EMPTY] = {"empty", "characters of content", "The page has no text.", "below", false},
    [EXTRACT_NOT_HTML] = {"not_html", NULL, "The record is no HTML.", NULL, false},
    [EXTRACT_BINARY] = {"binary", NULL, "The page is binary data (an image, a PDF, a program ...), no text.", NULL, false},
    [EXTRACT_WITHDRAWN] = {"withdrawn", NULL, "The source holds nothing but the mark of a withdrawn paper.", NULL, false},
    [EXTRACT_NAMESPACE] = {"namespace", "number of the namespace", "The page is in a namespace that was not asked for.",
                           NULL, false},
    [EXTRACT_REDIRECT] = {"redirect", NULL, "The page only leads to another.", NULL, false},
    [EXTRACT_MODEL] = {"model", NULL, "The page is no wikitext.", NULL, false},
    {0},
};

/* ---- statistics ---- */

static int extract_stats(void *source, struct buf *b)
{
    const struct extract *x = source;
    const struct extract_counts *n = &x->counts;

    for (int i = 0; i < N_FORMATS; i++)
        TRY(json_put_count(b, formats[i]->stat, n->of_format[i]));
    TRY(json_put_count(b, "other_files", n->unread));
    TRY(json_put_count(b, "records", n->records));
    TRY(json_put_count(b, "listed_records", n->fetched.records));
    TRY(json_put_count(b, "listed_bytes", n->fetched.bytes));
    TRY(json_put_count(b, "fetched_bytes", n->fetched.fetched_bytes));
    TRY(json_put_count(b, "fetch_requests", n->fetched.requests));
    TRY(json_put_key(b, "passed_over"));
    TRY(buf_putc(b, '{'));
    for (int i = PAGE_UNSURE + 1; i < PAGE_KINDS; i++)
        if (n->kind[i])
            TRY(json_put_count(b, page_kind_name((enum page_kind)i), n->kind[i]));
    TRY(buf_putc(b, '}'));
    TRY(json_put_key(b, "extractor"));
    TRY(json_put_string(b, span_of(html_extractor_name(x->conf.html.extractor))));
    TRY(json_put_count(b, "page_bytes", n->entity_bytes));
    TRY(json_put_count(b, "html_utf8_bytes", n->html_bytes));
    TRY(json_put_count(b, "latex_utf8_bytes", n->latex_bytes));
    TRY(json_put_count(b, "wikitext_bytes", n->wiki_bytes));
    TRY(json_put_count(b, "xml_utf8_bytes", n->xml_bytes));
    TRY(json_put_count(b, "xml_faults", n->xml_faults));
    TRY(json_put_count(b, "coding_faults", n->faults));
    TRY(json_put_count(b, "json_ld_faults", n->data_faults));
    TRY(json_put_count(b, "from_json_ld", n->from_data));
    return json_put_count(b, "truncated", n->truncated);
}

/* ---- open and close ---- */

static const struct source_ops ops = {
    .name = "extract",
    .set_jobs = set_jobs,
    .read = extract_read,
    .where = where,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .make = extract_make,
    .item_free = item_free,
    .stats = extract_stats,
};

int extract_restart(struct source *s, char *const *paths, int n, struct err *e)
{
    struct extract *x = s->state;
    char standard[] = "-", *const only[] = {standard};

    close_file(x);
    walk_free(&x->files);
    x->at = 0;
    x->sized = false;
    x->size = x->passed = x->remote = 0;
    x->state[0] = '\0';
    return walk_list(&x->files, n ? paths : only, n ? n : 1, e);
}

/* Whether jusText's rules can be had as they are wanted: said before any work. */
static int check_justext(const struct html_conf *c, struct err *e)
{
    struct justext *j = NULL;

    if (c->extractor != HTML_JUSTEXT)
        return 0;
    TRY(justext_new(&j, &c->justext, e));
    justext_free(j);
    return 0;
}

int extract_open(struct source *s, const struct extract_conf *c, char *const *paths, int n, struct err *e)
{
    struct extract *x;
    int rc;

    if (!is_list(c->namespaces))
        return err_set(e, ERR_ARG, "--namespaces: '%s' is no list of numbers", c->namespaces);
    TRY(check_justext(&c->html, e));
    x = calloc(1, sizeof *x);
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    *s = (struct source){&ops, x};
    x->conf = *c;
    x->input.conf = &x->conf;
    x->input.counts = &x->counts;
    rc = extract_restart(s, paths, n, e);
    if (rc < 0)
        extract_close(s);
    return rc;
}

void extract_close(struct source *s)
{
    struct extract *x = s->state;

    if (!x)
        return;
    close_file(x);
    walk_free(&x->files);
    free(x);
    s->state = NULL;
}
