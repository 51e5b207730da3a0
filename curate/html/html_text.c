#include "curate/html/html_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "curate/html/html_markdown.h"
#include "curate/html/html_text_parts.h"
#include "curate/html/html_url.h"
#include "curate/text/html_entity.h"

/* What Markdown puts around text. */
enum mark { NO_MARK, BOLD, ITALIC, CODE, LINK, N_MARKS };
static const char *const mark_text[N_MARKS] = {"", "**", "*", "`", "["};
#define NOT_YET SIZE_MAX
enum { URLS_MIN = 1 << 20, URLS_TIMES = 2 }; /* as many bytes and times the page are URLs at most */

/* What an open element needs when it ends. */
struct open_element {
    uint32_t end;
    uint32_t node;
    uint8_t tag, mark;
    bool row, pre;
    int32_t number; /* ol: of the next item; else -1 */
    int outer, width; /* list: the list around it, -1 for none; of its item's mark */
    size_t at;      /* of its mark or fence in the output; NOT_YET before its first text */
    uint32_t blocks; /* how many were begun before it */
};

struct writer {
    const struct html_tree *t;
    const uint8_t *layout; /* tr: not a row of cells */
    const struct html_text_conf *conf;
    bool markdown;
    struct buf *out;
    struct buf tmp, url;
    size_t urls;           /* bytes of URLs that may still be written: relative ones grow */
    int breaks;            /* newlines due before the next text */
    bool space;            /* a space is due */
    bool line_start;
    bool item;             /* "- " is due, with */
    int32_t item_number;   /*   this number if positive */
    int heading;           /* '#'s due */
    bool pre_start;        /* in <pre>, nothing written of it yet */
    int pending;           /* the outermost open element whose mark waits for text, -1: none */
    bool in[N_MARKS];
    uint32_t blocks;       /* begun so far: a mark does not go from one to the next */
    int list, indent;      /* innermost list, -1: none; columns of all lists */
    int pre, lists, quotes, row, cells, columns;
    size_t row_start;
    bool row_text;
    struct open_element open[HTML_MAX_DEPTH + 1];
    int depth;
};

/* Bytes of white space at p: 0, 1, or 2 for a no-break space. */
static int space_at(const char *p, const char *end)
{
    if (ascii_is_html_space(*p))
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
    int indent = w->indent - (w->item && w->list >= 0 ? w->open[w->list].width : 0);
    while (indent-- > 0)
        TRY(buf_putc(w->out, ' '));
    if (w->item && w->markdown && w->item_number >= 0)
        TRY(buf_printf(w->out, "%d. ", (int)w->item_number));
    else if (w->item)
        TRY(buf_puts(w->out, "- "));
    for (; w->heading > 0; w->heading--)
        TRY(buf_puts(w->out, w->heading > 1 ? "#" : "# "));
    w->item = false;
    w->heading = 0;
    return 0;
}

/* The marks of elements whose text begins. */
static int put_marks(struct writer *w)
{
    for (int d = w->pending; d < w->depth; d++) {
        struct open_element *o = &w->open[d];
        if (!o->mark || o->at != NOT_YET)
            continue;
        o->at = w->out->n;
        o->blocks = w->blocks;
        TRY(buf_puts(w->out, mark_text[o->mark]));
    }
    w->pending = -1;
    return 0;
}

/* Takes off the blanks that a line ends in. */
static void trim_line(struct buf *out)
{
    while (out->n && (out->p[out->n - 1] == ' ' || out->p[out->n - 1] == '\t'))
        out->n--;
}

/* What is due before a word: line breaks, the line's prefix, a space, marks. */
static int before_word(struct writer *w)
{
    if (w->line_start || w->breaks) {
        struct buf *out = w->out;
        int n = w->breaks < 1 ? 1 : w->breaks > 2 && !w->pre ? 2 : w->breaks;
        trim_line(out);
        for (int i = 0; out->n && i < n; i++)
            TRY(buf_putc(out, '\n'));
        w->blocks += n > 1 || w->item || w->heading;
        TRY(put_prefix(w));
    } else if (w->space && w->out->n && w->out->p[w->out->n - 1] != ' ') {
        TRY(buf_putc(w->out, ' '));
    }
    w->breaks = 0;
    w->space = w->line_start = false;
    w->row_text = true;
    return w->pending >= 0 ? put_marks(w) : 0;
}

/* Between two words: they can be put as they stand. */
static bool one_space(const char *p, const char *end)
{
    return *p == ' ' && p + 1 < end && !space_at(p + 1, end);
}

