/* MathML to TeX: the elements of MathML 3's presentation markup by a table of forms.  Letters and operators stay the
 * characters that they are, as unicode-math and MathJax read them.  Where a formula holds its TeX, that is taken. */
#include <stdlib.h>

#include "base/ascii.h"
#include "curate/xml/xml_text.h"

enum {
    NODES_MAX = 100000, /* of a formula; what lies behind is left out */
    DEPTH_MAX = 200,    /* of elements that are written by their forms; deeper ones are rows */
    NONE = -1
};

enum kind {
    ROW, TEXT, IDENTIFIER, FRACTION, SQRT, ROOT, SUB, SUP, SUBSUP, UNDER, OVER, UNDEROVER, FENCED, TABLE, TABLE_ROW, CELL, SPACE,
    RADICAL, NARY, CHARACTER,
    SEMANTICS, TEX_NOTE, DROP
};

static const struct {
    const char *name;
    enum kind kind;
} kinds[] = {
    {"mi", IDENTIFIER}, {"mn", ROW}, {"mo", ROW}, {"mtext", TEXT}, {"ms", TEXT}, {"mfrac", FRACTION}, {"msqrt", SQRT},
    {"mroot", ROOT}, {"msub", SUB}, {"msup", SUP}, {"msubsup", SUBSUP}, {"munder", UNDER}, {"mover", OVER},
    {"munderover", UNDEROVER}, {"mfenced", FENCED}, {"mtable", TABLE}, {"mtr", TABLE_ROW}, {"mlabeledtr", TABLE_ROW},
    {"mtd", CELL}, {"mspace", SPACE}, {"semantics", SEMANTICS}, {"annotation", TEX_NOTE}, {"annotation-xml", DROP},
    {"mphantom", DROP},
    /* Office Math, of which Word's documents are made */
    {"f", FRACTION}, {"sSup", SUP}, {"sSub", SUB}, {"sSubSup", SUBSUP}, {"limLow", UNDER}, {"limUpp", OVER}, {"rad", RADICAL},
    {"nary", NARY}, {"d", FENCED}, {"chr", CHARACTER}, {"fPr", DROP}, {"sSupPr", DROP}, {"sSubPr", DROP}, {"sSubSupPr", DROP},
    {"limLowPr", DROP}, {"limUppPr", DROP}, {"radPr", DROP}, {"rPr", DROP}, {"ctrlPr", DROP}, {"dPr", DROP}, {"mr", TABLE_ROW},
    {"mPr", DROP}, {"del", DROP},
};

struct node {
    enum kind kind;
    int32_t first, last, next; /* children; sibling */
    size_t text, n;            /* text: of a leaf, in bytes */
    size_t open, open_n, close, close_n; /* mfenced */
};

struct math {
    struct node *v;
    size_t n, cap;
    struct buf bytes;
    struct buf *out;
    int rc;
};

static enum kind kind_of(const struct xml_reader *r)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (span_is(r->name, kinds[i].name)) {
            struct span encoding = xml_attr(r, "encoding");
            bool tex = encoding.n && (memmem(encoding.p, encoding.n, "tex", 3) || memmem(encoding.p, encoding.n, "TeX", 3));
            return kinds[i].kind == TEX_NOTE && !tex ? DROP : kinds[i].kind;
        }
    return ROW;
}

/* A new last child of parent; NONE when there is no room. */
static int32_t add(struct math *m, int32_t parent, enum kind kind)
{
    if (m->n == NODES_MAX || mem_grow(&m->v, &m->cap, m->n + 1, sizeof *m->v) < 0) {
        m->rc = m->n == NODES_MAX ? m->rc : ERR_NOMEM;
        return NONE;
    }
    int32_t i = (int32_t)m->n++;
    m->v[i] = (struct node){.kind = kind, .first = NONE, .last = NONE, .next = NONE};
    if (parent == NONE)
        return i;
    if (m->v[parent].first == NONE)
        m->v[parent].first = i;
    else
        m->v[m->v[parent].last].next = i;
    m->v[parent].last = i;
    return i;
}

/* The bytes of s, kept: where they are. */
static size_t keep(struct math *m, struct span s, size_t *n)
{
    size_t at = m->bytes.n;

    if (buf_put_span(&m->bytes, s) < 0)
        m->rc = ERR_NOMEM;
    *n = m->bytes.n - at;
    return at;
}

