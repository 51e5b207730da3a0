/* curate/dedup/dedup_store.h -- what is remembered of each document while near-duplicates are looked
 * for, on disk: its signature, its shingles, its id.
 *
 * Documents are numbered in the order in which they are added.  Disk, a document: 40 bytes, its id,
 * 4 or 8 bytes a shingle, a byte a hash (rounded up to 64), 8 bytes a band; and until they have been
 * linked 16 more a band.
 */
#ifndef CURATE_DEDUP_STORE_H
#define CURATE_DEDUP_STORE_H

#include <pthread.h>

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
    const char *dir;
    size_t cap; /* of a file's buffer */
    struct spill docs, sigs, ids, texts, keys[STORE_PARTS];
    struct set_files sets;
    uint64_t n;
    pthread_mutex_t lock; /* of all that any thread may call while documents come */
    char *run; /* records that follow one another, not yet in sigs */
    uint64_t run_first;
    size_t run_n;
};

/* bands, sketch_bytes and hash_bytes as in b.  buffers: bytes of memory for all files but those of threads.  Close it in any
 * case. */
int dedup_store_open(struct dedup_store *s, const struct dedup_bands *b, const char *dir, int64_t buffers,
                     struct err *e);
/* A file of shingles for one writer, by set_put: first is added to places in it.  Any thread. */
int dedup_store_sets(struct dedup_store *s, struct spill **file, uint64_t *first, struct err *e);
/* Or, one at a time: puts a set of n, which is packed, into a file. */
int dedup_store_put_set(struct dedup_store *s, const void *hash, size_t n, struct set_ref *set, struct err *e);
/* The same of one that is in another file. */
int dedup_store_put_part(struct dedup_store *s, const struct spill_part *hashes, struct set_ref *set, struct err *e);
/* Bytes of all sets. */
uint64_t dedup_store_set_bytes(const struct dedup_store *s);
/* The next document.  text may be empty.  ERR_LIMIT beyond 2^32 - 2 documents. */
int dedup_store_add(struct dedup_store *s, struct set_ref set, uint64_t rank, struct span id, struct span text, struct err *e);
/* The records of n documents, the first one's arrays with the others' behind; UINT64_MAX is no document.  Documents without
 * one meet nobody, nor by a key of BUCKET_NONE.  Any thread, in any order. */
int dedup_store_put_records(struct dedup_store *s, const uint64_t *doc, size_t n, const struct band_record *first, struct err *e);
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
