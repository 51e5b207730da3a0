/* What a line begins with: headings, lists, tables, preformatted text. */
#include <stdlib.h>

#include "curate/wiki/wikitext_parts.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_list(char c)
{
    return c == '*' || c == '#' || c == ':' || c == ';';
}

static char byte(const struct wt *w, const struct wt_range *r, uint32_t at)
{
    return at < r->end ? w->t[at] : '\0';
}

static bool begins(const struct wt *w, const struct wt_range *r, uint32_t at, const char *what)
{
    size_t n = strlen(what);

    return r->end - at >= n && memcmp(w->t + at, what, n) == 0;
}

static void end_block(struct wt *w, struct wt_frame *f)
{
    if (f->pre)
        wt_put(w, "</pre>\n");
    f->pre = false;
    wt_close_lists(w, f);
    f->line_start = false;
}

/* ---- headings ---- */

/* Takes away headings of this level or deeper behind which no text came. */
void wt_heads_end(struct wt *w, int level)
{
    while (w->n_heads && w->head[w->n_heads - 1].level >= level)
        w->out->n = w->head[--w->n_heads].at;
}

/* A line that begins and ends with '='; false: it is none. */
static bool heading(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    struct wt_range line = *r, inner;
    uint32_t end = wt_find(w, &line, "\n"), last = end, from = r->at;
    int level = 0, behind = 0;
    char tag[8] = "<h0>";

    while (last > from) { /* blanks and comments behind do not count */
        if (is_blank(w->t[last - 1]))
            last--;
        else if (last - from >= 7 && memcmp(w->t + last - 3, "-->", 3) == 0) {
            const char *start = NULL;
            for (const char *p = w->t + last - 7; p >= w->t + from && !start; p--)
                start = memcmp(p, "<!--", 4) == 0 ? p : NULL;
            if (!start)
                break;
            last = (uint32_t)(start - w->t);
        } else
            break;
    }
    while (level < 6 && byte(w, r, from + (uint32_t)level) == '=')
        level++;
    while (behind < level && last > from + (uint32_t)level && w->t[last - 1 - behind] == '=' &&
           last - 1 - (uint32_t)behind > from + (uint32_t)level)
        behind++;
    if (!behind)
        return false;
    level = behind;
    inner = (struct wt_range){from + (uint32_t)level, last - (uint32_t)level, r->node};
    end_block(w, f);
    *r = line;
    if (f->n_tables == 0 && w->depth == 0) {
        struct wt_range behind_it = line;
        uint32_t to = wt_section_end(w, wt_span(w, inner.at, inner.end), level, behind_it);
        wt_heads_end(w, level);
        if (to) {
            r->at = to;
            f->line_start = true;
            return true;
        }
        if (w->n_heads < 8) {
            w->head[w->n_heads].level = level;
            w->head[w->n_heads++].at = w->out->n;
        }
    }
    tag[2] = (char)('0' + level);
    wt_put(w, tag);
    w->in_heading = true;
    f->para = f->block = false;
    wt_walk(w, f, inner);
    wt_close_quotes(w, f);
    f->block = f->para = true;
    w->in_heading = false;
    wt_put(w, "</h");
    wt_put(w, tag + 2);
    f->text = true;
    return true;
}

/* ---- lists ---- */

static char kind(char c)
{
    return c == ';' ? ':' : c;
}

static void item(struct wt *w, char c)
{
    wt_put(w, c == ';' ? "<dt>" : c == ':' ? "<dd>" : "<li>");
}

static void list(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    char marks[WT_LISTS];
    int n = 0, same = 0;

    do
        if (n < WT_LISTS)
            marks[n++] = w->t[r->at];
    while (++r->at < r->end && is_list(w->t[r->at]));
    if (f->pre)
        wt_put(w, "</pre>\n");
    f->pre = false;
    while (same < n && same < f->n_lists && kind(marks[same]) == kind(f->list[same]))
        same++;
    while (f->n_lists > same) {
        char c = f->list[--f->n_lists];
        wt_put(w, c == '*' ? "</ul>" : c == '#' ? "</ol>" : "</dl>");
    }
    if (same == n)
        item(w, marks[n - 1]);
    for (; same < n; same++) {
        f->list[f->n_lists++] = marks[same];
        wt_put(w, marks[same] == '*' ? "<ul>" : marks[same] == '#' ? "<ol>" : "<dl>");
        item(w, marks[same]);
    }
    f->term = marks[n - 1] == ';';
    f->line_start = false;
    f->para = false;
}

/* ---- tables ---- */

static void rest_of_line(const struct wt *w, struct wt_range *r)
{
    wt_find(w, r, "\n");
}

/* A table of facts or for finding the way, as templates make them. */
static bool is_furniture(struct span attrs)
{
    static const char *const classes[] = {"infobox", "navbox", "vertical-navbox", "metadata", "ambox", "noprint"};

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (attrs.n && memmem(attrs.p, attrs.n, classes[i], strlen(classes[i])))
            return true;
    return false;
}

static void table_open(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    uint32_t from = r->at;

    end_block(w, f);
    rest_of_line(w, r);
    f->text = true;
    if (f->n_tables == WT_TABLES) {
        f->deeper++;
        return;
    }
    f->table[f->n_tables].row = false;
    f->table[f->n_tables].drop = is_furniture(wt_span(w, from, r->at));
    f->table[f->n_tables++].start = w->out->n;
    f->para = false;
    wt_put(w, "<table>");
}

