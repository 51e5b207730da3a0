#include "base/base64.h"

static const int8_t values[256] = {
    ['A'] = 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    ['a'] = 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
    ['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, ['+'] = 63, ['/'] = 64}; /* and 1; 0: none */

bool base64_is_digit(char c)
{
    return values[(uint8_t)c] != 0;
}

bool base64_decode(struct span s, struct buf *out)
{
    uint32_t bits = 0;
    int have = 0;
    char *o;

    while (s.n && s.p[s.n - 1] == '=')
        s.n--;
    if (s.n % 4 == 1 || buf_reserve(out, s.n) < 0)
        return false;
    o = out->p + out->n;
    for (size_t i = 0; i < s.n; i++) {
        int v = values[(uint8_t)s.p[i]];
        if (!v)
            return false;
        bits = bits << 6 | (uint32_t)(v - 1);
        have += 6;
        if (have >= 8) {
            have -= 8;
            *o++ = (char)(bits >> have);
        }
    }
    out->n = (size_t)(o - out->p);
    return true;
}
