/* quern eval: loss and perplexity of a checkpoint on a dataset. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tool.h"
#include "kernels/threads.h"
#include "train/evaluate.h"

enum part { PART_VALID, PART_TEST, PART_TRAIN, PART_WHOLE };

struct eval {
    struct train_config config; /* for the data */
    bool split_given;
    int part, device;
    int64_t iters; /* micro-batches; 0: all */
};

static const char *arg_of(const struct checkpoint_info *info, const char *name)
{
    for (int i = 0; i < info->n_args; i++)
        if (strcmp(info->args[i].name, name) == 0)
            return info->args[i].text;
    return NULL;
}

/* The model's sizes, and what the user left out: as in training. */
static int configure(struct eval *v, const struct checkpoint_info *info, struct err *e)
{
    struct train_config *c = &v->config;
    const char *path = arg_of(info, "data-path"), *split = arg_of(info, "split"), *seed = arg_of(info, "seed");

    c->model = info->model;
    if (split && !v->split_given)
        c->split = split;
    if (v->part == PART_WHOLE)
        c->split = "1,0,0";
    if (seed)
        c->seed = strtoll(seed, NULL, 10);
    if (c->data_path.n == 0) {
        const struct opt *opts = (const struct opt[]){OPT_LIST(0, "data-path", &c->data_path, "", ""), OPT_END};

        if (!path)
            return err_set(e, ERR_ARG, "--data-path is needed: the checkpoint does not name one");
        TRY(opt_set(opts, "data-path", path, e));
    }
    return 0;
}

static int measure(struct eval *v, const struct checkpoint *ck, struct device *dev, struct err *e)
{
    static const enum gpt_split split_of[] = {GPT_VALID, GPT_TEST, GPT_TRAIN, GPT_TRAIN};
    enum gpt_split split = split_of[v->part];
    const struct train_config *c = &v->config;
    const struct model_run run = {
        .dt = c->bf16 ? DTYPE_BF16 : DTYPE_F32, .use = MODEL_EVAL, .b = c->micro_batch, .t = c->model.seq,
    };
    int64_t wanted[GPT_SPLITS] = {0}, n;
    struct model *m = NULL;
    struct data *d = NULL;
    double loss;
    int rc;

    wanted[split] = v->iters ? v->iters * c->micro_batch : -1;
    rc = data_open(&d, c, wanted, e);
    if (rc == 0 && data_size(d, split) == 0)
        rc = err_set(e, ERR_ARG, "--split %s leaves nothing for that part", c->split);
    if (rc == 0)
        rc = model_restore(&m, ck, dev, &run, e);
    if (rc == 0) {
        n = data_size(d, split);
        if (v->iters && v->iters * c->micro_batch < n)
            n = v->iters * c->micro_batch;
        rc = evaluate(m, d, split, 0, n, &loss, e);
    }
    if (rc == 0)
        printf("loss %.6f  perplexity %.4f  tokens %" PRId64 "  checkpoint %s\n", loss, exp(loss), n * c->model.seq,
               checkpoint_path(ck));
    model_close(m);
    data_close(d);
    return rc;
}

static int run(struct eval *v, int threads, struct err *e)
{
    struct checkpoint *ck = NULL;
    struct device *dev = NULL;
    int rc;

    if (!v->config.load)
        return err_set(e, ERR_ARG, "--load is needed");
    rc = checkpoint_open(&ck, v->config.load, v->config.ckpt_step, e);
    if (rc == 0 && !ck)
        rc = err_set(e, ERR_IO, "no checkpoint in '%s'", v->config.load);
    if (rc == 0)
        rc = configure(v, checkpoint_info(ck), e);
    if (rc == 0)
        rc = device_open(&dev, train_config_device[v->device], threads, e);
    if (rc == 0)
        rc = measure(v, ck, dev, e);
    device_close(dev);
    checkpoint_close(ck);
    return rc;
}

int main(int argc, char **argv)
{
    struct eval v = {0};
    struct train_config *c = &v.config;
    struct tool t = {
        .name = "eval",
        .usage = "--load DIR [options]",
        .about = "loss and perplexity of a checkpoint",
        .details = "Mean cross-entropy (natural logarithm) of a token given those before it in its sample, without\n"
                   "dropout, on one epoch of a part of the data. Data, split and seed are the training's unless given.",
        .example = "seq 300 | sed 's/.*/{\"text\":\"the mill grinds & times\"}/' >mill.jsonl\n"
                   "quern tokenizer train -q --vocab-size 300 -o mill.json mill.jsonl\n"
                   "quern tokenize -q --tokenizer mill.json --append-eod --output-prefix mill mill.jsonl\n"
                   "quern train -q --vocab-size 300 --num-layers 2 --hidden-size 64 --num-attention-heads 4 \\\n"
                   "    --seq-length 16 --micro-batch-size 8 --train-iters 60 --lr 1e-2 --lr-decay-style cosine \\\n"
                   "    --data-path mill_text_document --split 90,10,0 --save mill\n"
                   "quern eval --load mill",
    };
    const struct opt opts[] = {
        OPT_HEAD("Evaluation"),
        OPT_FOLDER(0, "load", &c->load, "DIR", "the checkpoint's folder"),
        OPT_INT(0, "ckpt-step", &c->ckpt_step, -1, INT64_MAX, "the checkpoint of this step; -1: the last whole one"),
        OPT_FILES(0, "data-path", &c->data_path, "PREFIX", "PREFIX.bin and .idx; a blend: weight, prefix, ...",
                      OPT_NAMES_PREFIX),
        {OPT_TYPE_STR, 0, "split", "A,B,C", "shares of train, valid and test", &c->split, 0, 0, 0, 0,
         &v.split_given, OPT_NAMES_NOTHING},
        OPT_ENUM(0, "part", &v.part, "valid|test|train|whole", "which part of the data; whole: no split"),
        OPT_INT(0, "eval-iters", &v.iters, 0, INT32_MAX, "at most so many micro-batches; 0: the part once"),
        OPT_INT(0, "micro-batch-size", &c->micro_batch, 1, 1 << 20, "samples at once"),
        OPT_FLAG(0, "bf16", &c->bf16, "compute in bf16"),
        OPT_ENUM(0, "device", &v.device, "auto|cpu|cuda", "where to run"),
        TOOL_OPTS(t),
        TOOL_JOBS(t),
        OPT_END,
    };
    struct err e;
    int n, code;

    train_config_init(c);
    c->micro_batch = 4;
    threads_bound_spin(argv);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n > 0)
        code = tool_usage(&t, "it takes no operands: '%s'", argv[1]);
    if (n == 0)
        code = run(&v, threads_count(t.jobs, 1, 1), &e) < 0 ? tool_fail(&t, &e) : tool_end(&t, EXIT_FINE);
    train_config_free(c);
    return code;
}
