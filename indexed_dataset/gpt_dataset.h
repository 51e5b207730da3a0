/* indexed_dataset/gpt_dataset.h -- train, valid and test sets from prefixes.
 *
 * What Megatron's --data-path, --split and sample counts give: one dataset or a blend, in
 * its order, bit for bit.
 */
#ifndef INDEXED_DATASET_GPT_DATASET_H
#define INDEXED_DATASET_GPT_DATASET_H

#include "base/err.h"
#include "indexed_dataset/gpt_index.h"

enum gpt_split { GPT_TRAIN, GPT_VALID, GPT_TEST, GPT_SPLITS };

struct gpt_conf {
    /* --data-path: one prefix; an odd number: prefixes only; an even number: weight and
     * prefix in turn if the first of each pair is a number. */
    const char *const *paths;
    int n_paths;
    const char *split;            /* --split: "969,30,1"; over sequences */
    int64_t seq_length;
    int64_t samples[GPT_SPLITS];  /* wanted; 0: this split is not opened; < 0: one epoch */
    uint32_t seed;
};

struct gpt_dataset;

/* Opens the splits: out[s] is NULL where samples[s] is 0 or the split has no share.
 * ERR_ARG, ERR_IO, ERR_FORMAT, ERR_NOMEM; then nothing is open. */
int gpt_datasets_open(struct gpt_dataset *out[GPT_SPLITS], const struct gpt_conf *c, struct err *e);
void gpt_datasets_close(struct gpt_dataset *sets[GPT_SPLITS]);

/* Samples that there are (at least what was asked for, but for blends of prefixes
 * without weights). */
uint64_t gpt_dataset_size(const struct gpt_dataset *d);
/* Sample s: seq_length + 1 ids.  Any thread. */
int gpt_dataset_get(const struct gpt_dataset *d, uint64_t s, int32_t *out, struct err *e);

/* The ratios of a split string: numbers matched by [.0-9]+, normalised, cumulated:
 * split s is [bound[s], bound[s + 1]).  ERR_ARG. */
int gpt_split_parse(const char *split, double bound[GPT_SPLITS + 1], struct err *e);
/* Which dataset gives sample s of a blend, and which of its samples: the first argmax of
 * w_i * max(s, 1) - count_i.  weights are normalised here. */
int gpt_blend_build(const double *weights, int n, uint64_t size, int16_t *dataset,
                    uint64_t *sample, struct err *e);
#endif
