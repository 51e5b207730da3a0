/* train/checkpoint.h -- checkpoints: folders that are whole or not there.
 *
 *   DIR/iter_0000100/model.safetensors       weights, F32
 *                    optimizer.safetensors   exp_avg.NAME and exp_avg_sq.NAME, F32
 *                    metadata.json           step, model, settings, checksums
 *   DIR/latest_checkpointed_iteration.txt    100
 *
 * A checkpoint is written to DIR/.iter_0000100.tmp, each file fsynced, metadata last,
 * then renamed, then the text file is replaced: whoever is killed anywhere in between
 * leaves the one before it.  Every byte is under an XXH3 checksum in the metadata, and
 * the metadata under its own.  docs/training.md has the format byte by byte.
 */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/config.h"
#include "train/params.h"
#include "train/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

struct checkpoint_info {
    int64_t iteration; /* steps done */
    int64_t consumed;  /* training samples they took */
    struct model_config model;
    struct checkpoint_arg *args;
    int n_args;
    struct guard guard;
};

/* The tensors of a part are named prefix and parameter. */
enum checkpoint_part { CHECKPOINT_WEIGHTS, CHECKPOINT_EXP_AVG, CHECKPOINT_EXP_AVG_SQ, CHECKPOINT_PARTS };
extern const char *const checkpoint_prefix[CHECKPOINT_PARTS];

/* Gives the fp32 bytes of parameter i in part; they stay until the next call. */
typedef int checkpoint_data_fn(void *arg, enum checkpoint_part part, int i, struct span *data, struct err *e);

/* Writes info and the parts below `parts` (all, or 1: weights alone), laid out by p, as a
 * checkpoint in dir (made if it is missing), a tensor at a time.  A checkpoint of the same step
 * is replaced.  On failure what stood in dir stands as it was, and nothing of this one is
 * left. */
int checkpoint_save_from(const char *dir, const struct checkpoint_info *info, const struct params *p, int parts,
                         checkpoint_data_fn *fn, void *arg, struct err *e);
/* The same from three slabs. */
int checkpoint_save(const char *dir, const struct checkpoint_info *info, const struct params *p,
                    const float *const slab[CHECKPOINT_PARTS], struct err *e);

struct checkpoint;

/* Opens a checkpoint in dir and verifies all of it.  step CHECKPOINT_LAST: the one that
 * latest_checkpointed_iteration.txt names, or if it is damaged the one before it, with
 * a warning that names the damage.  Otherwise that step or an error.  *ck is NULL,
 * with 0 returned, when no step is given and dir has no checkpoint at all. */
enum { CHECKPOINT_LAST = -1 };
int checkpoint_open(struct checkpoint **ck, const char *dir, int64_t step, struct err *e);
/* The same without reading the tensors: their checksums are not verified. */
int checkpoint_peek(struct checkpoint **ck, const char *dir, int64_t step, struct err *e);
void checkpoint_close(struct checkpoint *ck);
const struct checkpoint_info *checkpoint_info(const struct checkpoint *ck);
const char *checkpoint_path(const struct checkpoint *ck);
/* Whether it has the tensors of part: an imported one has weights alone. */
bool checkpoint_has(const struct checkpoint *ck, enum checkpoint_part part);
/* Its tensors, file after file; NULL behind the last. */
const struct safetensor *checkpoint_tensor(const struct checkpoint *ck, int i);

/* The steps in dir, newest first, in *steps (to be freed); how many, or < 0.  A dir that is not
 * there has none. */
int checkpoint_steps(const char *dir, int64_t **steps, struct err *e);

/* The bytes of a parameter in the checkpoint, as long as it is open.  ERR_FORMAT names a tensor
 * that is missing or has another shape. */
int checkpoint_find(const struct checkpoint *ck, enum checkpoint_part part, const struct param *p, struct span *data,
                    struct err *e);
/* Fills slab, laid out by p, from the checkpoint.  ERR_FORMAT names a tensor that is
 * missing or has another shape.  Padding between tensors is set to 0. */
int checkpoint_load(const struct checkpoint *ck, enum checkpoint_part part, const struct params *p,
                    float *slab, struct err *e);

/* Parses metadata.json into info; strings live in a.  For checkpoint_open and fuzzing. */
struct node;
int checkpoint_parse_metadata(struct arena *a, const char *what, struct span text,
                              struct checkpoint_info *info, const struct node **files, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
