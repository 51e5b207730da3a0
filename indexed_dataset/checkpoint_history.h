/* indexed_dataset/checkpoint_history.h -- what a checkpoint of quern train says to those who cannot load one: which are in a
 * folder, and what each of their steps took.
 */
#ifndef INDEXED_DATASET_CHECKPOINT_HISTORY_H
#define INDEXED_DATASET_CHECKPOINT_HISTORY_H

#include "indexed_dataset/history.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CHECKPOINT_METADATA = 1 << 30 }; /* bytes of metadata.json, at most */

/* The steps in dir, newest first, in *steps (to be freed); how many, or < 0.  A dir that is not
 * there has none. */
int checkpoint_steps(const char *dir, int64_t **steps, struct err *e);

/* Whether metadata.json is as it was written: its checksum stands at its end. */
int checkpoint_check_seal(const char *what, struct span text, struct err *e);

/* The history of the checkpoint of that step in dir; step < 0: dir is the folder of a checkpoint itself, or its newest one is
 * meant.  h as for history_parse; *of, unless NULL: its step.  ERR_FORMAT, ERR_IO, ERR_UNSUPPORTED (it was written before
 * there were histories). */
int checkpoint_history(struct history *h, const char *dir, int64_t step, int64_t *of, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
