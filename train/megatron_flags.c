#include "train/megatron_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of flags without effect, by how many words they take: how Megatron goes about things, or what is so here anyway.
 * What asks for a guarantee, an output or a format that is not there has its place below, among those refused. */
static const char *const idle[2] = {
    "use-mcore-models use-legacy-models use-flash-attn no-masked-softmax-fusion no-bias-gelu-fusion no-bias-swiglu-fusion"
    " no-bias-dropout-fusion no-rope-fusion no-gradient-accumulation-fusion no-persist-layer-norm cross-entropy-loss-fusion"
    " apply-query-key-layer-scaling no-query-key-layer-scaling attention-softmax-in-fp32 accumulate-allreduce-grads-in-fp32"
    " openai-gelu use-cpu-initialization te-rng-tracker fp8-param-gather manual-gc exit-signal-handler"
    " overlap-p2p-communication no-overlap-p2p-communication tp-comm-overlap use-ring-exchange-p2p no-align-grad-reduce"
    " no-delay-grad-reduce delay-grad-reduce ddp-average-in-collective use-megatron-fsdp use-custom-fsdp"
    " overlap-moe-expert-parallel-comm delay-wgrad-compute moe-router-padding-for-fp8 moe-router-padding-for-quantization"
    " moe-shared-expert-overlap moe-grouped-gemm moe-use-legacy-grouped-gemm moe-permute-fusion moe-router-fusion"
    " no-mmap-bin-files no-create-attention-mask-in-dataloader create-attention-mask-in-dataloader data-sharding"
    " no-load-rng no-save-rng ckpt-fully-parallel-save ckpt-fully-parallel-load ckpt-assume-constant-structure"
    " use-persistent-ckpt-worker override-opt_param-scheduler override-opt-param-scheduler log-throughput"
    " no-log-learning-rate-to-tensorboard log-loss-scale-to-tensorboard no-log-loss-scale-to-tensorboard profile"
    " check-for-nan-in-loss-and-grad muon-use-syrk use-precision-aware-optimizer enable-cuda-graph external-cuda-graph",
    "attention-backend transformer-impl empty-unused-memory-level manual-gc-interval tokenizer-type tokenizer-model"
    " vocab-file merge-file tiktoken-pattern tiktoken-num-special-tokens num-workers num-dataset-builder-threads local-rank"
    " local_rank moe-token-dispatcher-type initial-loss-scale min-loss-scale loss-scale-window hysteresis timing-log-level"
    " timing-log-option tensorboard-log-interval tensorboard-queue-size profile-step-start profile-step-end profile-ranks"
    " nccl-communicator-config-path cuda-graph-scope cross-entropy-fusion-impl tp-comm-overlap-cfg"
    " ckpt-fully-parallel-save-process-group",
};

/* Flags whose one value, or which, changes nothing; any other cannot be. */
static const struct {
    const char *name, *values;
} only[] = {
    {"dataloader-type", " single "},
    {"moe-router-dtype", " fp32 fp64 "}, {"cp-comm-type", " p2p "}, {"weight-decay-incr-style", " constant "},
    {"lr-warmup-init", " 0 0.0 "}, {"vocab-extra-ids", " 0 "}, {"num-distributed-optimizer-instances", " 1 "},
    {"main-grads-dtype", " fp32 "},
    {"optimizer-offload-fraction", " 1 1.0 "}, {"yarn-mscale", " 1 1.0 "}, {"yarn-mscale-all-dim", " 0 0.0 "},
    {"rotary-scaling-factor", " 1 1.0 "}, {"position-embedding-scale", " 1 "}, {"rope-type", " rope "},
    {"rerun-mode", " disabled "},
    {"muon-tp-mode", " duplicated distributed "}, {"muon-scalar-optimizer", " adam "},
};

