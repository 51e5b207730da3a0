/* indexed_dataset/idx_write.h -- writes PREFIX.bin and PREFIX.idx.
 *
 * Megatron's MMIDIDX version 1 (docs/indexed-dataset.md): the same bytes as its
 * IndexedDatasetBuilder writes.  Tokens go to the .bin as they come; 4 bytes a
 * sequence and 8 a document wait in hidden files beside it, so memory is bounded.
 * The .bin, its checksums (PREFIX.sum.json) and the .idx take their names only when all
 * are whole.  Not thread-safe: append in order, from one thread at a time.
 */
#ifndef INDEXED_DATASET_IDX_WRITE_H
#define INDEXED_DATASET_IDX_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/node.h"

/* The dtype byte of the .idx.  Token ids are written as IDX_U16 or IDX_I32. */
enum { IDX_HEADER = 34, IDX_PATH_MAX = 4096 };
enum idx_dtype {
    IDX_U8 = 1, IDX_I8, IDX_I16, IDX_I32, IDX_I64, IDX_F64, IDX_F32, IDX_U16
};
/* Bytes of one token; 0 if dtype is none of the above. */
size_t idx_dtype_size(int dtype);
const char *idx_dtype_name(int dtype);
/* Megatron's rule: u16 exactly when there are fewer than 65,500 ids. */
enum idx_dtype idx_dtype_for_vocab(uint64_t vocab_size);

struct idx_writer;

/* Starts PREFIX.bin and PREFIX.idx.  ERR_IO. */
int idx_create(struct idx_writer **w, const char *prefix, enum idx_dtype dtype, struct err *e);

/* Adds one document of one sequence: n ids.  No ids: a document without a sequence,
 * as Megatron writes it.  An id that the dtype cannot hold is ERR_ARG. */
int idx_add_document(struct idx_writer *w, const uint32_t *ids, size_t n, struct err *e);

/* Adds what is encoded already: n_seqs sequences of lengths[i] tokens, their bytes in
 * the dtype, little-endian, in `bytes` (the sum of the lengths times the size of a
 * token).  A length of 0 adds no sequence.  docs == NULL: each sequence is a document,
 * one of length 0 an empty one.  Else n_docs documents end in this block: docs[j],
 * never decreasing, is how many of the n_seqs stand before the end of document j; what
 * stands behind the last belongs to a document that a later block ends.  For threads
 * that encode blocks of which one appends them in order. */
int idx_add_block(struct idx_writer *w, const void *bytes, const int32_t *lengths,
                  size_t n_seqs, const uint64_t *docs, size_t n_docs, struct err *e);

/* So far: documents, sequences, tokens. */
struct idx_totals {
    uint64_t documents, sequences, tokens;
};
struct idx_totals idx_totals(const struct idx_writer *w);

/* Has a ledger written beside it, PREFIX.ledger (indexed_dataset/ledger.h); before the first document.  ERR_IO,
 * ERR_UNSUPPORTED (a build without SHA-256). */
int idx_keep_ledger(struct idx_writer *w, struct err *e);
/* It has a loss mask (indexed_dataset/loss_mask.h), which is written before it is committed.  Without this a mask that is there,
 * of a dataset of before, goes when this one takes the name. */
void idx_has_mask(struct idx_writer *w);
/* Of the n documents that were added last, to a writer that keeps a ledger: their records, one after another, and
 * what else it says of them. */
struct ledger_item;
int idx_add_ledger(struct idx_writer *w, struct span records, const struct ledger_item *item, size_t n, struct err *e);

/* Finishes, names and frees, whatever happens.  On failure neither name stands that
 * did not stand before.  The .idx gets its name last: where it is, the .bin is.
 * extra: pairs `"key":value,...` of JSON for PREFIX.sum.json (how the tokens were
 * made); p may be NULL. */
int idx_commit(struct idx_writer *w, struct span extra, struct err *e);
/* Removes what was written and frees w.  NULL is fine. */
void idx_abort(struct idx_writer *w);

/* ---- going on with what a killed run left ---- */

/* Everything so far is on disk: appends a JSON object from which idx_resume() goes on. */
int idx_checkpoint(struct idx_writer *w, struct buf *state, struct err *e);
/* Frees w; what was written stays for idx_resume(). */
void idx_leave(struct idx_writer *w);
/* Goes on behind a checkpoint; what was written after it is cut off.  *w becomes NULL when the run
 * had come to the end and the dataset stands.  ERR_FORMAT when the files are not those of the
 * checkpoint. */
int idx_resume(struct idx_writer **w, const char *prefix, enum idx_dtype dtype, const struct node *state,
               struct err *e);
#endif
