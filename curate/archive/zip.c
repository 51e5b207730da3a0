#include "curate/archive/zip.h"

#include <stdlib.h>
#include <zlib.h>

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, COMMENT_MAX = 65535, STEP = 64 << 10, STORED = 0, DEFLATED = 8 };

static uint32_t two(const char *p)
{
    return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8;
}

static uint32_t four(const char *p)
{
    return two(p) | two(p + 2) << 16;
}

/* Where the end of the central directory is; NULL: nowhere. */
static const char *find_end(struct span s)
{
    size_t least = s.n > END_SIZE + COMMENT_MAX ? s.n - END_SIZE - COMMENT_MAX : 0;

    for (size_t at = s.n < END_SIZE ? 0 : s.n - END_SIZE + 1; at-- > least;)
        if (memcmp(s.p + at, "PK\5\6", 4) == 0)
            return s.p + at;
    return NULL;
}

static int damaged(struct span bytes, const char *at, struct err *e)
{
    return err_set(e, ERR_FORMAT, "the directory of the zip archive is damaged at byte %zu", (size_t)(at - bytes.p));
}

int zip_open(struct zip *z, struct span bytes, struct err *e)
{
    const char *end = find_end(bytes), *p;
    uint32_t size, from, n, moved;

    z->bytes = bytes;
    z->n = 0;
    if (!end)
        return err_set(e, ERR_FORMAT, "a zip archive without its directory");
    n = two(end + 10);
    size = four(end + 12);
    from = four(end + 16);
    if ((uint64_t)size + from > (uint64_t)(end - bytes.p))
        return damaged(bytes, end, e);
    moved = (uint32_t)(end - bytes.p) - size - from; /* bytes before the archive */
    if (mem_grow(&z->member, &z->cap, n + 1, sizeof *z->member) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a zip archive");
    p = bytes.p + from + moved;
    while (z->n < n) {
        struct zip_member *m = &z->member[z->n];
        if (end - p < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0 || end - p < (ptrdiff_t)(ENTRY_SIZE + two(p + 28)))
            return damaged(bytes, p, e);
        *m = (struct zip_member){.name = {p + ENTRY_SIZE, two(p + 28)}, .method = two(p + 10), .crc = four(p + 16),
                                 .packed = four(p + 20), .offset = four(p + 42)};
        if (__builtin_add_overflow(m->offset, moved, &m->offset))
            return damaged(bytes, p, e);
        if (two(p + 8) & 1)
            m->method = UINT32_MAX; /* encrypted */
        size_t skip = ENTRY_SIZE + two(p + 28) + two(p + 30) + two(p + 32);
        p = (size_t)(end - p) < skip ? end : p + skip;
        z->n++;
    }
    return 0;
}

void zip_close(struct zip *z)
{
    free(z->member);
    *z = (struct zip){0};
}

const struct zip_member *zip_find(const struct zip *z, struct span name)
{
    for (size_t i = 0; i < z->n; i++)
        if (span_eq(z->member[i].name, name))
            return &z->member[i];
    return NULL;
}

static int inflate_all(struct span packed, size_t max, struct buf *out)
{
    z_stream s = {.next_in = (unsigned char *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n};
    int rc = inflateInit2(&s, -15), done = 0;

    if (rc != Z_OK)
        return ERR_NOMEM;
    do {
        done = buf_reserve(out, STEP);
        if (done < 0)
            break;
        s.next_out = (unsigned char *)out->p + out->n;
        s.avail_out = STEP;
        rc = inflate(&s, Z_NO_FLUSH);
        out->n += STEP - s.avail_out;
        if (out->n > max)
            done = ERR_LIMIT;
        else if (rc == Z_MEM_ERROR)
            done = ERR_NOMEM;
        else if (rc != Z_STREAM_END && (rc != Z_OK || (!s.avail_in && s.avail_out)))
            done = ERR_FORMAT;
    } while (done == 0 && rc != Z_STREAM_END);
    inflateEnd(&s);
    return done;
}

int zip_read(const struct zip *z, const struct zip_member *m, size_t max, struct buf *out, struct err *e)
{
    const char *local = z->bytes.p + m->offset;
    size_t left = m->offset < z->bytes.n ? z->bytes.n - m->offset : 0, skip;
    int name = m->name.n < 100 ? (int)m->name.n : 100, rc;
    struct span packed;

    buf_clear(out);
    if (left < LOCAL_SIZE || memcmp(local, "PK\3\4", 4) != 0)
        return err_set(e, ERR_FORMAT, "'%.*s' is not at byte %u of the zip archive", name, m->name.p, m->offset);
    skip = LOCAL_SIZE + two(local + 26) + two(local + 28);
    if (skip > left || m->packed > left - skip)
        return err_set(e, ERR_FORMAT, "'%.*s' at byte %u of the zip archive is cut short", name, m->name.p, m->offset);
    packed = (struct span){local + skip, m->packed};
    if (m->method == STORED)
        rc = packed.n > max ? ERR_LIMIT : buf_put_span(out, packed);
    else if (m->method == DEFLATED)
        rc = inflate_all(packed, max, out);
    else
        return err_set(e, ERR_FORMAT, "'%.*s' at byte %u of the zip archive is encrypted, or packed in a way that is not read",
                       name, m->name.p, m->offset);
    if (rc == ERR_LIMIT)
        return err_set(e, rc, "'%.*s' at byte %u of the zip archive has more than %zu bytes", name, m->name.p, m->offset, max);
    if (rc == ERR_NOMEM)
        return err_set(e, rc, "out of memory for a zip archive");
    if (rc < 0 || crc32_z(0, (const unsigned char *)out->p, out->n) != m->crc)
        return err_set(e, ERR_FORMAT, "'%.*s' at byte %u of the zip archive is damaged", name, m->name.p, m->offset);
    return 0;
}
