#include "pipelines/curate.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/http.h"
#include "base/log.h"
#include "base/node.h"
#include "pipelines/decide.h"
#include "pipelines/plan_keep.h"
#include "pipelines/publish.h"
#include "pipelines/tasks.h"
#include "pipelines/work.h"

void curate_conf_init(struct curate_conf *c)
{
    *c = (struct curate_conf){.checkpoint = 256 << 20, .wait = true};
}

struct run {
    const struct curate_conf *c;
    struct plan *plan;
    struct part_conf part;
    struct tasks tasks;
    struct stage *stage;
    struct work_locks locks;
    /* What is known to be done, for it stays so: of pass P, part I and group G at P * inputs + I or G. */
    bool *through, *decided;
    struct part_counts counts; /* own: what the stages said when they were opened */
    double start;
};

/* ---- what is done ---- */

static bool is_there(bool *known, const char *path)
{
    return *known || (*known = access(path, F_OK) == 0);
}

static bool part_is_through(const struct run *r, int pass, int input)
{
    bool *known = &r->through[(size_t)pass * (size_t)r->plan->n_inputs + (size_t)input];
    char path[4096];

    if (!*known)
        work_part(r->plan, pass, input, WORK_DONE, path);
    return is_there(known, path);
}

static bool group_is_decided(const struct run *r, const struct plan_pass *p, int group)
{
    bool *known = &r->decided[(size_t)p->number * (size_t)r->plan->n_inputs + (size_t)group];
    char path[4096];

    if (!*known)
        work_decided(r->plan, p, group, path);
    return is_there(known, path);
}

/* Whether the last stage of a pass can decide on a group. */
static bool group_is_through(const struct run *r, const struct plan_pass *p, int group)
{
    int i, last;

    plan_group(r->plan, p, group, &i, &last);
    while (i < last && part_is_through(r, p->number, i))
        i++;
    return i == last;
}

/* Whether what a part reads is there. */
static bool part_can_run(const struct run *r, const struct plan_pass *p, int input)
{
    const struct plan_branch *b = &r->plan->branch[p->branch];

    if (p->follows)
        return p->judged ? group_is_decided(r, p - 1, 0) : part_is_through(r, p->number - 1, input);
    for (int k = 0; k < b->n_from; k++)
        if (!part_is_through(r, r->plan->branch[b->from[k]].last_pass, input))
            return false;
    return true;
}

static bool all_is_done(const struct run *r)
{
    for (const struct plan_pass *p = r->plan->pass; p < r->plan->pass + r->plan->n_passes; p++) {
        for (int i = 0; i < r->plan->n_inputs; i++)
            if (!part_is_through(r, p->number, i))
                return false;
        for (int g = 0; g < p->groups && p->later; g++)
            if (!group_is_decided(r, p, g))
                return false;
    }
    return true;
}

/* ---- doing it ---- */

/* Runs this task's parts of a pass.  1: it did; 0: none is left to do; or they have to wait, which *waits says. */
static int run_parts(struct run *r, const struct plan_pass *p, bool *waits, struct err *e)
{
    int *mine = calloc((size_t)r->plan->n_inputs + 1, sizeof *mine), n = 0, rc = 0;
    double through = 0, total = 0;
    bool can = true, sized = true;

    if (!mine)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = r->tasks.task; i < r->plan->n_inputs; i += r->tasks.n) {
        bool done = part_is_through(r, p->number, i);

        if (!done) {
            mine[n++] = i;
            can = can && part_can_run(r, p, i);
        }
    }
    *waits |= n && !can;
    if (n && can) {
        for (int i = r->tasks.task; i < r->plan->n_inputs; i += r->tasks.n) {
            double bytes = work_bytes(r->plan, p, i);

            total += bytes;
            sized = sized && !(p->number == 0 && http_is_address(r->plan->input[i]));
            through += part_is_through(r, p->number, i) ? bytes : 0;
        }
        plan_progress_pass(r->part.progress, p->number, r->plan->n_passes, through, sized ? total : 0);
        rc = part_run(&r->part, p, mine, n, e);
        rc = rc < 0 ? rc : 1;
    }
    free(mine);
    return rc;
}

