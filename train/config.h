/* train/config.h -- what a training run is told, by Megatron's names and defaults.
 *
 * One struct, one option table over it (base/opt.h).  train_config_check() turns what
 * was asked into a run that can be built, or says why not before anything is
 * allocated; what quern cannot do yet is ERR_UNSUPPORTED with the flag's name.
 */
#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"
#include "train/documents.h"
#include "train/guard.h"
#include "train/layout.h"
#include "train/model.h"
#include "train/optim.h"
#include "train/stages.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lr_style { LR_CONSTANT, LR_LINEAR, LR_COSINE, LR_INVERSE_SQRT, LR_WSD };
enum wsd_style { WSD_EXPONENTIAL, WSD_LINEAR, WSD_COSINE, WSD_MINUS_SQRT };

/* What the optimizer updates: fp32 weights, or the bf16 ones themselves. */
enum main_params { MAIN_FP32, MAIN_BF16 };

enum { TRAIN_OPTIONS = 224 }; /* at least as many as the table has */
enum { CONFIG_GRAPHS_AUTO, CONFIG_GRAPHS_NONE, CONFIG_GRAPHS_LOCAL };

struct train_config {
    struct model_config model;
    const char *preset;        /* the flags of model_preset(), where not given */
    bool use_checkpoint_args;  /* the model is the checkpoint's, where no flag says otherwise */
    bool given[TRAIN_OPTIONS]; /* which flags were, in the order of the table */
    const char *moe_layers; /* --moe-layer-freq, for model.moe_freq and moe_list; NULL: each layer */
    bool group_query, swiglu; /* Megatron's flags for what model says */
    int64_t vocab_divisor;

    int64_t micro_batch, global_batch, train_iters, train_samples, seed, exit_interval, exit_minutes;
    const char *rampup;   /* "START,INCREMENT,SAMPLES"; NULL: the global batch from the start */
    int nan_action, spike_action; /* enum bad_action */
    double spike_factor;          /* 0: no step is a spike */
    int64_t spike_window, max_bad_steps;
    int recompute, recompute_method; /* enum recompute; 0: uniform, 1: block */
    int64_t recompute_layers;

    double lr, min_lr, warmup_fraction, clip_grad;
    struct optim_conf optim;
    struct opt_list freeze; /* patterns of parameters' names */
    struct opt_list lora_target; /* patterns of linear layers' names */
    int lr_style, wsd_style; /* enum lr_style, wsd_style */
    int64_t decay_iters, warmup_iters, wsd_iters;
    int64_t decay_samples, warmup_samples; /* > 0: in place of the first two */
    bool bf16;
    int main_params; /* enum main_params */
    struct model_fp8_run fp8;

    struct opt_list data_path;
    struct opt_list part_path[3]; /* train, valid, test: instead of data_path and split */
    const char *split, *cache_path;
    bool mock_data;
    struct documents documents;
    bool sft;    /* samples are of whole documents, */
    int packing; /* packed so: enum sft_packing */
    bool per_token;

    const char *save, *load;
    int64_t save_interval, ckpt_step;
    int64_t keep_last, keep_every; /* of struct checkpoint_keep */
    bool finetune, no_load_optim, async_save;

    int64_t eval_interval, eval_iters, log_interval;
    const char *log_file, *trace, *tensorboard;
    bool valid_sets; /* each path of part_path[1] is a set of its own */
    int graphs;  /* CONFIG_GRAPHS_: whether a micro-batch is one launch on a GPU */
    int device;  /* index into train_config_device */
    int backend; /* index into train_config_backend */
    int64_t timeout_minutes;
    bool deterministic; /* the same bits for any number of data-parallel ranks */
    int64_t world;      /* ranks in all; to be set before train_config_check, 1 by default */
    struct layout_sizes layout;
    struct stages stages; /* what is not in layout; whole when checked */
    int64_t virtual_layers, virtual_stages; /* layers of a chunk, or chunks; 0: one chunk a stage */
    bool distributed_optimizer; /* at least SHARD_OPTIM */
    int sharding;               /* enum sharding */
    bool overlap_reduce, overlap_gather, reduce_bf16, offload;
    int64_t bucket_size; /* parameters; 0: Megatron's default */

