#include "curate/wiki/wikitext_parts.h"

#include <stdlib.h>

struct wikitext {
    struct html_worker *html;
    struct wt w;
    struct buf page;
};

/* ---- walking ---- */

static const bool special[256] = {['\n'] = true, ['\''] = true, ['['] = true, ['<'] = true, ['&'] = true,
                                  ['_'] = true,  ['('] = true,  [')'] = true, ['|'] = true, ['!'] = true,
                                  [':'] = true,  [0xEF] = true};

const struct wt_node *wt_node_at(const struct wt *w, struct wt_range *r)
{
    const struct wt_node *v = w->nodes.v;

    while (r->node < w->nodes.n &&
           (v[r->node].kind == WT_NONE || v[r->node].start < r->at || (v[r->node].end > r->end && v[r->node].start < r->end)))
        r->node++;
    return r->node < w->nodes.n && v[r->node].start < r->end ? &v[r->node] : NULL;
}

uint32_t wt_find(const struct wt *w, struct wt_range *r, const char *stops)
{
    bool stop[256] = {false};

    for (const char *s = stops; *s; s++)
        stop[(unsigned char)*s] = true;
    for (;;) {
        const struct wt_node *n = wt_node_at(w, r);
        uint32_t to = n ? n->start : r->end;

        while (r->at < to && !stop[(unsigned char)w->t[r->at]])
            r->at++;
        if (r->at < to || !n)
            return r->at;
        r->at = n->end;
        r->node = n->next;
    }
}

static void take_node(struct wt *w, struct wt_frame *f, const struct wt_node *n, struct wt_range *r)
{
    r->at = n->end;
    r->node = n->next;
    switch (n->kind) {
    case WT_COMMENT: f->comment = true; break;
    case WT_TEMPLATE: wt_template(w, f, n); break;
    case WT_LINK: wt_link(w, f, n, r); break;
    case WT_TAG: wt_raw_tag(w, f, n); break;
    case WT_VARIANT: wt_variant(w, f, n); break;
    default: wt_dropped(w, f);
    }
}

static void newline(struct wt *w, struct wt_frame *f)
{
    if (!f->block) {
        wt_put(w, " ");
        return;
    }
    wt_close_quotes(w, f);
    wt_put(w, f->poem && f->text ? "<br>\n" : "\n");
    if (!f->text && (f->dropped || !f->comment))
        f->para = true;
    f->text = f->dropped = f->comment = f->cells = f->heads = f->term = false;
    f->line_start = true;
    w->n_parens = 0;
}

/* One of the special bytes, at r->at. */
static void take_special(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    const char *p = w->t + r->at, *end = w->t + r->end;
    bool twice = p + 1 < end && p[1] == p[0];

    switch (*p) {
    case '\n':
        r->at++;
        newline(w, f);
        return;
    case '\'':
        if (twice) {
            wt_quotes(w, f, r);
            return;
        }
        break;
    case '[': wt_bracket(w, f, r); return;
    case '<': wt_html_tag(w, f, r); return;
    case '_':
        if (twice) {
            wt_magic(w, f, r);
            return;
        }
        break;
    case '(': wt_paren_open(w); break;
    case ')':
        r->at++;
        wt_text(w, f, p, 1);
        wt_paren_close(w, f);
        return;
    case '|':
    case '!':
        if (twice && f->cells && (*p == '|' || f->heads)) {
            r->at += 2;
            wt_cell(w, f, r, f->heads ? '!' : '|');
            return;
        }
        break;
    case ':':
        if (f->term) {
            f->term = false;
            r->at++;
            wt_close_quotes(w, f);
            wt_put(w, "<dd>");
            return;
        }
        break;
    case '&': {
        bool entity = wt_entity_at(p, end);
        r->at++;
        wt_text(w, f, p, 1);
        if (!entity)
            wt_put(w, "amp;");
        return;
    }
    default: /* a full-width parenthesis, or another character of three bytes */
        if (end - p < 3)
            break;
        if (p[1] == '\xBC' && p[2] == '\x88')
            wt_paren_open(w);
        r->at += 3;
        wt_text(w, f, p, 3);
        if (p[1] == '\xBC' && p[2] == '\x89')
            wt_paren_close(w, f);
        return;
    }
    r->at++;
    wt_text(w, f, p, 1);
}

