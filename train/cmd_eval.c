/* quern eval: loss and perplexity of a checkpoint on a dataset, or its scores in tasks. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/tool.h"
#include "kernels/threads.h"
#include "tokenize/tasks/task.h"
#include "train/data_parallel.h"
#include "train/evaluate.h"
#include "train/generate.h"
#include "train/likelihood.h"
#include "train/machine.h"

enum part { PART_VALID, PART_TEST, PART_TRAIN, PART_WHOLE };

struct eval {
    struct train_config config; /* for the data */
    int part, device;
    int64_t iters; /* micro-batches; 0: all */

    struct opt_list tasks; /* files; none: the loss is measured */
    struct task_settings task;
    const char *tokenizer, *pattern, *records, *stats;

    struct layout layout; /* each rank has the whole model; they share what it is asked */
    bool says;            /* one of them speaks for all */
};

/* The model's sizes, and of the data what the user left out: as in training.  Texts live in a. */
static int configure(struct eval *v, const struct checkpoint_info *info, struct arena *a, struct err *e)
{
    struct train_config *c = &v->config;

    c->model = info->model;
    TRY(train_config_take_data(c, info->args, info->n_args, a, e));
    TRY(train_config_check_data(c, e));
    if (v->part == PART_WHOLE && !c->data_path.n && !c->mock_data)
        return err_set(e, ERR_ARG, "--part whole needs --data-path: the checkpoint names data for each part");
    if (v->part == PART_WHOLE)
        c->split = "1,0,0";
    return c->mock_data && !v->iters ? err_set(e, ERR_ARG, "--mock-data has no end: --eval-iters is needed") : 0;
}

/* The loss on a split, or one of the validation sets, that `of` names in the line printed. */
static int measure_split(const struct eval *v, const struct checkpoint *ck, struct model *m, struct data *d, int split,
                         const char *of, struct err *e)
{
    int64_t n = data_size(d, split), most = v->iters * v->config.micro_batch;
    double loss, tokens;

    if (n == 0)
        return err_set(e, ERR_ARG, "--split %s leaves nothing for that part", v->config.split);
    TRY(evaluate(m, &v->layout, d, split, 0, v->iters && most < n ? most : n, &loss, &tokens, e));
    if (tokens == 0)
        return err_set(e, ERR_ARG, "no token of that part has a loss");
    if (v->says)
        printf("loss %.6f  perplexity %.4f  tokens %.0f  checkpoint %s%s%s\n", loss, exp(loss), tokens, checkpoint_path(ck),
               *of ? "  data " : "", of);
    return 0;
}

static int measure(struct eval *v, const struct checkpoint *ck, struct device *dev, struct err *e)
{
    static const enum gpt_split split_of[] = {GPT_VALID, GPT_TEST, GPT_TRAIN, GPT_TRAIN};
    enum gpt_split split = split_of[v->part];
    const struct train_config *c = &v->config;
    const struct model_run run = {
        .dt = c->bf16 ? DTYPE_BF16 : DTYPE_F32, .use = MODEL_EVAL, .b = c->micro_batch, .t = c->model.seq,
        .reset_positions = c->documents.positions, .reset_attention = c->documents.attention,
    };
    int64_t wanted[GPT_SPLITS] = {0};
    struct model *m = NULL;
    struct data *d = NULL;
    int rc;

    wanted[split] = v->iters ? v->iters * c->micro_batch : -1;
    rc = data_open(&d, c, wanted, e);
    if (rc == ERR_ARG && !v->iters)
        err_wrap(e, "--eval-iters 0");
    if (rc == 0)
        rc = model_restore(&m, ck, dev, &run, e);
    if (rc == 0 && split != GPT_VALID)
        rc = measure_split(v, ck, m, d, split, "", e);
    for (int i = 0; rc == 0 && split == GPT_VALID && i < data_valid_sets(d); i++)
        rc = measure_split(v, ck, m, d, data_valid(i), data_valid_name(d, i), e);
    model_close(m);
    data_close(d);
    return rc;
}

/* ---- tasks ---- */

