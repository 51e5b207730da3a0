/* curate/dedup/dedup_pairs.h -- pairs of documents put in order, on disk, and as lines. */
#ifndef CURATE_DEDUP_PAIRS_H
#define CURATE_DEDUP_PAIRS_H

#include "base/mem.h"
#include "curate/dedup/dedup_clusters.h"

struct dedup_pairs;
/* Of n documents. */
int dedup_pairs_open(struct dedup_pairs **p, uint64_t n, const char *dir, struct err *e);
void dedup_pairs_close(struct dedup_pairs *p);
/* As a listener's function, arg being the struct dedup_pairs. */
int dedup_pairs_put(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e);
/* Gives all of them, by doc, then other, those of which other > doc first, with about `memory` bytes. */
int dedup_pairs_give(struct dedup_pairs *p, int64_t memory, const struct dedup_listener *to, struct err *e);

/* A line of the file of clusters or pairs; where both have places, these too. */
int dedup_pairs_put_line(struct buf *line, struct span x, struct span y, float similarity);
#endif
