/* bzip2 streams.  Each block and each stream carries a check sum, so damage is found; blocks
 * do not say where they begin in bytes, so what follows damage in a stream is lost. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_in.h"

bool file_bz2_at(const uint8_t *p, size_t n)
{
    /* A block (pi) or, in an empty stream, its end (the root of pi). */
    static const char block[] = "\x31\x41\x59\x26\x53\x59", end[] = "\x17\x72\x45\x38\x50\x90";

    return n >= BZ2_HEAD && memcmp(p, "BZh", 3) == 0 && p[3] >= '1' && p[3] <= '9' &&
           (memcmp(p + 4, block, 6) == 0 || memcmp(p + 4, end, 6) == 0);
}

#if HAVE_BZ2
#include <bzlib.h>

static void release(struct file_in *f)
{
    if (f->bz2)
        BZ2_bzDecompressEnd(f->bz2);
}

int file_bz2_begin(struct file_in *f)
{
    TRY(file_in_fill(f, BZ2_HEAD));
    f->member = f->base + f->at;
    if (f->at == f->n)
        return 0;
    if (f->first_done && !file_bz2_at(f->in + f->at, f->n - f->at))
        return file_in_broken(f, ERR_FORMAT, "no bzip2 stream but other bytes at offset %" PRIu64, f->member);
    release(f);
    if (!f->bz2 && !(f->bz2 = malloc(sizeof(bz_stream))))
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    memset(f->bz2, 0, sizeof(bz_stream));
    if (BZ2_bzDecompressInit(f->bz2, 0, 0) != BZ_OK) {
        free(f->bz2);
        f->bz2 = NULL;
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    }
    f->ended = false;
    return 1;
}

ssize_t file_bz2_read(struct file_in *f, void *p, size_t n)
{
    bz_stream *z = f->bz2;

    if (n > 1 << 30)
        n = 1 << 30;
    z->next_out = p;
    z->avail_out = (unsigned)n;
    while (!f->ended && z->avail_out == n) {
        size_t avail;
        int r;

        if (file_in_fill(f, 1) < 0)
            return f->why.code;
        avail = f->n - f->at;
        z->next_in = (char *)(uintptr_t)(f->in + f->at); /* it is only read */
        z->avail_in = (unsigned)avail;
        r = BZ2_bzDecompress(z);
        f->at += avail - z->avail_in;
        if (r == BZ_STREAM_END)
            f->ended = true;
        else if (r == BZ_MEM_ERROR)
            file_in_broken(f, ERR_NOMEM, "out of memory");
        else if (r != BZ_OK)
            file_in_broken(f, ERR_FORMAT, "damaged bzip2 stream at offset %" PRIu64, f->member);
        else if (avail == 0 && z->avail_out == n)
            file_in_broken(f, ERR_FORMAT, "bzip2 stream at offset %" PRIu64 " is cut short", f->member);
        if (f->state == BROKEN)
            break;
    }
    n -= z->avail_out;
    return n == 0 && f->state == BROKEN ? f->why.code : (ssize_t)n;
}

void file_bz2_close(struct file_in *f)
{
    release(f);
    free(f->bz2);
}

#else

int file_bz2_begin(struct file_in *f)
{
    return file_in_broken(f, ERR_UNSUPPORTED, "this build lacks libbz2, which bzip2 needs");
}

ssize_t file_bz2_read(struct file_in *f, void *p, size_t n)
{
    (void)p;
    (void)n;
    return f->why.code;
}

void file_bz2_close(struct file_in *f)
{
    (void)f;
}
#endif
