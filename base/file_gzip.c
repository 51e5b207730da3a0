/* gzip members.  One that lies wholly in the window goes through libdeflate in one call (over twice zlib's speed); what is
 * larger, damaged or blows up beyond WHOLE_MAX is streamed through zlib, so memory stays bounded. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_in.h"

enum {
    WHOLE_IN = 512 << 10, /* filled before a member is tried whole */
    WHOLE_FIRST = 1 << 20,
    WHOLE_MAX = 64 << 20  /* decompressed size above which a member is streamed */
};

bool file_gzip_at(const uint8_t *p, size_t n)
{
    return n >= GZIP_HEAD && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8 && (p[3] & 0xe0) == 0 &&
           (p[8] == 0 || p[8] == 2 || p[8] == 4) && (p[9] <= 13 || p[9] == 255);
}

/* Tries the member at the window's start in one call.  1: done, 0: to be streamed. */
static int gzip_whole(struct file_in *f)
{
    for (;;) {
        size_t used = 0;
        enum libdeflate_result r;

        if (f->out_cap) {
            r = libdeflate_gzip_decompress_ex(f->deflate, f->in + f->at, f->n - f->at, f->out,
                                              f->out_cap, &used, &f->out_n);
            if (r == LIBDEFLATE_SUCCESS) {
                f->at += used;
                f->out_at = 0;
                return 1;
            }
            if (r != LIBDEFLATE_INSUFFICIENT_SPACE || f->out_cap >= WHOLE_MAX)
                return 0;
        }
        size_t cap = f->out_cap ? f->out_cap * 2 : WHOLE_FIRST;
        uint8_t *p = malloc(cap);
        if (!p)
            return 0;
        free(f->out);
        f->out = p;
        f->out_cap = cap;
    }
}

int file_gzip_begin(struct file_in *f)
{
    for (;;) { /* NUL bytes between members and behind the last are padding */
        TRY(file_in_fill(f, 1));
        while (f->first_done && f->at < f->n && f->in[f->at] == 0)
            f->at++;
        if (f->at < f->n)
            break;
        if (f->eof)
            return 0;
    }
    f->member = f->base + f->at;
    TRY(file_in_fill(f, WHOLE_IN));
    if (f->n - f->at < 2 || f->in[f->at] != 0x1f || f->in[f->at + 1] != 0x8b)
        return file_in_broken(f, ERR_FORMAT, "no gzip member but other bytes at offset %" PRIu64, f->member);
    f->ended = false;
    f->whole = gzip_whole(f) == 1;
    if (f->whole)
        return 1;
    if (f->z_open)
        inflateReset(&f->z);
    else if (inflateInit2(&f->z, 15 + 16) != Z_OK)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    f->z_open = true;
    return 1;
}

ssize_t file_gzip_read(struct file_in *f, void *p, size_t n)
{
    if (f->whole) {
        size_t k = f->out_n - f->out_at < n ? f->out_n - f->out_at : n;
        memcpy(p, f->out + f->out_at, k);
        f->out_at += k;
        return (ssize_t)k;
    }
    f->z.next_out = p;
    f->z.avail_out = (uInt)n;
    while (!f->ended && f->z.avail_out == n) {
        int r;

        if (file_in_fill(f, 1) < 0)
            return f->why.code;
        size_t avail = f->n - f->at < 1u << 30 ? f->n - f->at : 1u << 30;
        f->z.next_in = f->in + f->at;
        f->z.avail_in = (uInt)avail;
        r = inflate(&f->z, Z_NO_FLUSH);
        f->at += avail - f->z.avail_in;
        if (r == Z_STREAM_END)
            f->ended = true;
        else if (r == Z_MEM_ERROR)
            file_in_broken(f, ERR_NOMEM, "out of memory");
        else if (r != Z_OK && r != Z_BUF_ERROR)
            file_in_broken(f, ERR_FORMAT, "damaged gzip member at offset %" PRIu64 ": %s", f->member,
                   f->z.msg ? f->z.msg : "bad data");
        else if (avail == 0 && f->z.avail_out == n)
            file_in_broken(f, ERR_FORMAT, "gzip member at offset %" PRIu64 " is cut short", f->member);
        if (f->state == BROKEN)
            break;
    }
    n -= f->z.avail_out;
    return n == 0 && f->state == BROKEN ? f->why.code : (ssize_t)n;
}
