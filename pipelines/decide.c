#include "pipelines/decide.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "comm/files.h"
#include "curate/stream/rank_exchange.h"
#include "pipelines/answers.h"
#include "pipelines/counts.h"
#include "pipelines/note_file.h"
#include "pipelines/work.h"

/* What decides: the last stage of a pass, for the inputs [first, last). */
struct decision {
    const struct part_conf *c;
    const struct plan_pass *pass;
    const struct stage *stage;
    int first, last;
    uint64_t *count; /* notes of each input */
};

/* Has the stage commit the notes of one part; *count of them.  Answers are written now if out is
 * given, else the stage must see all first. */
static int commit_notes(const struct stage *st, struct note_file *in, struct file_out *out, uint64_t *count, struct err *e)
{
    struct arena a = {0};
    struct buf b = {0};
    bool has_rest = st->ops->commit_long != NULL;
    int rc;

    *count = 0;
    while ((rc = note_file_next(in, has_rest, e)) > 0) {
        struct verdict v = {0};
        struct span reply = {0}, note = buf_span(&in->note);

        rc = stage_commit(st, note, has_rest ? &in->rest : NULL, &v, &reply, &a, e);
        if (rc == 0 && !out && (v.drop || reply.p))
            rc = err_set(e, ERR_UNSUPPORTED, "stage %s answers before it has seen all", st->ops->name);
        if (rc == 0 && out)
            rc = answer_write(out, &b, &v, reply, e);
        if (rc < 0)
            break;
        arena_reset(&a);
        ++*count;
    }
    arena_free(&a);
    buf_free(&b);
    return rc;
}

static int judge_notes(const struct stage *st, bool account, uint64_t first, uint64_t count, struct file_out *out,
                       struct err *e)
{
    struct arena a = {0};
    struct buf b = {0};
    int rc = 0;

    for (uint64_t n = first; n < first + count && rc == 0; n++) {
        struct verdict v = {.account = account};
        struct span reply = {0};

        rc = st->ops->judge(st->state, n, &v, &reply, &a, e);
        if (rc == 0)
            rc = answer_write(out, &b, &v, reply, e);
        arena_reset(&a);
    }
    arena_free(&a);
    buf_free(&b);
    return rc;
}

/* One of many files, which sync_answers makes last together. */
static int end_answers(struct file_out *out, int rc, struct err *e)
{
    if (rc == 0)
        return file_commit_unsynced(out, e);
    file_abort(out);
    return rc;
}

/* Before it is said that all is decided. */
static int sync_answers(const struct decision *d, struct err *e)
{
    char path[4096];

    if (d->pass->ends || d->first == d->last)
        return 0;
    work_part(d->c->plan, d->pass->number, d->first, WORK_ANSWERS, path);
    if (d->last - d->first > 1)
        return file_sync_disk(path, e);
    TRY(file_sync_path(path, e));
    return file_sync_parent(path, e);
}

static int commit_part(struct decision *d, int input, struct err *e)
{
    struct file_out *out = NULL;
    struct note_file in;
    char path[4096];
    int rc = 0;

    work_part(d->c->plan, d->pass->number, input, WORK_NOTES, path);
    TRY(note_file_open(&in, path, e));
    work_part(d->c->plan, d->pass->number, input, WORK_ANSWERS, path);
    if (!d->stage->ops->resolve && !d->pass->ends)
        rc = file_create(&out, path, 0, e);
    if (rc == 0)
        rc = commit_notes(d->stage, &in, out, &d->count[input - d->first], e);
    if (out)
        rc = end_answers(out, rc, e);
    note_file_close(&in);
    return rc;
}

static int judge_parts(struct decision *d, struct err *e)
{
    uint64_t first = 0;

    TRY(d->stage->ops->resolve(d->stage->state, d->c->jobs, e));
    for (int i = d->first; i < d->last && !d->pass->ends; i++) {
        uint64_t count = d->count[i - d->first];
        struct file_out *out;
        char path[4096];

        work_part(d->c->plan, d->pass->number, i, WORK_ANSWERS, path);
        TRY(file_create(&out, path, 0, e));
        TRY(end_answers(out, judge_notes(d->stage, d->c->plan->rejects != NULL, first, count, out, e), e));
        first += count;
    }
    return 0;
}

static int finish_files(struct decision *d, struct err *e)
{
    struct file_group files = {0};
    int rc = d->stage->ops->finish ? d->stage->ops->finish(d->stage->state, &files, e) : 0;

    if (rc == 0)
        rc = file_group_commit(&files, e);
    file_group_abort(&files);
    return rc;
}