enum { RENAMED_WORDS = 6 }; /* at most */
/* What the others are here; a value stands behind it. */
static const struct {
    const char *name, *words[RENAMED_WORDS];
} renamed[] = {
    {"deterministic-mode", {"--deterministic"}},
    {"recompute-activations", {"--recompute-granularity", "selective"}},
    {"use-rotary-position-embeddings", {"--position-embedding-type", "rope"}},
    {"squared-relu", {"--mlp-activation", "relu2"}},
    {"encoder-num-layers", {"--num-layers"}},
    {"encoder-seq-length", {"--seq-length"}},
    {"model-parallel-size", {"--tensor-model-parallel-size"}},
    {"valid-iters", {"--eval-iters"}},
    {"rotary-seq-len-interpolation-factor", {"--use-rope-scaling", "--rope-scaling-type", "linear", "--rope-scaling-factor"}},
    {"yarn-rotary-scaling-factor", {"--rope-scaling-factor"}},
    {"yarn-original-max-position-embeddings", {"--rope-scaling-original"}},
    {"yarn-beta-fast", {"--rope-scaling-high"}},
    {"yarn-beta-slow", {"--rope-scaling-low"}},
    {"no-yarn-correction-range-round-to-int", {"--rope-scaling-exact"}},
    {"mup-embedding-mult", {"--embedding-multiplier"}},
    {"mup-output-mult", {"--logits-multiplier"}},
};

static const struct {
    const char *name, *why;
} refused[] = {
    {"fp16", "training is in fp32 or, with --bf16, in bf16"},
    {"loss-scale", "training is in fp32 or bf16, which need none"},
    {"no-position-embedding", "give --position-embedding-type none"},
    {"fp32-residual-connection", "the residual stream has the type of the matrix products"},
    {"apply-residual-connection-post-layernorm", "a branch adds to the stream before its norm; see --norm-placement"},
    {"quick-geglu", "--mlp-activation names the kinds of MLP"},
    {"rotary-interleaved", "rotary angles pair the halves of a head"},
    {"is-hybrid-model", "all layers are attention and an MLP"},
    {"hybrid-override-pattern", "all layers are attention and an MLP"},
    {"hybrid-layer-pattern", "all layers are attention and an MLP"},
    {"cpu-offloading", "activations stay on the device; --recompute-granularity keeps fewer, --optimizer-cpu-offload is the"
     " optimizer's state"},
    {"expert-tensor-parallel-size", "experts are cut as the layers are, by --tensor-model-parallel-size"},
    {"moe-extended-tp", "experts are cut as the layers are, by --tensor-model-parallel-size"},
    {"distribute-saved-activations", "use --sequence-parallel or --recompute-granularity"},
    {"use-torch-fsdp2", "use --data-parallel-sharding-strategy optim_grads_params"},
    {"use-tp-pp-dp-mapping", "data-parallel ranks lie between tensor ranks and stages"},
    {"use-checkpoint-opt_param-scheduler", "the schedule is that of the flags"},
    {"no-save-optim", "a checkpoint has the optimizer; checkpoint export writes weights alone"},
    {"no-check-for-nan-in-loss-and-grad", "--nan-action says what happens then"},
    {"check-for-spiky-loss", "--spike-factor says what a spike is"},
    {"check-for-large-grads", "--spike-factor says what a spike is"},
    {"data-args-path", "give --yaml-cfg with data-path"},
    {"per-split-data-args-path", "give --yaml-cfg with train-data-path, valid-data-path and test-data-path"},
    {"data-parallel-random-init", "weights do not depend on the rank"},
    {"init-method-xavier-uniform", "weights begin as normal(0, --init-method-std)"},
    {"start-weight-decay", "the weight decay is constant"},
    {"end-weight-decay", "the weight decay is constant"},
    {"ddp-num-buckets", "give --ddp-bucket-size"},
    {"ckpt-format", "checkpoints have one format, docs/checkpoints.md; checkpoint export writes transformers'"},
    {"dist-ckpt-format", "checkpoints have one format, docs/checkpoints.md; checkpoint export writes transformers'"},
    {"use-dist-ckpt", "checkpoints have one format, docs/checkpoints.md; checkpoint export writes transformers'"},
    {"auto-detect-ckpt-format", "checkpoints have one format, docs/checkpoints.md; checkpoint export writes transformers'"},
    {"dist-ckpt-strictness", "a checkpoint that lacks a tensor or has another is never loaded"},
    {"log-straggler", "ranks are not timed against each other; --trace has a timeline of each"},
    {"straggler-minmax-count", "ranks are not timed against each other; --trace has a timeline of each"},
    {"log-params-norm", "the log has no norm of the weights"},
    {"log-num-zeros-in-grad", "zeros are not counted"},
    {"log-progress", "there is no progress.txt; --log-file has a line a step"},
    {"moe-per-layer-logging", "the log has the mean of layers"},
    {"log-timers-to-tensorboard", "--tensorboard-dir has losses, norms, rates and times of steps, --log-file the phases"},
    {"log-validation-ppl-to-tensorboard", "--tensorboard-dir has losses, norms, rates and times of steps, --log-file the phases"},
    {"log-memory-to-tensorboard", "--tensorboard-dir has losses, norms, rates and times of steps, --log-file the phases"},
    {"log-world-size-to-tensorboard", "--tensorboard-dir has losses, norms, rates and times of steps, --log-file the phases"},
    {"use-pytorch-profiler", "--trace writes a timeline"},
    {"wandb-project", "there is no connection to Weights & Biases; --log-file and --tensorboard-dir write logs"},
    {"wandb-exp-name", "there is no connection to Weights & Biases; --log-file and --tensorboard-dir write logs"},
    {"wandb-save-dir", "there is no connection to Weights & Biases; --log-file and --tensorboard-dir write logs"},
    {"wandb-entity", "there is no connection to Weights & Biases; --log-file and --tensorboard-dir write logs"},
    {"spec", "the layers are those that the flags describe"},
    {"retro-add-retriever", "there is no retrieval"},
};

