/* Feeds, an item at a time: RSS 0.9 to 2.0 and 1.0 (RDF), Atom 0.3 and 1.0.  A body is HTML, or in Atom XHTML; where an item has
 * its whole content, the summary is left out.
 *
 * Source: rssboard.org/rss-specification, RFC 4287, purl.org/rss/1.0/modules/content. */
#include "curate/xml/xml_text.h"

enum { BODY, LINK };

static int hook(struct xml_text *x, struct xml_rule *rule)
{
    const struct xml_reader *r = xml_text_reader(x);
    struct span rel = xml_attr(r, "rel"), type = xml_attr(r, "type");

    if (rule->arg == BODY) {
        if (span_is(type, "xhtml") || span_is(type, "application/xhtml+xml") || xml_attr_is(r, "mode", "xml"))
            rule->role = XML_XHTML;
        else if (xml_attr_is(r, "mode", "base64"))
            rule->role = XML_SKIP;
        else if (span_is(type, "text") || span_is(type, "text/plain"))
            *rule = (struct xml_rule){.name = rule->name, .role = XML_SHOW, .tag = "p", .unless = rule->unless};
        else
            rule->role = XML_HTML;
        return 0;
    }
    if (rel.n && !span_is(rel, "alternate"))
        rule->role = XML_SKIP;
    else if (xml_attr(r, "href").n) {
        rule->role = XML_META_ATTR;
        rule->unless = "href";
        rule->arg = XML_URL;
    } else {
        rule->role = XML_META;
        rule->arg = XML_URL;
    }
    return 0;
}

static const struct xml_rule rules[] = {
    {.name = "title", .in = "item", .role = XML_META, .tag = "h1", .arg = XML_TITLE},
    {.name = "title", .in = "entry", .role = XML_META, .tag = "h1", .arg = XML_TITLE},
    {.name = "item", .role = XML_HIDE}, {.name = "entry", .role = XML_HIDE},
    {.name = "description", .in = "item", .role = XML_HOOK, .arg = BODY, .unless = "encoded"},
    {.name = "summary", .in = "entry", .role = XML_HOOK, .arg = BODY, .unless = "content"},
    {.name = "content", .in = "entry", .role = XML_HOOK, .arg = BODY},
    {.name = "encoded", .in = "item", .role = XML_HOOK, .arg = BODY},
    {.name = "link", .in = "item", .role = XML_HOOK, .arg = LINK},
    {.name = "link", .in = "entry", .role = XML_HOOK, .arg = LINK},
    {.name = "guid", .role = XML_META, .arg = XML_ID}, {.name = "id", .in = "entry", .role = XML_META, .arg = XML_ID},
    {.name = "pubDate", .role = XML_META, .arg = XML_DATE}, {.name = "published", .role = XML_META, .arg = XML_DATE},
    {.name = "issued", .role = XML_META, .arg = XML_DATE}, {.name = "date", .role = XML_META, .arg = XML_DATE},
    {.name = "updated", .in = "entry", .role = XML_META, .arg = XML_DATE, .unless = "published"},
    {.name = "creator", .role = XML_META, .arg = XML_AUTHOR | XML_MORE},
    {.name = "author", .in = "item", .role = XML_META, .arg = XML_AUTHOR | XML_MORE},
    {.name = "name", .in = "author", .role = XML_META, .arg = XML_AUTHOR | XML_MORE},
    {.name = "category", .in = "item", .role = XML_META, .arg = XML_KEYWORDS | XML_MORE},
    {.name = "category", .in = "entry", .role = XML_META_ATTR, .unless = "term", .arg = XML_KEYWORDS | XML_MORE},
    {.name = "rights", .role = XML_META, .arg = XML_LICENSE}, {.name = "source", .role = XML_SKIP},
    {.name = "script", .role = XML_SKIP}, {.name = "style", .role = XML_SKIP},
    {0},
};

const struct xml_format xml_feed = {.name = "feed", .rules = rules, .hook = hook};
