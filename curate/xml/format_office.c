/* What lies in the zip archives of word processors and of books: Word's (DOCX), OpenDocument's (ODT), and what all say of
 * themselves in Dublin Core (also EPUB's package).
 *
 * Source: ECMA-376, OASIS OpenDocument 1.3, EPUB 3.3 of the W3C, dublincore.org. */
#include "base/ascii.h"
#include "curate/xml/word_styles.h"
#include "curate/xml/xml_text.h"

enum { WORD_PARAGRAPH, ODT_HEADING, NOTE_MARK, NOTE_BODY, NEAR = 2048 };

/* The value that an attribute val has in an element called name before the paragraph's text; p NULL: none. */
static struct span property(const struct xml_reader *r, const char *name)
{
    struct span near = {r->p, (size_t)(r->end - r->p) < NEAR ? (size_t)(r->end - r->p) : NEAR};
    const char *end = span_starts(near, "<w:pPr") ? memmem(near.p, near.n, "</w:pPr>", 8) : NULL, *p, *quote;

    if (!end)
        return (struct span){NULL, 0};
    p = memmem(r->p, (size_t)(end - r->p), name, strlen(name));
    p = p ? memmem(p, (size_t)(end - p), "val=\"", 5) : NULL;
    quote = p ? memchr(p + 5, '"', (size_t)(end - p - 5)) : NULL;
    return quote ? (struct span){p + 5, (size_t)(quote - p - 5)} : (struct span){NULL, 0};
}

static const char *const headings[] = {"h1", "h2", "h3", "h4", "h5", "h6"};

static const char *heading_of(int level)
{
    return headings[level < 5 ? level : 5];
}

/* A number that property gives; none if it gives none. */
static int number(const struct xml_reader *r, const char *name, int none)
{
    struct span s = property(r, name);
    int n = 0;

    for (size_t i = 0; i < s.n && i < 6; i++) {
        if (!ascii_is_digit((unsigned char)s.p[i]))
            return none;
        n = n * 10 + (s.p[i] - '0');
    }
    return s.n ? n : none;
}

/* A heading of a document whose styles are not known: what English has them called. */
static const char *heading_by_name(struct span style)
{
    if (span_is(style, "Title"))
        return "h1";
    if (!span_starts(style, "Heading") || style.n != 8 || style.p[7] < '1' || style.p[7] > '9')
        return NULL;
    return heading_of(style.p[7] - '1');
}

/* A paragraph is a heading, an item or itself, as it or its style says; a numbered item begins with its number. */
static int word_paragraph(struct xml_text *x, struct xml_rule *rule)
{
    const struct xml_reader *r = xml_text_reader(x);
    struct word_styles *styles = xml_text_styles(x);
    struct span id = property(r, "<w:pStyle ");
    const struct word_style *s = styles ? word_style(styles, id) : NULL;
    int outline = number(r, "<w:outlineLvl ", s ? s->outline : WORD_NO_LEVEL), list, level;
    struct buf label = {0};
    int rc = 0;

    rule->tag = s && s->title ? "h1" : outline >= 0 && outline < WORD_LEVELS ? heading_of(outline) : NULL;
    if (!rule->tag && !s)
        rule->tag = heading_by_name(id);
    if (rule->tag)
        return 0;
    rule->tag = "p";
    list = number(r, "<w:numId ", s ? s->list : WORD_NO_LEVEL);
    if (list <= 0)
        return 0;
    rule->tag = "li";
    level = number(r, "<w:ilvl ", s && s->level >= 0 ? s->level : 0);
    if (styles && !xml_text_hidden(x))
        rc = word_list_item(styles, list, level, &label);
    if (rc == 0 && label.n) {
        rule->tag = "div";
        rc = buf_putc(&label, ' ') < 0 ? ERR_NOMEM : xml_text_label(x, buf_span(&label));
    }
    buf_free(&label);
    return rc;
}

static int hook(struct xml_text *x, struct xml_rule *rule)
{
    const struct xml_reader *r = xml_text_reader(x);
    struct span level = xml_attr(r, "outline-level");

    if (rule->arg == WORD_PARAGRAPH)
        return word_paragraph(x, rule);
    if (rule->arg == NOTE_MARK || rule->arg == NOTE_BODY) /* "[1]" there and at the note itself */
        return xml_text_hidden(x) ? 0 : buf_printf(xml_text_out(x), "[%d] ", xml_text_count(x, rule->arg == NOTE_BODY));
    rule->tag = level.n == 1 && *level.p >= '1' && *level.p <= '9' ? heading_of(*level.p - '1') : "h1";
    return 0;
}

