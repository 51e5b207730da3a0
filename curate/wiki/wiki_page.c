/* A page of an export: its fields. */
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/wiki/wiki_dump.h"
#include "curate/xml/xml_reader.h"

enum { DEPTH = 16 };
enum field { ID, TITLE, NAMESPACE, REDIRECT, TIMESTAMP, MODEL, TEXT, FIELDS };

struct parse {
    struct xml_reader reader;
    struct span open[DEPTH];   /* names of the elements around, */
    enum field inside[DEPTH];  /* and the fields that their text is; FIELDS: of no interest */
    int depth;
    struct {
        size_t at, n;
    } field[FIELDS]; /* in bytes, a NUL behind each */
    struct buf *bytes;
};

/* The field that the text of the innermost element is. */
static enum field field_of(const struct parse *p)
{
    static const struct {
        struct span name;
        int depth;
    } fields[FIELDS] = {[ID] = {{"id", 2}, 2},        [TITLE] = {{"title", 5}, 2},         [NAMESPACE] = {{"ns", 2}, 2},
                        [MODEL] = {{"model", 5}, 3}, [TIMESTAMP] = {{"timestamp", 9}, 3}, [TEXT] = {{"text", 4}, 3}};
    enum field f = 0;

    if (p->depth == 3 && !span_is(p->open[1], "revision"))
        return FIELDS;
    while (f < FIELDS && (fields[f].depth != p->depth || !span_eq(p->open[p->depth - 1], fields[f].name)))
        f++;
    return f;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a page");
}

/* Begins a field, with nothing in it. */
static int begin_field(struct parse *p, enum field f, struct err *e)
{
    if (buf_putc(p->bytes, '\0') < 0)
        return no_memory(e);
    p->field[f].at = p->bytes->n;
    p->field[f].n = 0;
    return 0;
}

/* Appends raw to the field that was begun last. */
static int put_field(struct parse *p, enum field f, struct span raw, bool literal, struct err *e)
{
    int lost = xml_put_text(raw, literal, p->bytes);

    if (lost < 0)
        return no_memory(e);
    if (lost)
        return err_set(e, ERR_FORMAT, "an entity or a character that XML does not know in the text at its byte %zu",
                       (size_t)(raw.p - p->reader.start));
    p->field[f].n = p->bytes->n - p->field[f].at;
    return 0;
}

static int open_element(struct parse *p, struct err *e)
{
    struct span title;
    enum field f;

    if (p->depth == DEPTH)
        return err_set(e, ERR_FORMAT, "elements are nested deeper than %d", DEPTH);
    p->open[p->depth++] = p->reader.name;
    if (p->depth == 1 && !span_is(p->reader.name, "page"))
        return err_set(e, ERR_FORMAT, "it is no <page>");
    f = p->inside[p->depth - 1] = field_of(p);
    if (f != FIELDS)
        return begin_field(p, f, e);
    if (p->depth != 2)
        return 0;
    if (span_is(p->reader.name, "revision"))
        p->field[TEXT].n = p->field[TIMESTAMP].n = p->field[MODEL].n = 0;
    if (!span_is(p->reader.name, "redirect"))
        return 0;
    title = xml_attr(&p->reader, "title");
    TRY(begin_field(p, REDIRECT, e));
    return put_field(p, REDIRECT, title.n ? title : span_of("?"), false, e);
}

static int close_element(struct parse *p, struct err *e)
{
    struct span name = p->reader.name;

    if (p->depth == 0 || !span_eq(p->open[p->depth - 1], name))
        return err_set(e, ERR_FORMAT, "</%.*s> closes what is not open at its byte %zu", name.n < 40 ? (int)name.n : 40, name.p,
                       (size_t)(name.p - p->reader.start));
    p->depth--;
    return 0;
}

/* Takes what the reader has found.  ERR_FORMAT: it does not fit. */
static int take(struct parse *p, enum xml_event ev, struct err *e)
{
    const struct xml_reader *r = &p->reader;
    enum field f;

    if (r->faults || r->too_much)
        return err_set(e, ERR_FORMAT, "damaged XML before its byte %zu", xml_offset(r));
    if (ev == XML_EV_CLOSE)
        return close_element(p, e);
    if (ev == XML_EV_TEXT) {
        f = p->depth ? p->inside[p->depth - 1] : FIELDS;
        return f == FIELDS ? 0 : put_field(p, f, r->text, r->literal, e);
    }
    TRY(open_element(p, e));
    p->depth -= r->empty;
    return 0;
}

static int read_fields(struct parse *p, struct err *e)
{
    enum xml_event ev;

    while ((ev = xml_next(&p->reader)) != XML_EV_END)
        TRY(take(p, ev, e));
    if (p->depth) {
        struct span name = p->open[p->depth - 1];
        return err_set(e, ERR_FORMAT, "<%.*s> has no end", name.n < 40 ? (int)name.n : 40, name.p);
    }
    if (!p->field[TITLE].n || !p->field[ID].n)
        return err_set(e, ERR_FORMAT, "the page has no %s", p->field[TITLE].n ? "id" : "title");
    return p->reader.nomem || buf_putc(p->bytes, '\0') < 0 ? no_memory(e) : 0;
}

/* The first byte of s that is no part of a character in UTF-8; s.n: there is none. */
static size_t first_ill(struct span s)
{
    size_t at = 0;
    uint32_t c;

    if (utf8_valid(s))
        return s.n;
    while (at < s.n) {
        int n = utf8_next(s.p + at, s.p + s.n, &c);
        if (c == 0xFFFD && !(n == 3 && memcmp(s.p + at, "\xEF\xBF\xBD", 3) == 0))
            break;
        at += (size_t)n;
    }
    return at;
}

int wiki_page_parse(struct wiki_page *page, struct span xml, struct buf *bytes, struct err *e)
{
    struct parse p = {.bytes = bytes};
    struct span s[FIELDS];
    size_t ill = first_ill(xml);
    char *end;
    int rc;

    if (ill < xml.n)
        return err_set(e, ERR_FORMAT, "bytes that are not UTF-8 at its byte %zu", ill);
    buf_clear(bytes);
    if (buf_reserve(bytes, xml.n) < 0)
        return no_memory(e);
    xml_reader_begin(&p.reader, xml);
    rc = read_fields(&p, e);
    xml_reader_free(&p.reader);
    if (rc < 0)
        return rc;
    for (int f = 0; f < FIELDS; f++)
        s[f] = (struct span){bytes->p + p.field[f].at, p.field[f].n};
    *page = (struct wiki_page){.id = s[ID], .title = s[TITLE], .timestamp = s[TIMESTAMP], .model = s[MODEL],
                               .redirect = s[REDIRECT], .text = s[TEXT]};
    page->ns = strtoll(s[NAMESPACE].p, &end, 10);
    page->has_ns = end != s[NAMESPACE].p;
    return 0;
}
