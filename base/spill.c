#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"

enum { PART = 1 << 18 /* bytes that are copied at a time */ };

const char *spill_folder(const char *dir)
{
    if (!dir)
        dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

static int make_file(const char *dir, struct err *e)
{
    char name[4096];

    snprintf(name, sizeof name, "%s/quern-spill", spill_folder(dir));
    return file_nameless(name, e);
}

int spill_open(struct spill *s, const char *dir, size_t cap, struct err *e)
{
    *s = (struct spill){.fd = make_file(dir, e), .cap = cap};
    if (s->fd < 0)
        return ERR_IO;
    s->buf = malloc(cap);
    return s->buf ? 0 : err_set(e, ERR_NOMEM, "out of memory for a temporary file");
}

int spill_open_small(struct spill *s, const char *dir, size_t cap, struct err *e)
{
    *s = (struct spill){.fd = -1, .dir = spill_folder(dir), .cap = cap, .buf = malloc(cap)};
    return s->buf ? 0 : err_set(e, ERR_NOMEM, "out of memory for a temporary file");
}

/* errno's failure, with the folder that the file without a name is in. */
static int refused(int fd, const char *what, struct err *e)
{
    char link[64], name[4096] = "";
    int because = errno;
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof name - 1);
    while (n > 1 && name[n - 1] != '/')
        n--;
    errno = because;
    return err_sys(e, ERR_IO, "cannot %s a temporary file in '%.*s'", what, n > 1 ? (int)n - 1 : 1, n > 1 ? name : "?");
}

static int write_all(int fd, const char *p, size_t n, struct err *e)
{
    return fd_put(fd, p, n) ? 0 : refused(fd, "write", e);
}

/* A small one has none at first. */
static int need_file(struct spill *s, struct err *e)
{
    if (s->fd < 0 && s->dir)
        s->fd = make_file(s->dir, e);
    return s->fd < 0 && s->dir ? ERR_IO : 0;
}

int spill_put(struct spill *s, const void *p, size_t n, struct err *e)
{
    s->size += n;
    if (n > s->cap - s->used) {
        TRY(need_file(s, e));
        TRY(write_all(s->fd, s->buf, s->used, e));
        s->used = 0;
    }
    if (n > s->cap)
        return write_all(s->fd, p, n, e);
    if (n)
        memcpy(s->buf + s->used, p, n);
    s->used += n;
    return 0;
}

int spill_write_out(struct spill *s, struct err *e)
{
    if (s->fd < 0 && s->dir)
        return 0;
    TRY(write_all(s->fd, s->buf, s->used, e));
    s->used = 0;
    return 0;
}

int spill_flush(struct spill *s, struct err *e)
{
    if (s->fd < 0 && s->dir)
        return 0;
    TRY(spill_write_out(s, e));
    free(s->buf);
    s->buf = NULL;
    s->cap = 0;
    return 0;
}

/* Puts begin at the beginning again. */
static int spill_rewind(struct spill *s, struct err *e)
{
    if (s->fd >= 0 && (ftruncate(s->fd, 0) < 0 || lseek(s->fd, 0, SEEK_SET) < 0))
        return refused(s->fd, "empty", e);
    s->used = 0;
    s->size = 0;
    return 0;
}

int spill_write(const struct spill *s, uint64_t offset, const void *p, size_t n, struct err *e)
{
    return fd_write_at(s->fd, p, n, offset) ? 0 : refused(s->fd, "write", e);
}

int spill_read(const struct spill *s, uint64_t offset, void *p, size_t n, struct err *e)
{
    ssize_t got;

    if (s->fd < 0 && s->dir && n && offset + n <= s->used) {
        memcpy(p, s->buf + offset, n);
        return 0;
    }
    got = fd_read_at(s->fd, p, n, offset);
    if (got < 0)
        return refused(s->fd, "read", e);
    return (size_t)got == n ? 0 : err_set(e, ERR_IO, "a temporary file ends too early");
}

