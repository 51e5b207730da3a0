/* A page of an export: its fields. */
#include <stdlib.h>

#include "curate/wiki/wiki_dump.h"
#include "curate/wiki/xml_scan.h"

enum { DEPTH = 16 };

struct parse {
    struct xml_scan x;
    struct span open[DEPTH]; /* names of the elements around */
    int depth;
    struct arena *arena;
};

static bool inside(const struct parse *p, int depth, const char *a, const char *b, const char *c)
{
    return p->depth == depth && span_is(p->open[1], a) && (!b || span_is(p->open[2], b)) &&
           (!c || span_is(p->open[3], c));
}

/* The field that the text of the open element is; NULL: of no interest. */
static struct span *field(const struct parse *p, struct wiki_page *page)
{
    if (p->depth == 2)
        return inside(p, 2, "title", NULL, NULL) ? &page->title : inside(p, 2, "id", NULL, NULL) ? &page->id : NULL;
    if (p->depth != 3 || !span_is(p->open[1], "revision"))
        return NULL;
    return span_is(p->open[2], "timestamp") ? &page->timestamp
           : span_is(p->open[2], "model")   ? &page->model
           : span_is(p->open[2], "text")    ? &page->text
                                            : NULL;
}

static int decode(struct parse *p, struct span raw, bool literal, struct span *out, struct err *e)
{
    char *to = arena_alloc(p->arena, out->n + raw.n + 1);
    ssize_t n;

    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for a page");
    if (out->n)
        memcpy(to, out->p, out->n); /* an element's text in several pieces */
    n = xml_decode(raw, literal, to + out->n, p->x.start, e);
    if (n < 0)
        return (int)n;
    *out = (struct span){to, out->n + (size_t)n};
    return 0;
}

static int open_element(struct parse *p, struct wiki_page *page, struct err *e)
{
    struct span title;

    if (p->depth == DEPTH)
        return err_set(e, ERR_FORMAT, "elements are nested deeper than %d", DEPTH);
    p->open[p->depth++] = p->x.name;
    if (p->depth == 1 && !span_is(p->x.name, "page"))
        return err_set(e, ERR_FORMAT, "it is no <page>");
    if (inside(p, 2, "redirect", NULL, NULL)) {
        title = xml_scan_attr(&p->x, "title");
        if (title.p)
            TRY(decode(p, title, false, &page->redirect, e));
        if (!page->redirect.n)
            page->redirect = span_of("?");
    }
    if (inside(p, 2, "revision", NULL, NULL))
        page->text = page->timestamp = page->model = (struct span){NULL, 0};
    return 0;
}

static int close_element(struct parse *p, struct err *e)
{
    if (p->depth == 0 || !span_eq(p->open[p->depth - 1], p->x.name))
        return err_set(e, ERR_FORMAT, "</%.*s> closes what is not open at its byte %zu",
                       p->x.name.n < 40 ? (int)p->x.name.n : 40, p->x.name.p, (size_t)(p->x.name.p - p->x.start));
    p->depth--;
    return 0;
}

static int take_text(struct parse *p, struct wiki_page *page, struct err *e)
{
    struct span *to = field(p, page), number = {NULL, 0};

    if (to)
        return decode(p, p->x.text, p->x.literal, to, e);
    if (inside(p, 2, "ns", NULL, NULL)) {
        char *end;
        TRY(decode(p, p->x.text, p->x.literal, &number, e));
        ((char *)(uintptr_t)number.p)[number.n] = '\0';
        page->ns = strtoll(number.p, &end, 10);
        page->has_ns = end != number.p;
    }
    return 0;
}

int wiki_page_parse(struct wiki_page *page, struct span xml, struct arena *a, struct err *e)
{
    struct parse p = {.arena = a};

    *page = (struct wiki_page){.ns = 0};
    xml_scan_init(&p.x, xml);
    for (;;) {
        TRY(xml_scan_next(&p.x, e));
        switch (p.x.kind) {
        case XML_OPEN:
        case XML_EMPTY:
            TRY(open_element(&p, page, e));
            if (p.x.kind == XML_EMPTY)
                p.depth--;
            break;
        case XML_CLOSE:
            TRY(close_element(&p, e));
            break;
        case XML_TEXT:
            TRY(take_text(&p, page, e));
            break;
        case XML_END:
            if (p.depth)
                return err_set(e, ERR_FORMAT, "<%.*s> has no end", p.open[p.depth - 1].n < 40 ? (int)p.open[p.depth - 1].n : 40,
                               p.open[p.depth - 1].p);
            if (!page->title.n || !page->id.n)
                return err_set(e, ERR_FORMAT, "the page has no %s", page->title.n ? "id" : "title");
            return 0;
        }
    }
}
