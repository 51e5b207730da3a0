/* Reading: one window of stored bytes over a descriptor, an address or memory, and a decoder of members on top. */
#include "base/file_in.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "base/http.h"

enum {
    WINDOW = 2 << 20,     /* stored bytes held at a time */
    STEP = 64 << 10,      /* bytes that a decoder is asked for */
    SKIPPABLE_HEAD = 8
};

static uint64_t offset(const struct file_in *f)
{
    return f->base + f->at;
}

int file_in_broken(struct file_in *f, int code, const char *fmt, ...)
{
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    f->state = BROKEN;
    return err_set(&f->why, code, "'%s': %s", f->name, what);
}

/* Goes to an offset of what can be read from anywhere.  1; 0: not this; ERR_IO. */
static int go_to(struct file_in *f, uint64_t offset, struct err *e)
{
    if (!f->seekable && !f->http)
        return 0;
    if (f->http)
        http_go(f->http, offset, UINT64_MAX);
    else if (lseek(f->fd, (off_t)(f->start + offset), SEEK_SET) < 0)
        return err_sys(e, ERR_IO, "cannot seek in '%s'", f->name);
    f->base = offset;
    f->at = f->n = 0;
    f->eof = false;
    return 1;
}

static ssize_t read_http(void *http, void *p, size_t n, struct err *e)
{
    return http_read(http, p, n, e);
}

/* Reads from the descriptor or the stream. */
static ssize_t read_fd(struct file_in *f, void *p, size_t n)
{
    ssize_t k;

    do
        k = f->read ? f->read(f->arg, p, n, &f->why) : read(f->fd, p, n);
    while (k < 0 && !f->read && errno == EINTR);
    if (k < 0)
        f->state = BROKEN;
    if (k < 0 && !f->read)
        return err_sys(&f->why, ERR_IO, "cannot read '%s' at offset %" PRIu64, f->name, f->base + f->n);
    if (k == 0)
        f->eof = true;
    return k;
}

int file_in_fill(struct file_in *f, size_t want)
{
    if (f->n - f->at >= want || f->eof)
        return 0;
    memmove(f->own, f->own + f->at, f->n - f->at);
    f->base += f->at;
    f->n -= f->at;
    f->at = 0;
    while (f->n < want && !f->eof) {
        ssize_t k = read_fd(f, f->own + f->n, f->cap - f->n);
        if (k < 0)
            return (int)k;
        f->n += (size_t)k;
    }
    return 0;
}

/* ---- skippable frames ---- */

#define SKIPPABLE 0x184D2A50u /* the low four bits are free */

bool file_skippable_at(const uint8_t *p, size_t n)
{
    return n >= 4 && (file_in_load32(p) & ~15u) == SKIPPABLE;
}

int file_in_skippable(struct file_in *f, uint8_t *to, const char *codec)
{
    uint64_t left = file_in_load32(f->in + f->at + 4);

    for (f->at += SKIPPABLE_HEAD; left;) {
        size_t k;

        TRY(file_in_fill(f, 1));
        k = f->n - f->at < left ? f->n - f->at : (size_t)left;
        if (k == 0)
            return file_in_broken(f, ERR_FORMAT, "%s frame at offset %" PRIu64 " is cut short", codec, f->member);
        if (to) {
            memcpy(to, f->in + f->at, k);
            to += k;
        }
        f->at += k;
        left -= k;
    }
    return 0;
}

/* ---- plain: one member, the whole file ---- */

static int plain_begin(struct file_in *f)
{
    return f->first_done ? 0 : 1;
}

static ssize_t plain_read(struct file_in *f, void *p, size_t n)
{
    size_t k = f->n - f->at < n ? f->n - f->at : n;

    if (k) {
        memcpy(p, f->in + f->at, k);
        f->at += k;
        return (ssize_t)k;
    }
    if (f->eof)
        return 0;
    f->base += f->n;
    f->at = f->n = 0;
    ssize_t got = read_fd(f, p, n);
    if (got > 0)
        f->base += (uint64_t)got;
    return got;
}

/* ---- any codec ---- */

