#include "kernels/eight_bit.h"

#include <pthread.h>

static struct eight_bit_table maps[2];

static float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static void make(void)
{
    for (int s = 0; s < 2; s++) {
        struct eight_bit_table *m = &maps[s];
        int last = eight_bit_last(s), q = 0;

        for (int i = 0; i <= last + 1; i++)
            m->level[i] = eight_bit_level(s, i);
        for (int i = 0; i < 256; i++)
            m->number[i] = eight_bit_number(m->level, s, i);
        for (uint32_t i = 0; i < EIGHT_BIT_PATTERNS; i++) {
            while (q < last && from_bits((EIGHT_BIT_FROM + i) << 16) >= m->level[q + 1])
                q++;
            m->first[i] = (uint8_t)q;
        }
    }
}

const struct eight_bit_table *eight_bit_levels(bool is_signed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make);
    return &maps[is_signed];
}

void eight_bit_decode(const struct eight_bit_table *m, const uint8_t *code, float scale, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = m->number[code[i]] * scale;
}

void eight_bit_encode(const struct eight_bit_table *m, bool is_signed, const float *x, int64_t n, bool keep_scale, uint8_t *code,
                      float *scale)
{
    float y[EIGHT_BIT_BLOCK], most;
    int32_t largest = 0; /* magnitudes are in the order of their bits */

    for (int64_t i = 0; i < n; i++) {
        int32_t bits;

        memcpy(&bits, &x[i], sizeof bits);
        largest = (bits & INT32_MAX) > largest ? bits & INT32_MAX : largest;
    }
    memcpy(&most, &largest, sizeof most);
    if (!keep_scale || !(*scale > 0))
        *scale = eight_bit_scale(most);
    for (int64_t i = 0; i < n; i++) {
        float over = fabsf(x[i]) / *scale;

        y[i] = over < 1 ? over : 1;
    }
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        int at;

        memcpy(&bits, &y[i], sizeof bits);
        at = (int)(bits >> 16) - EIGHT_BIT_FROM;
        code[i] = eight_bit_code(is_signed, eight_bit_round(m->level, m->first[at > 0 ? at : 0], y[i]), x[i] < 0);
    }
}
