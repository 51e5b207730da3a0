/* What stands within lines: links, emphasis, tags. */
#include <strings.h>

#include "base/ascii.h"
#include "curate/wiki/wikitext_parts.h"

static struct span trimmed(struct span s)
{
    while (s.n && strchr(" \t\n", s.p[0]))
        s.p++, s.n--;
    while (s.n && strchr(" \t\n", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Writes a part of the page as part of the line. */
static void inner(struct wt *w, struct wt_frame *f, struct wt_range r)
{
    bool block = f->block;

    if (w->depth >= WT_DEPTH) {
        wt_dropped(w, f);
        return;
    }
    w->depth++;
    f->block = false;
    wt_walk(w, f, r);
    f->block = block;
    w->depth--;
}

/* ---- [[links]] ---- */

/* Whether what a link shows by itself or for its text belongs in the text. */
static bool link_shows(struct wt *w, struct span *target)
{
    const char *colon = target->n ? memchr(target->p, ':', target->n) : NULL;
    struct span prefix;
    int ns;

    if (!colon)
        return true;
    if (colon == target->p) { /* [[:Category:X]] is a link and no more */
        target->p++;
        target->n--;
        return true;
    }
    prefix = trimmed((struct span){target->p, (size_t)(colon - target->p)});
    ns = wiki_site_namespace(w->site, prefix);
    return ns != WIKI_FILE && ns != WIKI_CATEGORY && !wiki_is_language(prefix);
}

void wt_link(struct wt *w, struct wt_frame *f, const struct wt_node *n, struct wt_range *r)
{
    struct wt_range body = {n->body, n->body_end, (uint32_t)(n - w->nodes.v) + 1};
    struct wt_range look = body;
    uint32_t pipe = wt_find(w, &look, "|\n");
    struct span target = trimmed(wt_span(w, n->body, pipe));

    if (pipe < body.end && w->t[pipe] == '\n' && !memchr(target.p, ':', target.n)) { /* no link at all */
        wt_text(w, f, "[[", 2);
        r->at = n->body;
        r->node = (uint32_t)(n - w->nodes.v) + 1;
        return;
    }
    if (!link_shows(w, &target)) {
        wt_dropped(w, f);
        return;
    }
    if (pipe < body.end && pipe + 1 < body.end) {
        body.at = pipe + 1;
        body.node = look.node;
    } else {
        body.at = (uint32_t)(target.p - w->t);
        body.end = body.at + (uint32_t)target.n;
    }
    inner(w, f, body);
}

/* ---- [external links] ---- */

static bool is_address(const char *p, const char *end)
{
    static const char *const schemes[] = {"http://", "https://", "//",     "ftp://",  "mailto:", "news:", "irc://", "ircs://",
                                          "git://",  "svn://",   "geo:",   "tel:",    "sftp://", "ssh://", "gopher://",
                                          "magnet:", "urn:",     "xmpp:",  "telnet://", "worldwind://"};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i]);
        if ((size_t)(end - p) > n && strncasecmp(p, schemes[i], n) == 0)
            return true;
    }
    return false;
}

void wt_bracket(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    struct wt_range line = {r->at + 1, r->end, r->node}, label;
    const char *p = w->t + r->at;

    if (r->at >= f->no_bracket && is_address(p + 1, w->t + r->end)) {
        uint32_t end = wt_find(w, &line, "]\n");
        if (end < r->end && w->t[end] == ']') {
            label = (struct wt_range){r->at + 1, end, r->node};
            uint32_t blank = wt_find(w, &label, " \t<'"), url = label.at;
            while (blank < end && w->t[blank] == '\'' && w->t[blank + 1] != '\'') { /* part of the address */
                label.at++;
                blank = wt_find(w, &label, " \t<'");
            }
            if (label.at > url || blank < end)
                inner(w, f, label);
            if (blank >= end)
                wt_dropped(w, f);
            *r = (struct wt_range){end + 1, r->end, line.node};
            return;
        }
        f->no_bracket = end;
    }
    r->at++;
    wt_text(w, f, p, 1);
}

