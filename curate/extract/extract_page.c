/* Two formats: archives of pages, and an HTML file as one page. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/digest.h"
#include "curate/extract/extract_format.h"
#include "curate/text/robots.h"
#include "curate/html/html_url.h"

/* A page on its way from reading to extraction; the spans lie behind the struct, a long block by itself. */
struct page_item {
    struct extract_item item;
    struct http_head head; /* what HTTP head the block begins with */
    enum page_kind kind;
    uint64_t member, stored, within; /* its place in the archive as stored (struct warc_record) */
    struct span dump, uri, date, mime, identified, block, block_digest, payload_digest;
};

enum {
    LONG_PAGE = 1 << 20, /* a file of so many bytes is handed on, not copied */
    DUMP_MAX = 256,      /* bytes of a dump's name that is believed */
    LANG_MAX = 35        /* bytes of a language tag that is believed */
};

/* ---- telling and reading ---- */

static enum extract_match probe_warc(const struct extract_input *in)
{
    static const char *const endings[] = {".warc", ".wet", ".wat", ".arc", NULL};

    struct err e;

    return warc_kind(in->stream, &e) > WARC_NONE || extract_named(in->path, endings) ? EXTRACT_SURE : EXTRACT_NO;
}

static enum extract_match probe_html(const struct extract_input *in)
{
    static const char *const endings[] = {".html", ".htm", ".xhtml", ".xht", ".shtml", NULL};

    if (extract_named(in->path, endings))
        return EXTRACT_SURE;
    return page_is_html(in->start) ? EXTRACT_LOOKS : EXTRACT_NO;
}

int extract_record_item(const struct warc_record *r, enum page_kind kind, const struct http_head *head, struct span dump,
                        struct extract_item **item, struct err *e)
{
    size_t n = dump.n + r->id.n + r->uri.n + r->date.n + r->mime.n + r->identified.n + r->block.n + r->block_digest.n +
               r->payload_digest.n;
    struct page_item *it = malloc(sizeof *it + n);
    char *at;

    if (!it)
        return err_set(e, ERR_NOMEM, "out of memory for a page");
    at = (char *)(it + 1);
    *it = (struct page_item){.item = {.offset = r->offset, .size = r->block.n, .record = true, .member = r->member,
                                      .behind = r->within}, .kind = kind, .head = *head};
    it->item.id = extract_pack(&at, r->id);
    it->member = r->member;
    it->stored = r->stored;
    it->within = r->within;
    it->dump = extract_pack(&at, dump);
    it->uri = extract_pack(&at, r->uri);
    it->date = extract_pack(&at, r->date);
    it->mime = extract_pack(&at, r->mime);
    it->identified = extract_pack(&at, r->identified);
    it->block = extract_pack(&at, r->block);
    http_move_head(&it->head, r->block, it->block.p);
    it->block_digest = extract_pack(&at, r->block_digest);
    it->payload_digest = extract_pack(&at, r->payload_digest);
    *item = &it->item;
    return 1;
}

/* What is known of an open archive: the dump of which its warcinfo says that it is a part. */
struct archive {
    struct buf dump;
};

static int open_archive(struct extract_input *in, void **reader, struct err *e)
{
    (void)in;
    *reader = calloc(1, sizeof(struct archive));
    return *reader ? 0 : err_set(e, ERR_NOMEM, "out of memory for a file");
}

struct span extract_dump(struct span block)
{
    struct span dump = warc_info(block, "isPartOf");

    return dump.n <= DUMP_MAX ? dump : (struct span){NULL, 0};
}

