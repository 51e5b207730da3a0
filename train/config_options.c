/* The option table of training. */
#include <stdlib.h>
#include <string.h>

#include "base/opt_map.h"
#include "train/config.h"

#define MAX_N INT64_C(1000000000000)

/* The kinds of MLP as OPT_ENUM takes them: "gelu|swiglu|..." */
#define MLP_OR(id, name, ...) "|" name
#define MLP_WORDS (&(MLP_KINDS(MLP_OR))[1])

#define OPT_OF_INT(field, key, flag, least, most, help) OPT_INT(0, flag, &c->model.field, least, most, help),
#define OPT_OF_NUM(field, key, flag, least, most, help) OPT_NUM(0, flag, &c->model.field, least, most, help),
#define OPT_OF_FLAG(field, key, flag, least, most, help) OPT_FLAG(0, flag, &c->model.field, help),
#define OPT_OF_WORD(field, key, flag, words, help, ...) OPT_ENUM(0, flag, &c->model.field, words, help),

#define MODEL_OPTS(c) \
    OPT_HEAD("Model"), \
    OPT_STR(0, "preset", &(c)->preset, "NAME", "gpt2-124m, gpt3-175b, llama3-8b, ...: the model's flags, where not given"), \
    OPT_INT(0, "num-layers", &(c)->model.layers, 1, 100000, "transformer layers"), \
    OPT_INT(0, "hidden-size", &(c)->model.hidden, 1, 1 << 20, "width of the residual stream"), \
    OPT_INT(0, "num-attention-heads", &(c)->model.heads, 1, 1 << 16, "attention heads"), \
    OPT_INT(0, "kv-channels", &(c)->model.head_dim, 0, 256, "width of a head; 0: hidden size / heads"), \
    OPT_FLAG(0, "group-query-attention", &(c)->group_query, "heads share keys and values"), \
    OPT_INT(0, "num-query-groups", &(c)->model.groups, 0, 1 << 16, "groups of heads that share; 0: one"), \
    OPT_INT(0, "ffn-hidden-size", &(c)->model.ffn, 0, 1 << 24, "width inside the MLP; 0: 4 (gated: 8/3) * hidden size"), \
    OPT_INT(0, "seq-length", &(c)->model.seq, 1, 1 << 24, "tokens of a sample"), \
    OPT_INT(0, "max-position-embeddings", &(c)->model.positions, 0, 1 << 24, "the longest sequence; 0: seq-length"), \
    OPT_ENUM(0, "position-embedding-type", &(c)->model.position, "learned_absolute|rope|none|yarn", "how positions are told"), \
    ATTENTION_FIELDS(OPT_OF_INT, OPT_OF_NUM, OPT_OF_FLAG, OPT_OF_WORD) \
    OPT_FLAG(0, "use-rope-scaling", &(c)->model.rope_scaling, "rotary angles for a longer context, Llama 3.1's or"), \
    OPT_ENUM(0, "rope-scaling-type", &(c)->model.rope_kind, "llama3|linear|yarn|dynamic", "which ones"), \
    OPT_NUM(0, "rope-scaling-factor", &(c)->model.rope_factor, 1, 1e6, "how much longer it is than the original"), \
    OPT_INT(0, "rope-scaling-original", &(c)->model.rope_original, 0, 1 << 24, "the original; 0: 8192 (yarn: 4096)"), \
    OPT_NUM(0, "rope-scaling-low", &(c)->model.rope_low, 0, 1e6, "slower pairs, by turns in the original, are scaled; 0: 1"), \
    OPT_NUM(0, "rope-scaling-high", &(c)->model.rope_high, 0, 1e6, "faster ones are not; 0: 4 (yarn: 32)"), \
    OPT_FLAG(0, "rope-scaling-exact", &(c)->model.rope_exact, "yarn: from and to parts of a pair, not whole pairs"), \
    OPT_NUM(0, "rope-scaling-attention", &(c)->model.rope_attention, 0, 1e6, "yarn: cosines times this; 0: .1 ln factor + 1"), \
    OPT_ENUM(0, "normalization", &(c)->model.norm, "LayerNorm|RMSNorm", "kind of norm"), \
    OPT_NUM(0, "norm-epsilon", &(c)->model.norm_eps, 1e-30, 1, "added to the variance"), \
    OPT_ENUM(0, "norm-placement", &(c)->model.norm_place, "pre|post|both", "before attention and MLP, after them, or both"), \
    OPT_FLAG(0, "apply-layernorm-1p", &(c)->model.norm_1p, "weights of norms are stored as the offset from one"), \
    OPT_FLAG(0, "disable-norm-weight", &(c)->model.norm_bare, "norms have neither weights nor biases"), \
    OPT_FLAG(0, "embedding-layernorm", &(c)->model.embedding_norm, "a norm of the embeddings, before the first layer"), \
    OPT_ENUM(0, "parallel-block", &(c)->model.parallel, "none|two-norms|one-norm", "attention and MLP see the same stream"), \
    OPT_NUM(0, "embedding-multiplier", &(c)->model.embedding_scale, 0, 1e6, "embeddings times this; 0: 1"), \
    OPT_NUM(0, "residual-multiplier", &(c)->model.residual_scale, 0, 1e6, "what attention and MLP add times this; 0: 1"), \
    OPT_ENUM(0, "mlp-activation", &(c)->model.mlp, MLP_WORDS, "of the MLP; those that end in \"glu\" gate: act(gate) * up"), \
    OPT_FLAG(0, "swiglu", &(c)->swiglu, "--mlp-activation swiglu"), \
    OPT_FLAG(0, "qk-layernorm", &(c)->model.qk_norm, "normalise queries and keys, head by head"), \
    OPT_FLAG(0, "qk-layernorm-full-width", &(c)->model.qk_norm_wide, "all heads at once"), \
    OPT_FLAG(0, "disable-bias-linear", &(c)->model.no_bias, "no biases in linear layers"), \
    OPT_FLAG(0, "add-qkv-bias", &(c)->model.qkv_bias, "a bias of queries, keys and values even then"), \
    OPT_FLAG(0, "add-proj-bias", &(c)->model.proj_bias, "a bias of attention's output layer even then"), \
    OPT_FLAG(0, "add-mlp-bias", &(c)->model.mlp_bias, "biases of the MLPs even then"), \
    OPT_INT(0, "vocab-size", &(c)->model.vocab, 0, INT32_MAX, "ids that the tokenizer gives, end of document included"), \
    OPT_INT(0, "make-vocab-size-divisible-by", &(c)->vocab_divisor, 1, 1 << 20, "pad the vocabulary to a multiple"), \
    OPT_FLAG(0, "untie-embeddings-and-output-weights", &(c)->model.untie, "an output layer of its own"), \
    OPT_NUM(0, "final-logit-softcapping", &(c)->model.logit_cap, 0, 1e6, "output logits x as X tanh(x / X); 0: none"), \
    OPT_INT(0, "mtp-num-layers", &(c)->model.mtp_layers, 0, MODEL_MTP_MOST, "predict so many tokens behind the next too"), \
    OPT_NUM(0, "mtp-loss-scaling-factor", &(c)->model.mtp_scale, 0, 1e6, "of the mean of their losses; 0.1 is usual"), \
    OPT_NUM(0, "z-loss-coeff", &(c)->model.head_z_loss, 0, 1e6, "of a loss that keeps their log-sum-exp small; PaLM's is 1e-4"), \
    OPT_INT(0, "num-experts", &(c)->model.experts, 0, MODEL_EXPERTS_MOST, "a mixture of so many experts for an MLP; 0: none"), \
    OPT_INT(0, "moe-router-topk", &(c)->model.topk, 0, ROUTE_MOST, "experts of a token; 0: 2"), \
    OPT_INT(0, "moe-ffn-hidden-size", &(c)->model.moe_ffn, 0, 1 << 24, "width inside an expert; 0: ffn-hidden-size"), \
    OPT_STR(0, "moe-layer-freq", &(c)->moe_layers, "N|LIST", "every so many layers have experts; or which: '[0]*3+[1]*58'"), \
    OPT_INT(0, "moe-shared-expert-intermediate-size", &(c)->model.moe_shared, 0, 1 << 24, \
            "width inside an MLP beside them for all tokens; 0: none"), \
    OPT_FLAG(0, "moe-shared-expert-gate", &(c)->model.shared_gate, "times the sigmoid of a product of its input"), \
    OPT_FLAG(0, "moe-router-bias", &(c)->model.router_bias, "a bias of the router's logits"), \
    OPT_FLAG(0, "moe-router-pre-softmax", &(c)->model.pre_softmax, "weights by softmax over all experts, not over the chosen"), \
    OPT_ENUM(0, "moe-router-score-function", &(c)->model.router_score, "softmax|sigmoid", "what weights are of the logits"), \
    OPT_NUM(0, "moe-router-topk-scaling-factor", &(c)->model.router_scale, 0, 1e6, "weights times this; 0: 1"), \
    OPT_FLAG(0, "moe-router-enable-expert-bias", &(c)->model.expert_bias, "choose by sigmoid plus a bias that follows loads"), \
    OPT_NUM(0, "moe-router-bias-update-rate", &(c)->model.bias_rate, 0, 1e6, "by so much a step"), \
    OPT_INT(0, "moe-router-num-groups", &(c)->model.router_groups, 0, ROUTE_GROUPS, "groups of experts; 0: none"), \
    OPT_INT(0, "moe-router-group-topk", &(c)->model.router_group_topk, 0, ROUTE_GROUPS, "a token's experts are of so many"), \
    OPT_FLAG(0, "moe-router-group-limited-greedy", &(c)->model.router_group_limited, "the ones with the best experts"), \
    OPT_ENUM(0, "moe-router-load-balancing-type", &(c)->model.balancing, "aux_loss|none|seq_aux_loss|global_aux_loss", \
             "what evens experts"), \
    OPT_NUM(0, "moe-aux-loss-coeff", &(c)->model.aux_loss, 0, 1e6, "of the loss that does; 0.01 is usual"), \
    OPT_NUM(0, "moe-z-loss-coeff", &(c)->model.z_loss, 0, 1e6, "of a loss that keeps the router's logits small"), \
    OPT_NUM(0, "moe-expert-capacity-factor", &(c)->model.capacity, 0, 1e6, "tokens an expert takes, of even use; 0: any"), \
    OPT_ENUM(0, "moe-token-drop-policy", &(c)->model.drop_policy, "probs|position", "who goes first: by weight or by place"), \
    OPT_FLAG(0, "moe-pad-expert-input-to-capacity", &(c)->model.pad_experts, "as many rows for each expert always"), \
    OPT_NUM(0, "attention-dropout", &(c)->model.attention_dropout, 0, 0.999, "drop attention probabilities"), \
    OPT_NUM(0, "hidden-dropout", &(c)->model.hidden_dropout, 0, 0.999, "drop embeddings and what a layer adds"), \
    OPT_INT(0, "lora-rank", &(c)->model.lora_rank, 0, LORA_RANK_MOST, "train adapters of this rank alone (LoRA); 0: all"), \
    OPT_NUM(0, "lora-alpha", &(c)->model.lora_alpha, 0, 1e6, "they are scaled by this / rank; 0: 32"), \
    OPT_FLAG(0, "lora-rslora", &(c)->model.lora_rslora, "by alpha / the root of the rank"), \
    OPT_LIST(0, "lora-target", &(c)->lora_target, "PATTERN", "linear layers with one, by the names in tensors'; default: all"), \
    OPT_NUM(0, "init-method-std", &(c)->model.init_std, 0, 10, "standard deviation of initial weights"), \
    MUP_FIELDS(OPT_OF_INT, OPT_OF_NUM, OPT_OF_FLAG) \
    OPT_NUM(0, "logits-multiplier", &(c)->model.logits_scale, 0, 1e6, "logits times this; 0: 1, with muP base / hidden-size")

