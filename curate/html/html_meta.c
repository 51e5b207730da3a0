#include "curate/html/html_meta_parts.h"

#include <string.h>
#include <strings.h>

#include "curate/html/html_text.h"
#include "curate/html/html_url.h"
#include "curate/text/html_entity.h"

enum { AUTHOR_MAX = 120, TITLE_MAX = 600, AUTHOR_NODES = 50, SUBTREE_MAX = 1000 /* nodes looked at */,
       DATED_MAX = 80, BYLINE_MAX = 60, CLASS_NODES = 8 };

enum field { TITLE, AUTHOR, DATE, SITE, LANG, CANONICAL, N_FIELDS };

/* Names of <meta name=, property= or itemprop=>, best first within a field. */
static const struct {
    enum field field;
    int rank; /* the lowest wins */
    const char *name;
} sources[] = {
    {TITLE, 1, "og:title"}, {TITLE, 2, "twitter:title"}, {TITLE, 3, "citation_title"},
    {TITLE, 4, "dc.title"}, {TITLE, 4, "headline"},
    {AUTHOR, 1, "author"}, {AUTHOR, 2, "citation_author"}, {AUTHOR, 2, "dc.creator"},
    {AUTHOR, 2, "parsely-author"}, {AUTHOR, 2, "sailthru.author"}, {AUTHOR, 3, "article:author"},
    {AUTHOR, 3, "byl"}, {AUTHOR, 3, "dcterms.creator"},
    {DATE, 1, "article:published_time"}, {DATE, 1, "og:article:published_time"},
    {DATE, 2, "article:published"}, {DATE, 2, "shareaholic:article_published_time"},
    {DATE, 2, "datepublished"}, {DATE, 3, "sn-post-date"}, {DATE, 3, "sw-pubdate"}, {DATE, 3, "citation_publication_date"},
    {DATE, 3, "parsely-pub-date"}, {DATE, 3, "sailthru.date"}, {DATE, 3, "pubdate"},
    {DATE, 3, "publishdate"}, {DATE, 3, "publish-date"}, {DATE, 3, "publication_date"},
    {DATE, 3, "dc.date.issued"}, {DATE, 3, "dcterms.issued"}, {DATE, 3, "dcterms.created"},
    {DATE, 4, "date"}, {DATE, 4, "dc.date"}, {DATE, 4, "dc.date.created"}, {DATE, 5, "datecreated"},
    {DATE, 5, "created"},
    {DATE, 5, "og:published_time"}, {DATE, 6, "citation_date"},
    {SITE, 1, "og:site_name"}, {SITE, 2, "application-name"},
    {LANG, 3, "content-language"}, {LANG, 4, "og:locale"}, {LANG, 5, "dc.language"},
    {CANONICAL, 2, "og:url"},
};

struct reader {
    struct html_meta *m;
    const struct html_tree *t;
    struct span url;
    int rank[N_FIELDS]; /* of what is in the buffer; 0: nothing */
    uint32_t title, heading;
    int n_headings;
};

static struct buf *buf_of(struct reader *r, enum field f)
{
    struct html_meta *m = r->m;
    struct buf *const of[N_FIELDS] = {&m->title, &m->author, &m->date, &m->site, &m->lang,
                                      &m->canonical};
    return of[f];
}

static bool looks_like_url(struct span s)
{
    return memmem(s.p, s.n, "://", 3) || memmem(s.p, s.n, "www.", 4) || (s.n && s.p[0] == '@');
}

/* Takes value (UTF-8, decoded) for field if nothing better is there. */
static int offer(struct reader *r, enum field f, int rank, struct span value)
{
    struct buf *out = buf_of(r, f);

    if ((r->rank[f] && r->rank[f] <= rank) || !value.n)
        return 0;
    if (f == DATE) {
        int rc = html_date(value, out);
        if (rc > 0)
            r->rank[f] = rank;
        return rc < 0 ? rc : 0;
    }
    if (f == AUTHOR && (value.n > AUTHOR_MAX || looks_like_url(value)))
        return 0;
    if (f == CANONICAL) {
        TRY(html_url_resolve(r->url, value, out));
        if (out->n < 8 || strncasecmp(out->p, "http", 4) != 0)
            buf_clear(out);
    } else {
        buf_clear(out);
        TRY(html_fold(value, out));
        if (f == AUTHOR && out->n > 3 && strncasecmp(out->p, "by ", 3) == 0) {
            memmove(out->p, out->p + 3, out->n - 3);
            out->n -= 3;
        }
    }
    if (out->n)
        r->rank[f] = rank;
    return 0;
}

