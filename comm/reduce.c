#include "comm/reduce.h"

#include <string.h>

#include "base/bf16.h"

/* Elements at a time, so that what is combined stays in the cache. */
enum { BLOCK = 1024 };

/* Levels of a tree over size ranks, and the one being loaded. */
static int levels_of(int size)
{
    int n = 2;

    for (; size > 1; size = (size + 1) / 2)
        n++;
    return n;
}

size_t reduce_work_size(int size)
{
    return (size_t)levels_of(size) * BLOCK * 8;
}

#define SAME(v) (v)
#define LESS(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define MORE(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

/* STORED is the element's type, VALUE what it is combined as, BITS that in which a sum wraps. */
#define REDUCE(name, STORED, VALUE, BITS, LOAD, STORE)                                              \
    static void combine_##name(VALUE *a, const VALUE *b, size_t n, enum comm_op op)                 \
    {                                                                                               \
        if (op == COMM_SUM)                                                                         \
            for (size_t i = 0; i < n; i++)                                                          \
                a[i] = (VALUE)((BITS)a[i] + (BITS)b[i]);                                            \
        else if (op == COMM_MAX)                                                                    \
            for (size_t i = 0; i < n; i++)                                                          \
                a[i] = MORE(a[i], b[i]);                                                            \
        else                                                                                        \
            for (size_t i = 0; i < n; i++)                                                          \
                a[i] = LESS(a[i], b[i]);                                                            \
    }                                                                                               \
    /* A stack of subtrees: two of one height become one at once, the rest at the end. */           \
    static void block_##name(STORED *to, const void *const *from, int size, size_t at, size_t n,    \
                             enum comm_op op, VALUE *work)                                          \
    {                                                                                               \
        int top = 0;                                                                                \
                                                                                                    \
        for (int r = 0; r < size; r++) {                                                            \
            const STORED *s = (const STORED *)from[r] + at;                                         \
            VALUE *v = work + (size_t)top++ * BLOCK;                                                \
            for (size_t i = 0; i < n; i++)                                                          \
                v[i] = LOAD(s[i]);                                                                  \
            for (int full = r + 1; full % 2 == 0; full /= 2, top--)                                 \
                combine_##name(work + (size_t)(top - 2) * BLOCK, work + (size_t)(top - 1) * BLOCK,  \
                               n, op);                                                              \
        }                                                                                           \
        for (; top > 1; top--)                                                                      \
            combine_##name(work + (size_t)(top - 2) * BLOCK, work + (size_t)(top - 1) * BLOCK, n,   \
                           op);                                                                     \
        for (size_t i = 0; i < n; i++)                                                              \
            to[at + i] = STORE(work[i]);                                                            \
    }

REDUCE(u8, uint8_t, uint8_t, uint8_t, SAME, SAME)
REDUCE(i32, int32_t, int32_t, uint32_t, SAME, SAME)
REDUCE(i64, int64_t, int64_t, uint64_t, SAME, SAME)
REDUCE(f32, float, float, float, SAME, SAME)
REDUCE(f64, double, double, double, SAME, SAME)
REDUCE(bf16, uint16_t, float, float, bf16_to, bf16_of)

void reduce_ranks(void *to, const void *const *from, int size, size_t n, enum comm_type type,
                  enum comm_op op, void *work)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t len = n - at < BLOCK ? n - at : BLOCK;
        switch (type) {
        case COMM_U8: block_u8(to, from, size, at, len, op, work); break;
        case COMM_I32: block_i32(to, from, size, at, len, op, work); break;
        case COMM_I64: block_i64(to, from, size, at, len, op, work); break;
        case COMM_F32: block_f32(to, from, size, at, len, op, work); break;
        case COMM_F64: block_f64(to, from, size, at, len, op, work); break;
        case COMM_BF16: block_bf16(to, from, size, at, len, op, work); break;
        }
    }
}
