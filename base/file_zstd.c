/* zstd frames, one after another.  Skippable ones are passed over, but the first of a .warc.zst:
 * it holds the dictionary of all others. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd_errors.h>

#include "base/file_in.h"

enum {
    DICT_MAX = 64 << 20,
    BLOCK_HEAD = 3,
    ZSTD_WINDOW_LOG = 31 /* what zstd --long=31 wrote can be read: 2 GiB at worst */
};
#define ZSTD_FRAME 0xFD2FB528u
#define ZSTD_WARC_DICT 0x184D2A5Du /* IIPC, "WARC compression with Zstandard" */

bool file_zstd_at(const uint8_t *p, size_t n)
{
    return n >= 4 && (file_in_load32(p) == ZSTD_FRAME || file_skippable_at(p, n));
}

/* libzstd's answer r to `what`, which is at fault unless memory is short. */
static int zstd_broken(struct file_in *f, const char *what, size_t r)
{
    if (ZSTD_getErrorCode(r) == ZSTD_error_memory_allocation)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    if (ZSTD_getErrorCode(r) == ZSTD_error_dictionary_wrong)
        return file_in_broken(f, ERR_UNSUPPORTED, "zstd frame at offset %" PRIu64 " was written with a dictionary that is not in "
                                                  "the file", f->member);
    return file_in_broken(f, ERR_FORMAT, "%s at offset %" PRIu64 ": %s", what, f->member, ZSTD_getErrorName(r));
}

static int zstd_open(struct file_in *f)
{
    if (!f->zstd) {
        f->zstd = ZSTD_createDCtx();
        if (!f->zstd)
            return file_in_broken(f, ERR_NOMEM, "out of memory");
        ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    }
    return 0;
}

/* Takes a dictionary for all frames. */
static int zstd_load(struct file_in *f, const void *p, size_t n)
{
    TRY(zstd_open(f));
    ZSTD_DCtx_reset(f->zstd, ZSTD_reset_session_only);
    size_t r = ZSTD_DCtx_loadDictionary(f->zstd, p, n);
    if (ZSTD_isError(r))
        return zstd_broken(f, "bad zstd dictionary", r);
    return 0;
}

/* The dictionary of a WARC file, itself perhaps compressed. */
static int zstd_load_stored(struct file_in *f, const uint8_t *p, size_t n)
{
    if (n < 4 || file_in_load32(p) != ZSTD_FRAME)
        return zstd_load(f, p, n);
    unsigned long long size = ZSTD_getFrameContentSize(p, n);
    if (size == ZSTD_CONTENTSIZE_ERROR)
        return file_in_broken(f, ERR_FORMAT, "damaged zstd dictionary");
    if (size == ZSTD_CONTENTSIZE_UNKNOWN)
        size = n < DICT_MAX / 64 ? (unsigned long long)n * 64 : DICT_MAX;
    if (size > DICT_MAX)
        return file_in_broken(f, ERR_LIMIT, "zstd dictionary is larger than %d bytes", DICT_MAX);
    uint8_t *dict = malloc(size ? size : 1);
    if (!dict)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    size_t k = ZSTD_decompress(dict, size, p, n);
    int rc = ZSTD_isError(k) ? zstd_broken(f, "damaged zstd dictionary", k) : zstd_load(f, dict, k);
    free(dict);
    return rc;
}

/* At a skippable frame: takes a dictionary from the first, passes over the others. */
static int zstd_skip(struct file_in *f)
{
    uint64_t size = file_in_load32(f->in + f->at + 4);
    uint8_t *dict;
    int rc;

    if (f->base + f->at != 0 || file_in_load32(f->in + f->at) != ZSTD_WARC_DICT)
        return file_in_skippable(f, NULL, "zstd");
    if (size > DICT_MAX)
        return file_in_broken(f, ERR_LIMIT, "zstd dictionary is larger than %d bytes", DICT_MAX);
    dict = malloc(size ? size : 1);
    if (!dict)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    rc = file_in_skippable(f, dict, "zstd");
    if (rc == 0)
        rc = zstd_load_stored(f, dict, size);
    free(dict);
    return rc;
}

int file_zstd_begin(struct file_in *f)
{
    for (;;) {
        TRY(file_in_fill(f, 8));
        size_t avail = f->n - f->at;
        f->member = f->base + f->at;
        if (avail == 0)
            return 0;
        if (avail >= 4 && file_in_load32(f->in + f->at) == ZSTD_FRAME)
            break;
        if (avail < 8 || !file_skippable_at(f->in + f->at, avail))
            return file_in_broken(f, ERR_FORMAT, "no zstd frame but other bytes at offset %" PRIu64, f->member);
        TRY(zstd_skip(f));
    }
    TRY(zstd_open(f));
    ZSTD_DCtx_reset(f->zstd, ZSTD_reset_session_only);
    f->ended = f->flush = false;
    f->want = BLOCK_HEAD;
    return 1;
}

/* Block by block, and what is left of one by itself: a call that fails loses what else it did.  zstd asks for a block along with
 * the head of the next. */
ssize_t file_zstd_read(struct file_in *f, void *p, size_t n)
{
    ZSTD_outBuffer out = {p, n, 0};

    while (!f->ended && out.pos == 0) {
        size_t want = f->flush ? 0 : f->want > BLOCK_HEAD ? f->want - BLOCK_HEAD : f->want;
        if (file_in_fill(f, 1) < 0)
            return f->why.code;
        ZSTD_inBuffer in = {f->in + f->at, f->n - f->at < want ? f->n - f->at : want, 0};
        size_t r = ZSTD_decompressStream(f->zstd, &out, &in);
        f->at += in.pos;
        if (ZSTD_isError(r)) {
            zstd_broken(f, "damaged zstd frame", r);
            break;
        }
        f->ended = r == 0;
        f->want = r;
        if (!f->ended && out.pos == 0 && !f->flush && in.size == 0)
            return file_in_broken(f, ERR_FORMAT, "zstd frame at offset %" PRIu64 " is cut short", f->member);
        f->flush = out.pos == n;
    }
    return out.pos == 0 && f->state == BROKEN ? f->why.code : (ssize_t)out.pos;
}