#define TRAINING_OPTS(c) \
    OPT_HEAD("Training"), \
    OPT_INT(0, "micro-batch-size", &(c)->micro_batch, 1, 1 << 20, "samples of one forward pass"), \
    OPT_INT(0, "global-batch-size", &(c)->global_batch, 0, 1 << 24, "samples of one step; 0: one micro-batch"), \
    OPT_FLAG(0, "calculate-per-token-loss", &(c)->per_token, "a step's mean is over tokens with a loss, not micro-batches"), \
    OPT_STR(0, "rampup-batch-size", &(c)->rampup, "S,I,N", "begin with S samples, reach the global batch by I at a time in N"), \
    OPT_INT(0, "train-iters", &(c)->train_iters, 0, MAX_N, "steps in all"), \
    OPT_INT(0, "train-samples", &(c)->train_samples, 0, MAX_N, "samples in all, instead of steps"), \
    OPT_INT(0, "exit-interval", &(c)->exit_interval, 0, MAX_N, "save and exit after a step divisible by this"), \
    OPT_INT(0, "exit-duration-in-mins", &(c)->exit_minutes, 0, 1 << 30, "save and exit after this long; 0: never"), \
    OPT_ENUM(0, "nan-action", &(c)->nan_action, "stop|skip|rollback", "when a loss or gradient is not finite"), \
    OPT_NUM(0, "spike-factor", &(c)->spike_factor, 0, 1e6, "a loss or norm so many times its mean is a spike; 0: none is"), \
    OPT_INT(0, "spike-window", &(c)->spike_window, 2, MAX_N, "steps of that mean"), \
    OPT_ENUM(0, "spike-action", &(c)->spike_action, "stop|skip|rollback", "when there is one"), \
    OPT_INT(0, "max-bad-steps", &(c)->max_bad_steps, 1, MAX_N, "stop after so many without a good one between"), \
    OPT_INT(0, "seed", &(c)->seed, 0, UINT32_MAX, "of weights, dropout and data order"), \
    OPT_ENUM(0, "recompute-granularity", &(c)->recompute, "none|full|selective", \
             "compute activations again in backward"), \
    OPT_ENUM(0, "recompute-method", &(c)->recompute_method, "uniform|block", "full: all in chunks, or the first layers"), \
    OPT_INT(0, "recompute-num-layers", &(c)->recompute_layers, 1, 100000, "layers of a chunk; block: how many layers")

