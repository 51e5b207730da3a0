#include "curate/dedup/dedup_buckets.h"

#include "kernels/band_keys.h"

enum { DIGIT = 11, PASSES = 6 }; /* 66 bits */

/* One stable pass over a digit of the key. */
static void sort_digit(const struct dedup_keyed *from, struct dedup_keyed *to, size_t n, int shift)
{
    uint32_t at[1 << DIGIT] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        at[from[i].key >> shift & ((1 << DIGIT) - 1)]++;
    for (int digit = 0; digit < 1 << DIGIT; digit++) {
        uint32_t count = at[digit];
        at[digit] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i].key >> shift & ((1 << DIGIT) - 1)]++] = from[i];
}

void dedup_buckets_find(struct dedup_buckets *p)
{
    struct dedup_keyed *a = p->room, *b = a + p->docs;
    size_t n = 0;

    p->buckets = p->members = 0;
    for (size_t d = 0; d < p->docs; d++)
        if (p->key[d * p->stride] != BAND_KEY_NONE)
            a[n++] = (struct dedup_keyed){p->key[d * p->stride], (uint32_t)d};
    for (int pass = 0; pass < PASSES; pass += 2) {
        sort_digit(a, b, n, pass * DIGIT);
        sort_digit(b, a, n, (pass + 1) * DIGIT);
    }
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && a[j].key == a[i].key; j++)
            ;
        if (j - i == 1)
            continue;
        p->start[p->buckets++] = (uint32_t)p->members;
        for (size_t k = i; k < j; k++)
            p->member[p->members++] = a[k].doc;
    }
    p->start[p->buckets] = (uint32_t)p->members;
}