/* Text without white space at its ends, as a leaf of parent. */
static void add_text(struct math *m, int32_t parent, const struct xml_reader *r)
{
    size_t at = m->bytes.n, end;

    if (xml_put_text(r->text, r->literal, &m->bytes) < 0)
        m->rc = ERR_NOMEM;
    for (end = m->bytes.n; at < end && ascii_is_space(m->bytes.p[at]); at++)
        ;
    while (end > at && ascii_is_space(m->bytes.p[end - 1]))
        end--;
    if (at == end)
        return;
    int32_t i = add(m, parent, ROW);
    if (i != NONE) {
        m->v[i].text = at;
        m->v[i].n = end - at;
    }
}

/* Reads up to the end of <math>. */
static void read_nodes(struct math *m, struct xml_reader *r)
{
    int32_t open[XML_DEPTH_MAX];
    struct span root = r->name;
    int depth = 1, deeper = 0;
    enum xml_event ev;

    open[0] = add(m, NONE, ROW);
    while (m->rc == 0 && depth && (ev = xml_next(r)) != XML_EV_END) {
        int32_t parent = open[depth - 1];
        if (ev == XML_EV_TEXT) {
            if (parent != NONE)
                add_text(m, parent, r);
        } else if (ev == XML_EV_CLOSE) {
            if (span_eq(r->name, root)) /* whatever is open */
                return;
            if (deeper)
                deeper--;
            else if (depth > 1)
                depth--;
        } else if (depth == XML_DEPTH_MAX) {
            deeper += !r->empty;
        } else {
            enum kind kind = kind_of(r);
            int32_t i = parent == NONE || kind == DROP ? NONE : add(m, parent, kind);
            if (i != NONE && m->v[i].kind == FENCED) {
                struct span open_mark = xml_attr(r, "open"), close_mark = xml_attr(r, "close");
                m->v[i].open = keep(m, open_mark.p ? open_mark : span_of("("), &m->v[i].open_n);
                m->v[i].close = keep(m, close_mark.p ? close_mark : span_of(")"), &m->v[i].close_n);
            }
            if (i != NONE && m->v[i].kind == CHARACTER) {
                struct span v = xml_attr(r, "val");
                m->v[i].text = keep(m, v, &m->v[i].n);
            }
            if (!r->empty)
                open[depth++] = i;
        }
    }
}

/* ---- writing ---- */

static void put(struct math *m, const char *s)
{
    if (m->rc == 0)
        m->rc = buf_puts(m->out, s);
}

static void put_bytes(struct math *m, size_t at, size_t n)
{
    if (m->rc == 0)
        m->rc = buf_put(m->out, m->bytes.p + at, n);
}

/* The TeX of what an operator or identifier is, where its character means something else in TeX. */
static void put_leaf(struct math *m, const struct node *n)
{
    static const struct {
        const char *character, *tex;
    } special[] = {{"{", "\\{"}, {"}", "\\}"}, {"%", "\\%"}, {"#", "\\#"}, {"&", "\\&"}, {"$", "\\$"}, {"_", "\\_"},
                   {"\xE2\x81\xA1", ""}, {"\xE2\x81\xA2", ""}, {"\xE2\x81\xA3", ""}, {"\xE2\x80\x8B", ""},
                   {"\xE2\x88\x92", "-"}, {"\xC2\xA0", " "}};
    struct span s = {m->bytes.p + n->text, n->n};

    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (span_is(s, special[i].character)) {
            put(m, special[i].tex);
            return;
        }
    put_bytes(m, n->text, n->n);
}

static void write_node(struct math *m, int32_t i, int depth);

static void write_children(struct math *m, int32_t i, int depth, const char *between)
{
    for (int32_t c = m->v[i].first; c != NONE; c = m->v[c].next) {
        write_node(m, c, depth);
        if (m->v[c].next != NONE)
            put(m, between);
    }
}

/* A child in braces; NONE: empty ones. */
static void write_group(struct math *m, int32_t i, int depth, const char *open, const char *close)
{
    put(m, open);
    if (i != NONE)
        write_node(m, i, depth);
    put(m, close);
}

/* Whether text is one character. */
static bool is_one(const struct math *m, size_t at, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        k += ((unsigned char)m->bytes.p[at + i] & 0xC0) != 0x80;
    return k <= 1;
}

