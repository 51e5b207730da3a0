/* indexed_dataset/idx_read.h -- PREFIX.bin and PREFIX.idx, memory-mapped.
 *
 * Opening costs no pass over the data: it checks the header against the sizes of the
 * files.  What lies behind (lengths, offsets, documents) is checked when it is used, so
 * a damaged .idx gives errors, never a fault.  idx_verify() checks all of it.
 */
#ifndef INDEXED_DATASET_IDX_READ_H
#define INDEXED_DATASET_IDX_READ_H

#include <stdbool.h>

#include "base/err.h"
#include "indexed_dataset/idx_write.h"

struct idx;

/* Bytes of the PREFIX of a dataset that was named with or without .idx or .bin at its end. */
int idx_prefix_length(const char *name);
/* PREFIX with or without .idx or .bin at its end.  ERR_IO, ERR_FORMAT. */
int idx_open(struct idx **x, const char *prefix, struct err *e);
/* Over bytes in memory, which must outlive x (tests, fuzzers). */
int idx_open_mem(struct idx **x, const uint8_t *idx, size_t idx_size, const uint8_t *bin,
                 size_t bin_size, struct err *e);
void idx_close(struct idx *x);

const char *idx_prefix(const struct idx *x);
enum idx_dtype idx_dtype(const struct idx *x);
uint64_t idx_n_sequences(const struct idx *x);
uint64_t idx_n_documents(const struct idx *x);
/* Whether there is a mode for each sequence (multimodal datasets). */
bool idx_has_modes(const struct idx *x);

/* Length of sequence i in tokens, i < idx_n_sequences; may be negative when the file is
 * damaged. */
int32_t idx_length(const struct idx *x, uint64_t i);
/* The tokens of sequence i as they lie in .bin; not aligned.  ERR_FORMAT if they would
 * not lie within it, ERR_ARG if there is no such sequence. */
int idx_sequence(const struct idx *x, uint64_t i, const void **tokens, int32_t *length,
                 struct err *e);
/* ERR_FORMAT if sequence i does not begin and end where its neighbours say, or would not lie within .bin. */
int idx_check_sequence(const struct idx *x, uint64_t i, struct err *e);
/* The sequences [*first, *end) of document d; same errors. */
int idx_document(const struct idx *x, uint64_t d, uint64_t *first, uint64_t *end,
                 struct err *e);
/* The document that sequence i is of, and how many tokens of it stand before the sequence; i < idx_n_sequences. */
int idx_document_of(const struct idx *x, uint64_t i, uint64_t *document, int64_t *before, struct err *e);
/* Tokens [from, from + n) of sequence i as i32 (u8, i8, i16, u16, i32; a value outside
 * i32 of an i64 file is ERR_FORMAT, floats ERR_UNSUPPORTED). */
int idx_tokens_i32(const struct idx *x, uint64_t i, int64_t from, int64_t n, int32_t *out,
                   struct err *e);

struct idx_report {
    bool sums;             /* PREFIX.sum.json was there and was compared */
    uint64_t tokens, empty_documents;
    int32_t longest, shortest; /* sequence */
    int64_t max_id;        /* largest id seen; -1 when ids were not read */
};
/* Everything: lengths positive, sequences one after another and within .bin, documents in
 * order from 0 to S, checksums where there are some, and with vocab > 0 every id within
 * 0..vocab-1.  The first fault is the error: file, offset, reason.  Uses jobs threads. */
int idx_verify(const struct idx *x, int64_t vocab, int jobs, struct idx_report *r, struct err *e);
#endif
