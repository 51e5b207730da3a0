/* Writing: text with what is due before it, and the tidying of parentheses. */
#include "curate/wiki/wikitext_parts.h"

void wt_put_n(struct wt *w, const char *p, size_t n)
{
    if (w->rc == 0)
        w->rc = buf_put(w->out, p, n);
}

void wt_put(struct wt *w, const char *html)
{
    wt_put_n(w, html, strlen(html));
}

static bool blank(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\n')
            return false;
    return true;
}

void wt_begin(struct wt *w, struct wt_frame *f)
{
    if (f->para && !f->n_lists && !f->pre) {
        wt_put(w, "<p>");
        f->para = false;
    }
}

/* What is due before text that is to be seen. */
static void begin_text(struct wt *w, struct wt_frame *f, char first)
{
    wt_begin(w, f);
    f->text = true;
    if (!w->in_heading)
        w->n_heads = 0;
    if (w->dropped_at == w->out->n && strchr(",.;:)", first))
        while (w->out->n && w->out->p[w->out->n - 1] == ' ')
            w->out->n--;
}

void wt_text(struct wt *w, struct wt_frame *f, const char *p, size_t n)
{
    if (!blank(p, n))
        begin_text(w, f, *p);
    wt_put_n(w, p, n);
}

bool wt_entity_at(const char *p, const char *end)
{
    const char *q = p + 1;

    if (q < end && *q == '#')
        return true;
    while (q < end && q - p < 34 &&
           ((*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z') || (*q >= '0' && *q <= '9')))
        q++;
    return q > p + 1 && q < end && *q == ';';
}

static void escape(struct wt *w, struct wt_frame *f, const char *p, size_t n, bool entities)
{
    const char *end = p + n;

    if (!blank(p, n))
        begin_text(w, f, *p);
    while (p < end) {
        const char *q = p;
        while (q < end && *q != '<' && *q != '&' && *q != '"')
            q++;
        wt_put_n(w, p, (size_t)(q - p));
        if (q < end)
            wt_put(w, *q == '<' ? "&lt;" : *q == '"' ? "&quot;" : entities && wt_entity_at(q, end) ? "&" : "&amp;");
        p = q + 1;
    }
}

void wt_literal(struct wt *w, struct wt_frame *f, const char *p, size_t n)
{
    escape(w, f, p, n, false);
}

void wt_dropped(struct wt *w, struct wt_frame *f)
{
    f->dropped = true;
    if (w->n_parens && w->n_parens <= WT_PARENS)
        w->paren[w->n_parens - 1].dropped = true;
    w->dropped_at = w->out->n;
}

/* ---- parentheses ---- */

void wt_paren_open(struct wt *w)
{
    if (w->n_parens < WT_PARENS) {
        w->paren[w->n_parens].at = w->out->n;
        w->paren[w->n_parens].dropped = false;
    }
    if (w->n_parens < INT32_MAX)
        w->n_parens++;
}

/* The length of what counts as one at p: a tag, an entity, a character. */
static size_t unit(const char *p, const char *end)
{
    static const char stop[] = ";<& ";
    const char *q = p + 1;

    if (*p == '<') {
        while (q < end && *q != '>')
            q++;
        return (size_t)(q + (q < end) - p);
    }
    if (*p == '&') {
        while (q < end && !strchr(stop, *q))
            q++;
        return (size_t)(q + (q < end && *q == ';') - p);
    }
    while (q < end && ((unsigned char)*q & 0xC0) == 0x80)
        q++;
    return (size_t)(q - p);
}

/* Whether a unit is of any worth by itself: no blank, no punctuation. */
static bool weighs(const char *p, size_t n)
{
    static const char *const light[] = {"&nbsp;", "&ndash;", "&mdash;", "&thinsp;", "&#160;", "&ensp;", "–", "—", "·",
                                        "•", "，", "、", "；", "：", "\xC2\xA0", "«", "»", "“", "”", "„", "「", "」"};

    if (*p == '<')
        return false;
    if (n == 1)
        return !strchr(" \t\n,;:-/.'\"|~*", *p);
    for (size_t i = 0; i < sizeof light / sizeof *light; i++)
        if (strlen(light[i]) == n && memcmp(light[i], p, n) == 0)
            return false;
    return true;
}

static bool separates(const char *p, size_t n)
{
    return (n == 1 && (*p == ',' || *p == ';')) ||
           (n == 3 && (memcmp(p, "，", 3) == 0 || memcmp(p, "、", 3) == 0 || memcmp(p, "；", 3) == 0));
}

/* Copies a field of what stands in parentheses: all of it, or its tags alone. */
static size_t copy_field(char *to, const char *p, const char *end, bool all, bool first)
{
    char *start = to;

    while (p < end) {
        size_t n = unit(p, end);
        bool keep = all || *p == '<';
        if (all && first && *p != '<' && !weighs(p, n) && strchr(" \t,;:", *p))
            keep = false; /* what led to it */
        else if (*p != '<')
            first = false;
        if (keep) {
            memmove(to, p, n);
            to += n;
        }
        p += n;
    }
    return (size_t)(to - start);
}

/* Tidies [from, out->n), which stands behind a parenthesis: fields without weight go, with the
 * separator before them.  True if something is left. */
static bool tidy(struct buf *out, size_t from)
{
    const char *p = out->p + from, *end = out->p + out->n, *field = p;
    char *to = out->p + from;
    bool weight = false, any = false;

    for (;;) {
        size_t n = p < end ? unit(p, end) : 0;
        if (p == end || separates(p, n)) {
            bool first = !any;
            to += copy_field(to, field, p, weight, first);
            any |= weight;
            weight = false;
            if (p == end)
                break;
            field = p; /* the separator goes with what follows */
        } else if (weighs(p, n)) {
            weight = true;
        }
        p += n;
    }
    out->n = (size_t)(to - out->p);
    while (out->n > from && out->p[out->n - 1] == ' ')
        out->n--;
    return any;
}

void wt_paren_close(struct wt *w, struct wt_frame *f)
{
    struct buf *out = w->out;
    size_t mark, from, at;
    bool wide;

    if (!w->n_parens)
        return;
    if (--w->n_parens >= WT_PARENS || w->rc < 0 || !w->paren[w->n_parens].dropped)
        return;
    at = w->paren[w->n_parens].at;
    while (at < out->n && out->p[at] != '(' && out->p[at] != '\xEF') /* a paragraph began with it */
        at++;
    if (at >= out->n || out->n - at > WT_PAREN_MAX)
        return;
    wide = out->p[at] == '\xEF';
    from = at + (wide ? 3 : 1);
    mark = (unsigned char)out->p[out->n - 1] == 0x89 ? 3 : 1;
    if (out->n < from + mark)
        return;
    char close[4] = {0};
    memcpy(close, out->p + out->n - mark, mark);
    out->n -= mark;
    if (tidy(out, from)) {
        wt_put_n(w, close, mark);
        return;
    }
    memmove(out->p + at, out->p + from, out->n - from); /* tags that stood inside */
    out->n -= from - at;
    wt_dropped(w, f);
}