/* The folded text of a subtree, at most max bytes of it, into tmp. */
static int subtree_text(struct reader *r, uint32_t i, size_t max, struct buf *out)
{
    struct buf raw = {0};
    uint32_t end = r->t->node[i].end - i > SUBTREE_MAX ? i + SUBTREE_MAX : r->t->node[i].end;
    int rc = 0;

    for (uint32_t k = i + 1; rc == 0 && k < end && raw.n < max; k++)
        if (r->t->node[k].tag == HTML_text)
            rc = html_decode(html_text(r->t, k), false, &raw);
        else if (r->t->node[k].tag == HTML_br)
            rc = buf_putc(&raw, ' ');
    buf_clear(out);
    if (rc == 0)
        rc = html_fold(buf_span(&raw), out);
    buf_free(&raw);
    return rc;
}

/* ---- <meta>, <link>, elements with itemprop and the like ---- */

static int read_meta_name(struct reader *r, uint32_t i, struct span name)
{
    for (unsigned j = 0; name.n && j < sizeof sources / sizeof *sources; j++) {
        if (strlen(sources[j].name) != name.n || strncasecmp(sources[j].name, name.p, name.n) != 0)
            continue;
        buf_clear(&r->m->tmp);
        TRY(html_attr_get(r->t, i, ATTR_content, &r->m->tmp));
        TRY(offer(r, sources[j].field, sources[j].rank, buf_span(&r->m->tmp)));
    }
    return 0;
}

static int read_meta(struct reader *r, uint32_t i)
{
    static const enum html_attr_name by[] = {ATTR_property, ATTR_name, ATTR_itemprop,
                                             ATTR_http_equiv};
    for (unsigned k = 0; k < sizeof by / sizeof *by; k++) {
        struct span name = html_attr_raw(r->t, i, by[k], NULL);
        const char *gap = by[k] == ATTR_itemprop && name.n ? memchr(name.p, ' ', name.n) : NULL;
        if (gap) /* of several the first is enough */
            name.n = (size_t)(gap - name.p);
        TRY(read_meta_name(r, i, name));
    }
    return 0;
}

static bool has_word(struct span value, const char *word)
{
    size_t n = strlen(word);
    const char *p = value.p, *end;

    if (!value.n)
        return false;
    end = value.p + value.n;
    while (p < end && (p = memmem(p, (size_t)(end - p), word, n))) {
        if ((p == value.p || p[-1] == ' ') && (p + n == end || p[n] == ' '))
            return true;
        p += n;
    }
    return false;
}

/* An element that names the author: the name set apart in it, or its text if that has no
 * number (a date, a count). */
static int read_author(struct reader *r, uint32_t i, int rank)
{
    struct buf *tmp = &r->m->tmp;
    uint32_t at = i;

    for (uint32_t k = i + 1; at == i && k < r->t->node[i].end && k - i < AUTHOR_NODES; k++)
        if (r->t->node[k].tag != HTML_meta && r->t->node[k].tag != HTML_text &&
            has_word(html_attr_raw(r->t, k, ATTR_itemprop, NULL), "name"))
            at = k;
    TRY(subtree_text(r, at, AUTHOR_MAX + 1, tmp));
    for (size_t k = 0; at == i && k < tmp->n; k++)
        if (tmp->p[k] >= '0' && tmp->p[k] <= '9')
            return 0;
    return offer(r, AUTHOR, rank, buf_span(tmp));
}

/* Whether a word of the class ends in one of these, whatever its case: "news-date", "postAuthor". */
static bool class_says(struct span class, const char *const *ends, unsigned n)
{
    for (size_t at = 0, end; at < class.n; at = end + 1) {
        for (end = at; end < class.n && class.p[end] != ' '; end++)
            ;
        for (unsigned k = 0; k < n; k++) {
            size_t len = strlen(ends[k]);
            if (end - at >= len && strncasecmp(class.p + end - len, ends[k], len) == 0)
                return true;
        }
    }
    return false;
}

