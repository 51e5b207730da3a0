/* Formats in XML whose documents are elements or files: articles, books, feeds, patents, law.  Which it is the root says. */
#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "curate/archive/charset.h"
#include "curate/extract/extract_format.h"
#include "curate/extract/extract_xml.h"
#include "curate/xml/xml_cut.h"

/* ---- telling ---- */

bool extract_xml_begins(struct span start)
{
    size_t at = span_starts(start, "\xEF\xBB\xBF") ? 3 : 0;

    while (at < start.n && ascii_is_space(start.p[at]))
        at++;
    return at < start.n && start.p[at] == '<';
}

/* Whether a root is DocBook's: its namespace, or the DTD that is named before it, says so. */
static bool is_docbook(struct span start, struct span root, struct span attrs)
{
    size_t before = root.n ? (size_t)(root.p - start.p) : 0;

    return before && (memmem(start.p, before, "DocBook", 7) || memmem(attrs.p, attrs.n, "docbook.org/ns", 14));
}

/* The format of a document that starts so, by its root; NULL: none of them.  *records: the elements that are its records;
 * NULL: it is one. */
static const struct xml_format *by_root(struct span start, const char *const **records)
{
    static const char *const articles[] = {"article", NULL}, *const texts[] = {"TEI", "TEI.2", NULL},
                             *const items[] = {"item", "entry", NULL};
    static const struct {
        const char *root;
        const struct xml_format *format;
        const char *const *records;
    } roots[] = {
        {"article", &xml_jats, NULL},
        {"pmc-articleset", &xml_jats, articles},
        {"articles", &xml_jats, articles},
        {"TEI", &xml_tei, NULL}, {"TEI.2", &xml_tei, NULL}, {"teiCorpus", &xml_tei, texts}, {"teiCorpus.2", &xml_tei, texts},
        {"chapter", &xml_docbook, NULL}, {"sect1", &xml_docbook, NULL}, {"refentry", &xml_docbook, NULL},
        {"rss", &xml_feed, items}, {"feed", &xml_feed, items}, {"RDF", &xml_feed, items},
        {"us-patent-grant", &xml_patent, NULL}, {"us-patent-application", &xml_patent, NULL}, {"PATDOC", &xml_patent, NULL},
        {"patent-application-publication", &xml_patent, NULL},
        {"akomaNtoso", &xml_law, NULL}, {"bill", &xml_law, NULL}, {"resolution", &xml_law, NULL}, {"pLaw", &xml_law, NULL},
        {"statuteCompilation", &xml_law, NULL}, {"lawDoc", &xml_law, NULL}, {"uscDoc", &xml_law, NULL}, {"ACT", &xml_law, NULL},
        {"amendment", &xml_law, NULL}, {"engrossedAmendment", &xml_law, NULL},
    };
    struct span attrs, root;

    *records = NULL;
    if (!extract_xml_begins(start))
        return NULL;
    root = xml_root(start, &attrs);
    if (is_docbook(start, root, attrs))
        return &xml_docbook;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (span_is(root, roots[i].root)) {
            *records = roots[i].records;
            return roots[i].format;
        }
    return NULL;
}

struct span extract_xml_start(const struct extract_input *in, struct buf *narrow)
{
    return xml_wide_start(in->start, narrow) == 1 ? buf_span(narrow) : in->start;
}

/* The same of an open file. */
static const struct xml_format *format_of(const struct extract_input *in, const char *const **records)
{
    struct buf narrow = {0};
    const struct xml_format *f = by_root(extract_xml_start(in, &narrow), records);

    buf_free(&narrow);
    return f;
}

static enum extract_match probe(const struct extract_input *in)
{
    const char *const *records;

    return format_of(in, &records) ? EXTRACT_SURE : EXTRACT_NO;
}

/* ---- reading ---- */

struct xml_source {
    struct xml_cut *cut;
    const struct xml_format *format;
    const char *const *records;
};

struct xml_item {
    struct extract_item item;
    const struct xml_format *format;
    struct span label, record; /* label: of the encoding, where the record itself does not say it */
};

static ssize_t read_bytes(void *of, void *p, size_t n, struct err *e)
{
    struct extract_input *in = of;

    return warc_read(in->stream, p, n, e);
}

static int resume(void *of, struct err *e)
{
    struct extract_input *in = of;

    return warc_skip_member(in->stream, e);
}

struct xml_input extract_xml_input(struct extract_input *in)
{
    return (struct xml_input){.read = read_bytes, .resume = resume, .of = in, .name = in->path};
}

int extract_xml_cut(struct extract_input *in, const char *const *records, struct xml_cut **cut, struct err *e)
{
    const struct xml_input input = extract_xml_input(in);

    return xml_cut_open(cut, &input, records, (size_t)in->conf->max_page, e);
}

static void close_source(struct extract_input *in, void *reader)
{
    struct xml_source *s = reader;

    (void)in;
    if (s)
        xml_cut_close(s->cut);
    free(s);
}

