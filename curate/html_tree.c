#include "curate/html_tree.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* An open element. */
struct open_node {
    uint32_t node;
    uint32_t name; /* hash of the name, to match the end tags of unknown elements */
    uint8_t tag;
};

struct parser {
    struct html_tree *t;
    const struct html_names *names;
    const char *p, *end; /* what is still to be read */
    uint32_t max_nodes;
    double deadline;
    struct open_node stack[HTML_MAX_DEPTH];
    int depth;
    uint32_t open[HTML_N_TAGS];    /* open elements of each tag, on the stack */
    uint32_t skipped[HTML_N_TAGS]; /* open, but too deep for the stack */
    uint32_t link;       /* the active <a href>, 0: none */
    bool after_block;    /* nothing but block tags since the last text: white space is void */
    bool nomem;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool has_flag(unsigned tag, unsigned flag)
{
    return (html_tag_flags[tag] & flag) != 0;
}

static uint32_t offset(const struct parser *s, const char *p)
{
    return (uint32_t)(p - s->t->src.p);
}

/* ---- the tree ---- */

/* Room for one more; false when memory is out. */
static bool grow(void **array, uint32_t n, uint32_t *cap, size_t size)
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

static unsigned top(const struct parser *s)
{
    return s->depth ? s->stack[s->depth - 1].tag : HTML_html;
}

static struct html_node *add_node(struct parser *s, unsigned tag)
{
    struct html_tree *t = s->t;

