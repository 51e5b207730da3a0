/* A format: documents that are zip archives of XML: books (EPUB 2 and 3), and word processors' (DOCX, ODT). */
#include <stdlib.h>

#include "base/ascii.h"
#include "curate/archive/zip.h"
#include "curate/extract/extract_xml.h"
#include "curate/xml/word_styles.h"

enum { ARCHIVE_MAX = 4, CHAPTERS_MAX = 10000 }; /* ARCHIVE_MAX: in --max-page-bytes, packed and unpacked */

static bool has(struct span s, const char *what)
{
    return memmem(s.p, s.n, what, strlen(what)) != NULL;
}

/* A zip archive in whose first members these formats' names are. */
static enum extract_match probe(const struct extract_input *in)
{
    struct span s = in->start;

    if (!span_starts(s, "PK\3\4"))
        return EXTRACT_NO;
    return has(s, "mimetypeapplication/epub+zip") || has(s, "META-INF/container.xml") || has(s, "word/document.xml") ||
                   has(s, "mimetypeapplication/vnd.oasis.opendocument.text") || (has(s, "[Content_Types].xml") && has(s, "word/"))
               ? EXTRACT_SURE
               : EXTRACT_NO;
}

/* ---- reading: a file is an item ---- */

struct zip_item {
    struct extract_item item;
    struct span bytes;
};

static int next(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct span all, path = span_of(in->path);
    struct zip_item *it;
    char *at;
    int rc = extract_whole_next(in, reader, (size_t)in->conf->max_page * ARCHIVE_MAX, &all, e);

    if (rc != 1)
        return rc;
    it = malloc(sizeof *it + path.n);
    if (!it)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    at = (char *)(it + 1);
    *it = (struct zip_item){.item = {.size = all.n}, .bytes = all};
    it->item.id = extract_pack(&at, path);
    it->item.also = warc_take_whole(in->stream);
    *item = &it->item;
    return 1;
}

/* ---- making documents ---- */

struct zip_maker {
    struct xml_maker xml; /* first: extract_xml_close takes it */
    struct zip zip;
    struct word_styles styles;
    struct buf bytes, package, value, path;
    size_t left; /* bytes that may still be unpacked of this archive */
    struct chapter {
        size_t id, id_n, href, href_n; /* in value */
        bool read;
    } *chapter;
    size_t n_chapters, cap_chapters;
};

static int maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    return extract_xml_open(sizeof(struct zip_maker), c, n, maker, e);
}

static void maker_close(void *maker)
{
    struct zip_maker *m = maker;

    zip_close(&m->zip);
    word_styles_free(&m->styles);
    buf_free(&m->bytes);
    buf_free(&m->package);
    buf_free(&m->value);
    buf_free(&m->path);
    free(m->chapter);
    extract_xml_close(m);
}

/* Unpacks a member, within what is left of the archive, and makes it UTF-8: 1; 0 without one. */
static int member_utf8(struct zip_maker *m, struct span name, struct span *utf8, struct err *e)
{
    const struct zip_member *member = zip_find(&m->zip, name);
    size_t most = m->left < (size_t)m->xml.conf->max_page ? m->left : (size_t)m->xml.conf->max_page;

    if (!member)
        return 0;
    TRY(zip_read(&m->zip, member, most, &m->bytes, e));
    m->left -= m->bytes.n;
    TRY(extract_xml_decode(&m->xml, buf_span(&m->bytes), (struct span){"", 0}, true, utf8, e));
    extract_count(&m->xml.counts->xml_bytes, utf8->n);
    return 1;
}

/* Reads a member as a document of a format: 1; 0 without one. */
static int run(struct zip_maker *m, struct span name, const struct xml_format *f, struct err *e)
{
    struct span utf8 = {"", 0};
    int rc = member_utf8(m, name, &utf8, e);

    if (rc <= 0)
        return rc;
    rc = xml_text_run(m->xml.text, f, utf8, e);
    if (rc < 0) {
        err_wrap(e, "'%.*s'", (int)(name.n < 100 ? name.n : 100), name.p);
        return rc;
    }
    return 1;
}

/* ---- EPUB ---- */