/* ---- emphasis ---- */

static uint32_t apostrophes(const struct wt *w, uint32_t at, uint32_t end)
{
    uint32_t n = 0;

    while (at + n < end && w->t[at + n] == '\'')
        n++;
    return n;
}

/* A line with an odd number of both marks: one of ''' is meant as an apostrophe and ''.
 * MediaWiki takes the first behind a word of one letter, else behind a longer word, else
 * behind a blank. */
static void count_quotes(const struct wt *w, struct wt_frame *f, const struct wt_range *r)
{
    uint32_t at = r->at, end, best[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, node = r->node;
    unsigned bold = 0, italic = 0;

    for (end = at; end < r->end && w->t[end] != '\n'; end++) {
        while (node < w->nodes.n && (w->nodes.v[node].kind == WT_NONE || w->nodes.v[node].start < end))
            node++;
        if (node < w->nodes.n && w->nodes.v[node].start == end && w->nodes.v[node].kind != WT_LINK) {
            end = w->nodes.v[node].end - 1; /* what is in templates and tags is not of this line */
            continue;
        }
        if (w->t[end] != '\'')
            continue;
        uint32_t n = apostrophes(w, end, r->end);
        bold += n == 3 || n >= 4;
        italic += n == 2 || n >= 5;
        if (n == 3 || n == 4) {
            uint32_t mark = end + n - 3;
            char x1 = mark > at ? w->t[mark - 1] : mark ? w->t[mark - 1] : ' ', x2 = mark > 1 ? w->t[mark - 2] : ' ';
            int of = x1 == ' ' ? 2 : x2 == ' ' || x2 == '\n' ? 0 : 1;
            if (best[of] == UINT32_MAX)
                best[of] = mark;
        }
        end += n - 1;
    }
    f->quotes_to = end;
    f->quote_fix = UINT32_MAX;
    if (bold % 2 && italic % 2)
        f->quote_fix = best[0] != UINT32_MAX ? best[0] : best[1] != UINT32_MAX ? best[1] : best[2];
}

static void toggle(struct wt *w, struct wt_frame *f, char c)
{
    const char *other = c == 'b' ? "i" : "b";

    wt_begin(w, f);
    if (f->n_quotes == 2 && f->quote[0] == c) { /* it is not the inner one */
        wt_put(w, c == 'b' ? "</i></b><i>" : "</b></i><b>");
        f->quote[0] = *other;
        f->n_quotes = 1;
    } else if (f->n_quotes && f->quote[f->n_quotes - 1] == c) {
        wt_put(w, c == 'b' ? "</b>" : "</i>");
        f->n_quotes--;
    } else {
        wt_put(w, c == 'b' ? "<b>" : "<i>");
        f->quote[f->n_quotes++] = c;
    }
}

/* Of two that begin at once, the one that ends first is the inner one. */
static bool italic_ends_first(const struct wt *w, const struct wt_range *r)
{
    for (uint32_t at = r->at; at < r->end && w->t[at] != '\n'; at++)
        if (w->t[at] == '\'') {
            uint32_t n = apostrophes(w, at, r->end);
            if (n > 1)
                return n == 2;
            at += n - 1;
        }
    return false;
}

void wt_quotes(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    uint32_t n = apostrophes(w, r->at, r->end), literal;

    if (r->at >= f->quotes_to)
        count_quotes(w, f, r);
    literal = n == 4 ? 1 : n > 5 ? n - 5 : 0;
    if (n - literal == 3 && r->at + literal == f->quote_fix)
        literal++;
    for (uint32_t i = 0; i < literal; i++)
        wt_text(w, f, "'", 1);
    r->at += n;
    n -= literal;
    bool bold = f->n_quotes ? f->quote[f->n_quotes - 1] == 'b' : n == 5 && italic_ends_first(w, r);
    if (n == 3 || (n == 5 && bold))
        toggle(w, f, 'b');
    if (n == 2 || n == 5)
        toggle(w, f, 'i');
    if (n == 5 && !bold)
        toggle(w, f, 'b');
}

/* ---- tags ---- */

enum { TAG_INLINE = 1, TAG_BLOCK, TAG_PART, TAG_GONE, TAG_POEM };

static const struct { const char *name; int kind; } tags[] = {
    {"br", TAG_INLINE}, {"small", TAG_INLINE}, {"sub", TAG_INLINE}, {"sup", TAG_INLINE}, {"span", TAG_INLINE},
    {"div", TAG_BLOCK}, {"b", TAG_INLINE}, {"i", TAG_INLINE}, {"em", TAG_INLINE}, {"strong", TAG_INLINE},
    {"big", TAG_INLINE}, {"u", TAG_INLINE}, {"s", TAG_INLINE}, {"strike", TAG_INLINE}, {"del", TAG_INLINE},
    {"ins", TAG_INLINE}, {"font", TAG_INLINE}, {"tt", TAG_INLINE}, {"code", TAG_INLINE}, {"kbd", TAG_INLINE},
    {"samp", TAG_INLINE}, {"var", TAG_INLINE}, {"cite", TAG_INLINE}, {"q", TAG_INLINE}, {"abbr", TAG_INLINE},
    {"dfn", TAG_INLINE}, {"mark", TAG_INLINE}, {"bdi", TAG_INLINE}, {"bdo", TAG_INLINE}, {"time", TAG_INLINE},
    {"data", TAG_INLINE}, {"ruby", TAG_INLINE}, {"rb", TAG_INLINE}, {"rt", TAG_INLINE}, {"rp", TAG_INLINE},
    {"rtc", TAG_INLINE}, {"blockquote", TAG_BLOCK}, {"center", TAG_BLOCK}, {"p", TAG_BLOCK}, {"hr", TAG_BLOCK},
    {"h1", TAG_PART}, {"h2", TAG_PART}, {"h3", TAG_PART}, {"h4", TAG_PART}, {"h5", TAG_PART}, {"h6", TAG_PART},
    {"table", TAG_PART}, {"caption", TAG_PART}, {"tr", TAG_PART}, {"td", TAG_PART}, {"th", TAG_PART},
    {"thead", TAG_PART}, {"tbody", TAG_PART}, {"tfoot", TAG_PART}, {"ul", TAG_PART}, {"ol", TAG_PART},
    {"li", TAG_PART}, {"dl", TAG_PART}, {"dt", TAG_PART}, {"dd", TAG_PART}, {"poem", TAG_POEM}, {"wbr", TAG_GONE},
    {"nobr", TAG_GONE}, {"noinclude", TAG_GONE}, {"onlyinclude", TAG_GONE}, {"translate", TAG_GONE},
    {"tvar", TAG_GONE}, {"langconvert", TAG_GONE}, {"img", TAG_GONE}, {"col", TAG_GONE}, {"colgroup", TAG_GONE}};

static int tag_kind(const char *p, size_t n)
{
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (strlen(tags[i].name) == n && strncasecmp(tags[i].name, p, n) == 0)
            return tags[i].kind;
    return wt_is_raw_tag((struct span){p, n}) ? TAG_GONE : 0;
}

static bool is_hidden(struct span attrs)
{
    const char *p = attrs.n ? memmem(attrs.p, attrs.n, "display", 7) : NULL, *end = attrs.p + attrs.n;

    if (!p)
        return false;
    for (p += 7; p < end && (*p == ' ' || *p == ':'); p++)
        ;
    return end - p >= 4 && memcmp(p, "none", 4) == 0;
}

static void write_tag(struct wt *w, const char *name, size_t n, bool closing, bool hidden)
{
    char tag[32] = "</";
    size_t k = closing ? 2 : 1;

    for (size_t i = 0; i < n && i < 12; i++)
        tag[k++] = (char)(name[i] | 0x20);
    tag[k] = '\0';
    wt_put(w, tag);
    wt_put(w, hidden ? " hidden>" : ">");
}

void wt_html_tag(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    enum { TAG_MAX = 1000 };
    const char *p = w->t + r->at, *end = w->t + r->end, *name = p + 1, *q, *close;
    bool closing;
    int kind = 0;

    if (end - p > TAG_MAX)
        end = p + TAG_MAX;
    closing = name < end && *name == '/';
    name += closing;
    for (q = name; q < end && (ascii_is_letter(*q) || (q > name && ((*q >= '0' && *q <= '9') || *q == '-'))); q++)
        ;
    if (q > name)
        kind = tag_kind(name, (size_t)(q - name));
    for (close = q; kind && close < end && *close != '>' && *close != '<'; close++)
        ;
    if (!kind || close == end || *close != '>') {
        r->at++;
        wt_text(w, f, "&lt;", 4);
        return;
    }
    r->at = (uint32_t)(close + 1 - w->t);
    if (kind == TAG_POEM)
        f->poem = !closing;
    if (kind == TAG_POEM || kind == TAG_BLOCK)
        f->para = true;
    if (kind == TAG_GONE || kind == TAG_POEM)
        return;
    if (kind == TAG_INLINE) {
        wt_begin(w, f);
    } else {
        f->html += closing ? -(f->html > 0) : 1;
        f->text = true;
    }
    if (kind == TAG_PART)
        f->para = closing;
    if (q - name == 2 && strncasecmp(name, "br", 2) == 0)
        closing = false;
    if (q - name == 2 && strncasecmp(name, "hr", 2) == 0)
        f->html -= !closing;
    write_tag(w, name, (size_t)(q - name), closing, !closing && is_hidden((struct span){q, (size_t)(close - q)}));
}

/* What stands between <pre> and </pre> but for <nowiki>. */
static void write_pre(struct wt *w, struct wt_frame *f, const char *p, const char *end)
{
    wt_put(w, "<pre>\n");
    while (p < end) {
        const char *lt = memchr(p, '<', (size_t)(end - p));
        size_t n = (size_t)((lt ? lt : end) - p);

        while (n) { /* entities stay */
            const char *amp = memchr(p, '&', n);
            size_t k = amp ? (size_t)(amp - p) : n;
            wt_text(w, f, p, k);
            if (amp) {
                wt_text(w, f, wt_entity_at(amp, end) ? "&" : "&amp;", wt_entity_at(amp, end) ? 1 : 5);
                k++;
            }
            p += k;
            n -= k;
        }
        if (!lt)
            break;
        p = lt + 1;
        if (end - lt >= 8 && strncasecmp(lt, "<nowiki>", 8) == 0)
            p = lt + 8;
        else if (end - lt >= 9 && strncasecmp(lt, "</nowiki>", 9) == 0)
            p = lt + 9;
        else
            wt_text(w, f, "&lt;", 4);
    }
    wt_put(w, "</pre>\n");
}

static void write_nowiki(struct wt *w, struct wt_frame *f, const char *p, const char *end)
{
    for (; p < end; p++) {
        const char *q = p;
        while (q < end && *q != '<' && *q != '&')
            q++;
        wt_text(w, f, p, (size_t)(q - p));
        if (q == end)
            break;
        bool entity = *q == '&' && wt_entity_at(q, end);
        wt_text(w, f, *q == '<' ? "&lt;" : entity ? "&" : "&amp;", *q == '<' ? 4 : entity ? 1 : 5);
        p = q;
    }
}

void wt_raw_tag(struct wt *w, struct wt_frame *f, const struct wt_node *n)
{
    const char *p = w->t + n->body, *end = w->t + n->body_end;
    struct span tag = {w->t + n->start, n->body - n->start};
    bool line = tag.n && memmem(tag.p, tag.n, "inline", 6);
    bool para = f->para;

    if (p == end && n->tag != WT_NOWIKI) {
        f->dropped = true;
        return;
    }
    switch (n->tag) {
    case WT_NOWIKI:
        write_nowiki(w, f, p, end);
        break;
    case WT_PRE:
        f->para = false;
        write_pre(w, f, p, end);
        f->para = true;
        break;
    case WT_CODE:
        f->para = para && line;
        wt_begin(w, f);
        wt_put(w, line ? "<code>" : "<pre>\n");
        wt_literal(w, f, p, (size_t)(end - p));
        wt_put(w, line ? "</code>" : "</pre>\n");
        f->para = !line;
        break;
    case WT_MATH:
    case WT_CHEM:
        wt_text(w, f, "<math alttext=\"", 15);
        wt_put(w, n->tag == WT_CHEM ? "\\ce{" : "");
        wt_literal(w, f, p, (size_t)(end - p));
        wt_put(w, n->tag == WT_CHEM ? "}\"></math>" : "\"></math>");
        break;
    default:
        wt_dropped(w, f);
    }
}

/* ---- the rest ---- */

void wt_magic(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    static const char *const words[] = {
        "TOC", "NOTOC", "FORCETOC", "NOEDITSECTION", "NEWSECTIONLINK", "NONEWSECTIONLINK", "NOGALLERY", "HIDDENCAT",
        "EXPECTUNUSEDCATEGORY", "EXPECTUNUSEDTEMPLATE", "NOCONTENTCONVERT", "NOCC", "NOTITLECONVERT", "NOTC", "INDEX",
        "NOINDEX", "STATICREDIRECT", "NOGLOBAL", "DISAMBIG", "ARCHIVEDTALK", "NOTALK"};
    const char *p = w->t + r->at, *end = w->t + r->end, *q = p + 2;
    bool foreign = false, known = false;

    while (q < end && q - p < 80 && ((*q >= 'A' && *q <= 'Z') || (unsigned char)*q >= 0x80)) {
        foreign |= (unsigned char)*q >= 0x80;
        q++;
    }
    struct span word = {p + 2, (size_t)(q - p - 2)};
    if (end - q >= 2 && q[0] == '_' && q[1] == '_' && word.n > 1) {
        for (size_t i = 0; i < sizeof words / sizeof *words && !known; i++)
            known = span_is(word, words[i]);
        /* In other languages a word by itself, on a line of its own. */
        bool alone = (p == w->t || p[-1] == '\n') && (q + 2 == end || q[2] == '\n');
        if (known || alone || foreign) {
            r->at += (uint32_t)(q + 2 - p);
            f->dropped = true;
            return;
        }
    }
    r->at += 2;
    wt_text(w, f, p, 2);
}

/* -{text}-, -{flags|text}-, -{zh-hans:text;zh-hant:text}-: the first that shows. */
void wt_variant(struct wt *w, struct wt_frame *f, const struct wt_node *n)
{
    struct wt_range r = {n->body, n->body_end, (uint32_t)(n - w->nodes.v) + 1}, look = r;
    uint32_t at = wt_find(w, &look, "|");

    if (at < r.end) {
        struct span flags = trimmed(wt_span(w, r.at, at));
        if (flags.n == 1 && strchr("HTD-", flags.p[0])) {
            wt_dropped(w, f);
            return;
        }
        r.at = at + 1;
        r.node = look.node;
    }
    look = r;
    at = wt_find(w, &look, ":;");
    if (at < r.end && w->t[at] == ':') {
        struct span code = trimmed(wt_span(w, r.at, at));
        size_t i = 0;
        while (i < code.n && (ascii_is_letter(code.p[i]) || code.p[i] == '-'))
            i++;
        if (i == code.n && i >= 2) {
            r.at = at + 1;
            r.node = look.node;
            look = r;
            r.end = wt_find(w, &look, ";");
        }
    }
    inner(w, f, r);
}
