/* curate/html/html_tree_build.h -- between the tokenizer (html_tree.c) and the construction of
 * the tree (html_tree_build.c); nobody else includes it.
 */
#ifndef CURATE_HTML_TREE_BUILD_H
#define CURATE_HTML_TREE_BUILD_H

#include "base/ascii.h"
#include "curate/html/html_tree.h"

/* An open element. */
struct html_open {
    uint32_t node;
    uint32_t name; /* hash of the name, to match the end tags of unknown elements */
    uint8_t tag;
};

struct html_parser {
    struct html_tree *t;
    const struct html_names *names;
    const char *p, *end; /* what is still to be read */
    uint32_t max_nodes;
    double deadline;
    struct html_open stack[HTML_MAX_DEPTH];
    int depth;
    uint32_t open[HTML_N_TAGS];    /* open elements of each tag, on the stack */
    uint32_t skipped[HTML_N_TAGS]; /* open, but too deep for the stack */
    uint32_t link;       /* the active <a href>, 0: none */
    bool after_block;    /* nothing but block tags since the last text: white space is void */
    bool nomem;
};

static inline bool html_has_flag(unsigned tag, unsigned flag)
{
    return (html_tag_flags[tag] & flag) != 0;
}

/* Room in *array for one more than n; false when memory is out. */
bool html_grow(void **array, uint32_t n, uint32_t *cap, size_t size);
/* Appends a node under the innermost open element; NULL (and nomem) when memory is out. */
struct html_node *html_add_node(struct html_parser *s, unsigned tag);
/* Opens the node added last.  name: its hash, for elements that the tags do not have. */
void html_push(struct html_parser *s, unsigned tag, uint32_t name);
/* Closes the innermost elements until depth are open. */
void html_pop_to(struct html_parser *s, int depth);
/* Text between from and to; decode: character references count. */
void html_add_text(struct html_parser *s, const char *from, const char *to, bool decode);
/* Closes what the start of tag implies closed; the element itself is the caller's. */
void html_before_start(struct html_parser *s, unsigned tag);
void html_end_tag(struct html_parser *s, unsigned tag, uint32_t name);

static inline unsigned html_top(const struct html_parser *s)
{
    return s->depth ? s->stack[s->depth - 1].tag : HTML_html;
}
#endif
