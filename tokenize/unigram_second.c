/* The two best ways by A* from the end, as SentencePiece's Lattice::NBest finds them.  Of ways with equal scores the one counts
 * that its heap, the C++ library's, gives first; so this is that heap. */
#include "tokenize/unigram_second.h"

#include <string.h>

enum { NO_WAY = UINT16_MAX };

/* ---- heap ---- */

static float score_at(const struct unigram_second *s, unsigned i)
{
    return s->ways[s->heap[i]].whole;
}

/* Puts a way into the hole at i, above which it goes as far as it is better. */
static void rise(struct unigram_second *s, unsigned i, uint16_t way)
{
    while (i) {
        unsigned above = (i - 1) / 2;
        if (!(score_at(s, above) < s->ways[way].whole))
            break;
        s->heap[i] = s->heap[above];
        i = above;
    }
    s->heap[i] = way;
}

/* Takes out the best way.  The hole sinks to a leaf first, then the last way rises from there. */
static uint16_t take_best(struct unigram_second *s)
{
    uint16_t best = s->heap[0], last = s->heap[--s->n_heap];
    unsigned hole = 0, n = s->n_heap;

    while (2 * hole + 2 < n) {
        unsigned child = 2 * hole + 2;
        if (score_at(s, child) < score_at(s, child - 1))
            child--;
        s->heap[hole] = s->heap[child];
        hole = child;
    }
    if (2 * hole + 2 == n) {
        s->heap[hole] = s->heap[n - 1];
        hole = n - 1;
    }
    if (n)
        rise(s, hole, last);
    return best;
}

static bool put_way(struct unigram_second *s, struct second_way way)
{
    if (s->n_ways == SECOND_WAYS)
        return false;
    s->ways[s->n_ways] = way;
    rise(s, s->n_heap++, (uint16_t)s->n_ways++);
    return true;
}

/* ---- lattice ---- */

static void put_node(struct unigram_second *s, unsigned i, uint32_t id, float score, unsigned begin)
{
    struct second_node *x = &s->nodes[i];

    *x = (struct second_node){.id = id, .score = score, .begin = (uint8_t)begin};
    for (unsigned k = s->ends[begin]; k < s->ends[begin + 1]; k++) {
        float way = s->nodes[k].to_here + score;
        if (k == s->ends[begin] || way > x->to_here)
            x->to_here = way;
    }
}

/* The nodes of a piece's text by their ends, those that begin first in front; the first one is the beginning, the last one
 * the end. */
static unsigned make_nodes(const struct unigram_train *u, uint32_t id, struct unigram_second *s)
{
    unsigned chars = u->pieces[id].chars, n = 1;
    uint32_t begins[UNIGRAM_LONGEST], at = u->pieces[id].at;

    for (unsigned begin = 0; begin < chars; begin++) {
        begins[begin] = at;
        while (!(u->nodes[at++] & UNIGRAM_LAST))
            ;
    }
    s->nodes[0] = (struct second_node){.id = 0};
    s->ends[0] = 0;
    s->ends[1] = 1;
    for (unsigned end = 1; end <= chars; end++) {
        for (unsigned begin = 0; begin < end; begin++) {
            uint32_t k = begins[begin], x;
            while (unigram_chars(u, x = u->nodes[k] & ~UNIGRAM_LAST) != end - begin && !(u->nodes[k] & UNIGRAM_LAST))
                k++;
            if (unigram_chars(u, x) == end - begin)
                put_node(s, n++, x, unigram_score(u, x), begin);
        }
        s->ends[end + 1] = n;
    }
    put_node(s, n, 0, 0, chars);
    return n;
}

/* The pieces of a complete way; their number. */
static int list_way(struct unigram_second *s, uint16_t way)
{
    int n = 0;

    for (way = s->ways[way].next; s->ways[way].next != NO_WAY; way = s->ways[way].next)
        s->best[n++] = unigram_counted(s->nodes[s->ways[way].node].id);
    return n;
}

int unigram_second_best(const struct unigram_train *u, uint32_t id, struct unigram_second *s)
{
    unsigned end = make_nodes(u, id, s);
    bool room, found = false;

    s->n_ways = s->n_heap = 0;
    room = put_way(s, (struct second_way){.whole = s->nodes[end].to_here, .node = (uint16_t)end, .next = NO_WAY});
    while (s->n_heap && room) {
        uint16_t way = take_best(s);
        const struct second_way x = s->ways[way];
        unsigned begin = s->nodes[x.node].begin;
        if (x.node == 0) {
            int n = list_way(s, way);
            if (found || n > 1)
                return found ? n : -1;
            found = true;
            continue;
        }
        for (unsigned k = s->ends[begin]; k < s->ends[begin + 1] && room; k++)
            room = put_way(s, (struct second_way){.whole = s->nodes[k].to_here + x.from_here,
                                                  .from_here = s->nodes[k].score + x.from_here,
                                                  .node = (uint16_t)k, .next = way});
    }
    return 0;
}
