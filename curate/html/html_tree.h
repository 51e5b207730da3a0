/* curate/html/html_tree.h -- HTML into a flat tree, the way browsers read it.
 *
 * A tokenizer and tree builder after the WHATWG HTML standard, written for text: one
 * pass, no recursion, linear in the input whatever it holds.  Nodes stand in document
 * order in one array, so that the subtree of node i is the range [i, node[i].end) and
 * every walk is a loop.  Where the standard would need a tree that can be rearranged,
 * this one keeps the reading order instead:
 * - stray content of a table stays in the table, where it was written;
 * - a formatting element closed across blocks (<b><p></b>) stays around them; that text
 *   is no longer in a link is noted on the text itself (HTML_IN_LINK);
 * - elements deeper than HTML_MAX_DEPTH become siblings, as in browsers.
 * libxml2 reads HTML 4, loses the text of such pages, needs 7 s for a megabyte of
 * attributes of one element, and is a third as fast.
 */
#ifndef CURATE_HTML_TREE_H
#define CURATE_HTML_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "curate/html/html_tags.h"

enum { HTML_MAX_DEPTH = 512 };

enum {
    HTML_IN_LINK = 1,  /* text: inside an <a href> */
    HTML_ESCAPED = 2,  /* text: has '&' or a carriage return, to be decoded */
    HTML_SPACE = 4     /* text: nothing but white space */
};

struct html_node {
    uint8_t tag;    /* enum html_tag */
    uint8_t flags;  /* HTML_IN_LINK ... */
    uint16_t n_attrs;
    uint32_t parent;
    uint32_t end;   /* one past the last node of the subtree */
    uint32_t first; /* element: first attribute; text: offset in src */
    uint32_t len;   /* text: bytes in src */
};

struct html_attr {
    uint8_t name; /* enum html_attr_name */
    bool escaped; /* has '&' */
    uint32_t off, len; /* of the value in src */
};

struct html_tree {
    struct span src;
    struct html_node *node; /* node[0] is html */
    uint32_t n_nodes, cap_nodes;
    struct html_attr *attr;
    uint32_t n_attrs, cap_attrs;
    bool truncated; /* max_nodes was reached; the rest was not read */
};

/* Parses html (under 4 GiB; it must outlive the tree's use) into t, reusing its memory.
 * Only attributes of enum html_attr_name are kept, the first of each name.  deadline:
 * CLOCK_MONOTONIC seconds, 0 for none.  ERR_NOMEM, ERR_LIMIT (deadline). */
int html_tree_parse(struct html_tree *t, const struct html_names *names, struct span html,
                    uint32_t max_nodes, double deadline, struct err *e);
void html_tree_free(struct html_tree *t);

static inline struct span html_text(const struct html_tree *t, uint32_t i)
{
    struct span s = {t->src.p + t->node[i].first, t->node[i].len};
    return s;
}
/* The attribute's value as written, or p == NULL; *escaped (may be NULL): has entities. */
struct span html_attr_raw(const struct html_tree *t, uint32_t i, enum html_attr_name name,
                          bool *escaped);
/* The same, decoded, appended to b.  1: the attribute is there, 0: not.  ERR_NOMEM. */
int html_attr_get(const struct html_tree *t, uint32_t i, enum html_attr_name name,
                  struct buf *b);
#endif
