#include "pipelines/tasks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_A_READER = 8 };

static bool env_number(const char *name, int *n)
{
    const char *s = getenv(name);

    if (!s || !*s || strspn(s, "0123456789") != strlen(s) || strlen(s) > 7)
        return false;
    *n = (int)strtol(s, NULL, 10);
    return true;
}

/* A Slurm array, an MPI rank (Open MPI, MPICH), or a process of srun. */
static void find_by_environment(struct tasks *t)
{
    int first = 0, n = 0, k = 0;

    if (env_number("SLURM_ARRAY_TASK_ID", &k) && env_number("SLURM_ARRAY_TASK_COUNT", &n)) {
        env_number("SLURM_ARRAY_TASK_MIN", &first);
        k -= first;
    } else if (!(env_number("OMPI_COMM_WORLD_RANK", &k) && env_number("OMPI_COMM_WORLD_SIZE", &n)) &&
               !(env_number("PMI_RANK", &k) && env_number("PMI_SIZE", &n)) &&
               !(getenv("SLURM_STEP_ID") && env_number("SLURM_PROCID", &k) && env_number("SLURM_STEP_NUM_TASKS", &n))) {
        return;
    }
    if (n > 0 && k >= 0 && k < n) {
        t->task = k;
        t->n = n;
    }
}

int tasks_find(struct tasks *t, int task, int n, struct err *e)
{
    *t = (struct tasks){.task = task, .n = n ? n : 1};
    if (!n)
        find_by_environment(t);
    if (t->task >= t->n)
        return err_set(e, ERR_ARG, "task %d of %d: tasks are counted from 0", t->task, t->n);
    return 0;
}

int tasks_divide(struct tasks *t, int inputs, int processes, int jobs, struct plan_progress **progress, struct err *e)
{
    int own = (inputs + t->n - 1) / t->n, n = processes ? processes : (jobs + THREADS_A_READER - 1) / THREADS_A_READER;

    n = n > own ? own : n;
    t->jobs = jobs;
    TRY(plan_progress_open(progress, n > 1 ? n : 1, e));
    if (n <= 1)
        return 0;
    t->child = calloc((size_t)n, sizeof *t->child);
    if (!t->child)
        return err_set(e, ERR_NOMEM, "out of memory");
    t->jobs = (jobs + n - 1) / n;
    t->task *= n;
    t->n *= n;
    for (int i = 1; i < n; i++) {
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
            return err_sys(e, ERR_IO, "cannot start a process");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                raise(SIGKILL);
            t->task += i;
            t->n_children = 0;
            t->is_child = true;
            plan_progress_join(*progress, i);
            return 0;
        }
        t->child[t->n_children++] = pid;
    }
    return 0;
}

int tasks_check(struct tasks *t, bool wait, struct err *e)
{
    for (int i = 0; i < t->n_children; i++) {
        int status;
        pid_t pid = t->child[i] ? waitpid(t->child[i], &status, wait ? 0 : WNOHANG) : 0;

        if (pid == 0)
            continue;
        t->child[i] = 0;
        if (pid > 0 && WIFSIGNALED(status))
            return err_set(e, ERR_IO, "process %ld, which shared the work, was ended by signal %d (%s)", (long)pid,
                           WTERMSIG(status), strsignal(WTERMSIG(status)));
        if (pid < 0 || WEXITSTATUS(status) != 0)
            return err_set(e, ERR_IO, "one of the processes that shared the work failed");
    }
    return 0;
}

void tasks_free(struct tasks *t)
{
    free(t->child);
    *t = (struct tasks){0};
}