#define PRECISION_OPTS(c) \
    OPT_FLAG(0, "bf16", &(c)->bf16, "bf16 matrix products and activations, fp32 master weights"), \
    OPT_ENUM(0, "fp8-format", &(c)->fp8.format, "none|e4m3|hybrid", "the layers' products in FP8; hybrid: gradients E5M2"), \
    OPT_ENUM(0, "fp8-recipe", &(c)->fp8.recipe, "delayed|tensorwise|blockwise|mxfp8", \
             "scales from past steps, of the tensor at hand, of its blocks"), \
    OPT_FLAG(0, "fp8-block-scaling-fp32-scales", &(c)->fp8.fp32_scales, "blocks have any scales, not powers of two alone"), \
    OPT_INT(0, "fp8-margin", &(c)->fp8.margin, 0, 100, "scales are smaller by this power of two"), \
    OPT_INT(0, "fp8-amax-history-len", &(c)->fp8.history, 1, 1 << 20, "steps whose largest values are kept"), \
    OPT_ENUM(0, "fp8-amax-compute-algo", &(c)->fp8.algo, "most_recent|max", "which of them makes the scale"), \
    OPT_FLAG(0, "first-last-layers-bf16", &(c)->fp8.ends_bf16, "leave the first and last layers in bf16"), \
    OPT_INT(0, "num-layers-at-start-in-bf16", &(c)->fp8.start_bf16, 0, 100000, "how many at the start"), \
    OPT_INT(0, "num-layers-at-end-in-bf16", &(c)->fp8.end_bf16, 0, 100000, "how many at the end"), \
    OPT_ENUM(0, "device", &(c)->device, "auto|cpu|cuda", "where to run"), \
    OPT_ENUM(0, "cuda-graph-impl", &(c)->graphs, "auto|none|local", \
             "forward and backward of a micro-batch as one launch of a GPU")