/* Whether names, in which spaces part them, has name. */
static bool listed(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = names; n && (at = strstr(at, name)); at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

/* A flag on the command line: --name, --name value or --name=value. */
struct flag {
    char name[64];     /* without dashes; as much of it as any of the tables has */
    const char *value; /* the next word where there is no '='; NULL: none */
    bool joined;       /* by '=' */
};

static struct flag flag_of(const char *word, const char *next)
{
    size_t n = strcspn(word + 2, "=");
    struct flag f = {.joined = word[2 + n] == '=', .value = next};

    snprintf(f.name, sizeof f.name, "%.*s", (int)n, word + 2);
    if (f.joined)
        f.value = word + 2 + n + 1;
    return f;
}

/* How many words the flag's value takes; -1: it has an effect, or is not known. */
static int words_of(const struct flag *f, int argc, char **argv)
{
    if (strcmp(f->name, "no-position-embedding") == 0 && has_word(argc, argv, "--position-embedding-type"))
        return 0;
    for (int n = 0; n < 2; n++)
        if (listed(idle[n], f->name) && n >= (int)f->joined)
            return n;
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (strcmp(only[i].name, f->name) == 0 && f->value && *f->value && listed(only[i].values, f->value))
            return 1;
    return -1;
}

static int refuse(const char *name, struct err *e)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].name, name) == 0)
            return err_set(e, ERR_ARG, "--%s of Megatron cannot be done here: %s", name, refused[i].why);
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (strcmp(only[i].name, name) == 0)
            return err_set(e, ERR_ARG, "--%s of Megatron: here it can only be%.*s", name, (int)strlen(only[i].values) - 1,
                           only[i].values);
    return 0;
}

