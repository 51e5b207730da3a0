/* train/megatron_flags.h -- command lines written for Megatron-LM's pretrain_gpt.py.
 *
 * Flags that stand for something here have Megatron's names (train/config.h).  Of the others that its recipes give, some say
 * how its own implementation goes about things, and change nothing here; some have another name here; some ask for what
 * cannot be done.
 */
#ifndef TRAIN_MEGATRON_FLAGS_H
#define TRAIN_MEGATRON_FLAGS_H

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rewrites *argc words *argv for opts, in a: flags without effect go, and stand in without with a space before each; other names
 * become ours; a value of several words becomes one.  What opts has stays as it is, and so does what nobody knows.  ERR_ARG
 * names a flag that asks for what cannot be done, and says why; ERR_NOMEM. */
int megatron_flags(const struct opt *opts, int *argc, char ***argv, struct buf *without, struct arena *a, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
