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

#ifdef __cplusplus
extern "C" {
#endif

/* The architecture: what a checkpoint must agree with. */
struct model_config {
    int64_t layers, hidden, heads, ffn;
    int64_t seq;          /* tokens a training sample has */
    int64_t positions;    /* rows of the position embedding, >= seq */
    int64_t vocab;        /* ids the tokenizer can give */
    int64_t padded_vocab; /* rows of the word embedding */
    bool untie;           /* an output layer of its own */
    double attention_dropout, hidden_dropout;
    double init_std;
};

enum lr_style { LR_CONSTANT, LR_LINEAR, LR_COSINE, LR_INVERSE_SQRT, LR_WSD };
enum wsd_style { WSD_EXPONENTIAL, WSD_LINEAR, WSD_COSINE, WSD_MINUS_SQRT };
enum recompute { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE };

/* Flags that are read so that they can be refused by name: see config.c. */
struct train_later {
    int64_t tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, virtual_layers;
    int64_t kv_channels, query_groups, bucket_size, amax_history, recompute_layers;
    bool group_query, swiglu, qk_layernorm, no_bias, sequence_parallel, distributed_optimizer;
    bool overlap_reduce, overlap_gather, reduce_bf16, reset_positions, reset_mask, mask_eod, async_save;
    int position_type, normalization, fp8, fp8_recipe, amax_algo, recompute_method;
    const char *rampup, *tensorboard;
    double rotary_base, rotary_percent;
};

struct train_config {
    struct model_config model;
    int64_t vocab_divisor;

    int64_t micro_batch, global_batch, train_iters, train_samples, seed, exit_interval, exit_minutes;
    int recompute; /* enum recompute */

    double lr, min_lr, warmup_fraction, weight_decay, beta1, beta2, eps, clip_grad;
    int lr_style, wsd_style; /* enum lr_style, wsd_style */
    int64_t decay_iters, warmup_iters, wsd_iters;
    bool bf16;

    struct opt_list data_path;
    struct opt_list part_path[3]; /* train, valid, test: instead of data_path and split */
    const char *split, *cache_path;
    bool mock_data;

    const char *save, *load;
    int64_t save_interval, ckpt_step;
    bool finetune, no_load_optim;

    int64_t eval_interval, eval_iters, log_interval;
    const char *log_file;
    int device; /* index into train_config_device */
    int64_t timeout_minutes;
    struct train_later later;

    /* Derived by train_config_check. */
    int64_t micro_batches; /* a step */
    int64_t iters;         /* in all */
};

/* The names that --device takes, for device_open. */
extern const char *const train_config_device[];

/* Megatron's defaults (docs/training.md lists where we differ). */
void train_config_init(struct train_config *c);
void train_config_free(struct train_config *c);

/* The option table over c, with the entries of more (to its OPT_END) behind it.
 * To be freed by the caller; NULL when memory is out. */
struct opt *train_config_options(struct train_config *c, const struct opt *more);

/* A setting as text: what a checkpoint remembers and a resume compares. */
struct checkpoint_arg {
    const char *name, *text;
};
/* Every setting that has a value, in a. */
int train_config_args(struct train_config *c, struct arena *a, struct checkpoint_arg **args, int *n,
                      struct err *e);

/* Fills in what depends on other settings, and refuses what cannot be run: ERR_ARG or
 * ERR_UNSUPPORTED, naming the flag. */
int train_config_check(struct train_config *c, struct err *e);

/* Derives padded_vocab, ffn and positions where they are 0 and checks the shape. */
int model_config_check(struct model_config *m, int64_t vocab_divisor, struct err *e);

/* Elements of all parameters (padded vocabulary included). */
int64_t model_config_params(const struct model_config *m);

/* Floating-point operations of forward and backward for one token of a sequence of
 * seq tokens: 6 for each weight of a matrix product (the output layer included, the
 * embedding look-ups not), and 6 * layers * hidden * seq for causal attention. */
double model_config_flops(const struct model_config *m, int64_t seq);

#ifdef __cplusplus
}
#endif
#endif
