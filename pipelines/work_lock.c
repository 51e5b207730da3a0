#include "pipelines/work_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

/* Who holds a lock, as its file says. */
struct holder {
    char host[256];
    long pid; /* 0: the file does not say */
};

static struct holder read_holder(int fd)
{
    struct holder h = {"", 0};
    char text[300] = "";

    if (pread(fd, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%255s %ld", h.host, &h.pid) != 2 || h.pid <= 0)
        return (struct holder){"", 0};
    return h;
}

static void write_holder(int fd)
{
    char host[256] = "", text[300];
    int n;

    gethostname(host, sizeof host - 1);
    n = snprintf(text, sizeof text, "%s %ld\n", *host ? host : "?", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        log_msg(LOG_DEBUG, "cannot write who holds the lock: %s", strerror(errno));
}

/* Whether the holder was killed on this machine: what it was divided into dies after it and lets the lock go. */
static bool is_dying(const struct holder *h)
{
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    return h->pid && strcmp(h->host, host) == 0 && kill((pid_t)h->pid, 0) < 0 && errno == ESRCH;
}

/* Whether the descriptor is of the file that stands under the name: else it was removed meanwhile. */
static bool is_current(int fd, const char *path)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int refuse(const char *folder, const struct holder *h, const char *task, const char *hint, struct err *e)
{
    if (!h->pid)
        return err_set(e, ERR_IO, "another run is at work in '%s'%s%s", folder, task, hint);
    return err_set(e, ERR_IO, "process %ld on %s is at work in '%s'%s%s", h->pid, h->host, folder, task, hint);
}

/* Between two looks; says once whom we wait for. */
static void wait_a_little(const char *folder, const struct holder *h, bool wait, bool *told)
{
    const struct timespec t = {0, 20 * 1000000};

    if (wait && !*told && h->pid) {
        log_msg(LOG_INFO, "waiting for process %ld on %s, which is at work in '%s'", h->pid, h->host, folder);
        *told = true;
    }
    nanosleep(&t, NULL);
}

/* Tries to lock an open file.  1: it is ours; 0: somebody holds it, `h` says who; or there are no locks here. */
static int try_lock(int fd, struct holder *h, struct err *e)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 1;
    if (errno != EWOULDBLOCK && errno != EINTR)
        return err_sys(e, ERR_UNSUPPORTED, "cannot lock");
    *h = read_holder(fd);
    return 0;
}

/* Locks the file at l->path, made if it is not there. */
static int take_own(struct work_lock *l, const char *folder, const char *hint, struct err *e)
{
    struct holder h = {"", 0};
    bool told = false;

    for (;;) {
        int rc;

        l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (l->fd < 0)
            return err_sys(e, ERR_IO, "cannot write '%s'", l->path);
        rc = try_lock(l->fd, &h, e);
        if (rc < 0) {
            log_msg(LOG_WARN, "'%s': %s: a second start of this run would not be noticed", folder, e->msg);
            return 0;
        }
        if (rc == 1 && is_current(l->fd, l->path))
            break;
        close(l->fd);
        l->fd = -1;
        if (rc == 0 && hint && !is_dying(&h))
            return refuse(folder, &h, "", hint, e);
        wait_a_little(folder, &h, !hint, &told);
    }
    write_holder(l->fd);
    return 0;
}

/* Into how many tasks the work is divided by the one whose lock has this name; 0: it is no lock's. */
static int division_of(const char *name)
{
    int k, n, at = 0;

    return sscanf(name, "lock.%d.%d%n", &k, &n, &at) == 2 && at && !name[at] ? n : 0;
}

bool work_lock_is(const char *name) { return division_of(name) != 0; }

/* Removes a lock file if nobody holds it.  1: somebody does, `h` says who. */
static int remove_free(const char *folder, const char *name, struct holder *h)
{
    char path[4096 + 256];
    struct err e;
    int fd, rc;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    rc = try_lock(fd, h, &e);
    if (rc == 1 && is_current(fd, path))
        unlink(path);
    close(fd);
    return rc == 0;
}

/* The locks of divisions into another number of tasks (0: of all): removes the free ones.  1: somebody holds one. */
static int remove_others(const char *folder, int tasks, struct holder *h)
{
    DIR *d = opendir(folder);
    struct dirent *f;
    int held = 0;

    while (d && (f = readdir(d))) {
        int n = division_of(f->d_name);

        if (n && n != tasks)
            held |= remove_free(folder, f->d_name, h);
    }
    if (d)
        closedir(d);
    return held;
}

void work_lock_sweep(const char *folder)
{
    struct holder h;

    remove_others(folder, 0, &h);
}

int work_lock_take(struct work_lock *l, const char *folder, int task, int tasks, const char *hint, struct err *e)
{
    struct holder h = {"", 0};
    bool told = false;

    l->fd = -1;
    if (snprintf(l->path, sizeof l->path, "%s/lock.%d.%d", folder, task, tasks) >= (int)sizeof l->path)
        return err_set(e, ERR_ARG, "the name '%.100s...' is too long", folder);
    TRY(take_own(l, folder, hint, e));
    while (remove_others(folder, tasks, &h)) {
        if (hint && !is_dying(&h)) {
            work_lock_release(l);
            return refuse(folder, &h, ", with another number of tasks", hint, e);
        }
        wait_a_little(folder, &h, !hint, &told);
    }
    return 0;
}

int work_lock_try(struct work_lock *l, const char *folder, struct err *e)
{
    struct holder h = {"", 0};
    int rc;

    if (snprintf(l->path, sizeof l->path, "%s/lock.0.1", folder) >= (int)sizeof l->path)
        return err_set(e, ERR_ARG, "the name '%.100s...' is too long", folder);
    l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (l->fd < 0 && errno == ENOENT) /* who held it has removed the folder */
        return 0;
    if (l->fd < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", l->path);
    rc = try_lock(l->fd, &h, e);
    if (rc == 1 && is_current(l->fd, l->path)) {
        write_holder(l->fd);
        return 1;
    }
    work_lock_drop(l);
    return rc < 0 ? err_wrap(e, "'%s'", folder) : 0;
}

void work_lock_drop(struct work_lock *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void work_lock_release(struct work_lock *l)
{
    if (l->fd >= 0 && is_current(l->fd, l->path))
        unlink(l->path);
    work_lock_drop(l);
}
