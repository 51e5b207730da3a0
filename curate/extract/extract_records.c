/* A format: lists of records of archives (curate/crawl/record_list.h).  The list is read to its end, and then the bytes that
 * it names, a record at a time; each is read as if it stood in its archive. */
#include <inttypes.h>
#include <stdlib.h>

#include "curate/crawl/crawl_lines.h"
#include "curate/crawl/crawl_places.h"
#include "curate/extract/extract_format.h"

struct records {
    struct extract_input *in;
    struct crawl_lines lines;
    struct crawl_entry entry;
    struct record_list list;
    char *folder; /* of the list */
    struct record_fetch *fetch; /* once the list has been read */
    struct record_fetch_counts before; /* of lists that were read before */
    struct buf dump; /* of the archive in hand, where its beginning says it */
};

/* A list is followed only if it is named on the command line: one that lies in a folder or an archive came with the data. */
static enum extract_match probe(const struct extract_input *in)
{
    return in->named && in->depth == 0 && record_list_begins(in->start) ? EXTRACT_LOOKS : EXTRACT_NO;
}

static ssize_t read_list(void *records, void *p, size_t n, struct err *e)
{
    return warc_read(((struct records *)records)->in->stream, p, n, e);
}

static int skip_list(void *records, struct err *e)
{
    return warc_skip_member(((struct records *)records)->in->stream, e);
}

static int open_list(struct extract_input *in, void **reader, struct err *e)
{
    struct records *r = *reader = calloc(1, sizeof *r);

    if (!r || !(r->folder = crawl_folder_of(in->path)))
        return err_set(e, ERR_NOMEM, "out of memory for a list");
    r->in = in;
    r->before = in->counts->fetched;
    r->lines = (struct crawl_lines){.read = read_list, .skip = skip_list, .arg = r};
    return 0;
}

/* Reads the list to its end: 0.  ERR_FORMAT: a bad line. */
static int take_list(struct records *r, struct err *e)
{
    for (;;) {
        struct span line;
        uint64_t offset;
        int rc = crawl_lines_next(&r->lines, &line, &offset, e);

        if (rc == 0)
            return 0;
        if (rc < 0)
            return rc == ERR_FORMAT ? err_wrap(e, "'%s'", r->in->path) : rc;
        if (line.n == 0)
            continue;
        rc = crawl_entry_json(&r->entry, line, e);
        if (rc == 1)
            rc = record_list_add(&r->list, &r->entry, offset, r->in->conf->fetch.trust, e);
        if (rc < 0)
            return rc == ERR_FORMAT ? err_wrap(e, "'%s' at byte %" PRIu64, r->in->path, offset) : rc;
    }
}

/* The dump that an archive's beginning says it is a part of; none, if that is cut short or is no warcinfo record. */
static int take_dump(struct records *r, struct span head, struct err *e)
{
    struct file_in *f = NULL;
    struct warc *w = NULL;
    struct warc_record rec;
    struct err why;
    int rc = file_open_mem(&f, "", head, e);

    buf_clear(&r->dump);
    if (rc == 0)
        rc = warc_open(&w, f, EXTRACT_HEAD_ROOM, e);
    if (rc == 0 && warc_next(w, &rec, &why) == 1 && span_is(rec.type, "warcinfo"))
        rc = buf_put_span(&r->dump, extract_dump(rec.block)) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a list") : 0;
    warc_close(w);
    file_close(f);
    return rc;
}

/* Whether a record is the one that the list means. */
static int check(const struct record_bytes *b, const struct warc_record *rec, struct err *e)
{
    uint64_t digest = record_digest_key(rec->payload_digest), url = record_url_key(rec->uri);

    if (b->entry->digest && digest && digest != b->entry->digest)
        return err_set(e, ERR_FORMAT, "its digest is %.*s, the list names another",
                       (int)(rec->payload_digest.n < 80 ? rec->payload_digest.n : 80), rec->payload_digest.p);
    if (!(b->entry->digest && digest) && b->entry->url && url != b->entry->url)
        return err_set(e, ERR_FORMAT, "its URL is '%.*s', the list names another", (int)(rec->uri.n < 200 ? rec->uri.n : 200),
                       rec->uri.n ? rec->uri.p : "");
    return 0;
}

