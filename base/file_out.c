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
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <libdeflate.h>
#include <zstd.h>

#include "base/fd.h"
#include "base/file_temp.h"
#include "base/http.h"
#include "base/parquet_write.h"
#include "base/s3.h"
#include "base/s3_write.h"

enum {
    CHUNK = 256 << 10,       /* plain and zstd: what is written at once */
    GZIP_MEMBER = 1 << 20,   /* gzip output is members of this many bytes: each can be */
    GZIP_LEVEL = 6,          /*   compressed and read in one libdeflate call */
    ZSTD_LEVEL = 3,
    OPEN_TRIES = 100,
    OTHER_TRIES = 6,   /* looks at a name that another process seems to be writing */
    LIVE_MAX = 256,    /* temporary files that a signal removes */
    MAX_LINKS = 40     /* one after another, as in Linux */
};

/* A temporary file that a signal is to remove. */
struct live {
    pid_t pid; /* whose it is: a child has the list as well */
    char path[];
};

struct file_out {
    char *name, *final, *temp; /* temp NULL: written in place (a pipe, a device) */
    struct live *live;         /* NULL: temp stays when a signal ends the program */
    int fd, claim; /* claim: see file_temp_others */
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
    struct parquet_writer *parquet;
    struct s3_writer *s3; /* an object: bytes go there; of Parquet from fd, a nameless file, when it is whole */
};

static bool stdout_in_line; /* what was last written to standard output did not end a line */

bool file_stdout_in_line(void)
{
    return __atomic_load_n(&stdout_in_line, __ATOMIC_RELAXED);
}

static int failed_sys(struct file_out *f, struct err *e, const char *what)
{
    int code = errno == EPIPE && f->fd == STDOUT_FILENO ? ERR_CLOSED : ERR_IO;

    return f->failed = err_sys(e, code, "cannot %s '%s'", what, f->name);
}

