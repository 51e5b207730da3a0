#include "curate/archive/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, COMMENT_MAX = 65535, STEP = 64 << 10, STORED = 0, DEFLATED = 8 };
enum { WIDE_END_SIZE = 56, LOCATOR_SIZE = 20, WIDE_FIELD = 1 }; /* of ZIP64 */

static uint32_t two(const char *p)
{
    return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8;
}

static uint32_t four(const char *p)
{
    return two(p) | two(p + 2) << 16;
}

static uint64_t eight(const char *p)
{
    return four(p) | (uint64_t)four(p + 4) << 32;
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

/* Where the directory is: so many entries and bytes from an offset on, before end. */
struct directory {
    uint64_t n, size, from;
    const char *end;
};

/* ZIP64 has these numbers again, wider, in a record of its own that a locator before the usual end leads to. */
static void read_wide_end(struct span bytes, struct directory *d)
{
    const char *locator = d->end - LOCATOR_SIZE, *wide;
    uint64_t at;

    if (d->end - bytes.p < LOCATOR_SIZE + WIDE_END_SIZE || memcmp(locator, "PK\6\7", 4) != 0)
        return;
    at = eight(locator + 8);
    wide = at <= (uint64_t)(locator - bytes.p) - WIDE_END_SIZE ? bytes.p + at : locator - WIDE_END_SIZE;
    if (memcmp(wide, "PK\6\6", 4) != 0)
        wide = locator - WIDE_END_SIZE; /* bytes stand before the archive */
    if (memcmp(wide, "PK\6\6", 4) == 0)
        *d = (struct directory){.n = eight(wide + 32), .size = eight(wide + 40), .from = eight(wide + 48), .end = wide};
}

/* ZIP64's sizes and offset of an entry, where its own fields are full. */
static void read_wide_fields(const char *entry, struct span extra, struct zip_member *m)
{
    while (extra.n >= 4) {
        struct span field = {extra.p + 4, two(extra.p + 2)};

        if (field.n > extra.n - 4)
            return;
        if (two(extra.p) == WIDE_FIELD) {
            size_t at = four(entry + 24) == UINT32_MAX ? 8 : 0; /* behind the size unpacked, which nobody asks for */
            if (m->packed == UINT32_MAX && at + 8 <= field.n) {
                m->packed = eight(field.p + at);
                at += 8;
            }
            if (m->offset == UINT32_MAX && at + 8 <= field.n)
                m->offset = eight(field.p + at);
            return;
        }
        extra = (struct span){field.p + field.n, extra.n - 4 - field.n};
    }
}

static int compare_names(struct span a, struct span b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Members of one array by name, then by place. */
static int compare_members(const void *pa, const void *pb)
{
    const struct zip_member *a = *(const struct zip_member *const *)pa, *b = *(const struct zip_member *const *)pb;
    int c = compare_names(a->name, b->name);

    return c ? c : (a > b) - (a < b);
}

/* A table sorted by names: hostile ones make it no slower, as they would one of hashes. */
static int sort_names(struct zip *z)
{
    if (mem_grow(&z->by_name, &z->cap_by_name, z->n + 1, sizeof *z->by_name) < 0)
        return ERR_NOMEM;
    for (size_t i = 0; i < z->n; i++)
        z->by_name[i] = &z->member[i];
    qsort(z->by_name, z->n, sizeof *z->by_name, compare_members);
    return 0;
}

int zip_open(struct zip *z, struct span bytes, struct err *e)
{
    struct directory d = {.end = find_end(bytes)};
    const char *p;
    uint64_t moved, room;

    z->bytes = bytes;
    z->n = 0;
    if (!d.end)
        return err_set(e, ERR_FORMAT, "a zip archive without its directory");
    d = (struct directory){.n = two(d.end + 10), .size = four(d.end + 12), .from = four(d.end + 16), .end = d.end};
    read_wide_end(bytes, &d);
    room = (uint64_t)(d.end - bytes.p);
    if (d.size > room || d.from > room - d.size || d.n > d.size / ENTRY_SIZE || d.n >= UINT32_MAX)
        return damaged(bytes, d.end, e);
    moved = room - d.size - d.from; /* bytes before the archive */
    if (mem_grow(&z->member, &z->cap, d.n + 1, sizeof *z->member) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a zip archive");
    p = bytes.p + d.from + moved;
    while (z->n < d.n) {
        struct zip_member *m = &z->member[z->n];
        size_t left = (size_t)(d.end - p), skip;
        if (left < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0 || left < ENTRY_SIZE + (size_t)two(p + 28))
            return damaged(bytes, p, e);
        *m = (struct zip_member){.name = {p + ENTRY_SIZE, two(p + 28)}, .method = two(p + 10), .crc = four(p + 16),
                                 .packed = four(p + 20), .offset = four(p + 42)};
        skip = ENTRY_SIZE + m->name.n + two(p + 30);
        if (skip <= left)
            read_wide_fields(p, (struct span){m->name.p + m->name.n, two(p + 30)}, m);
        if (__builtin_add_overflow(m->offset, moved, &m->offset))
            return damaged(bytes, p, e);
        if (two(p + 8) & 1)
            m->method = UINT32_MAX; /* encrypted */
        skip += two(p + 32);
        p = left < skip ? d.end : p + skip;
        z->n++;
    }
    return sort_names(z) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a zip archive") : 0;
}

void zip_close(struct zip *z)
{
    free(z->member);
    free(z->by_name);
    *z = (struct zip){0};
}

const struct zip_member *zip_find(const struct zip *z, struct span name)
{
    size_t low = 0, high = z->n;

    while (low < high) { /* the first that is not less */
        size_t mid = low + (high - low) / 2;
        if (compare_names(z->by_name[mid]->name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < z->n && span_eq(z->by_name[low]->name, name) ? z->by_name[low] : NULL;
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
    size_t left = m->offset < z->bytes.n ? z->bytes.n - m->offset : 0, skip;
    const char *local = z->bytes.p + (left ? m->offset : 0);
    int name = m->name.n < 100 ? (int)m->name.n : 100, rc;
    struct span packed;

    buf_clear(out);
    if (left < LOCAL_SIZE || memcmp(local, "PK\3\4", 4) != 0)
        return err_set(e, ERR_FORMAT, "'%.*s' is not at byte %" PRIu64 " of the zip archive", name, m->name.p, m->offset);
    skip = LOCAL_SIZE + two(local + 26) + two(local + 28);
    if (skip > left || m->packed > left - skip)
        return err_set(e, ERR_FORMAT, "'%.*s' at byte %" PRIu64 " of the zip archive is cut short", name, m->name.p, m->offset);
    packed = (struct span){local + skip, m->packed};
    if (m->method == STORED)
        rc = packed.n > max ? ERR_LIMIT : buf_put_span(out, packed);
    else if (m->method == DEFLATED && packed.n > UINT32_MAX)
        rc = ERR_LIMIT;
    else if (m->method == DEFLATED)
        rc = inflate_all(packed, max, out);
    else
        return err_set(e, ERR_FORMAT, "'%.*s' at byte %" PRIu64 " of the zip archive is encrypted, or packed in a way that is "
                       "not read", name, m->name.p, m->offset);
    if (rc == ERR_LIMIT)
        return err_set(e, rc, "'%.*s' at byte %" PRIu64 " of the zip archive has more than %zu bytes", name, m->name.p, m->offset,
                       max);
    if (rc == ERR_NOMEM)
        return err_set(e, rc, "out of memory for a zip archive");
    if (rc < 0 || crc32_z(0, (const unsigned char *)out->p, out->n) != m->crc)
        return err_set(e, ERR_FORMAT, "'%.*s' at byte %" PRIu64 " of the zip archive is damaged", name, m->name.p, m->offset);
    return 0;
}
