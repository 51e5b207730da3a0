#include "pipelines/ablation/ablation_run.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/program.h"
#include "base/progress.h"
#include "pipelines/ablation/ablation_commands.h"
#include "pipelines/work_lock.h"

/* A process at work; pid 0: none. */
struct ablation_slot {
    pid_t pid;
    struct ablation_unit u;
    struct work_lock lock;
    double train_seconds;
};

struct runner {
    const struct ablation_conf *c;
    const struct ablation *a;
    struct ablation_result *r;
    struct ablation_slot *slot;
    int running;
    int told;  /* seeds, as the budget was said to allow; 0: nothing was said */
    bool cut;  /* a run has taken what was left of the budget */
};

/* ---- processes ---- */

/* In the child: what it says goes to the log; it is no rank of anything, dies with its parent, and holds the lock as long as it
 * lives.  Does not come back. */
static void become(const char *path, char *const *argv, const char *log, const struct ablation_slot *s, pid_t parent,
                   double seconds)
{
    static const char *const ranks[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"};
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666), null = open("/dev/null", O_RDONLY);
    const struct rlimit limit = {(rlim_t)seconds + 1, RLIM_INFINITY};
    static const char told[] = "cannot start this command\n";

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        raise(SIGKILL);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        unsetenv(ranks[i]);
    if (seconds > 0)
        setrlimit(RLIMIT_CPU, &limit);
    if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        raise(SIGKILL);
    if (s->lock.fd >= 0)
        fcntl(s->lock.fd, F_SETFD, 0);
    execvp(path, argv);
    fd_put(2, told, sizeof told - 1);
    raise(SIGKILL);
}

/* Starts the command of a slot's activity. */
static int start(struct runner *r, struct ablation_slot *s, struct err *e)
{
    struct opt_list args = {0};
    struct arena mem = {0};
    char path[4096], log[4300];
    double left = r->a->budget ? fmax(1, r->a->budget - ablation_spent(r->r, r->a)) : 0;
    pid_t parent = getpid(), pid;
    int rc;

    program_path(ablation_command_name(&s->u), path, sizeof path);
    ablation_unit_file(r->a, &s->u, "log", log);
    rc = opt_list_add(&args, path, e);
    if (rc == 0)
        rc = ablation_command(&args, &mem, r->c, r->r, &s->u, e);
    if (rc == 0)
        rc = opt_list_add(&args, NULL, e);
    pid = rc == 0 ? fork() : 0;
    if (rc == 0 && pid == 0)
        become(path, (char *const *)(uintptr_t)args.v, log, s, parent, left);
    if (rc == 0 && pid < 0)
        rc = err_sys(e, ERR_IO, "cannot start a process");
    opt_list_free(&args);
    arena_free(&mem);
    s->pid = rc == 0 ? pid : 0;
    return rc;
}

static void give_up(struct runner *r, struct ablation_slot *s)
{
    work_lock_release(&s->lock);
    s->pid = 0;
    r->running--;
}

/* The last line of a log, for a message. */
static void last_line(const char *log, char line[200])
{
    struct buf b = {0};
    const char *p;
    struct err e;

    line[0] = '\0';
    if (file_read_all(log, 1 << 24, &b, &e) == 0 && b.n) {
        size_t n = b.n - (b.p[b.n - 1] == '\n');

        for (p = b.p + n; p > b.p && p[-1] != '\n'; p--)
            ;
        snprintf(line, 200, "%.*s", (int)(b.p + n - p), p);
    }
    buf_free(&b);
}

