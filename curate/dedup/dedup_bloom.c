#include "curate/dedup/dedup_bloom.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

int dedup_bloom_open(struct dedup_bloom *b, uint64_t keys, double rate, struct err *e)
{
    double bits = ceil(-(double)keys * log(rate) / (M_LN2 * M_LN2)), functions = round(-log2(rate));

    *b = (struct dedup_bloom){.bits = bits < 64 ? 64 : (uint64_t)bits, .functions = functions < 1 ? 1 : (int)functions};
    b->word = calloc((size_t)(b->bits / 64 + 1), sizeof *b->word);
    return b->word ? 0 : err_set(e, ERR_NOMEM, "out of memory for a Bloom filter of %" PRIu64 " bytes", b->bits / 8);
}

bool dedup_bloom_has(struct dedup_bloom *b, struct hash128 key)
{
    uint64_t h = key.lo, step = key.hi | 1;
    bool all = true;

    for (int i = 0; i < b->functions; i++, h += step) {
        uint64_t bit = (uint64_t)((unsigned __int128)h * b->bits >> 64), one = UINT64_C(1) << (bit & 63);
        uint64_t *word = &b->word[bit / 64];

        if (*word & one)
            continue;
        all = false;
        *word |= one;
        b->ones++;
    }
    b->keys += !all;
    return all;
}

double dedup_bloom_rate(const struct dedup_bloom *b)
{
    return pow((double)b->ones / (double)b->bits, b->functions);
}

void dedup_bloom_close(struct dedup_bloom *b)
{
    free(b->word);
    b->word = NULL;
}