static const struct xml_rule word[] = {
    {.name = "p", .role = XML_HOOK, .arg = WORD_PARAGRAPH},
    {.name = "pPr", .role = XML_SKIP}, {.name = "rPr", .role = XML_SKIP}, {.name = "sectPr", .role = XML_SKIP},
    {.name = "tblPr", .role = XML_SKIP}, {.name = "sdtPr", .role = XML_SKIP}, {.name = "instrText", .role = XML_SKIP},
    {.name = "delInstrText", .role = XML_SKIP}, {.name = "del", .role = XML_SKIP}, {.name = "moveFrom", .role = XML_SKIP},
    {.name = "delText", .role = XML_SKIP},
    {.name = "Fallback", .in = "AlternateContent", .role = XML_SKIP, .unless = "Choice"},
    {.name = "drawing", .role = XML_HIDE}, {.name = "pict", .role = XML_HIDE}, {.name = "object", .role = XML_HIDE},
    {.name = "txbxContent", .role = XML_SHOW, .tag = "div"}, {.name = "binData", .role = XML_SKIP},
    {.name = "tab", .in = "r", .role = XML_SPACE}, {.name = "br", .role = XML_VOID, .tag = "br"},
    {.name = "cr", .role = XML_VOID, .tag = "br"}, {.name = "ptab", .role = XML_SPACE},
    {.name = "noBreakHyphen", .role = XML_SPACE},
    {.name = "tbl", .tag = "table"}, {.name = "tr", .tag = "tr"}, {.name = "tc", .tag = "td"},
    {.name = "footnoteReference", .role = XML_HOOK, .arg = NOTE_MARK},
    {.name = "endnoteReference", .role = XML_HOOK, .arg = NOTE_MARK},
    {.name = "footnoteRef", .role = XML_HOOK, .arg = NOTE_BODY}, {.name = "endnoteRef", .role = XML_HOOK, .arg = NOTE_BODY},
    {.name = "footnote", .tag = "div"}, {.name = "endnote", .tag = "div"},
    {.name = "oMath", .role = XML_MATH},
    {0},
};

static const struct xml_rule odt[] = {
    {.name = "scripts", .role = XML_SKIP}, {.name = "font-face-decls", .role = XML_SKIP},
    {.name = "automatic-styles", .role = XML_SKIP},
    {.name = "styles", .role = XML_SKIP}, {.name = "master-styles", .role = XML_SKIP}, {.name = "forms", .role = XML_SKIP},
    {.name = "sequence-decls", .role = XML_SKIP}, {.name = "tracked-changes", .role = XML_SKIP},
    {.name = "annotation", .role = XML_SKIP}, {.name = "note-citation", .role = XML_SPACE},
    {.name = "title", .in = "frame", .role = XML_SKIP},
    {.name = "title", .in = "custom-shape", .role = XML_SKIP}, {.name = "title", .in = "rect", .role = XML_SKIP},
    {.name = "desc", .role = XML_SKIP}, {.name = "table-of-content", .role = XML_SKIP},
    {.name = "bibliography", .role = XML_SKIP},
    {.name = "alphabetical-index", .role = XML_SKIP}, {.name = "illustration-index", .role = XML_SKIP},
    {.name = "table-index", .role = XML_SKIP}, {.name = "object-index", .role = XML_SKIP},
    {.name = "user-index", .role = XML_SKIP},
    {.name = "p", .in = "note-body", .role = XML_SPACE}, {.name = "note", .role = XML_NOTE},
    {.name = "h", .role = XML_HOOK, .arg = ODT_HEADING}, {.name = "p", .tag = "p"},
    {.name = "list", .tag = "ul"}, {.name = "list-item", .tag = "li"}, {.name = "list-header", .tag = "li"},
    {.name = "table", .tag = "table"}, {.name = "table-header-rows", .tag = NULL}, {.name = "table-row", .tag = "tr"},
    {.name = "table-cell", .tag = "td"}, {.name = "s", .role = XML_SPACE}, {.name = "tab", .role = XML_SPACE},
    {.name = "line-break", .role = XML_VOID, .tag = "br"}, {.name = "text-box", .tag = "div"},
    {.name = "math", .role = XML_MATH},
    {0},
};

static const struct xml_rule core[] = {
    {.name = "package", .role = XML_HIDE}, {.name = "coreProperties", .role = XML_HIDE},
    {.name = "document-meta", .role = XML_HIDE},
    {.name = "title", .role = XML_META, .arg = XML_TITLE},
    {.name = "creator", .role = XML_META, .arg = XML_AUTHOR | XML_MORE},
    {.name = "language", .role = XML_META, .arg = XML_LANG}, {.name = "publisher", .role = XML_META, .arg = XML_PUBLISHER},
    {.name = "rights", .role = XML_META, .arg = XML_LICENSE},
    {.name = "subject", .role = XML_META, .arg = XML_KEYWORDS | XML_MORE},
    {.name = "date", .role = XML_META, .arg = XML_DATE}, {.name = "created", .role = XML_META, .arg = XML_DATE},
    {.name = "creation-date", .role = XML_META, .arg = XML_DATE, .unless = "date"}, {.name = "manifest", .role = XML_SKIP},
    {0},
};

const struct xml_format xml_word = {.name = "DOCX", .rules = word, .hook = hook};
const struct xml_format xml_odt = {.name = "ODT", .rules = odt, .hook = hook};
const struct xml_format xml_core = {.name = "Dublin Core", .rules = core};
