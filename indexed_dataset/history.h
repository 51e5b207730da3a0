/* indexed_dataset/history.h -- which samples of which data each step of a run of training took, as its checkpoints say.
 *
 * Of the steps whose updates are in the weights, and of those that were skipped between them: what a rollback undid is not
 * there, but its samples are missing from those that follow.  Consecutive steps that took as many samples each, one after
 * another, are one entry, so the history of most runs is one entry long.  In a checkpoint's metadata:
 *     {"data":[{...},...],"steps":[[FIRST STEP, STEPS, FIRST SAMPLE, SAMPLES A STEP, DATA, SKIPPED],...]}
 * DATA: which of `data`; SKIPPED: 1 where the steps took samples but made no update.  docs/checkpoints.md.
 */
#ifndef INDEXED_DATASET_HISTORY_H
#define INDEXED_DATASET_HISTORY_H

#include "base/err.h"
#include "base/mem.h"
#include "base/node.h"

#ifdef __cplusplus
extern "C" {
#endif

struct history_entry {
    int64_t step, steps;   /* the first of them, 1 or more; how many */
    int64_t sample, batch; /* the first sample, from 0, as counted over all that the run consumed; samples a step */
    int64_t data;          /* which of struct history's */
    bool skipped;
};

/* Zero-initialise. */
struct history {
    struct history_entry *entry; /* each goes on where the one before ended */
    size_t n, cap;
    struct span *data; /* JSON: what the samples are of, as train/data.c describes it */
    size_t n_data, data_cap;
    struct arena texts;
};
void history_free(struct history *h);

/* Adds one step after the last one, of the data that `data` describes.  ERR_NOMEM. */
int history_add(struct history *h, const struct history_entry *one, struct span data, struct err *e);
/* Forgets the steps from this one on. */
void history_cut(struct history *h, int64_t step);
/* The entry that has a step; NULL: none. */
const struct history_entry *history_find(const struct history *h, int64_t step);
/* The last step, 0 where there is none; and the sample after its last one. */
int64_t history_end(const struct history *h, int64_t *sample);

/* Whether a run with the history h came by where one with the history of ended. */
bool history_begins(const struct history *h, const struct history *of);

int history_put(const struct history *h, struct buf *b);
/* h is empty before, and to be freed.  what: for the error.  ERR_FORMAT, ERR_NOMEM. */
int history_parse(struct history *h, const struct node *n, const char *what, struct err *e);
/* The same of text. */
int history_read(struct history *h, struct span text, const char *what, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
