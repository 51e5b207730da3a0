/* curate/html/html_meta_parts.h -- pieces of curate/html/html_meta.c; nobody else includes it. */
#ifndef CURATE_HTML_META_PARTS_H
#define CURATE_HTML_META_PARTS_H

#include "curate/html/html_meta.h"

/* What JSON-LD says under key ("\"author\"", with its quotes), unescaped, into out: the first value that is a
 * string; of an object its "name", or the name that another object has under the "@id" that
 * this one refers to; of an array the strings and names in it, up to max bytes with ", "
 * between.  The text need not be well-formed.  1: found, 0: not.  ERR_NOMEM. */
int html_json_find(struct span s, const char *key, size_t max, struct buf *out);
#endif