    /* Derived by train_config_check. */
    int64_t ranks;         /* that share the batch */
    size_t bucket;         /* parameters of one */
    int64_t micro_batches; /* a step, of one rank */
    int64_t iters;                           /* in all */
    int64_t samples;                         /* in all */
    int64_t tokenizer_ids;     /* that the datasets' tokenizers have, by their .sum.json; 0: they do not say */
    const char *tokenizer_of;  /* the dataset that says it */
    bool tokenizer_vocab;      /* model.vocab is that number, since no flag gave one */
    int64_t ramp_start, ramp_add; /* batch START, and ADD more after each */
    double ramp_each;             /* so many samples; 0: no ramp */
};

/* Ranks that hold the same weights and add up their gradients. */
static inline int64_t train_config_replicas(const struct train_config *c)
{
    return c->ranks * c->layout.context;
}

/* Samples of the step that begins after consumed ones: Megatron's ramp. */
int64_t train_config_batch(const struct train_config *c, int64_t consumed);

/* The names that --device takes, for device_open. */
extern const char *const train_config_device[];
/* Those of --fp8-format. */
extern const char *const train_config_fp8[];
/* The names that --distributed-backend takes, for comm_open. */
extern const char *const train_config_backend[];

/* Megatron's defaults (docs/training.md lists where we differ). */
void train_config_init(struct train_config *c);
void train_config_free(struct train_config *c);

/* The option table over c, with the entries of more (to its OPT_END) behind it.
 * To be freed by the caller; NULL when memory is out. */
struct opt *train_config_options(struct train_config *c, const struct opt *more);
/* The same of the data alone. */
struct opt *train_config_data_options(struct train_config *c, const struct opt *more);

/* Operands are more words of --data-path, so that a blend can be given as Megatron takes it.  ERR_ARG: it has none before
 * them. */
int train_config_operands(struct train_config *c, int n, char **operands, struct err *e);

/* Sets what the map in a YAML file names and no flag has given.  Texts live in a.  The errors of node_load_yaml
 * and opt_set_map. */
int train_config_read(struct train_config *c, const char *path, struct arena *a, struct err *e);

/* A setting as text: what a checkpoint remembers and a resume compares. */
#define DATA_LEDGER_ARG "data-ledger" /* of a checkpoint: the roots of the ledgers of what it was trained on (data_ledgers) */
#define MODEL_TYPE_ARG "model-type" /* of a checkpoint that was imported from transformers, and of those after it: the family */
struct checkpoint_arg {
    const char *name, *text;
    bool division; /* says how ranks divide the work, not what is computed: a resume does not compare it */
};
/* Every setting that has a value, in a. */
int train_config_args(struct train_config *c, struct arena *a, struct checkpoint_arg **args, int *n,
                      struct err *e);

/* Adds a copy of one more, in the place of one of that name. */
int train_config_keep(struct checkpoint_arg **args, int *n, const struct checkpoint_arg *more, struct arena *a, struct err *e);

/* With use_checkpoint_args, c's model becomes that of the checkpoint which the run will begin with, but for what flags have
 * given.  ERR_ARG: there is none. */
int train_config_take_model(struct train_config *c, struct err *e);

/* Those of train_config_data_options, and the seed, become what args say, where no flag gives them; but of what names the
 * data (paths, mock-data) none does where a flag names some, nor how documents are told apart where one says --sft or
 * --no-sft.  Texts live in a, or are those of args.  ERR_ARG, ERR_NOMEM. */
int train_config_take_data(struct train_config *c, const struct checkpoint_arg *args, int n, struct arena *a, struct err *e);

/* Fills in what depends on other settings, and refuses what cannot be run: ERR_ARG or
 * ERR_UNSUPPORTED, naming the flag. */
int train_config_check_data(struct train_config *c, struct err *e); /* of the data alone */
int train_config_check(struct train_config *c, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
