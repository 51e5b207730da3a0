/* curate/dedup/dedup_store.h -- what is remembered of each document while near-duplicates are looked
 * for, on disk: its signature, its shingles, its id.
 *
 * Documents are numbered in the order in which they are added.  Disk, a document: 40 bytes, its id,
 * 8 bytes a shingle, a byte a hash (rounded up to 64), 8 bytes a band; and until they have been
 * linked 16 more a band.
 */
#ifndef CURATE_DEDUP_STORE_H
#define CURATE_DEDUP_STORE_H

#include "base/mem.h"
#include "base/spill.h"
#include "curate/dedup/dedup_bands.h"
#include "curate/dedup/dedup_sets.h"

enum { STORE_PART_BITS = 6, STORE_PARTS = 1 << STORE_PART_BITS };

struct store_doc {
    struct set_ref set;       /* its shingles in sets */
    uint64_t id_end, text_end; /* in ids and texts, where the one before it ends as well */
    uint64_t rank;            /* the highest of those that are alike stays; UINT64_MAX: it always stays */
};
/* A band key mixed with the number of the band; apart by its first bits. */
struct store_key {
    uint64_t key, doc;
};

/* Takes lines of a file, each with the document that it stands by, ascending. */
struct dedup_taker {
    int (*take)(void *to, uint64_t doc, struct span line, struct err *e);
    void *to;
};

struct dedup_store {
    size_t bands, sketch_bytes;
    struct spill docs, sigs, sets, ids, texts, keys[STORE_PARTS];
    uint64_t n, records;
};

/* bands and sketch_bytes as in b.  buffers: bytes of memory for all files together.  Close it in any case. */
int dedup_store_open(struct dedup_store *s, const struct dedup_bands *b, const char *dir, int64_t buffers,
                     struct err *e);
/* The next document.  text may be empty.  ERR_LIMIT beyond 2^32 - 2 documents. */
int dedup_store_add(struct dedup_store *s, const uint64_t *hash, size_t n_hashes, uint64_t rank, struct span id,
                    struct span text, struct err *e);
/* The record of the first document that has none yet; r NULL: it meets nobody, nor by a key of BUCKET_NONE. */
int dedup_store_put_record(struct dedup_store *s, const struct band_record *r, struct err *e);
/* The keys so far can be read; more may follow. */
int dedup_store_write_keys(struct dedup_store *s, struct err *e);
/* Between the last record and the first read. */
int dedup_store_flush(struct dedup_store *s, struct err *e);
void dedup_store_close(struct dedup_store *s);

/* Of document n; any thread. */
int dedup_store_doc(const struct dedup_store *s, uint64_t n, struct store_doc *d, struct err *e);
/* r's arrays are filled. */
int dedup_store_record(const struct dedup_store *s, uint64_t n, const struct band_record *r, struct err *e);
int dedup_store_id(const struct dedup_store *s, uint64_t n, struct arena *a, struct span *id, struct err *e);
int dedup_store_text(const struct dedup_store *s, uint64_t n, struct arena *a, struct span *text, struct err *e);
#endif
