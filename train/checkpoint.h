/* train/checkpoint.h -- checkpoints: folders that are whole or not there.
 *
 *   DIR/iter_0000100/model.safetensors       weights, F32
 *                    optimizer.safetensors   what the optimizer keeps (train/pieces.h), F32; fp8.NAME (train/fp8.h)
 *                    metadata.json           step, model, settings, checksums
 *   DIR/latest_checkpointed_iteration.txt    100
 *
 * Several ranks write model-rank-00000.safetensors and so on, with slices of the logical tensors
 * (train/slices.h); any ranks load what any ranks have saved.
 *
 * A checkpoint is written to a folder DIR/.iter_0000100.MARK.tmp, each file fsynced, metadata
 * last, then renamed, then the text file is replaced: whoever is killed anywhere in between
 * leaves the one before it.  Every byte is under an XXH3 checksum in the metadata, and
 * the metadata under its own.  docs/checkpoints.md has the format byte by byte.
 */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "indexed_dataset/checkpoint_history.h"
#include "train/config.h"
#include "train/params.h"
#include "train/pieces.h"
#include "train/safetensors.h"
#include "train/slices.h"

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
    int64_t updates;   /* that the optimizer's state is of; as many as steps, but where steps were skipped or it began anew */
    struct span history; /* as JSON (indexed_dataset/history.h); empty: it has none, as those of version 0.1 */
};

/* ---- writing; train/saver.h is how ranks do it ---- */

/* The folder of a checkpoint that is being written; dir is the caller's. */
struct checkpoint_folder {
    const char *dir;
    int64_t step;
    uint64_t mark; /* the same on all ranks */
    int lock;      /* of the rank that has begun: the folder's, by which others see that it is written */
};

/* Before a run: dir, which is made if it is missing, is this process's to save in until it ends.  ERR_IO: it is no place to
 * save in; another one saves there, and was waited for (of a run that was killed some ranks may live on for a while).  Where
 * folders cannot be locked nobody is kept out. */
int checkpoint_claim(const char *dir, struct err *e);
/* One rank, before all others: makes dir if it is missing, removes what killed runs have left there, makes
 * the folder and sets its mark. */
int checkpoint_begin(struct checkpoint_folder *f, struct err *e);
/* One process, before it saves for the first time: removes what killed runs have left in dir.  What is still being written, as
 * by a run that is about to end, stays, and so does all where there are no locks: checkpoint_begin removes that. */
void checkpoint_sweep(const char *dir);
/* Each rank: writes v[0..n), piece i's bytes from fn, to files of its own, fsynced, and appends their
 * entries in the metadata. */
int checkpoint_write(const struct checkpoint_folder *f, int rank, int ranks, const struct piece *v, int n,
                     safetensors_data_fn *fn, void *arg, struct buf *entries, struct err *e);
/* One rank, behind all others: entries are all ranks', in their order, each as checkpoint_write gave it.  A
 * checkpoint of the same step is replaced.  On failure what stood in dir stands; of this one nothing is left,
 * unless it is whole and only its name could not be made sure of.  ERR_LIMIT: metadata above CHECKPOINT_METADATA. */
int checkpoint_commit(const struct checkpoint_folder *f, const struct checkpoint_info *info, const struct span *entries,
                      int ranks, struct err *e);
/* In its place: removes the folder. */
void checkpoint_abort(const struct checkpoint_folder *f);

/* Which checkpoints stay when another has been committed: the newest `last` (0: all), and those whose step is a multiple of
 * `every` (0: none). */
struct checkpoint_keep {
    int64_t last, every;
};
/* After checkpoint_commit of step, by the same process, or when a run goes on from step: removes those that need not
 * stay, of the steps up to this one, which stays.  Each loses its name before its first file, so that whoever is killed
 * leaves whole ones and what checkpoint_begin clears away.  ERR_IO names one that is still there. */
int checkpoint_thin(const char *dir, int64_t step, const struct checkpoint_keep *keep, struct err *e);

/* All of it by one process, without others. */
int checkpoint_save_from(const char *dir, const struct checkpoint_info *info, const struct piece *v, int n,
                         safetensors_data_fn *fn, void *arg, struct err *e);

/* ---- reading ---- */

struct checkpoint;

/* Opens a checkpoint in dir and verifies all of it.  step CHECKPOINT_LAST: the one that
 * latest_checkpointed_iteration.txt names, or if it is damaged the one before it, with
 * a warning that names the damage.  Otherwise that step or an error.  *ck is NULL,
 * with 0 returned, when no step is given and dir has no checkpoint at all. */
enum { CHECKPOINT_LAST = -1 };
int checkpoint_open(struct checkpoint **ck, const char *dir, int64_t step, struct err *e);
/* The same by all ranks of group: each verifies a share, and all open the same one. */
int checkpoint_open_all(struct checkpoint **ck, struct comm *group, const char *dir, int64_t step, struct err *e);
/* The same without reading the tensors: their checksums are not verified. */
int checkpoint_peek(struct checkpoint **ck, const char *dir, int64_t step, struct err *e);
void checkpoint_close(struct checkpoint *ck);
const struct checkpoint_info *checkpoint_info(const struct checkpoint *ck);
const char *checkpoint_path(const struct checkpoint *ck);
/* Whether it has the tensors of part: an imported one has weights alone. */
bool checkpoint_has(const struct checkpoint *ck, enum checkpoint_part part);
/* What its files hold, sorted. */
const struct slices *checkpoint_slices(const struct checkpoint *ck);

/* Fills pieces (slices_load): what each rank wants, whoever saved it, from the mapped files.  ERR_IO: a disk failed. */
int checkpoint_load(const struct checkpoint *ck, struct device *dev, const struct piece *v, int n, struct err *e);
/* Fills a part's slab on dev, laid out by p.  Padding between tensors is set to 0. */
int checkpoint_load_slab(const struct checkpoint *ck, struct device *dev, enum checkpoint_part part,
                         const struct params *p, float *slab, struct err *e);

/* Writes it to dir as one process would have: whole tensors in two files. */
int checkpoint_join(const struct checkpoint *ck, const char *dir, struct err *e);

/* Parses metadata.json into info; strings live in a.  For checkpoint_open and fuzzing. */
struct node;
int checkpoint_parse_metadata(struct arena *a, const char *what, struct span text,
                              struct checkpoint_info *info, const struct node **files, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
