/* What a page says about itself, from its whole tree: one walk, then the headline and what stands near it. */
#include "curate/html/html_meta_parts.h"

#include <string.h>

#include "base/ascii.h"
#include "curate/text/robots.h"
#include "curate/html/html_text.h"
#include "curate/html/html_url.h"
#include "curate/text/html_entity.h"

enum { SUBTREE_MAX = 1000 /* nodes looked at */, NAME_MAX = 64, WRITTEN_MAX = 16 /* bytes that write one */ };

/* Names of <meta name=, property= or itemprop=>, best first within a field. */
static const struct {
    enum meta_field field;
    int rank; /* the lowest wins */
    const char *name;
} sources[] = {
    {META_TITLE, 1, "og:title"}, {META_TITLE, 2, "twitter:title"}, {META_TITLE, 3, "citation_title"},
    {META_TITLE, 4, "dc.title"}, {META_TITLE, 4, "headline"},
    {META_AUTHOR, 1, "author"}, {META_AUTHOR, 2, "citation_author"}, {META_AUTHOR, 2, "dc.creator"},
    {META_AUTHOR, 2, "parsely-author"}, {META_AUTHOR, 2, "sailthru.author"}, {META_AUTHOR, 3, "article:author"},
    {META_AUTHOR, 3, "byl"}, {META_AUTHOR, 3, "dcterms.creator"}, {META_AUTHOR, 3, "cxenseparse:author"},
    {META_DATE, 1, "article:published_time"}, {META_DATE, 1, "og:article:published_time"},
    {META_DATE, 2, "article:published"}, {META_DATE, 2, "datepublished"},
    {META_DATE, 3, "sn-post-date"}, {META_DATE, 3, "parsely-pub-date"}, {META_DATE, 3, "sailthru.date"},
    {META_DATE, 3, "dc.date.issued"}, {META_DATE, 3, "dcterms.issued"}, {META_DATE, 3, "dcterms.created"},
    {META_DATE, 4, "date"}, {META_DATE, 4, "dc.date"}, {META_DATE, 4, "dc.date.created"}, {META_DATE, 5, "datecreated"},
    {META_DATE, 5, "created"}, {META_DATE, 6, "citation_date"}, {META_DATE, 6, "ms.date"},
    {META_SITE, 1, "og:site_name"}, {META_SITE, 2, "application-name"},
    {META_LANG, 3, "content-language"}, {META_LANG, 4, "og:locale"}, {META_LANG, 5, "dc.language"},
    {META_CANONICAL, 2, "og:url"},
    {META_LICENSE, 3, "dc.rights"}, {META_LICENSE, 3, "dcterms.rights"}, {META_LICENSE, 3, "dcterms.license"},
    {META_LICENSE, 3, "dc.rights.license"}, {META_LICENSE, 3, "license"}, {META_LICENSE, 3, "rights"},
};

static struct buf *buf_of(struct meta_reader *r, enum meta_field f)
{
    struct html_meta *m = r->m;
    struct buf *const of[META_FIELDS] = {&m->title, &m->author, &m->date, &m->site, &m->lang, &m->canonical, &m->license,
                                         &m->robots, &m->tdm, &m->tdm_policy};
    return of[f];
}

static bool looks_like_url(struct span s)
{
    return memmem(s.p, s.n, "://", 3) || memmem(s.p, s.n, "www.", 4) || (s.n && s.p[0] == '@');
}

/* An author's name without "by" and without quotes around it. */
static void trim_author(struct buf *b)
{
    size_t from = b->n > 3 && span_starts_nocase(buf_span(b), "by ") ? 3 : 0;

    if (!b->n)
        return;
    while (b->n && strchr(" \",;|", b->p[b->n - 1]))
        b->n--;
    while (from < b->n && strchr(" \",;|:", b->p[from]))
        from++;
    b->n = b->n > from ? b->n - from : 0;
    memmove(b->p, b->p + from, b->n);
}

/* A URL where it looks like one, made absolute; else as it is. */
static int put_license(struct meta_reader *r, struct span value, struct buf *out)
{
    if (value.n > META_LICENSE_MAX)
        return 0;
    if (memchr(value.p, '/', value.n) && !memchr(value.p, ' ', value.n))
        return html_url_resolve(r->url, value, out);
    return html_fold(value, out);
}

