#include "curate/stream/driver.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/progress.h"
#include "curate/stream/pass.h"
#include "curate/stream/ranks.h"

/* What ranks send to the first one. */
enum { DOCS, REJECTS, FLOWS, KINDS };

/* Where the time goes: of the passes, and of each that ends with stages that see all, what these decide. */
enum { LAP_FIRST = PASS_LAPS, LAP_DECIDE, LAP_LATER, LAPS };
static const char *const lap_names[LAPS] = {"reading", "writing", "waiting", "first_pass", "decisions", "later_passes"};

struct run {
    const struct driver_conf *c;
    struct feed feed;
    struct flows flows;
    struct spool *spool; /* that the pass under way writes */
    int n_passes, pass; /* how many there are, and the one under way, from 0 */
    double done;        /* bytes that the passes before have read */
    uint64_t items;     /* that were read in the first pass */
    struct file_out *out, *rejects;
    double start;
    struct laps laps;
    struct rank_stream to_first[KINDS]; /* what a rank that does not write sends to the one that does */
};

static bool is_first(const struct run *r)
{
    return !r->c->ranks || r->c->ranks->rank == 0;
}

/* A rank's own file stands at NAME with its number for the *, else the first rank writes NAME. */
static int create(const struct run *r, struct file_out **out, const char *name, struct err *e)
{
    char own[4096];

    if (!r->c->ranks || !strchr(name, '*'))
        return is_first(r) ? file_create(out, name, 0, e) : 0;
    TRY(ranks_own_name(own, name, r->c->ranks->rank, e));
    return file_create(out, own, 0, e);
}

/* Where what is put aside goes: $TMPDIR, else beside the output where that is a file, else /tmp. */
static const char *spool_dir(const struct driver_conf *c, char *buf, size_t size)
{
    const char *tmp = getenv("TMPDIR"), *slash;
    struct stat st;

    if (tmp && *tmp)
        return tmp;
    if (!c->output || strcmp(c->output, "-") == 0 || (stat(c->output, &st) == 0 && !S_ISREG(st.st_mode)))
        return "/tmp";
    slash = strrchr(c->output, '/');
    if (!slash)
        return ".";
    if ((size_t)(slash - c->output) >= size)
        return "/tmp";
    snprintf(buf, size, "%.*s", (int)(slash - c->output) + (slash == c->output), c->output);
    return buf;
}

static int ask_stage(void *of, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    const struct stage *st = of;

    return st->ops->judge(st->state, n, v, reply, a, e);
}

/* Shows where the run stands: all passes have one total, in which those to come read what this one has kept so far, scaled up
 * to its end. */
static void tell(void *run, const struct pass_now *now)
{
    struct run *r = run;
    int left = r->n_passes - 1 - r->pass;
    double consumed = (double)now->where.consumed, total = (double)now->where.total;
    char phase[48];
    struct progress p = {.input = now->where.input, .done = r->done + consumed,
                         .count = {{"read", 0}, {"dropped", (double)now->flows->dropped}, {"bad", (double)now->flows->bad}}};

    if (r->pass == 0)
        r->items = now->items;
    if (!progress_due())
        return;
    p.count[0].value = (double)r->items;
    if (total > 0)
        p.total = r->done + total +
                  (left && r->spool && consumed > 0 ? left * (double)spool_size(r->spool) * fmax(total / consumed, 1) : 0);
    if (r->n_passes > 1) {
        snprintf(phase, sizeof phase, "pass %d of %d", r->pass + 1, r->n_passes);
        p.phase = phase;
    }
    progress_show(&p);
}

/* Stages [first, last), up to one that must see all documents, or to the end. */
static int one_pass(struct run *r, int first, int last, bool later, struct err *e)
{
    const struct driver_conf *c = r->c;
    struct pass_out out = {.frames = later, .spool = later ? r->spool : NULL};
    struct pass_conf conf = {.stages = c->stages, .n_stages = c->n_stages, .first = first, .last = last,
                             .later = later, .source = c->source, .feed = &r->feed, .jobs = c->jobs, .out = &out, .n_out = 1,
                             .full = c->rejects_full, .flows = &r->flows, .tell = is_first(r) ? tell : NULL, .tell_of = r,
                             .laps = &r->laps};
    struct pass *p;
    int rc;

    if (!later)
        out.to = r->out ? (struct sink){sink_file, r->out} : (struct sink){ranks_put, &r->to_first[DOCS]};
    if (r->rejects)
        conf.rejects = (struct sink){sink_file, r->rejects};
    else if (c->rejects && !later)
        conf.rejects = (struct sink){ranks_put, &r->to_first[REJECTS]};
    TRY(pass_open(&p, &conf, e));
    rc = pass_run(p, 0, e);
    pass_close(p);
    return rc;
}

