/* curate/html/html_text_parts.h -- what curate/html/html_text.c asks of a tree before it writes; nobody
 * else includes it.
 */
#ifndef CURATE_HTML_TEXT_PARTS_H
#define CURATE_HTML_TEXT_PARTS_H

#include "curate/html/html_tree.h"

/* The TeX of a formula, or p == NULL: an annotation, alttext, an image's alt. */
struct span html_text_tex(const struct html_tree *t, uint32_t i, bool *escaped);

/* By node: 1 for each tr that arranges the page instead of holding data.  One pass
 * backwards: what a node holds is added to its parent.  NULL when memory is out; the
 * caller frees it. */
uint8_t *html_text_layout(const struct html_tree *t);

/* An ordered list's first number. */
int32_t html_text_list_start(const struct html_tree *t, uint32_t i);
#endif
