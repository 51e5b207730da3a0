#include <inttypes.h>

#include "base/utf8.h"
#include "base/digest.h"
#include "curate/extract/extract.h"
#include "curate/archive/page.h"

struct lister {
    const struct extract_conf *conf;
    struct page_reader reader;
    const char *path;
    struct buf *out, repaired;
};

static int put_text(struct lister *l, const char *key, struct span s)
{
    if (!s.p)
        return 0;
    buf_clear(&l->repaired);
    TRY(utf8_repair(s, &l->repaired));
    TRY(json_put_key(l->out, key));
    return json_put_string(l->out, buf_span(&l->repaired));
}

static int put_number(struct lister *l, const char *key, int64_t v)
{
    TRY(json_put_key(l->out, key));
    return json_put_int(l->out, v);
}

static int put_sha1(struct lister *l, const char *key, struct span s)
{
    char hex[DIGEST_HEX];

    digest_sha1_hex(s, hex);
    return put_text(l, key, span_of(hex));
}

static int put_digest(struct lister *l, const char *key, struct span stated, struct span s)
{
    enum digest_match m = digest_check(stated, s);

    if (m == DIGEST_UNKNOWN)
        return 0;
    TRY(json_put_key(l->out, key));
    return buf_puts(l->out, m == DIGEST_SAME ? "true" : "false");
}

/* What the block says and holds. */
static int put_page(struct lister *l, const struct warc_record *r, const struct http_head *head,
                    enum page_kind kind, struct err *e)
{
    struct page page;
    int rc;

    if (head->status) {
        TRY(put_number(l, "status", head->status));
        TRY(put_text(l, "http_mime", head->mime));
    }
    rc = page_decode(&l->reader, r->block, head, r->mime, kind != PAGE_TEXT, (size_t)l->conf->max_page, &page, e);
    if (rc == ERR_LIMIT)
        return put_text(l, "fault", span_of(e->msg));
    TRY(rc);
    TRY(put_digest(l, "payload_digest_ok", r->payload_digest,
                   (struct span){r->block.p + head->length, r->block.n - head->length}));
    if (page.fault)
        TRY(put_text(l, "fault", span_of(page.fault)));
    TRY(put_number(l, "entity_length", (int64_t)page.entity.n));
    TRY(put_sha1(l, "entity_sha1", page.entity));
    if (kind > PAGE_UNSURE)
        return 0;
    TRY(put_text(l, "charset", span_of(page.charset)));
    return put_sha1(l, "utf8_sha1", page.utf8);
}

static int put_record(struct lister *l, const struct warc_record *r, const char *error, struct err *e)
{
    struct http_head head;
    enum page_kind kind = page_judge(r, &head);

    TRY(buf_putc(l->out, '{'));
    TRY(put_text(l, "file", span_of(l->path)));
    TRY(put_number(l, "offset", (int64_t)r->offset));
    TRY(put_number(l, "member", (int64_t)r->member));
    TRY(put_text(l, "version", r->version));
    TRY(put_text(l, "type", r->type));
    TRY(put_text(l, "id", r->id));
    TRY(put_text(l, "uri", r->uri));
    TRY(put_text(l, "date", r->date));
    TRY(put_text(l, "mime", r->mime));
    if (r->length >= 0)
        TRY(put_number(l, "length", r->length));
    if (error)
        TRY(put_text(l, "error", span_of(error)));
    if (r->version.p)
        TRY(put_text(l, "is", span_of(page_kind_name(kind))));
    if (!r->cut && r->block.p) {
        TRY(put_sha1(l, "block_sha1", r->block));
        TRY(put_digest(l, "block_digest_ok", r->block_digest, r->block));
        if (kind <= PAGE_UNSURE || head.status)
            TRY(put_page(l, r, &head, kind, e));
    }
    return buf_puts(l->out, "}\n");
}

static int list_records(struct lister *l, struct warc *w, int (*put)(void *, struct buf *, struct err *),
                        void *arg, struct err *e)
{
    int n_bad = 0;

    for (;;) {
        struct warc_record r;
        struct err why;
        int rc = warc_next(w, &r, e);

        if (rc == 0)
            return n_bad;
        if (rc < 0 && rc != ERR_FORMAT)
            return rc;
        n_bad += rc == ERR_FORMAT;
        why = *e;
        rc = put_record(l, &r, rc < 0 ? why.msg : NULL, e);
        if (rc < 0)
            return err_set(e, rc, "out of memory for a record's line");
        TRY(put(arg, l->out, e));
    }
}

int extract_list(const char *path, const struct extract_conf *c, struct buf *out,
                 int (*put)(void *arg, struct buf *out, struct err *e), void *arg, struct err *e)
{
    struct lister l = {.conf = c, .path = path, .out = out};
    struct file_in *f;
    struct warc *w = NULL;
    int rc;

    TRY(file_open(&f, path, e));
    rc = warc_open(&w, f, (size_t)c->max_page, e);
    if (rc == 0)
        rc = page_reader_open(&l.reader, e);
    if (rc == 0)
        rc = list_records(&l, w, put, arg, e);
    page_reader_close(&l.reader);
    buf_free(&l.repaired);
    warc_close(w);
    file_close(f);
    return rc;
}
