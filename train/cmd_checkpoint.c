/* quern checkpoint: look into checkpoints, verify them, exchange them with transformers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tool.h"
#include "train/hf.h"
#include "train/peft.h"

enum type { TYPE_F32, TYPE_BF16, TYPE_F16 };

struct options {
    const char *save, *output, *as, *tokenizer, *base;
    int64_t step, seq, divisor, shard;
    int type;
    bool tensors;
};

static int open_checkpoint(struct checkpoint **ck, const char *dir, int64_t step, bool verify, struct err *e)
{
    TRY((verify ? checkpoint_open : checkpoint_peek)(ck, dir, step, e));
    return *ck ? 0 : err_set(e, ERR_IO, "no checkpoint in '%s'", dir);
}

/* A logical tensor, which lies in n slices. */
static void print_tensor(const struct piece *p, int n)
{
    printf("  %s%-*s F32 [%" PRId64, checkpoint_prefix[p->part], 64 - (int)strlen(checkpoint_prefix[p->part]), p->name,
           p->shape[0]);
    if (p->dims == 2)
        printf(", %" PRId64, p->shape[1]);
    printf("]");
    if (n > 1)
        printf(" in %d slices", n);
    putchar('\n');
}

static bool has_state(const struct checkpoint *ck)
{
    for (int k = CHECKPOINT_WEIGHTS + 1; k < CHECKPOINT_PARTS; k++)
        if (checkpoint_has(ck, (enum checkpoint_part)k))
            return true;
    return false;
}

static int run_info(const struct options *o, const char *dir, struct err *e)
{
    const struct checkpoint_info *info;
    const struct slices *s;
    struct checkpoint *ck = NULL;
    uint64_t bytes = 0;
    int tensors = 0;
    char text[64];

    TRY(open_checkpoint(&ck, dir, o->step, false, e));
    info = checkpoint_info(ck);
    s = checkpoint_slices(ck);
    for (int i = 0, n; i < s->n; i += n, tensors++) {
        slices_find(s, s->v[i].at.part, s->v[i].at.name, &n);
        for (int k = i; k < i + n; k++)
            bytes += s->v[k].data.n;
    }
    printf("%s\nstep %" PRId64 ", %" PRId64 " samples consumed\n%" PRId64 " parameters; %d tensors", checkpoint_path(ck),
           info->iteration, info->consumed, model_config_params(&info->model), tensors);
    if (s->n > tensors)
        printf(" in %d slices", s->n);
    printf(", %.1f MiB%s\n", (double)bytes / (1 << 20),
           has_state(ck) ? "" : "; no optimizer state");
    for (int i = 0; i < model_fields_n; i++)
        printf("  %-36s %s\n", model_fields[i].key, model_field_text(&model_fields[i], &info->model, text, sizeof text));
    if (info->n_args)
        printf("made with:\n");
    for (int i = 0; i < info->n_args; i++)
        printf("  %-36s %s\n", info->args[i].name, info->args[i].text);
    for (int i = 0, n; o->tensors && i < s->n; i += n) {
        slices_find(s, s->v[i].at.part, s->v[i].at.name, &n);
        print_tensor(&s->v[i].at, n);
    }
    checkpoint_close(ck);
    return 0;
}

/* Each checkpoint of dir, or that of one step.  1: some are damaged. */
static int run_verify(const struct options *o, const char *dir, struct err *e)
{
    int64_t *steps = NULL;
    int n = 1, bad = 0, rc = 0;

    if (o->step == CHECKPOINT_LAST) {
        n = checkpoint_steps(dir, &steps, e);
        if (n <= 0)
            return n < 0 ? n : err_set(e, ERR_IO, "no checkpoint in '%s'", dir);
    }
    for (int i = 0; i < n && rc != ERR_NOMEM; i++) { /* a shortage says nothing about a checkpoint */
        struct checkpoint *ck = NULL;

        rc = checkpoint_open(&ck, dir, steps ? steps[i] : o->step, e);
        if (rc < 0 && rc != ERR_NOMEM) {
            printf("damaged  %s\n", e->msg);
            bad++;
        } else if (rc == 0) {
            printf("whole    %s\n", checkpoint_path(ck));
            checkpoint_close(ck);
        }
    }
    free(steps);
    return rc == ERR_NOMEM ? rc : bad > 0;
}

