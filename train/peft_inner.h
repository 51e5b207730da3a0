/* train/peft_inner.h -- inside peft*.c only: which parameters are adapters, and what PEFT calls them. */
#ifndef TRAIN_PEFT_INNER_H
#define TRAIN_PEFT_INNER_H

#include "train/hf.h"
#include "train/hf_copy.h"
#include "train/hf_family.h"
#include "train/lora.h"
#include "train/peft.h"

/* The adapter of an expert: the layer, which of the two layers of all experts, the expert, which half. */
struct peft_half {
    int64_t layer, expert;
    enum layer_param w;
    bool b;
};

/* All of a logical tensor in fp32. */
int peft_load(const struct checkpoint *ck, const struct param *q, float *to, struct err *e);
/* The numbers of the largest parameter. */
size_t peft_largest(const struct params *p);
/* Whether parameter i is one, and which. */
bool peft_expert_half(const struct params *p, int i, struct peft_half *of);
/* The weight that parameter i is the A or B of, of no expert; -1: it is no adapter's. */
int peft_adapted(const struct params *p, int i, bool *b);
/* "base_model.model.PIECE.lora_A.weight". */
void peft_name(char name[192], const struct hf_piece *piece, char half);
/* Transformers keep the experts of a layer in two tensors, gate_up_proj and down_proj.  An adapter of one wraps the module, first
 * that of the first, so that where both have one this is the inner one.  A (experts * rank, in) has the experts' one below the
 * other, of B (out, rank * experts) neighbouring columns are of neighbouring experts. */
void peft_experts_name(char name[192], int64_t layer, bool inner, char half);
/* The tensor beside which adapters of w are, as target_parameters has it. */
const char *peft_experts_target(enum layer_param w);
/* Whether adapter w of experts is the inner one of two. */
bool peft_experts_inner(const struct model_config *m, enum layer_param w);
/* The pieces of weight w, as they are of B: that is never turned. */
int peft_pieces(const struct model_config *m, const struct hf_family *family, const struct params *p, int w,
                struct hf_piece piece[HF_PIECES]);
/* Behind the last of n pieces that is of the same module as the k-th. */
int peft_module_end(const struct hf_piece *piece, int k, int n);
/* Whether transformers keep experts as ours are: not those that stand in one tensor in files of the model too (GPT-OSS's). */
int peft_check_experts(const char *what, const struct model_config *m, const struct hf_family *family,
                       const struct params *p, struct err *e);
/* Of the settings of a checkpoint as what it came from transformers. */
void peft_keep_type(struct checkpoint_info *info, const struct checkpoint_info *of);
/* Writes the model of info, parameter by parameter. */
int peft_save(const struct params *p, const struct checkpoint_info *info, const char *dir,
              safetensors_data_fn *fn, void *arg, struct err *e);
#endif
