#include "pipelines/ablation/ablation_commands.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"

enum { CHECKPOINTS = 8 /* of a training */ };

/* What is asked for, and what is known. */
struct order {
    const struct ablation_conf *c;
    const struct ablation *a;
    const struct ablation_result *r;
};

static int add_word(struct opt_list *args, struct arena *mem, const char *word, struct err *e)
{
    struct span copy = arena_dup(mem, span_of(word));

    return copy.p ? opt_list_add(args, copy.p, e) : err_set(e, ERR_NOMEM, "out of memory");
}

static int add_words(struct opt_list *args, struct arena *mem, const char *const *word, struct err *e)
{
    for (; *word; word++)
        TRY(add_word(args, mem, *word, e));
    return 0;
}

void ablation_unit_folder(const struct ablation *a, const struct ablation_unit *u, char path[4096])
{
    size_t n;

    if (u->activity == ABLATION_CURATE) {
        ablation_group_path(a, u->number, path);
        return;
    }
    ablation_runs_path(a, u->number, path);
    n = strlen(path);
    snprintf(path + n, 4096 - n, "/%d", u->seed + 1);
}

void ablation_unit_file(const struct ablation *a, const struct ablation_unit *u, const char *name, char path[4300])
{
    char folder[4096];

    ablation_unit_folder(a, u, folder);
    snprintf(path, 4300, "%s/%s", folder, name);
}

/* The weight of an input: what it has, by tokens, of the share of all that match its pattern. */
static double weight_of(const struct ablation_variant *v, const struct ablation_data *d, int file)
{
    const struct node *share = v->share[file];
    double all = 0;

    for (int i = 0; i < v->n_files; i++)
        all += v->share[i] == share ? (double)d->file_tokens[i] : 0;
    return all > 0 ? share->num * (double)d->file_tokens[file] / all : 0;
}

/* The datasets of a variant; with weights a blend of those that have tokens. */
static int add_data(struct opt_list *args, struct arena *mem, const struct order *x, int variant, struct err *e)
{
    const struct ablation_variant *v = &x->a->variant[variant];
    const struct ablation_data *d = &x->r->data[variant];
    char path[4096], word[4200];

    ablation_data_path(x->a, variant, path);
    if (!v->weights) {
        snprintf(word, sizeof word, "%s_text_document", path);
        TRY(add_word(args, mem, "--data-path", e));
        return add_word(args, mem, word, e);
    }
    for (int i = 0; i < v->n_files; i++) {
        double w = weight_of(v, d, i);

        if (!(w > 0))
            continue;
        snprintf(word, sizeof word, "%.17g", w);
        TRY(add_word(args, mem, "--data-path", e));
        TRY(add_word(args, mem, word, e));
        snprintf(word, sizeof word, "%s%06d_text_document", path, i);
        TRY(add_word(args, mem, "--data-path", e));
        TRY(add_word(args, mem, word, e));
    }
    return 0;
}

/* The model's options: a flag is on or off, a list is given word by word. */
static int add_model(struct opt_list *args, struct arena *mem, const struct node *model, struct err *e)
{
    char flag[128];

    for (const struct node *n = model->child; n; n = n->next) {
        bool off = n->type == NODE_BOOL && !n->integer;

        if (snprintf(flag, sizeof flag, "--%s%s", off ? "no-" : "", n->key.p) >= (int)sizeof flag)
            return err_set(e, ERR_ARG, "the option '%.100s...' is too long", n->key.p);
        for (const struct node *i = n->type == NODE_LIST ? n->child : NULL; i; i = i->next) {
            TRY(add_word(args, mem, flag, e));
            TRY(add_word(args, mem, i->str.p, e));
        }
        if (n->type == NODE_LIST)
            continue;
        TRY(add_word(args, mem, flag, e));
        if (n->type != NODE_BOOL)
            TRY(add_word(args, mem, n->str.p, e));
    }
    return 0;
}

