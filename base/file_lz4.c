/* lz4 frames, one after another; skippable ones are passed over.  Blocks have at most 4 MiB, so
 * memory is bounded by the format.  The older format of lz4 -l has no frames and is refused
 * (base/file_kind.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_in.h"

#define LZ4_FRAME 0x184D2204u

bool file_lz4_at(const uint8_t *p, size_t n)
{
    /* behind the magic number: the version, 1, and bits that must be 0; the size of blocks, 4 to 7 */
    return n >= 4 && file_in_load32(p) == LZ4_FRAME &&
           (n < 6 || ((p[4] & 0xC2) == 0x40 && (p[5] & 0x8F) == 0 && p[5] >= 0x40));
}

#if HAVE_LZ4
#include <lz4frame.h>

enum {
    DICTIONARY = 1, /* in the byte behind the magic number */
    HEAD_MOST = 19,
    BLOCK_HEAD = 4
};

int file_lz4_begin(struct file_in *f)
{
    LZ4F_dctx *z;

    for (;;) {
        TRY(file_in_fill(f, 8));
        f->member = f->base + f->at;
        if (f->at == f->n)
            return 0;
        if (!file_skippable_at(f->in + f->at, f->n - f->at))
            break;
        TRY(file_in_skippable(f, NULL, "lz4"));
    }
    if (!file_lz4_at(f->in + f->at, f->n - f->at))
        return file_in_broken(f, ERR_FORMAT, "no lz4 frame but other bytes at offset %" PRIu64, f->member);
    if (f->n - f->at > 4 && (f->in[f->at + 4] & DICTIONARY))
        return file_in_broken(f, ERR_UNSUPPORTED, "lz4 frame at offset %" PRIu64 " was written with a dictionary", f->member);
    if (!f->lz4) {
        if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
            return file_in_broken(f, ERR_NOMEM, "out of memory");
        f->lz4 = z;
    }
    LZ4F_resetDecompressionContext(f->lz4);
    f->want = HEAD_MOST;
    f->ended = f->flush = false;
    return 1;
}

/* Block by block, and what is left of one by itself: a call that fails loses what else it did.  liblz4 asks for a block along
 * with the head of the next. */
ssize_t file_lz4_read(struct file_in *f, void *p, size_t n)
{
    size_t got = 0;

    while (!f->ended && got == 0) {
        size_t want = f->flush ? 0 : f->want > BLOCK_HEAD ? f->want - BLOCK_HEAD : f->want, used, r;

        if (file_in_fill(f, 1) < 0)
            return f->why.code;
        used = f->n - f->at < want ? f->n - f->at : want;
        got = n;
        r = LZ4F_decompress(f->lz4, p, &got, f->in + f->at, &used, NULL);
        if (LZ4F_isError(r) && strcmp(LZ4F_getErrorName(r), "ERROR_allocation_failed") == 0)
            return file_in_broken(f, ERR_NOMEM, "out of memory");
        if (LZ4F_isError(r))
            return file_in_broken(f, ERR_FORMAT, "damaged lz4 frame at offset %" PRIu64 ": %s", f->member,
                                  LZ4F_getErrorName(r));
        f->ended = r == 0;
        f->want = r;
        if (!f->ended && got == 0 && !f->flush && f->at == f->n)
            return file_in_broken(f, ERR_FORMAT, "lz4 frame at offset %" PRIu64 " is cut short", f->member);
        f->at += used;
        f->flush = got == n;
    }
    return (ssize_t)got;
}

void file_lz4_close(struct file_in *f)
{
    LZ4F_freeDecompressionContext(f->lz4);
}

#else

int file_lz4_begin(struct file_in *f)
{
    return file_in_broken(f, ERR_UNSUPPORTED, "it is compressed with lz4, and this quern was built without liblz4");
}

ssize_t file_lz4_read(struct file_in *f, void *p, size_t n)
{
    (void)p;
    (void)n;
    return f->why.code;
}

void file_lz4_close(struct file_in *f)
{
    (void)f;
}
#endif
