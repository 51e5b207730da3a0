/* XHTML, as it stands but for scripts and the head: chapters of books. */
#include "curate/xml/xml_text.h"

static const struct xml_rule rules[] = {
    {.name = "head", .role = XML_SKIP}, {.name = "script", .role = XML_SKIP}, {.name = "style", .role = XML_SKIP},
    {.name = "math", .role = XML_MATH}, {.name = "html", .role = XML_XHTML}, {.name = "body", .role = XML_XHTML},
    {0},
};

const struct xml_format xml_xhtml = {.name = "XHTML", .rules = rules, .soup = true};
