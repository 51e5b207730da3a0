#include "pipelines/work.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "curate/extract/walk.h"
#include "pipelines/work_objects.h"

/* ---- names ---- */

/* What the names of all files of a part begin with; its length. */
static int name_part(const struct plan *p, int pass, int input, char path[4096])
{
    const struct plan_pass *x = &p->pass[pass];

    return snprintf(path, 4096, "%s/%d.%06d.", x->kept ? p->keep : p->work, x->kept ? x->branch : pass, input);
}

void work_part(const struct plan *p, int pass, int input, enum work_file f, char path[4096])
{
    static const char *const ending[] = {"notes", "rejects", "state", "ended", "done", "answers"};
    int n = name_part(p, pass, input, path);

    if (n < 4096)
        snprintf(path + n, (size_t)(4096 - n), "%s", ending[f]);
}

void work_docs(const struct plan *p, int pass, int input, int out, char path[4096])
{
    int n = name_part(p, pass, input, path);

    if (n < 4096)
        snprintf(path + n, (size_t)(4096 - n), out ? "docs.%d" : "docs", out);
}

int work_reads(const struct plan *p, const struct plan_pass *pass, int input, int k, char path[4096])
{
    const struct plan_branch *b = &p->branch[pass->branch];

    if (k >= (pass->follows ? 1 : b->n_from))
        return 0;
    if (pass->follows)
        work_docs(p, pass->number - 1, input, 0, path);
    else
        work_docs(p, p->branch[b->from[k]].last_pass, input, b->out[k], path);
    return 1;
}

bool work_reads_kept(const struct plan_pass *pass)
{
    return pass->follows && !pass->judged;
}

void work_decided(const struct plan *p, const struct plan_pass *pass, int group, char path[4096])
{
    if (pass->groups == 1)
        snprintf(path, 4096, "%s/%d.decided", p->work, pass->number);
    else
        snprintf(path, 4096, "%s/%d.%06d.decided", p->work, pass->number, group);
}

void work_messages(const struct plan *p, const struct plan_pass *pass, int ranks, char path[4096])
{
    snprintf(path, 4096, "%s/%d.messages.%d.", p->work, pass->number, ranks);
}

void work_finished(const struct plan *p, char path[4096])
{
    snprintf(path, 4096, "%s/finished", p->work);
}

bool work_is_finished(const struct plan *p)
{
    char path[4096];

    work_finished(p, path);
    return access(path, F_OK) == 0;
}

/* Of a file, or of all files that a folder stands for. */
static double bytes_of(char *path)
{
    struct walk w = {0};
    struct stat st;
    struct err e;
    double sum = 0;

    if (stat(path, &st) < 0)
        return 0;
    if (!S_ISDIR(st.st_mode))
        return (double)st.st_size;
    if (walk_list(&w, &path, 1, &e) == 0)
        for (int i = 0; i < w.n; i++)
            sum += stat(w.file[i].path, &st) == 0 ? (double)st.st_size : 0;
    walk_free(&w);
    return sum;
}

double work_bytes(const struct plan *p, const struct plan_pass *pass, int input)
{
    double sum = pass->number ? 0 : bytes_of(p->input[input]);
    char path[4096];

    for (int k = 0; work_reads(p, pass, input, k, path); k++)
        sum += bytes_of(path);
    return sum;
}

/* ---- the folder ---- */

/* Whether a file of the work folder was made by a plan: what else a folder of that name holds is the user's. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"plan", "plan.[0-9]*", "finished", "[0-9]*.decided", "[0-9]*.[0-9]*.docs",
                                      "[0-9]*.[0-9]*.docs.[0-9]*", "[0-9]*.[0-9]*.notes", "[0-9]*.[0-9]*.rejects",
                                      "[0-9]*.[0-9]*.state", "[0-9]*.[0-9]*.ended", "[0-9]*.[0-9]*.done",
                                      "[0-9]*.[0-9]*.answers", "[0-9]*.messages.*",
                                      ".plan*.part", ".finished*.part", ".[0-9]*.part"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (fnmatch(own[i], name, 0) == 0)
            return true;
    return false;
}

/* Removes every file that a plan made in a folder but locks, the plan, what says that it is done, and, if asked, what says of
 * inputs that they are through. */
static int clear_folder(const char *folder, bool but_through, struct err *e)
{
    DIR *d = opendir(folder);
    struct dirent *f;
    char path[4096];

    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, ERR_IO, "cannot read '%s'", folder);
    while ((f = readdir(d))) {
        if (!is_own(f->d_name) || work_lock_is(f->d_name))
            continue;
        if (strcmp(f->d_name, "plan") == 0 || strcmp(f->d_name, "finished") == 0)
            continue;
        if (but_through && fnmatch("0.[0-9]*.done", f->d_name, 0) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
        if (unlink(path) < 0) {
            int rc = err_sys(e, ERR_IO, "cannot remove '%s'", path);
            closedir(d);
            return rc;
        }
    }
    closedir(d);
    return 0;
}