/* The next pass reads what this one kept. */
static void turn_spool(struct run *r, struct stage *judge)
{
    struct source_where read;

    feed_where(&r->feed, &read);
    r->done += (double)read.consumed;
    r->pass++;
    feed_close(&r->feed);
    r->feed = (struct feed){.spool = r->spool, .judge = {ask_stage, judge},
                            .account = r->c->rejects != NULL, .size = spool_size(r->spool)};
    r->spool = NULL;
}

static int all_passes(struct run *r, struct err *e)
{
    const struct driver_conf *c = r->c;
    uint64_t t;
    char dir[4096];

    r->n_passes = 1;
    for (int i = 0; i < c->n_stages; i++)
        r->n_passes += c->stages[i].ops->resolve != NULL;
    for (int first = 0, last = 0;; first = last) {
        bool later = false;

        while (last < c->n_stages && !later)
            later = c->stages[last++].ops->resolve != NULL;
        if (later)
            TRY(spool_open(&r->spool, spool_dir(c, dir, sizeof dir), e));
        t = laps_now();
        TRY(one_pass(r, first, last, later, e));
        t = laps_add(&r->laps, r->pass ? LAP_LATER : LAP_FIRST, t);
        if (!later)
            return 0;
        TRY(c->stages[last - 1].ops->resolve(c->stages[last - 1].state, c->jobs, e));
        laps_add(&r->laps, LAP_DECIDE, t);
        turn_spool(r, &c->stages[last - 1]);
    }
}

/* ---- statistics ---- */

static int put_stats(struct buf *b, const struct run *r)
{
    const struct driver_conf *c = r->c;
    struct buf *own = calloc((size_t)c->n_stages + 1, sizeof *own);
    int rc = own ? 0 : ERR_NOMEM;

    if (rc == 0 && c->source && c->source->ops->stats)
        rc = c->source->ops->stats(c->source->state, &own[0]);
    for (int i = 0; i < c->n_stages && rc == 0; i++)
        if (c->stages[i].ops->stats)
            rc = c->stages[i].ops->stats(c->stages[i].state, &own[i + 1]);
    if (rc == 0)
        rc = stats_put(b, &(struct stats){.flows = &r->flows, .docs_out = r->flows.flow[c->n_stages].docs_out,
                                          .bytes_out = r->flows.flow[c->n_stages].bytes_out, .source = c->source,
                                          .stages = c->stages, .own = own, .seconds = log_seconds() - r->start,
                                          .laps = &r->laps});
    for (int i = 0; i <= c->n_stages && own; i++)
        buf_free(&own[i]);
    free(own);
    return rc;
}