/* Whether all that ranks decide together before this pass is decided: they do it in one order. */
static bool is_next_shared(const struct run *r, const struct plan_pass *p)
{
    for (const struct plan_pass *q = r->plan->pass; q < p; q++)
        if (q->later && part_is_shared(&r->part, q) && !group_is_decided(r, q, 0))
            return false;
    return true;
}

/* Has the last stage of a pass decide, by all ranks: as run_parts. */
static int run_shared_decision(struct run *r, const struct plan_pass *p, bool *waits, struct err *e)
{
    if (group_is_decided(r, p, 0))
        return 0;
    if (!group_is_through(r, p, 0) || !is_next_shared(r, p)) {
        *waits = true;
        return 0;
    }
    TRY(part_decide(&r->part, p, 0, e));
    r->decided[(size_t)p->number * (size_t)r->plan->n_inputs] = true; /* the first rank has said so */
    return 1;
}

/* Has the last stage of a pass decide on this task's groups: as run_parts. */
static int run_decisions(struct run *r, const struct plan_pass *p, bool *waits, struct err *e)
{
    int did = 0;

    if (p->later && part_is_shared(&r->part, p))
        return run_shared_decision(r, p, waits, e);
    for (int g = r->tasks.task; g < p->groups && p->later; g += r->tasks.n) {
        if (group_is_decided(r, p, g))
            continue;
        if (!group_is_through(r, p, g)) {
            *waits = true;
            continue;
        }
        TRY(part_decide(&r->part, p, g, e));
        did = 1;
    }
    return did;
}

/* Does what can be done now.  1: something was; 0: nothing, because others have to go on first (which *waits says) or this
 * task's share is done. */
static int step(struct run *r, bool *waits, struct err *e)
{
    int did = 0;

    for (int i = 0; i < r->plan->n_passes; i++) {
        int rc = run_parts(r, &r->plan->pass[i], waits, e);

        if (rc >= 0 && r->plan->pass[i].later) {
            did |= rc;
            rc = run_decisions(r, &r->plan->pass[i], waits, e);
        }
        TRY(rc);
        did |= rc;
    }
    return did;
}

static void nap(int *ms)
{
    struct timespec t = {*ms / 1000, *ms % 1000 * 1000000};

    nanosleep(&t, NULL);
    *ms = *ms < 1000 ? *ms * 2 : 2000;
}

/* Goes on until this task's share is done, task 0 until everything is.  1: so it is; 0: others have work left and we are not
 * to wait, or everything is finished. */
static int run_share(struct run *r, struct err *e)
{
    int ms = 10;

    for (;;) {
        bool waits = false;
        int rc = work_is_finished(r->plan) ? 0 : step(r, &waits, e);

        if (work_is_finished(r->plan)) /* by others, who have emptied the work folder meanwhile */
            return 0;
        TRY(rc);
        if (!waits && (r->tasks.task > 0 || all_is_done(r)))
            return 1;
        if (rc == 1) {
            ms = 10;
            continue;
        }
        TRY(tasks_check(&r->tasks, false, e));
        if (!r->c->wait && !r->tasks.n_children && !r->tasks.is_child)
            return 0;
        plan_progress_wait(r->part.progress, "waiting for other tasks");
        nap(&ms);
    }
}

/* ---- the whole ---- */

/* The statistics of a run that finished before say how it ended; task 0 speaks for the plan. */
static int end_as_before(const struct run *r, struct curate_result *res, struct err *e)
{
    struct arena a = {0};
    struct node *stats;
    char path[4096];
    int rc = 0;

    res->finished = res->already = true;
    if (r->tasks.task == 0) {
        work_tidy(r->plan); /* it may have been killed at that */
        work_finished(r->plan, path);
        rc = node_load_json(&a, path, &stats, e);
        res->bad = rc == 0 ? (uint64_t)node_int(stats, "bad", 0) : 0;
    }
    arena_free(&a);
    return rc;
}