/* An adapter of PEFT's over the checkpoint of its model. */
static int import_adapter(const struct options *o, const char *from, struct err *e)
{
    struct checkpoint *ck = NULL;
    int rc;

    if (!o->base)
        return err_set(e, ERR_ARG, "%s is an adapter: --base is needed, the checkpoint of its model", from);
    TRY(open_checkpoint(&ck, o->base, o->step, true, e));
    rc = peft_import(from, ck, o->save, e);
    checkpoint_close(ck);
    return rc;
}

static int run_import(const struct options *o, const char *from, struct err *e)
{
    if (!o->save)
        return err_set(e, ERR_ARG, "--save is needed: where the checkpoint goes");
    TRY(peft_is(from) ? import_adapter(o, from, e) : hf_import(from, o->save, o->seq, o->divisor, e));
    printf("imported %s as %s/iter_0000000\n", from, o->save);
    return 0;
}

static int run_export(const struct options *o, const char *dir, struct err *e)
{
    static const char *const types[] = {"F32", "BF16", "F16"};
    struct checkpoint *ck = NULL;
    int rc;

    if (!o->output)
        return err_set(e, ERR_ARG, "--output is needed: where the model goes");
    TRY(open_checkpoint(&ck, dir, o->step, true, e));
    if (checkpoint_info(ck)->model.lora_rank)
        rc = peft_export(ck, o->output, types[o->type], e);
    else
        rc = hf_export(ck, o->output, &(struct hf_written){types[o->type], o->shard, o->as, o->tokenizer}, e);
    if (rc == 0)
        printf("exported %s to %s\n", checkpoint_path(ck), o->output);
    checkpoint_close(ck);
    return rc;
}

/* A checkpoint is not joined into its own place: what was saved by several ranks stays. */
static int account(const struct checkpoint *ck, const char *save, struct err *e)
{
    char name[4096];

    snprintf(name, sizeof name, "%s/metadata.json", checkpoint_path(ck));
    TRY(run_reads(tool_files(), "the checkpoint", name, e));
    snprintf(name, sizeof name, "%s/iter_%07" PRId64 "/metadata.json", save, checkpoint_info(ck)->iteration);
    TRY(run_writes(tool_files(), "--save", name, e));
    return run_files_check(tool_files(), e);
}

/* Writes the checkpoint anew, by fn. */
static int rewrite(const struct options *o, const char *dir, int (*fn)(const struct checkpoint *, const char *, struct err *),
                   const char *done, struct err *e)
{
    struct checkpoint *ck = NULL;
    int rc;

    if (!o->save)
        return err_set(e, ERR_ARG, "--save is needed: where the checkpoint goes");
    TRY(open_checkpoint(&ck, dir, o->step, true, e));
    rc = account(ck, o->save, e);
    if (rc == 0)
        rc = fn(ck, o->save, e);
    if (rc == 0)
        printf("%s %s in %s/iter_%07" PRId64 "\n", done, checkpoint_path(ck), o->save, checkpoint_info(ck)->iteration);
    checkpoint_close(ck);
    return rc;
}

static int run_join(const struct options *o, const char *dir, struct err *e)
{
    return rewrite(o, dir, checkpoint_join, "joined", e);
}
static int run_merge(const struct options *o, const char *dir, struct err *e)
{
    return rewrite(o, dir, peft_merge, "merged", e);
}

static const struct {
    const char *name;
    int (*run)(const struct options *o, const char *where, struct err *e);
} actions[] = {{"info", run_info}, {"verify", run_verify}, {"import", run_import}, {"export", run_export},
             {"join", run_join}, {"merge", run_merge}};

