/* base/node_build.h -- how the parsers put a tree of nodes together. */
#ifndef BASE_NODE_BUILD_H
#define BASE_NODE_BUILD_H

#include "base/node.h"

enum { NODE_DEPTH = 1000 };

struct node_builder {
    struct arena *arena;
    struct node *root, *open[NODE_DEPTH], *last[NODE_DEPTH];
    int depth;
    bool has_key;
    struct span key;
    struct buf keys; /* to find one that occurs twice */
};

/* Where the next value goes: a zeroed node hung into the tree; NULL: out of memory. */
struct node *node_add(struct node_builder *b, enum node_type type, int line);
/* The key of the next value in a map; copied. */
int node_add_key(struct node_builder *b, struct span key, struct err *e);
/* What follows are children of n (LIST or MAP), up to node_close. */
int node_open(struct node_builder *b, struct node *n, struct err *e);
/* Ends the innermost; ERR_FORMAT if a key of it occurs twice. */
int node_close(struct node_builder *b, struct err *e);
/* True if the next thing must be a key. */
bool node_wants_key(const struct node_builder *b);
#endif