/* What a codec is read by; base/file_in.h says what the functions do. */
static const struct decoder {
    bool (*at)(const uint8_t *p, size_t n);
    int (*begin)(struct file_in *f);
    ssize_t (*read)(struct file_in *f, void *p, size_t n);
} decoders[] = {
    [FILE_PLAIN] = {NULL, plain_begin, plain_read},
    [FILE_GZIP] = {file_gzip_at, file_gzip_begin, file_gzip_read},
    [FILE_ZSTD] = {file_zstd_at, file_zstd_begin, file_zstd_read},
    [FILE_BZ2] = {file_bz2_at, file_bz2_begin, file_bz2_read},
    [FILE_XZ] = {file_xz_at, file_xz_begin, file_xz_read},
    [FILE_LZ4] = {file_lz4_at, file_lz4_begin, file_lz4_read},
    [FILE_PARQUET] = {NULL, file_parquet_begin, file_parquet_read},
};

static int begin(struct file_in *f)
{
    int rc = decoders[f->codec].begin(f);

    if (rc == 1) {
        f->state = INSIDE;
        f->first_done = true;
    } else if (rc == 0) {
        f->state = END;
    }
    return rc;
}

static int give_why(const struct file_in *f, struct err *e)
{
    if (e)
        *e = f->why;
    return f->why.code;
}

/* The next bytes of the member.  A decoder is asked for the same number each time: what it can give before a damage depends
 * on that. */
static ssize_t read_step(struct file_in *f, void *p, size_t n)
{
    ssize_t k;

    if (f->codec == FILE_PLAIN || n >= STEP)
        return decoders[f->codec].read(f, p, f->codec == FILE_PLAIN ? n : STEP);
    if (!f->step && !(f->step = malloc(STEP)))
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    k = decoders[f->codec].read(f, f->step, STEP);
    if (k <= 0)
        return k;
    f->step_n = (size_t)k;
    f->step_at = (size_t)k < n ? (size_t)k : n;
    memcpy(p, f->step, f->step_at);
    return (ssize_t)f->step_at;
}

ssize_t file_read(struct file_in *f, void *p, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (n > SSIZE_MAX)
        n = SSIZE_MAX;
    if (f->step_at < f->step_n) {
        n = n < f->step_n - f->step_at ? n : f->step_n - f->step_at;
        memcpy(p, f->step + f->step_at, n);
        f->step_at += n;
        f->told += n;
        return (ssize_t)n;
    }
    for (;;) {
        switch (f->state) {
        case BROKEN:
            return give_why(f, e);
        case END:
            return 0;
        case BETWEEN:
            begin(f);
            break;
        case INSIDE: {
            ssize_t k = read_step(f, p, n);
            if (k > 0) {
                f->told += (uint64_t)k;
                return k;
            }
            if (k == 0)
                f->state = BETWEEN;
            break;
        }
        }
    }
}

int file_skip_member(struct file_in *f, struct err *e)
{
    uint64_t from = f->member + 1;

    f->step_at = f->step_n = 0;
    if (f->codec == FILE_PLAIN || f->state == END)
        return 0;
    if (f->state == BROKEN && f->why.code == ERR_IO)
        return give_why(f, e);
    if (f->codec == FILE_PARQUET)
        return file_parquet_skip(f);
    if (f->codec == FILE_BZ2 && file_bz2_go_back(f) < 0)
        return give_why(f, e);
    if (from >= f->base && from <= f->base + f->n) {
        f->at = (size_t)(from - f->base);
    } else if (go_to(f, from, e) < 0) {
        return ERR_IO;
    } /* else a pipe that has moved on: search from where it stands */
    for (;;) {
        if (file_in_fill(f, GZIP_HEAD) < 0)
            return give_why(f, e);
        if (f->n - f->at < 8)
            break;
        for (; f->n - f->at >= 8; f->at++)
            if (decoders[f->codec].at(f->in + f->at, f->n - f->at)) {
                f->state = BETWEEN;
                f->first_done = true;
                return 1;
            } else if (f->n - f->at < GZIP_HEAD && !f->eof) {
                break;
            }
    }
    f->state = END;
    return 0;
}

/* ---- opening ---- */