/* The member that a URL names which stands in the member base: the path, without what climbs out of the archive. */
static int resolve(struct span base, struct span url, struct buf *out)
{
    size_t from;

    buf_clear(out);
    while (base.n && base.p[base.n - 1] != '/')
        base.n--;
    TRY(buf_put_span(out, base));
    for (size_t i = 0; i < url.n && url.p[i] != '#' && url.p[i] != '?'; i++) {
        char c = url.p[i];
        if (c == '%' && i + 2 < url.n && ascii_is_hex(url.p[i + 1]) && ascii_is_hex(url.p[i + 2])) {
            c = (char)(ascii_hex(url.p[i + 1]) * 16 + ascii_hex(url.p[i + 2]));
            i += 2;
        }
        TRY(buf_putc(out, c));
        if (c != '/')
            continue;
        for (from = out->n - 1; from && out->p[from - 1] != '/'; from--)
            ;
        struct span part = {out->p + from, out->n - from};
        if (span_is(part, "./")) {
            out->n = from;
        } else if (span_is(part, "../")) {
            for (from = from ? from - 1 : 0; from && out->p[from - 1] != '/'; from--)
                ;
            out->n = from;
        }
    }
    return 0;
}

/* Puts an attribute of r into m->value: where it is. */
static int note(struct zip_maker *m, const struct xml_reader *r, const char *name, size_t *at, size_t *n)
{
    *at = m->value.n;
    TRY(xml_attr_text(r, name, &m->value));
    *n = m->value.n - *at;
    return 0;
}

/* The manifest's chapters. */
static int list_chapters(struct zip_maker *m, struct span opf)
{
    struct xml_reader r = {0};
    enum xml_event ev;
    int rc = 0;

    m->n_chapters = 0;
    buf_clear(&m->value);
    xml_reader_begin(&r, opf);
    while (rc >= 0 && !r.too_much && (ev = xml_next(&r)) != XML_EV_END) {
        if (ev != XML_EV_START || !span_is(r.name, "item") || m->n_chapters == CHAPTERS_MAX)
            continue;
        struct span type = xml_attr(&r, "media-type");
        if (!(span_is(type, "application/xhtml+xml") || span_is(type, "text/html") || span_is(type, "text/x-oeb1-document")))
            continue;
        rc = mem_grow(&m->chapter, &m->cap_chapters, m->n_chapters + 1, sizeof *m->chapter);
        if (rc < 0)
            break;
        struct chapter *c = &m->chapter[m->n_chapters++];
        c->read = false;
        rc = note(m, &r, "id", &c->id, &c->id_n);
        rc = rc < 0 ? rc : note(m, &r, "href", &c->href, &c->href_n);
    }
    xml_reader_free(&r);
    return rc;
}

/* Reads the chapters in the order of the spine, each once. */
static int read_spine(struct zip_maker *m, struct span opf_name, struct span opf, struct err *e)
{
    struct xml_reader r = {0};
    enum xml_event ev;
    int rc = 0, n = 0;

    xml_reader_begin(&r, opf);
    while (rc >= 0 && n < CHAPTERS_MAX && !r.too_much && (ev = xml_next(&r)) != XML_EV_END) {
        if (ev != XML_EV_START || !span_is(r.name, "itemref"))
            continue;
        n++;
        struct span id = xml_attr(&r, "idref");
        for (size_t i = 0; i < m->n_chapters; i++) {
            struct chapter *c = &m->chapter[i];
            if (!span_eq((struct span){m->value.p + c->id, c->id_n}, id))
                continue;
            if (!c->read) {
                rc = resolve(opf_name, (struct span){m->value.p + c->href, c->href_n}, &m->path);
                rc = rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a book")
                            : run(m, buf_span(&m->path), &xml_xhtml, e);
            }
            c->read = true;
            break;
        }
    }
    xml_reader_free(&r);
    return rc < 0 ? rc : 0;
}

