/* Opening a file that lies in a folder or below, whatever links the folder holds.  The kernel sees to it in one
 * call (openat2, Linux 5.6); where that is missing or forbidden, each name of the path is opened by itself and no link is
 * followed at all. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_in.h"

enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK /* of a pipe: its caller refuses it */ };

/* As openat, but a name longer than a path can be, empty or ".." is ENOENT or EXDEV. */
static int open_name(int dir, const char *p, size_t n, int flags)
{
    char name[256];

    if (n == 2 && memcmp(p, "..", 2) == 0) {
        errno = EXDEV;
        return -1;
    }
    if (n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, p, n);
    name[n] = '\0';
    return openat(dir, name, flags);
}

/* Without openat2: goes down name by name. */
static int open_by_names(int folder, const char *name)
{
    int dir = dup(folder), fd = -1;

    if (*name == '/')
        errno = EXDEV;
    while (*name != '/' && dir >= 0) {
        size_t n = strcspn(name, "/"), next = n + strspn(name + n, "/");
        bool last = name[next] == '\0';

        fd = open_name(dir, name, n, last ? FLAGS | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || last)
            break;
        close(dir);
        dir = fd;
        name += next;
        fd = -1;
    }
    if (dir >= 0) {
        int why = errno;
        close(dir);
        errno = why;
    }
    return fd;
}

int file_beneath(const char *folder, const char *name)
{
    struct open_how how = {.flags = FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int dir = open(*folder ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), fd, why;

    if (dir < 0)
        return -1;
    do
        fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    while (fd < 0 && (errno == EAGAIN || errno == EINTR)); /* something was renamed meanwhile */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = open_by_names(dir, name);
    why = errno;
    close(dir);
    errno = why;
    return fd;
}
