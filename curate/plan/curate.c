#include "curate/plan/curate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file_group.h"
#include "base/json.h"
#include "base/log.h"
#include "base/node.h"
#include "curate/plan/part.h"
#include "curate/plan/work_lock.h"

enum { THREADS_A_READER = 8, MAX_PASSES = 64 };

void curate_conf_init(struct curate_conf *c)
{
    *c = (struct curate_conf){.checkpoint = 256 << 20, .wait = true};
}

struct run {
    const struct curate_conf *c;
    struct plan *plan;
    struct part_conf part;
    struct part_pass pass[MAX_PASSES];
    int n_passes;
    int task, tasks;
    pid_t *child;
    int n_children;
    struct stage *stage;
    struct work_lock lock;
    struct part_counts counts; /* own: what the stages said when they were opened */
    struct curate_bad *bad; /* once all is done: inputs with bad records */
    int n_bad;
    double start;
};

/* ---- who we are ---- */

static bool env_number(const char *name, int *n)
{
    const char *s = getenv(name);

    if (!s || !*s || strspn(s, "0123456789") != strlen(s) || strlen(s) > 7)
        return false;
    *n = (int)strtol(s, NULL, 10);
    return true;
}

/* A Slurm array, an MPI rank (Open MPI, MPICH), or a process of srun. */
static void find_task(struct run *r)
{
    int first = 0, n = 0, k = 0;

    r->task = (int)r->c->task;
    r->tasks = (int)r->c->tasks;
    if (r->tasks)
        return;
    r->tasks = 1;
    if (env_number("SLURM_ARRAY_TASK_ID", &k) && env_number("SLURM_ARRAY_TASK_COUNT", &n)) {
        env_number("SLURM_ARRAY_TASK_MIN", &first);
        k -= first;
    } else if (!(env_number("OMPI_COMM_WORLD_RANK", &k) && env_number("OMPI_COMM_WORLD_SIZE", &n)) &&
               !(env_number("PMI_RANK", &k) && env_number("PMI_SIZE", &n)) &&
               !(getenv("SLURM_STEP_ID") && env_number("SLURM_PROCID", &k) && env_number("SLURM_STEP_NUM_TASKS", &n))) {
        return;
    }
    if (n > 0 && k >= 0 && k < n) {
        r->task = k;
        r->tasks = n;
    }
}

/* Divides this task into processes, each a task of its own.  In a child it returns as well. */
static int divide(struct run *r, struct err *e)
{
    int inputs = r->plan->n_inputs, n = (int)r->c->processes, jobs = r->c->jobs;

    if (!n)
        n = (jobs + THREADS_A_READER - 1) / THREADS_A_READER;
    if (n > (inputs + r->tasks - 1) / r->tasks)
        n = (inputs + r->tasks - 1) / r->tasks;
    r->part.jobs = jobs;
    TRY(plan_progress_open(&r->part.progress, n > 1 ? n : 1, e));
    if (n <= 1)
        return 0;
    r->child = calloc((size_t)n, sizeof *r->child);
    if (!r->child)
        return err_set(e, ERR_NOMEM, "out of memory");
    r->part.jobs = (jobs + n - 1) / n;
    r->task *= n;
    r->tasks *= n;
    for (int i = 1; i < n; i++) {
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
            return err_sys(e, ERR_IO, "cannot start a process");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                raise(SIGKILL);
            r->task += i;
            r->n_children = -1; /* a child */
            plan_progress_join(r->part.progress, i);
            return 0;
        }
        r->child[r->n_children++] = pid;
    }
    return 0;
}

/* Fails if a process of ours has. */
static int check_children(struct run *r, bool wait, struct err *e)
{
    for (int i = 0; i < r->n_children; i++) {
        int status;
        pid_t pid = r->child[i] ? waitpid(r->child[i], &status, wait ? 0 : WNOHANG) : 0;

        if (pid == 0)
            continue;
        r->child[i] = 0;
        if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            return err_set(e, ERR_IO, "one of the processes failed");
    }
    return 0;
}

/* ---- the work folder ---- */

static void work_path(const struct run *r, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", r->plan->work, name);
}

