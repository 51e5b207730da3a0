/* curate/archive/tar.h -- the members of a tar archive, in order.
 *
 * ustar with GNU's long names and pax's path and size, and the older tar without a magic: a header
 * is told by its checksum.  Sparse files and what else is no plain file are given out with
 * file = false.  Sources: POSIX pax, "Basic Tar Format" (GNU tar manual).
 */
#ifndef CURATE_TAR_H
#define CURATE_TAR_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

struct tar;

struct tar_member {
    struct span name; /* until the next tar_next; at most 64 KiB */
    uint64_t size, offset; /* of the header in the archive */
    bool file;
};

/* Whether an archive begins like this (512 bytes are looked at). */
bool tar_begins(struct span start);

/* read: the next at most n bytes of the archive, 0 at its end, as file_read; name is for
 * messages.  Both, and arg, must outlive t.  ERR_NOMEM. */
int tar_open(struct tar **t, const char *name, ssize_t (*read)(void *arg, void *p, size_t n, struct err *e), void *arg,
             struct err *e);
/* The next member: 1, or 0 at the end.  ERR_FORMAT: what is no header (with file and offset;
 * reading goes on at the next one), or the archive is cut short. */
int tar_next(struct tar *t, struct tar_member *m, struct err *e);
/* The next at most n of the member's bytes; 0: it is read.  ERR_FORMAT: the archive is cut short, or read says so. */
ssize_t tar_read(struct tar *t, void *p, size_t n, struct err *e);
void tar_close(struct tar *t);
#endif
