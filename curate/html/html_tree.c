#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "base/log.h"
#include "curate/html/html_tree_build.h"
#include "curate/text/html_entity.h"

static uint32_t offset(const struct html_parser *s, const char *p)
{
    return (uint32_t)(p - s->t->src.p);
}

struct tag_token {
    unsigned tag;
    uint32_t first_attr, n_attrs;
    bool self_closing, has_href;
};

enum { NAME_ROOM = 24 };

/* Reads a name up to white space, '/', '>' or (attributes) '='; lower case into name. */
static size_t read_name(struct html_parser *s, char name[NAME_ROOM], uint32_t *hash, bool attr)
{
    const char *p = s->p;
    uint32_t h = HTML_NAME_HASH_START;
    size_t n = 0;

    for (; p < s->end; p++) {
        char c = *p;
        if (ascii_is_html_space(c) || c == '/' || c == '>' || (attr && c == '=' && p > s->p))
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
static struct span read_value(struct html_parser *s)
{
    struct span v = {s->p, 0};

    while (s->p < s->end && ascii_is_html_space(*s->p))
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
        while (s->p < s->end && !ascii_is_html_space(*s->p) && *s->p != '>')
            s->p++;
        v.n = (size_t)(s->p - v.p);
    }
    return v;
}

static void keep_attr(struct html_parser *s, struct tag_token *tok, unsigned name, struct span value)
{
    struct html_tree *t = s->t;

    if (!html_grow((void **)&t->attr, t->n_attrs, &t->cap_attrs, sizeof *t->attr)) {
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
static bool read_attrs(struct html_parser *s, struct tag_token *tok, bool keep)
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
        if (c == '/' || ascii_is_html_space(c)) {
            s->p++;
            continue;
        }
        struct span value = {NULL, 0};
        size_t n = read_name(s, name, &hash, true);
        while (s->p < s->end && ascii_is_html_space(*s->p))
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

static bool ends_name(char c)
{
    return ascii_is_html_space(c) || c == '/' || c == '>';
}

/* The end tag that closes the raw text of name, or the end of input.  Inside "<!--" and
 * "-->" of a script a "<script" hides one "</script". */
static const char *raw_end(const struct html_parser *s, const char *name)
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
        } else if (script && p < comment_end && ascii_prefix(p, s->end, "<script", 7) &&
                   p + 7 < s->end && ends_name(p[7])) {
            hidden = true;
        } else if (p + 2 + n < s->end && p[1] == '/' && ascii_prefix(p + 2, s->end, name, n) &&
                   ends_name(p[2 + n])) {
            if (!hidden)
                return p;
            hidden = false;
        }
    }
    return s->end;
}

/* An element whose content is text alone: keeps the text that a reader or the metadata
 * may want. */
static void read_raw(struct html_parser *s, unsigned tag, const char *name)
{
    const char *to = tag == HTML_plaintext ? s->end : raw_end(s, name);
    struct tag_token closing;
    bool wanted = tag == HTML_title || tag == HTML_textarea || tag == HTML_xmp ||
                  tag == HTML_plaintext;

    if (tag == HTML_script) {
        struct span type = html_attr_raw(s->t, s->t->n_nodes - 1, ATTR_type, NULL);
        wanted = type.n && (memmem(type.p, type.n, "ld+json", 7) || memmem(type.p, type.n, "math/", 5));
    }
    html_push(s, tag, 0);
    if (wanted && to > s->p && s->stack[s->depth - 1].node == s->t->n_nodes - 1) {
        s->after_block = false;
        html_add_text(s, s->p, to, html_has_flag(tag, TAG_RCDATA));
    }
    if (s->skipped[tag])
        s->skipped[tag]--;
    else
        html_pop_to(s, s->depth - 1);
    s->p = to;
    if (to < s->end) {
        s->p += 2;
        read_attrs(s, &closing, false);
    }
}

/* True inside svg or math, but for the places in them where HTML stands. */
static bool in_foreign(const struct html_parser *s)
{
    if (s->open[HTML_svg] + s->open[HTML_math] == 0)
        return false;
    for (int d = s->depth - 1; d >= 0; d--) {
        unsigned at = s->stack[d].tag;
        if (at == HTML_svg || at == HTML_math)
            return true;
        if (html_has_flag(at, TAG_SCOPE) || at == HTML_title)
            return false;
    }
    return false;
}

