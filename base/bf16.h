/* base/bf16.h -- bf16 as it lies in memory: the upper half of an IEEE float. */
#ifndef BASE_BF16_H
#define BASE_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rounds to nearest even; NaN stays NaN. */
static inline uint16_t bf16_of(float x)
{
    uint32_t u;

    memcpy(&u, &x, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
static inline float bf16_to(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float x;

    memcpy(&x, &u, 4);
    return x;
}

#ifdef __cplusplus
}
#endif
#endif
