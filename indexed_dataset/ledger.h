/* indexed_dataset/ledger.h -- PREFIX.ledger: where each document of a dataset came from.
 *
 * A record a document (id, URL, source), the span of its tokens, and SHA-256 over both, with a Merkle tree over all documents
 * whose root stands in the file, in PREFIX.sum.json and in checkpoints: who holds the root can prove of any document that it
 * was among those trained on, and nobody can change a token or a source without changing the root.  The format, byte by
 * byte: docs/indexed-dataset.md.  The tree: RFC 6962, section 2.1.
 */
#ifndef INDEXED_DATASET_LEDGER_H
#define INDEXED_DATASET_LEDGER_H

#include "base/sha256.h"
#include "indexed_dataset/idx_read.h"

enum { LEDGER_HEAD = 16, LEDGER_ENTRY = 48, LEDGER_FOOT = 64 };

/* ---- what is hashed ---- */

/* Appends the record of a document.  source: a JSON object.  ERR_NOMEM. */
int ledger_put_record(struct buf *b, struct span id, struct span url, struct span source);
/* The leaf of a document: its record and its tokens as they lie in .bin. */
void ledger_leaf(enum idx_dtype dtype, struct span record, struct span tokens, uint8_t leaf[SHA256_SUM]);

/* A tree that grows by one leaf at a time; zero-initialise. */
struct ledger_tree {
    uint64_t n;
    uint8_t whole[64][SHA256_SUM]; /* roots of whole subtrees, one for each bit that is set in n */
};
void ledger_tree_add(struct ledger_tree *t, const uint8_t leaf[SHA256_SUM]);
void ledger_tree_root(const struct ledger_tree *t, uint8_t root[SHA256_SUM]);

/* ---- reading ---- */

/* Memory-mapped.  Opening looks at head and foot; entries and records are checked when they are used. */
struct ledger;
/* Of PREFIX (with or without .idx or .bin).  *l is NULL and 0 is returned when there is none.  ERR_IO, ERR_FORMAT,
 * ERR_UNSUPPORTED. */
int ledger_open(struct ledger **l, const char *prefix, struct err *e);
/* Over bytes in memory, which must outlive l (tests, fuzzers). */
int ledger_open_mem(struct ledger **l, const uint8_t *p, size_t n, struct err *e);
void ledger_close(struct ledger *l);

uint64_t ledger_n_documents(const struct ledger *l);
const uint8_t *ledger_root(const struct ledger *l);

struct ledger_document {
    struct span record, id, url, source;
    uint64_t first, end; /* its tokens in .bin */
    const uint8_t *leaf;
};
/* Document d, d < ledger_n_documents.  ERR_FORMAT. */
int ledger_document(const struct ledger *l, uint64_t d, struct ledger_document *out, struct err *e);

/* Everything: that each document of x has its record, span and leaf, and that the root is theirs, also in PREFIX.sum.json.
 * The first fault is the error.  ERR_UNSUPPORTED: this build has no SHA-256. */
int ledger_verify(const struct ledger *l, const struct idx *x, struct err *e);

/* ---- writing, for idx_write.c ---- */

/* A document that is to be added. */
struct ledger_item {
    uint32_t record; /* bytes of it */
    uint64_t tokens;
    uint8_t leaf[SHA256_SUM];
};

struct ledger_writer;
/* Begins PREFIX.ledger, or goes on behind so many documents, bytes of records and tokens.  ERR_IO, ERR_UNSUPPORTED. */
int ledger_create(struct ledger_writer **w, const char *prefix, uint64_t documents, uint64_t bytes, uint64_t tokens,
                  struct err *e);
/* n documents, their records one after another. */
int ledger_add(struct ledger_writer *w, struct span records, const struct ledger_item *item, size_t n, struct err *e);
uint64_t ledger_written(const struct ledger_writer *w); /* documents */
uint64_t ledger_bytes(const struct ledger_writer *w);   /* of records */
/* Everything so far is on disk. */
int ledger_sync(struct ledger_writer *w, struct err *e);
/* Completes the file under its temporary name and flushes it; root: of its tree. */
int ledger_finish(struct ledger_writer *w, uint8_t root[SHA256_SUM], struct err *e);
/* Gives it its name.  The leaves stay for a run that goes on from a kill before the dataset has all its names; ledger_abort
 * removes them and frees w. */
int ledger_commit(struct ledger_writer *w, struct err *e);
/* Frees w; what was written goes, or stays for ledger_create.  NULL is fine. */
void ledger_abort(struct ledger_writer *w);
void ledger_leave(struct ledger_writer *w);
#endif
