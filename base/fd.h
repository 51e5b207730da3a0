/* base/fd.h -- all of some bytes, from a descriptor or to it; and the last words of a program, when nothing can be done about a
 * failure. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads n bytes from an offset on.  How many there are, fewer only at the end of the file; -1 with errno. */
static inline ssize_t fd_read_at(int fd, void *p, size_t n, uint64_t at)
{
    size_t got = 0;

    while (got < n) {
        ssize_t k = pread(fd, (char *)p + got, n - got, (off_t)(at + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (k == 0)
            break;
        got += (size_t)k;
    }
    return (ssize_t)got;
}

/* Writes n bytes at an offset.  False with errno if a write failed. */
static inline bool fd_write_at(int fd, const char *p, size_t n, uint64_t at)
{
    while (n) {
        ssize_t k = pwrite(fd, p, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return false;
        p += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return true;
}

/* As much of n bytes as a descriptor that poll says has room surely takes at once: of a pipe's room poll tells that it is
 * PIPE_BUF or more, of a terminal's only that there is some. */
static inline size_t fd_room(int fd, size_t n)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || S_ISREG(st.st_mode))
        return n;
    return !S_ISFIFO(st.st_mode) ? 1 : n < PIPE_BUF ? n : PIPE_BUF;
}

/* Writes n bytes, with one write where the kernel takes them at once; once *hurry is set, those that there is no room for
 * within a tenth of a second are dropped.  False with errno if a write failed.  Async-signal-safe. */
static inline bool fd_put_or_drop(int fd, const char *p, size_t n, const volatile sig_atomic_t *hurry)
{
    while (n) {
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        ssize_t k;

        if (*hurry && poll(&room, 1, 100) == 0)
            return true;
        k = write(fd, p, *hurry ? fd_room(fd, n) : n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* The same with all the time that it takes. */
static inline bool fd_put(int fd, const char *p, size_t n)
{
    static const volatile sig_atomic_t never;

    return fd_put_or_drop(fd, p, n, &never);
}

#endif