static int train_args(struct opt_list *args, struct arena *mem, const struct order *x, const struct ablation_unit *u,
                      struct err *e)
{
    char steps[32], interval[32], seed[32], save[4300], log[4300];
    const char *const words[] = {"-q", "-j", "1", "--device", "cpu", "--progress", "none", "--split", "1,0,0",
                                 "--eval-iters", "0", "--train-iters", steps, "--seed", seed,
                                 "--save", save, "--save-interval", interval, "--keep-last", "1", "--log-file", log, NULL};

    snprintf(steps, sizeof steps, "%" PRId64, x->a->steps);
    snprintf(interval, sizeof interval, "%" PRId64, (x->a->steps + CHECKPOINTS - 1) / CHECKPOINTS);
    snprintf(seed, sizeof seed, "%d", ABLATION_FIRST_SEED + u->seed);
    ablation_unit_file(x->a, u, "model", save);
    ablation_unit_file(x->a, u, "train.jsonl", log);
    TRY(add_words(args, mem, words, e));
    TRY(add_model(args, mem, x->a->model, e));
    return add_data(args, mem, x, u->number, e);
}

/* A task of all of a text, by bits a byte. */
static int write_text_task(const struct ablation_eval *x, const char *path, struct err *e)
{
    struct buf b = {0};
    int rc;

    buf_puts(&b, "{\"task\": ");
    json_put_name(&b, x->name);
    buf_puts(&b, ", \"dataset_path\": \"json\", \"dataset_kwargs\": {\"data_files\": {\"test\": ");
    json_put_name(&b, *x->from);
    buf_puts(&b, "}}, \"output_type\": \"loglikelihood_rolling\", \"test_split\": \"test\", \"doc_to_text\": \"\", "
                 "\"doc_to_target\": \"{{text}}\", \"metric_list\": [{\"metric\": \"bits_per_byte\"}]}\n");
    rc = b.failed ? err_set(e, ERR_NOMEM, "out of memory") : file_write_all(path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

static int eval_args(struct opt_list *args, struct arena *mem, const struct order *x, const struct ablation_unit *u,
                     struct err *e)
{
    char load[4300], stats[4300], task[4300], name[80];
    const char *const words[] = {"-q", "-j", "1", "--progress", "none", "--device", "cpu", "--load", load, "--tokenizer",
                                 x->a->variant[u->number].tokenizer, "--stats", stats, NULL};

    ablation_unit_file(x->a, u, "model", load);
    ablation_unit_file(x->a, u, "eval.json", stats);
    TRY(add_words(args, mem, words, e));
    for (int i = 0; i < x->a->n_evals; i++) {
        const struct ablation_eval *t = &x->a->eval[i];

        snprintf(name, sizeof name, "text-%d.yaml", i);
        ablation_unit_file(x->a, u, name, task);
        if (!t->task)
            TRY(write_text_task(t, task, e));
        TRY(add_word(args, mem, "--eval-tasks", e));
        TRY(add_word(args, mem, t->task ? *t->from : task, e));
    }
    return 0;
}

static int curate_args(struct opt_list *args, struct arena *mem, const struct order *x, const struct ablation_unit *u,
                       struct err *e)
{
    char plan[4300], jobs[32];
    const char *const words[] = {"-q", "--progress", "none", "--tasks", "1", "-j", jobs, plan, NULL};

    snprintf(jobs, sizeof jobs, "%d", x->c->jobs);
    ablation_unit_file(x->a, u, "plan.yaml", plan);
    TRY(file_write_all(plan, buf_span(&x->a->group[u->number].plan), e));
    return add_words(args, mem, words, e);
}

const char *ablation_command_name(const struct ablation_unit *u)
{
    static const char *const name[] = {"curate", "train", "eval"};

    return name[u->activity];
}

int ablation_command(struct opt_list *args, struct arena *mem, const struct ablation_conf *c, const struct ablation_result *r,
                     const struct ablation_unit *u, struct err *e)
{
    static int (*const words_of[])(struct opt_list *, struct arena *, const struct order *, const struct ablation_unit *,
                                   struct err *) = {curate_args, train_args, eval_args};
    const struct order x = {c, c->a, r};

    return words_of[u->activity](args, mem, &x, u, e);
}
