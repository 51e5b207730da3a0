/* train/hf.h -- checkpoints of Hugging Face's transformers: safetensors and config.json.
 *
 * A folder has config.json and model.safetensors, or else several files under
 * model.safetensors.index.json ({"weight_map":{"TENSOR":"FILE",...}}).  Models that are known:
 * gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe.  Everything is read and written a tensor at a time.
 */
#ifndef TRAIN_HF_H
#define TRAIN_HF_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/checkpoint.h"
#include "train/params.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hf_family { HF_GPT2, HF_LLAMA, HF_QWEN2, HF_QWEN3, HF_MIXTRAL, HF_QWEN3_MOE, HF_QWEN2_MOE };

/* config.json to the model it describes, checked; padded_vocab is vocab up to a multiple of
 * divisor.  ERR_UNSUPPORTED names what cannot be done here.  what: the file, for messages. */
int hf_config_parse(const char *what, struct span text, int64_t divisor, struct model_config *m,
                    enum hf_family *family, struct err *e);
/* The family that has such a model; ERR_UNSUPPORTED when none does. */
int hf_family_of(const struct model_config *m, enum hf_family *family, struct err *e);
/* Appends config.json.  dtype: "float32" and so on. */
int hf_config_put(struct buf *b, const struct model_config *m, enum hf_family family, const char *dtype);

/* What one of their tensors is of one of ours: its rows `row` on, `rows` many.  GPT-2's matrices
 * are stored transposed.  Rows of the vocabulary's padding are in no piece. */
struct hf_piece {
    char name[128];
    int64_t row, rows;
    bool transposed;
};
enum { HF_PIECES = 3 };
/* The pieces of parameter i; how many. */
int hf_pieces(const struct model_config *m, enum hf_family family, const struct params *p, int i,
              struct hf_piece piece[HF_PIECES]);

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

/* Writes the weights of ck to folder to, which must be empty or missing; dtype "F32", "BF16" or
 * "F16"; files of at most shard bytes, if no tensor is larger. */
int hf_export(const struct checkpoint *ck, const char *to, const char *dtype, int64_t shard, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
