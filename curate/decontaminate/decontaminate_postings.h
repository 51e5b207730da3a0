/* curate/decontaminate/decontaminate_postings.h -- which questions have a gram, and how many do.
 *
 * Made in two rounds over the questions, which come in the same order both times: the
 * first counts, the second (only where the questions themselves are needed) lists them.
 */
#ifndef CURATE_DECONTAMINATE_POSTINGS_H
#define CURATE_DECONTAMINATE_POSTINGS_H

#include "curate/decontaminate/decontaminate_grams.h"

#define POSTING_NONE UINT32_MAX

struct posting_slot {
    uint64_t hash;
    uint32_t first, count; /* in postings.item; count 0: free */
    uint32_t last;         /* question counted or put last */
    uint32_t filled;
};

struct postings {
    struct posting_slot *slot;
    size_t mask, used;
    uint32_t *item; /* ascending for each gram */
    uint32_t total;
};

/* Round one: counts question `item` once for each different gram of its words.  p starts
 * with zeroes.  ERR_NOMEM. */
int postings_count(struct postings *p, uint32_t item, const uint64_t *word, size_t n, int width);
/* Between the rounds.  ERR_NOMEM. */
int postings_place(struct postings *p);
/* Round two: the slot of the gram if the question was not put there yet, else NULL. */
struct posting_slot *postings_put(struct postings *p, uint64_t hash, uint32_t item);
/* NULL: no question has it. */
const struct posting_slot *postings_lookup(const struct postings *p, uint64_t hash);
/* The number of this question's posting of the gram, or POSTING_NONE. */
uint32_t postings_find(const struct postings *p, const struct posting_slot *s, uint32_t item);
size_t postings_bytes(const struct postings *p);
void postings_free(struct postings *p);
#endif