/* A short text whose class calls it a date: from its first digit on, or from its beginning. */
static int read_dated(struct reader *r, uint32_t i)
{
    struct buf *tmp = &r->m->tmp;
    size_t k = 0;

    if (r->t->node[i].tag == HTML_abbr) { /* a microformat has it in the title */
        buf_clear(tmp);
        TRY(html_attr_get(r->t, i, ATTR_title, tmp));
        TRY(offer(r, DATE, 8, buf_span(tmp)));
    }
    TRY(subtree_text(r, i, DATED_MAX + 1, tmp));
    if (tmp->n > DATED_MAX)
        return 0;
    TRY(offer(r, DATE, 10, buf_span(tmp)));
    while (k < tmp->n && !(tmp->p[k] >= '0' && tmp->p[k] <= '9'))
        k++;
    return offer(r, DATE, 10, (struct span){tmp->p + k, tmp->n - k});
}

/* A short text whose class calls it an author's: a few words without numbers, but for "By". */
static int read_byline(struct reader *r, uint32_t i)
{
    static const char *const by[] = {"posted by ", "written by ", "geschrieben von ", "erstellt von ", "eingestellt von ",
                                     "by ", "von ", "vom ", "par ", "por ", "di ", "door ", "av "};
    struct buf *tmp = &r->m->tmp;
    struct span name;
    int words = 1;

    TRY(subtree_text(r, i, BYLINE_MAX + 1, tmp));
    name = buf_span(tmp);
    for (unsigned k = 0; k < sizeof by / sizeof *by; k++)
        if (name.n > strlen(by[k]) && strncasecmp(name.p, by[k], strlen(by[k])) == 0) {
            name.p += strlen(by[k]);
            name.n -= strlen(by[k]);
        }
    for (size_t k = 0; k < name.n; k++) {
        if ((name.p[k] >= '0' && name.p[k] <= '9') || strchr(":;!?|@*(<", name.p[k]))
            return 0;
        words += name.p[k] == ' ';
    }
    if (name.n < 4 || name.n > BYLINE_MAX || words < 2 || words > 5 || (name.p[0] >= 'a' && name.p[0] <= 'z'))
        return 0;
    return offer(r, AUTHOR, 8, name);
}

/* Elements that nothing but their class speaks for. */
static int read_class(struct reader *r, uint32_t i)
{
    static const char *const dates[] = {"date", "datum", "published", "pubdate", "timestamp", "posted-on"};
    static const char *const nobody[] = {"event-date", "update", "modified-date", "candidate"};
    static const char *const authors[] = {"author", "author-name", "author__name", "byline", "byline-name", "autor"};
    struct span class = html_attr_raw(r->t, i, ATTR_class, NULL);

    if (!class.n || r->t->node[i].end - i > CLASS_NODES || memmem(class.p, class.n, "comment", 7))
        return 0;
    if (!r->rank[AUTHOR] && class_says(class, authors, sizeof authors / sizeof *authors))
        TRY(read_byline(r, i));
    if (r->rank[DATE] && r->rank[DATE] <= 10)
        return 0;
    if (class_says(class, dates, sizeof dates / sizeof *dates) && !class_says(class, nobody, sizeof nobody / sizeof *nobody))
        TRY(read_dated(r, i));
    return 0;
}

/* RDFa: property="schema:datePublished". */
static int read_property(struct reader *r, uint32_t i)
{
    struct span prop = html_attr_raw(r->t, i, ATTR_property, NULL);
    int rank = span_is(prop, "schema:datePublished") ? 2 : span_is(prop, "schema:dateCreated") ? 5 : 0;

    if (!rank)
        return 0;
    buf_clear(&r->m->tmp);
    TRY(html_attr_get(r->t, i, ATTR_content, &r->m->tmp));
    return offer(r, DATE, rank, buf_span(&r->m->tmp));
}