/* What of a run over tasks goes on from one to the next. */
struct tally {
    struct file_out *records;
    struct buf stats;   /* a JSON object for each task, with commas */
    double centred;     /* sum of the first metrics' shares of what guessing leaves to be gained, */
    int64_t n, centred_n; /* of so many tasks */
};

/* A task's requests as those of the model, and room for what it answers. */
struct asked {
    const struct task *task;
    const struct task_request *request;
    int64_t n, longest; /* longest: inputs of a request */
    struct task_answer *answer; /* (n) */
    struct buf written;         /* int32_t: room for task_writes() ids a request */
};

/* Micro-batches or texts that are done. */
static void told(void *arg, int64_t done, int64_t all)
{
    const struct asked *a = arg;

    progress_show(&(struct progress){.phase = task_name(a->task), .unit = task_writes(a->task) ? "texts" : "micro-batches",
                                     .done = (double)done, .total = (double)all});
}

/* The likelihoods.  Sequences are as long as the longest request, or longer where that fills them better. */
static int ask_likelihoods(const struct eval *v, struct asked *a, const struct checkpoint *ck, struct device *dev,
                           struct model_run run, struct err *e)
{
    struct likelihood *r = calloc((size_t)a->n + 1, sizeof *r);
    struct train_part whole = {0};
    struct passes p = {0};
    int rc = r ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t i = 0; rc == 0 && i < a->n; i++)
        r[i] = (struct likelihood){.ids = a->request[i].ids, .n = a->request[i].n, .from = a->request[i].from};
    run.use = MODEL_EVAL;
    run.reset_positions = run.reset_attention = true;
    run.t = a->longest > 512 ? a->longest : 512;
    if (run.t > v->task.length)
        run.t = v->task.length;
    if (rc == 0)
        rc = model_restore(&whole.model, ck, dev, &run, e);
    if (rc == 0)
        rc = passes_open(&p, &v->layout, &whole, 1, NULL, e);
    if (rc == 0) {
        passes_watch_evaluation(&p, told, a);
        rc = likelihoods(&p, r, a->n, task_asks_greedy(a->task), e);
    }
    for (int64_t i = 0; rc == 0 && i < a->n; i++)
        a->answer[i] = (struct task_answer){.likelihood = r[i].sum, .greedy = r[i].greedy};
    passes_close(&p);
    model_close(whole.model);
    free(r);
    return rc;
}

static int text_ends(void *arg, const struct generate_request *r, struct err *e)
{
    return task_ends(((struct asked *)arg)->task, r->out, r->made, e);
}

/* What the ranks have written becomes known to all: of each request, in row i of (n, most + 1), how many ids and which. */
static int exchange_texts(const struct eval *v, struct asked *a, const struct generate_request *r, int64_t mine, int64_t most,
                          struct err *e)
{
    int64_t ranks = v->layout.world->size, rank = v->layout.world->rank, width = most + 1;
    double *all = calloc((size_t)(a->n * width) + 1, sizeof *all);
    int32_t *to = (int32_t *)(void *)a->written.p;
    int rc = all ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t i = 0; rc == 0 && i < mine; i++) {
        double *row = all + (i * ranks + rank) * width;

        row[0] = (double)r[i].made;
        for (int64_t k = 0; k < r[i].made; k++)
            row[1 + k] = r[i].out[k];
    }
    if (rc == 0)
        rc = data_parallel_gather(v->layout.world, all, a->n * width, e);
    for (int64_t i = 0; rc == 0 && i < a->n; i++) {
        a->answer[i] = (struct task_answer){.ids = to + i * most, .n = (int64_t)all[i * width]};
        for (int64_t k = 0; k < most; k++)
            to[i * most + k] = (int32_t)all[i * width + 1 + k];
    }
    free(all);
    return rc;
}