static int decide(struct decision *d, int group, struct err *e)
{
    const struct node_end *end = d->c->plan->stage[d->pass->last - 1].kind.end;

    if (end && end->begin)
        TRY(end->begin(d->stage->state, group, d->pass->groups, e));
    for (int i = d->first; i < d->last; i++) {
        plan_progress_wait(d->c->progress, "deciding");
        TRY(commit_part(d, i, e));
    }
    if (d->stage->ops->resolve)
        TRY(judge_parts(d, e));
    TRY(sync_answers(d, e));
    return finish_files(d, e);
}

/* Notes that nobody reads beside documents. */
static void remove_notes(const struct decision *d)
{
    char path[4096];

    for (int i = d->first; i < d->last && d->pass->ends; i++) {
        work_part(d->c->plan, d->pass->number, i, WORK_NOTES, path);
        unlink(path);
    }
}

bool part_is_shared(const struct part_conf *c, const struct plan_pass *pass)
{
    return c->ranks && c->plan->stage[pass->last - 1].kind.stage->open_rank;
}

static bool is_said(const struct part_conf *c, const struct plan_pass *pass, int group, char path[4096])
{
    work_decided(c->plan, pass, group, path);
    return access(path, F_OK) == 0;
}

/* The word that a group is decided: of ranks the first one's, when all have written their answers; and none goes on, and
 * removes what was decided on, before it is said.  Of ranks that may be started again, who then finds it said and says no more,
 * the others look for it. */
static int say_decided(const struct decision *d, int group, struct span own, struct err *e)
{
    bool shared = part_is_shared(d->c, d->pass), looks = shared && d->c->ranks->starts_again && d->c->ranks->rank;
    char path[4096];

    if (shared)
        TRY(rank_meet(d->c->ranks, e));
    work_decided(d->c->plan, d->pass, group, path);
    if (!shared || !d->c->ranks->rank)
        TRY(file_write_all(path, own, e));
    while (looks && !is_said(d->c, d->pass, group, path)) {
        plan_progress_wait(d->c->progress, "waiting for the first rank");
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return shared && !d->c->ranks->starts_again ? rank_meet(d->c->ranks, e) : 0;
}

/* Ranks begin their messages. */
static int begin_messages(const struct part_conf *c, const struct plan_pass *pass, struct err *e)
{
    char prefix[4096];

    if (!part_is_shared(c, pass) || !c->ranks->starts_again)
        return 0;
    work_messages(c->plan, pass, c->ranks->size, prefix);
    return comm_files_turn(c->ranks, prefix, e);
}

/* What is said of the decision is what the stage says of itself after it less what it said before. */
int part_decide(const struct part_conf *c, const struct plan_pass *pass, int group, struct err *e)
{
    struct decision d = {.c = c, .pass = pass, .stage = &c->stage[pass->last - 1]};
    struct buf before = {0}, after = {0}, own = {0};
    char path[4096];
    int rc;

    plan_group(c->plan, pass, group, &d.first, &d.last);
    if (part_is_shared(c, pass)) {
        d.first = (int)((int64_t)c->plan->n_inputs * c->ranks->rank / c->ranks->size);
        d.last = (int)((int64_t)c->plan->n_inputs * (c->ranks->rank + 1) / c->ranks->size);
    }
    d.count = calloc((size_t)(d.last - d.first) + 1, sizeof *d.count);
    rc = d.count ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d inputs", d.last - d.first);
    if (rc == 0)
        rc = begin_messages(c, pass, e);
    if (rc == 0)
        rc = part_counts_ask(NULL, c->stage, pass->last, &before, e);
    if (rc == 0)
        rc = decide(&d, group, e);
    if (rc == 0)
        rc = part_counts_ask(NULL, c->stage, pass->last, &after, e);
    if (rc == 0)
        rc = counts_add(&own, buf_span(&after), -1, buf_span(&before), e);
    if (rc == 0)
        rc = say_decided(&d, group, buf_span(&own), e);
    if (rc == 0)
        remove_notes(&d);
    else if (part_is_shared(c, pass) && c->ranks->starts_again && is_said(c, pass, group, path))
        rc = 0; /* all had said what this one began to say again, and went on */
    free(d.count);
    buf_free(&before);
    buf_free(&after);
    buf_free(&own);
    return rc;
}