static int put_words(struct writer *w, struct span s)
{
    const char *p = s.p, *end = s.p + s.n;
    struct markdown_tex tex = {0};
    struct markdown_place at = {.row = w->row > 0, .link = w->in[LINK], .code = w->in[CODE]};
    int n;

    while (p < end) {
        while (p < end && (n = space_at(p, end))) {
            p += n;
            w->space = true;
        }
        const char *from = p;
        while (p < end && (!space_at(p, end) || (!w->markdown && one_space(p, end))))
            p++;
        if (p == from)
            break;
        at.line_start = (w->line_start || w->breaks) && w->pending < 0 && !w->heading;
        if (w->line_start || w->breaks || w->space || w->pending >= 0)
            TRY(before_word(w));
        struct span word = {from, (size_t)(p - from)};
        TRY(w->markdown ? markdown_put(word, end, &at, &tex, w->out) : buf_put_span(w->out, word));
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
        if (w->line_start || w->breaks || w->pending >= 0) {
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

    while (s.n && ascii_is_html_space(s.p[0]))
        s.p++, s.n--;
    while (s.n && ascii_is_html_space(s.p[s.n - 1]))
        s.n--;
    if (s.n > sizeof wrap && memcmp(s.p, wrap, sizeof wrap - 1) == 0 && s.p[s.n - 1] == '}') {
        s.p += sizeof wrap - 1;
        s.n -= sizeof wrap;
    }
    if (!s.n)
        return 0;
    if (s.p[0] == '$' || s.p[0] == '\\')
        if (s.p[0] == '$' || (s.n > 1 && (s.p[1] == '(' || s.p[1] == '['))) {
            TRY(before_word(w));
            return html_fold(s, w->out);
        }
    TRY(before_word(w));
    TRY(buf_putc(w->out, '$'));
    TRY(html_fold(s, w->out));
    return buf_putc(w->out, '$');
}

/* ---- mathematics ---- */

static int put_formula(struct writer *w, uint32_t i, bool *done)
{
    bool escaped = false;
    struct span v = html_text_tex(w->t, i, &escaped);

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

static enum mark mark_of(unsigned tag)
{
    switch (tag) {
    case HTML_b: case HTML_strong: return BOLD;
    case HTML_i: case HTML_em: return ITALIC;
    case HTML_code: case HTML_kbd: case HTML_samp: case HTML_tt: return CODE;
    case HTML_a: return LINK;
    default: return NO_MARK;
    }
}

static void open_mark(struct writer *w, struct open_element *o)
{
    enum mark mark = mark_of(o->tag);

    if (!w->markdown || !mark || w->pre || w->in[CODE] || w->in[mark] ||
        (mark == LINK && !html_attr_raw(w->t, o->node, ATTR_href, NULL).n))
        return;
    w->in[mark] = true;
    o->mark = (uint8_t)mark;
    if (w->pending < 0)
        w->pending = w->depth - 1;
}

/* The target of a link or image, absolute, into w->url. */
static int find_url(struct writer *w, uint32_t node, enum html_attr_name attr)
{
    buf_clear(&w->tmp);
    buf_clear(&w->url);
    if (!w->urls)
        return 0;
    TRY(html_attr_get(w->t, node, attr, &w->tmp));
    TRY(html_url_resolve(w->conf->base, buf_span(&w->tmp), &w->url));
    if (w->url.n >= w->urls) {
        w->urls = 0;
        buf_clear(&w->url);
    }
    w->urls -= w->url.n;
    return 0;
}

/* The end of a mark: behind the last word, or taken back when there was none or another
 * block began in between. */
static int close_mark(struct writer *w, const struct open_element *o)
{
    struct buf *out = w->out;
    size_t n = strlen(mark_text[o->mark]);

    w->in[o->mark] = false;
    if (o->at == NOT_YET) {
        if (w->pending >= w->depth)
            w->pending = -1;
        return 0;
    }
    if (o->mark == LINK)
        TRY(find_url(w, o->node, ATTR_href));
    if (o->blocks != w->blocks || (o->mark == LINK && !w->url.n)) {
        memmove(out->p + o->at, out->p + o->at + n, out->n - o->at - n);
        out->n -= n;
        return 0;
    }
    if (o->mark == CODE)
        return markdown_close_code(out, o->at, false);
    if (o->mark != LINK)
        return buf_puts(out, mark_text[o->mark]);
    TRY(buf_puts(out, "]("));
    TRY(markdown_put_url(buf_span(&w->url), out));
    return buf_putc(out, ')');
}

static int put_image(struct writer *w, uint32_t i)
{
    TRY(find_url(w, i, ATTR_src));
    if (!w->url.n)
        return 0;
    buf_clear(&w->tmp);
    TRY(html_attr_get(w->t, i, ATTR_alt, &w->tmp));
    TRY(before_word(w));
    TRY(buf_puts(w->out, "!["));
    TRY(markdown_put_alt(buf_span(&w->tmp), w->out));
    TRY(buf_puts(w->out, "]("));
    TRY(markdown_put_url(buf_span(&w->url), w->out));
    return buf_putc(w->out, ')');
}

static int open_cell(struct writer *w)
{
    w->space = false;
    w->pending = -1;
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
 * before the second when the first is empty.  Cells with nothing but bars are no row. */
static void trim_row(struct writer *w)
{
    struct buf *out = w->out;
    size_t from = w->row_start, to;

    while (out->n > from && (out->p[out->n - 1] == ' ' || out->p[out->n - 1] == '|'))
        out->n--;
    while (from < out->n && out->p[from] == '\n')
        from++;
    if (from == out->n) {
        out->n = w->row_start;
        need_break(w, (int)(from - w->row_start));
        return;
    }
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
    struct open_element *list = w->list >= 0 ? &w->open[w->list] : NULL;
    int width = 2;

    need_break(w, 1);
    w->item = true;
    w->item_number = -1;
    if (!list)
        return;
    if (list->tag == HTML_ol) {
        w->item_number = list->number++;
        for (int n = w->item_number; w->markdown && (width == 2 || n); n /= 10)
            width++;
    }
    w->indent += width - list->width;
    list->width = width;
}

static void open_list(struct writer *w, struct open_element *o)
{
    need_break(w, 2);
    w->lists++;
    o->number = o->tag == HTML_ol ? html_text_list_start(w->t, o->node) : -1;
    o->outer = w->list;
    o->width = 2;
    w->list = w->depth - 1;
    w->indent += o->width;
}

static int open_pre(struct writer *w, struct open_element *o)
{
    need_break(w, 2);
    o->pre = w->pre_start = true;
    if (w->markdown && !w->pre) {
        TRY(before_word(w));
        o->at = w->out->n;
        TRY(buf_puts(w->out, "```"));
        TRY(buf_put_span(w->out, markdown_language(w->t, o->node)));
        w->breaks = 1;
    }
    w->pre++;
    return 0;
}

static int open_element(struct writer *w, uint32_t i)
{
    const struct html_node *n = &w->t->node[i];
    struct open_element *o = &w->open[w->depth++];

    *o = (struct open_element){.end = n->end, .node = i, .tag = n->tag, .number = -1, .at = NOT_YET};
    switch (n->tag) {
    case HTML_br: need_break(w, 1); break;
    case HTML_p: case HTML_blockquote: case HTML_table: case HTML_figure: case HTML_dl: case HTML_hr:
        need_break(w, 2);
        w->quotes += n->tag == HTML_blockquote;
        if (n->tag == HTML_table)
            w->columns = 0;
        if (n->tag == HTML_p && w->markdown && w->lists && !w->item && !w->row)
            w->breaks = 2; /* an item's second paragraph */
        break;
    case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_h5: case HTML_h6:
        need_break(w, 2);
        w->heading = w->markdown ? n->tag - HTML_h1 + 1 : 0;
        break;
    case HTML_ul: case HTML_ol: case HTML_menu: case HTML_dir:
        open_list(w, o);
        break;
    case HTML_li: open_item(w); break;
    case HTML_tr:
        need_break(w, 1);
        o->row = !w->layout[i] && !w->row;
        if (o->row) {
            w->row++;
            w->cells = 0;
            trim_line(w->out); /* as its first word would */
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
        else
            open_mark(w, o);
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
        w->list = o->outer;
        w->indent -= o->width;
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
            if (w->markdown && !w->pre) {
                w->breaks = 1;
                TRY(before_word(w));
                TRY(markdown_close_code(w->out, o->at, true));
            }
            w->breaks = 0;
            need_break(w, 2);
        } else if (html_tag_flags[o->tag] & TAG_BLOCK) {
            need_break(w, 1);
        } else if (o->mark) {
            TRY(close_mark(w, o));
        }
    }
    return 0;
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
        if (!done && n->tag == HTML_img && w->markdown && w->conf->images) {
            TRY(put_image(w, i));
            done = true;
        }
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

int html_text_write(const struct html_tree *t, const uint8_t *skip, const struct html_text_conf *c,
                    struct buf *out)
{
    struct buf text = {0};
    struct writer w = {.t = t, .conf = c, .markdown = c->markdown, .out = &text, .line_start = true,
                       .pending = -1, .list = -1, .urls = URLS_MIN + URLS_TIMES * t->src.n};
    int rc = ERR_NOMEM;
    uint8_t *layout = html_text_layout(t);

    w.layout = layout;
    if (layout)
        rc = write_nodes(&w, skip);
    if (rc == 0 && text.n)
        rc = buf_put_span(out, buf_span(&text));
    if (rc == 0 && text.n)
        rc = buf_putc(out, '\n');
    buf_free(&text);
    buf_free(&w.tmp);
    buf_free(&w.url);
    free(layout);
    return rc;
}
