/* train/hf.h -- checkpoints of Hugging Face's transformers: safetensors and config.json.
 *
 * A folder has config.json and model.safetensors, or else several files under
 * model.safetensors.index.json ({"weight_map":{"TENSOR":"FILE",...}}).  train/hf_family.c lists the models that are known.
 * Everything is read and written a tensor at a time.
 */
#ifndef TRAIN_HF_H
#define TRAIN_HF_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/checkpoint.h"
#include "train/hf_copy.h"
#include "train/params.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_family; /* train/hf_family.h */

/* config.json to the model it describes, checked; padded_vocab is vocab up to a multiple of
 * divisor.  ERR_UNSUPPORTED names what cannot be done here, or the key that is not known.  what: the file, for messages. */
int hf_config_parse(const char *what, struct span text, int64_t divisor, struct model_config *m,
                    const struct hf_family **family, struct err *e);
/* Whether a family has such a model: whether its config.json would say so.  ERR_UNSUPPORTED names what it lacks. */
int hf_family_has(const struct hf_family *family, const struct model_config *m, struct err *e);
/* The first family that has it; ERR_UNSUPPORTED when none does. */
int hf_family_of(const struct model_config *m, const struct hf_family **family, struct err *e);
/* Appends config.json.  dtype: "float32" and so on. */
int hf_config_put(struct buf *b, const struct model_config *m, const struct hf_family *family, const char *dtype);

/* What one of their tensors is of one of ours: its rows `row` on, `rows` many, which stand in theirs as `at` says (hf_copy.h).
 * Pieces of one tensor follow each other.  Rows of the vocabulary's padding are in no piece. */
struct hf_piece {
    char name[128];
    int64_t row, rows;
    struct hf_at at;
    int64_t member, members; /* it is so much of the tensor's first axis; members 0: there is no such axis */
    bool fp32; /* theirs is in fp32 always */
};
enum { HF_PIECES = 3 };
/* The parameters of all of m, and behind them what else a model of transformers has: biases of experts (expert_bias.h).  To be
 * freed by params_free. */
int hf_params_init(struct params *p, const struct model_config *m, struct err *e);
/* The pieces of parameter i; how many; 0: the family has no such parameter. */
int hf_pieces(const struct model_config *m, const struct hf_family *family, const struct params *p, int i,
              struct hf_piece piece[HF_PIECES]);
/* Whether a tensor is the output layer. */
bool hf_is_output(const struct hf_family *family, struct span name);

/* The files of a folder, mapped. */
struct hf_files;
int hf_files_open(struct hf_files **h, const char *dir, struct err *e);
void hf_files_close(struct hf_files *h);
/* The number of the tensor with that name, that of the first file which has one; -1 if there is none. */
int hf_files_find(const struct hf_files *h, const char *name);
/* Tensor i of all, which are in the order of their names, and *file, its file; NULL before the first and behind the last. */
const struct safetensor *hf_files_tensor(const struct hf_files *h, int i, const char **file);

/* The files that the text of an index.json names, without repetition, in a. */
int hf_index_parse(struct arena *a, const char *what, struct span text, const char ***files, int *n, struct err *e);

/* Writes the model in folder from as the checkpoint of step 0 in dir.  seq: tokens of a sample
 * that it says (0: as many as the model takes). */
int hf_import(const char *from, const char *dir, int64_t seq, int64_t divisor, struct err *e);

/* How a model is written. */
struct hf_written {
    const char *dtype;     /* "F32", "BF16" or "F16" */
    int64_t shard;         /* files of at most so many bytes, if no tensor is larger */
    const char *type;      /* the family; NULL: as which it was imported, or else the first that has such a model */
    const char *tokenizer; /* a folder whose tokenizer's files and generation_config.json are copied; NULL: none is */
};
/* Writes the weights of ck to folder to, which must be empty or missing. */
int hf_export(const struct checkpoint *ck, const char *to, const struct hf_written *as, struct err *e);

/* As which family a checkpoint is written: type, or if that is NULL as which it was imported, or else the first that has such a
 * model. */
int hf_family_for(const struct checkpoint_info *info, const char *type, const struct hf_family **family, struct err *e);
/* Makes the folder, or holds it to be empty but for what a killed export left (whose last file has its temporary name still):
 * files of another model beside ours would be read with them. */
int hf_make_empty(const char *to, const char *last, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