static void read_start_tag(struct html_parser *s)
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
    html_before_start(s, tok.tag);
    foreign = in_foreign(s);
    bool in_table = html_has_flag(html_top(s), TAG_TABLE);
    struct html_node *node = html_add_node(s, tok.tag);
    if (!node)
        return;
    node->first = tok.first_attr;
    node->n_attrs = (uint16_t)tok.n_attrs;
    if (html_has_flag(tok.tag, TAG_BLOCK) || tok.tag == HTML_br)
        s->after_block = true;
    if (html_has_flag(tok.tag, TAG_VOID) || (tok.self_closing && (foreign || tok.tag == HTML_svg ||
                                                             tok.tag == HTML_math)))
        return;
    /* Pages that a script builds have their text for others in noscript: in the body it is read as HTML. */
    if (html_has_flag(tok.tag, TAG_RAW | TAG_RCDATA) && (tok.tag != HTML_noscript || s->open[HTML_head]) &&
        (!foreign || tok.tag == HTML_script || tok.tag == HTML_style)) {
        name[n] = '\0';
        read_raw(s, tok.tag, name);
        return;
    }
    if (tok.tag == HTML_form && in_table)
        return;
    html_push(s, tok.tag, hash);
    if (tok.tag == HTML_a && tok.has_href && s->stack[s->depth - 1].node == t->n_nodes - 1)
        s->link = t->n_nodes - 1;
}

/* At "<!" or "<?": comment, doctype, CDATA or nonsense. */
static void read_markup_declaration(struct html_parser *s)
{
    size_t left = (size_t)(s->end - s->p);
    const char *q;

    if (left >= 9 && memcmp(s->p, "<![CDATA[", 9) == 0 && in_foreign(s)) {
        const char *from = s->p + 9;
        q = memmem(from, left - 9, "]]>", 3);
        html_add_text(s, from, q ? q : s->end, false);
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

static void read_end_tag(struct html_parser *s)
{
    struct tag_token tok;
    char name[NAME_ROOM];
    uint32_t hash;
    size_t n = read_name(s, name, &hash, false);
    unsigned tag = n < NAME_ROOM ? html_tag_find(s->names, name, n, hash) : HTML_unknown;

    if (read_attrs(s, &tok, false))
        html_end_tag(s, tag, hash);
}

static int parse(struct html_parser *s, struct err *e)
{
    struct html_tree *t = s->t;
    uint32_t next_check = 1 << 14;

    while (s->p < s->end && !s->nomem) {
        const char *from = s->p, *lt = from;
        /* A '<' that starts nothing is text. */
        for (; (lt = memchr(lt, '<', (size_t)(s->end - lt))); lt++) {
            char c = lt + 1 < s->end ? lt[1] : ' ';
            if (ascii_is_letter(c) || c == '!' || c == '?' || (c == '/' && lt + 2 < s->end))
                break;
        }
        html_add_text(s, from, lt ? lt : s->end, true);
        s->p = lt ? lt : s->end;
        if (!lt)
            break;
        if (ascii_is_letter(lt[1])) {
            s->p = lt + 1;
            read_start_tag(s);
        } else if (lt[1] == '/' && ascii_is_letter(lt[2])) {
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
            if (s->deadline > 0 && log_seconds() > s->deadline)
                return err_set(e, ERR_LIMIT, "the page took too long to parse");
        }
    }
    return s->nomem ? err_set(e, ERR_NOMEM, "out of memory parsing HTML") : 0;
}

int html_tree_parse(struct html_tree *t, const struct html_names *names, struct span html,
                    uint32_t max_nodes, double deadline, struct err *e)
{
    struct html_parser s = {.t = t, .names = names, .p = html.p, .end = html.p + html.n,
                       .max_nodes = max_nodes, .deadline = deadline};

    t->src = html;
    t->n_nodes = t->n_attrs = 0;
    t->truncated = false;
    if (!html_add_node(&s, HTML_html))
        return err_set(e, ERR_NOMEM, "out of memory parsing HTML");
    html_push(&s, HTML_html, 0);
    s.after_block = true;
    TRY(parse(&s, e));
    html_pop_to(&s, 0);
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