#define OPTIMIZER_OPTS(c) \
    OPT_HEAD("Optimizer"), \
    OPT_NUM(0, "lr", &(c)->lr, 0, 1e6, "highest learning rate"), \
    OPT_NUM(0, "min-lr", &(c)->min_lr, 0, 1e6, "lowest learning rate after the decay"), \
    OPT_ENUM(0, "lr-decay-style", &(c)->lr_style, "constant|linear|cosine|inverse-square-root|WSD", "schedule"), \
    OPT_INT(0, "lr-decay-iters", &(c)->decay_iters, 0, MAX_N, "steps until the lowest rate; 0: all"), \
    OPT_INT(0, "lr-warmup-iters", &(c)->warmup_iters, 0, MAX_N, "steps of linear warm-up"), \
    OPT_INT(0, "lr-decay-samples", &(c)->decay_samples, 0, MAX_N, "the same in samples, with train-samples"), \
    OPT_INT(0, "lr-warmup-samples", &(c)->warmup_samples, 0, MAX_N, "the same in samples, with train-samples"), \
    OPT_NUM(0, "lr-warmup-fraction", &(c)->warmup_fraction, 0, 1, "warm-up as a share of the decay steps"), \
    OPT_ENUM(0, "lr-wsd-decay-style", &(c)->wsd_style, "exponential|linear|cosine|minus_sqrt", "last part of WSD"), \
    OPT_INT(0, "lr-wsd-decay-iters", &(c)->wsd_iters, 0, MAX_N, "steps of the last part of WSD"), \
    OPTIM_OPTS(&(c)->optim), \
    OPT_LIST(0, "freeze", &(c)->freeze, "PATTERN", "parameters of such names stay as they are: 'decoder.layers.0.*'"), \
    OPT_ENUM(0, "main-params-dtype", &(c)->main_params, "fp32|bf16", "bf16: no fp32 weights; updates round stochastically"), \
    OPT_NUM(0, "clip-grad", &(c)->clip_grad, 0, 1e12, "clip the gradient to this norm; 0: never")