/* What each stage says of itself before any work. */
static int first_counts(struct run *r, struct err *e)
{
    if (part_counts_init(&r->counts, r->plan) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for counts");
    for (int k = 1; k <= r->plan->n_stages; k++)
        TRY(part_counts_ask(NULL, r->stage, k, &r->counts.own[k], e));
    return 0;
}

static int prepare(struct run *r, struct err *e)
{
    const struct comm *c = r->c->ranks;
    size_t n;

    TRY(plan_cut(r->plan, r->stage, e));
    TRY(first_counts(r, e));
    n = (size_t)r->plan->n_passes * (size_t)r->plan->n_inputs;
    r->through = calloc(n, sizeof *r->through);
    r->decided = calloc(n, sizeof *r->decided);
    if (!r->through || !r->decided)
        return err_set(e, ERR_NOMEM, "out of memory for %zu parts", n);
    TRY(tasks_find(&r->tasks, c ? c->rank : (int)r->c->task, c ? c->size : (int)r->c->tasks, e));
    if (r->c->again && r->tasks.n > 1)
        return err_set(e, ERR_ARG, "--again cannot be given to several tasks: remove '%s' first", r->plan->work);
    return 0;
}

/* Says where this run begins. */
static void tell_kept(const struct run *r)
{
    bool kept = r->plan->keep != NULL;

    for (int i = 0; i < r->plan->n_passes; i++)
        for (int k = 0; k < r->plan->n_inputs && r->plan->pass[i].kept; k++)
            kept = kept && part_is_through(r, i, k);
    plan_tell_kept(r->plan, kept);
}

static int run_stages(struct run *r, struct curate_result *res, struct err *e)
{
    struct work_claim claim;
    int rc;

    TRY(prepare(r, e));
    claim = (struct work_claim){r->tasks.task, r->tasks.n, r->c->wait && r->c->wait_given, r->c->again};
    TRY(work_claim(r->plan, &claim, &r->locks, e));
    if (work_is_finished(r->plan))
        return end_as_before(r, res, e);
    if (r->tasks.task == 0)
        tell_kept(r);
    TRY(tasks_divide(&r->tasks, r->plan->n_inputs, r->c->ranks ? 1 : (int)r->c->processes, r->c->jobs, &r->part.progress, e));
    r->part.jobs = r->tasks.jobs;
    TRY(rc = run_share(r, e));
    TRY(tasks_check(&r->tasks, true, e)); /* they would die with us */
    if (rc != 1 || r->tasks.task != 0)
        return 0;
    return publish(r->plan, r->stage, &r->counts, r->start, res, e);
}

int curate_run(const struct curate_conf *c, struct curate_result *res, struct err *e)
{
    struct run r = {.c = c, .plan = c->plan, .locks = {{.fd = -1}, {.fd = -1}}, .start = log_seconds()};
    int rc;

    *res = (struct curate_result){0};
    rc = plan_open_stages(c->plan, c->ranks, &r.stage, e);
    if (rc == 0) {
        r.part = (struct part_conf){.plan = c->plan, .stage = r.stage, .ranks = c->ranks, .checkpoint = (uint64_t)c->checkpoint};
        rc = run_stages(&r, res, e);
        plan_close_stages(c->plan, r.stage);
    }
    work_leave(&r.locks, r.tasks.is_child);
    res->part = r.tasks.is_child;
    plan_progress_close(r.part.progress);
    part_counts_free(&r.counts);
    tasks_free(&r.tasks);
    free(r.through);
    free(r.decided);
    res->seconds = log_seconds() - r.start;
    if (rc < 0) {
        free(res->bad_input);
        res->bad_input = NULL;
    }
    return rc;
}