int meta_offer(struct meta_reader *r, enum meta_field f, int rank, struct span value)
{
    struct buf *out = buf_of(r, f);

    if (f == META_AUTHOR && rank < META_RANK_SITE && r->m->site.n && span_eq(value, buf_span(&r->m->site)))
        rank = META_RANK_SITE; /* better is a person whom the page names elsewhere */
    if ((r->rank[f] && r->rank[f] <= rank) || !value.n)
        return 0;
    if (f == META_DATE) {
        int rc = html_date(&r->m->dates, buf_span(&r->m->lang), value, out);
        if (rc > 0)
            r->rank[f] = rank;
        return rc < 0 ? rc : 0;
    }
    if (f == META_AUTHOR && (value.n > META_AUTHOR_MAX || looks_like_url(value)))
        return 0;
    if (f == META_TDM && !span_is(value, "0") && !span_is(value, "1"))
        return 0;
    buf_clear(out);
    if (f == META_CANONICAL || f == META_TDM_POLICY) {
        TRY(html_url_resolve(r->url, value, out));
        if (out->n < 8 || !span_starts_nocase(buf_span(out), "http"))
            buf_clear(out);
    } else if (f == META_LICENSE) {
        TRY(put_license(r, value, out));
    } else {
        TRY(html_fold(value, out));
        if (f == META_AUTHOR)
            trim_author(out);
    }
    if (out->n)
        r->rank[f] = rank;
    return 0;
}

/* The block that node k of the subtree of i is in: i at the outmost. */
static uint32_t block_of(const struct html_tree *t, uint32_t k, uint32_t i)
{
    for (k = t->node[k].parent; k > i && !(html_tag_flags[t->node[k].tag] & TAG_BLOCK); k = t->node[k].parent)
        ;
    return k;
}

/* Appends a text, or of a long one its beginning: enough for some max bytes, however they are written. */
static int put_text(const struct html_tree *t, uint32_t i, size_t max, struct buf *out)
{
    struct span s = html_text(t, i), rest = s;

    while (rest.n && ascii_is_html_space((unsigned char)*rest.p))
        rest.p++, rest.n--;
    if (rest.n < s.n)
        TRY(buf_putc(out, ' '));
    if (rest.n > max * WRITTEN_MAX)
        for (rest.n = max * WRITTEN_MAX; rest.n && (rest.p[rest.n] & 0xC0) == 0x80; rest.n--)
            ;
    return html_decode(rest, false, out);
}

int meta_text(struct meta_reader *r, uint32_t i, size_t max, struct buf *out)
{
    const struct html_tree *t = r->t;
    struct buf raw = {0};
    uint32_t end = t->node[i].end - i > SUBTREE_MAX ? i + SUBTREE_MAX : t->node[i].end, last = i;
    int rc = 0;

    for (uint32_t k = t->node[i].tag == HTML_text ? i : i + 1; rc == 0 && k < end && raw.n < max; k++) {
        if (t->node[k].tag == HTML_br) {
            rc = buf_putc(&raw, META_BREAK);
        } else if (t->node[k].tag == HTML_text) {
            uint32_t block = k == i ? i : block_of(t, k, i);
            if (block != last && raw.n)
                rc = buf_putc(&raw, META_BREAK);
            last = block;
            rc = rc < 0 ? rc : put_text(t, k, max, &raw);
        } else if (t->node[k].tag == HTML_script || t->node[k].tag == HTML_style || t->node[k].tag == HTML_svg) {
            k = t->node[k].end - 1;
        }
    }
    buf_clear(out);
    if (rc == 0)
        rc = html_fold(buf_span(&raw), out);
    buf_free(&raw);
    return rc;
}

int meta_attr(struct meta_reader *r, uint32_t i, enum html_attr_name name)
{
    int rc;

    buf_clear(&r->m->tmp);
    rc = html_attr_get(r->t, i, name, &r->m->tmp);
    return rc < 0 ? rc : 0;
}

bool meta_has_word(struct span value, const char *word)
{
    size_t n = strlen(word);

    while (value.n >= n) {
        const char *gap = memchr(value.p, ' ', value.n);
        size_t len = gap ? (size_t)(gap - value.p) : value.n;

        if (len == n && memcmp(value.p, word, n) == 0)
            return true;
        if (!gap)
            break;
        value = (struct span){gap + 1, value.n - len - 1};
    }
    return false;
}

/* ---- <meta>, <link>, elements with itemprop and the like ---- */

/* Whether a name in small letters has one of these in it. */
static bool has_any(struct span name, const char *const *parts)
{
    for (; *parts; parts++)
        if (memmem(name.p, name.n, *parts, strlen(*parts)))
            return true;
    return false;
}