    if (!grow((void **)&t->node, t->n_nodes, &t->cap_nodes, sizeof *t->node)) {
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

static void pop(struct parser *s)
{
    struct open_node *o = &s->stack[--s->depth];

    s->t->node[o->node].end = s->t->n_nodes;
    s->open[o->tag]--;
    if (o->node == s->link)
        s->link = 0;
    if (has_flag(o->tag, TAG_BLOCK))
        s->after_block = true;
}

static void pop_to(struct parser *s, int depth)
{
    while (s->depth > depth)
        pop(s);
}

static void push(struct parser *s, unsigned tag, uint32_t name)
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
static int find_open(const struct parser *s, unsigned tag, unsigned barrier)
{
    if (!s->open[tag])
        return -1;
    for (int d = s->depth - 1; d >= 0; d--) {
        if (s->stack[d].tag == tag)
            return d;
        if (has_flag(s->stack[d].tag, barrier))
            return -1;
    }
    return -1;
}

static void add_text(struct parser *s, const char *from, const char *to, bool decode)
{
    const char *p = from;
    bool space;

    while (p < to && is_space(*p))
        p++;
    space = p == to;
    if (from == to || (space && s->after_block && !s->open[HTML_pre]))
        return;
    if (!space && s->open[HTML_head] && top(s) == HTML_head)
        pop(s);
    struct html_node *n = add_node(s, HTML_text);
    if (!n)
        return;
    n->first = offset(s, from);
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

static void close_p(struct parser *s)
{
    int d = s->open[HTML_p] ? find_open(s, HTML_p, TAG_SCOPE) : -1;

    if (d >= 0)
        pop_to(s, d);
}

/* li closes an open li, dd and dt an open dd or dt of the same list. */
static void close_item(struct parser *s, unsigned tag)
{
    bool li = tag == HTML_li;

    if (li ? !s->open[HTML_li] : !s->open[HTML_dd] && !s->open[HTML_dt])
        return;
    for (int d = s->depth - 1; d >= 0; d--) {
        unsigned at = s->stack[d].tag;
        if (li ? at == HTML_li : at == HTML_dd || at == HTML_dt) {
            pop_to(s, d);
            return;
        }
        if (has_flag(at, TAG_SPECIAL) && at != HTML_address && at != HTML_div && at != HTML_p)
            return;
    }
}

/* Pops to the innermost table, and inside it to the place where tag belongs. */
static void to_table_place(struct parser *s, unsigned tag)
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
    pop_to(s, keep);
    if (cell && top(s) != HTML_tr && add_node(s, HTML_tr))
        push(s, HTML_tr, 0);
}

/* svg and math: an HTML element inside ends them. */
static void leave_foreign(struct parser *s, unsigned tag)
{
    int d = s->depth - 1;

    if (!has_flag(tag, TAG_BREAKOUT))
        return;
    while (d >= 0 && s->stack[d].tag != HTML_svg && s->stack[d].tag != HTML_math) {
        unsigned at = s->stack[d].tag;
        if (has_flag(at, TAG_SCOPE) || at == HTML_title || at == HTML_annotation)
            return;
        d--;
    }
    if (d >= 0)
        pop_to(s, d);
}

/* Closes what the start of tag implies closed. */
static void before_start(struct parser *s, unsigned tag)
{
    unsigned at;
    int d;

    if (top(s) == HTML_head && !has_flag(tag, TAG_HEAD))
        pop(s);
    if (s->open[HTML_svg] + s->open[HTML_math])
        leave_foreign(s, tag);
    if (has_flag(tag, TAG_ENDS_P)) {
        if (s->open[HTML_select] && (d = find_open(s, HTML_select, TAG_SCOPE)) >= 0 &&
            tag != HTML_hr)
            pop_to(s, d);
        close_p(s);
    }
    at = top(s);
    switch (tag) {
    case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_h5: case HTML_h6:
        if (has_flag(at, TAG_HEADING))
            pop(s);
        break;
    case HTML_li: case HTML_dd: case HTML_dt:
        close_item(s, tag);
        close_p(s);
        break;
    case HTML_option: case HTML_optgroup:
        if (at == HTML_option)
            pop(s);
        if (tag == HTML_optgroup && top(s) == HTML_optgroup)
            pop(s);
        break;
    case HTML_rt: case HTML_rp: case HTML_rb: case HTML_rtc:
        if (at == HTML_rt || at == HTML_rp || at == HTML_rb)
            pop(s);
        break;
    case HTML_button: case HTML_select:
        if ((d = find_open(s, tag, TAG_SCOPE)) >= 0)
            pop_to(s, d);
        break;
    case HTML_a:
        s->link = 0;
        if ((d = find_open(s, HTML_a, TAG_SPECIAL)) >= 0)
            pop_to(s, d);
        break;
    case HTML_table:
        if (has_flag(at, TAG_TABLE) && (d = find_open(s, HTML_table, 0)) >= 0)
            pop_to(s, d);
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
static void end_form(struct parser *s)
{
    int d = find_open(s, HTML_form, TAG_SCOPE);

    if (d < 0)
        return;
    for (int i = d + 1; i < s->depth; i++)
        if (has_flag(s->stack[i].tag, TAG_SPECIAL) && s->stack[i].tag != HTML_p) {
            s->t->node[s->stack[d].node].tag = HTML_unknown;
            s->stack[d].tag = HTML_unknown;
            s->stack[d].name = 0;
            s->open[HTML_form]--;
            s->open[HTML_unknown]++;
            return;
        }
    pop_to(s, d);
}

static void end_heading(struct parser *s)
{
    for (int d = s->depth - 1; d >= 0 && !has_flag(s->stack[d].tag, TAG_SCOPE); d--)
        if (has_flag(s->stack[d].tag, TAG_HEADING)) {
            pop_to(s, d);
            return;
        }
}

/* Elements that the table of tags does not have, matched by their name. */
static void end_unknown(struct parser *s, uint32_t name)
{
    if (!s->open[HTML_unknown])
        return;
    for (int d = s->depth - 1; d >= 0; d--) {
        if (s->stack[d].tag == HTML_unknown && s->stack[d].name == name) {
            pop_to(s, d);
            return;
        }
        if (has_flag(s->stack[d].tag, TAG_SPECIAL))
            return;
    }
}

static void end_tag(struct parser *s, unsigned tag, uint32_t name)
{
    int d;

    if (s->skipped[tag]) {
        s->skipped[tag]--;
        return;
    }
    if (has_flag(tag, TAG_BLOCK))
        s->after_block = true;
    if (tag == HTML_a)
        s->link = 0;
    if (tag == HTML_body || tag == HTML_html)
        return;
    if (tag == HTML_unknown) {
        end_unknown(s, name);
    } else if (tag == HTML_form) {
        end_form(s);
    } else if (has_flag(tag, TAG_HEADING)) {
        end_heading(s);
    } else if (tag == HTML_p || tag == HTML_br) {
        /* Without a start they make an empty one. */
        if (tag == HTML_p && (d = find_open(s, tag, TAG_SCOPE)) >= 0)
            pop_to(s, d);
        else
            add_node(s, tag);
    } else if (has_flag(tag, TAG_TABLE)) {
        d = find_open(s, tag, tag == HTML_table ? 0 : TAG_SCOPE & ~TAG_TABLE);
        if (tag != HTML_table && d >= 0 && find_open(s, HTML_table, 0) > d)
            return; /* of an outer table */
        if (d >= 0)
            pop_to(s, d);
    } else {
        unsigned barrier = has_flag(tag, TAG_SPECIAL) ? TAG_SCOPE : TAG_SPECIAL;
        if ((d = find_open(s, tag, barrier)) >= 0)
            pop_to(s, d);
    }
}

/* ---- the tokenizer ---- */

struct tag_token {
    unsigned tag;
    uint32_t first_attr, n_attrs;
    bool self_closing, has_href, hides_p;
};

enum { NAME_ROOM = 24 };

/* Reads a name up to white space, '/', '>' or (attributes) '='; lower case into name. */
static size_t read_name(struct parser *s, char name[NAME_ROOM], uint32_t *hash, bool attr)
{
    const char *p = s->p;
    uint32_t h = HTML_NAME_HASH_START;
    size_t n = 0;

    for (; p < s->end; p++) {
        char c = *p;
        if (is_space(c) || c == '/' || c == '>' || (attr && c == '=' && p > s->p))
            break;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        if (n < NAME_ROOM - 1)
            name[n] = c;
        n++;
        h = html_name_hash(h, c);
    }
    s->p = p;
    *hash = h;
    return n;
}

/* Reads the value behind '='.  An unclosed quote takes all that is left. */
static struct span read_value(struct parser *s)
{
    struct span v = {s->p, 0};

    while (s->p < s->end && is_space(*s->p))
        s->p++;
    v.p = s->p;
    if (s->p == s->end)
        return v;
    if (*s->p == '"' || *s->p == '\'') {
        const char *q = memchr(s->p + 1, *s->p, (size_t)(s->end - s->p - 1));
        v.p = s->p + 1;
        v.n = (size_t)((q ? q : s->end) - v.p);
        s->p = q ? q + 1 : s->end;
    } else {
        while (s->p < s->end && !is_space(*s->p) && *s->p != '>')
            s->p++;
        v.n = (size_t)(s->p - v.p);
    }
    return v;
}

static void keep_attr(struct parser *s, struct tag_token *tok, unsigned name, struct span value)
{
    struct html_tree *t = s->t;

    if (!grow((void **)&t->attr, t->n_attrs, &t->cap_attrs, sizeof *t->attr)) {
        s->nomem = true;
        return;
    }
    struct html_attr *a = &t->attr[t->n_attrs++];
    a->name = (uint8_t)name;
    a->escaped = value.n && memchr(value.p, '&', value.n);
    a->off = value.n ? offset(s, value.p) : 0;
    a->len = (uint32_t)value.n;
    tok->n_attrs++;
    tok->has_href |= name == ATTR_href;
}

/* Reads attributes up to and with '>'.  false: the input ended inside the tag. */
static bool read_attrs(struct parser *s, struct tag_token *tok, bool keep)
{
    uint32_t seen = 0;
    char name[NAME_ROOM];
    uint32_t hash;

    tok->first_attr = s->t->n_attrs;
    tok->n_attrs = 0;
    tok->self_closing = tok->has_href = false;
    while (s->p < s->end) {
        char c = *s->p;
        if (c == '>') {
            s->p++;
            return true;
        }
        tok->self_closing = c == '/' && s->p + 1 < s->end && s->p[1] == '>';
        if (c == '/' || is_space(c)) {
            s->p++;
            continue;
        }
        struct span value = {NULL, 0};
        size_t n = read_name(s, name, &hash, true);
        while (s->p < s->end && is_space(*s->p))
            s->p++;
        if (s->p < s->end && *s->p == '=') {
            s->p++;
            value = read_value(s);
        }
        unsigned id = keep && n < NAME_ROOM ? html_attr_find(s->names, name, n, hash) : 0;
        if (id && !(seen & 1u << id)) {
            seen |= 1u << id;
            keep_attr(s, tok, id, value);
        }
    }
    return false;
}

static bool ascii_prefix(const char *p, const char *end, const char *word, size_t n)
{
    return (size_t)(end - p) >= n && strncasecmp(p, word, n) == 0;
}

/* The end tag that closes the raw text of name, or the end of input.  Inside "<!--" and
 * "-->" of a script a "<script" hides one "</script". */
static const char *raw_end(const struct parser *s, const char *name)
{
    size_t n = strlen(name);
    bool script = strcmp(name, "script") == 0, hidden = false;
    const char *p = s->p, *comment_end = s->p;

    for (; (p = memchr(p, '<', (size_t)(s->end - p))); p++) {
        hidden = hidden && p < comment_end;
        if (script && p >= comment_end && ascii_prefix(p, s->end, "<!--", 4)) {
            comment_end = memmem(p + 2, (size_t)(s->end - p - 2), "-->", 3);
            if (!comment_end)
                comment_end = s->end;
        } else if (script && p < comment_end && ascii_prefix(p, s->end, "<script", 7)) {
            hidden = true;
        } else if (p + 2 + n < s->end && p[1] == '/' && ascii_prefix(p + 2, s->end, name, n) &&
                   (is_space(p[2 + n]) || p[2 + n] == '/' || p[2 + n] == '>')) {
            if (!hidden)
                return p;
            hidden = false;
        }
    }
    return s->end;
}

/* An element whose content is text alone: keeps the text that a reader or the metadata
 * may want. */
static void read_raw(struct parser *s, unsigned tag, const char *name)
{
    const char *to = tag == HTML_plaintext ? s->end : raw_end(s, name);
    struct tag_token closing;
    bool wanted = tag == HTML_title || tag == HTML_textarea || tag == HTML_xmp ||
                  tag == HTML_plaintext;

    if (tag == HTML_script) {
        struct span type = html_attr_raw(s->t, s->t->n_nodes - 1, ATTR_type, NULL);
        wanted = memmem(type.p, type.n, "ld+json", 7) || memmem(type.p, type.n, "math/", 5);
    }
    push(s, tag, 0);
    if (wanted && to > s->p && s->stack[s->depth - 1].node == s->t->n_nodes - 1) {
        s->after_block = false;
        add_text(s, s->p, to, has_flag(tag, TAG_RCDATA));
    }
    if (s->skipped[tag])
        s->skipped[tag]--;
    else
        pop(s);
    s->p = to;
    if (to < s->end) {
        s->p += 2;
        read_attrs(s, &closing, false);
    }
}

static void read_start_tag(struct parser *s)
{
    struct html_tree *t = s->t;
    struct tag_token tok;
    char name[NAME_ROOM];
    uint32_t hash;
    size_t n = read_name(s, name, &hash, false);
    bool root, foreign;

    tok.tag = n < NAME_ROOM ? html_tag_find(s->names, name, n, hash) : HTML_unknown;
    if (!read_attrs(s, &tok, true))
        return;
    root = tok.tag == HTML_html;
    if (root && !t->node[0].n_attrs) {
        t->node[0].first = tok.first_attr;
        t->node[0].n_attrs = (uint16_t)tok.n_attrs;
    }
    if (root || (tok.tag == HTML_form && s->open[HTML_form]) ||
        ((tok.tag == HTML_body || tok.tag == HTML_head) && s->open[tok.tag]))
        return;
    before_start(s, tok.tag);
    foreign = s->open[HTML_svg] + s->open[HTML_math] > 0;
    bool in_table = has_flag(top(s), TAG_TABLE);
    struct html_node *node = add_node(s, tok.tag);
    if (!node)
        return;
    node->first = tok.first_attr;
    node->n_attrs = (uint16_t)tok.n_attrs;
    if (has_flag(tok.tag, TAG_BLOCK) || tok.tag == HTML_br)
        s->after_block = true;
    if (has_flag(tok.tag, TAG_VOID) || (tok.self_closing && (foreign || tok.tag == HTML_svg ||
                                                             tok.tag == HTML_math)))
        return;
    if (has_flag(tok.tag, TAG_RAW | TAG_RCDATA)) {
        name[n] = '\0';
        read_raw(s, tok.tag, name);
        return;
    }
    if (tok.tag == HTML_form && in_table)
        return;
    push(s, tok.tag, hash);
    if (tok.tag == HTML_a && tok.has_href && s->stack[s->depth - 1].node == t->n_nodes - 1)
        s->link = t->n_nodes - 1;
}

/* At "<!" or "<?": comment, doctype, CDATA or nonsense. */
static void read_markup_declaration(struct parser *s)
{
    size_t left = (size_t)(s->end - s->p);
    const char *q;

    if (left >= 9 && memcmp(s->p, "<![CDATA[", 9) == 0 &&
        s->open[HTML_svg] + s->open[HTML_math]) {
        const char *from = s->p + 9;
        q = memmem(from, left - 9, "]]>", 3);
        add_text(s, from, q ? q : s->end, false);
        s->p = q ? q + 3 : s->end;
        return;
    }
    if (left >= 4 && memcmp(s->p, "<!--", 4) == 0) {
        /* "<!-->" and "<!--->" are whole; "--!>" ends one too. */
        for (q = s->p + 2; (q = memmem(q, (size_t)(s->end - q), "--", 2)); q++) {
            const char *r = q + 2;
            if (r < s->end && *r == '!' && q >= s->p + 4)
                r++;
            if (r < s->end && *r == '-' && q == s->p + 2)
                r++;
            if (r < s->end && *r == '>') {
                s->p = r + 1;
                return;
            }
        }
        s->p = s->end;
        return;
    }
    q = memchr(s->p, '>', left);
    s->p = q ? q + 1 : s->end;
}

static void read_end_tag(struct parser *s)
{
    struct tag_token tok;
    char name[NAME_ROOM];
    uint32_t hash;
    size_t n = read_name(s, name, &hash, false);
    unsigned tag = n < NAME_ROOM ? html_tag_find(s->names, name, n, hash) : HTML_unknown;

    if (read_attrs(s, &tok, false))
        end_tag(s, tag, hash);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int parse(struct parser *s, struct err *e)
{
    struct html_tree *t = s->t;
    uint32_t next_check = 1 << 14;

    while (s->p < s->end && !s->nomem) {
        const char *from = s->p, *lt = from;
        /* A '<' that starts nothing is text. */
        for (; (lt = memchr(lt, '<', (size_t)(s->end - lt))); lt++) {
            char c = lt + 1 < s->end ? lt[1] : ' ';
            if (is_alpha(c) || c == '!' || c == '?' || (c == '/' && lt + 2 < s->end))
                break;
        }
        add_text(s, from, lt ? lt : s->end, true);
        s->p = lt ? lt : s->end;
        if (!lt)
            break;
        if (is_alpha(lt[1])) {
            s->p = lt + 1;
            read_start_tag(s);
        } else if (lt[1] == '/' && is_alpha(lt[2])) {
            s->p = lt + 2;
            read_end_tag(s);
        } else {
            read_markup_declaration(s);
        }
        if (t->n_nodes >= s->max_nodes) {
            t->truncated = true;
            break;
        }
        if (t->n_nodes >= next_check) {
            next_check = t->n_nodes + (1 << 14);
            if (s->deadline > 0 && now() > s->deadline)
                return err_set(e, ERR_LIMIT, "the page took too long to parse");
        }
    }
    return s->nomem ? err_set(e, ERR_NOMEM, "out of memory parsing HTML") : 0;
}

int html_tree_parse(struct html_tree *t, const struct html_names *names, struct span html,
                    uint32_t max_nodes, double deadline, struct err *e)
{
    struct parser s = {.t = t, .names = names, .p = html.p, .end = html.p + html.n,
                       .max_nodes = max_nodes, .deadline = deadline};

    t->src = html;
    t->n_nodes = t->n_attrs = 0;
    t->truncated = false;
    if (!add_node(&s, HTML_html))
        return err_set(e, ERR_NOMEM, "out of memory parsing HTML");
    push(&s, HTML_html, 0);
    s.after_block = true;
    TRY(parse(&s, e));
    pop_to(&s, 0);
    return 0;
}

void html_tree_free(struct html_tree *t)
{
    free(t->node);
    free(t->attr);
    memset(t, 0, sizeof *t);
}

struct span html_attr_raw(const struct html_tree *t, uint32_t i, enum html_attr_name name,
                          bool *escaped)
{
    const struct html_node *n = &t->node[i];

    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const struct html_attr *a = &t->attr[n->first + k];
        if (a->name == name) {
            struct span v = {t->src.p + a->off, a->len};
            if (escaped)
                *escaped = a->escaped;
            return v;
        }
    }
    return (struct span){NULL, 0};
}

int html_attr_get(const struct html_tree *t, uint32_t i, enum html_attr_name name, struct buf *b)
{
    bool escaped = false;
    struct span v = html_attr_raw(t, i, name, &escaped);

    if (!v.p)
        return 0;
    TRY(escaped ? html_decode(v, true, b) : buf_put_span(b, v));
    return 1;
}