static int open_source(struct extract_input *in, void **reader, struct err *e)
{
    struct xml_source *s = *reader = calloc(1, sizeof *s);
    int rc;

    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    s->format = format_of(in, &s->records);
    rc = extract_xml_cut(in, s->records, &s->cut, e);
    if (rc < 0)
        close_source(in, s);
    return rc;
}

struct span extract_xml_label(const struct xml_piece *piece)
{
    if (piece->utf8)
        return span_of("utf-8");
    return piece->head.n ? charset_prescan(piece->head) : (struct span){"", 0};
}

static int next(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    const struct xml_source *s = reader;
    struct xml_piece piece;
    struct xml_item *it;
    struct span label, id;
    char *at;
    int rc = xml_cut_next(s->cut, &piece, e);

    if (rc != 1)
        return rc;
    label = extract_xml_label(&piece);
    id = s->records || piece.offset ? (struct span){"", 0} : span_of(in->path);
    it = malloc(sizeof *it + piece.record.n + label.n + id.n);
    if (!it)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    at = (char *)(it + 1);
    *it = (struct xml_item){.item = {.offset = piece.offset, .size = piece.record.n}, .format = s->format};
    it->record = extract_pack(&at, piece.record);
    it->label = extract_pack(&at, label);
    it->item.id = extract_pack(&at, id);
    *item = &it->item;
    return 1;
}

/* ---- making documents ---- */

void extract_xml_close(void *maker)
{
    struct xml_maker *m = maker;

    xml_text_free(m->text);
    charset_free(m->charset);
    free(m);
}

int extract_xml_open(size_t bytes, const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    struct xml_maker *m = *maker = calloc(1, bytes);

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    m->conf = c;
    m->counts = n;
    TRY(charset_new(&m->charset, e));
    return xml_text_new(&m->text, &c->html, e);
}

static int maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    return extract_xml_open(sizeof(struct xml_maker), c, n, maker, e);
}

/* Whether bytes that are said to be UTF-8 are windows-1252: few of them are beyond ASCII, and these are never UTF-8. */
static bool is_western(struct span s)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t ill = 0;
    uint32_t c;

    while (p < end) {
        if (!(*p & 0x80)) {
            p++;
            continue;
        }
        p += utf8_next(p, end, &c);
        if (c != 0xFFFD)
            return false;
        ill++;
    }
    return ill && ill < s.n / 8;
}

int extract_xml_decode(struct xml_maker *m, struct span bytes, struct span label, bool markup, struct span *utf8, struct err *e)
{
    struct span said = label.n ? label : charset_prescan(bytes);
    const char *name;

    if (!utf8_valid(bytes) && span_is_nocase(said, "utf-8") && is_western(bytes))
        label = span_of("windows-1252");
    return charset_decode(m->charset, bytes, label, markup, utf8, &name, e);
}

int extract_xml_fields(struct xml_maker *m, const struct extract_item *it, const struct xml_doc *x, struct doc *d, struct err *e)
{
    const struct extract_more more[] = {
        {"doi", x->field[XML_DOI]},         {"pmcid", x->field[XML_PMCID]},         {"pmid", x->field[XML_PMID]},
        {"isbn", x->field[XML_ISBN]},       {"publisher", x->field[XML_PUBLISHER]}, {"keywords", x->field[XML_KEYWORDS]},
    };
    struct extract_item with_id = *it;

    if (x->field[XML_ID].n)
        with_id.id = x->field[XML_ID];
    extract_count(&m->counts->xml_faults, x->faults);
    if (x->truncated)
        extract_count(&m->counts->truncated, 1);
    return extract_set_fields(d, &with_id,
                              &(struct extract_fields){.url = x->field[XML_URL],
                                                       .title = x->field[XML_TITLE],
                                                       .date = x->field[XML_DATE],
                                                       .lang = x->field[XML_LANG],
                                                       .author = x->field[XML_AUTHOR],
                                                       .source.license = x->field[XML_LICENSE],
                                                       .more = more,
                                                       .n_more = sizeof more / sizeof *more,
                                                       .text = x->text},
                              e);
}

static int make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e)
{
    struct xml_maker *m = maker;
    const struct xml_item *it = (const struct xml_item *)item;
    struct xml_doc x;
    struct span utf8;

    (void)v;
    TRY(extract_xml_decode(m, it->record, it->label, !it->label.n, &utf8, e));
    extract_count(&m->counts->xml_bytes, utf8.n);
    TRY(xml_text_extract(m->text, it->format, utf8, &x, e));
    return extract_xml_fields(m, item, &x, d, e);
}

const struct extract_format extract_xml = {
    .stat = "xml_files",
    .probe = probe,
    .open = open_source,
    .next = next,
    .close = close_source,
    .maker_open = maker_open,
    .maker_close = extract_xml_close,
    .make = make,
};
