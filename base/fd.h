/* base/fd.h -- the last words of a program, to a descriptor, when nothing can be done about a failure. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* Writes n bytes, with one write where the kernel takes them at once; gives up silently when nobody reads them, and once *hurry
 * is set when there is no room for them within a tenth of a second.  Async-signal-safe. */
static inline void fd_put_or_drop(int fd, const char *p, size_t n, const volatile sig_atomic_t *hurry)
{
    while (n) {
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        ssize_t k;

        if (*hurry && poll(&room, 1, 100) <= 0)
            return;
        k = write(fd, p, *hurry && n > PIPE_BUF ? PIPE_BUF : n); /* a pipe with room has it for PIPE_BUF */
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return;
        p += k;
        n -= (size_t)k;
    }
}

/* The same with all the time that it takes. */
static inline void fd_put(int fd, const char *p, size_t n)
{
    static const volatile sig_atomic_t never;

    fd_put_or_drop(fd, p, n, &never);
}

#endif