static int put(struct file_out *f, const char *p, size_t n, struct err *e)
{
    int rc = f->s3 && f->fd < 0 ? s3_writer_put(f->s3, p, n, e) : 1;

    if (rc <= 0)
        return rc < 0 ? f->failed = rc : 0;
    while (n) {
        ssize_t k = write(f->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return failed_sys(f, e, "write");
        if (k && f->fd == STDOUT_FILENO)
            __atomic_store_n(&stdout_in_line, p[k - 1] != '\n', __ATOMIC_RELAXED);
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

/* ---- Parquet: the writer's bytes, and what it says ---- */

static int parquet_put(void *file, const void *p, size_t n, struct err *e)
{
    return put(file, p, n, e);
}

static int parquet_get(void *file, uint64_t at, void *p, size_t n, struct err *e)
{
    ssize_t k = file_reread(file, at, p, n, e);

    return k < 0 ? (int)k : (size_t)k < n ? err_set(e, ERR_IO, "it has become shorter while it was written") : 0;
}

static int parquet_done(struct file_out *f, int rc, struct err *e)
{
    if (rc < 0 && !f->failed)
        f->failed = err_wrap(e, "cannot write '%s'", f->name);
    return rc;
}

int file_write(struct file_out *f, const void *p, size_t n, struct err *e)
{
    const char *s = p;

    if (f->failed)
        return err_set(e, f->failed, "cannot write '%s': an earlier write failed", f->name);
    if (f->sealed)
        return err_set(e, ERR_ARG, "'%s' is finished", f->name);
    f->told += n;
    if (f->codec == FILE_PARQUET)
        return parquet_done(f, parquet_writer_put(f->parquet, s, n, e), e);
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

int file_check_suffix(const char *path, struct err *e)
{
    static const char *const others[] = {".xz", ".lzma", ".bz2", ".lz4", ".lz", ".lzo", ".br", ".sz", ".Z", ".zip", ".7z", ".rar",
                                         ".tgz", ".tar", ".gzip", ".zstd"};

    if (http_is_address(path) && !s3_is_address(path))
        return err_set(e, ERR_ARG, "'%.*s' is an address, to which nothing is written", http_name_length(path), path);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_with(path, others[i]))
            return err_set(e, ERR_ARG, "'%s': %s cannot be written, .gz, .zst and .parquet can", path, others[i]);
    return 0;
}

enum file_codec file_codec_by_name(const char *path)
{
    return ends_with(path, ".gz")        ? FILE_GZIP
           : ends_with(path, ".zst")     ? FILE_ZSTD
           : ends_with(path, ".parquet") ? FILE_PARQUET
                                         : FILE_PLAIN;
}

static int64_t row_group;

void file_set_row_group(int64_t rows)
{
    row_group = rows;
}

/* level -1: as it comes. */
static int set_codec(struct file_out *f, int level, struct err *e)
{
    TRY(file_check_suffix(f->name, e));
    f->codec = level < 0 ? FILE_PLAIN : file_codec_by_name(f->name);
    if (f->codec == FILE_PARQUET)
        return parquet_writer_open(&f->parquet, &(struct parquet_sink){parquet_put, parquet_get, f}, row_group, e);
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

/* ---- temporary files that a signal removes ---- */

static struct live *live[LIVE_MAX];

/* From now on file_drop_unfinished removes f->temp.  Without memory or room it does not. */
static void live_add(struct file_out *f)
{
    size_t n = strlen(f->temp) + 1;
    struct live *l = malloc(sizeof *l + n);

    if (!l)
        return;
    l->pid = getpid();
    memcpy(l->path, f->temp, n);
    for (int i = 0; i < LIVE_MAX; i++) {
        struct live *none = NULL;
        if (__atomic_compare_exchange_n(&live[i], &none, l, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            f->live = l;
            return;
        }
    }
    free(l);
}

/* Whoever takes an entry out of the list owns it: so a handler never reads what another thread frees. */
static void live_drop(struct file_out *f)
{
    for (int i = 0; i < LIVE_MAX && f->live; i++) {
        struct live *l = f->live;
        if (__atomic_compare_exchange_n(&live[i], &l, NULL, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            free(f->live);
            break;
        }
    }
    f->live = NULL;
}

void file_drop_unfinished(void)
{
    for (int i = 0; i < LIVE_MAX; i++) {
        struct live *l = __atomic_exchange_n(&live[i], NULL, __ATOMIC_SEQ_CST);
        if (l && l->pid == getpid())
            unlink(l->path);
    }
}

/* ---- names ---- */

/* NAME, which stands in path's folder, as a path that a working folder does not change. */
static char *beside(const char *path, const char *name)
{
    size_t dir = file_base_at(path);
    char *folder = dir ? strndup(path, dir) : strdup("."), *whole = folder ? realpath(folder, NULL) : NULL, *out = NULL;

    if (whole && asprintf(&out, "%s/%s", whole[1] ? whole : "", name) < 0)
        out = NULL;
    free(folder);
    free(whole);
    return out;
}

char *file_resolve(const char *path)
{
    char *at = strdup(path), link[PATH_MAX];

    for (int i = 0; at && i < MAX_LINKS; i++) {
        char *whole = realpath(at, NULL), *next = NULL;
        ssize_t n;

        if (whole || errno != ENOENT) {
            free(at);
            return whole;
        }
        n = readlink(at, link, sizeof link - 1);
        if (n < 0) { /* nothing is there yet */
            next = at[file_base_at(at)] ? beside(at, at + file_base_at(at)) : NULL;
            free(at);
            return next;
        }
        link[n] = '\0';
        if (link[0] == '/')
            next = strdup(link);
        else if (asprintf(&next, "%.*s%s", (int)file_base_at(at), at, link) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    free(at);
    errno = at ? ELOOP : ENOMEM;
    return NULL;
}

/* ---- opening ---- */

static int set_temp(struct file_out *f, bool random, struct err *e)
{
    free(f->temp);
    f->temp = file_temp_name(f->final, random);
    return f->temp ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whether somebody else writes the same name; f keeps its claim only if nobody does. */
static bool others_write(struct file_out *f)
{
    bool writes = file_temp_others(f->final, f->temp, &f->claim);

    if (writes)
        close_fd(&f->claim);
    return writes;
}

static void drop_temp(struct file_out *f)
{
    unlink(f->temp);
    live_drop(f);
    close_fd(&f->fd);
}

/* The file that is replaced gives its owner, where that can be, and its mode. */
static int keep_mode(struct file_out *f, const struct stat *old, struct err *e)
{
    mode_t mode = 0777;
    struct stat st;

    if (!old)
        return 0;
    if (fstat(f->fd, &st) < 0)
        return failed_sys(f, e, "create");
    if ((st.st_uid == old->st_uid && st.st_gid == old->st_gid) || fchown(f->fd, old->st_uid, old->st_gid) == 0)
        mode = 07777;
    if (fchmod(f->fd, old->st_mode & mode) < 0 && errno != EPERM && errno != ENOTSUP)
        return failed_sys(f, e, "create");
    return 0;
}

/* Takes the lock by which others see that somebody writes.  1; 0: another has it.  File systems without locks go without. */
static int lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? 0 : 1;
}

/* Whether the name still is that of the open file. */
static bool is_named(int fd, const char *name)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && lstat(name, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* A new file under a name that nobody can guess. */
static int open_new(struct file_out *f, const struct stat *old, struct err *e)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        TRY(set_temp(f, true, e));
        live_add(f); /* before it is there: a signal in between must find it */
        f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, old ? 0600 : 0666);
        if (f->fd < 0 && errno != EEXIST) {
            int rc = failed_sys(f, e, "create");
            live_drop(f);
            return rc;
        }
        /* One who looks for what killed runs left may have locked or removed it just now. */
        if (f->fd >= 0 && lock(f->fd) && is_named(f->fd, f->temp)) {
            int rc = keep_mode(f, old, e);
            if (rc < 0)
                drop_temp(f);
            return rc;
        }
        if (f->fd >= 0)
            unlink(f->temp);
        live_drop(f);
        close_fd(&f->fd);
    }
    return err_set(e, ERR_IO, "cannot create '%s': others keep removing it", f->name);
}

/* Of two that begin at once each may see the other: both step back, and come again at different times. */
static int open_temp(struct file_out *f, const struct stat *old, struct err *e)
{
    for (int i = 0; i < OTHER_TRIES; i++) {
        unsigned char ms = 0;
        struct timespec t = {0, 0};

        TRY(open_new(f, old, e));
        if (!others_write(f))
            return 0;
        drop_temp(f);
        if (getrandom(&ms, 1, 0) == 1)
            t.tv_nsec = (1 + ms % 16) * 1000000L;
        nanosleep(&t, NULL);
    }
    return err_set(e, ERR_IO, "cannot create '%s': another process is writing it", f->name);
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

/* Whether a file that was there under a name that anybody can guess may be gone on with: it must be a plain file, under
 * this name alone, of our own or of the folder's owner. */
static bool is_ours(const struct file_out *f, const struct stat *st)
{
    struct stat folder = {.st_uid = geteuid()};
    char *dir = strndup(f->temp, file_base_at(f->temp));

    if (dir)
        (void)stat(dir, &folder);
    free(dir);
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && (st->st_uid == geteuid() || st->st_uid == folder.st_uid);
}

/* The temporary file under the name that a later run finds, with its first keep bytes, locked. */
static int open_fixed(struct file_out *f, const struct stat *old, uint64_t keep, struct err *e)
{
    TRY(set_temp(f, false, e));
    for (int i = 0; i < OPEN_TRIES; i++) {
        struct stat st;
        bool made;

        f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, old ? 0600 : 0666);
        made = f->fd >= 0;
        if (!made && errno == EEXIST)
            f->fd = open(f->temp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (f->fd < 0 && errno == ENOENT) /* it has just got its name */
            continue;
        if (f->fd < 0 || fstat(f->fd, &st) < 0) {
            return err_sys(e, ERR_IO, "cannot open '%s'", f->temp);
        }
        if (!made && !is_ours(f, &st))
            return err_set(e, ERR_IO, "cannot write '%s': it is no file of our own", f->temp);
        if (!lock(f->fd))
            return err_set(e, ERR_IO, "cannot create '%s': another process is writing it", f->name);
        if (is_named(f->fd, f->temp)) {
            if (keep == 0)
                live_add(f);
            TRY(keep_mode(f, old, e));
            return keep_bytes(f, fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0, keep, e);
        }
        close_fd(&f->fd);
    }
    return err_set(e, ERR_IO, "cannot create '%s': others keep replacing it", f->name);
}

/* Standard output or standard error, if that is the very file (or socket, which no name opens); else -1. */
static int standard_fd(const struct stat *st)
{
    struct stat s;

    if (S_ISREG(st->st_mode) || S_ISSOCK(st->st_mode))
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
            if (fstat(fd, &s) == 0 && s.st_ino == st->st_ino && s.st_dev == st->st_dev)
                return fd;
    return -1;
}

/* What is there and is no regular file is written as it is, by whatever links it is named. */
static int open_in_place(struct file_out *f, const char *path, const struct stat *st, struct err *e)
{
    if (S_ISDIR(st->st_mode))
        return err_set(e, ERR_IO, "cannot create '%s': it is a directory", f->name);
    if (f->parquet)
        return err_set(e, ERR_ARG, "'%s' is no regular file: Parquet cannot be written to it", f->name);
    f->fd = standard_fd(st);
    if (f->fd < 0)
        f->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return f->fd < 0 ? failed_sys(f, e, "open") : 0;
}

static int open_object(struct file_out *f, const char *address, struct err *e)
{
    const char *dir = getenv("TMPDIR");
    char start[PATH_MAX];

    TRY(s3_writer_open(&f->s3, address, e));
    if (!f->parquet)
        return 0;
    snprintf(start, sizeof start, "%s/quern", dir && *dir ? dir : "/tmp");
    f->fd = file_nameless(start, e);
    return f->fd < 0 ? e->code : 0;
}

/* All of the Parquet file goes to the object. */
static int send_parquet(struct file_out *f, struct err *e)
{
    char *block = malloc(CHUNK);
    ssize_t n = 1;
    int rc = block ? 0 : err_set(e, ERR_NOMEM, "out of memory for '%s'", f->name);

    for (uint64_t at = 0; rc == 0 && n > 0; at += (uint64_t)n) {
        n = file_reread(f, at, block, CHUNK, e);
        rc = n < 0 ? (int)n : s3_writer_put(f->s3, block, (size_t)n, e);
    }
    free(block);
    return rc < 0 ? f->failed = rc : 0;
}

/* kept: under the name that a later run finds. */
static int open_out(struct file_out *f, const char *path, bool kept, uint64_t keep, struct err *e)
{
    struct stat st, *old = &st;

    if (strcmp(path, "-") == 0) {
        f->fd = STDOUT_FILENO;
        return 0;
    }
    if (!*path)
        return err_set(e, ERR_IO, "cannot create a file without a name");
    if (s3_is_address(path))
        return open_object(f, path, e);
    if (stat(path, &st) < 0) {
        if (errno != ENOENT)
            return failed_sys(f, e, "create");
        old = NULL;
    } else if (!S_ISREG(st.st_mode) || standard_fd(&st) >= 0) {
        return open_in_place(f, path, &st, e);
    } else if (eaccess(path, W_OK) < 0) {
        return failed_sys(f, e, "create");
    }
    f->final = file_resolve(path); /* a link stays, what it points to is replaced */
    if (!f->final)
        return failed_sys(f, e, "create");
    return kept ? open_fixed(f, old, keep, e) : open_temp(f, old, e);
}

static void release(struct file_out *f)
{
    if (f->fd > STDERR_FILENO)
        close(f->fd);
    close_fd(&f->claim);
    live_drop(f);
    s3_writer_close(f->s3);
    libdeflate_free_compressor(f->deflate);
    ZSTD_freeCCtx(f->zstd);
    parquet_writer_close(f->parquet);
    free(f->packed);
    free(f->buf);
    free(f->temp);
    free(f->final);
    free(f->name);
    free(f);
}

static int create(struct file_out **out, const char *path, int level, bool kept, uint64_t keep, struct err *e)
{
    struct file_out *f = calloc(1, sizeof *f);
    int rc;

    *out = NULL;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->fd = f->claim = -1;
    f->name = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    rc = f->name ? set_codec(f, level, e) : err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = open_out(f, path, kept, keep, e);
    if (rc < 0) {
        release(f);
        return rc;
    }
    *out = f;
    return 0;
}

int file_create(struct file_out **out, const char *path, int level, struct err *e)
{
    return create(out, path, level, false, 0, e);
}

int file_create_stored(struct file_out **out, const char *path, struct err *e)
{
    return create(out, path, -1, false, 0, e);
}

int file_put_file(struct file_out *f, const char *from, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), rc = 0;
    ssize_t n = 0;

    if (in < 0)
        return err_sys(e, ERR_IO, "cannot open '%s'", from);
    if (f->n)
        rc = flush(f, e);
    while (rc == 0 && f->temp && (n = copy_file_range(in, NULL, f->fd, NULL, 1 << 30, 0)) > 0)
        f->told += (uint64_t)n;
    while (rc == 0 && (n = read(in, f->buf, f->cap)) != 0) { /* what the kernel does not copy: to another file system, a pipe */
        if (n < 0 && errno == EINTR)
            continue;
        rc = n < 0 ? err_sys(e, ERR_IO, "cannot read '%s'", from) : put(f, f->buf, (size_t)n, e);
        f->told += n > 0 ? (uint64_t)n : 0;
    }
    close(in);
    return rc;
}

/* Gives f->final, which old (or nothing) is, the file `from` by way of a temporary name.  1; 0: no such link can be made. */
static int publish_link(struct file_out *f, const char *from, const struct stat *old, struct err *e)
{
    int rc = 1;

    TRY(set_temp(f, true, e));
    if (others_write(f))
        return err_set(e, ERR_IO, "cannot create '%s': another process is writing it", f->name);
    live_add(f);
    if (linkat(AT_FDCWD, from, AT_FDCWD, f->temp, 0) < 0)
        rc = 0;
    else if ((old && chmod(f->temp, old->st_mode & 0777) < 0 && errno != EPERM) || rename(f->temp, f->final) < 0)
        rc = failed_sys(f, e, "create");
    unlink(f->temp); /* there still when both names were the same file already */
    live_drop(f);
    return rc;
}

int file_publish_link(const char *from, const char *path, bool sync, struct err *e)
{
    struct file_out f = {.fd = -1, .claim = -1, .final = s3_is_address(path) ? NULL : file_resolve(path)};
    union { const char *in; char *out; } name = {path};
    struct stat st;
    bool there = stat(path, &st) == 0;
    int rc = 0;

    f.name = name.out;
    if (f.final && !(there && (!S_ISREG(st.st_mode) || standard_fd(&st) >= 0 || eaccess(path, W_OK) < 0)))
        rc = publish_link(&f, from, there ? &st : NULL, e);
    if (rc == 1 && sync && file_sync_parent(f.final, e) < 0)
        rc = ERR_IO;
    close_fd(&f.claim);
    free(f.temp);
    free(f.final);
    return rc;
}

int file_resume(struct file_out **out, const char *path, uint64_t size, struct err *e)
{
    TRY(create(out, path, 0, true, size, e));
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

/* Writes out everything, but syncs nothing. */
static int write_out(struct file_out *f, struct err *e)
{
    if (f->failed)
        return err_set(e, f->failed, "cannot write '%s': an earlier write failed", f->name);
    if (f->sealed)
        return 0;
    if (f->n || (f->codec == FILE_GZIP && f->told == 0))
        TRY(flush(f, e));
    if (f->codec == FILE_ZSTD)
        TRY(put_zstd(f, NULL, 0, ZSTD_e_end, e));
    if (f->codec == FILE_PARQUET)
        TRY(parquet_done(f, parquet_writer_finish(f->parquet, e), e));
    if (f->s3 && f->parquet)
        TRY(send_parquet(f, e));
    f->sealed = true;
    return 0;
}

int file_flush(struct file_out *f, struct err *e)
{
    bool sealed = f->sealed;

    TRY(write_out(f, e));
    return !sealed && f->temp && sync_fd(f->fd) < 0 ? failed_sys(f, e, "write") : 0;
}

int file_sync(struct file_out *f, struct err *e)
{
    if (f->failed)
        return err_set(e, f->failed, "cannot write '%s': an earlier write failed", f->name);
    if (f->n)
        TRY(flush(f, e));
    live_drop(f); /* from here on a run can go on with it */
    return fdatasync(f->fd) < 0 && errno != EINVAL ? failed_sys(f, e, "write") : 0;
}

int file_patch(struct file_out *f, uint64_t at, const void *p, size_t n, struct err *e)
{
    if (f->n)
        TRY(flush(f, e));
    return fd_write_at(f->fd, p, n, at) ? 0 : failed_sys(f, e, "write");
}

ssize_t file_reread(struct file_out *f, uint64_t at, void *p, size_t n, struct err *e)
{
    ssize_t got;

    if (f->n)
        TRY(flush(f, e));
    got = fd_read_at(f->fd, p, n, at);
    return got < 0 ? failed_sys(f, e, "read") : got;
}

void file_leave(struct file_out *f)
{
    if (f)
        release(f);
}

static int publish(struct file_out *f, bool sync, struct err *e)
{
    int fd = f->fd;

    if (f->s3)
        return s3_writer_commit(f->s3, e);
    if (fd <= STDERR_FILENO)
        return 0;
    if (f->temp && rename(f->temp, f->final) < 0)
        return failed_sys(f, e, "create");
    if (f->temp) { /* it has another name now: nothing to remove */
        free(f->temp);
        f->temp = NULL;
        TRY(sync ? file_sync_parent(f->final, e) : 0);
    }
    f->fd = -1;
    return close(fd) < 0 ? failed_sys(f, e, "write") : 0;
}

static int commit(struct file_out *f, bool sync, struct err *e)
{
    int rc = sync ? file_flush(f, e) : write_out(f, e);

    if (rc == 0)
        rc = publish(f, sync, e);
    if (rc < 0) {
        file_abort(f);
        return rc;
    }
    release(f);
    return 0;
}

int file_commit(struct file_out *f, struct err *e)
{
    return commit(f, true, e);
}

int file_commit_unsynced(struct file_out *f, struct err *e)
{
    return commit(f, false, e);
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

static int sync_at(const char *path, int flags, int (*sync)(int fd), const char *what, struct err *e)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC), rc = 0;

    if (fd < 0 || sync(fd) < 0)
        rc = err_sys(e, ERR_IO, "cannot sync %s'%s'", what, path);
    if (fd >= 0)
        close(fd);
    return rc;
}

int file_sync_parent(const char *path, struct err *e)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s", path);
    return sync_at(dirname(folder), O_DIRECTORY, sync_fd, "the folder ", e);
}

int file_sync_path(const char *path, struct err *e)
{
    return sync_at(path, 0, sync_fd, "", e);
}

int file_sync_disk(const char *path, struct err *e)
{
    return sync_at(path, 0, syncfs, "the file system of ", e);
}
