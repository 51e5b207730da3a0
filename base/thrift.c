#include "base/thrift.h"

#include "base/err.h"

enum { DEPTH_MAX = 64 }; /* of what is passed over */

static uint8_t get_byte(struct thrift *t)
{
    if (t->p == t->end)
        t->bad = true;
    return t->bad ? 0 : *t->p++;
}

static uint64_t get_varint(struct thrift *t)
{
    uint64_t v = 0;

    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t c = get_byte(t);
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return t->bad ? 0 : v;
    }
    t->bad = true;
    return 0;
}

static int64_t get_zigzag(struct thrift *t)
{
    uint64_t v = get_varint(t);

    return (int64_t)(v >> 1 ^ -(v & 1));
}

int thrift_field(struct thrift *t, int last)
{
    uint8_t head = get_byte(t);
    int64_t id;

    t->type = head & 15;
    if (t->bad || t->type == THRIFT_STOP)
        return 0;
    id = head >> 4 ? last + (head >> 4) : get_zigzag(t);
    if (id <= 0 || id > INT16_MAX || t->type > THRIFT_STRUCT)
        t->bad = true;
    return t->bad ? 0 : (int)id;
}

size_t thrift_list(struct thrift *t)
{
    bool list = t->type == THRIFT_LIST || t->type == THRIFT_SET;
    uint8_t head = list ? get_byte(t) : 0;
    uint64_t n = head >> 4;

    if (n == 15)
        n = get_varint(t);
    t->type = head & 15;
    if (!list || n > (uint64_t)(t->end - t->p))
        t->bad = true;
    return t->bad ? 0 : (size_t)n;
}

int64_t thrift_int(struct thrift *t)
{
    if (t->type == THRIFT_TRUE || t->type == THRIFT_FALSE)
        return t->type == THRIFT_TRUE;
    if (t->type == THRIFT_I8)
        return (int8_t)get_byte(t);
    if (t->type < THRIFT_I16 || t->type > THRIFT_I64)
        t->bad = true;
    return t->bad ? 0 : get_zigzag(t);
}

static void pass(struct thrift *t, uint64_t n)
{
    if (n > (uint64_t)(t->end - t->p))
        t->bad = true;
    else
        t->p += n;
}

struct span thrift_binary(struct thrift *t)
{
    uint64_t n = t->type == THRIFT_BINARY ? get_varint(t) : UINT64_MAX;
    const uint8_t *from = t->p;

    pass(t, n);
    return t->bad ? (struct span){"", 0} : (struct span){(const char *)from, (size_t)n};
}

/* in: whether the value is an element of a list or map, where a bool takes a byte. */
static void skip(struct thrift *t, int depth, bool in)
{
    int id = 0, type = t->type;
    uint64_t n;

    if (depth > DEPTH_MAX)
        t->bad = true;
    if (t->bad)
        return;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        if (in)
            get_byte(t);
        break;
    case THRIFT_I8: get_byte(t); break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64: get_varint(t); break;
    case THRIFT_DOUBLE: pass(t, 8); break;
    case THRIFT_BINARY: thrift_binary(t); break;
    case THRIFT_LIST:
    case THRIFT_SET:
        n = thrift_list(t);
        type = t->type;
        for (uint64_t i = 0; i < n && !t->bad; i++, t->type = type)
            skip(t, depth + 1, true);
        break;
    case THRIFT_MAP:
        n = get_varint(t);
        type = n ? get_byte(t) : 0;
        for (uint64_t i = 0; i < n && !t->bad; i++) {
            t->type = type >> 4;
            skip(t, depth + 1, true);
            t->type = type & 15;
            skip(t, depth + 1, true);
        }
        break;
    case THRIFT_STRUCT:
        while ((id = thrift_field(t, id)) > 0)
            skip(t, depth + 1, false);
        break;
    default: t->bad = true;
    }
}

void thrift_skip(struct thrift *t)
{
    skip(t, 0, false);
}

/* ---- writing ---- */

int thrift_put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        TRY(buf_putc(b, (char)(v | 0x80)));
    return buf_putc(b, (char)v);
}

int thrift_put_zigzag(struct buf *b, int64_t v)
{
    return thrift_put_varint(b, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

int thrift_put_field(struct buf *b, int *last, int id, enum thrift_type type)
{
    int step = id - *last;

    *last = id;
    if (step > 0 && step < 16)
        return buf_putc(b, (char)(step << 4 | (int)type));
    TRY(buf_putc(b, (char)type));
    return thrift_put_zigzag(b, id);
}

int thrift_put_int(struct buf *b, int *last, int id, enum thrift_type type, int64_t v)
{
    TRY(thrift_put_field(b, last, id, type));
    return thrift_put_zigzag(b, v);
}

int thrift_put_bytes(struct buf *b, struct span s)
{
    TRY(thrift_put_varint(b, s.n));
    return buf_put_span(b, s);
}

int thrift_put_binary(struct buf *b, int *last, int id, struct span s)
{
    TRY(thrift_put_field(b, last, id, THRIFT_BINARY));
    return thrift_put_bytes(b, s);
}

int thrift_put_list(struct buf *b, int *last, int id, enum thrift_type element, size_t n)
{
    TRY(thrift_put_field(b, last, id, THRIFT_LIST));
    TRY(buf_putc(b, (char)((n < 15 ? n : 15) << 4 | element)));
    return n < 15 ? 0 : thrift_put_varint(b, n);
}

int thrift_put_stop(struct buf *b)
{
    return buf_putc(b, THRIFT_STOP);
}
