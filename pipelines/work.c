#include "pipelines/work.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "curate/extract/walk.h"

/* ---- names ---- */

void work_part(const struct plan *p, int pass, int input, enum work_file f, char path[4096])
{
    static const char *const ending[] = {"notes", "rejects", "state", "done", "answers"};

    snprintf(path, 4096, "%s/%d.%06d.%s", p->work, pass, input, ending[f]);
}

void work_docs(const struct plan *p, int pass, int input, int out, char path[4096])
{
    int n = snprintf(path, 4096, "%s/%d.%06d.docs", p->work, pass, input);

    if (out && n < 4096)
        snprintf(path + n, (size_t)(4096 - n), ".%d", out);
}

int work_reads(const struct plan *p, const struct plan_pass *pass, int input, int k, char path[4096])
{
    const struct plan_branch *b = &p->branch[pass->branch];

    if (k >= (pass->judged ? 1 : b->n_from))
        return 0;
    if (pass->judged)
        work_docs(p, pass->number - 1, input, 0, path);
    else
        work_docs(p, p->branch[b->from[k]].last_pass, input, b->out[k], path);
    return 1;
}

void work_decided(const struct plan *p, const struct plan_pass *pass, int group, char path[4096])
{
    if (pass->groups == 1)
        snprintf(path, 4096, "%s/%d.decided", p->work, pass->number);
    else
        snprintf(path, 4096, "%s/%d.%06d.decided", p->work, pass->number, group);
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
                                      "[0-9]*.[0-9]*.state", "[0-9]*.[0-9]*.done", "[0-9]*.[0-9]*.answers", ".plan*.part",
                                      ".finished*.part", ".[0-9]*.part"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (fnmatch(own[i], name, 0) == 0)
            return true;
    return false;
}

/* Removes every file that a plan made there but locks, and, if not `all`, the plan and what says that it is done. */
static int clear_folder(const struct plan *p, bool all, struct err *e)
{
    DIR *d = opendir(p->work);
    struct dirent *f;
    char path[4096];

    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, ERR_IO, "cannot read '%s'", p->work);
    while ((f = readdir(d))) {
        if (!is_own(f->d_name) || work_lock_is(f->d_name))
            continue;
        if (!all && (strcmp(f->d_name, "plan") == 0 || strcmp(f->d_name, "finished") == 0))
            continue;
        snprintf(path, sizeof path, "%s/%s", p->work, f->d_name);
        if (unlink(path) < 0) {
            int rc = err_sys(e, ERR_IO, "cannot remove '%s'", path);
            closedir(d);
            return rc;
        }
    }
    closedir(d);
    return 0;
}

void work_tidy(const struct plan *p)
{
    struct err e;

    work_lock_sweep(p->work);
    if (clear_folder(p, false, &e) < 0)
        log_msg(LOG_WARN, "%s; it stays as it is", e.msg);
}

/* Names the first line in which two descriptions differ. */
static int tell_difference(const struct plan *p, struct span was, struct span is, struct err *e)
{
    const char *a = was.p, *b = is.p, *ea = a + was.n, *eb = b + is.n;

    for (;;) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        if (na != nb || memcmp(a, b, na) != 0 || a + na == ea || b + nb == eb)
            return err_set(e, ERR_ARG, "'%s' is the work of another plan or other inputs (it has '%.*s', this one"
                           " '%.*s'); --again starts afresh", p->work, (int)(na < 150 ? na : 150), a,
                           (int)(nb < 150 ? nb : 150), b);
        a += na + 1;
        b += nb + 1;
    }
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

/* The plan that the folder has is this one, or it had none and has this one now. */
static int compare_plans(struct plan *p, int task, struct err *e)
{
    struct buf is = {0}, was = {0};
    char path[4096];
    int rc = plan_describe(p, &is, e);

    snprintf(path, sizeof path, "%s/plan", p->work);
    if (rc == 0 && access(path, F_OK) == 0) {
        rc = file_read_all(path, 1u << 30, &was, e);
        if (rc == 0 && !span_eq(buf_span(&was), buf_span(&is)))
            rc = tell_difference(p, buf_span(&was), buf_span(&is), e);
    } else if (rc == 0) {
        rc = write_plan(path, task, buf_span(&is), e);
    }
    buf_free(&is);
    buf_free(&was);
    return rc;
}

int work_claim(struct plan *p, const struct work_claim *c, struct work_lock *lock, struct err *e)
{
    TRY(file_make_folder(p->work, e));
    TRY(work_lock_take(lock, p->work, c->task, c->tasks, c->wait, e));
    for (int i = 0; i < p->n_branches; i++)
        if (p->branch[i].output && plan_to_folder(&p->branch[i]))
            TRY(file_make_folder(p->branch[i].output, e));
    TRY(plan_check_places(p, e));
    if (c->again)
        TRY(clear_folder(p, true, e));
    return compare_plans(p, c->task, e);
}
