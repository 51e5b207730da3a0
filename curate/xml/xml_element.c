/* What elements do, by their roles: what they write, hide, and take as fields. */
#include "curate/xml/xml_date.h"
#include "curate/xml/xml_text_parts.h"

enum { DATE_MAX = 40 };

/* Puts TeX as a formula. */
static int put_tex(struct xml_text *x, struct span tex)
{
    static const char begin[] = "\\begin{document}", end[] = "\\end{document}";
    const char *from = tex.n ? memmem(tex.p, tex.n, begin, sizeof begin - 1) : NULL, *to;

    if (from) { /* a whole LaTeX document, as publishers have it */
        from += sizeof begin - 1;
        tex.n -= (size_t)(from - tex.p);
        tex.p = from;
        to = memmem(tex.p, tex.n, end, sizeof end - 1);
        if (to)
            tex.n = (size_t)(to - tex.p);
    }
    TRY(buf_puts(&x->out, "<math alttext=\""));
    for (size_t i = 0; i < tex.n; i++) {
        char c = tex.p[i];
        TRY(c == '"' ? buf_puts(&x->out, "&quot;") : c == '&' ? buf_puts(&x->out, "&amp;") : buf_putc(&x->out, c));
    }
    return buf_puts(&x->out, "\"></math>");
}

static int put_tag(struct xml_text *x, const char *before, const char *tag)
{
    TRY(buf_puts(&x->out, before));
    TRY(buf_puts(&x->out, tag));
    return buf_putc(&x->out, '>');
}

/* HTML's elements without content. */
static bool is_void(struct span name)
{
    static const char *const names[] = {"br", "hr", "img", "input", "col", "link", "meta", "area", "base", "embed", "param",
                                        "source", "track", "wbr"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (span_is(name, names[i]))
            return true;
    return false;
}

/* An element of XHTML as it stands, but for its prefix. */
int xml_element_copy(struct xml_text *x)
{
    struct xml_reader *r = &x->reader;
    size_t n = r->attrs.n - (r->empty && r->attrs.n);

    if (x->hidden)
        return 0;
    TRY(buf_putc(&x->out, '<'));
    TRY(buf_put_span(&x->out, r->name));
    TRY(buf_put(&x->out, r->attrs.p, n));
    return buf_putc(&x->out, '>');
}

static bool is_ordered(const struct xml_reader *r)
{
    static const char *const attrs[] = {"list-type", "numeration", "type", "style", "rend"};
    static const char *const values[] = {"order", "arabic", "roman", "alpha", "lower", "upper", "number", "ol", "decimal"};

    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        struct span v = xml_attr(r, attrs[i]);
        for (size_t k = 0; v.n && k < sizeof values / sizeof *values; k++)
            if (span_starts(v, values[k]))
                return true;
    }
    return false;
}

/* The date that an attribute says, into XML_DATE. */
static int date_of_attr(struct xml_text *x)
{
    static const char *const attrs[] = {"iso-8601-date", "when", "when-iso", "date"};

    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        struct span v = xml_attr(&x->reader, attrs[i]);
        if (v.n >= 4 && v.n < DATE_MAX)
            return xml_text_field(x, XML_DATE, v, false);
    }
    return 0;
}

