/* indexed_dataset/gpt_dataset.h -- documents to training samples, in Megatron's order.
 *
 * A sample is seq_length + 1 tokens, cut from the documents laid end to end in a
 * shuffled order; samples overlap by one token and are drawn in another shuffled order.
 * Bit for bit what Megatron core 0.16's GPTDataset and BlendedDataset draw from the
 * same files (docs/indexed-dataset.md has the rules), so a run can move between the two
 * and share the cached indices.  Reading is thread-safe.
 */
#ifndef INDEXED_DATASET_GPT_DATASET_H
#define INDEXED_DATASET_GPT_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A part of a sample: tokens [from, from + n) of a document of the dataset that was given as the path number `part` (of a blend:
 * without its weights); they are the sample's from `at` on.  What such a function returns below 0 ends the work. */
struct idx;
struct sample_piece {
    const struct idx *x;
    int part;
    uint64_t document;
    int64_t from, n, at;
};
typedef int sample_piece_fn(void *arg, const struct sample_piece *p, struct err *e);

enum gpt_split { GPT_TRAIN, GPT_VALID, GPT_TEST, GPT_SPLITS };

/* Words as they stand behind --data-path: prefixes when their count is odd or the first
 * of each pair is no number, else weight and prefix by turns. */
struct gpt_paths {
    const char *const *word;
    int n;
};

/* Which of them names dataset number `part`. */
int gpt_paths_word(const struct gpt_paths *p, int part);

struct gpt_conf {
    /* One distribution, split by `split` ("969,30,1"); or, split == NULL, one for each
     * split (n == 0: none). */
    struct gpt_paths paths, split_paths[GPT_SPLITS];
    const char *split;
    int64_t seq_length;
    int64_t samples[GPT_SPLITS]; /* at least so many of each; 0: not
                                    opened; < 0: one epoch, not of a weighted blend */
    uint32_t seed;
    int jobs;          /* threads that build; 0: one */
    const char *cache; /* folder for the indices; NULL: they are built anew each time */
    /* JSON of what identifies the tokenizer: it enters only the names in the cache.
     * NULL: null. */
    const char *tokenizer;
};

struct gpt_dataset;

/* Opens all splits.  out[i] becomes NULL when the split string leaves split i nothing
 * or no samples of it are asked for.  ERR_ARG (also: a blend that would draw more
 * than a part has), ERR_FORMAT, ERR_IO. */
int gpt_dataset_open(struct gpt_dataset *out[GPT_SPLITS], const struct gpt_conf *c,
                     struct err *e);
/* How many samples there are: what was asked for, or a few more. */
int64_t gpt_dataset_samples(const struct gpt_dataset *d);
/* Writes the seq_length + 1 tokens of sample i. */
int gpt_dataset_get(const struct gpt_dataset *d, int64_t i, int32_t *tokens, struct err *e);
/* Whether some of its files say which tokens have a loss (loss_mask.h); and for each of the seq_length + 1 tokens of sample i 1
 * where it has one, else 0. */
bool gpt_dataset_masked(const struct gpt_dataset *d);
int gpt_dataset_get_mask(const struct gpt_dataset *d, int64_t i, int32_t *mask, struct err *e);
/* The documents that sample i is cut from, in order. */
int gpt_dataset_pieces(const struct gpt_dataset *d, int64_t i, sample_piece_fn *fn, void *arg, struct err *e);
/* NULL is fine. */
void gpt_dataset_close(struct gpt_dataset *d);

/* Parses "969,30,1" into the shares [lo, hi) of each split; lo == hi: none. */
int gpt_split_parse(const char *split, double lo[GPT_SPLITS], double hi[GPT_SPLITS],
                    struct err *e);
#endif