static int command_failed(const struct runner *r, const struct ablation_slot *s, int status, struct err *e)
{
    int variant = s->u.activity == ABLATION_CURATE ? r->a->group[s->u.number].first : s->u.number;
    const char *name = r->a->variant[variant].name;
    char log[4300], line[200], seed[32] = "";

    ablation_unit_file(r->a, &s->u, "log", log);
    last_line(log, line);
    if (s->u.activity != ABLATION_CURATE)
        snprintf(seed, sizeof seed, ", seed %d", s->u.seed + 1);
    if (WIFSIGNALED(status))
        return err_set(e, ERR_IO, "quern %s of '%s'%s was ended by signal %d; '%s' has its messages",
                       ablation_command_name(&s->u), name, seed, WTERMSIG(status), log);
    return err_set(e, ERR_IO, "quern %s of '%s'%s failed: %s; '%s' has its messages", ablation_command_name(&s->u), name, seed,
                   line, log);
}

/* ---- what a process leaves ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
    (void)st;
    (void)kind;
    (void)f;
    return remove(path);
}

static int finish_group(const struct runner *r, const struct ablation_slot *s, double seconds, struct err *e)
{
    struct arena mem = {0};
    struct buf b = {0};
    struct node *stats;
    char path[4300];
    int rc;

    ablation_unit_file(r->a, &s->u, "stats.json", path);
    rc = node_load_json(&mem, path, &stats, e);
    buf_putc(&b, '{');
    json_put_real(&b, "cpu_seconds", seconds);
    json_put_count(&b, "bad", rc == 0 ? (uint64_t)node_int(stats, "bad", 0) : 0);
    buf_puts(&b, "}\n");
    ablation_unit_file(r->a, &s->u, "done.json", path);
    if (rc == 0)
        rc = b.failed ? err_set(e, ERR_NOMEM, "out of memory") : file_write_all(path, buf_span(&b), e);
    buf_free(&b);
    arena_free(&mem);
    return rc;
}

/* The first metric of each evaluation, from the statistics of quern eval. */
static int put_scores(const struct runner *r, const struct node *tasks, struct buf *b, struct err *e)
{
    const struct node *t = tasks ? tasks->child : NULL;

    for (int i = 0; i < r->a->n_evals; i++, t = t->next) {
        const struct node *metrics = t ? node_get(t, "metrics") : NULL;

        if (!metrics || !metrics->child)
            return err_set(e, ERR_FORMAT, "quern eval gave no score of '%s'", r->a->eval[i].name);
        json_put_key(b, r->a->eval[i].name);
        buf_putc(b, '{');
        json_put_key(b, "metric");
        json_put_string(b, metrics->child->key);
        json_put_real(b, "value", node_num(metrics->child, "value", NAN));
        json_put_real(b, "error", node_num(metrics->child, "error", NAN));
        buf_putc(b, '}');
    }
    return 0;
}

/* Writes what a run gave, whole, and removes the rest. */
static int finish_run(const struct runner *r, const struct ablation_slot *s, double seconds, struct err *e)
{
    struct arena mem = {0};
    struct buf b = {0};
    struct node *root;
    char path[4300], folder[4096], runs[4096], result[4200];
    int rc;

    ablation_unit_file(r->a, &s->u, "eval.json", path);
    rc = node_load_json(&mem, path, &root, e);
    buf_puts(&b, "{\"variant\":");
    json_put_name(&b, r->a->variant[s->u.number].name);
    json_put_count(&b, "seed", (uint64_t)(ABLATION_FIRST_SEED + s->u.seed));
    json_put_count(&b, "tokens", (uint64_t)(r->a->steps * r->a->step_tokens));
    json_put_key(&b, "scores");
    buf_putc(&b, '{');
    if (rc == 0)
        rc = put_scores(r, node_get(root, "tasks"), &b, e);
    buf_putc(&b, '}');
    json_put_real(&b, "train_seconds", s->train_seconds);
    json_put_real(&b, "eval_seconds", seconds);
    buf_puts(&b, "}\n");
    ablation_runs_path(r->a, s->u.number, runs);
    snprintf(result, sizeof result, "%s/%d.json", runs, s->u.seed + 1);
    if (rc == 0)
        rc = b.failed ? err_set(e, ERR_NOMEM, "out of memory") : file_write_all(result, buf_span(&b), e);
    ablation_unit_folder(r->a, &s->u, folder);
    if (rc == 0 && !r->c->keep)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    buf_free(&b);
    arena_free(&mem);
    return rc;
}