/* Takes "isPartOf: CC-MAIN-2024-10" of a warcinfo record. */
static int take_info(struct archive *a, struct span block, struct err *e)
{
    struct span dump = extract_dump(block);

    buf_clear(&a->dump);
    if (dump.n && buf_put_span(&a->dump, dump) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a file");
    return 0;
}

static int next_record(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct warc_record r;
    struct http_head head;
    enum page_kind kind;
    struct archive *a = reader;
    int rc;

    while ((rc = warc_next(in->stream, &r, e)) > 0) {
        in->counts->records++;
        kind = page_judge(&r, &head);
        in->counts->kind[kind]++;
        if (kind == PAGE_INFO)
            TRY(take_info(a, r.block, e));
        if (kind > PAGE_UNSURE)
            continue;
        if (r.cut)
            return err_set(e, ERR_FORMAT,
                           "'%s' at byte %" PRIu64 ": the page of %" PRId64 " bytes is longer than %" PRId64,
                           in->path, r.offset, r.length, in->conf->max_page);
        return extract_record_item(&r, kind, &head, buf_span(&a->dump), item, e);
    }
    return rc;
}

static void close_archive(struct extract_input *in, void *reader)
{
    uint64_t n = warc_unseparated(in->stream);
    struct archive *a = reader;

    buf_free(&a->dump);
    free(a);
    if (n)
        log_msg(LOG_WARN, "'%s': %" PRIu64 " records are not set apart by empty lines; they were read", in->path, n);
}

static int next_html(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    const struct http_head none = {0};
    struct warc_record r = {.length = 0};
    struct page_item *it;
    struct span page;
    int rc = extract_whole_next(in, reader, (size_t)in->conf->max_page, &page, e);

    if (rc != 1)
        return rc;
    r.id = span_of(in->path);
    if (page.n < LONG_PAGE)
        r.block = page;
    TRY(extract_record_item(&r, PAGE_HTML, &none, (struct span){NULL, 0}, item, e));
    it = (struct page_item *)*item;
    if (page.n < LONG_PAGE)
        return 1;
    it->block = page;
    it->item.size = page.n;
    it->item.also = warc_take_whole(in->stream);
    return 1;
}

/* ---- making documents ---- */

struct page_maker {
    const struct extract_conf *conf;
    struct extract_counts *counts;
    struct page_reader reader;
    struct html_worker *html;
    struct buf robots, license, canonical, policy; /* what HTTP says, and the page */
};

static void maker_close(void *maker)
{
    struct page_maker *m = maker;

    page_reader_close(&m->reader);
    html_worker_free(m->html);
    buf_free(&m->robots);
    buf_free(&m->license);
    buf_free(&m->canonical);
    buf_free(&m->policy);
    free(m);
}

static int maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    struct page_maker *m = calloc(1, sizeof *m);

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    *maker = m;
    m->conf = c;
    m->counts = n;
    TRY(page_reader_open(&m->reader, e));
    return html_worker_new(&m->html, &c->html, e);
}

/* Holds the record's bytes against what its header states. */
static int verify(const struct page_item *it, struct err *e)
{
    struct span body = {it->block.p + it->head.length, it->block.n - it->head.length};

    if (digest_check(it->block_digest, it->block) == DIGEST_OTHER)
        return err_set(e, ERR_FORMAT, "WARC-Block-Digest is not that of the block");
    if (it->block_digest.n == 0 && digest_check(it->payload_digest, body) == DIGEST_OTHER)
        return err_set(e, ERR_FORMAT, "WARC-Payload-Digest is not that of the payload");
    return 0;
}

static int make_page(struct page_maker *m, const struct page_item *it, struct html_page *out, struct extract_source *source,
                     struct verdict *v, struct err *e)
{
    struct page page;
    bool html = it->kind != PAGE_TEXT;

    if (m->conf->verify)
        TRY(verify(it, e));
    TRY(page_decode(&m->reader, it->block, &it->head, it->mime, html, (size_t)m->conf->max_page, &page, e));
    source->charset = page.charset;
    source->charset_declared = page.declared;
    extract_count(&m->counts->entity_bytes, page.entity.n);
    if (page.fault)
        extract_count(&m->counts->faults, 1);
    if (page_is_binary(&page, it->identified))
        return verdict_drop(v, &extract_rules[EXTRACT_BINARY], NAN, NAN);
    if (it->kind == PAGE_UNSURE && !page_is_html(page.utf8))
        return verdict_drop(v, &extract_rules[EXTRACT_NOT_HTML], NAN, NAN);
    if (!html) {
        *out = (struct html_page){.text = page.utf8};
        return 0;
    }
    extract_count(&m->counts->html_bytes, page.utf8.n);
    TRY(html_extract(m->html, page.utf8, it->uri, out, e));
    extract_count(&m->counts->data_faults, out->data_faults);
    extract_count(&m->counts->from_data, out->from_data);
    if (out->truncated)
        extract_count(&m->counts->truncated, 1);
    return 0;
}