/* The texts: each rank writes some. */
static int ask_texts(const struct eval *v, struct asked *a, const struct checkpoint *ck, struct device *dev,
                     const struct tokenizer *tokenizer, struct model_run run, struct err *e)
{
    const struct sampling likeliest = {.top_p = 1, .penalty = 1, .eod = tokenizer_eod(tokenizer)};
    struct generate_request *r = calloc((size_t)a->n + 1, sizeof *r);
    int64_t most = task_writes(a->task), mine = 0;
    struct model *m = NULL;
    int rc = r && buf_reserve(&a->written, (size_t)(a->n * most) * sizeof(int32_t)) == 0
                 ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t i = v->layout.world->rank; rc == 0 && i < a->n; i += v->layout.world->size)
        r[mine++] = (struct generate_request){a->request[i].ids, a->request[i].n, most,
                                              (int32_t *)(void *)a->written.p + i * most, 0};
    run.use = MODEL_GENERATE;
    run.t = a->longest + most;
    if (rc == 0)
        rc = model_restore(&m, ck, dev, &run, e);
    if (rc == 0)
        rc = generate_all(m, &likeliest, r, mine, text_ends, told, a, e);
    if (rc == 0)
        rc = exchange_texts(v, a, r, mine, most, e);
    model_close(m);
    free(r);
    return rc;
}

static int ask(const struct eval *v, struct asked *a, const struct checkpoint *ck, struct device *dev,
               const struct tokenizer *tokenizer, struct err *e)
{
    const struct model_run run = {.dt = v->config.bf16 ? DTYPE_BF16 : DTYPE_F32, .b = v->config.micro_batch};

    a->n = task_requests(a->task, &a->request);
    for (int64_t i = 0; i < a->n; i++)
        a->longest = a->request[i].n - 1 > a->longest ? a->request[i].n - 1 : a->longest;
    a->answer = calloc((size_t)a->n + 1, sizeof *a->answer);
    if (!a->answer)
        return err_set(e, ERR_NOMEM, "out of memory");
    return task_writes(a->task) ? ask_texts(v, a, ck, dev, tokenizer, run, e) : ask_likelihoods(v, a, ck, dev, run, e);
}

static void put_scores(const struct eval *v, const struct task *t, const struct task_score *s, int n, double chance,
                       struct tally *all)
{
    struct buf *b = &all->stats;

    buf_puts(b, all->n++ ? ",{" : "{");
    json_put_key(b, "task");
    json_put_name(b, task_name(t));
    json_put_count(b, "questions", (uint64_t)task_questions(t));
    json_put_key(b, "chance");
    json_put_num(b, chance);
    json_put_key(b, "metrics");
    buf_putc(b, '{');
    for (int i = 0; i < n; i++) {
        json_put_key(b, s[i].metric);
        buf_putc(b, '{');
        json_put_key(b, "value");
        json_put_num(b, s[i].value);
        json_put_key(b, "error");
        json_put_num(b, s[i].error);
        buf_putc(b, '}');
        if (v->says)
            printf("%s  %s %.6f  error %.6f  questions %" PRId64 "\n", task_name(t), s[i].metric, s[i].value, s[i].error,
                   task_questions(t));
    }
    buf_puts(b, "}}");
}

static int do_task(struct eval *v, const char *path, const struct tokenizer *tokenizer, const struct checkpoint *ck,
                   struct device *dev, struct tally *all, struct err *e)
{
    struct task_score s[TASK_SCORES];
    struct asked a = {0};
    struct task *t = NULL;
    int rc = task_open(&t, path, tokenizer, &v->task, e), n = 0;

    a.task = t;
    if (rc == 0)
        rc = ask(v, &a, ck, dev, tokenizer, e);
    progress_end();
    if (rc == 0)
        rc = n = task_score(t, a.answer, s, all->records, e);
    if (n > 0) {
        double chance = task_chance(t);

        put_scores(v, t, s, n, chance, all);
        if (s[0].better_higher && chance < 1) {
            all->centred += (s[0].value - chance) / (1 - chance);
            all->centred_n++;
        }
        fflush(stdout);
    }
    free(a.answer);
    buf_free(&a.written);
    task_close(t);
    return rc < 0 ? rc : 0;
}