/* Whether a file of the work folder was made by a plan: what else a folder of that name holds is the user's. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"plan", "plan.[0-9]*", "finished", "[0-9]*.decided", "[0-9]*.[0-9]*.docs",
                                      "[0-9]*.[0-9]*.notes", "[0-9]*.[0-9]*.rejects", "[0-9]*.[0-9]*.state",
                                      "[0-9]*.[0-9]*.done", "[0-9]*.[0-9]*.answers", ".plan*.part", ".finished*.part",
                                      ".[0-9]*.part"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (fnmatch(own[i], name, 0) == 0)
            return true;
    return false;
}

/* Removes every file that a plan made in the work folder but locks, and the plan and what says that it is done. */
static int clear_work(const struct run *r, bool all, struct err *e)
{
    DIR *d = opendir(r->plan->work);
    struct dirent *f;
    char path[4096];

    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, ERR_IO, "cannot read '%s'", r->plan->work);
    while ((f = readdir(d))) {
        if (!is_own(f->d_name) || work_lock_is(f->d_name))
            continue;
        if (!all && (strcmp(f->d_name, "plan") == 0 || strcmp(f->d_name, "finished") == 0))
            continue;
        work_path(r, f->d_name, path);
        if (unlink(path) < 0) {
            int rc = err_sys(e, ERR_IO, "cannot remove '%s'", path);
            closedir(d);
            return rc;
        }
    }
    closedir(d);
    return 0;
}

static int make_folder(const char *path, struct err *e)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_sys(e, ERR_IO, "cannot make the folder '%s'", path);
    return 0;
}

/* Names the first line in which two descriptions differ. */
static int tell_difference(const struct run *r, struct span was, struct span is, struct err *e)
{
    const char *a = was.p, *b = is.p, *ea = a + was.n, *eb = b + is.n;

    for (;;) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        if (na != nb || memcmp(a, b, na) != 0 || a + na == ea || b + nb == eb)
            return err_set(e, ERR_ARG, "'%s' is the work of another plan or other inputs (it has '%.*s', this one"
                           " '%.*s'); --again starts afresh", r->plan->work, (int)(na < 150 ? na : 150), a,
                           (int)(nb < 150 ? nb : 150), b);
        a += na + 1;
        b += nb + 1;
    }
}

