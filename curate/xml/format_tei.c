/* TEI P5, P4 (TEI.2): novels, plays, editions, inscriptions (EpiDoc), parliaments (ParlaMint).  Text is what stands in <text>:
 * of a choice the corrected, regularised and expanded reading; what is deleted or another reading is left out.
 *
 * Source: tei-c.org/release/doc/tei-p5-doc. */
#include "base/ascii.h"
#include "curate/xml/xml_text.h"

enum { BREAK, WORD };

/* A break of a line or page sets words apart unless it says that it does not; so do words that are marked. */
static int hook(struct xml_text *x, struct xml_rule *rule)
{
    const struct xml_reader *r = xml_text_reader(x);
    struct buf *out = xml_text_out(x);

    if (xml_text_hidden(x))
        return 0;
    if (rule->arg == WORD) {
        struct span join = xml_attr(r, "join");
        if (!span_is(xml_text_around(x, 0), "w") && !xml_text_joined(x))
            TRY(buf_putc(out, ' '));
        xml_text_join(x, span_is(join, "right") || span_is(join, "both"));
        return 0;
    }
    if (!xml_attr_is(r, "break", "no"))
        return buf_putc(out, ' ');
    while (out->n && ascii_is_space(out->p[out->n - 1]))
        out->n--;
    xml_text_trim(x);
    return 0;
}

static const struct xml_rule rules[] = {
    {.name = "TEI", .role = XML_META_ATTR, .unless = "lang", .arg = XML_LANG},
    {.name = "TEI.2", .role = XML_META_ATTR, .unless = "lang", .arg = XML_LANG},
    {.name = "teiHeader", .role = XML_HIDE},
    {.name = "title", .in = "titleStmt", .role = XML_META, .arg = XML_TITLE},
    {.name = "author", .in = "titleStmt", .role = XML_META, .arg = XML_AUTHOR | XML_MORE},
    {.name = "publisher", .in = "publicationStmt", .role = XML_META, .arg = XML_PUBLISHER},
    {.name = "licence", .role = XML_META_ATTR, .unless = "target", .arg = XML_LICENSE},
    {.name = "date", .in = "publicationStmt", .role = XML_WHEN},
    {.name = "date", .in = "bibl", .role = XML_WHEN},
    {.name = "language", .in = "langUsage", .role = XML_META_ATTR, .unless = "ident", .arg = XML_LANG},
    {.name = "fw", .role = XML_SKIP},
    {.name = "facsimile", .role = XML_SKIP},
    {.name = "sourceDoc", .role = XML_SKIP},
    {.name = "standOff", .role = XML_SKIP},
    {.name = "certainty", .role = XML_SKIP},
    {.name = "rdg", .role = XML_SKIP},
    {.name = "del", .role = XML_SKIP},
    {.name = "surplus", .role = XML_SKIP},
    {.name = "sic", .in = "choice", .unless = "corr"},
    {.name = "orig", .in = "choice", .unless = "reg"},
    {.name = "abbr", .in = "choice", .unless = "expan"},
    {.name = "div", .role = XML_SECTION},
    {.name = "div1", .role = XML_SECTION}, {.name = "div2", .role = XML_SECTION}, {.name = "div3", .role = XML_SECTION},
    {.name = "div4", .role = XML_SECTION}, {.name = "div5", .role = XML_SECTION},
    {.name = "front", .tag = "div"}, {.name = "body", .tag = "div"}, {.name = "back", .tag = "div"},
    {.name = "head", .in = "list", .tag = "p"}, {.name = "head", .in = "table", .tag = "caption"},
    {.name = "head", .in = "figure", .tag = "p"},
    {.name = "head", .role = XML_HEADING},
    {.name = "p", .tag = "p"}, {.name = "ab", .tag = "p"}, {.name = "l", .tag = "div"}, {.name = "lg", .tag = "p"},
    {.name = "sp", .tag = "div"}, {.name = "speaker", .tag = "div"}, {.name = "stage", .tag = "div"},
    {.name = "quote", .tag = "blockquote"}, {.name = "q", .tag = "div"}, {.name = "note", .tag = "div"},
    {.name = "item", .tag = "li"}, {.name = "list", .role = XML_LIST}, {.name = "label", .tag = "div"},
    {.name = "castList", .tag = "div"}, {.name = "castItem", .tag = "div"}, {.name = "trailer", .tag = "p"},
    {.name = "opener", .tag = "p"}, {.name = "closer", .tag = "p"}, {.name = "salute", .tag = "div"},
    {.name = "signed", .tag = "div"}, {.name = "dateline", .tag = "div"}, {.name = "byline", .tag = "div"},
    {.name = "epigraph", .tag = "div"}, {.name = "titlePage", .tag = "div"}, {.name = "docTitle", .tag = "div"},
    {.name = "titlePart", .tag = "p"}, {.name = "docAuthor", .tag = "p"}, {.name = "docImprint", .tag = "p"},
    {.name = "figure", .tag = "div"}, {.name = "figDesc", .tag = "p"}, {.name = "u", .tag = "p"},
    {.name = "seg", .in = "u", .tag = "div"},
    {.name = "table", .tag = "table"}, {.name = "row", .tag = "tr"}, {.name = "cell", .tag = "td"},
    {.name = "bibl", .in = "listBibl", .tag = "p"}, {.name = "formula", .role = XML_TAG},
    {.name = "bibl", .role = XML_SPACE}, {.name = "ref", .tag = NULL}, {.name = "ptr", .role = XML_SPACE},
    {.name = "math", .role = XML_MATH},
    {.name = "milestone", .role = XML_SPACE},
    {.name = "lb", .role = XML_HOOK, .arg = BREAK}, {.name = "pb", .role = XML_HOOK, .arg = BREAK},
    {.name = "cb", .role = XML_HOOK, .arg = BREAK},
    {.name = "w", .role = XML_HOOK, .arg = WORD}, {.name = "pc", .role = XML_HOOK, .arg = WORD},
    {.name = "hi", .tag = "i"}, {.name = "emph", .tag = "i"},
    {0},
};

const struct xml_format xml_tei = {.name = "TEI", .rules = rules, .hook = hook};