/* The words from argv[i] on that make up one value of three numbers. */
static int join(int argc, char **argv, int *i, char **out, struct arena *a, struct err *e)
{
    struct buf b = {0};
    struct span copy;
    int rc = buf_puts(&b, argv[*i]);

    for (int more = 0; rc == 0 && more < 2 && *i + 1 < argc && argv[*i + 1][strspn(argv[*i + 1], "0123456789")] == 0; more++)
        rc = buf_printf(&b, ",%s", argv[++*i]);
    copy = arena_dup(a, buf_span(&b));
    buf_free(&b);
    if (rc < 0 || !copy.p)
        return err_set(e, ERR_NOMEM, "out of memory");
    *out = (char *)(size_t)copy.p;
    return 0;
}

/* "L,R" or "(L,R)" to L, the tokens before; beyond a token's own none are seen here. */
static int window_of(const char *value, char **out, struct arena *a, struct err *e)
{
    long long left, right = 0;
    char end;
    const char *at = value + (value[0] == '(');
    char text[32];

    if (sscanf(at, "%lld , %lld %c", &left, &right, &end) < 2 || right != 0 || left < -1 || left == 0)
        return err_set(e, ERR_ARG, "--window-size: '%s' is not N,0", value);
    snprintf(text, sizeof text, "%lld", left < 0 ? 0 : left);
    *out = (char *)(size_t)arena_dup(a, span_of(text)).p;
    return *out ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* One flag, argv[*i]; what becomes of it goes to out. */
static int rewrite(int argc, char **argv, int *i, char **out, int *n, struct buf *without, struct arena *a, struct err *e)
{
    const struct flag f = flag_of(argv[*i], *i + 1 < argc ? argv[*i + 1] : NULL);
    int words = words_of(&f, argc, argv);

    if (words >= 0) {
        *i += f.joined ? 0 : words;
        return buf_printf(without, " --%s", f.name) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
    }
    for (size_t r = 0; r < sizeof renamed / sizeof *renamed; r++) {
        if (strcmp(renamed[r].name, f.name) != 0)
            continue;
        for (int w = 0; w < RENAMED_WORDS && renamed[r].words[w]; w++)
            out[(*n)++] = (char *)(size_t)renamed[r].words[w];
        if (f.joined)
            out[(*n)++] = (char *)(size_t)f.value;
        return 0;
    }
    TRY(refuse(f.name, e));
    out[(*n)++] = argv[*i];
    if (!f.joined && strcmp(f.name, "rampup-batch-size") == 0 && *i + 1 < argc) {
        ++*i;
        return join(argc, argv, i, &out[(*n)++], a, e);
    }
    if (f.value && strcmp(f.name, "window-size") == 0 && strchr(f.value, ',')) {
        out[*n - 1] = "--window-size";
        *i += !f.joined;
        return window_of(f.value, &out[(*n)++], a, e);
    }
    return 0;
}

int megatron_flags(const struct opt *opts, int *argc, char ***argv, struct buf *without, struct arena *a, struct err *e)
{
    char **in = *argv, **out = arena_calloc(a, (RENAMED_WORDS + 1) * (size_t)*argc + 1, sizeof *out);
    int n = 0;

    if (!out)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < *argc; i++) {
        const char *name = in[i] + 2;
        const struct opt *o = i && strncmp(in[i], "--", 2) == 0 ? opt_find(opts, name) : NULL;

        bool rewritten = strcmp(name, "rampup-batch-size") == 0 || strcmp(name, "window-size") == 0;

        if (i == 0 || strncmp(in[i], "--", 2) != 0 || (o && !rewritten)) {
            out[n++] = in[i];
            if (o && o->type != OPT_TYPE_FLAG && i + 1 < *argc)
                out[n++] = in[++i]; /* its value, whatever it looks like */
        } else if (!*name) {
            while (i < *argc)
                out[n++] = in[i++];
        } else {
            TRY(rewrite(*argc, in, &i, out, &n, without, a, e));
        }
    }
    *argc = n;
    *argv = out;
    return 0;
}