#define DATA_OPTS(c) \
    OPT_HEAD("Data"), \
    OPT_FILES(0, "data-path", &(c)->data_path, "PREFIX", "PREFIX.bin and .idx; a blend: weight, prefix, ...", \
              OPT_NAMES_PREFIX), \
    OPT_FILES(0, "train-data-path", &(c)->part_path[0], "PREFIX", "data for training alone; no split then", \
              OPT_NAMES_PREFIX), \
    OPT_FILES(0, "valid-data-path", &(c)->part_path[1], "PREFIX", "data for validation alone", OPT_NAMES_PREFIX), \
    OPT_FILES(0, "test-data-path", &(c)->part_path[2], "PREFIX", "data for the test alone", OPT_NAMES_PREFIX), \
    OPT_FLAG(0, "multiple-validation-sets", &(c)->valid_sets, "each valid-data-path is a set of its own, no blend"), \
    OPT_STR(0, "split", &(c)->split, "A,B,C", "shares for train, valid and test"), \
    OPT_FOLDER(0, "data-cache-path", &(c)->cache_path, "DIR", "keep the sample order here, as Megatron does"), \
    OPT_FLAG(0, "mock-data", &(c)->mock_data, "random tokens instead of a dataset"), \
    OPT_INT(0, "eod-id", &(c)->documents.eod, -1, INT32_MAX, "the token that ends a document; -1: none is told apart"), \
    OPT_FLAG(0, "reset-position-ids", &(c)->documents.positions, "positions start again with each document"), \
    OPT_FLAG(0, "reset-attention-mask", &(c)->documents.attention, "a token sees its own document alone"), \
    OPT_FLAG(0, "eod-mask-loss", &(c)->documents.mask_loss, "no loss where the input is an end of document"), \
    OPT_FLAG(0, "sft", &(c)->sft, "samples are of whole documents, for fine-tuning"), \
    OPT_ENUM(0, "packing-strategy", &(c)->packing, "bfd|wrapped|none", "how: best fit; end to end; one each")

#define CHECKPOINT_OPTS(c) \
    OPT_HEAD("Checkpoints"), \
    OPT_FOLDER(0, "save", &(c)->save, "DIR", "write checkpoints here; go on from the last one found here"), \
    OPT_FOLDER(0, "load", &(c)->load, "DIR", "start from the last checkpoint here (default: the one of --save)"), \
    OPT_INT(0, "save-interval", &(c)->save_interval, 0, MAX_N, "steps between checkpoints; 0: at the end only"), \
    OPT_INT(0, "keep-last", &(c)->keep_last, 0, MAX_N, "keep so many of the newest checkpoints in --save; 0: all"), \
    OPT_INT(0, "keep-every", &(c)->keep_every, 0, MAX_N, "and those whose step is a multiple of this; 0: no others"), \
    OPT_INT(0, "ckpt-step", &(c)->ckpt_step, -1, MAX_N, "load the checkpoint of this step; -1: the last whole one"), \
    OPT_FLAG(0, "async-save", &(c)->async_save, "write checkpoints while training goes on, from a copy in memory"), \
    OPT_FLAG(0, "use-checkpoint-args", &(c)->use_checkpoint_args, "the checkpoint's model, where no flag says otherwise"), \
    OPT_FLAG(0, "finetune", &(c)->finetune, "load weights only and start at step 0"), \
    OPT_FLAG(0, "no-load-optim", &(c)->no_load_optim, "load weights and step, not the optimizer's moments")

