#include "indexed_dataset/md5.h"

#include <math.h>
#include <stdio.h>

static void block(uint32_t state[4], const uint8_t *p)
{
    static const uint8_t turn[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], m[16];

    for (int i = 0; i < 16; i++)
        m[i] = p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 3] << 24;
    for (int i = 0; i < 64; i++) {
        uint32_t f, k = (uint32_t)(fabs(sin(i + 1)) * 4294967296.0), t;
        int g;

        switch (i / 16) {
        case 0: f = (b & c) | (~b & d); g = i; break;
        case 1: f = (d & b) | (~d & c); g = 5 * i + 1; break;
        case 2: f = b ^ c ^ d; g = 3 * i + 5; break;
        default: f = c ^ (b | ~d); g = 7 * i; break;
        }
        t = a + f + k + m[g % 16];
        a = d;
        d = c;
        c = b;
        b += t << turn[i / 16][i % 4] | t >> (32 - turn[i / 16][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5_hex(struct span s, char out[33])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    uint8_t last[128] = {0};
    size_t whole = s.n / 64 * 64, rest = s.n - whole, size = rest < 56 ? 64 : 128;
    uint64_t bits = (uint64_t)s.n * 8;

    for (size_t i = 0; i < whole; i += 64)
        block(state, (const uint8_t *)s.p + i);
    if (rest)
        memcpy(last, s.p + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[size - 8 + (size_t)i] = (uint8_t)(bits >> (8 * i));
    for (size_t i = 0; i < size; i += 64)
        block(state, last + i);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", (unsigned)(state[i / 4] >> (8 * (i % 4)) & 0xff));
}