static int read_element(struct reader *r, uint32_t i)
{
    const struct html_tree *t = r->t;
    struct span prop = html_attr_raw(t, i, ATTR_itemprop, NULL);
    struct span rel = html_attr_raw(t, i, ATTR_rel, NULL);
    struct buf *tmp = &r->m->tmp;
    unsigned tag = t->node[i].tag;

    if (tag == HTML_link) {
        buf_clear(tmp);
        TRY(html_attr_get(t, i, ATTR_href, tmp));
        return has_word(rel, "canonical") ? offer(r, CANONICAL, 1, buf_span(tmp)) : 0;
    }
    if (tag == HTML_time || has_word(prop, "datePublished")) {
        int rank = has_word(prop, "datePublished") ? 2 : has_word(prop, "dateModified") ? 9 : 8;
        buf_clear(tmp);
        TRY(html_attr_get(t, i, tag == HTML_time ? ATTR_datetime : ATTR_content, tmp));
        if (!tmp->n)
            TRY(subtree_text(r, i, 100, tmp));
        TRY(offer(r, DATE, rank, buf_span(tmp)));
    }
    TRY(read_property(r, i));
    TRY(read_class(r, i));
    return has_word(rel, "author") || has_word(prop, "author") ? read_author(r, i, has_word(prop, "author") ? 6 : 7) : 0;
}

/* ---- JSON-LD ---- */

static int read_json_ld(struct reader *r, struct span s)
{
    static const struct { const char *key; enum field field; int rank; } keys[] = {
        {"\"headline\"", TITLE, 2}, {"\"datePublished\"", DATE, 1}, {"\"dateCreated\"", DATE, 5},
        {"\"author\"", AUTHOR, 1}};

    for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++) {
        int rc = html_json_find(s, keys[k].key, AUTHOR_MAX, &r->m->tmp);
        if (rc < 0)
            return rc;
        if (rc && memchr(r->m->tmp.p, '&', r->m->tmp.n)) {
            struct buf plain = {0};
            rc = html_decode(buf_span(&r->m->tmp), false, &plain);
            buf_free(&r->m->tmp);
            r->m->tmp = plain;
        }
        if (rc >= 0 && r->m->tmp.n)
            rc = offer(r, keys[k].field, keys[k].rank, buf_span(&r->m->tmp));
        if (rc < 0)
            return rc;
        buf_clear(&r->m->tmp);
    }
    return 0;
}

/* ---- the title ---- */

/* The length of title without the last or first part that a separator sets apart:
 * *start is where what is kept begins.  heading: of the page, may be empty. */
static size_t without_site(struct span title, struct span site, struct span heading, size_t *start)
{
    static const char *const separators[] = {" | ", " - ", " \xE2\x80\x93 ", " \xE2\x80\x94 ",
                                             " :: ", " \xC2\xBB ", " \xC2\xB7 ", " \xE2\x80\xA2 ",
                                             " : ", " / "};
    *start = 0;
    for (unsigned k = 0; k < sizeof separators / sizeof *separators; k++) {
        size_t n = strlen(separators[k]);
        if (heading.n && title.n > heading.n + n && memcmp(title.p, heading.p, heading.n) == 0 &&
            memcmp(title.p + heading.n, separators[k], n) == 0)
            return heading.n;
        const char *last = NULL, *p = title.p, *end = title.p + title.n;
        const char *first = memmem(p, title.n, separators[k], n);
        while ((p = memmem(p, (size_t)(end - p), separators[k], n)))
            last = p, p += n;
        if (!last)
            continue;
        struct span tail = {last + n, (size_t)(end - last) - n};
        struct span head = {title.p, (size_t)(first - title.p)};
        if (site.n && span_eq(head, site)) {
            *start = head.n + n;
            return title.n - *start;
        }
        /* The site's name; or, unsaid, a short end of a long title. */
        if ((site.n && span_eq(tail, site)) || (!site.n && k < 7 && tail.n * 2 < title.n && tail.n < 40))
            return (size_t)(last - title.p);
    }
    return title.n;
}

