/* curate/dedup/dedup_bands.h -- candidates by locality-sensitive hashing (Indyk and Motwani).
 *
 * A signature is cut into bands of some rows; documents that agree in a whole band
 * share a bucket, and those that share a bucket are candidates.  Beside the band keys a
 * sketch is kept, one byte of each hash of the signature: from it a pair that cannot
 * have the similarity asked for is told without its shingles.
 *
 * Memory: a document takes 8 bytes a band and 1 byte a hash (rounded up to 64); its buckets
 * at most 12 bytes more a band.
 */
#ifndef CURATE_DEDUP_BANDS_H
#define CURATE_DEDUP_BANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "kernels/band_keys.h"

/* What is kept of one signature: kernels/band_keys.h. */
struct band_record {
    uint64_t *key;   /* bands */
    uint8_t *sketch; /* sketch_bytes */
};

/* Documents with equal keys in one band.  member[start .. start + size), ascending. */
struct bucket {
    uint32_t start, size;
    uint32_t kept, seen; /* dedup_clusters.c: how far it is */
};
struct band {
    struct bucket *bucket;
    uint32_t *member;
    size_t buckets;
};

struct dedup_bands {
    int bands, rows;
    size_t sketch_bytes;
    size_t hash_bytes; /* of the shingles of documents, as they are put aside: 4 or 8 */
    size_t docs, cap;
    uint64_t *key;   /* docs x bands; once indexed, the number of the bucket, or NONE */
    uint8_t *sketch; /* docs x sketch_bytes */
    struct band *band;
};
#define BUCKET_NONE BAND_KEY_NONE

/* Keys of all bands in one place: each with the number of its band mixed in, so that it is spread evenly and equal only to
 * keys of that band. */
static inline uint64_t dedup_band_mix(uint64_t key, int band)
{
    return hash_mix64(key + (uint64_t)band);
}
static inline uint64_t dedup_band_unmix(uint64_t mixed, int band)
{
    return hash_unmix64(mixed) - (uint64_t)band;
}

/* With hashes of 8 bytes. */
int dedup_bands_init(struct dedup_bands *b, int bands, int rows, struct err *e);
void dedup_bands_free(struct dedup_bands *b);
/* Bytes that a document takes when there are buckets; making them takes 40 more a thread. */
size_t dedup_bands_bytes(const struct dedup_bands *b);
/* Makes room for that many documents; what was there stays, new records are to be filled. */
int dedup_bands_room(struct dedup_bands *b, size_t docs, struct err *e);
/* The record of a document, valid until there is more room.  Keys of BUCKET_NONE meet nobody. */
struct band_record dedup_bands_at(struct dedup_bands *b, size_t doc);
/* Finds the buckets of two or more, with jobs threads. */
int dedup_bands_index(struct dedup_bands *b, int jobs, struct err *e);

/* The first band in which two documents share a bucket; -1: there is none. */
int dedup_bands_meet(const struct dedup_bands *b, uint32_t a, uint32_t other);
/* Places in which the sketches agree. */
int dedup_bands_agree(const struct dedup_bands *b, uint32_t a, uint32_t other);
/* The similarity of two documents as their sketches have it. */
double dedup_bands_estimate(const struct dedup_bands *b, const uint8_t *x, const uint8_t *y);
/* A pair of the similarity `threshold` agrees in fewer places than this with a
 * probability of less than one in a million. */
int dedup_bands_least(const struct dedup_bands *b, double threshold);
#endif