/* Several tasks may do so at once, each with the same bytes. */
static int write_plan(const struct run *r, const char *path, struct span text, struct err *e)
{
    char own[4096 + 16];

    snprintf(own, sizeof own, "%s.%d", path, r->task);
    TRY(file_write_all(own, text, e));
    if (rename(own, path) < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", path);
    return 0;
}

/* The work folder is made ours, or found to be. */
static int claim_work(struct run *r, struct err *e)
{
    struct buf is = {0}, was = {0};
    char path[4096];
    int rc;

    TRY(make_folder(r->plan->work, e));
    TRY(work_lock_take(&r->lock, r->plan->work, r->task, r->tasks, r->c->wait && r->c->wait_given, e));
    if (plan_to_folder(r->plan))
        TRY(make_folder(r->plan->output, e));
    if (r->c->again)
        TRY(clear_work(r, true, e));
    work_path(r, "plan", path);
    rc = plan_describe(r->plan, &is, e);
    if (rc == 0 && access(path, F_OK) == 0) {
        rc = file_read_all(path, 1u << 30, &was, e);
        if (rc == 0 && !span_eq(buf_span(&was), buf_span(&is)))
            rc = tell_difference(r, buf_span(&was), buf_span(&is), e);
    } else if (rc == 0) {
        rc = write_plan(r, path, buf_span(&is), e);
    }
    buf_free(&is);
    buf_free(&was);
    return rc;
}

/* ---- passes ---- */

static int cut_passes(struct run *r, struct err *e)
{
    int n = r->plan->n_stages, last = 0;

    for (int first = 0;; first = last) {
        struct part_pass *p = &r->pass[r->n_passes];

        if (r->n_passes == MAX_PASSES)
            return err_set(e, ERR_LIMIT, "more than %d stages must know other documents", MAX_PASSES - 1);
        *p = (struct part_pass){.number = r->n_passes++, .first = first};
        while (last < n && !p->later)
            p->later = r->stage[last++].ops->commit != NULL;
        p->last = last;
        if (!p->later)
            return 0;
    }
}

static void nap(int *ms)
{
    struct timespec t = {*ms / 1000, *ms % 1000 * 1000000};

    nanosleep(&t, NULL);
    *ms = *ms < 1000 ? *ms * 2 : 2000;
}

/* How many inputs are not through the pass. */
static int undone(const struct run *r, int pass)
{
    int n = 0;

    for (int i = 0; i < r->plan->n_inputs; i++)
        n += !part_is_done(r->plan, pass, i);
    return n;
}

static bool is_finished(const struct run *r)
{
    char path[4096];

    work_path(r, "finished", path);
    return access(path, F_OK) == 0;
}

/* Waits until `left` is 0 for the pass.  1: it is; 0: it is not and we are not to wait, or
 * everything is finished. */
static int wait_for(struct run *r, int pass, int (*left)(const struct run *r, int pass), const char *what, struct err *e)
{
    char waits[80];
    int ms = 10, n;

    while ((n = left(r, pass)) > 0) {
        TRY(check_children(r, false, e));
        if (is_finished(r)) /* and the work folder is empty */
            return 0;
        if (!r->c->wait && r->n_children == 0)
            return 0;
        snprintf(waits, sizeof waits, "waiting for %d %s", n, what);
        plan_progress_wait(r->part.progress, waits);
        nap(&ms);
    }
    return 1;
}

static int undecided(const struct run *r, int pass)
{
    return !part_decided(r->plan, pass);
}

/* 1: every input is through the pass and the next can begin; 0: others have work left. */
static int one_pass(struct run *r, const struct part_pass *p, struct err *e)
{
    int *mine = calloc((size_t)r->plan->n_inputs + 1, sizeof *mine), n = 0, rc;
    double through = 0, total = 0;

    if (!mine)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = r->task; i < r->plan->n_inputs; i += r->tasks) {
        bool done = part_is_done(r->plan, p->number, i);
        double bytes = part_bytes(r->plan, p->number, i);

        total += bytes;
        through += done ? bytes : 0;
        if (!done)
            mine[n++] = i;
    }
    plan_progress_pass(r->part.progress, p->number, r->n_passes, through, total);
    rc = n ? part_run(&r->part, p, mine, n, e) : 0;
    free(mine);
    if (rc < 0 && is_finished(r)) /* by others, meanwhile */
        return 0;
    if (rc < 0 || r->n_passes == p->number + 1)
        return rc < 0 ? rc : 1;
    if (r->task > 0)
        return wait_for(r, p->number, undecided, "decision of task 0", e);
    rc = wait_for(r, p->number, undone, "inputs of other tasks", e);
    if (rc == 1 && p->later)
        TRY(part_decide(&r->part, p, e));
    return rc;
}

/* ---- the end ---- */

static bool all_empty(const struct run *r, enum part_file f, const int (*part)[2], int n)
{
    char path[4096];
    struct stat st;

    for (int i = 0; i < n; i++) {
        part_path(r->plan, part[i][0], part[i][1], f, path);
        if (stat(path, &st) < 0 || st.st_size)
            return false;
    }
    return true;
}

/* Makes `name` of the parts' files one after the other, whole or not at all; a single one is linked. */
static int join(const struct run *r, enum part_file f, const char *name, const int (*part)[2], int n, struct err *e)
{
    struct file_out *out;
    char from[4096];
    int rc = 0;

    if (all_empty(r, f, part, n))
        return file_write_all(name, (struct span){0}, e); /* compressed, it takes some bytes */
    if (n == 1) {
        part_path(r->plan, part[0][0], part[0][1], f, from);
        rc = file_publish_link(from, name, e);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    TRY(file_create_stored(&out, name, e));
    for (int i = 0; i < n && rc == 0; i++) {
        part_path(r->plan, part[i][0], part[i][1], f, from);
        rc = file_put_file(out, from, e);
    }
    if (rc == 0)
        return file_commit(out, e);
    file_abort(out);
    return rc;
}

static int join_outputs(const struct run *r, struct err *e)
{
    static const char *const ending[] = {"", ".gz", ".zst"};
    const struct plan *p = r->plan;
    int last = r->n_passes - 1, n = p->n_inputs, rc = 0, k = 0;
    int (*part)[2] = calloc((size_t)n * (size_t)r->n_passes + 1, sizeof *part);
    char name[4096];

    if (!part)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int pass = 0; pass <= last; pass++)
        for (int i = 0; i < n; i++, k++) {
            part[k][0] = pass;
            part[k][1] = i;
        }
    if (p->rejects)
        rc = join(r, PART_REJECTS, p->rejects, part, k, e);
    if (rc == 0 && !plan_to_folder(p))
        rc = join(r, PART_DOCS, p->output, part + k - n, n, e);
    for (int i = 0; i < n && rc == 0 && plan_to_folder(p); i++) {
        snprintf(name, sizeof name, "%s%06d.jsonl%s", p->output, i, ending[plan_codec(p)]);
        rc = join(r, PART_DOCS, name, part + k - n + i, 1, e);
    }
    free(part);
    return rc;
}

