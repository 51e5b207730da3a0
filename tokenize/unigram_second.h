/* tokenize/unigram_second.h -- what stands in for a piece that is taken out.
 */
#ifndef TOKENIZE_UNIGRAM_SECOND_H
#define TOKENIZE_UNIGRAM_SECOND_H

#include "tokenize/unigram_train.h"

enum {
    SECOND_NODES = UNIGRAM_LONGEST * (UNIGRAM_LONGEST + 1) / 2 + 2,
    SECOND_WAYS = 1 << 14 /* partial ways looked at: two complete ones need some hundred */
};

/* Room for a search; no need to initialise. */
struct unigram_second {
    uint32_t best[UNIGRAM_LONGEST]; /* the result */
    struct second_node {
        uint32_t id;
        float score, to_here; /* to_here: of the best way to its end */
        uint8_t begin;
    } nodes[SECOND_NODES];
    unsigned ends[UNIGRAM_LONGEST + 2]; /* the first node that ends at a place; one more for the end */
    struct second_way { /* a way from a node to the end */
        float whole, from_here; /* the best score with all in front of it; its own */
        uint16_t node, next;    /* next: the way behind the node */
    } ways[SECOND_WAYS];
    uint16_t heap[SECOND_WAYS];
    unsigned n_ways, n_heap;
};

/* The second best way through a piece's own text, the best one being the piece itself: its pieces, to s->best, and their
 * number; 0: there is no second one; -1: the piece is not the best way. */
int unigram_second_best(const struct unigram_train *u, uint32_t id, struct unigram_second *s);

#endif
