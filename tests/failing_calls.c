#include "tests/failing_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

static atomic_long left; /* calls until the one that fails; 0: none will */
static atomic_int error;
static _Atomic(const char *) failed;

void failing_arm(long n, int why)
{
    atomic_store(&failed, NULL);
    atomic_store(&error, why);
    atomic_store(&left, n);
}

const char *failing_disarm(void)
{
    atomic_store(&left, 0);
    return atomic_load(&failed);
}

static bool fails(const char *call)
{
    if (atomic_load(&left) <= 0 || !atomic_load(&error) || atomic_fetch_sub(&left, 1) != 1)
        return false;
    atomic_store(&failed, call);
    errno = atomic_load(&error);
    return true;
}

/* `type name params` that fails with bad, or calls it with args. */
#define WRAP(type, name, params, args, bad)       \
    type __real_##name params;                    \
    type __wrap_##name params;                    \
    type __wrap_##name params                     \
    {                                             \
        return fails(#name) ? bad : __real_##name args; \
    }

WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned how), (a, from, b, to, how), -1)
WRAP(int, unlink, (const char *path), (path), -1)
WRAP(int, unlinkat, (int at, const char *path, int how), (at, path, how), -1)
WRAP(int, rmdir, (const char *path), (path), -1)
WRAP(int, fsync, (int fd), (fd), -1)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), -1)
WRAP(DIR *, opendir, (const char *path), (path), NULL)

int __real_open(const char *path, int how, ...);
int __wrap_open(const char *path, int how, ...);
int __wrap_open(const char *path, int how, ...)
{
    mode_t mode = 0;
    va_list more;

    if (fails("open"))
        return -1;
    va_start(more, how);
    if (how & O_CREAT)
        mode = va_arg(more, mode_t);
    va_end(more);
    return __real_open(path, how, mode);
}

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (fails("write"))
        return -1;
    return __real_write(fd, p, atomic_load(&left) > 0 && !atomic_load(&error) ? (n + 2) / 3 : n);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) /* closes in any case, as Linux does */
{
    bool no = fails("close");
    int why = errno, rc = __real_close(fd);

    if (no)
        errno = why;
    return no ? -1 : rc;
}
