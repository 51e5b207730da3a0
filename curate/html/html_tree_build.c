#include "curate/html/html_tree_build.h"

#include <stdlib.h>
#include <string.h>

bool html_grow(void **array, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    uint32_t want = *cap ? *cap + *cap / 2 : 1024;
    void *p = realloc(*array, want * size);
    if (!p)
        return false;
    *array = p;
    *cap = want;
    return true;
}

struct html_node *html_add_node(struct html_parser *s, unsigned tag)
{
    struct html_tree *t = s->t;

    if (!html_grow((void **)&t->node, t->n_nodes, &t->cap_nodes, sizeof *t->node)) {
        s->nomem = true;
        return NULL;
    }
    struct html_node *n = &t->node[t->n_nodes++];
    n->tag = (uint8_t)tag;
    n->flags = 0;
    n->n_attrs = 0;
    n->parent = s->depth ? s->stack[s->depth - 1].node : 0;
    n->end = t->n_nodes;
    n->first = n->len = 0;
    return n;
}

static void pop(struct html_parser *s)
{
    struct html_open *o = &s->stack[--s->depth];

    s->t->node[o->node].end = s->t->n_nodes;
    s->open[o->tag]--;
    if (o->node == s->link)
        s->link = 0;
    if (html_has_flag(o->tag, TAG_BLOCK))
        s->after_block = true;
}

void html_pop_to(struct html_parser *s, int depth)
{
    while (s->depth > depth)
        pop(s);
}

void html_push(struct html_parser *s, unsigned tag, uint32_t name)
{
    if (s->depth == HTML_MAX_DEPTH) {
        s->skipped[tag]++;
        return;
    }
    s->stack[s->depth].node = s->t->n_nodes - 1;
    s->stack[s->depth].name = name;
    s->stack[s->depth++].tag = (uint8_t)tag;
    s->open[tag]++;
}

/* Depth of the innermost open element of tag, not looking past one with a flag of
 * barrier; -1 if there is none. */
static int find_open(const struct html_parser *s, unsigned tag, unsigned barrier)
{
    if (!s->open[tag])
        return -1;
    for (int d = s->depth - 1; d >= 0; d--) {
        if (s->stack[d].tag == tag)
            return d;
        if (html_has_flag(s->stack[d].tag, barrier))
            return -1;
    }
    return -1;
}

void html_add_text(struct html_parser *s, const char *from, const char *to, bool decode)
{
    const char *p = from;
    bool space;

    while (p < to && ascii_is_html_space(*p))
        p++;
    space = p == to;
    if (from == to || (space && s->after_block && !s->open[HTML_pre]))
        return;
    if (!space && s->open[HTML_head] && html_top(s) == HTML_head)
        pop(s);
    struct html_node *n = html_add_node(s, HTML_text);
    if (!n)
        return;
    n->first = (uint32_t)(from - s->t->src.p);
    n->len = (uint32_t)(to - from);
    if (space)
        n->flags |= HTML_SPACE;
    else
        s->after_block = false;
    if (s->link)
        n->flags |= HTML_IN_LINK;
    if (decode && (memchr(from, '&', n->len) || memchr(from, '\r', n->len)))
        n->flags |= HTML_ESCAPED;
}

/* ---- tree construction: start tags ---- */

static void close_p(struct html_parser *s)
{
    int d = s->open[HTML_p] ? find_open(s, HTML_p, TAG_SCOPE) : -1;

    if (d >= 0)
        html_pop_to(s, d);
}

/* li closes an open li, dd and dt an open dd or dt of the same list. */
static void close_item(struct html_parser *s, unsigned tag)
{
    bool li = tag == HTML_li;

    if (li ? !s->open[HTML_li] : !s->open[HTML_dd] && !s->open[HTML_dt])
        return;
    for (int d = s->depth - 1; d >= 0; d--) {
        unsigned at = s->stack[d].tag;
        if (li ? at == HTML_li : at == HTML_dd || at == HTML_dt) {
            html_pop_to(s, d);
            return;
        }
        if (html_has_flag(at, TAG_SPECIAL) && at != HTML_address && at != HTML_div && at != HTML_p)
            return;
    }
}

/* Pops to the innermost table, and inside it to the place where tag belongs. */
static void to_table_place(struct html_parser *s, unsigned tag)
{
    int d = find_open(s, HTML_table, 0);
    bool cell = tag == HTML_td || tag == HTML_th;

    if (d < 0)
        return;
    /* Whatever stands between: sections stay open for rows, rows for cells. */
    int keep = d + 1;
    if (tag == HTML_tr || cell)
        for (; keep < s->depth; keep++) {
            unsigned at = s->stack[keep].tag;
            bool section = at == HTML_tbody || at == HTML_thead || at == HTML_tfoot;
            if (!section && !(cell && at == HTML_tr))
                break;
        }
    html_pop_to(s, keep);
    if (cell && html_top(s) != HTML_tr && html_add_node(s, HTML_tr))
        html_push(s, HTML_tr, 0);
}

/* svg and math: an HTML element inside ends them. */
static void leave_foreign(struct html_parser *s, unsigned tag)
{
    int d = s->depth - 1;

    if (!html_has_flag(tag, TAG_BREAKOUT))
        return;
    while (d >= 0 && s->stack[d].tag != HTML_svg && s->stack[d].tag != HTML_math) {
        unsigned at = s->stack[d].tag;
        if (html_has_flag(at, TAG_SCOPE) || at == HTML_title || at == HTML_annotation)
            return;
        d--;
    }
    if (d >= 0)
        html_pop_to(s, d);
}

