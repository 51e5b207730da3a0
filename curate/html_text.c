#include "curate/html_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARKS_MAX = 32,    /* bytes of emphasis waiting for text */
    FORMULA_MAX = 5000 /* nodes of a formula in which TeX is looked for */
};

/* What an open element needs when it ends. */
struct open_element {
    uint32_t end;
    uint8_t tag;
    bool marked, row, pre;
    int32_t number; /* ol: of the next item; else -1 */
};

struct writer {
    const struct html_tree *t;
    const uint8_t *layout; /* tr: not a row of cells */
    bool markdown;
    struct buf *out;
    struct buf tmp;
    int breaks;            /* newlines due before the next text */
    bool space;            /* a space is due */
    bool line_start;
    bool item;             /* "- " is due, with */
    int32_t item_number;   /*   this number if positive */
    int heading;           /* '#'s due */
    bool pre_start;        /* in <pre>, nothing written of it yet */
    char marks[MARKS_MAX];
    int n_marks;
    int pre, lists, quotes, row, cells, columns;
    size_t row_start;
    bool row_text;
    struct open_element open[HTML_MAX_DEPTH + 1];
    int depth;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

/* Bytes of white space at p: 0, 1, or 2 for a no-break space. */
static int space_at(const char *p, const char *end)
{
    if (is_space(*p))
        return 1;
    return *p == '\xC2' && p + 1 < end && p[1] == '\xA0' ? 2 : 0;
}

int html_fold(struct span s, struct buf *out)
{
    const char *p = s.p, *end;
    size_t start = out->n;
    int w;

    if (!s.n)
        return 0;
    end = s.p + s.n;
    while (p < end) {
        while (p < end && (w = space_at(p, end)))
            p += w;
        const char *from = p;
        while (p < end && !space_at(p, end))
            p++;
        if (p > from && out->n > start)
            TRY(buf_putc(out, ' '));
        TRY(buf_put(out, from, (size_t)(p - from)));
    }
    return 0;
}

/* ---- the line under way ---- */

static void need_break(struct writer *w, int n)
{
    if (w->row) {
        w->space = true;
        return;
    }
    if (n > 1 && w->lists)
        n = 1;
    if (n > w->breaks)
        w->breaks = n;
}

static int put_prefix(struct writer *w)
{
    for (int i = 0; w->markdown && i < w->quotes; i++)
        TRY(buf_puts(w->out, "> "));
    for (int i = 1; i < w->lists; i++)
        TRY(buf_puts(w->out, "  "));
    if (w->item && w->markdown && w->item_number >= 0)
        TRY(buf_printf(w->out, "%d. ", (int)w->item_number));
    else if (w->item)
        TRY(buf_puts(w->out, "- "));
    else if (w->lists)
        TRY(buf_puts(w->out, "  "));
    for (; w->heading > 0; w->heading--)
        TRY(buf_puts(w->out, w->heading > 1 ? "#" : "# "));
    w->item = false;
    w->heading = 0;
    return 0;
}

/* What is due before a word: line breaks, the line's prefix, a space, emphasis. */
static int before_word(struct writer *w)
{
    if (w->line_start || w->breaks) {
        struct buf *out = w->out;
        int n = w->breaks < 1 ? 1 : w->breaks > 2 && !w->pre ? 2 : w->breaks;
        while (out->n && (out->p[out->n - 1] == ' ' || out->p[out->n - 1] == '\t'))
            out->n--;
        for (int i = 0; out->n && i < n; i++)
            TRY(buf_putc(out, '\n'));
        TRY(put_prefix(w));
    } else if (w->space && w->out->n && w->out->p[w->out->n - 1] != ' ') {
        TRY(buf_putc(w->out, ' '));
    }
    w->breaks = 0;
    w->space = w->line_start = false;
    w->row_text = true;
    if (w->n_marks)
        TRY(buf_put(w->out, w->marks, (size_t)w->n_marks));
    w->n_marks = 0;
    return 0;
}

static int put_words(struct writer *w, struct span s)
{
    const char *p = s.p, *end = s.p + s.n;
    int n;

    while (p < end) {
        while (p < end && (n = space_at(p, end))) {
            p += n;
            w->space = true;
        }
        const char *from = p;
        while (p < end && !space_at(p, end))
            p++;
        if (p == from)
            break;
        if (w->line_start || w->breaks || w->space || w->n_marks)
            TRY(before_word(w));
        TRY(buf_put(w->out, from, (size_t)(p - from)));
        w->row_text = true;
    }
    return 0;
}

/* Text of <pre>: as it stands but for empty lines at its ends. */
static int put_verbatim(struct writer *w, struct span s)
{
    const char *p = s.p, *end = s.p + s.n;

    for (; p < end; p++) {
        bool newline = *p == '\n' || (*p == '\r' && (p + 1 == end || p[1] != '\n'));
        if (newline)
            w->breaks += !w->pre_start;
        if (newline || *p == '\r')
            continue;
        if (w->line_start || w->breaks || w->n_marks) {
            w->space = false;
            TRY(before_word(w));
        }
        TRY(buf_putc(w->out, *p));
        w->pre_start = false;
    }
    return 0;
}

static int put_text(struct writer *w, struct span s, bool escaped)
{
    if (escaped) {
        buf_clear(&w->tmp);
        TRY(html_decode(s, false, &w->tmp));
        s = buf_span(&w->tmp);
    }
    if (!s.n)
        return 0;
    return w->pre ? put_verbatim(w, s) : put_words(w, s);
}

/* TeX between dollars, without MediaWiki's {\displaystyle ...} around it. */
static int put_tex(struct writer *w, struct span s)
{
    static const char wrap[] = "{\\displaystyle ";

    while (s.n && is_space(s.p[0]))
        s.p++, s.n--;
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    if (s.n > sizeof wrap && memcmp(s.p, wrap, sizeof wrap - 1) == 0 && s.p[s.n - 1] == '}') {
        s.p += sizeof wrap - 1;
        s.n -= sizeof wrap;
    }
    if (!s.n)
        return 0;
    if (s.p[0] == '$' || s.p[0] == '\\')
        if (s.p[0] == '$' || (s.n > 1 && (s.p[1] == '(' || s.p[1] == '[')))
            return put_words(w, s);
    TRY(before_word(w));
    TRY(buf_putc(w->out, '$'));
    TRY(html_fold(s, w->out));
    return buf_putc(w->out, '$');
}

/* ---- mathematics ---- */

/* The TeX of a formula, or p == NULL: an annotation, alttext, an image's alt. */
static struct span find_tex(struct writer *w, uint32_t i, bool *escaped)
{
    const struct html_tree *t = w->t;
    const struct html_node *n = &t->node[i];
    struct span v = {NULL, 0};

