/* Authors and dates that nothing says but a class, or their place near the headline. */
#include <string.h>

#include "base/ascii.h"
#include "base/hash.h"
#include "curate/html/html_meta_parts.h"

enum {
    AUTHOR_NODES = 50, DATED_MAX = 80, BYLINE_MAX = 60, CLASS_NODES = 16,
    BEFORE = 60, AFTER = 200, /* nodes before and behind the headline */
    DATES_MAX = 1000,         /* texts of a page in which one is looked for */
    UP_MOST = 2, NAME_LEAST = 2, WORDS_LEAST = 2, WORDS_MOST = 6, SMALL_WORD = 3 /* letters: "de", "van" */
};

/* The next word of a class, at the borders of capitals too: "post-date", "postDate", "Article_date__0aO" give "date".
 * False at the end. */
static bool next_part(struct span *class, struct span *part)
{
    const char *p = class->p, *end = p + class->n;

    while (p < end && !ascii_is_letter((unsigned char)*p))
        p++;
    part->p = p;
    while (p < end && ascii_is_letter((unsigned char)*p) &&
           (p == part->p || !ascii_is_upper((unsigned char)*p) || ascii_is_upper((unsigned char)p[-1])))
        p++;
    part->n = (size_t)(p - part->p);
    *class = (struct span){p, (size_t)(end - p)};
    return part->n > 0;
}

enum { SAYS_DATE = 1, SAYS_AUTHOR = 2, SAYS_CHANGED = 4, SAYS_USER = 8, SAYS_OTHER = 16 };

/* What a class says of the text in it. */
static unsigned class_says(struct span class)
{
#define P(part, says) {part, sizeof part - 1, says}
    static const struct { const char *part; size_t n; unsigned says; } parts[] = {
        P("date", SAYS_DATE), P("datum", SAYS_DATE), P("fecha", SAYS_DATE), P("dateline", SAYS_DATE),
        P("published", SAYS_DATE), P("pubdate", SAYS_DATE), P("publication", SAYS_DATE), P("timestamp", SAYS_DATE),
        P("posted", SAYS_DATE), P("newsdate", SAYS_DATE), P("postdate", SAYS_DATE),
        P("author", SAYS_AUTHOR), P("authors", SAYS_AUTHOR), P("autor", SAYS_AUTHOR), P("auteur", SAYS_AUTHOR),
        P("autore", SAYS_AUTHOR), P("byline", SAYS_AUTHOR), P("writer", SAYS_AUTHOR), P("username", SAYS_USER),
        P("update", SAYS_CHANGED), P("updated", SAYS_CHANGED), P("modified", SAYS_CHANGED),
        P("event", SAYS_OTHER), P("comment", SAYS_OTHER), P("comments", SAYS_OTHER), P("related", SAYS_OTHER),
        P("kg", SAYS_OTHER) /* a card for another page, in Ghost */};
#undef P
    unsigned says = 0;
    struct span part;

    while (next_part(&class, &part))
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (part.n == parts[i].n && (*part.p | 0x20) == *parts[i].part && span_is_nocase(part, parts[i].part))
                says |= parts[i].says;
    return says;
}

/* The same, looked up if it was asked of a class with this hash before. */
static unsigned class_says_again(struct html_meta *m, struct span class)
{
    uint64_t hash = hash_xxh3_64(class);
    size_t i = hash % (sizeof m->class / sizeof *m->class);

    if (m->class[i].hash != hash) {
        m->class[i].says = class_says(class);
        m->class[i].hash = hash;
    }
    return m->class[i].says;
}

/* Whether a field is filled from a source of this rank or a better one. */
static bool known(const struct meta_reader *r, enum meta_field f, int rank)
{
    return r->rank[f] && r->rank[f] <= rank;
}

/* ---- names ---- */

/* Cuts what comes before a name off: "Written by ", "Von ", "Author: ".  True if there was something. */
static bool cut_by(struct span *s)
{
    static const char *const whats[] = {"written ", "posted ", "post ", "published ", "started ", "text ", "words ", "article ",
                                        "story ", "geschrieben ", "erstellt ", "eingestellt ", "text: ", "escrito ",
                                        "publicado ", "scritto ", "\u00e9crit ", "publi\u00e9 "},
                             *const bys[] = {"by ", "by: ", "by:", "author: ", "von ", "vom ", "par ", "por ", "di ", "door ",
                                             "av ", "przez ", "af "};
    struct span rest = *s;

    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++)
        if (span_starts_nocase(rest, whats[i])) {
            rest.p += strlen(whats[i]);
            rest.n -= strlen(whats[i]);
            break;
        }
    for (size_t i = 0; i < sizeof bys / sizeof *bys; i++)
        if (span_starts_nocase(rest, bys[i])) {
            rest.p += strlen(bys[i]);
            rest.n -= strlen(bys[i]);
            *s = rest;
            return true;
        }
    return false;
}

