/* curate/wiki/xml_scan.h -- the tags and texts of a piece of XML, one after another.
 *
 * For dumps that a program wrote: elements, attributes, comments, CDATA, processing
 * instructions, the five predefined entities and character references (XML 1.0).  No other
 * entity is known and none can be declared, so nothing expands.  Whether elements nest is
 * for the caller, who sees each tag.
 */
#ifndef CURATE_XML_SCAN_H
#define CURATE_XML_SCAN_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

enum xml_kind { XML_END, XML_OPEN, XML_CLOSE, XML_EMPTY, XML_TEXT };

struct xml_scan {
    const char *start, *p, *end;
    enum xml_kind kind;
    struct span name, attrs; /* of a tag */
    struct span text;        /* raw, or literal if */
    bool literal;            /*   it stood in CDATA */
};

/* Begins at the start of xml, which is borrowed. */
void xml_scan_init(struct xml_scan *x, struct span xml);
/* The next tag or text; comments and instructions are passed over.  ERR_FORMAT: the offset
 * in the piece and the reason. */
int xml_scan_next(struct xml_scan *x, struct err *e);
/* The raw value of an attribute of the tag; p NULL if it has none. */
struct span xml_scan_attr(const struct xml_scan *x, const char *name);
/* Writes raw, decoded, to out, which has room for raw.n bytes: references, line ends.  The
 * length, or ERR_FORMAT for an unknown entity, a character that XML forbids, or bytes that are
 * not UTF-8; start is where the offset in the message counts from. */
ssize_t xml_decode(struct span raw, bool literal, char *out, const char *start, struct err *e);
#endif