/* The name of the package: what the container says, else the first that looks like one.  It lies in m->package's place. */
static int find_package(struct zip_maker *m, struct buf *name, struct err *e)
{
    const struct zip_member *c = zip_find(&m->zip, span_of("META-INF/container.xml"));
    struct xml_reader r = {0};
    enum xml_event ev;
    int rc = 0;

    buf_clear(name);
    if (c) {
        TRY(zip_read(&m->zip, c, (size_t)m->xml.conf->max_page, &m->bytes, e));
        xml_reader_begin(&r, buf_span(&m->bytes));
        while (rc == 0 && (ev = xml_next(&r)) != XML_EV_END)
            if (ev == XML_EV_START && span_is(r.name, "rootfile"))
                rc = xml_attr_text(&r, "full-path", name);
        xml_reader_free(&r);
    }
    for (size_t i = 0; i < m->zip.n && rc == 0; i++)
        if (span_ends(m->zip.member[i].name, ".opf"))
            rc = buf_put_span(name, m->zip.member[i].name) < 0 ? ERR_NOMEM : 1;
    if (rc < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a book");
    return rc ? 0 : err_set(e, ERR_FORMAT, "a book without a package");
}

static int make_book(struct zip_maker *m, struct err *e)
{
    struct buf name = {0};
    int rc = find_package(m, &name, e);

    if (rc == 0)
        rc = run(m, buf_span(&name), &xml_core, e);
    if (rc == 0)
        rc = err_set(e, ERR_FORMAT, "the book's package is not in the archive");
    if (rc > 0) { /* its bytes are needed until the last chapter */
        struct buf swap = m->package;
        m->package = m->bytes;
        m->bytes = swap;
        rc = list_chapters(m, buf_span(&m->package));
        rc = rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a book")
                    : read_spine(m, buf_span(&name), buf_span(&m->package), e);
    }
    buf_free(&name);
    return rc;
}

/* ---- word processors ---- */

/* Reads what a document's paragraphs refer to.  Without it, or where it is damaged, there still is the text. */
static int read_styles(struct zip_maker *m, struct err *e)
{
    static const struct { const char *name; int (*read)(struct word_styles *w, struct span xml); } parts[] = {
        {"word/styles.xml", word_styles_read}, {"word/numbering.xml", word_styles_read_lists}};
    struct span utf8;
    int rc;

    word_styles_reset(&m->styles);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        rc = member_utf8(m, span_of(parts[i].name), &utf8, e);
        if (rc == ERR_NOMEM)
            return rc;
        if (rc < 0)
            extract_count(&m->xml.counts->xml_faults, 1);
        if (rc == 1 && parts[i].read(&m->styles, utf8) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a document's styles");
    }
    return 0;
}

static int make_word(struct zip_maker *m, struct err *e)
{
    int rc;

    TRY(run(m, span_of("docProps/core.xml"), &xml_core, e));
    TRY(read_styles(m, e));
    xml_text_set_styles(m->xml.text, &m->styles);
    rc = run(m, span_of("word/document.xml"), &xml_word, e);
    if (rc <= 0)
        return rc < 0 ? rc : err_set(e, ERR_FORMAT, "a zip archive without word/document.xml");
    TRY(run(m, span_of("word/footnotes.xml"), &xml_word, e));
    TRY(run(m, span_of("word/endnotes.xml"), &xml_word, e));
    return 0;
}

static int make_odt(struct zip_maker *m, struct err *e)
{
    int rc;

    TRY(run(m, span_of("meta.xml"), &xml_core, e));
    rc = run(m, span_of("content.xml"), &xml_odt, e);
    return rc < 0 ? rc : rc ? 0 : err_set(e, ERR_FORMAT, "a zip archive without content.xml");
}

static int make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e)
{
    struct zip_maker *m = maker;
    const struct zip_item *it = (const struct zip_item *)item;
    struct xml_doc x;

    (void)v;
    TRY(zip_open(&m->zip, it->bytes, e));
    m->left = (size_t)m->xml.conf->max_page * ARCHIVE_MAX;
    xml_text_begin(m->xml.text);
    if (zip_find(&m->zip, span_of("META-INF/container.xml")) || has(it->bytes, "mimetypeapplication/epub+zip"))
        TRY(make_book(m, e));
    else if (zip_find(&m->zip, span_of("content.xml")))
        TRY(make_odt(m, e));
    else
        TRY(make_word(m, e));
    TRY(xml_text_end(m->xml.text, &x, e));
    return extract_xml_fields(&m->xml, item, &x, d, e);
}

const struct extract_format extract_zip = {
    .stat = "zip_files",
    .probe = probe,
    .open = extract_whole_open,
    .next = next,
    .close = extract_whole_close,
    .maker_open = maker_open,
    .maker_close = maker_close,
    .make = make,
};