/* Whether a word of some length begins with a small letter at k. */
static bool starts_small(struct span s, size_t k)
{
    size_t n = k;

    while (n < s.n && ascii_is_lower((unsigned char)s.p[n]))
        n++;
    return n - k > SMALL_WORD;
}

/* A line up to what sets something else apart: " | Editor", " on ", ", May 3". */
static struct span cut_name(struct span line)
{
    static const char *const stops[] = {" | ", " - ", " \xE2\x80\x93 ", " \xE2\x80\x94 ", " \xC2\xB7", "\xE2\x80\xA2",
                                        "\xE2\x97\x8F", " on ", " in ", " am ", " (", " / ", " \xC2\xBB", " @"};
    const char *comma;

    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        const char *at = memmem(line.p, line.n, stops[i], strlen(stops[i]));
        line.n = at ? (size_t)(at - line.p) : line.n;
    }
    comma = line.n ? memchr(line.p, ',', line.n) : NULL;
    for (size_t k = comma ? (size_t)(comma - line.p) : line.n; k < line.n; k++)
        if (ascii_is_digit((unsigned char)line.p[k]))
            line.n = (size_t)(comma - line.p);
    while (line.n && strchr(" ,-:|\"*", line.p[line.n - 1]))
        line.n--;
    while (line.n && strchr(" ,-:|\"", *line.p))
        line.p++, line.n--;
    return line;
}

/* Whether a word is no name but what stands in a name's place. */
static bool is_label(struct span word)
{
    static const char *const labels[] = {"author", "name", "topic", "written", "by", "about", "view", "more", "posts", "all",
                                         "guest", "anonymous", "comments", "read", "share", "posted", "published", "updated",
                                         "sign", "log", "login", "new"};

    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (span_is_nocase(word, labels[i]))
            return true;
    return false;
}

/* The name that a line begins with; empty: it is none.  said: "by" stood before it, so one word is enough. */
static struct span name_of(struct span line, bool said)
{
    const struct span none = {NULL, 0}, s = cut_name(line);
    const char *gap = s.n ? memchr(s.p, ' ', s.n) : NULL;
    int words = 1;

    for (size_t k = 0; k < s.n; k++) {
        if ((!said && ascii_is_digit((unsigned char)s.p[k])) || strchr(":;!?|@*(<", s.p[k]))
            return none;
        words += s.p[k] == ' ';
        if (s.p[k] == ' ' && (starts_small(s, k + 1) || starts_small(s, 0))) /* prose */
            return none;
    }
    if (s.n > BYLINE_MAX || words > WORDS_MOST || is_label((struct span){s.p, gap ? (size_t)(gap - s.p) : s.n}))
        return none;
    if (said)
        return s.n >= NAME_LEAST ? s : none;
    return s.n >= 2 * NAME_LEAST && words >= WORDS_LEAST && !ascii_is_lower((unsigned char)*s.p) ? s : none;
}

/* Offers the name in the lines of a text; by: only one that "by" stands before.  user: it may be one word. */
static int offer_name(struct meta_reader *r, struct span text, int rank, bool by, bool user)
{
    bool said = user;

    while (text.n) {
        const char *cut = memchr(text.p, META_BREAK, text.n);
        struct span line = {text.p, cut ? (size_t)(cut - text.p) : text.n}, name;

        text.p += line.n + (cut != NULL);
        text.n -= line.n + (cut != NULL);
        while (line.n && *line.p == ' ')
            line.p++, line.n--;
        if (span_is_nocase(line, "by") || span_is_nocase(line, "by:") || span_is_nocase(line, "written by") ||
            span_is_nocase(line, "author") || span_is_nocase(line, "author:")) {
            said = true; /* the name is in the next line */
            continue;
        }
        said |= cut_by(&line);
        name = !by || said ? name_of(line, said) : (struct span){NULL, 0};
        if (name.n)
            return meta_offer(r, META_AUTHOR, rank, name);
        if (by)
            break;
    }
    return 0;
}

int meta_read_author(struct meta_reader *r, uint32_t i, int rank)
{
    struct buf *tmp = &r->m->tmp;
    uint32_t at = i;
    const char *cut;
    struct span name;

    for (uint32_t k = i + 1; at == i && k < r->t->node[i].end && k - i < AUTHOR_NODES; k++)
        if (r->t->node[k].tag != HTML_text && meta_has_word(html_attr_raw(r->t, k, ATTR_itemprop, NULL), "name"))
            at = k;
    if (at != i && r->t->node[at].tag == HTML_meta) {
        TRY(meta_attr(r, at, ATTR_content));
        return meta_offer(r, META_AUTHOR, rank, buf_span(tmp));
    }
    TRY(meta_text(r, at, META_AUTHOR_MAX + 1, tmp));
    cut = tmp->n ? memchr(tmp->p, META_BREAK, tmp->n) : NULL;
    name = (struct span){tmp->p, cut ? (size_t)(cut - tmp->p) : tmp->n};
    for (size_t k = 0; at == i && k < name.n; k++)
        if (ascii_is_digit((unsigned char)name.p[k])) /* a date, a count */
            return 0;
    return meta_offer(r, META_AUTHOR, rank, name);
}

