#include "base/bz2_block.h"

#if HAVE_BZ2
#include <bzlib.h>
#include <pthread.h>
#include <string.h>

#include "base/err.h"

#define BLOCK_MARK UINT64_C(0x314159265359) /* pi */
#define END_MARK UINT64_C(0x177245385090)   /* its root */

enum { HEAD = 4, TAIL = 11, OUT_FIRST = 1 << 20 };

/* At most 56 - bit % 8 bits at this bit; only the bytes that hold them are read. */
static uint64_t bits_at(const uint8_t *p, size_t bit, unsigned count)
{
    unsigned skip = bit % 8, bytes = (skip + count + 7) / 8;
    uint64_t v = 0;

    p += bit / 8;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v >> (8 * bytes - skip - count) & ((UINT64_C(1) << count) - 1);
}

enum bz2_mark bz2_mark_at(const uint8_t *p, size_t bit)
{
    uint64_t v = bits_at(p, bit, BZ2_MARK_BITS);

    return v == BLOCK_MARK ? BZ2_BLOCK : v == END_MARK ? BZ2_STREAM_END : BZ2_NO_MARK;
}

uint32_t bz2_bits32(const uint8_t *p, size_t bit)
{
    return (uint32_t)bits_at(p, bit, 32);
}

/* For two bytes: bit s is set if they can be the third and fourth of the bytes in which a mark
 * begins at bit s.  For most pairs none is, so most of the input is passed at a look-up a byte. */
static uint8_t may_begin[1 << 16];

static void fill_table(void)
{
    for (int s = 0; s < 8; s++) {
        may_begin[(uint16_t)(BLOCK_MARK >> (16 + s))] |= (uint8_t)(1 << s);
        may_begin[(uint16_t)(END_MARK >> (16 + s))] |= (uint8_t)(1 << s);
    }
}

size_t bz2_find_mark(const uint8_t *p, size_t n, size_t bit)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_table);
    for (size_t i = bit / 8; i + BZ2_MARK_BITS / 8 <= n; i++) {
        unsigned may = may_begin[(unsigned)p[i + 2] << 8 | p[i + 3]];
        for (size_t at = i * 8; may; at++, may >>= 1)
            if ((may & 1) && at >= bit && at + BZ2_MARK_BITS <= n * 8 && bz2_mark_at(p, at) != BZ2_NO_MARK)
                return at;
    }
    return SIZE_MAX;
}

/* Adds the lowest count bits of v at bit *at of p, whose bits from there on are 0. */
static void put_bits(uint8_t *p, size_t *at, uint64_t v, unsigned count)
{
    for (; count > 0; count--, ++*at)
        p[*at / 8] |= (uint8_t)((v >> (count - 1) & 1) << (7 - *at % 8));
}

int bz2_wrap(const uint8_t *p, size_t from, size_t to, char level, struct buf *out)
{
    size_t bytes = (to - from + 7) / 8, end = HEAD * 8 + (to - from);
    unsigned skip = from % 8, over = (unsigned)(bytes * 8 - (to - from));
    const uint8_t *last = p + (to - 1) / 8;
    uint8_t *q;

    buf_clear(out);
    TRY(buf_reserve(out, HEAD + bytes + TAIL));
    q = (uint8_t *)out->p;
    memcpy(q, "BZh", 3);
    q[3] = (uint8_t)level;
    memset(q + HEAD + bytes, 0, TAIL);
    p += from / 8;
    for (size_t i = 0; i < bytes; i++)
        q[HEAD + i] = (uint8_t)(p[i] << skip | (skip && p + i < last ? p[i + 1] >> (8 - skip) : 0));
    q[HEAD + bytes - 1] &= (uint8_t)(0xff << over);
    put_bits(q, &end, END_MARK, BZ2_MARK_BITS);
    put_bits(q, &end, bz2_bits32(q, HEAD * 8 + BZ2_MARK_BITS), BZ2_CRC_BITS); /* of one block: its own */
    out->n = (end + 7) / 8;
    return 0;
}

/* Goes on until the end of the stream: BZ_STREAM_END, or what hinders. */
static int run(bz_stream *z, struct buf *out, bool *big)
{
    for (;;) {
        size_t room = out->cap - 1 - out->n;
        int r;

        if (room == 0 && out->n >= BZ2_OUT_MAX) { /* from here on only checked */
            *big = true;
            out->n = 0;
            continue;
        }
        if (room == 0) {
            if (buf_reserve(out, BZ2_OUT_MAX - out->n) < 0)
                return BZ_MEM_ERROR;
            continue;
        }
        z->next_out = out->p + out->n;
        z->avail_out = (unsigned)room;
        r = BZ2_bzDecompress(z);
        out->n += room - z->avail_out;
        if (r != BZ_OK)
            return r;
        if (z->avail_out > 0 && z->avail_in == 0)
            return BZ_UNEXPECTED_EOF;
    }
}

int bz2_decode(const struct buf *wrapped, struct buf *out, bool *big)
{
    bz_stream z = {.next_in = wrapped->p, .avail_in = (unsigned)wrapped->n};
    int r;

    *big = false;
    buf_clear(out);
    if (buf_reserve(out, OUT_FIRST) < 0 || BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK)
        return ERR_NOMEM;
    r = run(&z, out, big);
    BZ2_bzDecompressEnd(&z);
    if (*big)
        buf_clear(out);
    return r == BZ_STREAM_END && z.avail_in == 0 ? 0 : r == BZ_MEM_ERROR ? ERR_NOMEM : ERR_FORMAT;
}

size_t bz2_block_bytes(const uint8_t *p, size_t n_bytes, unsigned bit, char level, bool *more)
{
    char head[HEAD] = {'B', 'Z', 'h', level}, in, out;
    bz_stream z = {.next_in = head, .avail_in = sizeof head};
    size_t n = 0;
    int r = BZ2_bzDecompressInit(&z, 0, 0);

    z.next_out = &out;
    z.avail_out = 1;
    if (r == BZ_OK)
        r = BZ2_bzDecompress(&z);
    for (; r == BZ_OK && z.avail_out && n < n_bytes; n++) {
        in = (char)(p[n] << bit | (bit && n + 1 < n_bytes ? p[n + 1] >> (8 - bit) : 0));
        z.next_in = &in;
        z.avail_in = 1;
        r = BZ2_bzDecompress(&z);
    }
    *more = r == BZ_OK && z.avail_out;
    BZ2_bzDecompressEnd(&z);
    return z.avail_out ? 0 : n;
}
#endif
