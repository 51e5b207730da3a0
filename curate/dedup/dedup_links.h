/* curate/dedup/dedup_links.h -- which documents are linked by shared bands, however many others are between.
 *
 * A hash join on disk: the keys of a part go through a table in memory that remembers the first
 * document of each; later ones are united with it (union-find).  A part whose keys are too many for
 * the memory is read several times.  So very many documents with one key take no more room than one.
 */
#ifndef CURATE_DEDUP_LINKS_H
#define CURATE_DEDUP_LINKS_H

#include "curate/dedup/dedup_store.h"

/* Keys apart in STORE_PARTS files by their first bits, which are gone after that.  Of each key some document
 * is the first; same is told of it and of each other one: those of a part in an order that any number of threads gives, by one
 * of them.  memory: for tables, all threads together. */
typedef int dedup_same(void *arg, int part, uint64_t first, uint64_t doc, struct err *e);
int dedup_links_join(struct spill *parts, int64_t memory, int jobs, dedup_same *same, void *arg, struct err *e);

/* root[d], one every `stride` bytes, becomes the least document that d is linked with.  The keys of
 * the store are gone after that.  memory: for tables, all threads together. */
int dedup_links_find(struct dedup_store *s, uint32_t *root, size_t stride, int64_t memory, int jobs, struct err *e);
#endif