/* ---- dates ---- */

/* Whether a text says that something was changed: "Last updated on", "Aktualisiert". */
static bool says_changed(struct span s)
{
    static const char *const words[] = {"pdate", "odified", "eviewed", "ktualisiert", "ctuali", "ggiornato", "ijgewerkt"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(s.p, s.n, words[i], strlen(words[i])))
            return true;
    return false;
}

/* Offers the date in a short text. */
static int offer_date(struct meta_reader *r, struct span text, int rank, bool changed)
{
    struct buf date = {0};
    int rc;

    if (text.n > DATED_MAX || known(r, META_DATE, rank) || r->dates++ >= DATES_MAX)
        return 0;
    rc = html_date_within(&r->m->dates, buf_span(&r->m->lang), text, &date);
    if (rc > 0)
        rc = meta_offer(r, META_DATE, changed || says_changed(text) ? META_RANK_CHANGED + 1 : rank, buf_span(&date));
    buf_free(&date);
    return rc;
}

int meta_read_class(struct meta_reader *r, uint32_t i)
{
    struct span class = html_attr_raw(r->t, i, ATTR_class, NULL);
    const struct html_node *n = &r->t->node[i];
    unsigned says;

    if (!class.n || n->end - i > CLASS_NODES || (known(r, META_AUTHOR, META_RANK_BYLINE) && known(r, META_DATE, META_RANK_DATED)))
        return 0;
    says = class_says_again(r->m, class);
    if (!(says & (SAYS_DATE | SAYS_AUTHOR | SAYS_USER | SAYS_CHANGED)) || (says & SAYS_OTHER))
        return 0;
    if (says & (SAYS_AUTHOR | SAYS_USER)) {
        bool user = says & SAYS_USER || n->tag == HTML_a;
        TRY(meta_text(r, i, BYLINE_MAX * 2, &r->m->tmp));
        if (!known(r, META_AUTHOR, META_RANK_BYLINE))
            TRY(offer_name(r, buf_span(&r->m->tmp), META_RANK_BYLINE + user, false, user));
        if (says & SAYS_AUTHOR)
            TRY(offer_date(r, buf_span(&r->m->tmp), META_RANK_DATED, false));
    }
    if (says & (SAYS_DATE | SAYS_CHANGED)) {
        if (n->tag == HTML_abbr) { /* a microformat has it in the title */
            TRY(meta_attr(r, i, ATTR_title));
            TRY(offer_date(r, buf_span(&r->m->tmp), 8, says & SAYS_CHANGED));
        }
        TRY(meta_text(r, i, DATED_MAX + 1, &r->m->tmp));
        TRY(offer_date(r, buf_span(&r->m->tmp), META_RANK_DATED, says & SAYS_CHANGED));
    }
    return 0;
}

/* Offers what a piece of text near the headline says, then what the elements around it say that have little more. */
static int offer_near(struct meta_reader *r, uint32_t i)
{
    const struct html_tree *t = r->t;
    struct buf *tmp = &r->m->tmp;

    for (int up = 0; up <= UP_MOST && i && t->node[i].end - i <= CLASS_NODES; up++, i = t->node[i].parent) {
        TRY(meta_text(r, i, DATED_MAX + 1, tmp));
        if (tmp->n > DATED_MAX)
            break;
        if (!known(r, META_AUTHOR, META_RANK_NEAR))
            TRY(offer_name(r, buf_span(tmp), META_RANK_NEAR, true, false));
        TRY(offer_date(r, buf_span(tmp), META_RANK_NEAR, false));
    }
    return 0;
}

/* Whether an element's text is not for readers: scripts, styles. */
static bool is_raw(const struct html_tree *t, uint32_t i)
{
    return html_tag_flags[t->node[i].tag] & TAG_RAW;
}

int meta_read_near(struct meta_reader *r, uint32_t heading)
{
    const struct html_tree *t = r->t;
    uint32_t from = heading > BEFORE ? heading - BEFORE : 1, end = t->node[heading].end;
    uint32_t to = t->n_nodes - end > AFTER ? end + AFTER : t->n_nodes;
    uint32_t i = end; /* first what comes behind it */

    for (uint32_t seen = 0; seen < to - end + heading - from; seen++, i++) {
        if (i == to)
            i = from;
        if (known(r, META_DATE, META_RANK_NEAR) && known(r, META_AUTHOR, META_RANK_NEAR))
            return 0;
        if (t->node[i].tag != HTML_text || t->node[i].flags & HTML_SPACE || is_raw(t, t->node[i].parent) ||
            t->node[i].len > DATED_MAX * 2)
            continue;
        TRY(offer_near(r, i));
    }
    return 0;
}