/* A process has ended: what it did is noted, or the run goes on with its next command. */
static int ended(struct runner *r, struct ablation_slot *s, int status, double seconds, struct err *e)
{
    int rc;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU && r->a->budget) {
        r->cut = true;
        give_up(r, s);
        return 0;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) > (s->u.activity == ABLATION_CURATE))
        rc = command_failed(r, s, status, e);
    else if (s->u.activity == ABLATION_CURATE)
        rc = finish_group(r, s, seconds, e);
    else if (s->u.activity == ABLATION_EVAL)
        rc = finish_run(r, s, seconds, e);
    else {
        s->train_seconds = seconds;
        s->u.activity = ABLATION_EVAL;
        rc = start(r, s, e);
        if (rc == 0)
            return 0;
    }
    give_up(r, s);
    return rc;
}

/* ---- what is to be done ---- */

static bool is_there(const struct runner *r, const struct ablation_slot *s)
{
    char folder[4096], path[4200];

    ablation_unit_folder(r->a, &s->u, folder);
    snprintf(path, sizeof path, s->u.activity == ABLATION_CURATE ? "%s/done.json" : "%s.json", folder);
    return access(path, F_OK) == 0;
}

/* Takes a unit of work for a free slot, if nobody else has it.  1: it has started; 0: it is another's, or done. */
static int take(struct runner *r, enum ablation_activity activity, int unit, int seed, struct err *e)
{
    struct ablation_slot *s = r->slot;
    char folder[4096];
    int rc;

    while (s->pid)
        s++;
    *s = (struct ablation_slot){.u = {activity, unit, seed}};
    ablation_unit_folder(r->a, &s->u, folder);
    TRY(file_make_folders(folder, e));
    rc = work_lock_try(&s->lock, folder, e);
    if (rc <= 0)
        return rc;
    if (is_there(r, s)) { /* somebody has finished it meanwhile */
        work_lock_release(&s->lock);
        if (activity != ABLATION_CURATE)
            rmdir(folder);
        return 0;
    }
    rc = start(r, s, e);
    if (rc < 0) {
        work_lock_release(&s->lock);
        return rc;
    }
    r->running++;
    return 1;
}

static bool is_running(const struct runner *r, int variant, int seed)
{
    for (int i = 0; i < r->c->jobs; i++)
        if (r->slot[i].pid && r->slot[i].u.activity != ABLATION_CURATE && r->slot[i].u.number == variant &&
            r->slot[i].u.seed == seed)
            return true;
    return false;
}

/* Curates a group; one at a time, with all threads.  1: one has started; 0: none is to be done here. */
static int next_group(struct runner *r, struct err *e)
{
    for (int g = 0; g < r->a->n_groups; g++)
        if (!r->r->data[r->a->group[g].first].done) {
            int rc = take(r, ABLATION_CURATE, g, 0, e);

            if (rc)
                return rc;
        }
    return 0;
}

/* Says what the budget allows, whenever that changes. */
static void tell_budget(struct runner *r, int seeds, double mean)
{
    if (!r->a->budget || mean == 0 || r->told == seeds)
        return;
    r->told = seeds;
    log_msg(LOG_INFO, "a run takes %.1f s: %d of %" PRId64 " seeds fit into %.0f s, of which %.1f are spent", mean, seeds,
            r->a->seeds, r->a->budget, ablation_spent(r->r, r->a));
}

/* Whether the budget has room for one more run beside those at work.  Until one has been measured, only first seeds are. */
static bool is_affordable(const struct runner *r, int seed, double mean)
{
    if (!r->a->budget)
        return true;
    if (r->cut || (mean == 0 && seed > 0))
        return false;
    return ablation_spent(r->r, r->a) + mean * (r->running + 1) <= r->a->budget;
}

