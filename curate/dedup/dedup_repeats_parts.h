/* curate/dedup/dedup_repeats_parts.h -- the candidates of curate/dedup/dedup_repeats.c: sorted by shards,
 * merged, and marked.
 */
#ifndef CURATE_DEDUP_REPEATS_PARTS_H
#define CURATE_DEDUP_REPEATS_PARTS_H

#include "base/spill.h"
#include "curate/dedup/dedup_repeats.h"

struct candidates {
    struct repeats_conf c;
    struct spill text; /* the elements */
    struct spill bits; /* one each: may a passage that begins here be a repeat? */
    unsigned char byte; /* of bits, and how many of it are there */
    int in_byte;
    uint64_t n;        /* elements */
    struct spill runs; /* of each shard the passages in order, 32 bits each, from the shard's
                          beginning; a shard's are at 4 times its first element */
    uint64_t shard, shards, *run; /* elements of a shard; their number; the length of each run */
    struct spill_map text_map, bits_map, struck; /* struck: a bit an element */
};
void candidates_init(struct candidates *c);
int candidates_open(struct candidates *c, const struct repeats_conf *conf, struct err *e);
void candidates_close(struct candidates *c);
/* The next n bits. */
int candidates_put_starts(struct candidates *c, int bit, uint64_t n, struct err *e);
/* Once text, bits and n are whole: makes the runs; then merges them into struck. */
int candidates_sort(struct candidates *c, int jobs, struct err *e);
int candidates_merge(struct candidates *c, struct err *e);
/* Lets go of mapped pages if the process has more memory than it should. */
void candidates_trim(struct candidates *c);
#endif