/* Adds what all parts counted to the counts, and the bad records of each input to bad. */
static int sum_parts(struct run *r, uint64_t *bad, struct err *e)
{
    for (int pass = 0; pass < r->n_passes; pass++) {
        for (int i = 0; i < r->plan->n_inputs; i++) {
            uint64_t before = r->counts.flows.bad;

            TRY(part_counts_read(&r->counts, r->plan, pass, i, e));
            bad[i] += r->counts.flows.bad - before;
        }
        if (r->pass[pass].later)
            TRY(part_decided_counts(&r->counts, r->plan, &r->pass[pass], e));
    }
    return 0;
}

/* Adds up what all parts counted, and finds the inputs with bad records. */
static int sum_counts(struct run *r, struct err *e)
{
    uint64_t *bad = calloc((size_t)r->plan->n_inputs + 1, sizeof *bad);
    int rc = bad ? sum_parts(r, bad, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (int i = 0; i < r->plan->n_inputs && rc == 0; i++)
        r->n_bad += bad[i] != 0;
    if (rc == 0 && !(r->bad = calloc((size_t)r->n_bad + 1, sizeof *r->bad)))
        rc = err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0, n = 0; i < r->plan->n_inputs && rc == 0; i++)
        if (bad[i])
            r->bad[n++] = (struct curate_bad){r->plan->input[i], bad[i]};
    free(bad);
    return rc;
}

