/* base/little.h -- numbers of up to 8 bytes, the lowest first, at any address. */
#ifndef BASE_LITTLE_H
#define BASE_LITTLE_H

#include <stdint.h>

static inline void little_put(unsigned char *to, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (unsigned char)(x >> 8 * i);
}

static inline uint64_t little_get(const unsigned char *from, int n)
{
    uint64_t x = 0;

    for (int i = 0; i < n; i++)
        x |= (uint64_t)from[i] << 8 * i;
    return x;
}

#endif