void spill_close(struct spill *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->buf);
    *s = (struct spill){.fd = -1};
}

/* ---- in order ---- */

int spill_reader_open(struct spill_reader *r, const struct spill *s, uint64_t at, uint64_t end, size_t cap,
                      struct err *e)
{
    *r = (struct spill_reader){.s = s, .at = at, .end = end, .buf = malloc(cap), .cap = cap};
    return r->buf ? 0 : err_set(e, ERR_NOMEM, "out of memory for reading a temporary file");
}

int spill_ahead(struct spill_reader *r, size_t n, size_t *got, struct err *e)
{
    size_t left = r->have - r->pos, more;

    if (left < n && r->at < r->end) {
        memmove(r->buf, r->buf + r->pos, left);
        more = r->cap - left;
        if (more > r->end - r->at)
            more = (size_t)(r->end - r->at);
        TRY(spill_read(r->s, r->at, r->buf + left, more, e));
        r->at += more;
        r->pos = 0;
        r->have = left = left + more;
    }
    *got = left < n ? left : n;
    return 0;
}

int spill_next(struct spill_reader *r, void *p, size_t n, struct err *e)
{
    char *to = p;
    size_t got;

    while (n) {
        TRY(spill_ahead(r, n < r->cap ? n : r->cap, &got, e));
        if (!got)
            return err_set(e, ERR_IO, "a temporary file ends too early");
        memcpy(to, r->buf + r->pos, got);
        r->pos += got;
        to += got;
        n -= got;
    }
    return 0;
}

void spill_reader_close(struct spill_reader *r)
{
    free(r->buf);
    *r = (struct spill_reader){0};
}

uint64_t spill_skip(struct spill_reader *r, uint64_t n)
{
    size_t have = r->have - r->pos;
    uint64_t from = r->at - have;

    if (n <= have) {
        r->pos += (size_t)n;
    } else {
        r->at = from + n;
        r->pos = r->have = 0;
    }
    return from;
}

/* ---- parts ---- */

int spill_put_part(struct spill *to, const struct spill_part *from, struct err *e)
{
    struct spill_reader r;
    size_t got;
    int rc = spill_reader_open(&r, from->s, from->at, from->at + from->n, PART, e);

    while (rc == 0 && (rc = spill_ahead(&r, PART, &got, e)) == 0 && got) {
        rc = spill_put(to, r.buf + r.pos, got, e);
        r.pos += got;
    }
    spill_reader_close(&r);
    return rc;
}

int spill_part_done(const struct spill_part *p, struct err *e)
{
    return p->s && p->at + p->n == p->s->size ? spill_rewind(p->s, e) : 0;
}

/* ---- mapped ---- */

static int map_fd(struct spill_map *m, int fd, size_t n, struct err *e)
{
    void *p = n ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;

    if (p == MAP_FAILED)
        return err_sys(e, ERR_NOMEM, "cannot map %zu bytes of a temporary file", n);
    *m = (struct spill_map){p, n};
    return 0;
}

int spill_map_open(struct spill_map *m, const char *dir, size_t n, struct err *e)
{
    int rc, fd = make_file(dir, e);

    *m = (struct spill_map){0};
    if (fd < 0)
        return ERR_IO;
    /* room is taken now: a full disk would later be a signal */
    rc = n ? posix_fallocate(fd, 0, (off_t)n) : 0;
    if (rc) {
        errno = rc;
        rc = err_sys(e, ERR_IO, "no room for a temporary file of %zu bytes in '%s'", n, spill_folder(dir));
    } else {
        rc = map_fd(m, fd, n, e);
    }
    close(fd);
    return rc;
}

void spill_map_forget(const struct spill_map *m)
{
    if (m->n)
        madvise(m->p, m->n, MADV_DONTNEED);
}

void spill_map_close(struct spill_map *m)
{
    if (m->n)
        munmap(m->p, m->n);
    *m = (struct spill_map){0};
}