#define LOG_OPTS(c) \
    OPT_HEAD("Evaluation and log"), \
    OPT_INT(0, "eval-interval", &(c)->eval_interval, 0, MAX_N, "steps between evaluations; 0: never"), \
    OPT_INT(0, "eval-iters", &(c)->eval_iters, 0, MAX_N, "global batches of an evaluation; 0: no evaluation"), \
    OPT_INT(0, "log-interval", &(c)->log_interval, 1, MAX_N, "steps between lines on standard output"), \
    OPT_FOLDER(0, "tensorboard-dir", &(c)->tensorboard, "DIR", "write TensorBoard event files here"), \
    OPT_OUT(0, "log-file", &(c)->log_file, "FILE", "append a JSON line a step, and one for the evaluation at the end"), \
    OPT_OUT(0, "trace", &(c)->trace, "FILE", "write a timeline for Chrome's tracing, a file a rank"), \
    OPT_INT(0, "distributed-timeout-minutes", &(c)->timeout_minutes, 1, 1 << 20, "name a collective that hangs"), \
    OPT_FLAG(0, "deterministic", &(c)->deterministic, \
        "the same bits for any number of data-parallel ranks and of stages, and in every run on a GPU")

/* How ranks divide the work, not what is computed: a resume does not compare these. */
#define DIVISION_OPTS(c) \
    OPT_HEAD("Parallelism"), \
    OPT_ENUM(0, "distributed-backend", &(c)->backend, "auto|mpi|tcp|nccl", "what ranks go by"), \
    OPT_INT(0, "tensor-model-parallel-size", &(c)->layout.tensor, 1, 1 << 20, "ranks that share each layer"), \
    OPT_FLAG(0, "sequence-parallel", &(c)->layout.sequence, "they share the rows of norms and dropout too"), \
    OPT_INT(0, "context-parallel-size", &(c)->layout.context, 1, 1 << 20, "ranks that share each sequence"), \
    OPT_INT(0, "expert-model-parallel-size", &(c)->layout.expert, 1, 1 << 20, "ranks that share the experts"), \
    OPT_INT(0, "pipeline-model-parallel-size", &(c)->layout.pipe, 1, 1 << 20, "stages: ranks that share the depth"), \
    OPT_INT(0, "num-layers-per-virtual-pipeline-stage", &(c)->virtual_layers, 0, 100000, \
            "interleaved stages: layers of each of a stage's parts; 0: one part a stage"), \
    OPT_INT(0, "num-virtual-stages-per-pipeline-rank", &(c)->virtual_stages, 0, 100000, "the same, as how many parts"), \
    OPT_INT(0, "decoder-first-pipeline-num-layers", &(c)->stages.first, 0, 100000, "layers of the first stage; 0: as others"), \
    OPT_INT(0, "decoder-last-pipeline-num-layers", &(c)->stages.last, 0, 100000, "layers of the last stage; 0: as others"), \
    OPT_FLAG(0, "account-for-embedding-in-pipeline-split", &(c)->stages.embedding, "the embedding counts as a layer"), \
    OPT_FLAG(0, "account-for-loss-in-pipeline-split", &(c)->stages.head, "the output layer counts as a layer"), \
    OPT_ENUM(0, "data-parallel-sharding-strategy", &(c)->sharding, "no_shard|optim|optim_grads|optim_grads_params", \
             "what data-parallel ranks share: nothing, or as ZeRO-1, 2, 3"), \
    OPT_FLAG(0, "use-distributed-optimizer", &(c)->distributed_optimizer, "they share the optimizer's state (optim)"), \
    OPT_FLAG(0, "overlap-grad-reduce", &(c)->overlap_reduce, "reduce gradients while backward runs"), \
    OPT_FLAG(0, "overlap-param-gather", &(c)->overlap_gather, "gather parameters while forward runs"), \
    OPT_FLAG(0, "grad-reduce-in-bf16", &(c)->reduce_bf16, "gradients leave a rank in bf16; summed in fp32"), \
    OPT_FLAG(0, "optimizer-cpu-offload", &(c)->offload, "a GPU's optimizer state stays in the host's memory"), \
    OPT_INT(0, "ddp-bucket-size", &(c)->bucket_size, 0, MAX_N, "parameters reduced in one call; 0: 40M, or 1M a rank")

