/* JATS and its ancestors, the NLM Journal Archiving DTDs: articles of PubMed Central and of publishers.
 *
 * Source: jats.nlm.nih.gov/archiving/tag-library/1.3; taxpub for <tp:...>.  Left out: the list of references, what is said of
 * the journal, and all of the front matter but titles and abstracts, which becomes fields. */
#include "curate/xml/xml_text.h"

enum { ARTICLE_ID, LICENSE };

static int hook(struct xml_text *x, struct xml_rule *rule)
{
    static const struct {
        const char *type;
        enum xml_field field;
    } ids[] = {{"doi", XML_DOI}, {"pmc", XML_PMCID}, {"pmcid", XML_PMCID}, {"pmid", XML_PMID}};
    const struct xml_reader *r = xml_text_reader(x);

    if (rule->arg == LICENSE) {
        struct span link = xml_attr(r, "href");
        if (link.n)
            return xml_text_field(x, XML_LICENSE, link, false);
        return 0;
    }
    rule->role = XML_SKIP;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (xml_attr_is(r, "pub-id-type", ids[i].type)) {
            rule->role = XML_META;
            rule->arg = ids[i].field;
        }
    return 0;
}

static const struct xml_rule rules[] = {
    {.name = "article", .role = XML_META_ATTR, .unless = "lang", .arg = XML_LANG},
    /* the front */
    {.name = "front", .role = XML_HIDE},
    {.name = "front-stub", .role = XML_HIDE},
    {.name = "journal-title", .role = XML_META, .arg = XML_PUBLISHER},
    {.name = "publisher-name", .role = XML_SKIP},
    {.name = "article-id", .role = XML_HOOK, .arg = ARTICLE_ID},
    {.name = "article-title", .in = "title-group", .role = XML_META, .tag = "h1", .arg = XML_TITLE},
    {.name = "subtitle", .in = "title-group", .role = XML_SHOW, .tag = "h2"},
    {.name = "trans-title", .role = XML_SHOW, .tag = "h1"},
    {.name = "alt-title", .role = XML_SKIP},
    {.name = "abstract", .role = XML_SHOW, .tag = "div"},
    {.name = "trans-abstract", .role = XML_SHOW, .tag = "div"},
    {.name = "contrib", .role = XML_TAG},
    {.name = "collab", .in = "contrib", .role = XML_META, .arg = XML_AUTHOR | XML_MORE},
    {.name = "name", .in = "contrib", .role = XML_PERSON},
    {.name = "name", .in = "name-alternatives", .role = XML_PERSON},
    {.name = "surname", .in = "name", .role = XML_META, .arg = XML_FAMILY},
    {.name = "given-names", .in = "name", .role = XML_META, .arg = XML_GIVEN},
    {.name = "pub-date", .role = XML_WHEN},
    {.name = "day", .in = "pub-date", .role = XML_META, .arg = XML_DAY},
    {.name = "month", .in = "pub-date", .role = XML_META, .arg = XML_MONTH},
    {.name = "year", .in = "pub-date", .role = XML_META, .arg = XML_YEAR},
    {.name = "license", .role = XML_HOOK, .arg = LICENSE},
    {.name = "license_ref", .role = XML_META, .arg = XML_LICENSE},
    {.name = "license-p", .role = XML_META, .arg = XML_LICENSE},
    {.name = "p", .in = "license", .role = XML_META, .arg = XML_LICENSE},
    {.name = "kwd", .in = "kwd-group", .role = XML_META, .arg = XML_KEYWORDS | XML_MORE},
    {.name = "custom-meta-group", .role = XML_SKIP},
    {.name = "custom-meta-wrap", .role = XML_SKIP},
    {.name = "related-article", .in = "article-meta", .role = XML_SKIP},
    {.name = "related-article", .in = "front-stub", .role = XML_SKIP},
    {.name = "related-object", .role = XML_SKIP},
    {.name = "product", .in = "article-meta", .role = XML_SKIP},
    {.name = "product", .in = "front-stub", .role = XML_SKIP},
    {.name = "history", .role = XML_SKIP},
    {.name = "pub-history", .role = XML_SKIP},
    /* not text */
    {.name = "ref-list", .role = XML_SKIP},
    {.name = "object-id", .role = XML_SKIP},
    {.name = "permissions", .in = "fig", .role = XML_SKIP},
    {.name = "permissions", .in = "table-wrap", .role = XML_SKIP},
    {.name = "permissions", .in = "boxed-text", .role = XML_SKIP},
    {.name = "permissions", .in = "supplementary-material", .role = XML_SKIP},
    {.name = "sec-meta", .role = XML_SKIP},
    {.name = "processing-meta", .role = XML_SKIP},
    /* parts */
    {.name = "sub-article", .role = XML_PART},
    {.name = "response", .role = XML_PART},
    {.name = "sec", .role = XML_SECTION},
    {.name = "app", .role = XML_SECTION},
    {.name = "ack", .role = XML_SECTION},
    {.name = "bio", .role = XML_TAG, .tag = "div"},
    {.name = "glossary", .role = XML_SECTION},
    {.name = "fn-group", .role = XML_SECTION},
    {.name = "notes", .role = XML_SECTION},
    {.name = "treatment-sec", .role = XML_SECTION},
    {.name = "taxon-treatment", .role = XML_SECTION},
    {.name = "boxed-text", .role = XML_TAG, .tag = "div"},
    {.name = "title", .in = "caption", .role = XML_TAG, .tag = "p"},
    {.name = "title", .in = "sec", .role = XML_HEADING},
    {.name = "title", .in = "app", .role = XML_HEADING},
    {.name = "title", .in = "list", .role = XML_TAG, .tag = "p"},
    {.name = "title", .role = XML_HEADING, .arg = 1},
    {.name = "label", .in = "sec", .role = XML_TAG, .tag = "p"},
    {.name = "label", .in = "fig", .role = XML_TAG, .tag = "p"},
    {.name = "label", .in = "table-wrap", .role = XML_TAG, .tag = "p"},
    {.name = "label", .in = "supplementary-material", .role = XML_TAG, .tag = "p"},
    {.name = "label", .in = "boxed-text", .role = XML_TAG, .tag = "p"},
    {.name = "label", .in = "media", .role = XML_TAG, .tag = "p"},
    {.name = "label", .role = XML_SPACE},
    {.name = "caption", .in = "table", .role = XML_TAG, .tag = "caption"},
    {.name = "caption", .role = XML_TAG, .tag = "div"},
    {.name = "p", .role = XML_TAG, .tag = "p"},
    {.name = "attrib", .role = XML_TAG, .tag = "p"},
    {.name = "fn", .role = XML_TAG, .tag = "div"},
    {.name = "fig", .role = XML_TAG, .tag = "div"},
    {.name = "fig-group", .role = XML_TAG, .tag = "div"},
    {.name = "table-wrap", .role = XML_TAG, .tag = "div"},
    {.name = "table-wrap-foot", .role = XML_TAG, .tag = "div"},
    {.name = "supplementary-material", .role = XML_TAG, .tag = "div"},
    {.name = "media", .role = XML_TAG, .tag = "div"},
    {.name = "statement", .role = XML_TAG, .tag = "div"},
    {.name = "speech", .role = XML_TAG, .tag = "p"},
    {.name = "disp-quote", .role = XML_TAG, .tag = "blockquote"},
    {.name = "verse-group", .role = XML_TAG, .tag = "div"},
    {.name = "verse-line", .role = XML_TAG, .tag = "div"},
    {.name = "preformat", .role = XML_TAG, .tag = "pre"},
    {.name = "code", .role = XML_TAG, .tag = "pre"},
    {.name = "disp-formula", .role = XML_TAG, .tag = "div"},
    {.name = "disp-formula-group", .role = XML_TAG, .tag = "div"},
    {.name = "math", .in = "alternatives", .role = XML_MATH, .unless = "tex-math"},
    {.name = "math", .role = XML_MATH},
    {.name = "tex-math", .role = XML_TEX},
    {.name = "textual-form", .in = "alternatives", .role = XML_SKIP},
    /* lists and tables */
    {.name = "list", .role = XML_LIST},
    {.name = "list-item", .role = XML_TAG, .tag = "li"},
    {.name = "def-list", .role = XML_TAG, .tag = "dl"},
    {.name = "term", .role = XML_TAG, .tag = "dt"},
    {.name = "def", .role = XML_TAG, .tag = "dd"},
    {.name = "table", .role = XML_TAG, .tag = "table"},
    {.name = "thead", .role = XML_TAG, .tag = "thead"},
    {.name = "tbody", .role = XML_TAG, .tag = "tbody"},
    {.name = "tfoot", .role = XML_TAG, .tag = "tfoot"},
    {.name = "tr", .role = XML_TAG, .tag = "tr"},
    {.name = "row", .role = XML_TAG, .tag = "tr"},
    {.name = "td", .role = XML_TAG, .tag = "td"},
    {.name = "entry", .role = XML_TAG, .tag = "td"},
    {.name = "th", .role = XML_TAG, .tag = "th"},
    /* inline */
    {.name = "bold", .role = XML_TAG, .tag = "b"},
    {.name = "italic", .role = XML_TAG, .tag = "i"},
    {.name = "monospace", .role = XML_TAG, .tag = "code"},
    {.name = "sub", .role = XML_TAG, .tag = "sub"},
    {.name = "sup", .role = XML_TAG, .tag = "sup"},
    {.name = "break", .role = XML_VOID, .tag = "br"},
    {.name = "hr", .role = XML_VOID, .tag = "hr"},
    {0},
};

const struct xml_format xml_jats = {.name = "JATS", .rules = rules, .hook = hook};
