/* curate/dedup/dedup_buckets.h -- who shares a key: the buckets of one band. */
#ifndef CURATE_DEDUP_BUCKETS_H
#define CURATE_DEDUP_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

struct dedup_keyed {
    uint64_t key;
    uint32_t doc;
};

struct dedup_buckets {
    size_t docs;               /* < 2^32 */
    const uint64_t *key;       /* of document d: key[d * stride]; BAND_KEY_NONE meets nobody */
    size_t stride;
    struct dedup_keyed *room;  /* for 2 x docs */
    uint32_t *member;          /* for docs: the documents that share their key with another, by key, then by number */
    uint32_t *start;           /* for docs / 2 + 1: where each bucket begins in member; one more place says where the last ends */
    size_t buckets, members;   /* come back */
};
void dedup_buckets_find(struct dedup_buckets *p);
#endif
