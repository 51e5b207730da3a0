/* train/data.h -- the batches of a run: from indexed datasets, or made up.
 *
 * Sample i of a split is a pure function of the settings, so where a run stands is one
 * number: how many samples it has consumed.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "base/err.h"
#include "indexed_dataset/gpt_dataset.h"
#include "train/config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct data;

/* Opens the splits with samples[s] != 0 (< 0: one epoch of the split), by the paths, split,
 * sequence length, vocabulary and seed of c, which must outlive it.  With c->mock_data
 * tokens are random (Philox). */
int data_open(struct data **d, const struct train_config *c, const int64_t samples[GPT_SPLITS],
              struct err *e);
void data_close(struct data *d);

/* Validation sets: 1, or with --multiple-validation-sets one for each --valid-data-path.  Set i is
 * what the functions below take as the split data_valid(i); its name is its path. */
int data_valid_sets(const struct data *d);
static inline int data_valid(int i)
{
    return i ? GPT_SPLITS + i - 1 : GPT_VALID;
}
const char *data_valid_name(const struct data *d, int i);

/* Samples of a split; 0 if it is not open or has no share.  INT64_MAX for mock data. */
int64_t data_size(const struct data *d, int split);

/* Rows (n, seq) of samples: a target is -1 where there is to be no loss; starts: where in its sequence the document of each token
 * begins; NULL: nobody asks. */
struct data_rows {
    int32_t *tokens, *targets, *starts;
};
/* Samples first .. first + n - 1, counted modulo the size, to rows.  ERR_FORMAT names a sample with an id outside the
 * vocabulary. */
int data_batch(const struct data *d, int split, int64_t first, int64_t n, const struct data_rows *rows, struct err *e);
/* Whether some tokens may have no loss. */
bool data_masked(const struct data *d);

/* How many ids the tokenizers of the datasets of c have, as PREFIX.sum.json says (quern tokenize): the most of them in *ids, 0
 * where none says it, and in *of the prefix of that one, as it stands in c.  ERR_FORMAT: such a file is damaged. */
int data_vocabulary(const struct train_config *c, int64_t *ids, const char **of, struct err *e);
/* ERR_IO: one of the datasets of c is not there. */
int data_present(const struct train_config *c, struct err *e);

/* Appends the roots of the ledgers (indexed_dataset/ledger.h) of all datasets that the command line names, in its order and
 * with blanks between, "-" for one that has none; nothing where none has. */
int data_ledgers(const struct train_config *c, struct buf *roots, struct err *e);
/* Appends what decides of which documents each training sample is, as JSON, for the history in checkpoints
 * (indexed_dataset/history.h): paths with the roots of their ledgers, split, seed, length and number of samples. */
int data_describe(const struct train_config *c, struct buf *b, struct err *e);
/* The samples that training and its evaluations take, by Megatron's formulae. */
void data_wanted(const struct train_config *c, int64_t samples[GPT_SPLITS]);

#ifdef __cplusplus
}
#endif
#endif
