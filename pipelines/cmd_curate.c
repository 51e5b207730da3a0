/* quern curate: runs a plan. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/tool.h"
#include "pipelines/curate.h"
#include "pipelines/folder_ranks.h"
#include "pipelines/token_cutter.h"
#include "curate/stream/driver.h"

/* --check: what would run. */
static int show(const struct tool *t, struct plan *p)
{
    struct stage *stage;
    struct buf b = {0};
    struct err e;
    int rc = plan_open_stages(p, NULL, &stage, &e);

    if (rc == 0) {
        plan_close_stages(p, stage);
        rc = plan_describe(p, &b, &e);
    }
    if (rc == 0)
        fwrite(b.p, 1, b.n, stdout);
    buf_free(&b);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, EXIT_FINE);
}

/* The last lines of a run name the inputs that were not read whole. */
static void tell_bad_inputs(struct curate_result *r)
{
    enum { NAMED = 20 };

    for (int i = 0; i < r->n_bad_inputs && i < NAMED; i++)
        log_msg(LOG_WARN, "input '%s': %" PRIu64 " bad record%s", r->bad_input[i].input, r->bad_input[i].bad,
                r->bad_input[i].bad == 1 ? "" : "s");
    if (r->n_bad_inputs > NAMED)
        log_msg(LOG_WARN, "%d more inputs have bad records; \"bad_inputs\" in the statistics has all", r->n_bad_inputs - NAMED);
    free(r->bad_input);
}

/* Ranks that decide together. */
struct rank_conf {
    const char *backend; /* NULL: tasks meet in the work folder alone */
    double minutes;
    bool minutes_given;
};

/* Tasks that say what they have to say in the work folder. */
static int open_tasks(struct comm **world, const struct curate_conf *c, const struct rank_conf *ranks, struct err *e)
{
    struct folder_ranks f = {.task = c->task, .tasks = c->tasks, .minutes = ranks->minutes_given ? ranks->minutes : 0};
    struct work_lock none;

    if (c->processes || !c->wait)
        return err_set(e, ERR_ARG, "--ranks files has all tasks decide together: without --processes and --no-wait");
    return folder_ranks_open(world, &f, &none, e);
}

static int open_ranks(struct curate_conf *c, const struct rank_conf *ranks, struct err *e)
{
    static struct comm *world; /* not closed after a failure, and no leak: the launcher is to end the others */
    bool files = ranks->backend && strcmp(ranks->backend, "files") == 0;

    if (!ranks->backend)
        return 0;
    if (!files && (c->tasks || c->processes || !c->wait))
        return err_set(e, ERR_ARG, "--ranks says who shares the plan: without --tasks, --processes and --no-wait");
    TRY(files ? open_tasks(&world, c, ranks, e) : comm_open(&world, ranks->backend, ranks->minutes * 60, e));
    if (world->size > 1)
        c->ranks = world;
    else
        comm_close(world);
    return 0;
}