/* <mi>: a letter, a function that TeX knows, or a name. */
static void write_identifier(struct math *m, int32_t i, int depth)
{
    static const char *const functions[] = {"sin", "cos", "tan", "log", "ln", "exp", "max", "min", "lim", "sup", "inf", "det",
                                            "arg", "dim", "gcd", "ker", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"};
    int32_t c = m->v[i].first;

    if (c == NONE || m->v[c].next != NONE || is_one(m, m->v[c].text, m->v[c].n)) {
        write_children(m, i, depth, "");
        return;
    }
    struct span s = {m->bytes.p + m->v[c].text, m->v[c].n};
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (span_is(s, functions[k])) {
            put(m, "\\");
            put_bytes(m, m->v[c].text, m->v[c].n);
            put(m, " ");
            return;
        }
    put(m, "\\mathrm{");
    put_leaf(m, &m->v[c]);
    put(m, "}");
}

static void write_scripts(struct math *m, const struct node *n, int depth)
{
    int32_t base = n->first, a = base == NONE ? NONE : m->v[base].next, b = a == NONE ? NONE : m->v[a].next;
    bool sub = n->kind == SUB || n->kind == SUBSUP || n->kind == UNDER || n->kind == UNDEROVER;
    bool row = base != NONE && m->v[base].kind == ROW && m->v[base].first != NONE &&
               m->v[m->v[base].first].next != NONE;

    write_group(m, base, depth, row ? "{" : "", row ? "}" : "");
    if (a != NONE)
        write_group(m, a, depth, sub ? "_{" : "^{", "}");
    if (b != NONE)
        write_group(m, b, depth, "^{", "}");
}

/* Office Math's sums and integrals: the sign in the properties, below, above, what it is of. */
static void write_nary(struct math *m, const struct node *n, int depth)
{
    int32_t c = n->first, below = c == NONE ? NONE : m->v[c].next, above = below == NONE ? NONE : m->v[below].next;

    if (c != NONE && m->v[c].first != NONE && m->v[m->v[c].first].kind == CHARACTER)
        write_node(m, c, depth);
    else
        put(m, "∫");
    if (below != NONE && m->v[below].first != NONE)
        write_group(m, below, depth, "_{", "}");
    if (above != NONE && m->v[above].first != NONE)
        write_group(m, above, depth, "^{", "}");
    if (above != NONE && m->v[above].next != NONE)
        write_node(m, m->v[above].next, depth);
}

/* The TeX that <semantics> holds of itself; NONE: it holds none. */
static int32_t find_tex(const struct math *m, int32_t i)
{
    for (int32_t c = m->v[i].first; c != NONE; c = m->v[c].next)
        if (m->v[c].kind == TEX_NOTE && m->v[c].first != NONE)
            return c;
    return NONE;
}

static void write_node(struct math *m, int32_t i, int depth)
{
    const struct node *n = &m->v[i];
    int32_t a = n->first, b = a == NONE ? NONE : m->v[a].next, tex;

    if (m->rc < 0)
        return;
    if (n->n) {
        put_leaf(m, n);
        return;
    }
    if (depth == 0) /* of what lies deeper nothing is written */
        return;
    depth--;
    switch (n->kind) {
    case IDENTIFIER:
        write_identifier(m, i, depth);
        break;
    case TEXT:
        put(m, "\\text{");
        write_children(m, i, depth, "");
        put(m, "}");
        break;
    case FRACTION:
        write_group(m, a, depth, "\\frac{", "}");
        write_group(m, b, depth, "{", "}");
        break;
    case SQRT:
        put(m, "\\sqrt{");
        write_children(m, i, depth, "");
        put(m, "}");
        break;
    case ROOT:
        write_group(m, b, depth, "\\sqrt[", "]");
        write_group(m, a, depth, "{", "}");
        break;
    case SUB: case SUP: case SUBSUP: case UNDER: case OVER: case UNDEROVER:
        write_scripts(m, n, depth);
        break;
    case RADICAL: /* a degree, which may be empty, and what is under the root */
        if (b != NONE && m->v[a].first != NONE)
            write_group(m, a, depth, "\\sqrt[", "]");
        else
            put(m, "\\sqrt");
        write_group(m, b == NONE ? a : b, depth, "{", "}");
        break;
    case NARY:
        write_nary(m, n, depth);
        break;
    case FENCED:
        put_bytes(m, n->open, n->open_n);
        write_children(m, i, depth, ",");
        put_bytes(m, n->close, n->close_n);
        break;
    case TABLE:
        put(m, "\\begin{matrix}");
        write_children(m, i, depth, "\\\\");
        put(m, "\\end{matrix}");
        break;
    case TABLE_ROW:
        write_children(m, i, depth, "&");
        break;
    case SPACE:
        put(m, " ");
        break;
    case SEMANTICS:
        tex = find_tex(m, i);
        if (tex != NONE)
            write_children(m, tex, depth, "");
        else
            write_children(m, i, depth, "");
        break;
    case TEX_NOTE:
        break;
    default:
        write_children(m, i, depth, "");
    }
}

int xml_math(struct xml_reader *r, struct buf *tex)
{
    struct math m = {.out = tex};

    read_nodes(&m, r);
    if (m.rc == 0 && m.n)
        write_node(&m, 0, DEPTH_MAX);
    free(m.v);
    buf_free(&m.bytes);
    return m.rc;
}
