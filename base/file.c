/* Whole files: read, written, mapped. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http.h"
#include "base/s3.h"

/* A page that is read brings some around it into the process: fewer than NEIGHBOURS bytes. */
enum { READ_STEP = 64 << 10, NEIGHBOURS = 2 << 20 };

int file_nameless(const char *start, struct err *e)
{
    const char *slash = strrchr(start, '/');
    char path[4096];
    int fd;

    if (snprintf(path, sizeof path, "%.*s", slash ? (int)(slash + 1 - start) : 1, slash ? start : ".") >= (int)sizeof path)
        return err_set(e, ERR_IO, "the name is too long: '%.80s...'", start);
    fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system makes files without a name (NFS, FUSE): whoever is killed before the second call leaves one. */
    if (snprintf(path, sizeof path, "%s.XXXXXX", start) >= (int)sizeof path)
        return err_set(e, ERR_IO, "the name is too long: '%.80s...'", start);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_IO, "cannot make a temporary file '%s'", path);
    unlink(path);
    return fd;
}

int file_read_rest(struct file_in *f, size_t max, struct buf *b, struct err *e)
{
    const char *path = file_name(f);
    size_t had = b->n;
    ssize_t k;
    int rc;

    for (;;) {
        size_t room = max - (b->n - had); /* one byte more tells that it is too long */
        size_t want = room < READ_STEP ? room + 1 : READ_STEP;

        if (b->cap - b->n > want + 1 && room > want)
            want = b->cap - b->n - 1 < room ? b->cap - b->n - 1 : room;
        rc = buf_reserve(b, want);
        if (rc < 0) {
            err_set(e, rc, "'%s' is too large for memory", path);
            break;
        }
        k = file_read(f, b->p + b->n, want, e);
        if (k <= 0) {
            rc = (int)k;
            break;
        }
        b->n += (size_t)k;
        if (b->n - had > max) {
            rc = err_set(e, ERR_LIMIT, "'%s' is larger than %zu bytes", path, max);
            break;
        }
    }
    if (rc < 0)
        b->n = had;
    if (b->p)
        b->p[b->n] = '\0';
    return rc;
}

int file_read_all(const char *path, size_t max, struct buf *b, struct err *e)
{
    struct file_in *f;
    int rc;

    TRY(file_open(&f, path, e));
    rc = file_read_rest(f, max, b, e);
    file_close(f);
    return rc;
}

int file_write_all(const char *path, struct span s, struct err *e)
{
    struct file_out *f;
    int rc;

    if (!path) {
        fwrite(s.p, 1, s.n, stdout);
        return 0;
    }
    TRY(file_create(&f, path, 0, e));
    rc = file_write(f, s.p, s.n, e);
    if (rc < 0) {
        file_abort(f);
        return rc;
    }
    return file_commit(f, e);
}

int file_make_folder(const char *path, struct err *e)
{
    if (s3_is_address(path))
        return 0;
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_sys(e, ERR_IO, "cannot make the folder '%s'", path);
    return 0;
}

int file_make_folders(const char *path, struct err *e)
{
    size_t n = strlen(path);
    char part[4096];

    if (n >= sizeof part)
        return err_set(e, ERR_ARG, "the name of the folder '%.100s...' is too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) == 0)
            TRY(file_sync_parent(part, e));
        else if (errno != EEXIST)
            return err_sys(e, ERR_IO, "cannot make the folder '%s'", part);
    }
    return 0;
}

int file_check_readable(const char *path, struct err *e)
{
    if (http_is_address(path))
        return http_check(path, e);
    return access(path, R_OK) == 0 ? 0 : err_sys(e, ERR_IO, "cannot open '%s'", path);
}

int file_map_open(struct file_map *m, const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for who writes to a pipe */
    struct stat st;
    void *p;

    m->p = NULL;
    m->n = 0;
    if (fd < 0 && http_is_address(path))
        return err_set(e, ERR_UNSUPPORTED, "'%.*s' is an address; this has to be a file here, which is mapped",
                       http_name_length(path), path);
    if (fd < 0)
        return err_sys(e, ERR_IO, "cannot open '%s'", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(e, ERR_IO, "cannot map '%s': it is no regular file", path);
    }
    if (st.st_size > 0) {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            int rc = err_sys(e, ERR_IO, "cannot map the %lld bytes of '%s'", (long long)st.st_size, path);
            close(fd);
            return rc;
        }
        m->p = p;
        m->n = (size_t)st.st_size;
    }
    close(fd);
    return 0;
}

void file_map_close(struct file_map *m)
{
    if (m->p)
        munmap((void *)(uintptr_t)m->p, m->n);
    m->p = NULL;
    m->n = 0;
}

/* Advises on the pages that have these bytes and so many of the mapping's on each side. */
static int advise(const struct file_map *m, const void *p, size_t n, size_t margin, int advice)
{
    size_t at = (size_t)((const uint8_t *)p - m->p);
    uintptr_t from = (uintptr_t)p - (at < margin ? at : margin), to = (uintptr_t)p + n;

    to += m->n - at - n < margin ? m->n - at - n : margin;
    from &= ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    return n ? madvise((void *)from, to - from, advice) : 0;
}

int file_map_fetch(const struct file_map *m, const void *p, size_t n, struct err *e)
{
    int rc;

    do
        rc = advise(m, p, n, 0, MADV_POPULATE_READ);
    while (rc < 0 && (errno == EINTR || errno == EAGAIN));
    if (rc == 0 || errno == EINVAL || errno == ENOSYS)
        return 0;
    if (errno == EFAULT)
        errno = EIO;
    return err_sys(e, ERR_IO, "cannot read %zu bytes at %td", n, (const uint8_t *)p - m->p);
}

void file_map_drop(const struct file_map *m, const void *p, size_t n)
{
    advise(m, p, n, NEIGHBOURS, MADV_DONTNEED);
}