/* The rank of a date under a name that is not listed: "w-published-date", "og:updated_time"; 0: none. */
static int rank_of_date(struct span name)
{
    static const char *const when[] = {"date", "time", "published_at", "modified", NULL},
                             *const changed[] = {"updat", "modif", "changed", "revis", NULL},
                             *const other[] = {"expir", "event", "start", "end", "unavailable", "timeout", "timezone", NULL},
                             *const published[] = {"publi", "pub-", "pubd", "post", "issued", "release", "created", NULL};

    if (!has_any(name, when) || has_any(name, other))
        return 0;
    return has_any(name, changed) ? META_RANK_CHANGED : has_any(name, published) ? 3 : span_ends(name, "date") ? 6 : 0;
}

/* What a card on a social network shows below the title: twitter:label1 "Written by", twitter:data1 the name. */
static int read_card(struct meta_reader *r, uint32_t i, struct span name)
{
    int which = name.n && (name.p[name.n - 1] == '1' || name.p[name.n - 1] == '2') ? name.p[name.n - 1] - '1' : -1;

    if (which < 0 || !span_starts(name, "twitter:"))
        return 0;
    name.n--;
    TRY(meta_attr(r, i, ATTR_content));
    if (span_is(name, "twitter:label"))
        r->card_by[which] = span_ends(buf_span(&r->m->tmp), " by");
    return span_is(name, "twitter:data") && r->card_by[which] ? meta_offer(r, META_AUTHOR, 4, buf_span(&r->m->tmp)) : 0;
}

static int read_meta_name(struct meta_reader *r, uint32_t i, struct span raw)
{
    struct buf plain = {0};
    char small[NAME_MAX];
    struct span name;
    int rc, rank;

    if (!raw.n || raw.n >= NAME_MAX)
        return 0;
    rc = html_decode(raw, true, &plain); /* "og:article&#x3A;published_time" */
    for (size_t k = 0; k < plain.n && k < NAME_MAX; k++)
        small[k] = ascii_is_upper((unsigned char)plain.p[k]) ? (char)(plain.p[k] | 0x20) : plain.p[k];
    name = (struct span){small, plain.n < NAME_MAX ? plain.n : 0};
    buf_free(&plain);
    TRY(rc);
    TRY(meta_read_robots(r, i, name));
    TRY(read_card(r, i, name));
    for (unsigned j = 0; j < sizeof sources / sizeof *sources; j++)
        if (span_is(name, sources[j].name)) {
            TRY(meta_attr(r, i, ATTR_content));
            return meta_offer(r, sources[j].field, sources[j].rank, buf_span(&r->m->tmp));
        }
    rank = rank_of_date(name);
    if (!rank)
        return 0;
    TRY(meta_attr(r, i, ATTR_content));
    return meta_offer(r, META_DATE, rank, buf_span(&r->m->tmp));
}

static int read_meta(struct meta_reader *r, uint32_t i)
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

/* RDFa: property="schema:datePublished". */
static int read_property(struct meta_reader *r, uint32_t i)
{
    struct span prop = html_attr_raw(r->t, i, ATTR_property, NULL);
    int rank = span_is(prop, "schema:datePublished") ? 2 : span_is(prop, "schema:dateCreated") ? 5 : 0;

    if (!rank)
        return 0;
    TRY(meta_attr(r, i, ATTR_content));
    return meta_offer(r, META_DATE, rank, buf_span(&r->m->tmp));
}

static int read_element(struct meta_reader *r, uint32_t i)
{
    const struct html_tree *t = r->t;
    const struct html_node *n = &t->node[i];
    struct span prop = {NULL, 0}, rel = {NULL, 0};
    unsigned tag = n->tag;
    bool property = false, class = false;

    for (uint32_t k = n->n_attrs; k-- > 0;) { /* of two of a name the first counts */
        const struct html_attr *a = &t->attr[n->first + k];
        struct span value = {t->src.p + a->off, a->len};

        prop = a->name == ATTR_itemprop ? value : prop;
        rel = a->name == ATTR_rel ? value : rel;
        property |= a->name == ATTR_property;
        class |= a->name == ATTR_class;
    }
    if (tag == HTML_link || tag == HTML_a || tag == HTML_area)
        TRY(meta_read_license(r, i));
    if (tag == HTML_link) {
        TRY(meta_attr(r, i, ATTR_href));
        return meta_has_word(rel, "canonical") ? meta_offer(r, META_CANONICAL, 1, buf_span(&r->m->tmp)) : 0;
    }
    if (tag == HTML_time || meta_has_word(prop, "datePublished")) {
        int rank = meta_has_word(prop, "datePublished") ? 2 : meta_has_word(prop, "dateModified") ? META_RANK_CHANGED
                   : meta_has_word(prop, "dateCreated") ? 5 : 8;
        TRY(meta_attr(r, i, tag == HTML_time ? ATTR_datetime : ATTR_content));
        if (!r->m->tmp.n)
            TRY(meta_text(r, i, 100, &r->m->tmp));
        TRY(meta_offer(r, META_DATE, rank, buf_span(&r->m->tmp)));
    }
    if (property)
        TRY(read_property(r, i));
    if (class)
        TRY(meta_read_class(r, i));
    return meta_has_word(rel, "author") || meta_has_word(prop, "author")
               ? meta_read_author(r, i, meta_has_word(prop, "author") ? 6 : 7) : 0;
}

