/* quern ablate: which variant of a plan makes the better model. */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/tool.h"
#include "pipelines/ablation/ablation_put.h"
#include "pipelines/fit/fit_report.h"
#include "pipelines/work_lock.h"

struct args {
    struct ablation_conf conf;
    const char *work, *stats, *report, *budget;
    int64_t seeds;
    bool dry;
};

/* --dry-run: the plans, and what would run. */
static int show(const struct tool *t, const struct args *x, const struct ablation *a)
{
    for (int g = 0; g < a->n_groups; g++) {
        char path[4096];

        ablation_group_path(a, g, path);
        printf("# quern curate %s/plan.yaml\n%.*s\n", path, (int)a->group[g].plan.n, a->group[g].plan.p);
    }
    for (int v = 0; v < a->n_variants; v++) {
        char path[4096];

        ablation_runs_path(a, v, path);
        printf("%s: %s/1.json to %" PRId64 ".json\n", a->variant[v].name, path, a->seeds);
    }
    printf("%d variants, %" PRId64 " seeds%s: %" PRId64 " runs at most, each of %" PRId64 " steps of %" PRId64 " tokens\n",
           a->n_variants, a->seeds, x->conf.halving ? " by halving" : "", a->seeds * a->n_variants, a->steps, a->step_tokens);
    return tool_end(t, EXIT_FINE);
}