/* Several tasks may do so at once, each with the same bytes. */
static int write_plan(const char *path, int task, struct span text, struct err *e)
{
    char own[4096 + 16];

    snprintf(own, sizeof own, "%s.%d", path, task);
    TRY(file_write_all(own, text, e));
    if (rename(own, path) < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", path);
    return 0;
}

/* Removes these as well.  Meanwhile the folder has the work of no plan, so nobody takes what is left for his after a kill. */
static int forget_folder(const char *folder, struct err *e)
{
    static const char *const last[] = {"finished", "plan"};
    char path[4096];

    snprintf(path, sizeof path, "%s/plan", folder);
    TRY(write_plan(path, 0, span_of("none\n"), e));
    TRY(clear_folder(folder, false, e));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, last[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            return err_sys(e, ERR_IO, "cannot remove '%s'", path);
    }
    return 0;
}

void work_tidy(const struct plan *p)
{
    struct err e;

    work_lock_sweep(p->work);
    if (p->keep)
        work_lock_sweep(p->keep);
    if (clear_folder(p->work, work_objects_any(p), &e) < 0)
        log_msg(LOG_WARN, "%s; it stays as it is", e.msg);
}

/* Names the first line in which two descriptions differ. */
static int tell_difference(const char *folder, struct span was, struct span is, struct err *e)
{
    const char *a = was.p, *b = is.p, *ea = a + was.n, *eb = b + is.n;

    for (;;) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        if (na != nb || memcmp(a, b, na) != 0 || a + na == ea || b + nb == eb)
            return err_set(e, ERR_ARG, "'%s' is the work of another plan or other inputs (it has '%.*s', this one"
                           " '%.*s'); --again starts afresh", folder, (int)(na < 150 ? na : 150), a,
                           (int)(nb < 150 ? nb : 150), b);
        a += na + 1;
        b += nb + 1;
    }
}

/* The plan that the folder has is this one, or it had none and has this one now. */
static int compare_plans(const char *folder, struct span is, int task, struct err *e)
{
    struct buf was = {0};
    char path[4096];
    int rc;

    snprintf(path, sizeof path, "%s/plan", folder);
    if (access(path, F_OK) < 0)
        return write_plan(path, task, is, e);
    rc = file_read_all(path, 1u << 30, &was, e);
    if (rc == 0 && !span_eq(buf_span(&was), is))
        rc = tell_difference(folder, buf_span(&was), is, e);
    buf_free(&was);
    return rc;
}

static int claim_work(struct plan *p, const struct work_claim *c, struct err *e)
{
    struct buf is = {0};
    int rc = c->again ? forget_folder(p->work, e) : 0;

    if (rc == 0)
        rc = plan_describe(p, &is, e);
    if (rc == 0)
        rc = compare_plans(p->work, buf_span(&is), c->task, e);
    if (rc == 0 && !p->pass->kept)
        rc = work_objects_check(p, c->task, c->tasks, e);
    buf_free(&is);
    return rc;
}

/* Documents that were kept stay if this plan would make the same, even if all else is done again. */
static int claim_kept(struct plan *p, const struct work_claim *c, struct err *e)
{
    struct buf is = {0};
    int rc = plan_describe_kept(p, &is, e);

    if (rc == 0)
        rc = compare_plans(p->keep, buf_span(&is), c->task, e);
    if (rc == 0 && p->pass->kept)
        rc = work_objects_check(p, c->task, c->tasks, e);
    if (rc == ERR_ARG && c->again) {
        rc = forget_folder(p->keep, e);
        if (rc == 0)
            rc = compare_plans(p->keep, buf_span(&is), c->task, e);
    }
    buf_free(&is);
    return rc;
}

static const char *hint_of(const struct work_claim *c)
{
    return c->wait ? NULL : "; --wait waits for it";
}

/* Makes the folder of kept documents and locks it.  ERR_ARG: it is the work folder. */
static int open_kept(const struct plan *p, const struct work_claim *c, struct work_lock *lock, struct err *e)
{
    struct stat work, keep;

    TRY(file_make_folder(p->keep, e));
    if (stat(p->work, &work) < 0 || stat(p->keep, &keep) < 0)
        return err_sys(e, ERR_IO, "cannot read '%s'", p->keep);
    if (work.st_dev == keep.st_dev && work.st_ino == keep.st_ino)
        return err_set(e, ERR_ARG, "keep '%s' has to be another folder than work", p->keep);
    return work_lock_take(lock, p->keep, c->task, c->tasks, hint_of(c), e);
}

int work_claim(struct plan *p, const struct work_claim *c, struct work_locks *locks, struct err *e)
{
    TRY(file_make_folder(p->work, e));
    TRY(work_lock_take(&locks->work, p->work, c->task, c->tasks, hint_of(c), e));
    if (p->keep)
        TRY(open_kept(p, c, &locks->keep, e));
    for (int i = 0; i < p->n_branches; i++)
        if (p->branch[i].output && plan_to_folder(&p->branch[i]))
            TRY(file_make_folder(p->branch[i].output, e));
    TRY(plan_check_places(p, e));
    TRY(claim_work(p, c, e));
    return p->keep ? claim_kept(p, c, e) : 0;
}

void work_leave(struct work_locks *locks, bool is_child)
{
    if (is_child) {
        work_lock_drop(&locks->work);
        work_lock_drop(&locks->keep);
    } else {
        work_lock_release(&locks->keep);
        work_lock_release(&locks->work);
    }
}
