/* A format: exports of MediaWiki, a page a document. */
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "curate/extract/extract_xml.h"
#include "curate/wiki/wiki_dump.h"
#include "curate/wiki/wiki_site.h"
#include "curate/wiki/wikitext.h"

/* A page as it stands in the export, and the export's header. */
struct wiki_item {
    struct extract_item item;
    struct span head, page;
};

/* ---- reading ---- */

static enum extract_match probe(const struct extract_input *in)
{
    struct buf narrow = {0};
    bool it = wiki_dump_is(extract_xml_start(in, &narrow));

    buf_free(&narrow);
    return it ? EXTRACT_SURE : EXTRACT_NO;
}

static int open_dump(struct extract_input *in, void **reader, struct err *e)
{
    const struct xml_input input = extract_xml_input(in);

    return wiki_dump_open((struct wiki_dump **)reader, &input, (size_t)in->conf->max_page, e);
}

static int next(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct wiki_piece piece;
    struct wiki_item *it;
    char *at;

    (void)in;
    int rc = wiki_dump_next(reader, &piece, e);
    if (rc != 1)
        return rc;
    it = malloc(sizeof *it + piece.head.n + piece.page.n);
    if (!it)
        return err_set(e, ERR_NOMEM, "out of memory for a page");
    at = (char *)(it + 1);
    *it = (struct wiki_item){.item = {.offset = piece.offset, .size = piece.page.n}};
    it->head = extract_pack(&at, piece.head);
    it->page = extract_pack(&at, piece.page);
    *item = &it->item;
    return 1;
}

static void close_dump(struct extract_input *in, void *reader)
{
    (void)in;
    wiki_dump_close(reader);
}

/* ---- making documents ---- */

struct wiki_maker {
    const struct extract_conf *conf;
    struct extract_counts *counts;
    struct wikitext *wikitext;
    struct wiki_site site;
    struct buf head; /* the header that site was read from */
    struct buf page, url; /* page: its fields */
};

static int maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    struct wiki_maker *m = calloc(1, sizeof *m);

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    *maker = m;
    m->conf = c;
    m->counts = n;
    return wikitext_new(&m->wikitext, &c->html, e);
}

static void maker_close(void *maker)
{
    struct wiki_maker *m = maker;

    wikitext_free(m->wikitext);
    wiki_site_free(&m->site);
    buf_free(&m->head);
    buf_free(&m->page);
    buf_free(&m->url);
    free(m);
}

/* The header hardly ever changes from page to page. */
static int read_head(struct wiki_maker *m, struct span head, struct err *e)
{
    if (span_eq(head, buf_span(&m->head)))
        return 0;
    buf_clear(&m->head);
    if (buf_put_span(&m->head, head) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a header");
    return wiki_site_parse(&m->site, head, e);
}

/* The number of a title's namespace, for exports that do not say it. */
static int namespace_of(const struct wiki_site *s, struct span title)
{
    const char *colon = memchr(title.p, ':', title.n);
    int ns = colon ? wiki_site_namespace(s, (struct span){title.p, (size_t)(colon - title.p)}) : WIKI_NONE;

    return ns == WIKI_NONE ? WIKI_MAIN : ns;
}

static bool is_redirect(const struct wiki_page *p)
{
    static const char word[] = "#redirect";
    struct span s = p->text;

    if (p->redirect.n)
        return true;
    while (s.n && strchr(" \t\n", s.p[0]))
        s.p++, s.n--;
    return s.n >= sizeof word - 1 && strncasecmp(s.p, word, sizeof word - 1) == 0;
}

/* Whether a page is to be extracted; else why not. */
static bool wanted(const struct wiki_maker *m, const struct wiki_page *p, struct verdict *v)
{
    int64_t ns = p->has_ns ? p->ns : namespace_of(&m->site, p->title);

    if (!extract_has_namespace(m->conf->namespaces, ns))
        verdict_drop(v, &extract_rules[EXTRACT_NAMESPACE], (double)ns, NAN);
    else if (is_redirect(p))
        verdict_drop(v, &extract_rules[EXTRACT_REDIRECT], NAN, NAN);
    else if (p->model.n && !span_is(p->model, "wikitext"))
        verdict_drop(v, &extract_rules[EXTRACT_MODEL], NAN, NAN);
    return !v->drop;
}

static int make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e)
{
    struct wiki_maker *m = maker;
    const struct wiki_item *it = (const struct wiki_item *)item;
    struct extract_item with_id = *item;
    struct wiki_page p;
    struct span text = {"", 0};
    bool truncated = false;

    TRY(read_head(m, it->head, e));
    TRY(wiki_page_parse(&p, it->page, &m->page, e));
    with_id.id = p.id;
    buf_clear(&m->url);
    if (wiki_site_url(&m->site, p.title, &m->url) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a page");
    if (wanted(m, &p, v)) {
        extract_count(&m->counts->wiki_bytes, p.text.n);
        TRY(wikitext_extract(m->wikitext, &m->site, p.title, p.text, &text, &truncated, e));
        if (truncated)
            extract_count(&m->counts->truncated, 1);
    }
    return extract_set_fields(d, &with_id,
                              &(struct extract_fields){.url = buf_span(&m->url),
                                                       .title = p.title,
                                                       .date = p.timestamp,
                                                       .lang = m->site.lang,
                                                       .text = text},
                              e);
}

const struct extract_format extract_wiki = {
    .stat = "wiki_dumps",
    .probe = probe,
    .open = open_dump,
    .next = next,
    .close = close_dump,
    .maker_open = maker_open,
    .maker_close = maker_close,
    .make = make,
};
