/* train/peft.h -- adapters as PEFT keeps them: adapter_config.json and adapter_model.safetensors.
 *
 * PEFT has a module for each matrix of transformers, ours join some: linear_qkv is q, k and v, a gated linear_fc1 gate and up.
 * Out of ours such modules get the same A, each with its rows of B.  Into ours, modules that have the same A (or of which one
 * alone has an adapter) stay as they are; where they differ A is theirs one below the other, B has theirs on its diagonal, and
 * the rank of all is three times as large, with zeros: the same function, but what is trained on is wider.
 * Experts are parameters of transformers, not modules (target_parameters): the adapters of all of a layer are one A and one B.
 */
#ifndef TRAIN_PEFT_H
#define TRAIN_PEFT_H

#include "train/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether folder dir is an adapter. */
bool peft_is(const char *dir);

/* Writes the adapters of ck to folder to, which is made or empty; dtype "F32", "BF16" or "F16".  ERR_ARG: it has none;
 * ERR_UNSUPPORTED: transformers keep its experts transposed (GPT-OSS). */
int peft_export(const struct checkpoint *ck, const char *to, const char *dtype, struct err *e);

/* Writes base, which has no adapters, with those in folder from as the checkpoint of step 0 in dir.  ERR_UNSUPPORTED names what
 * ours have not: DoRA, biases, other ranks for some modules, experts' modules. */
int peft_import(const char *from, const struct checkpoint *base, const char *dir, struct err *e);

/* Writes ck with W + s B A in place of each W that has an adapter, and without these, to dir. */
int peft_merge(const struct checkpoint *ck, const char *dir, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
