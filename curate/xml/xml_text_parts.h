/* curate/xml/xml_text_parts.h -- what xml_text.c (the walk through a document) and xml_element.c (what elements do by their
 * roles) share; nobody else includes it. */
#ifndef CURATE_XML_TEXT_PARTS_H
#define CURATE_XML_TEXT_PARTS_H

#include "curate/xml/xml_text.h"

enum { XML_SLOTS = 1024 /* of the table of names, more than XML_RULES_MAX */ };

/* What text is taken for, beside the fields. */
enum { XML_NOT_TAKEN = -1, XML_TAKE_HTML = -2, XML_TAKE_TEX = -3 };

struct xml_frame {
    struct span name;
    const char *from, *end; /* where its content begins, and what it is in ends */
    const char *tag;        /* HTML element to be closed; NULL: none */
    const char *unless;     /* looked for among the children; and whether it is there */
    bool unless_found;
    enum xml_role role;
    int arg;
    /* as they were before it */
    int take;
    bool hidden, copy;
};

struct xml_text {
    struct html_worker *html;
    struct xml_reader reader;
    const struct xml_format *format; /* that index is of */
    uint16_t index[XML_SLOTS], next[XML_RULES_MAX + 1]; /* rules by name: 1 and up */
    struct xml_frame *frame;
    int depth, deeper;
    int take, sections, parts, skips;
    int count[2];
    bool hidden, copy, rooted, truncated, joined, trim;
    size_t looked; /* bytes in which siblings were looked for */
    uint64_t faults;
    struct buf out, text, value, line; /* HTML; text of what was HTML; what is taken; scratch */
    struct buf label;                  /* comes first in the element that begins */
    struct word_styles *styles;
    struct buf field[XML_ALL_FIELDS];
};

/* What an element that begins does, beside being on the stack, by its rule; as it stands, in XHTML.  ERR_NOMEM. */
int xml_element_begin(struct xml_text *x, struct xml_frame *f, const struct xml_rule *rule);
int xml_element_copy(struct xml_text *x);
/* A <math> whose start was just read, through its end.  ERR_NOMEM. */
int xml_element_math(struct xml_text *x);
/* Ends the innermost element.  ERR_NOMEM. */
int xml_element_end(struct xml_text *x);
#endif