static int choose_title(struct reader *r)
{
    struct buf *title = &r->m->title, *heading = &r->m->heading;
    struct span plain;
    size_t start;

    buf_clear(heading);
    if (r->heading)
        TRY(subtree_text(r, r->heading, TITLE_MAX, heading));
    if (!title->n && r->title)
        TRY(subtree_text(r, r->title, TITLE_MAX, title));
    if (!title->n)
        return buf_put_span(title, buf_span(heading));
    /* <h1> repeats the headline without the site's name. */
    if (r->n_headings == 1 && heading->n >= 10 && heading->n < title->n &&
        memmem(title->p, title->n, heading->p, heading->n)) {
        buf_clear(title);
        return buf_put_span(title, buf_span(heading));
    }
    plain = buf_span(title);
    size_t n = without_site(plain, buf_span(&r->m->site), buf_span(heading), &start);
    memmove(title->p, title->p + start, n);
    title->n = n;
    return 0;
}

static int read_lang(struct reader *r)
{
    struct buf *lang = &r->m->lang;

    buf_clear(&r->m->tmp);
    TRY(html_attr_get(r->t, 0, ATTR_lang, &r->m->tmp));
    TRY(offer(r, LANG, 1, buf_span(&r->m->tmp)));
    buf_clear(&r->m->tmp);
    TRY(html_attr_get(r->t, 0, ATTR_xml_lang, &r->m->tmp));
    TRY(offer(r, LANG, 2, buf_span(&r->m->tmp)));
    /* "en_US.utf8, de": the first one, with a hyphen. */
    for (size_t i = 0; i < lang->n; i++) {
        char c = lang->p[i];
        bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_';
        if (!part || i == 35)
            lang->n = i;
        else if (c == '_')
            lang->p[i] = '-';
    }
    return 0;
}

static int read_nodes(struct reader *r)
{
    const struct html_tree *t = r->t;

    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct html_node *n = &t->node[i];
        switch (n->tag) {
        case HTML_text:
            break;
        case HTML_svg: /* its titles are not the page's */
            i = n->end - 1;
            break;
        case HTML_meta:
            TRY(read_meta(r, i));
            break;
        case HTML_title:
            if (!r->title && n->end > i + 1)
                r->title = i;
            break;
        case HTML_h1:
            r->heading = r->n_headings++ ? r->heading : i;
            break;
        case HTML_script:
            if (i + 1 < n->end)
                TRY(read_json_ld(r, html_text(t, i + 1)));
            break;
        default:
            if (n->n_attrs || n->tag == HTML_time)
                TRY(read_element(r, i));
        }
    }
    return 0;
}

/* "/2019/11/19/" in the page's address says when it was published. */
static int read_url_date(struct reader *r)
{
    struct span urls[] = {buf_span(&r->m->canonical), r->url};

    for (unsigned k = 0; k < sizeof urls / sizeof *urls; k++)
        for (size_t i = 0; i + 12 <= urls[k].n; i++) {
            const char *p = urls[k].p + i;
            if (p[0] == '/' && (p[1] == '1' || p[1] == '2') && p[5] == '/' && p[8] == '/' && p[11] == '/')
                TRY(offer(r, DATE, 7, (struct span){p + 1, 10}));
        }
    return 0;
}

static struct span answer(const struct buf *b)
{
    return b->n ? buf_span(b) : (struct span){NULL, 0};
}

int html_meta_read(struct html_meta *m, const struct html_tree *t, struct span url,
                   struct html_page *out)
{
    struct reader r = {.m = m, .t = t, .url = url};

    for (int f = 0; f < N_FIELDS; f++)
        buf_clear(buf_of(&r, (enum field)f));
    TRY(read_nodes(&r));
    TRY(read_url_date(&r));
    TRY(read_lang(&r));
    TRY(choose_title(&r));
    out->title = answer(&m->title);
    out->author = answer(&m->author);
    out->date = answer(&m->date);
    out->lang = answer(&m->lang);
    out->canonical = answer(&m->canonical);
    return 0;
}

void html_meta_free(struct html_meta *m)
{
    buf_free(&m->title);
    buf_free(&m->author);
    buf_free(&m->date);
    buf_free(&m->lang);
    buf_free(&m->canonical);
    buf_free(&m->tmp);
    buf_free(&m->site);
    buf_free(&m->heading);
}