/* "en_US.utf8, de": the first one, with a hyphen. */
static void trim_lang(struct buf *lang)
{
    for (size_t i = 0; i < lang->n; i++) {
        unsigned char c = (unsigned char)lang->p[i];
        if (!(ascii_is_alnum(c) || c == '-' || c == '_') || i == 35)
            lang->n = i;
        else if (c == '_')
            lang->p[i] = '-';
    }
}

/* The language that the root declares. */
static int read_lang(struct meta_reader *r)
{
    TRY(meta_attr(r, 0, ATTR_lang));
    TRY(meta_offer(r, META_LANG, 1, buf_span(&r->m->tmp)));
    TRY(meta_attr(r, 0, ATTR_xml_lang));
    TRY(meta_offer(r, META_LANG, 2, buf_span(&r->m->tmp)));
    trim_lang(&r->m->lang);
    return 0;
}

static int read_script(struct meta_reader *r, uint32_t i)
{
    struct span type = html_attr_raw(r->t, i, ATTR_type, NULL);

    if (i + 1 >= r->t->node[i].end)
        return 0;
    return meta_read_json(r, html_text(r->t, i + 1), type.n && memmem(type.p, type.n, "ld+json", 7));
}

static int read_nodes(struct meta_reader *r)
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
            if (r->n_headings < META_HEADINGS)
                r->headings[r->n_headings++] = i;
            break;
        case HTML_script:
            TRY(read_script(r, i));
            break;
        default:
            if (n->n_attrs || n->tag == HTML_time)
                TRY(read_element(r, i));
        }
    }
    return 0;
}

/* "/2019/11/19/" or "/2019-11-19-" in the page's address says when it was published. */
static int read_url_date(struct meta_reader *r)
{
    struct span urls[] = {buf_span(&r->m->canonical), r->url};

    for (unsigned k = 0; k < sizeof urls / sizeof *urls; k++)
        for (size_t i = 0; i + 11 <= urls[k].n; i++) {
            const char *p = urls[k].p + i;
            if (p[0] == '/' && (p[1] == '1' || p[1] == '2') && strchr("/-", p[5]) && p[8] == p[5] &&
                (i + 11 == urls[k].n || !ascii_is_digit((unsigned char)p[11])))
                TRY(meta_offer(r, META_DATE, 7, (struct span){p + 1, 10}));
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
    struct meta_reader r = {.m = m, .t = t, .url = url};
    uint32_t heading;

    for (int f = 0; f < META_FIELDS; f++)
        buf_clear(buf_of(&r, (enum meta_field)f));
    TRY(read_lang(&r));
    TRY(read_nodes(&r));
    trim_lang(&m->lang);
    TRY(read_url_date(&r));
    TRY(meta_choose_title(&r, &heading));
    if (m->author.n && span_eq(buf_span(&m->author), buf_span(&m->site)))
        r.rank[META_AUTHOR] = META_RANK_SITE;
    if (heading)
        TRY(meta_read_near(&r, heading));
    out->title = answer(&m->title);
    out->author = answer(&m->author);
    out->date = answer(&m->date);
    out->lang = answer(&m->lang);
    out->canonical = answer(&m->canonical);
    out->site = answer(&m->site);
    out->license = answer(&m->license);
    out->robots = answer(&m->robots);
    out->tdm_reservation = answer(&m->tdm);
    out->tdm_policy = answer(&m->tdm_policy);
    return 0;
}

void html_meta_free(struct html_meta *m)
{
    struct buf *const all[] = {&m->title, &m->author, &m->date, &m->lang, &m->canonical, &m->site, &m->license, &m->robots,
                               &m->tdm, &m->tdm_policy, &m->tmp, &m->heading};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_free(all[i]);
    html_dates_free(&m->dates);
}