static int write_stats(const struct eval *v, const struct tally *all, const struct checkpoint *ck, struct err *e)
{
    struct buf b = {0};
    int rc;

    buf_putc(&b, '{');
    json_put_key(&b, "checkpoint");
    json_put_name(&b, checkpoint_path(ck));
    json_put_key(&b, "tasks");
    buf_putc(&b, '[');
    buf_put_span(&b, buf_span(&all->stats));
    buf_putc(&b, ']');
    if (all->centred_n) {
        json_put_key(&b, "centred_mean");
        json_put_num(&b, all->centred / (double)all->centred_n);
    }
    buf_puts(&b, "}\n");
    rc = b.failed || all->stats.failed ? err_set(e, ERR_NOMEM, "out of memory") : file_write_all(v->stats, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

static int do_tasks(struct eval *v, const struct checkpoint *ck, struct device *dev, struct err *e)
{
    struct tokenizer *tokenizer = NULL;
    struct tally all = {0};
    int rc;

    if (!v->tokenizer)
        return err_set(e, ERR_ARG, "--eval-tasks needs --tokenizer");
    v->task.length = checkpoint_info(ck)->model.positions;
    rc = tokenizer_open(&tokenizer, v->tokenizer, v->pattern, e);
    if (rc == 0 && v->records && v->says)
        rc = file_create(&all.records, v->records, 0, e);
    for (int i = 0; rc == 0 && i < v->tasks.n; i++)
        rc = do_task(v, v->tasks.v[i], tokenizer, ck, dev, &all, e);
    if (rc == 0 && v->says && all.centred_n > 1)
        printf("centred mean %.6f  tasks %" PRId64 "\n", all.centred / (double)all.centred_n, all.centred_n);
    if (rc == 0 && all.records)
        rc = file_commit(all.records, e);
    else
        file_abort(all.records);
    if (rc == 0 && v->stats && v->says)
        rc = write_stats(v, &all, ck, e);
    buf_free(&all.stats);
    if (tokenizer)
        tokenizer_close(tokenizer);
    return rc;
}

/* The ranks meet; the first speaks, the others have only failures to tell. */
static int open_ranks(struct eval *v, const struct tool *t, struct comm **world, int *threads, struct err *e)
{
    static char prefix[48];
    struct machine_ranks here = {0};

    TRY(comm_open(world, "auto", 60.0 * COMM_TIMEOUT_MINUTES, e));
    v->says = (*world)->rank == 0;
    if (!v->says) {
        snprintf(prefix, sizeof prefix, "quern-eval, rank %d", (*world)->rank);
        log_init(prefix, LOG_ERROR);
    }
    TRY(machine_open(&here, *world, e));
    *threads = threads_count(t->jobs, here.alike, here.here);
    return layout_open(&v->layout, *world, &LAYOUT_ALONE, e);
}

static int run(struct eval *v, const struct tool *t, struct err *e)
{
    struct arena texts = {0};
    struct checkpoint *ck = NULL;
    struct device *dev = NULL;
    struct comm *world = NULL;
    int threads, rc;

    if (!v->config.load)
        return err_set(e, ERR_ARG, "--load is needed");
    rc = open_ranks(v, t, &world, &threads, e);
    if (rc == 0)
        rc = checkpoint_open(&ck, v->config.load, v->config.ckpt_step, e);
    if (rc == 0 && !ck)
        rc = err_set(e, ERR_IO, "no checkpoint in '%s'", v->config.load);
    if (rc == 0 && v->tasks.n == 0)
        rc = configure(v, checkpoint_info(ck), &texts, e);
    if (rc == 0)
        rc = device_open(&dev, train_config_device[v->device], threads, e);
    if (rc == 0)
        rc = v->tasks.n ? do_tasks(v, ck, dev, e) : measure(v, ck, dev, e);
    device_close(dev);
    checkpoint_close(ck);
    layout_close(&v->layout);
    comm_close(world);
    arena_free(&texts);
    return rc;
}

int main(int argc, char **argv)
{
    struct eval v = {.task = {.shots = -1, .seed = 1234}};
    struct train_config *c = &v.config;
    struct tool t = {
        .name = "eval",
        .usage = "--load DIR [options]",
        .about = "loss of a checkpoint, and its scores in tasks",
        .details = "Mean cross-entropy (natural logarithm) of a token given those before it in its sample, without\n"
                   "dropout, on one epoch of a part of the data. Data and seed are the training's, and so are split\n"
                   "and documents, unless given; operands are more words of --data-path.\n"
                   "\n"
                   "With --eval-tasks instead the scores in tasks, YAML files as lm-evaluation-harness has them over\n"
                   "local data: multiple choice, the likelihood of a continuation, bits a byte of a text, a text that\n"
                   "the model writes, with the scores and standard errors that the harness gives. Where several are\n"
                   "given the last line is the mean of what their first metrics gain over guessing.\n"
                   "\n"
                   "Under mpirun, srun or torchrun each rank has the model and they share what it is asked.",
        .example = "seq 300 | sed 's/.*/{\"text\":\"the mill grinds & times\"}/' >mill.jsonl\n"
                   "quern tokenizer train -q --vocab-size 300 -o mill.json mill.jsonl\n"
                   "quern tokenize -q --tokenizer mill.json --append-eod --output-prefix mill mill.jsonl\n"
                   "quern train -q --vocab-size 300 --num-layers 2 --hidden-size 64 --num-attention-heads 4 \\\n"
                   "    --seq-length 16 --micro-batch-size 8 --train-iters 60 --lr 1e-2 --lr-decay-style cosine \\\n"
                   "    --data-path mill_text_document --split 90,10,0 --save mill\n"
                   "quern eval --load mill",
    };
    const struct opt own[] = {
        OPT_HEAD("Evaluation"),
        OPT_FOLDER(0, "load", &c->load, "DIR", "the checkpoint's folder"),
        OPT_INT(0, "ckpt-step", &c->ckpt_step, -1, INT64_MAX, "the checkpoint of this step; -1: the last whole one"),
        OPT_ENUM(0, "part", &v.part, "valid|test|train|whole", "which part of the data; whole: no split"),
        OPT_INT(0, "eval-iters", &v.iters, 0, INT32_MAX, "at most so many micro-batches; 0: the part once"),
        OPT_INT(0, "micro-batch-size", &c->micro_batch, 1, 1 << 20, "samples at once"),
        OPT_HEAD("Tasks"),
        OPT_IN_LIST(0, "eval-tasks", &v.tasks, "FILE", "scores in the task of this YAML file; give it for each"),
        OPT_IN(0, "tokenizer", &v.tokenizer, "FILE", "the model's tokenizer"),
        OPT_STR(0, "pattern", &v.pattern, "NAME", "how text is cut into pieces (default: what the tokenizer says)"),
        OPT_STR(0, "bos-token", &v.task.bos, "TOKEN", "before each text (default: none; an end of document where nothing is)"),
        OPT_INT(0, "num-fewshot", &v.task.shots, -1, 10000, "examples before each question; -1: as the task says"),
        OPT_INT(0, "eval-limit", &v.task.limit, 0, INT64_MAX, "the first questions of each task; 0: all"),
        OPT_INT(0, "fewshot-seed", &v.task.seed, 0, INT64_MAX, "by which examples are drawn"),
        OPT_OUT(0, "records", &v.records, "FILE", "write a line of JSON a question"),
        OPT_OUT(0, "stats", &v.stats, "FILE", "write the scores as JSON"),
        OPT_HEAD("Machine"),
        OPT_FLAG(0, "bf16", &c->bf16, "compute in bf16"),
        OPT_ENUM(0, "device", &v.device, "auto|cpu|cuda", "where to run"),
        TOOL_OPTS(t),
        TOOL_PROGRESS(t),
        TOOL_JOBS(t),
        OPT_END,
    };
    struct opt *opts;
    struct err e;
    int n, code;

    train_config_init(c);
    c->micro_batch = 4;
    threads_bound_spin(argv);
    opts = train_config_data_options(c, own);
    if (!opts) {
        log_msg(LOG_ERROR, "out of memory");
        return EXIT_FATAL;
    }
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n >= 0)
        code = train_config_operands(c, n, argv + 1, &e) < 0 || run(&v, &t, &e) < 0 ? tool_fail(&t, &e) : tool_end(&t, EXIT_FINE);
    opt_list_free(&v.tasks);
    train_config_free(c);
    free(opts);
    return code;
}