/* Entries own of c, which from now on knows which of them are given, and those of more behind them. */
static struct opt *join(struct train_config *c, const struct opt *own, size_t n_own, const struct opt *more)
{
    size_t n = 1;
    struct opt *all;

    while (more[n - 1].type != OPT_TYPE_END)
        n++;
    all = malloc((n_own + n) * sizeof *all);
    if (all) {
        memcpy(all, own, n_own * sizeof *all);
        memcpy(all + n_own, more, n * sizeof *more);
        for (size_t i = 0; i < n_own; i++)
            all[i].given = &c->given[i];
    }
    return all;
}

struct opt *train_config_options(struct train_config *c, const struct opt *more)
{
    const struct opt own[] = {
        MODEL_OPTS(c), TRAINING_OPTS(c), PRECISION_OPTS(c), OPTIMIZER_OPTS(c), DATA_OPTS(c),
        CHECKPOINT_OPTS(c), LOG_OPTS(c), DIVISION_OPTS(c),
    };
    _Static_assert(sizeof own / sizeof *own <= TRAIN_OPTIONS, "room for what was given");

    return join(c, own, sizeof own / sizeof *own, more);
}

struct opt *train_config_data_options(struct train_config *c, const struct opt *more)
{
    const struct opt own[] = {DATA_OPTS(c)};

    return join(c, own, sizeof own / sizeof *own, more);
}

int train_config_operands(struct train_config *c, int n, char **operands, struct err *e)
{
    if (n > 0 && c->data_path.n == 0)
        return err_set(e, ERR_ARG, "it takes no operands: '%s'", operands[0]);
    for (int i = 0; i < n; i++)
        TRY(opt_list_add(&c->data_path, operands[i], e));
    return 0;
}

int train_config_read(struct train_config *c, const char *path, struct arena *a, struct err *e)
{
    const struct opt none[] = {OPT_END};
    struct opt *opts;
    struct node *root;
    int rc;

    TRY(node_load_yaml(a, path, &root, e));
    opts = train_config_options(c, none);
    if (!opts)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = opt_set_map(opts, "train", root, path, a, e);
    free(opts);
    return rc;
}

/* Whether a setting is one of DIVISION_OPTS. */
static bool is_division(struct train_config *c, const char *name)
{
    const struct opt opts[] = {DIVISION_OPTS(c), OPT_END};

    return opt_find(opts, name) != NULL;
}

int train_config_args(struct train_config *c, struct arena *a, struct checkpoint_arg **args, int *n, struct err *e)
{
    const struct opt none[] = {OPT_END};
    struct opt *opts = train_config_options(c, none);
    struct checkpoint_arg *v;
    struct buf text = {0};
    int rc = 0, count = 0;

    for (const struct opt *o = opts; o && o->type != OPT_TYPE_END; o++)
        count++;
    v = arena_calloc(a, (size_t)count + 1, sizeof *v);
    if (!opts || !v)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    *n = 0;
    for (const struct opt *o = opts; rc == 0 && o->type != OPT_TYPE_END; o++) {
        buf_clear(&text);
        opt_put_text(&text, o);
        if (text.n == 0)
            continue;
        v[*n].name = o->name;
        v[*n].division = is_division(c, o->name);
        v[*n].text = arena_dup(a, buf_span(&text)).p;
        if (!v[(*n)++].text)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    if (text.failed)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    buf_free(&text);
    free(opts);
    *args = v;
    return rc;
}

int train_config_keep(struct checkpoint_arg **args, int *n, const struct checkpoint_arg *more, struct arena *a, struct err *e)
{
    struct checkpoint_arg *v = arena_calloc(a, (size_t)*n + 1, sizeof *v);
    struct span name = arena_dup(a, span_of(more->name)), text = arena_dup(a, span_of(more->text));
    int at = 0;

    if (!v || !name.p || !text.p)
        return err_set(e, ERR_NOMEM, "out of memory");
    memcpy(v, *args, (size_t)*n * sizeof *v);
    while (at < *n && strcmp(v[at].name, name.p) != 0)
        at++;
    v[at] = (struct checkpoint_arg){.name = name.p, .text = text.p};
    *n += at == *n;
    *args = v;
    return 0;
}