/* The item of the one record that lies in b's bytes: 1; 0: it is no page. */
static int take_record(struct records *r, const struct record_bytes *b, struct warc *w, struct extract_item **item, struct err *e)
{
    struct span dump = b->dump ? span_of(b->dump) : buf_span(&r->dump);
    struct extract_counts *n = r->in->counts;
    struct http_head head;
    struct warc_record rec, more;
    enum page_kind kind;
    int rc = warc_next(w, &rec, e);

    if (rc <= 0)
        return rc == 0 ? err_set(e, ERR_FORMAT, "no record begins there") : rc;
    TRY(check(b, &rec, e));
    n->records++;
    kind = page_judge(&rec, &head);
    n->kind[kind]++;
    if (kind > PAGE_UNSURE)
        return 0;
    if (rec.cut)
        return err_set(e, ERR_FORMAT, "the page of %" PRId64 " bytes is longer than %" PRId64, rec.length, r->in->conf->max_page);
    rec.member = rec.offset = b->entry->offset;
    TRY(extract_record_item(&rec, kind, &head, dump, item, e));
    rc = warc_next(w, &more, e);
    if (rc != 0) {
        free(*item);
        return rc < 0 ? rc : err_set(e, ERR_FORMAT, "more than one record lies in these %" PRIu64 " bytes", b->entry->length);
    }
    return extract_item_within(*item, &extract_warc, b->path, e);
}

static int read_record(struct records *r, const struct record_bytes *b, struct extract_item **item, struct err *e)
{
    struct file_in *f = NULL;
    struct warc *w = NULL;
    int rc = file_open_mem(&f, b->path, b->bytes, e);

    if (rc == 0)
        rc = warc_open(&w, f, (size_t)r->in->conf->max_page + EXTRACT_HEAD_ROOM, e);
    if (rc == 0) {
        warc_begin_within(w);
        rc = take_record(r, b, w, item, e);
    }
    warc_close(w);
    file_close(f);
    if (rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_UNSUPPORTED) {
        e->code = ERR_FORMAT;
        return err_wrap(e, "'%s' at byte %" PRIu64, b->path, b->entry->offset);
    }
    return rc;
}

/* Adds what was fetched so far to the counts. */
static void count(struct records *r)
{
    struct record_fetch_counts n, *to = &r->in->counts->fetched;

    record_fetch_count(r->fetch, &n);
    *to = (struct record_fetch_counts){r->before.records + n.records, r->before.bytes + n.bytes,
                                       r->before.fetched_bytes + n.fetched_bytes, r->before.requests + n.requests};
}

static int next_record(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct records *r = reader;
    struct record_bytes b;
    int rc;

    if (!r->fetch) {
        TRY(take_list(r, e));
        record_list_sort(&r->list);
        TRY(record_fetch_open(&r->fetch, &r->list, &in->conf->fetch, r->folder,
                              (uint64_t)in->conf->max_page + EXTRACT_HEAD_ROOM, e));
    }
    do {
        rc = record_fetch_next(r->fetch, &b, e);
        if (rc == 0) {
            count(r);
            return 0;
        }
        if (b.head.n)
            TRY(take_dump(r, b.head, e));
        if (rc == 1)
            rc = read_record(r, &b, item, e);
    } while (rc == 0);
    count(r);
    return rc;
}

static void close_list(struct extract_input *in, void *reader)
{
    struct records *r = reader;

    (void)in;
    if (!r)
        return;
    record_fetch_close(r->fetch);
    record_list_free(&r->list);
    crawl_lines_free(&r->lines);
    crawl_entry_free(&r->entry);
    buf_free(&r->dump);
    free(r->folder);
    free(r);
}

const struct extract_format extract_records = {
    .stat = "record_lists",
    .probe = probe,
    .open = open_list,
    .next = next_record,
    .close = close_list,
};