/* Behind skippable frames at the start, as far as the window shows them: whether one of lz4 follows. */
static bool lz4_after_skippable(struct file_in *f)
{
    size_t at = 0;

    while (f->n - at >= SKIPPABLE_HEAD && file_skippable_at(f->in + at, f->n - at)) {
        uint64_t next = at + SKIPPABLE_HEAD + file_in_load32(f->in + at + 4);
        if (f->own && next + SKIPPABLE_HEAD > f->cap)
            return false;
        if (file_in_fill(f, (size_t)next + SKIPPABLE_HEAD) < 0 || next > f->n)
            return false;
        at = (size_t)next;
    }
    return file_lz4_at(f->in + at, f->n - at);
}

/* Text can begin like Parquet too: some bytes more tell. */
static bool parquet_at_start(struct file_in *f)
{
    size_t n = f->own && f->cap < FILE_KIND_BYTES ? f->cap : FILE_KIND_BYTES;

    return f->n >= 4 && memcmp(f->in, "PAR1", 4) == 0 && file_in_fill(f, n) == 0 &&
           file_kind_is_binary((struct span){(const char *)f->in, f->n < n ? f->n : n});
}

static int sniff(struct file_in *f, struct err *e)
{
    /* A pipe may give a single byte first; four tell most codecs apart. */
    if (file_in_fill(f, 4) < 0)
        return give_why(f, e);
    if (f->n >= 2 && f->in[0] == 0x1f && f->in[1] == 0x8b)
        f->codec = FILE_GZIP;
    else if (lz4_after_skippable(f))
        f->codec = FILE_LZ4;
    else if (file_zstd_at(f->in, f->n))
        f->codec = FILE_ZSTD;
    else if (f->n >= 3 && memcmp(f->in, "BZh", 3) == 0 && file_in_fill(f, BZ2_HEAD) == 0 &&
             file_bz2_at(f->in, f->n))
        f->codec = FILE_BZ2;
    else if (f->n && f->in[0] == 0xFD && file_in_fill(f, XZ_HEAD) == 0 && file_xz_at(f->in, f->n))
        f->codec = FILE_XZ;
    else if (parquet_at_start(f))
        f->codec = FILE_PARQUET;
    if (f->codec == FILE_GZIP && !(f->deflate = libdeflate_alloc_decompressor()))
        return err_set(e, ERR_NOMEM, "out of memory");
    return f->state == BROKEN ? give_why(f, e) : 0;
}

static struct file_in *new_file(const char *name, size_t window)
{
    struct file_in *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->fd = -1;
    f->name = strdup(name);
    f->threads = 1;
    f->cap = window;
    f->own = window ? malloc(window) : NULL;
    f->in = f->own;
    if (f->name && (f->own || !window))
        return f;
    file_close(f);
    return NULL;
}

/* What there is to know of the descriptor. */
static int look_at_fd(struct file_in *f, struct err *e)
{
    struct stat st;
    off_t at;

    if (f->fd < 0 && errno == ENOENT && strstr(f->name, "://"))
        return err_set(e, ERR_IO, "cannot open '%s': no file here, and no address of http, https or s3", f->name);
    if (f->fd < 0)
        return err_sys(e, ERR_IO, "cannot open '%s'", f->name);
    if (fstat(f->fd, &st) < 0)
        return err_sys(e, ERR_IO, "cannot read '%s'", f->name);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_IO, "cannot read '%s': it is a directory", f->name);
    at = lseek(f->fd, 0, SEEK_CUR);
    if (S_ISREG(st.st_mode) && at >= 0) {
        f->seekable = true;
        f->start = (uint64_t)at;
        f->size = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    return 0;
}

/* The end of each way to open: tells the codec, or gives up. */
static int opened(struct file_in **out, struct file_in *f, int rc, struct err *e)
{
    *out = NULL;
    if (rc == 0)
        rc = sniff(f, e);
    if (rc < 0) {
        file_close(f);
        return rc;
    }
    *out = f;
    return 0;
}

