/* indexed_dataset/gpt_index.h -- from sequences to shuffled samples, as Megatron does it.
 *
 * Bit for bit the indices of megatron-core's GPTDataset (0.16): numpy's RandomState,
 * epochs, the separate last epoch.  docs/indexed-dataset.md has the rules.
 */
#ifndef INDEXED_DATASET_GPT_INDEX_H
#define INDEXED_DATASET_GPT_INDEX_H

#include <stdbool.h>

#include "indexed_dataset/idx_read.h"

struct gpt_index {
    int32_t *document;  /* n_documents: ids of sequences, each epoch shuffled in */
    uint64_t n_documents;
    uint64_t *sample;   /* 2 * (n_samples + 1): position in document[], token offset */
    uint64_t *shuffle;  /* n_samples: the sample that comes i-th */
    uint64_t n_samples, epochs, tokens_per_epoch;
    bool separate_last_epoch;
};

/* Samples of seq_length + 1 tokens from the sequences [begin, end) of x.  At least
 * `samples` of them, by as many epochs as that takes; samples < 0: one epoch.  24 bytes a
 * sample and 4 a sequence and epoch.  ERR_ARG: not even one sample of tokens; ERR_FORMAT;
 * ERR_NOMEM. */
int gpt_index_build(struct gpt_index *g, const struct idx *x, uint64_t begin, uint64_t end,
                    int64_t seq_length, int64_t samples, uint32_t seed, struct err *e);
void gpt_index_free(struct gpt_index *g);

/* Sample s in shuffled order: seq_length + 1 ids into out. */
int gpt_index_get(const struct gpt_index *g, const struct idx *x, uint64_t s,
                  int64_t seq_length, int32_t *out, struct err *e);
#endif