int xml_element_begin(struct xml_text *x, struct xml_frame *f, const struct xml_rule *rule)
{
    static const char *const headings[] = {"h1", "h2", "h3", "h4", "h5", "h6"};
    int level;

    f->tag = rule->tag;
    f->arg = rule->arg;
    switch (rule->role) {
    case XML_SECTION:
        x->sections++;
        f->tag = rule->tag ? rule->tag : "div";
        break;
    case XML_HEADING:
        level = x->sections + rule->arg;
        f->tag = headings[level < 0 ? 0 : level > 5 ? 5 : level];
        break;
    case XML_LIST:
        f->tag = is_ordered(&x->reader) ? "ol" : "ul";
        break;
    case XML_SKIP:
        x->hidden = true;
        x->take = XML_NOT_TAKEN;
        x->parts++; /* nothing in it is a field, */
        x->skips++; /* or shown again */
        break;
    case XML_HIDE:
        x->hidden = true;
        break;
    case XML_SHOW:
        x->hidden = x->skips > 0;
        break;
    case XML_META:
        x->take = rule->arg & ~XML_MORE;
        buf_clear(&x->value);
        x->hidden = !rule->tag || x->skips;
        break;
    case XML_META_ATTR:
        buf_clear(&x->value);
        TRY(xml_attr_text(&x->reader, rule->unless, &x->value));
        TRY(xml_text_field(x, rule->arg & ~XML_MORE, buf_span(&x->value), rule->arg & XML_MORE));
        break;
    case XML_PERSON:
        buf_clear(&x->field[XML_GIVEN]);
        buf_clear(&x->field[XML_FAMILY]);
        break;
    case XML_WHEN:
        for (int i = XML_YEAR; i <= XML_DAY; i++)
            buf_clear(&x->field[i]);
        TRY(date_of_attr(x));
        break;
    case XML_PART:
        x->parts++;
        x->sections++;
        break;
    case XML_VOID:
        TRY(x->hidden ? 0 : put_tag(x, "<", rule->tag));
        f->tag = NULL;
        break;
    case XML_SPACE:
        TRY(x->hidden ? 0 : buf_putc(&x->out, ' '));
        break;
    case XML_NOTE:
        TRY(x->hidden ? 0 : buf_puts(&x->out, " ["));
        break;
    case XML_TEX: case XML_HTML:
        x->take = rule->role == XML_TEX ? XML_TAKE_TEX : XML_TAKE_HTML;
        if (rule->role == XML_HTML)
            x->hidden = x->skips > 0;
        buf_clear(&x->value);
        break;
    case XML_XHTML:
        x->copy = true;
        x->hidden = x->skips > 0;
        break;
    default:
        break;
    }
    if (x->hidden || (f->tag && !*f->tag))
        f->tag = NULL;
    if (f->tag)
        TRY(put_tag(x, "<", f->tag));
    if (!x->hidden)
        TRY(buf_put_span(&x->out, buf_span(&x->label)));
    buf_clear(&x->label);
    return 0;
}

static int put_person(struct xml_text *x)
{
    struct buf *given = &x->field[XML_GIVEN], *family = &x->field[XML_FAMILY];

    if (given->n && family->n)
        TRY(buf_putc(given, ' '));
    TRY(buf_put_span(given, buf_span(family)));
    TRY(xml_text_field(x, XML_AUTHOR, buf_span(given), true));
    buf_clear(given);
    buf_clear(family);
    return 0;
}

static int put_when(struct xml_text *x)
{
    buf_clear(&x->line);
    TRY(xml_date_of_parts(buf_span(&x->field[XML_YEAR]), buf_span(&x->field[XML_MONTH]), buf_span(&x->field[XML_DAY]),
                          &x->line));
    if (!x->parts && x->line.n > x->field[XML_DATE].n && x->field[XML_DATE].n < 10)
        buf_clear(&x->field[XML_DATE]);
    return xml_text_field(x, XML_DATE, buf_span(&x->line), false);
}

int xml_element_end(struct xml_text *x)
{
    struct xml_frame f = x->frame[--x->depth];
    int take = x->take;

    if (f.copy && x->copy && !x->hidden && f.tag == NULL && f.role == XML_XHTML && !is_void(f.name)) {
        TRY(buf_puts(&x->out, "</"));
        TRY(buf_put_span(&x->out, f.name));
        TRY(buf_putc(&x->out, '>'));
    }
    if (f.tag)
        TRY(put_tag(x, "</", f.tag));
    x->take = f.take;
    switch (f.role) {
    case XML_SECTION:
        x->sections--;
        break;
    case XML_SKIP:
        x->parts--;
        x->skips--;
        break;
    case XML_PART:
        x->parts--;
        x->sections--;
        break;
    case XML_META:
        if (take >= 0) {
            TRY(xml_text_field(x, take, buf_span(&x->value), f.arg & XML_MORE));
            x->take = XML_NOT_TAKEN;
        }
        break;
    case XML_PERSON:
        TRY(put_person(x));
        break;
    case XML_WHEN:
        TRY(put_when(x));
        break;
    case XML_SPACE:
        TRY(x->hidden ? 0 : buf_putc(&x->out, ' '));
        break;
    case XML_NOTE:
        TRY(x->hidden ? 0 : buf_puts(&x->out, "] "));
        break;
    case XML_TEX:
        if (take == XML_TAKE_TEX && !x->hidden)
            TRY(put_tex(x, buf_span(&x->value)));
        break;
    default:
        break;
    }
    x->hidden = f.hidden;
    x->copy = f.copy;
    return 0;
}

int xml_element_math(struct xml_text *x)
{
    struct xml_reader *r = &x->reader;

    buf_clear(&x->line);
    TRY(xml_math(r, &x->line));
    return x->hidden || x->take != XML_NOT_TAKEN ? buf_put_span(&x->value, buf_span(&x->line))
                                             : put_tex(x, buf_span(&x->line));
}
