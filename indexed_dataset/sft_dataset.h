/* indexed_dataset/sft_dataset.h -- documents to samples for fine-tuning: whole documents, packed.
 *
 * A sample is seq_length tokens: documents one after another, then padding.  What an epoch has is fixed by the lengths of the
 * documents; epochs of training are drawn in the orders numpy.random.RandomState(seed + epoch).shuffle gives.  The packings are
 * TRL's (pack_dataset), over all documents at once:
 *     bfd      best fit decreasing (arXiv:2404.10830): the longest document first, each into the fullest sample that has room;
 *              a document longer than a sample loses its end
 *     wrapped  all documents end to end, cut every seq_length tokens
 *     none     a sample for each document, cut like bfd's
 * The target of a token is the next one in the sample; there is none at the end of a document (wrapped: of the sample, unless
 * documents are apart), in the padding, and where the loss mask (loss_mask.h) has 0.
 */
#ifndef INDEXED_DATASET_SFT_DATASET_H
#define INDEXED_DATASET_SFT_DATASET_H

#include <stdbool.h>

#include "indexed_dataset/gpt_dataset.h"

enum sft_packing { SFT_BFD, SFT_WRAPPED, SFT_NONE };

struct sft_conf {
    enum sft_packing packing;
    bool apart; /* wrapped: no target across documents */
};

/* (seq_length) each; starts: where in the sample the document of each token begins (padding: where that does). */
struct sft_sample {
    int32_t *tokens, *targets, *starts;
};

struct sft_dataset;

/* As gpt_dataset_open: of c paths, split, sequence length, samples and seed.  A split has the share of each dataset's documents.
 * Datasets stand one after another; ERR_ARG: they have weights. */
int sft_dataset_open(struct sft_dataset *out[GPT_SPLITS], const struct gpt_conf *c, const struct sft_conf *s, struct err *e);
void sft_dataset_close(struct sft_dataset *d); /* NULL is fine */
/* Samples of an epoch; documents; those that were cut. */
int64_t sft_dataset_samples(const struct sft_dataset *d);
int64_t sft_dataset_documents(const struct sft_dataset *d);
int64_t sft_dataset_cut(const struct sft_dataset *d);
/* Sample i, of whatever epoch.  Not thread-safe. */
int sft_dataset_get(struct sft_dataset *d, int64_t i, const struct sft_sample *s, struct err *e);

/* The documents of sample i, as gpt_dataset_pieces.  Not thread-safe. */
int sft_dataset_pieces(struct sft_dataset *d, int64_t i, sample_piece_fn *fn, void *arg, struct err *e);

/* ---- packing ---- */

/* Best fit decreasing of n lengths (1 .. room) into bins of room: order[n] gets the indices, bin after bin, and first[n + 1]
 * where in it each bin begins (and the end).  *bins: how many.  ERR_NOMEM. */
int sft_pack(const int32_t *length, int64_t n, int32_t room, int64_t *order, int64_t *first, int64_t *bins, struct err *e);
#endif
