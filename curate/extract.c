#include "curate/extract.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/utf8.h"
#include "curate/digest.h"
#include "curate/page.h"
#include "curate/walk.h"

enum { HEAD_ROOM = 64 << 10 }; /* of a block beyond the page itself: the HTTP head */

/* A page on its way from reading to extraction; the spans lie behind the struct. */
struct page_item {
    const char *file;
    uint64_t offset;
    bool archived;
    enum page_kind kind;
    struct span id, uri, date, mime, block, block_digest, payload_digest;
};

struct extract {
    struct extract_conf conf;
    struct walk files;
    int at; /* the file after the one that is open */
    struct file_in *in;
    struct warc *warc;
    bool whole; /* the open file is an HTML file, and one page */
    uint64_t archives, pages, records, unread;
    uint64_t kind[PAGE_KINDS];
    uint64_t entity_bytes, html_bytes, faults, truncated; /* atomic: by all threads */
};

struct extract_thread {
    struct page_reader reader;
    struct html_worker *html;
    struct buf repaired;
};

void extract_conf_init(struct extract_conf *c)
{
    html_conf_init(&c->html);
    c->max_page = 16 << 20;
    c->verify = false;
}

/* ---- files ---- */

static bool ends_with(struct span s, const char *end)
{
    size_t n = strlen(end);

    return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

static bool has_ending(const char *path, const char *const *endings)
{
    struct span s = span_of(path);

    if (ends_with(s, ".gz"))
        s.n -= 3;
    else if (ends_with(s, ".zst"))
        s.n -= 4;
    for (; *endings; endings++)
        if (ends_with(s, *endings))
            return true;
    return false;
}

static bool named_archive(const char *path)
{
    static const char *const endings[] = {".warc", ".wet", ".wat", ".arc", NULL};

    return has_ending(path, endings);
}

static bool named_html(const char *path)
{
    static const char *const endings[] = {".html", ".htm", ".xhtml", ".xht", ".shtml", NULL};

    return has_ending(path, endings);
}

static void close_file(struct extract *x)
{
    if (x->warc && warc_unseparated(x->warc))
        log_msg(LOG_WARN, "'%s': %" PRIu64 " records are not set apart by empty lines; they were read",
                file_name(x->in), warc_unseparated(x->warc));
    warc_close(x->warc);
    file_close(x->in);
    x->warc = NULL;
    x->in = NULL;
}

/* Decides what the open file is.  1: read it; 0: it is of no interest. */
static int recognise(struct extract *x, const struct walk_file *f, struct err *e)
{
    int kind = warc_kind(x->warc, e);
    struct span start;

    if (kind < 0)
        return kind;
    x->whole = false;
    if (kind != WARC_NONE || named_archive(f->path)) {
        x->archives++;
        return 1;
    }
    x->whole = true;
    start = warc_peek(x->warc);
    if (named_html(f->path) || page_is_html(start)) {
        x->pages++;
        return 1;
    }
    if (!f->named) {
        x->unread++;
        return 0;
    }
    if (start.n == 0) /* an empty file holds no records, whatever it is */
        return 0;
    return err_set(e, ERR_FORMAT, "'%s' is neither a WARC or ARC file nor HTML", f->path);
}

/* Opens the next file that is worth reading: 1, or 0 after the last.  ERR_FORMAT: one
 * that cannot be read. */
static int open_next(struct extract *x, struct err *e)
{
    while (x->at < x->files.n) {
        const struct walk_file *f = &x->files.file[x->at++];
        int rc = file_open(&x->in, f->path, e);

        if (rc == ERR_IO && !f->named)
            return e->code = ERR_FORMAT;
        if (rc < 0)
            return rc;
        rc = warc_open(&x->warc, x->in, (size_t)x->conf.max_page + HEAD_ROOM, e);
        if (rc == 0)
            rc = recognise(x, f, e);
        if (rc == 1)
            return 1;
        close_file(x);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- reading ---- */

static struct span pack(char **at, struct span s)
{
    struct span copy = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

static int make_item(struct extract *x, const struct warc_record *r, enum page_kind kind, void **item,
                     size_t *size, struct err *e)
{
    size_t n = r->id.n + r->uri.n + r->date.n + r->mime.n + r->block.n + r->block_digest.n + r->payload_digest.n;
    struct page_item *it = malloc(sizeof *it + n);
    char *at = (char *)(it + 1);

    if (!it)
        return err_set(e, ERR_NOMEM, "out of memory for a page");
    *it = (struct page_item){.file = x->files.file[x->at - 1].path, .offset = r->offset, .kind = kind,
                             .archived = !x->whole};
    it->id = pack(&at, r->id);
    it->uri = pack(&at, r->uri);
    it->date = pack(&at, r->date);
    it->mime = pack(&at, r->mime);
    it->block = pack(&at, r->block);
    it->block_digest = pack(&at, r->block_digest);
    it->payload_digest = pack(&at, r->payload_digest);
    *item = it;
    *size = r->block.n;
    return 1;
}

/* The next page of the open archive: 1, or 0 at its end. */
static int next_record(struct extract *x, void **item, size_t *size, struct err *e)
{
    struct warc_record r;
    struct http_head head;
    enum page_kind kind;
    int rc;

    while ((rc = warc_next(x->warc, &r, e)) > 0) {
        x->records++;
        kind = page_judge(&r, &head);
        x->kind[kind]++;
        if (kind > PAGE_UNSURE)
            continue;
        if (r.cut)
            return err_set(e, ERR_FORMAT,
                           "'%s' at byte %" PRIu64 ": the page of %" PRId64 " bytes is longer than %" PRId64,
                           file_name(x->in), r.offset, r.length, x->conf.max_page);
        return make_item(x, &r, kind, item, size, e);
    }
    return rc;
}

/* The open HTML file. */
static int whole_file(struct extract *x, void **item, size_t *size, struct err *e)
{
    struct warc_record r = {.length = 0};
    int rc = warc_read_whole(x->warc, (size_t)x->conf.max_page, &r.block, e);

    if (rc == ERR_LIMIT)
        return e->code = ERR_FORMAT;
    if (rc < 0)
        return rc;
    r.id = span_of(x->files.file[x->at - 1].path);
    return make_item(x, &r, PAGE_HTML, item, size, e);
}

static int extract_read(void *source, void **item, size_t *size, bool *bad, struct err *e)
{
    struct extract *x = source;
    int rc;

    do {
        rc = x->in ? 1 : open_next(x, e);
        if (rc == 1)
            rc = x->whole ? whole_file(x, item, size, e) : next_record(x, item, size, e);
        else if (rc == 0)
            return 0;
        if (x->in && (rc == 0 || x->whole))
            close_file(x);
    } while (rc == 0);
    if (rc != ERR_FORMAT)
        return rc < 0 ? rc : 0;
    *bad = true;
    return 0;
}

static void item_free(void *source, void *item)
{
    (void)source;
    free(item);
}

/* ---- making documents ---- */

static int thread_open(void *source, void **thread, struct err *e)
{
    const struct extract *x = source;
    struct extract_thread *t = calloc(1, sizeof *t);

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    *thread = t;
    TRY(page_reader_open(&t->reader, e));
    return html_worker_new(&t->html, &x->conf.html, e);
}

static void thread_close(void *source, void *thread)
{
    struct extract_thread *t = thread;

    (void)source;
    page_reader_close(&t->reader);
    html_worker_free(t->html);
    buf_free(&t->repaired);
    free(t);
}

static void count(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

/* Sets a field from an archive's header, which may be anything. */
static int set_header(struct extract_thread *t, struct doc *d, const char *key, struct span value)
{
    if (utf8_valid(value))
        return doc_set_string(d, key, value);
    buf_clear(&t->repaired);
    TRY(utf8_repair(value, &t->repaired));
    return doc_set_string(d, key, buf_span(&t->repaired));
}

static int set_id(struct extract_thread *t, struct doc *d, const struct page_item *it)
{
    if (it->id.n)
        return set_header(t, d, "id", it->id);
    buf_clear(&t->repaired);
    TRY(buf_printf(&t->repaired, "%s:%" PRIu64, it->file, it->offset));
    struct buf name = t->repaired;
    t->repaired = (struct buf){0};
    int rc = set_header(t, d, "id", buf_span(&name));
    buf_free(&name);
    return rc;
}

/* The fields, in the order in which they are written; text comes last. */
static int set_fields(struct extract_thread *t, struct doc *d, const struct page_item *it,
                      const struct html_page *p)
{
    struct span none = {"", 0};

    TRY(set_id(t, d, it));
    TRY(set_header(t, d, "url", it->uri));
    TRY(doc_set_string(d, "title", p->title.p ? p->title : none));
    TRY(doc_set_string(d, "date", p->date.p ? p->date : none));
    TRY(doc_set_string(d, "lang", p->lang.p ? p->lang : none));
    if (p->author.n)
        TRY(doc_set_string(d, "author", p->author));
    if (p->canonical.n)
        TRY(doc_set_string(d, "canonical", p->canonical));
    if (it->date.n)
        TRY(set_header(t, d, "crawled", it->date));
    return doc_set_string(d, "text", p->text.p ? p->text : none);
}

/* Holds the record's bytes against what its header states. */
static int verify(const struct page_item *it, const struct http_head *head, struct err *e)
{
    struct span body = {it->block.p + head->length, it->block.n - head->length};

    if (digest_check(it->block_digest, it->block) == DIGEST_OTHER)
        return err_set(e, ERR_FORMAT, "WARC-Block-Digest is not that of the block");
    if (it->block_digest.n == 0 && digest_check(it->payload_digest, body) == DIGEST_OTHER)
        return err_set(e, ERR_FORMAT, "WARC-Payload-Digest is not that of the payload");
    return 0;
}

static int make_page(struct extract *x, struct extract_thread *t, const struct page_item *it,
                     struct html_page *out, struct verdict *v, struct err *e)
{
    struct http_head head = {0};
    struct page page;
    bool html = it->kind != PAGE_TEXT;

    if (it->archived)
        http_parse_head(it->block, &head);
    if (x->conf.verify)
        TRY(verify(it, &head, e));
    TRY(page_decode(&t->reader, it->block, &head, it->mime, html, (size_t)x->conf.max_page, &page, e));
    count(&x->entity_bytes, page.entity.n);
    if (page.fault)
        count(&x->faults, 1);
    if (it->kind == PAGE_UNSURE && !page_is_html(page.utf8))
        return verdict_drop(v, "not_html", NAN, NAN);
    if (!html) {
        *out = (struct html_page){.text = page.utf8};
        return 0;
    }
    count(&x->html_bytes, page.utf8.n);
    TRY(html_extract(t->html, page.utf8, it->uri, out, e));
    if (out->truncated)
        count(&x->truncated, 1);
    return 0;
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
    const struct page_item *it = item;
    struct html_page page = {.title = {NULL, 0}};
    int rc;

    d->file = it->file;
    d->offset = it->offset;
    TRY(make_page(source, thread, it, &page, v, e));
    rc = set_fields(thread, d, it, &page);
    if (rc < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    if (!v->drop && is_blank(page.text))
        verdict_drop(v, "empty", 0, 1);
    return 0;
}

/* ---- statistics ---- */

static int put_count(struct buf *b, const char *key, uint64_t n)
{
    TRY(json_put_key(b, key));
    return json_put_int(b, (int64_t)n);
}

static int extract_stats(void *source, struct buf *b)
{
    const struct extract *x = source;

    TRY(put_count(b, "archives", x->archives));
    TRY(put_count(b, "html_files", x->pages));
    TRY(put_count(b, "other_files", x->unread));
    TRY(put_count(b, "records", x->records));
    TRY(json_put_key(b, "passed_over"));
    TRY(buf_putc(b, '{'));
    for (int i = PAGE_UNSURE + 1; i < PAGE_KINDS; i++)
        if (x->kind[i])
            TRY(put_count(b, page_kind_name((enum page_kind)i), x->kind[i]));
    TRY(buf_putc(b, '}'));
    TRY(put_count(b, "page_bytes", x->entity_bytes));
    TRY(put_count(b, "html_utf8_bytes", x->html_bytes));
    TRY(put_count(b, "coding_faults", x->faults));
    return put_count(b, "truncated", x->truncated);
}

/* ---- open and close ---- */

static const struct source_ops ops = {
    .name = "extract",
    .read = extract_read,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .make = extract_make,
    .item_free = item_free,
    .stats = extract_stats,
};

int extract_open(struct source *s, const struct extract_conf *c, char *const *paths, int n, struct err *e)
{
    struct extract *x = calloc(1, sizeof *x);
    char standard[] = "-", *const only[] = {standard};
    int rc;

    *s = (struct source){&ops, x};
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    x->conf = *c;
    rc = walk_list(&x->files, n ? paths : only, n ? n : 1, e);
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
