/* xz streams, one after another, with padding between them; what each states to check itself by
 * (CRC32, CRC64, SHA-256) is checked by liblzma. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_in.h"

enum { XZ_MAGIC = 6 }; /* of XZ_HEAD bytes */

bool file_xz_at(const uint8_t *p, size_t n)
{
    /* behind the magic bytes: a byte that is 0, and the check's number */
    return n >= XZ_MAGIC && memcmp(p, "\xFD" "7zXZ", XZ_MAGIC) == 0 && (n < XZ_HEAD || (p[6] == 0 && p[7] < 16));
}

#if HAVE_LZMA
#include <lzma.h>

/* Memory that a stream may ask for: xz -9 takes 65 MiB, and a dictionary can be 4 GiB. */
static const uint64_t xz_memory = (uint64_t)1 << 30;

/* Passes over padding, which is NUL bytes, four at a time: 1: something follows it, 0: the end. */
static int xz_pass_padding(struct file_in *f)
{
    uint64_t from = f->base + f->at;

    for (;;) {
        TRY(file_in_fill(f, 1));
        while (f->first_done && f->at < f->n && f->in[f->at] == 0)
            f->at++;
        if (f->at < f->n || f->eof)
            break;
    }
    if ((f->base + f->at - from) % 4)
        return file_in_broken(f, ERR_FORMAT, "xz padding at offset %" PRIu64 " is no multiple of four bytes", from);
    return f->at < f->n;
}

int file_xz_begin(struct file_in *f)
{
    int rc = xz_pass_padding(f);
    lzma_ret r;

    f->member = f->base + f->at;
    if (rc <= 0)
        return rc;
    TRY(file_in_fill(f, XZ_HEAD));
    if (!file_xz_at(f->in + f->at, f->n - f->at))
        return file_in_broken(f, ERR_FORMAT, "no xz stream but other bytes at offset %" PRIu64, f->member);
    if (!f->xz) {
        static const lzma_stream none = LZMA_STREAM_INIT;
        lzma_stream *z = f->xz = malloc(sizeof *z);
        if (!z)
            return file_in_broken(f, ERR_NOMEM, "out of memory");
        *z = none;
    }
    r = lzma_stream_decoder(f->xz, xz_memory, LZMA_TELL_UNSUPPORTED_CHECK);
    if (r != LZMA_OK)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    f->ended = false;
    return 1;
}

/* What liblzma answers when it cannot go on. */
static int xz_broken(struct file_in *f, lzma_ret r)
{
    switch (r) {
    case LZMA_MEM_ERROR:
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    case LZMA_MEMLIMIT_ERROR:
        return file_in_broken(f, ERR_LIMIT, "xz stream at offset %" PRIu64 " takes %" PRIu64 " MiB of memory, more than %"
                              PRIu64, f->member, lzma_memusage(f->xz) >> 20, xz_memory >> 20);
    case LZMA_OPTIONS_ERROR:
    case LZMA_UNSUPPORTED_CHECK:
        return file_in_broken(f, ERR_UNSUPPORTED, "xz stream at offset %" PRIu64 " has a filter or a check that liblzma %s lacks",
                              f->member, lzma_version_string());
    default:
        return file_in_broken(f, ERR_FORMAT, "damaged xz stream at offset %" PRIu64, f->member);
    }
}

ssize_t file_xz_read(struct file_in *f, void *p, size_t n)
{
    lzma_stream *z = f->xz;

    z->next_out = p;
    z->avail_out = n;
    while (!f->ended && z->avail_out == n) {
        size_t avail;
        lzma_ret r;

        if (file_in_fill(f, 1) < 0)
            return f->why.code;
        avail = f->n - f->at;
        z->next_in = f->in + f->at;
        z->avail_in = avail;
        r = lzma_code(z, LZMA_RUN);
        f->at = f->n - z->avail_in;
        f->ended = r == LZMA_STREAM_END;
        if (r != LZMA_OK && r != LZMA_BUF_ERROR && !f->ended) {
            xz_broken(f, r);
            break;
        }
        if (avail == 0 && z->avail_out == n && !f->ended)
            return file_in_broken(f, ERR_FORMAT, "xz stream at offset %" PRIu64 " is cut short", f->member);
    }
    n -= z->avail_out;
    return n == 0 && f->state == BROKEN ? f->why.code : (ssize_t)n;
}

void file_xz_close(struct file_in *f)
{
    if (f->xz)
        lzma_end(f->xz);
    free(f->xz);
}

#else

int file_xz_begin(struct file_in *f)
{
    return file_in_broken(f, ERR_UNSUPPORTED, "it is compressed with xz, and this quern was built without liblzma");
}

ssize_t file_xz_read(struct file_in *f, void *p, size_t n)
{
    (void)p;
    (void)n;
    return f->why.code;
}

void file_xz_close(struct file_in *f)
{
    (void)f;
}
#endif