static int write_stats(const struct run *r, struct file_group *files, struct err *e)
{
    struct buf b = {0};
    int rc = put_stats(&b, r);

    if (rc < 0)
        err_set(e, rc, "out of memory for the statistics");
    else
        rc = file_group_write(files, r->c->stats, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* ---- ranks ---- */

static int share_inputs(struct run *r, struct err *e)
{
    static char nothing[] = "/dev/null";
    static char *const none[] = {nothing};
    int first, n;

    if (!r->c->ranks)
        return 0;
    for (int i = 0; i < KINDS; i++)
        r->to_first[i] = (struct rank_stream){r->c->ranks, i};
    TRY(ranks_share(r->c->ranks, r->c->inputs, r->c->n_inputs, &first, &n, e));
    r->feed.lines.paths = n ? r->c->inputs + first : none;
    r->feed.lines.n_paths = n ? n : 1;
    return 0;
}

static int add_flows(void *run, struct span json, struct err *e)
{
    struct run *r = run;
    struct arena a = {0};
    struct flows more;
    struct node *root;
    int rc = flows_init(&more, r->c->n_stages) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;

    if (rc == 0)
        rc = node_parse_json(&a, json, &root, e);
    if (rc == 0)
        rc = flows_get(&more, root, e);
    if (rc == 0 && flows_add(&r->flows, &more) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    flows_free(&more);
    arena_free(&a);
    return rc;
}

static int send_flows(struct run *r, struct err *e)
{
    struct buf b = {0};
    int rc = flows_put(&r->flows, &b);

    rc = rc < 0 ? err_set(e, rc, "out of memory for the counts") : ranks_put(&r->to_first[FLOWS], buf_span(&b), e);
    buf_free(&b);
    return rc < 0 ? rc : ranks_end(r->c->ranks, e);
}

/* After its own, the first rank writes what the others have. */
static int gather(struct run *r, struct err *e)
{
    const struct sink to[KINDS] = {{sink_file, r->out}, {sink_file, r->rejects}, {add_flows, r}};

    if (!r->c->ranks)
        return 0;
    return is_first(r) ? ranks_collect(r->c->ranks, to, KINDS, e) : send_flows(r, e);
}

/* ---- the whole ---- */

static int open_outputs(struct run *r, struct err *e)
{
    TRY(create(r, &r->out, r->c->output ? r->c->output : "-", e));
    return r->c->rejects ? create(r, &r->rejects, r->c->rejects, e) : 0;
}

/* Hands a file over, whole, unless it is not there. */
static int give(struct file_group *files, struct file_out **f, struct err *e)
{
    struct file_out *given = *f;

    *f = NULL;
    return given ? file_group_add(files, given, e) : 0;
}

/* All files get their names when all are whole, the output last: while it is not there the run has to be done again. */
static int finish_outputs(struct run *r, struct file_group *files, struct err *e)
{
    for (int i = 0; i < r->c->n_stages; i++)
        if (r->c->stages[i].ops->finish)
            TRY(r->c->stages[i].ops->finish(r->c->stages[i].state, files, e));
    TRY(give(files, &r->rejects, e));
    if (r->c->stats && is_first(r))
        TRY(write_stats(r, files, e));
    TRY(give(files, &r->out, e));
    return file_group_commit(files, e);
}

static int commit_outputs(struct run *r, struct err *e)
{
    struct file_group files = {0};
    int rc = finish_outputs(r, &files, e);

    file_group_abort(&files);
    return rc;
}

static int run_all(struct run *r, struct err *e)
{
    TRY(share_inputs(r, e));
    TRY(feed_check(&r->feed, e));
    TRY(open_outputs(r, e));
    TRY(all_passes(r, e));
    TRY(gather(r, e));
    if (is_first(r))
        TRY(flows_check(&r->flows, r->c->source, e));
    return commit_outputs(r, e);
}

int driver_run(const struct driver_conf *c, struct driver_result *res, struct err *e)
{
    struct run r = {.c = c, .start = log_seconds(), .laps = {.name = lap_names, .n = LAPS}};
    const struct flow *in, *out;
    int rc;

    file_set_row_group(c->row_group);
    r.feed = (struct feed){.lines = {.paths = c->inputs, .n_paths = c->n_inputs, .columns = c->columns,
                                     .max_line = (uint64_t)c->max_line},
                           .text_key = c->text_key, .source = c->source};
    if (flows_init(&r.flows, c->n_stages) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = run_all(&r, e);
    in = r.flows.flow;
    out = &r.flows.flow[c->n_stages];
    *res = (struct driver_result){in->docs_in,  out->docs_out,  r.flows.dropped,        r.flows.bad,
                                  in->bytes_in, out->bytes_out, log_seconds() - r.start};
    feed_close(&r.feed);
    spool_close(r.spool);
    file_abort(r.out);
    file_abort(r.rejects);
    flows_free(&r.flows);
    return rc;
}

/* Where a rank's own name is made of the option's, all ranks' names. */
static int account(const struct driver_conf *c, struct err *e)
{
    const char *const name[] = {c->output, c->rejects}, *const what[] = {"--output", "--rejects"};
    char own[4096];

    for (int i = 0; i < 2; i++)
        for (int rank = 0; name[i] && strchr(name[i], '*') && rank < c->ranks->size; rank++) {
            TRY(ranks_own_name(own, name[i], rank, e));
            TRY(run_writes(tool_files(), what[i], own, e));
        }
    return run_files_check(tool_files(), e);
}

int driver_main(const struct tool *t, struct driver_conf *c, int n_operands, char **argv)
{
    struct driver_result r;
    struct err e;

    c->inputs = argv + 1;
    c->n_inputs = n_operands;
    c->jobs = tool_jobs(t);
    if (c->rejects_full && !c->rejects)
        return tool_usage(t, "--rejects-full says more in --rejects, which is not given");
    if (n_operands == 0 && isatty(STDIN_FILENO))
        log_msg(LOG_INFO, "no file is named: what you type is read, until ^D");
    if ((c->ranks && account(c, &e) < 0) || driver_run(c, &r, &e) < 0)
        return tool_fail(t, &e);
    if (c->ranks && c->ranks->rank)
        return tool_end(t, EXIT_FINE);
    progress_end();
    log_msg(LOG_INFO, "%" PRIu64 " in, %" PRIu64 " out, %" PRIu64 " dropped, %" PRIu64
            " bad; %.1f MB in %.1f s", r.docs_in, r.docs_out, r.dropped, r.bad,
            (double)r.bytes_in / 1e6, r.seconds);
    return tool_end(t, r.bad ? EXIT_SOME_BAD : EXIT_FINE);
}

int driver_some(const struct tool *t, struct driver_conf *c, struct stage *stage, int n, int opened, const struct err *e,
                int n_operands, char **argv)
{
    int code;

    c->stages = stage;
    c->n_stages = n;
    code = opened < 0 ? tool_fail(t, e) : driver_main(t, c, n_operands, argv);
    for (int i = 0; i < n; i++)
        stage[i].ops->close(stage[i].state);
    return code;
}

int driver_one(const struct tool *t, struct driver_conf *c, struct stage *stage, int opened, const struct err *e, int n_operands,
               char **argv)
{
    return driver_some(t, c, stage, opened < 0 ? 0 : 1, opened, e, n_operands, argv);
}