void html_before_start(struct html_parser *s, unsigned tag)
{
    unsigned at;
    int d;

    if (html_top(s) == HTML_head && !html_has_flag(tag, TAG_HEAD))
        pop(s);
    if (s->open[HTML_svg] + s->open[HTML_math])
        leave_foreign(s, tag);
    if (html_has_flag(tag, TAG_ENDS_P)) {
        if (s->open[HTML_select] && (d = find_open(s, HTML_select, TAG_SCOPE)) >= 0 &&
            tag != HTML_hr)
            html_pop_to(s, d);
        close_p(s);
    }
    at = html_top(s);
    switch (tag) {
    case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_h5: case HTML_h6:
        if (html_has_flag(at, TAG_HEADING))
            pop(s);
        break;
    case HTML_li: case HTML_dd: case HTML_dt:
        close_item(s, tag);
        close_p(s);
        break;
    case HTML_option: case HTML_optgroup:
        if (at == HTML_option)
            pop(s);
        if (tag == HTML_optgroup && html_top(s) == HTML_optgroup)
            pop(s);
        break;
    case HTML_rt: case HTML_rp: case HTML_rb: case HTML_rtc:
        if (at == HTML_rt || at == HTML_rp || at == HTML_rb)
            pop(s);
        break;
    case HTML_button: case HTML_select:
        if ((d = find_open(s, tag, TAG_SCOPE)) >= 0)
            html_pop_to(s, d);
        break;
    case HTML_a:
        s->link = 0;
        if ((d = find_open(s, HTML_a, TAG_SPECIAL)) >= 0)
            html_pop_to(s, d);
        break;
    case HTML_table:
        if (html_has_flag(at, TAG_TABLE) && (d = find_open(s, HTML_table, 0)) >= 0)
            html_pop_to(s, d);
        break;
    case HTML_caption: case HTML_colgroup: case HTML_col: case HTML_tbody: case HTML_thead:
    case HTML_tfoot: case HTML_tr: case HTML_td: case HTML_th:
        to_table_place(s, tag);
        break;
    default:
        break;
    }
}

/* ---- tree construction: end tags ---- */

/* A form that ends before what was opened in it: the standard takes it out of the tree
 * and leaves the rest open. */
static void end_form(struct html_parser *s)
{
    int d = find_open(s, HTML_form, TAG_SCOPE);

    if (d < 0)
        return;
    for (int i = d + 1; i < s->depth; i++)
        if (html_has_flag(s->stack[i].tag, TAG_SPECIAL) && s->stack[i].tag != HTML_p) {
            s->t->node[s->stack[d].node].tag = HTML_unknown;
            s->stack[d].tag = HTML_unknown;
            s->stack[d].name = 0;
            s->open[HTML_form]--;
            s->open[HTML_unknown]++;
            return;
        }
    html_pop_to(s, d);
}

static void end_heading(struct html_parser *s)
{
    for (int d = s->depth - 1; d >= 0 && !html_has_flag(s->stack[d].tag, TAG_SCOPE); d--)
        if (html_has_flag(s->stack[d].tag, TAG_HEADING)) {
            html_pop_to(s, d);
            return;
        }
}

/* Elements that the table of tags does not have, matched by their name. */
static void end_unknown(struct html_parser *s, uint32_t name)
{
    if (!s->open[HTML_unknown])
        return;
    for (int d = s->depth - 1; d >= 0; d--) {
        if (s->stack[d].tag == HTML_unknown && s->stack[d].name == name) {
            html_pop_to(s, d);
            return;
        }
        if (html_has_flag(s->stack[d].tag, TAG_SPECIAL))
            return;
    }
}

void html_end_tag(struct html_parser *s, unsigned tag, uint32_t name)
{
    int d;

    if (s->skipped[tag]) {
        s->skipped[tag]--;
        return;
    }
    if (html_has_flag(tag, TAG_BLOCK))
        s->after_block = true;
    if (tag == HTML_a)
        s->link = 0;
    if (tag == HTML_body || tag == HTML_html)
        return;
    if (tag == HTML_unknown) {
        end_unknown(s, name);
    } else if (tag == HTML_form) {
        end_form(s);
    } else if (html_has_flag(tag, TAG_HEADING)) {
        end_heading(s);
    } else if (tag == HTML_p || tag == HTML_br) {
        /* Without a start they make an empty one. */
        if (tag == HTML_p && (d = find_open(s, tag, TAG_SCOPE)) >= 0)
            html_pop_to(s, d);
        else
            html_add_node(s, tag);
    } else if (html_has_flag(tag, TAG_TABLE)) {
        d = find_open(s, tag, tag == HTML_table ? 0 : TAG_SCOPE & ~TAG_TABLE);
        if (tag != HTML_table && d >= 0 && find_open(s, HTML_table, 0) > d)
            return; /* of an outer table */
        if (d >= 0)
            html_pop_to(s, d);
    } else {
        unsigned barrier = tag == HTML_template                   ? 0
                           : html_has_flag(tag, TAG_SPECIAL) ? TAG_SCOPE
                                                             : TAG_SPECIAL;
        if ((d = find_open(s, tag, barrier)) >= 0)
            html_pop_to(s, d);
    }
}