static int open_address(struct file_in **out, const char *address, struct err *e)
{
    char *name = http_name(address);
    struct file_in *f = name ? new_file(name, WINDOW) : NULL;
    int rc;

    *out = NULL;
    free(name);
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = http_open(&f->http, address, 0, UINT64_MAX, e);
    f->read = read_http;
    f->arg = f->http;
    f->size = rc == 0 ? http_size(f->http) : 0;
    return opened(out, f, rc, e);
}

int file_open(struct file_in **out, const char *path, struct err *e)
{
    bool standard = strcmp(path, "-") == 0;
    struct file_in *f;

    if (http_is_address(path))
        return open_address(out, path, e);
    f = new_file(standard ? "standard input" : path, WINDOW);
    *out = NULL;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    return opened(out, f, look_at_fd(f, e), e);
}

int file_open_beneath(struct file_in **out, const char *folder, const char *name, struct err *e)
{
    size_t n = strlen(folder), room = n + strlen(name) + 2;
    char *path = malloc(room);
    struct file_in *f = NULL;
    int rc;

    *out = NULL;
    if (path) {
        snprintf(path, room, "%s%s%s", folder, n && folder[n - 1] != '/' ? "/" : "", name);
        f = new_file(path, WINDOW);
        free(path);
    }
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->fd = file_beneath(folder, name);
    if (f->fd < 0 && (errno == EXDEV || errno == ELOOP))
        rc = err_set(e, ERR_IO, "cannot open '%s': it leads out of the folder '%s'", f->name, n ? folder : ".");
    else
        rc = look_at_fd(f, e);
    if (rc == 0 && !f->seekable)
        rc = err_set(e, ERR_IO, "cannot read '%s': it is no regular file", f->name);
    return opened(out, f, rc, e);
}

int file_open_stream(struct file_in **out, const char *name, uint64_t size,
                     ssize_t (*read)(void *arg, void *p, size_t n, struct err *e), void *arg, struct err *e)
{
    struct file_in *f = new_file(name, size < WINDOW ? (size_t)size + 1 : WINDOW); /* one byte more shows the end */

    *out = NULL;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->size = size;
    f->read = read;
    f->arg = arg;
    return opened(out, f, 0, e);
}

int file_open_mem(struct file_in **out, const char *name, struct span bytes, struct err *e)
{
    struct file_in *f = new_file(name, 0);

    *out = NULL;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->in = (const uint8_t *)(bytes.n ? bytes.p : ""); /* nobody reckons from NULL */
    f->n = bytes.n;
    f->size = bytes.n;
    f->eof = true;
    return opened(out, f, 0, e);
}

void file_set_threads(struct file_in *f, int n)
{
    f->threads = n;
}

void file_set_columns(struct file_in *f, const char *names)
{
    f->columns = names;
}

enum file_codec file_codec(const struct file_in *f)
{
    return f->codec;
}

const char *file_name(const struct file_in *f)
{
    return f->name;
}

uint64_t file_member_offset(const struct file_in *f)
{
    return f->codec == FILE_PLAIN ? offset(f) : f->member;
}

uint64_t file_tell(const struct file_in *f)
{
    return f->told;
}

int file_seek(struct file_in *f, uint64_t offset, struct err *e)
{
    int rc = f->codec == FILE_PLAIN && !f->told ? go_to(f, offset, e) : 0;

    if (rc == 1)
        f->told = offset;
    return rc;
}

const char *file_state(const struct file_in *f)
{
    return f->http ? http_state(f->http) : "";
}

uint64_t file_size(const struct file_in *f)
{
    return f->size;
}

uint64_t file_consumed(const struct file_in *f)
{
    return offset(f);
}

void file_close(struct file_in *f)
{
    if (!f)
        return;
    file_parquet_close(f); /* whose threads read the file */
    if (f->fd > STDIN_FILENO)
        close(f->fd);
    http_close(f->http);
    libdeflate_free_decompressor(f->deflate);
    if (f->z_open)
        inflateEnd(&f->z);
    ZSTD_freeDCtx(f->zstd);
    file_bz2_close(f);
    file_xz_close(f);
    file_lz4_close(f);
    free(f->out);
    free(f->step);
    free(f->own);
    free(f->name);
    free(f);
}
