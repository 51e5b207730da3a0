/* curate/text/html_entity.h -- character references of HTML, as &amp; and &#65;, to characters. */
#ifndef CURATE_HTML_ENTITY_H
#define CURATE_HTML_ENTITY_H

#include "base/err.h"
#include "base/mem.h"

/* Decodes one character reference at p ('&').  Returns its length in bytes and puts up
 * to 8 bytes of UTF-8 into out (*n_out), or 0 if there is none.  in_attr: the stricter
 * rule of attribute values. */
size_t html_entity(const char *p, const char *end, bool in_attr, char out[8], int *n_out);
/* Appends s with references decoded. */
int html_decode(struct span s, bool in_attr, struct buf *b);
#endif
