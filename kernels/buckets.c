#include "kernels/buckets.h"

#include "kernels/cpu.h"

struct keyed {
    uint64_t key;
    uint32_t doc;
};

enum { DIGIT = 11, PASSES = 6 }; /* 66 bits */

/* One stable pass over a digit of the key. */
static void sort_digit(const struct keyed *from, struct keyed *to, int64_t n, int shift)
{
    uint32_t at[1 << DIGIT] = {0}, sum = 0;

    for (int64_t i = 0; i < n; i++)
        at[from[i].key >> shift & ((1 << DIGIT) - 1)]++;
    for (int digit = 0; digit < 1 << DIGIT; digit++) {
        uint32_t count = at[digit];
        at[digit] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[at[from[i].key >> shift & ((1 << DIGIT) - 1)]++] = from[i];
}

int buckets_cpu(struct device *dev, struct buckets *p, struct err *e)
{
    struct keyed *a, *b;
    size_t each;
    int64_t n = 0;

    p->buckets = p->members = 0;
    if (p->docs < 0 || p->docs > INT32_MAX || p->stride < 1)
        return err_set(e, ERR_ARG, "buckets of %lld documents cannot be", (long long)p->docs);
    each = ((size_t)p->docs * sizeof *a + 63) / 64 * 64;
    TRY(cpu_scratch(dev, (void **)&a, 2 * each, e));
    b = (struct keyed *)((char *)a + each);
    for (int64_t d = 0; d < p->docs; d++)
        if (p->key[d * p->stride] != BAND_KEY_NONE)
            a[n++] = (struct keyed){p->key[d * p->stride], (uint32_t)d};
    for (int pass = 0; pass < PASSES; pass += 2) {
        sort_digit(a, b, n, pass * DIGIT);
        sort_digit(b, a, n, (pass + 1) * DIGIT);
    }
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && a[j].key == a[i].key; j++)
            ;
        if (j - i == 1)
            continue;
        p->start[p->buckets++] = (uint32_t)p->members;
        for (int64_t k = i; k < j; k++)
            p->member[p->members++] = a[k].doc;
    }
    p->start[p->buckets] = (uint32_t)p->members;
    return 0;
}