    if (n->tag == HTML_math) {
        for (uint32_t k = i + 1; k < n->end && k - i < FORMULA_MAX; k++) {
            if (t->node[k].tag != HTML_annotation || k + 1 >= t->node[k].end)
                continue;
            v = html_attr_raw(t, k, ATTR_encoding, NULL);
            if (v.n >= 3 && memmem(v.p, v.n, "tex", 3) && t->node[k + 1].tag == HTML_text) {
                *escaped = t->node[k + 1].flags & HTML_ESCAPED;
                return html_text(t, k + 1);
            }
        }
        return html_attr_raw(t, i, ATTR_alttext, escaped);
    }
    struct span class = html_attr_raw(t, i, ATTR_class, NULL);
    if (class.n && (memmem(class.p, class.n, "tex", 3) || memmem(class.p, class.n, "math", 4)))
        v = html_attr_raw(t, i, ATTR_alt, escaped);
    return v;
}

static int put_formula(struct writer *w, uint32_t i, bool *done)
{
    bool escaped = false;
    struct span v = find_tex(w, i, &escaped);

    *done = v.n > 0;
    if (!v.n)
        return 0;
    if (escaped) {
        buf_clear(&w->tmp);
        TRY(html_decode(v, w->t->node[i].tag != HTML_math, &w->tmp));
        v = buf_span(&w->tmp);
    }
    return put_tex(w, v);
}

/* ---- elements ---- */

static const char *mark_of(unsigned tag)
{
    switch (tag) {
    case HTML_b: case HTML_strong: return "**";
    case HTML_i: case HTML_em: return "*";
    case HTML_code: case HTML_kbd: case HTML_samp: case HTML_tt: return "`";
    default: return NULL;
    }
}

static void open_mark(struct writer *w, struct open_element *o, const char *mark)
{
    size_t n = strlen(mark);

    if (w->n_marks + n > MARKS_MAX)
        return;
    memcpy(w->marks + w->n_marks, mark, n);
    w->n_marks += (int)n;
    o->marked = true;
}

/* The end of emphasis: behind the last word, or forgotten when there was none. */
static int close_mark(struct writer *w, const char *mark)
{
    int n = (int)strlen(mark);

    if (w->n_marks >= n) {
        w->n_marks -= n;
        return 0;
    }
    w->n_marks = 0;
    return buf_puts(w->out, mark);
}

static int open_cell(struct writer *w)
{
    w->space = false;
    w->n_marks = 0;
    if (w->cells++ || w->markdown) {
        if (w->line_start || w->breaks) {
            bool text = w->row_text;
            TRY(before_word(w));
            w->row_text = text;
        }
        TRY(buf_puts(w->out, w->cells > 1 ? " | " : "| "));
    }
    return 0;
}

/* Plain text: no separators behind the last cell with text, and of two cells none
 * before the second when the first is empty. */
static void trim_row(struct writer *w)
{
    struct buf *out = w->out;
    size_t from = w->row_start, to;

    while (out->n && (out->p[out->n - 1] == ' ' || out->p[out->n - 1] == '|'))
        out->n--;
    while (from < out->n && out->p[from] == '\n')
        from++;
    for (to = from; to < out->n && out->p[to] == ' '; to++)
        ;
    if (w->cells <= 2 && out->n - to > 2 && memcmp(out->p + to, "| ", 2) == 0)
        to += 2;
    memmove(out->p + from, out->p + to, out->n - to);
    out->n -= to - from;
}

static int close_row(struct writer *w)
{
    w->row--;
    if (!w->row_text) {
        w->out->n = w->row_start;
        w->breaks = 1;
        return 0;
    }
    if (w->markdown) {
        TRY(buf_puts(w->out, " |"));
        if (w->columns++ == 0) {
            TRY(buf_puts(w->out, "\n"));
            for (int i = 0; i < w->cells; i++)
                TRY(buf_puts(w->out, i ? " --- |" : "| --- |"));
        }
    } else {
        trim_row(w);
    }
    need_break(w, 1);
    return 0;
}

static void open_item(struct writer *w)
{
    need_break(w, 1);
    w->item = true;
    w->item_number = -1;
    for (int d = w->depth - 2; d >= 0; d--) {
        unsigned tag = w->open[d].tag;
        if (tag == HTML_ol && w->open[d].number >= 0)
            w->item_number = w->open[d].number++;
        if (tag == HTML_ol || tag == HTML_ul || tag == HTML_li)
            break;
    }
}

static int open_pre(struct writer *w, struct open_element *o)
{
    need_break(w, 2);
    o->pre = w->pre_start = true;
    if (w->markdown && !w->pre) {
        TRY(before_word(w));
        TRY(buf_puts(w->out, "```"));
        w->breaks = 1;
    }
    w->pre++;
    return 0;
}

static int open_element(struct writer *w, uint32_t i)
{
    const struct html_node *n = &w->t->node[i];
    struct open_element *o = &w->open[w->depth++];
    const char *mark = w->markdown && !w->pre ? mark_of(n->tag) : NULL;

    *o = (struct open_element){.end = n->end, .tag = n->tag, .number = -1};
    switch (n->tag) {
    case HTML_br: need_break(w, 1); break;
    case HTML_p: case HTML_blockquote: case HTML_table: case HTML_figure: case HTML_dl: case HTML_hr:
        need_break(w, 2);
        w->quotes += n->tag == HTML_blockquote;
        if (n->tag == HTML_table)
            w->columns = 0;
        break;
    case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_h5: case HTML_h6:
        need_break(w, 2);
        w->heading = w->markdown ? n->tag - HTML_h1 + 1 : 0;
        break;
    case HTML_ul: case HTML_ol: case HTML_menu: case HTML_dir:
        need_break(w, 2);
        w->lists++;
        o->number = n->tag == HTML_ol ? 1 : -1;
        break;
    case HTML_li: open_item(w); break;
    case HTML_tr:
        need_break(w, 1);
        o->row = !w->layout[i] && !w->row;
        if (o->row) {
            w->row++;
            w->cells = 0;
            w->row_start = w->out->n;
            w->row_text = false;
        }
        break;
    case HTML_td: case HTML_th:
        if (w->row)
            TRY(open_cell(w));
        else
            need_break(w, 1);
        break;
    case HTML_pre: case HTML_listing: case HTML_xmp: case HTML_plaintext:
        TRY(open_pre(w, o));
        break;
    case HTML_rt: TRY(buf_puts(w->out, "(")); break;
    case HTML_q: TRY(put_words(w, span_of("\""))); break;
    default:
        if (html_tag_flags[n->tag] & TAG_BLOCK)
            need_break(w, 1);
        else if (mark)
            open_mark(w, o, mark);
    }
    return 0;
}

static int close_element(struct writer *w)
{
    struct open_element *o = &w->open[--w->depth];

    switch (o->tag) {
    case HTML_p: case HTML_table: case HTML_figure: case HTML_dl:
    case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_h5: case HTML_h6:
        need_break(w, 2);
        w->heading = 0;
        break;
    case HTML_blockquote:
        need_break(w, 2);
        w->quotes--;
        break;
    case HTML_ul: case HTML_ol: case HTML_menu: case HTML_dir:
        w->lists--;
        need_break(w, 2);
        break;
    case HTML_li:
        need_break(w, 1);
        w->item = false;
        break;
    case HTML_tr:
        if (o->row)
            TRY(close_row(w));
        else
            need_break(w, 1);
        break;
    case HTML_rt: TRY(buf_puts(w->out, ")")); break;
    case HTML_q: TRY(buf_puts(w->out, "\"")); break;
    default:
        if (o->pre) {
            w->pre--;
            w->pre_start = false;
            if (w->markdown && !w->pre)
                TRY(buf_puts(w->out, "\n```"));
            w->breaks = 0;
            need_break(w, 2);
        } else if (html_tag_flags[o->tag] & TAG_BLOCK) {
            need_break(w, 1);
        } else if (o->marked) {
            TRY(close_mark(w, mark_of(o->tag)));
        }
    }
    return 0;
}

/* ---- rows that are no rows ---- */

/* Marks each tr that arranges the page instead of holding data.  One pass backwards:
 * what a node holds is added to its parent. */
static uint8_t *find_layout(const struct html_tree *t)
{
    enum { STRUCTURE = 1, CELL = 2, CELLS = 4, PARAGRAPH = 8, BLOCKS = 16 };
    uint8_t *has = calloc(t->n_nodes, 1);

    for (uint32_t i = t->n_nodes; has && i-- > 1;) {
        const struct html_node *n = &t->node[i];
        uint8_t up = has[i] & (STRUCTURE | PARAGRAPH | BLOCKS), *parent = &has[n->parent];
        switch (n->tag) {
        case HTML_table: case HTML_ul: case HTML_ol: case HTML_dl: case HTML_pre:
        case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_blockquote:
            up = STRUCTURE;
            break;
        case HTML_p:
            up |= PARAGRAPH;
            break;
        case HTML_td: case HTML_th:
            up = (has[i] & STRUCTURE) | CELL | (has[i] & BLOCKS ? STRUCTURE : 0);
            break;
        case HTML_tr:
            has[i] = has[i] & STRUCTURE || !(has[i] & CELLS);
            up = 0;
            break;
        default:
            break;
        }
        if (up & CELL && *parent & CELL)
            up |= CELLS;
        if (up & PARAGRAPH && *parent & PARAGRAPH)
            up |= BLOCKS;
        *parent |= up;
    }
    return has;
}

static int write_nodes(struct writer *w, const uint8_t *skip)
{
    const struct html_tree *t = w->t;

    for (uint32_t i = 0; i < t->n_nodes;) {
        const struct html_node *n = &t->node[i];
        bool done = false;

        while (w->depth && w->open[w->depth - 1].end <= i)
            TRY(close_element(w));
        if (skip[i]) {
            if (html_tag_flags[n->tag] & TAG_BLOCK)
                need_break(w, 1);
            i = n->end;
            continue;
        }
        if (n->tag == HTML_text) {
            TRY(put_text(w, html_text(t, i), n->flags & HTML_ESCAPED));
            i++;
            continue;
        }
        if (n->tag == HTML_math || n->tag == HTML_img)
            TRY(put_formula(w, i, &done));
        if (!done && n->tag == HTML_script && i + 1 < n->end) {
            TRY(put_tex(w, html_text(t, i + 1)));
            done = true;
        }
        if (!done)
            TRY(open_element(w, i));
        i = done ? n->end : i + 1;
    }
    while (w->depth)
        TRY(close_element(w));
    return 0;
}

int html_text_write(const struct html_tree *t, const uint8_t *skip, bool markdown,
                    struct buf *out)
{
    struct buf text = {0};
    struct writer w = {.t = t, .markdown = markdown, .out = &text, .line_start = true};
    int rc = ERR_NOMEM;
    uint8_t *layout = find_layout(t);

    w.layout = layout;
    if (layout)
        rc = write_nodes(&w, skip);
    if (rc == 0 && text.n)
        rc = buf_put_span(out, buf_span(&text));
    if (rc == 0 && text.n)
        rc = buf_putc(out, '\n');
    buf_free(&text);
    buf_free(&w.tmp);
    free(layout);
    return rc;
}
