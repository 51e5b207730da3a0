#include "tests/jobs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the process says: it has opened, it begins with a job, the job is done. */
enum said { OPENED, BEGUN, DONE };
struct word {
    enum said said;
    int job, rc;
};
enum { NO_OPEN = 3, LOST = 4 }; /* its status */

double jobs_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether the device still does what it is told. */
static bool alive(struct device *dev)
{
    char in[64] = "still here", out[64] = "";
    struct err e;
    void *p = NULL;
    bool fine = device_sync(dev, &e) == 0 && device_alloc(dev, &p, sizeof in, &e) == 0 &&
                device_put(dev, p, in, sizeof in, &e) == 0 && device_get(dev, out, p, sizeof in, &e) == 0 &&
                memcmp(in, out, sizeof in) == 0;

    if (p)
        device_free(dev, p);
    return fine;
}

static void say(int fd, enum said said, int job, int rc)
{
    struct word w = {said, job, rc};

    fflush(stdout);
    if (write(fd, &w, sizeof w) != (ssize_t)sizeof w)
        _exit(1);
}

/* The process: jobs from `first` on, until its parent ends it. */
static void work(const struct job_set *j, int first, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (j->open() < 0) {
        fflush(stdout);
        _exit(NO_OPEN);
    }
    say(fd, OPENED, first, 0);
    for (int i = first; i < j->n; i++) {
        int rc;

        say(fd, BEGUN, i, 0);
        rc = j->run(i);
        say(fd, DONE, i, rc);
        if (rc && !alive(*j->dev))
            _exit(LOST);
    }
    _exit(0);
}

struct worker {
    pid_t pid;
    int fd;
    double since; /* of its last word */
};

static int start(struct worker *w, const struct job_set *j, int first)
{
    int fd[2];

    fflush(stdout);
    if (pipe(fd) != 0)
        return -1;
    w->pid = fork();
    if (w->pid == 0) {
        close(fd[0]);
        work(j, first, fd[1]);
    }
    close(fd[1]);
    w->fd = fd[0];
    w->since = jobs_clock();
    return w->pid < 0 ? -1 : 0;
}

/* Its next word; false: it has ended, or takes too long and was ended. */
static bool hear(struct worker *w, double until, struct word *word, bool *late)
{
    double left = until - jobs_clock();
    struct pollfd p = {w->fd, POLLIN, 0};
    int n = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);

    *late = n == 0;
    if (n <= 0 || read(w->fd, word, sizeof *word) != (ssize_t)sizeof *word)
        return false;
    w->since = jobs_clock();
    return true;
}

/* Waits for it; why it ended to text. */
static int end(struct worker *w, bool late, double limit, char *text, size_t size)
{
    int status = 0;

    if (late)
        kill(w->pid, SIGKILL);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(w->fd);
    if (late)
        snprintf(text, size, "took more than %g s", limit);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "the process was ended by signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "the process ended with status %d", WEXITSTATUS(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Jobs from *next on in one process, as far as it comes; < 0: there is nothing to go on with. */
static int run_some(const struct job_set *j, struct jobs_result *r, int *next, double over)
{
    struct worker w;
    struct word word;
    char why[100];
    bool late = false, running = false, opened = false;
    int status;

    if (start(&w, j, *next) < 0)
        return ERR_DEVICE;
    while (*next < j->n || running) {
        double until = w.since + j->limit;
        if (!hear(&w, over > 0 && over < until ? over : until, &word, &late)) {
            if (late && over > 0 && jobs_clock() >= over) {
                end(&w, true, 0, why, sizeof why);
                return 0;
            }
            break;
        }
        opened = true;
        running = word.said == BEGUN;
        if (word.said == DONE) {
            *(word.rc ? &r->failed : &r->passed) += 1;
            *next = word.job + 1;
        }
    }
    status = end(&w, late, j->limit, why, sizeof why);
    if (!opened)
        return status == NO_OPEN ? ERR_DEVICE : (printf("not ok - opening: %s\n", why), ERR_DEVICE);
    if (running) {
        printf("not ok - %s: %s\n", j->name(*next), why);
        r->failed++;
        ++*next;
    }
    return 0;
}

int jobs_run(const struct job_set *j, struct jobs_result *r)
{
    double over = j->budget > 0 ? jobs_clock() + j->budget : 0;
    int next = 0, rc = 0;

    *r = (struct jobs_result){0, 0, 0};
    while (next < j->n && rc == 0 && (over == 0 || jobs_clock() < over))
        rc = run_some(j, r, &next, over);
    r->left = j->n - next;
    for (; next < j->n && rc == 0; next++)
        printf("# left out for time: %s\n", j->name(next));
    return rc;
}