/* Inputs with bad records, into the object that ends b. */
static int put_bad_inputs(struct buf *b, const struct run *r)
{
    while (b->n && b->p[b->n - 1] != '}')
        b->n--;
    b->n--;
    TRY(json_put_key(b, "bad_inputs"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < r->n_bad; i++) {
        TRY(buf_puts(b, i ? ",{" : "{"));
        TRY(json_put_key(b, "input"));
        TRY(json_put_name(b, r->bad[i].input));
        TRY(json_put_count(b, "bad", r->bad[i].bad));
        TRY(buf_putc(b, '}'));
    }
    return buf_puts(b, "]}\n");
}

/* The statistics of all parts, as they stand in both files that have them. */
static int put_stats(struct run *r, struct buf *b, struct err *e)
{
    static const struct source_ops extract = {.name = "extract"};
    const struct source source = {&extract, NULL};
    int rc = stats_put(b, &r->counts.flows, r->plan->extract ? &source : NULL, r->stage, r->counts.own,
                       log_seconds() - r->start);

    if (rc == 0)
        rc = put_bad_inputs(b, r);
    return rc < 0 ? err_set(e, rc, "out of memory for the statistics") : 0;
}

/* By task 0, once every input is through the last pass.  The statistics are whole before any output appears, and the word
 * that all is done gets its name after them. */
static int finish(struct run *r, struct err *e)
{
    struct file_group stats = {0}, finished = {0};
    struct buf b = {0};
    char path[4096];
    int rc;

    TRY(sum_counts(r, e));
    if (!r->plan->extract)
        TRY(flows_check(&r->counts.flows, NULL, e));
    work_path(r, "finished", path);
    rc = put_stats(r, &b, e);
    if (rc == 0)
        rc = file_group_write(&finished, path, buf_span(&b), e);
    if (rc == 0 && r->plan->stats)
        rc = file_group_write(&stats, r->plan->stats, buf_span(&b), e);
    if (rc == 0)
        rc = file_group_commit(&stats, e);
    if (rc == 0)
        rc = join_outputs(r, e);
    if (rc == 0)
        rc = file_group_commit(&finished, e);
    file_group_abort(&stats);
    file_group_abort(&finished);
    buf_free(&b);
    TRY(rc);
    work_lock_sweep(r->plan->work);
    if (clear_work(r, false, e) < 0) /* all is done: what is left over hurts nobody */
        log_msg(LOG_WARN, "%s; it stays as it is", e->msg);
    return 0;
}

/* The statistics of a run that finished before say how it ended; task 0 speaks for the plan. */
static int end_as_before(const struct run *r, struct curate_result *res, struct err *e)
{
    struct arena a = {0};
    struct node *stats;
    char path[4096];
    int rc = 0;

    res->finished = res->already = true;
    if (r->task == 0) {
        work_path(r, "finished", path);
        rc = node_load_json(&a, path, &stats, e);
        res->bad = rc == 0 ? (uint64_t)node_int(stats, "bad", 0) : 0;
    }
    arena_free(&a);
    return rc;
}

/* ---- the whole ---- */

static int all_passes(struct run *r, struct curate_result *res, struct err *e)
{
    int rc = 1;

    for (int i = 0; i < r->n_passes && rc == 1; i++)
        rc = one_pass(r, &r->pass[i], e);
    if (rc == 1 && r->task == 0)
        rc = wait_for(r, r->n_passes - 1, undone, "inputs of other tasks", e);
    TRY(rc);
    TRY(check_children(r, true, e)); /* which would die with us */
    if (rc != 1 || r->task != 0)
        return 0;
    TRY(finish(r, e));
    res->finished = true;
    res->docs_in = r->counts.flows.flow[0].docs_in;
    res->docs_out = r->counts.flows.flow[r->plan->n_stages].docs_out;
    res->dropped = r->counts.flows.dropped;
    res->bad = r->counts.flows.bad;
    res->bad_input = r->bad;
    res->n_bad_inputs = r->n_bad;
    r->bad = NULL;
    return 0;
}

/* What each stage says of itself before any work. */
static int first_counts(struct run *r, struct err *e)
{
    int rc = part_counts_init(&r->counts, r->plan);

    for (int i = 0; i < r->plan->n_stages && rc == 0; i++)
        if (r->stage[i].ops->stats)
            rc = r->stage[i].ops->stats(r->stage[i].state, &r->counts.own[i + 1]);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for counts") : 0;
}

static int run_stages(struct run *r, struct curate_result *res, struct err *e)
{
    TRY(cut_passes(r, e));
    TRY(first_counts(r, e));
    find_task(r);
    if (r->task >= r->tasks)
        return err_set(e, ERR_ARG, "task %d of %d: tasks are counted from 0", r->task, r->tasks);
    if (r->c->again && r->tasks > 1)
        return err_set(e, ERR_ARG, "--again cannot be given to several tasks: remove '%s' first", r->plan->work);
    TRY(claim_work(r, e));
    if (is_finished(r))
        return end_as_before(r, res, e);
    TRY(divide(r, e));
    return all_passes(r, res, e);
}

int curate_run(const struct curate_conf *c, struct curate_result *res, struct err *e)
{
    struct run r = {.c = c, .plan = c->plan, .lock = {.fd = -1}, .start = log_seconds()};
    int rc;

    *res = (struct curate_result){0};
    TRY(plan_settle(c->plan, e));
    r.stage = calloc((size_t)c->plan->n_stages + 1, sizeof *r.stage);
    if (!r.stage)
        return err_set(e, ERR_NOMEM, "out of memory");
    r.part = (struct part_conf){.plan = c->plan, .stage = r.stage, .checkpoint = (uint64_t)c->checkpoint};
    rc = plan_open_stages(c->plan, r.stage, e);
    if (rc == 0) {
        rc = run_stages(&r, res, e);
        plan_close_stages(c->plan, r.stage);
    }
    if (r.n_children < 0)
        work_lock_drop(&r.lock);
    else
        work_lock_release(&r.lock);
    res->part = r.n_children < 0;
    plan_progress_close(r.part.progress);
    free(r.bad);
    part_counts_free(&r.counts);
    free(r.stage);
    free(r.child);
    res->seconds = log_seconds() - r.start;
    return rc;
}