static int run(const struct tool *t, struct curate_conf *c, const struct rank_conf *ranks)
{
    struct curate_result r;
    struct err e;
    bool first;

    c->jobs = tool_jobs(t);
    if (open_ranks(c, ranks, &e) < 0 || curate_run(c, &r, &e) < 0)
        return tool_fail(t, &e);
    first = !r.part && !(c->ranks && c->ranks->rank);
    if (c->ranks)
        comm_close(c->ranks);
    progress_end();
    if (!first)
        return tool_end(t, EXIT_FINE);
    if (r.already && r.bad)
        log_msg(LOG_WARN, "'%s' says that this is done, with %" PRIu64 " bad record%s; --again does it again", c->plan->work,
                r.bad, r.bad == 1 ? "" : "s");
    else if (r.already)
        log_msg(LOG_INFO, "'%s' says that this is done; --again does it again", c->plan->work);
    else if (!r.finished)
        log_msg(LOG_INFO, "this task's share is done as far as can be");
    else
        log_msg(LOG_INFO, "%" PRIu64 " in, %" PRIu64 " out, %" PRIu64 " dropped, %" PRIu64 " bad; %.1f s", r.docs_in,
                r.docs_out, r.dropped, r.bad, r.seconds);
    tell_bad_inputs(&r);
    return tool_end(t, r.bad ? EXIT_SOME_BAD : EXIT_FINE);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "curate",
        .usage = "[options] PLAN [INPUT...]",
        .operands = OPT_NAMES_TREE,
        .about = "run a whole plan: extract, clean, filter, remove duplicates, tokenize",
        .details =
            "A plan is a YAML file with the keys input, stages and output: the stages are the commands of a pipe "
            "with their settings, and what comes out is what the pipe would give. INPUT replaces the plan's "
            "inputs. Branches take documents by their fields, with stages and outputs of their own; tokenize and "
            "stats end one.\n\n"
            "A run that was killed goes on where it was when it is started again. Several tasks (an array of Slurm, "
            "ranks of MPI, or --task and --tasks) share the inputs of one plan through its work folder, and give "
            "the same output.\n\n"
            "The output is one file, or with a slash behind its name a folder with a file for each input.",
        .example = "printf 'stages: [clean, dedup exact]\\noutput: clean.jsonl\\n' >plan.yaml\n"
                   "printf '{\"id\":\"a\",\"text\":\"x\"}\\n{\"id\":\"b\",\"text\":\"x\"}\\n' >docs.jsonl\n"
                   "quern curate plan.yaml docs.jsonl",
    };
    struct curate_conf c;
    struct plan plan;
    const char *output = NULL, *rejects = NULL, *stats = NULL, *report = NULL, *work = NULL, *keep = NULL;
    bool check = false, full = false;
    struct forget_conf forget;
    struct rank_conf ranks = {NULL, COMM_TIMEOUT_MINUTES, false};
    const struct opt opts[] = {
        OPT_HEAD("In place of what the plan says"),
        OPT_OUT('o', "output", &output, "FILE|FOLDER/", "where documents go"),
        OPT_OUT(0, "rejects", &rejects, "FILE", REJECTS_HELP),
        OPT_FLAG(0, "rejects-full", &full, REJECTS_FULL_HELP),
        OPT_OUT(0, "stats", &stats, "FILE", "write counts as JSON"),
        OPT_OUT(0, "report", &report, "FILE", "write a page about both, as quern report does"),
        OPT_FOLDER(0, "work", &work, "FOLDER", "what a killed run goes on from; the default is OUTPUT.work"),
        OPT_FOLDER(0, "keep", &keep, "FOLDER", "keep the documents before the first stage that compares them, to go on from"),
        OPT_HEAD("Pages that are to be forgotten"),
        OPT_IN_LIST(0, "forget-ids", &forget.ids, "FILE", "as if the documents whose id is a line of FILE were not there"),
        OPT_IN_LIST(0, "forget-urls", &forget.urls, "FILE", "likewise those whose URL is"),
        OPT_HEAD("Run"),
        OPT_FLAG(0, "check", &check, "check the plan, show its settings, and stop"),
        CURATE_OPTS(c),
        OPT_STR(0, "ranks", &ranks.backend, "KIND",
                "who shares the plan decides together: auto, mpi, tcp, self (alone), or files: tasks, in the work folder"),
        {.type = OPT_TYPE_NUM, .name = "distributed-timeout-minutes", .arg = "X", .value = &ranks.minutes, .fmin = 0.001,
         .fmax = 1e6, .given = &ranks.minutes_given,
         .help = "with --ranks: how long a rank may keep the others waiting in an exchange; of files any time, unless given"},
        TOOL_OPTS(t),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        OPT_END,
    };
    struct err e;
    int code, n, rc;

    forget_conf_init(&forget);
    curate_conf_init(&c);
    dedup_tokenizers = &token_cutter;
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0)
        return code;
    if (n == 0)
        return tool_usage(&t, "which plan?");
    if (plan_load(&plan, argv[1], argv + 2, n - 1, &e) < 0)
        return tool_fail(&t, &e);
    plan.branch->output = output ? output : plan.branch->output;
    plan.rejects = rejects ? rejects : plan.rejects;
    plan.rejects_full = plan.rejects_full || full;
    plan.stats = stats ? stats : plan.stats;
    plan.report = report ? report : plan.report;
    plan.work = work ? work : plan.work;
    plan.keep = keep ? keep : plan.keep;
    c.plan = &plan;
    rc = plan_forget(&plan, &forget, &e);
    if (rc == 0)
        rc = plan_settle(&plan, &e);
    run_files_free(tool_files()); /* of operands and options: the plan has them all */
    if (rc == 0)
        rc = plan_files(&plan, tool_files(), &e);
    code = rc < 0 ? tool_fail(&t, &e) : check ? show(&t, &plan) : run(&t, &c, &ranks);
    plan_free(&plan);
    opt_lists_free(opts);
    return code;
}
