/* base/fd.h -- the last words of a program, to a descriptor, when nothing can be done about a failure. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Writes n bytes, with one write where the kernel takes them at once; gives up silently when nobody reads them.
 * Async-signal-safe. */
static inline void fd_put(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return;
        p += k;
        n -= (size_t)k;
    }
}

#endif