/* Starts a run, of all variants by one seed after the other.  1: one has started; 0: none can now; *left: some are to be done,
 * here or elsewhere. */
static int next_run(struct runner *r, bool *left, struct err *e)
{
    const struct ablation *a = r->a;
    struct ablation_result *x = r->r;
    double mean;

    x->seeds = ablation_seeds(x, a, r->c->halving, &mean);
    x->spent = r->cut;
    tell_budget(r, x->seeds, mean);
    *left = !ablation_schedule(x, a, r->c->halving);
    for (int s = 0; s < x->seeds; s++)
        for (int v = 0; v < a->n_variants; v++) {
            int rc;

            if (s >= x->upto[v] || ablation_has(x, a, v, s))
                continue;
            *left = true;
            if (!x->data[v].done || is_running(r, v, s))
                continue;
            x->spent = !is_affordable(r, s, mean);
            if (x->spent)
                return 0;
            rc = take(r, ABLATION_TRAIN, v, s, e);
            if (rc)
                return rc;
        }
    return 0;
}

static void tell_progress(const struct runner *r)
{
    double done = 0, all = 0;

    for (int v = 0; v < r->a->n_variants; v++) {
        all += r->r->upto[v];
        for (int s = 0; s < r->r->upto[v]; s++)
            done += ablation_has(r->r, r->a, v, s);
    }
    progress_show(&(struct progress){.phase = "trainings", .unit = "runs", .done = done, .total = all});
}

/* Waits for one of the processes; after it the results are read anew. */
static int reap(struct runner *r, struct err *e)
{
    struct rusage use;
    int status;
    pid_t pid = wait4(-1, &status, 0, &use);

    if (pid < 0)
        return errno == EINTR ? 0 : err_sys(e, ERR_IO, "cannot wait for a process");
    for (int i = 0; i < r->c->jobs; i++)
        if (r->slot[i].pid == pid)
            return ended(r, &r->slot[i], status, (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                                                     1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec), e);
    return 0;
}

/* Starts as much as there are slots for.  *left: something is to be done, here or elsewhere. */
static int fill(struct runner *r, bool *left, struct err *e)
{
    int rc = 1;

    *left = false;
    if (r->running == 0 && !r->cut) {
        rc = next_group(r, e);
        if (rc) {
            *left = true;
            return rc < 0 ? rc : 0;
        }
    }
    for (int i = 0; i < r->c->jobs; i++)
        if (r->slot[i].pid && r->slot[i].u.activity == ABLATION_CURATE)
            return 0;
    for (rc = 1; rc > 0 && r->running < r->c->jobs;)
        rc = next_run(r, left, e);
    return rc < 0 ? rc : 0;
}

static int work(struct runner *r, struct err *e)
{
    const struct timespec a_little = {0, 100 * 1000000};

    for (;;) {
        bool left;

        TRY(ablation_result_read(r->r, r->a, e));
        TRY(fill(r, &left, e));
        tell_progress(r);
        if (r->running)
            TRY(reap(r, e));
        else if (!left || r->r->spent) {
            r->r->finished = !left;
            return 0;
        } else if (!r->c->wait)
            return 0;
        else
            nanosleep(&a_little, NULL);
    }
}

int ablation_run(const struct ablation_conf *c, struct ablation_result *r, struct err *e)
{
    struct runner x = {.c = c, .a = c->a, .r = r};
    struct err ignored;
    int rc;

    x.slot = calloc((size_t)c->jobs, sizeof *x.slot);
    if (!x.slot)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = work(&x, e);
    while (x.running) /* after a failure those at work end as they can */
        if (reap(&x, &ignored) < 0 && errno == ECHILD)
            break;
    progress_end();
    free(x.slot);
    return rc;
}
