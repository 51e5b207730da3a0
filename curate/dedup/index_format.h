/* curate/dedup/index_format.h -- inside the index of near-duplicates only: what its writer and its reader share. */
#ifndef CURATE_INDEX_FORMAT_H
#define CURATE_INDEX_FORMAT_H

#include <stdint.h>

#define INDEX_MAGIC "quern-index 2\n"
#define SETS_MAGIC "quern-sets 1\n\n\n\n"

/* All numbers are little-endian; of a document, before its sketch. */
struct index_record {
    uint64_t sum;   /* XXH3-64 of what follows in the record, and of the id behind that */
    uint64_t id_at; /* in the file */
    uint64_t hash, at;
    uint32_t count, source, id_n, zero;
};

/* At the end of the file. */
struct index_trailer {
    uint64_t docs, docs_at;
    uint64_t sources, sources_at, sources_n, sources_sum; /* how many, their bytes, XXH3-64 of these */
    uint64_t pages_at, leaves, entries;
    uint64_t bands, rows;
    uint64_t sum; /* XXH3-64 of both first lines and what stands here before it */
};

/* Bytes of sources, each a kind (1 byte), a length (4), a path; and of a path.  Shingles of a document: a text is shorter. */
enum { INDEX_MOST_SOURCES = 1 << 28, INDEX_MOST_PATH = 1 << 16, INDEX_MOST_SHINGLES = 1 << 28 };
#endif