int main(int argc, char **argv)
{
    struct options o = {.step = CHECKPOINT_LAST, .divisor = 128, .shard = INT64_C(5) << 30};
    struct tool t = {
        .name = "checkpoint",
        .usage = "info|verify|import|export|join|merge [options] FOLDER",
        .operands = OPT_NAMES_FOLDER,
        .about = "look into checkpoints, verify them, exchange them with transformers",
        .details = "info    what the checkpoint is of; reads no tensor\n"
                   "verify  compares every byte with its checksum; exit status 1 if a checkpoint is damaged\n"
                   "import  a GPT-2, Llama, Mistral, Qwen or another model of transformers (config.json and\n"
                   "        safetensors, one file or several) to a checkpoint of step 0 in --save; or an adapter of\n"
                   "        PEFT, over --base\n"
                   "export  a checkpoint's weights to a folder that transformers loads, --output; of one with adapters\n"
                   "        these alone, to a folder that PEFT loads\n"
                   "join    a checkpoint of several ranks as one process would have saved it, to --save\n"
                   "merge   a checkpoint with its adapters added to the weights, to --save\n"
                   "A tensor at a time: memory is that of the largest one. docs/checkpoints.md says more.",
        .example = "quern train -q --mock-data --vocab-size 256 --num-layers 2 --hidden-size 64 \\\n"
                   "    --num-attention-heads 4 --seq-length 64 --micro-batch-size 4 --train-iters 2 \\\n"
                   "    --lr 1e-3 --eval-iters 0 --save mill\n"
                   "quern checkpoint verify mill\n"
                   "quern checkpoint export mill --output mill-hf --dtype bf16\n"
                   "quern checkpoint import mill-hf --save mill-again\n"
                   "quern checkpoint info mill-again",
    };
    const struct opt opts[] = {
        OPT_HEAD("Checkpoint"),
        OPT_INT(0, "ckpt-step", &o.step, -1, INT64_MAX, "the checkpoint of this step; -1: the last whole one (verify: all)"),
        OPT_FLAG(0, "tensors", &o.tensors, "info: every tensor"),
        OPT_FOLDER(0, "save", &o.save, "DIR", "import, join, merge: where the checkpoint goes"),
        OPT_FOLDER(0, "base", &o.base, "DIR", "import an adapter: the checkpoint of its model"),
        OPT_INT(0, "seq-length", &o.seq, 0, 1 << 24, "import: tokens of a sample; 0: as many as the model takes"),
        OPT_INT(0, "make-vocab-size-divisible-by", &o.divisor, 1, 1 << 20, "import: pad the vocabulary to a multiple"),
        OPT_FOLDER('o', "output", &o.output, "DIR", "export: where the model goes; empty or not there yet"),
        OPT_ENUM(0, "dtype", &o.type, "fp32|bf16|fp16", "export: type of the weights"),
        OPT_STR(0, "model-type", &o.as, "NAME", "export: llama, mistral, ...; default: as imported, or the first that fits"),
        OPT_FOLDER(0, "tokenizer", &o.tokenizer, "DIR", "export: copy a tokenizer's files and generation_config.json from here"),
        OPT_SIZE(0, "max-shard-size", &o.shard, 1, INT64_MAX, "export: size at which another file begins"),
        TOOL_OPTS(t),
        OPT_END,
    };
    struct err e;
    int n, code, rc = 1;
    size_t a = 0;

    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0)
        return code;
    while (n && a < sizeof actions / sizeof *actions && strcmp(argv[1], actions[a].name) != 0)
        a++;
    if (n != 2 || a == sizeof actions / sizeof *actions)
        return tool_usage(&t, "it takes info, verify, import, export, join or merge, and a folder");
    rc = actions[a].run(&o, argv[2], &e);
    return rc < 0 ? tool_fail(&t, &e) : tool_end(&t, rc ? EXIT_SOME_BAD : EXIT_FINE);
}