/* The page and the statistics, then the table.  Others that share the work folder say the same, one after the other. */
static int tell(const struct ablation_finding *f, const struct ablation *a, struct err *e)
{
    struct buf table = {0}, json = {0}, page = {0};
    struct work_lock lock;
    int rc = 0;

    TRY(work_lock_take(&lock, a->work, 0, 1, NULL, e));
    if (ablation_put_table(f, &table) < 0 || ablation_put_json(f, &json) < 0 || ablation_put_page(f, &page) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for the results");
    if (rc == 0 && a->stats)
        rc = file_write_all(a->stats, buf_span(&json), e);
    if (rc == 0 && a->report)
        rc = file_write_all(a->report, buf_span(&page), e);
    if (rc == 0)
        fwrite(table.p, 1, table.n, stdout);
    work_lock_release(&lock);
    buf_free(&table);
    buf_free(&json);
    buf_free(&page);
    return rc;
}

/* 1 if records were bad. */
static int run(const struct args *x, const struct ablation *a, struct err *e)
{
    struct ablation_finding f = {0};
    struct ablation_result r;
    bool bad = false;
    int rc = ablation_result_open(&r, a, e);

    if (rc == 0)
        rc = ablation_run(&x->conf, &r, e);
    if (rc == 0)
        rc = ablation_find(&f, a, &r, x->conf.halving, e);
    if (rc == 0)
        rc = tell(&f, a, e);
    for (int v = 0; v < a->n_variants && rc == 0; v++)
        bad |= r.data[v].bad > 0;
    if (bad)
        log_msg(LOG_WARN, "inputs have bad records; the logs in '%s/data' name them", a->work);
    ablation_finding_free(&f);
    ablation_result_free(&r, a);
    return rc < 0 ? rc : bad;
}

/* What the command line says in place of the file. */
static int override(const struct args *x, struct ablation *a, struct err *e)
{
    a->work = x->work ? x->work : a->work;
    a->stats = x->stats ? x->stats : a->stats;
    a->report = x->report ? x->report : a->report;
    a->seeds = x->seeds ? x->seeds : a->seeds;
    a->budget = x->budget ? ablation_duration(x->budget) : a->budget;
    if (a->budget < 0)
        return err_set(e, ERR_ARG, "--budget '%s' is no time: a number and s, m, h or d", x->budget);
    if (strlen(a->work) > 3000)
        return err_set(e, ERR_ARG, "the name '%.100s...' is too long", a->work);
    return 0;
}

/* ---- quern ablate fit ---- */

/* The statistics and the proposal, then the table, which a proposal on standard output takes the place of. */
static int tell_fit(const struct mix_report_conf *c, const struct mix_report_text *t, struct err *e)
{
    if (c->stats)
        TRY(file_write_all(c->stats, buf_span(&t->json), e));
    if (c->propose)
        TRY(file_write_all(c->output, buf_span(&t->proposal), e));
    return c->propose && !c->output ? 0 : file_write_all(NULL, buf_span(&t->table), e);
}

static int fit(int argc, char **argv)
{
    struct tool t = {
        .name = "ablate",
        .usage = "fit [options] POINTS...",
        .operands = OPT_NAMES_INPUT,
        .about = "losses as functions of the weights of mixtures, and the weights with the least",
        .details =
            "POINTS are what quern ablate --stats wrote of variants with weights, or JSON lines with the weights of sources and "
            "losses: {\"weights\": {\"web\": 0.7, \"books\": 0.3}, \"losses\": {\"prose\": 3.1, \"code\": 2.2}}. Three laws are "
            "fitted to each target's loss; that one is believed which predicts mixtures best that were left out. The best "
            "weights and their losses come with intervals by a bootstrap over mixtures; --propose writes mixtures to measure.\n\n"
            "docs/scaling.md says more.",
        .example = "for w in 0.1 0.3 0.5 0.7 0.9; do\n"
                   "  awk -v w=$w 'BEGIN { printf \"{\\\"weights\\\": {\\\"web\\\": %s, \\\"books\\\": %s}, \", w, 1 - w\n"
                   "    printf \"\\\"losses\\\": {\\\"news\\\": %s, \\\"novels\\\": %s}}\\n\", 2 + exp(-w), 2 + exp(w - 1) }'\n"
                   "done >points.jsonl\n"
                   "quern ablate fit --most web=.8 points.jsonl",
    };
    struct mix_report_conf c = MIX_REPORT_CONF;
    struct mix_report_text text = {0};
    const struct opt opts[] = {MIX_REPORT_OPTS(c), TOOL_OPTS(t), TOOL_JOBS(t), OPT_END};
    struct err e;
    int code, n = tool_begin(&t, opts, argc, argv, &code), rc;

    if (n < 0)
        return code;
    if (n == 0)
        code = tool_usage(&t, "which points?");
    else if (!c.propose && (c.of || c.output))
        code = tool_usage(&t, "--%s goes with --propose", c.of ? "of" : "output");
    else {
        c.threads = tool_jobs(&t);
        rc = mix_report(&c, (const char *const *)argv + 1, n, &text, &e);
        if (rc == 0)
            rc = tell_fit(&c, &text, &e);
        code = rc < 0 ? tool_fail(&t, &e) : tool_end(&t, EXIT_FINE);
    }
    opt_lists_free(opts);
    buf_free(&text.table);
    buf_free(&text.json);
    buf_free(&text.proposal);
    return code;
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "ablate",
        .usage = "[fit] [options] FILE",
        .operands = OPT_NAMES_INPUT,
        .about = "which of several plans makes the better model",
        .details =
            "FILE is a plan of curation with variants of it, the options of a small model, and texts or tasks to evaluate it on. "
            "Each variant is curated and tokenized, what variants have in common once; models are trained on it, each on as many "
            "tokens, with several seeds; the variants are ranked by their scores, with intervals.\n\n"
            "Each training is a process with one thread; -j says how many there are at once. An ablation that was killed goes on "
            "when it is started again, and started several times, on any machines that see the work folder, it shares the "
            "work.\n\n"
            "`quern ablate fit` makes laws of the losses of mixtures and finds the best (quern ablate fit --help).\n\n"
            "docs/ablation.md has the keys of the file.",
        .example = "seq 300 | sed 's/.*/{\"id\":\"&\",\"text\":\"the mill grinds & times\"}/' >mill.jsonl\n"
                   "quern tokenizer train -q --vocab-size 300 -o mill.json mill.jsonl\n"
                   "printf '{input: mill.jsonl, stages: [clean], tokenizer: mill.json, tokens: 2000, seeds: 2,\n"
                   "model: {num-layers: 1, hidden-size: 32, num-attention-heads: 2, seq-length: 16, lr: 1e-2},\n"
                   "eval: {texts: {mill: mill.jsonl}}, decontaminate: false,\n"
                   "variants: {all: {}, near: {add: dedup fuzzy}}}' >mill.yaml\n"
                   "quern ablate mill.yaml",
    };
    struct args x = {.conf = {.wait = true}};
    struct ablation a = {0};
    const struct opt opts[] = {
        OPT_HEAD("In place of what the file says"),
        OPT_FOLDER(0, "work", &x.work, "FOLDER", "what a killed run goes on from; the default is FILE.work"),
        OPT_OUT(0, "stats", &x.stats, "FILE", "write the result as JSON"),
        OPT_OUT(0, "report", &x.report, "FILE", "write a page about it"),
        OPT_INT(0, "seeds", &x.seeds, 0, ABLATION_SEEDS, "trainings of each variant; 0: as the file says"),
        OPT_STR(0, "budget", &x.budget, "TIME", "seconds of processors, or 30m, 2h, 1d: as many seeds as fit"),
        OPT_HEAD("Run"),
        OPT_FLAG(0, "dry-run", &x.dry, "check the file, show the plans and what will run, and stop"),
        OPT_FLAG(0, "halving", &x.conf.halving, "before seeds 3, 5, 9 and so on stop the worse half of the variants left"),
        OPT_FLAG(0, "wait", &x.conf.wait, "wait for what other processes of this ablation work on"),
        OPT_FLAG(0, "keep-models", &x.conf.keep, "keep each run's checkpoint and logs"),
        TOOL_OPTS(t), TOOL_PROGRESS(t),
        OPT_INT('j', "jobs", &t.jobs, 0, 4096, "processes at once; 0: all processors; the result is the same for any N"),
        OPT_END,
    };
    struct err e;
    int code, n, rc;

    if (argc > 1 && strcmp(argv[1], "fit") == 0) {
        argv[1] = argv[0];
        return fit(argc - 1, argv + 1);
    }
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0)
        return code;
    if (n != 1)
        return tool_usage(&t, n ? "it takes one file" : "which ablation?");
    x.conf.jobs = tool_jobs(&t);
    x.conf.a = &a;
    /* Not what each stage says as it is tried. */
    log_init("quern-ablate", t.quiet ? LOG_ERROR : t.verbose ? LOG_DEBUG : LOG_WARN);
    rc = ablation_load(&a, argv[1], &e);
    log_init("quern-ablate", t.quiet ? LOG_ERROR : t.verbose ? LOG_DEBUG : LOG_INFO);
    if (rc == 0)
        rc = override(&x, &a, &e);
    if (rc == 0)
        rc = ablation_plans(&a, &e);
    if (rc == 0 && x.dry)
        code = show(&t, &x, &a);
    else if (rc == 0)
        rc = run(&x, &a, &e);
    if (rc < 0)
        code = tool_fail(&t, &e);
    else if (!x.dry)
        code = tool_end(&t, rc ? EXIT_SOME_BAD : EXIT_FINE);
    ablation_free(&a);
    return code;
}