/* A link of the header Link, made absolute, where the page itself has none. */
static int add_link(const struct page_item *it, const char *rel, struct buf *made, struct span *field)
{
    struct span value, target;

    for (size_t at = 0; !field->n && http_field(it->block, &it->head, "Link", &at, &value);) {
        target = http_link(value, rel);
        if (target.n)
            TRY(html_url_resolve(it->uri, target, made));
        *field = target.n ? buf_span(made) : *field;
    }
    return 0;
}

/* Adds what the head of the response says to what the page says: all directives to robots, and the page's word first for
 * the rest; a reservation that either makes holds. */
static int add_http(struct page_maker *m, const struct page_item *it, struct html_page *p)
{
    struct span value;
    size_t at = 0;

    buf_clear(&m->robots);
    while (http_field(it->block, &it->head, "X-Robots-Tag", &at, &value))
        TRY(robots_add_header(&m->robots, value));
    TRY(robots_add(&m->robots, p->robots));
    p->robots = buf_span(&m->robots);
    at = 0;
    if (http_field(it->block, &it->head, "tdm-reservation", &at, &value) &&
        (span_is(value, "1") || (span_is(value, "0") && !p->tdm_reservation.n)))
        p->tdm_reservation = value;
    at = 0;
    if (!p->tdm_policy.n && http_field(it->block, &it->head, "tdm-policy", &at, &value)) {
        TRY(html_url_resolve(it->uri, value, &m->policy));
        p->tdm_policy = buf_span(&m->policy);
    }
    at = 0;
    if (!p->lang.n && http_field(it->block, &it->head, "Content-Language", &at, &value) && value.n <= LANG_MAX &&
        !memchr(value.p, ',', value.n)) /* of several it is none */
        p->lang = value;
    TRY(add_link(it, "license", &m->license, &p->license));
    return add_link(it, "canonical", &m->canonical, &p->canonical);
}

/* What is known of a page's origin but for its charset, which is set. */
static void set_source(const struct page_item *it, const struct html_page *p, struct extract_source *s)
{
    s->record = it->item.format == &extract_warc;
    s->offset = it->member;
    s->length = it->stored;
    s->within = it->within;
    s->dump = it->dump;
    s->digest = it->payload_digest;
    s->content_type = it->head.status ? it->head.mime : it->mime;
    s->date = it->date;
    s->license = p->license;
    s->robots = p->robots;
    s->tdm_reservation = p->tdm_reservation;
    s->tdm_policy = p->tdm_policy;
}

static int make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e)
{
    const struct page_item *it = (const struct page_item *)item;
    struct page_maker *m = maker;
    struct html_page p = {.title = {NULL, 0}};
    struct extract_source source = {.charset = NULL};
    const char *extractor = it->kind == PAGE_TEXT ? NULL : html_extractor_name(m->conf->html.extractor);

    TRY(make_page(maker, it, &p, &source, v, e));
    if (add_http(m, it, &p) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a page");
    set_source(it, &p, &source);
    const struct extract_more more[] = {{"site_name", p.site}};
    return extract_set_fields(d, item,
                              &(struct extract_fields){.url = it->uri,
                                                       .title = p.title,
                                                       .date = p.date,
                                                       .lang = p.lang,
                                                       .author = p.author,
                                                       .canonical = p.canonical,
                                                       .source = source,
                                                       .page_kind = p.kind,
                                                       .page_kind_score = p.kind_score,
                                                       .extractor = extractor,
                                                       .more = more,
                                                       .n_more = sizeof more / sizeof *more,
                                                       .text = p.text},
                              e);
}

const struct extract_format extract_warc = {
    .stat = "archives",
    .probe = probe_warc,
    .open = open_archive,
    .next = next_record,
    .close = close_archive,
    .maker_open = maker_open,
    .maker_close = maker_close,
    .make = make,
};

const struct extract_format extract_html = {
    .stat = "html_files",
    .probe = probe_html,
    .open = extract_whole_open,
    .next = next_html,
    .close = extract_whole_close,
    .maker_open = maker_open,
    .maker_close = maker_close,
    .make = make,
};