void wt_table_close(struct wt *w, struct wt_frame *f, bool whole)
{
    if (f->deeper) {
        f->deeper--;
        return;
    }
    wt_put(w, "</table>\n");
    f->n_tables--;
    if (whole && f->table[f->n_tables].drop && w->rc == 0 && w->out->n >= f->table[f->n_tables].start) {
        w->out->n = f->table[f->n_tables].start;
        f->dropped = true;
    }
    f->para = f->n_tables == 0;
}

/* Passes what stands before a single '|': the attributes of a cell. */
static void cell_attributes(struct wt *w, struct wt_range *r, bool head)
{
    struct wt_range line = *r;

    for (;;) {
        uint32_t at = wt_find(w, &line, head ? "\n|!" : "\n|");
        char c = byte(w, r, at);
        if (at >= r->end || c == '\n')
            return;
        if (c == '!' && byte(w, r, at + 1) != '!') {
            line.at++;
            continue;
        }
        if (byte(w, r, at + 1) != c) {
            r->at = at + 1;
            r->node = line.node;
        }
        return;
    }
}

void wt_cell(struct wt *w, struct wt_frame *f, struct wt_range *r, char mark)
{
    wt_close_quotes(w, f);
    end_block(w, f);
    if (!f->deeper && !f->table[f->n_tables - 1].row) {
        wt_put(w, "<tr>");
        f->table[f->n_tables - 1].row = true;
    }
    cell_attributes(w, r, mark == '!');
    wt_put(w, f->deeper ? " " : mark == '!' ? "<th>" : "<td>");
    f->cells = true;
    f->heads = mark == '!';
    f->para = false;
    f->text = true; /* its line is no empty one */
    w->n_parens = 0;
}

/* A line inside a table, at its first byte but blanks; false: it is no mark of one. */
static bool table_line(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    if (begins(w, r, r->at, "|}")) {
        end_block(w, f);
        wt_table_close(w, f, true);
        r->at += 2;
    } else if (begins(w, r, r->at, "|-")) {
        end_block(w, f);
        if (!f->deeper)
            f->table[f->n_tables - 1].row = false;
        rest_of_line(w, r);
        f->text = true;
    } else if (begins(w, r, r->at, "|+")) {
        end_block(w, f);
        r->at += 2;
        cell_attributes(w, r, false);
        wt_put(w, f->deeper ? " " : "<caption>");
        f->text = true;
    } else if (w->t[r->at] == '|' || w->t[r->at] == '!') {
        r->at++;
        wt_cell(w, f, r, w->t[r->at - 1]);
    } else {
        return false;
    }
    return true;
}

/* ---- lines ---- */

/* Whether a line that begins with a blank is meant to stand as it is written. */
static bool is_pre(const struct wt *w, const struct wt_frame *f, const struct wt_range *r, uint32_t text)
{
    const struct wt_node *n = r->node < w->nodes.n ? &w->nodes.v[r->node] : NULL;

    if (w->depth || f->html || f->n_tables)
        return false;
    if (n && n->kind != WT_NONE && n->start == text && n->kind != WT_LINK)
        return false;
    return w->t[text] != '<';
}

void wt_line(struct wt *w, struct wt_frame *f, struct wt_range *r)
{
    uint32_t p = r->at, q = p, s;

    while (r->node < w->nodes.n && (w->nodes.v[r->node].kind == WT_NONE || w->nodes.v[r->node].start < p))
        r->node++;
    if (r->node < w->nodes.n && w->nodes.v[r->node].start == p && w->nodes.v[r->node].kind == WT_COMMENT) {
        f->comment = true;
        r->at = w->nodes.v[r->node].end;
        r->node = w->nodes.v[r->node].next;
        return;
    }
    while (q < r->end && is_blank(w->t[q]))
        q++;
    if (byte(w, r, q) == '\n' || q >= r->end) {
        if (!f->pre || byte(w, r, p) != ' ')
            end_block(w, f);
        f->line_start = false;
        r->at = q;
        return;
    }
    for (s = q; s < r->end && s - q < WT_LISTS && (w->t[s] == ':' || is_blank(w->t[s])); s++)
        ;
    if (begins(w, r, s, "{|")) {
        r->at = s;
        table_open(w, f, r);
        return;
    }
    if (f->n_tables && (w->t[q] == '|' || w->t[q] == '!')) {
        r->at = q;
        if (table_line(w, f, r))
            return;
    }
    r->at = p;
    if (w->t[p] == '=' && heading(w, f, r))
        return;
    if (is_list(w->t[p])) {
        list(w, f, r);
        return;
    }
    if (w->t[p] == ' ' && is_pre(w, f, r, q)) {
        wt_close_lists(w, f);
        if (!f->pre)
            wt_put(w, "<pre>");
        f->pre = true;
        f->line_start = false;
        r->at++;
        return;
    }
    end_block(w, f);
    if (begins(w, r, p, "----")) {
        while (byte(w, r, r->at) == '-')
            r->at++;
        wt_put(w, "<hr>");
        f->para = true;
    }
}