void wt_walk(struct wt *w, struct wt_frame *f, struct wt_range r)
{
    while (r.at < r.end && w->rc == 0) {
        const struct wt_node *n;
        uint32_t to, at;

        if (f->line_start) {
            wt_line(w, f, &r);
            continue;
        }
        n = wt_node_at(w, &r);
        to = n ? n->start : r.end;
        for (at = r.at; at < to && !special[(unsigned char)w->t[at]]; at++)
            ;
        if (at > r.at) {
            wt_text(w, f, w->t + r.at, at - r.at);
            r.at = at;
        }
        if (at < to)
            take_special(w, f, &r);
        else if (n)
            take_node(w, f, n, &r);
    }
}

/* Closes what is open in the frame. */
static void end_frame(struct wt *w, struct wt_frame *f)
{
    wt_close_quotes(w, f);
    if (f->pre)
        wt_put(w, "</pre>\n");
    f->pre = false;
    wt_close_lists(w, f);
    while (f->n_tables)
        wt_table_close(w, f, false);
}

void wt_part(struct wt *w, struct wt_frame *f, struct wt_range r, bool lines)
{
    struct wt_frame sub = {.block = true, .line_start = lines, .html = 1, .para = lines || (f->para && !f->n_lists)};
    size_t before = w->out->n;

    if (w->depth >= WT_DEPTH) {
        wt_dropped(w, f);
        return;
    }
    w->depth++;
    wt_walk(w, &sub, r);
    end_frame(w, &sub);
    w->depth--;
    f->text |= w->out->n > before;
    f->dropped |= sub.dropped;
    f->para = sub.para;
}

void wt_close_lists(struct wt *w, struct wt_frame *f)
{
    if (f->n_lists)
        f->para = true;
    while (f->n_lists) {
        char c = f->list[--f->n_lists];
        wt_put(w, c == '*' ? "</ul>" : c == '#' ? "</ol>" : "</dl>");
    }
}

void wt_close_quotes(struct wt *w, struct wt_frame *f)
{
    while (f->n_quotes)
        wt_put(w, f->quote[--f->n_quotes] == 'b' ? "</b>" : "</i>");
}

/* ---- pages ---- */

static bool has_variants(struct span lang)
{
    static const char *const langs[] = {"zh", "sr", "kk", "ku", "crh", "gan", "iu", "shi", "tg", "uz", "wuu", "yue"};

    for (size_t i = 0; i < sizeof langs / sizeof *langs; i++) {
        size_t n = strlen(langs[i]);
        if (lang.n >= n && memcmp(lang.p, langs[i], n) == 0 && (lang.n == n || lang.p[n] == '-'))
            return true;
    }
    return false;
}

int wikitext_extract(struct wikitext *x, const struct wiki_site *site, struct span title, struct span text,
                     struct span *out, bool *truncated, struct err *e)
{
    struct wt *w = &x->w;
    struct wt_frame f = {.block = true, .line_start = true, .para = true};
    struct html_page page;

    *out = (struct span){"", 0};
    *truncated = false;
    if (text.n > 1 << 30)
        return err_set(e, ERR_LIMIT, "the page is larger than 1 GiB");
    if (!text.n)
        return 0;
    w->site = site;
    w->title = title;
    w->t = text.p;
    w->out = &x->page;
    w->depth = w->n_parens = w->n_heads = w->n_args = 0;
    w->dropped_at = SIZE_MAX;
    w->in_heading = false;
    buf_clear(&x->page);
    w->rc = wt_nodes_find(&w->nodes, text, has_variants(site->lang));
    if (w->rc == 0) {
        wt_walk(w, &f, (struct wt_range){0, (uint32_t)text.n, 0});
        end_frame(w, &f);
        wt_heads_end(w, 0);
    }
    if (w->rc < 0)
        return err_set(e, w->rc, "out of memory for a page");
    TRY(html_extract(x->html, buf_span(&x->page), (struct span){"", 0}, &page, e));
    *out = page.text;
    *truncated = page.truncated;
    return 0;
}

int wikitext_new(struct wikitext **out, const struct html_conf *c, struct err *e)
{
    struct wikitext *x = calloc(1, sizeof *x);
    struct html_conf conf = *c;

    *out = x;
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    conf.extractor = HTML_EVERYTHING;
    return html_worker_new(&x->html, &conf, e);
}

void wikitext_free(struct wikitext *x)
{
    if (!x)
        return;
    html_worker_free(x->html);
    wt_nodes_free(&x->w.nodes);
    free(x->w.arg);
    buf_free(&x->page);
    free(x);
}
