/* Writing: bytes go to NAME's temporary neighbour, perhaps compressed, and take the
 * name at commit. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdeflate.h>
#include <zstd.h>

enum {
    CHUNK = 256 << 10,       /* plain and zstd: what is written at once */
    GZIP_MEMBER = 1 << 20,   /* gzip output is members of this many bytes: each can be */
    GZIP_LEVEL = 6,          /*   compressed and read in one libdeflate call */
    ZSTD_LEVEL = 3,
    OPEN_TRIES = 100
};

struct file_out {
    char *name, *final, *temp; /* temp NULL: written in place (a pipe, a device) */
    int fd;
    enum file_codec codec;
    int failed; /* the code of the first failure */
    bool sealed; /* all is on disk; nothing may be written any more */
    uint64_t told;
    char *buf; /* plain: to be written; gzip: to be compressed */
    size_t n, cap;
    char *packed;
    size_t packed_cap;
    struct libdeflate_compressor *deflate;
    ZSTD_CCtx *zstd;
};

static int failed_sys(struct file_out *f, struct err *e, const char *what)
{
    f->failed = err_sys(e, ERR_IO, "cannot %s '%s'", what, f->name);
    return f->failed = ERR_IO;
}

static int put(struct file_out *f, const char *p, size_t n, struct err *e)
{
    while (n) {
        ssize_t k = write(f->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return failed_sys(f, e, "write");
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int put_zstd(struct file_out *f, const void *p, size_t n, ZSTD_EndDirective how,
                    struct err *e)
{
    ZSTD_inBuffer in = {p, n, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {f->packed, f->packed_cap, 0};
        left = ZSTD_compressStream2(f->zstd, &out, &in, how);
        if (ZSTD_isError(left))
            return f->failed = err_set(e, ERR_NOMEM, "cannot compress '%s': %s", f->name,
                                       ZSTD_getErrorName(left));
        TRY(put(f, f->packed, out.pos, e));
    } while (in.pos < in.size || (how == ZSTD_e_end && left));
    return 0;
}

/* Writes what has gathered in buf. */
static int flush(struct file_out *f, struct err *e)
{
    size_t n = f->n;

    f->n = 0;
    if (f->codec == FILE_PLAIN)
        return put(f, f->buf, n, e);
    if (f->codec == FILE_ZSTD)
        return put_zstd(f, f->buf, n, ZSTD_e_continue, e);
    n = libdeflate_gzip_compress(f->deflate, f->buf, n, f->packed, f->packed_cap);
    if (n == 0)
        return f->failed = err_set(e, ERR_NOMEM, "cannot compress '%s'", f->name);
    return put(f, f->packed, n, e);
}

int file_write(struct file_out *f, const void *p, size_t n, struct err *e)
{
    const char *s = p;

    if (f->failed)
        return err_set(e, f->failed, "cannot write '%s': an earlier write failed", f->name);
    if (f->sealed)
        return err_set(e, ERR_ARG, "'%s' is finished", f->name);
    f->told += n;
    while (n) {
        size_t k = f->cap - f->n < n ? f->cap - f->n : n;

        if (f->n == 0 && n >= f->cap && f->codec == FILE_PLAIN) {
            k = n - n % f->cap;
            TRY(put(f, s, k, e));
        } else {
            memcpy(f->buf + f->n, s, k);
            f->n += k;
            if (f->n == f->cap)
                TRY(flush(f, e));
        }
        s += k;
        n -= k;
    }
    return 0;
}

/* ---- creating ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && strcmp(s + n - k, end) == 0;
}

static int set_codec(struct file_out *f, int level, struct err *e)
{
    f->codec = ends_with(f->name, ".gz") ? FILE_GZIP : ends_with(f->name, ".zst") ? FILE_ZSTD : FILE_PLAIN;
    f->cap = f->codec == FILE_GZIP ? GZIP_MEMBER : CHUNK;
    f->buf = malloc(f->cap);
    if (f->codec == FILE_GZIP) {
        f->deflate = libdeflate_alloc_compressor(level ? level : GZIP_LEVEL);
        f->packed_cap = f->deflate ? libdeflate_gzip_compress_bound(f->deflate, f->cap) : 0;
    } else if (f->codec == FILE_ZSTD) {
        f->zstd = ZSTD_createCCtx();
        f->packed_cap = ZSTD_CStreamOutSize();
        if (f->zstd) {
            ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, level ? level : ZSTD_LEVEL);
            ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_checksumFlag, 1);
        }
    }
    if (f->codec != FILE_PLAIN)
        f->packed = malloc(f->packed_cap);
    if (!f->buf || (f->codec != FILE_PLAIN && (!f->packed || !(f->deflate || f->zstd))))
        return err_set(e, ERR_NOMEM, "out of memory (or no such compression level) for '%s'", f->name);
    return 0;
}

/* DIR/.BASE.part: always the same, so that a rerun replaces what a killed run left. */
static int temp_name(struct file_out *f)
{
    const char *slash = strrchr(f->final, '/');
    int dir = slash ? (int)(slash + 1 - f->final) : 0;

    return asprintf(&f->temp, "%.*s.%s.part", dir, f->final, f->final + dir) < 0 ? ERR_NOMEM : 0;
}

static int keep_bytes(struct file_out *f, uint64_t size, uint64_t keep, struct err *e)
{
    if (size < keep)
        return err_set(e, ERR_FORMAT, "'%s' has %" PRIu64 " bytes of the %" PRIu64 " that were written", f->temp, size,
                       keep);
    if (ftruncate(f->fd, (off_t)keep) < 0 || lseek(f->fd, (off_t)keep, SEEK_SET) < 0)
        return failed_sys(f, e, "create");
    f->told = keep;
    return 0;
}

/* Opens and locks the temporary file: two writers of one name would mix their bytes.
 * File systems without locks go without. */
static int open_temp(struct file_out *f, uint64_t keep, struct err *e)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        struct stat a, b;

        f->fd = open(f->temp, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (f->fd < 0)
            return failed_sys(f, e, "create");
        if (flock(f->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            close(f->fd);
            f->fd = -1;
            return err_set(e, ERR_IO, "cannot create '%s': another process is writing it", f->name);
        }
        /* The one who had it may have renamed it since we opened it. */
        if (fstat(f->fd, &a) == 0 && stat(f->temp, &b) == 0 && a.st_ino == b.st_ino &&
            a.st_dev == b.st_dev)
            return keep_bytes(f, (uint64_t)a.st_size, keep, e);
        close(f->fd);
        f->fd = -1;
    }
    return err_set(e, ERR_IO, "cannot create '%s': others keep replacing it", f->name);
}

static int open_out(struct file_out *f, const char *path, uint64_t keep, struct err *e)
{
    struct stat st;

    if (strcmp(path, "-") == 0) {
        f->fd = STDOUT_FILENO;
        return 0;
    }
    if (!*path)
        return err_set(e, ERR_IO, "cannot create a file without a name");
    f->final = realpath(path, NULL); /* a link stays, what it points to is replaced */
    if (f->final && stat(f->final, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(e, ERR_IO, "cannot create '%s': it is a directory", f->name);
    if (f->final && stat(f->final, &st) == 0 && !S_ISREG(st.st_mode)) {
        f->fd = open(path, O_WRONLY | O_CLOEXEC);
        return f->fd < 0 ? failed_sys(f, e, "open") : 0;
    }
    if (!f->final && errno != ENOENT)
        return failed_sys(f, e, "create");
    if (!f->final)
        f->final = strdup(path);
    if (!f->final || temp_name(f) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return open_temp(f, keep, e);
}

static void release(struct file_out *f)
{
    if (f->fd > STDOUT_FILENO)
        close(f->fd);
    libdeflate_free_compressor(f->deflate);
    ZSTD_freeCCtx(f->zstd);
    free(f->packed);
    free(f->buf);
    free(f->temp);
    free(f->final);
    free(f->name);
    free(f);
}

static int create(struct file_out **out, const char *path, int level, uint64_t keep, struct err *e)
{
    struct file_out *f = calloc(1, sizeof *f);
    int rc;

    *out = NULL;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->fd = -1;
    f->name = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    rc = f->name ? set_codec(f, level, e) : err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = open_out(f, path, keep, e);
    if (rc < 0) {
        release(f);
        return rc;
    }
    *out = f;
    return 0;
}

int file_create(struct file_out **out, const char *path, int level, struct err *e)
{
    return create(out, path, level, 0, e);
}

int file_resume(struct file_out **out, const char *path, uint64_t size, struct err *e)
{
    TRY(create(out, path, 0, size, e));
    if ((*out)->temp && (*out)->codec == FILE_PLAIN)
        return 0;
    release(*out);
    *out = NULL;
    return err_set(e, ERR_ARG, "'%s' is no plain file: what is written to it cannot be kept", path);
}

/* ---- finishing ---- */

/* Pipes, devices and some file systems cannot be synced: that is no failure. */
static int sync_fd(int fd)
{
    int rc;

    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    if (rc == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP)
        return 0;
    return -1;
}

int file_flush(struct file_out *f, struct err *e)
{
    if (f->failed)
        return err_set(e, f->failed, "cannot write '%s': an earlier write failed", f->name);
    if (f->sealed)
        return 0;
    if (f->n || (f->codec == FILE_GZIP && f->told == 0))
        TRY(flush(f, e));
    if (f->codec == FILE_ZSTD)
        TRY(put_zstd(f, NULL, 0, ZSTD_e_end, e));
    if (f->temp && sync_fd(f->fd) < 0)
        return failed_sys(f, e, "write");
    f->sealed = true;
    return 0;
}

int file_sync(struct file_out *f, struct err *e)
{
    if (f->failed)
        return err_set(e, f->failed, "cannot write '%s': an earlier write failed", f->name);
    if (f->n)
        TRY(flush(f, e));
    return fdatasync(f->fd) < 0 && errno != EINVAL ? failed_sys(f, e, "write") : 0;
}

int file_patch(struct file_out *f, uint64_t at, const void *p, size_t n, struct err *e)
{
    if (f->n)
        TRY(flush(f, e));
    for (const char *s = p; n;) {
        ssize_t k = pwrite(f->fd, s, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return failed_sys(f, e, "write");
        s += k;
        n -= (size_t)k;
        at += (uint64_t)k;
    }
    return 0;
}

ssize_t file_reread(struct file_out *f, uint64_t at, void *p, size_t n, struct err *e)
{
    size_t got = 0;

    if (f->n)
        TRY(flush(f, e));
    while (got < n) {
        ssize_t k = pread(f->fd, (char *)p + got, n - got, (off_t)(at + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return failed_sys(f, e, "read");
        if (k == 0)
            break;
        got += (size_t)k;
    }
    return (ssize_t)got;
}

void file_leave(struct file_out *f)
{
    if (f)
        release(f);
}

static int publish(struct file_out *f, struct err *e)
{
    int fd = f->fd;

    if (fd == STDOUT_FILENO)
        return 0;
    if (f->temp && rename(f->temp, f->final) < 0)
        return failed_sys(f, e, "create");
    if (f->temp) { /* it has another name now: nothing to remove */
        free(f->temp);
        f->temp = NULL;
        TRY(file_sync_parent(f->final, e));
    }
    f->fd = -1;
    return close(fd) < 0 ? failed_sys(f, e, "write") : 0;
}

int file_commit(struct file_out *f, struct err *e)
{
    int rc = file_flush(f, e);

    if (rc == 0)
        rc = publish(f, e);
    if (rc < 0) {
        file_abort(f);
        return rc;
    }
    release(f);
    return 0;
}

void file_abort(struct file_out *f)
{
    if (!f)
        return;
    if (f->temp)
        unlink(f->temp);
    release(f);
}

const char *file_out_name(const struct file_out *f)
{
    return f->name;
}

uint64_t file_out_tell(const struct file_out *f)
{
    return f->told;
}

int file_sync_parent(const char *path, struct err *e)
{
    char folder[PATH_MAX];
    int fd, rc = 0;

    snprintf(folder, sizeof folder, "%s", path);
    fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || sync_fd(fd) < 0)
        rc = err_sys(e, ERR_IO, "cannot sync the folder of '%s'", path);
    if (fd >= 0)
        close(fd);
    return rc;
}
