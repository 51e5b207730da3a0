/* A byte of text by others, 64 bytes at a time. */
#include "base/block.h"
#include "tokenize/steps_find.h"

size_t ISA_FN(bytes_count)(char what, struct span text)
{
    size_t n = 0, i = 0;

    for (; text.n - i >= 64; i += 64)
        n += (size_t)__builtin_popcountll(block_in(block_load((const uint8_t *)text.p + i), what, 1));
    for (; i < text.n; i++)
        n += text.p[i] == what;
    return n;
}

void ISA_FN(bytes_replace)(char what, struct span with, struct span text, char *o)
{
    uint64_t x = 0;
    size_t at = 0;

    memcpy(&x, with.p, with.n);
    for (; text.n - at >= 64 + BLOCK_COPY; at += 64) {
        size_t from = at;
        for (bits hits = block_in(block_load((const uint8_t *)text.p + at), what, 1); hits; hits &= hits - 1) {
            size_t hit = at + (size_t)__builtin_ctzll(hits);
            o = block_copy(o, text.p + from, hit - from);
            memcpy(o, &x, sizeof x);
            o += with.n;
            from = hit + 1;
        }
        o = block_copy(o, text.p + from, at + 64 - from);
    }
    for (; at < text.n; at++) {
        if (text.p[at] != what) {
            *o++ = text.p[at];
            continue;
        }
        memcpy(o, &x, sizeof x);
        o += with.n;
    }
}
