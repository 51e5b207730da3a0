#include "tokenize/bpe_cut.h"

#include <stdlib.h>

static void set(uint64_t *map, uint32_t bit)
{
    map[bit >> 6] |= (uint64_t)1 << (bit & 63);
}

bool bpe_is_ascii(struct span s)
{
    uint64_t high = 0, x;
    size_t i = 0;

    for (; i + 8 <= s.n; i += 8) {
        memcpy(&x, s.p + i, 8);
        high |= x;
    }
    for (; i < s.n; i++)
        high |= (uint8_t)s.p[i];
    return !(high & UINT64_C(0x8080808080808080));
}

int bpe_crossings_note(struct bpe_crossings *c, const struct vocab *v, struct err *e)
{
    c->near = calloc((BPE_CROSS_NEAR + (1 << BPE_CROSS_WIDE_LOG2)) / 64, sizeof *c->near);
    if (!c->near)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    c->wide = c->near + BPE_CROSS_NEAR / 64;
    for (uint32_t id = 0; id < v->n; id++) {
        struct span s = vocab_get(v, id);
        const uint8_t *p = (const uint8_t *)s.p;
        for (size_t k = bpe_is_ascii(s) ? s.n : 1; k < s.n; k++) {
            uint32_t x = (uint32_t)(k > 1 ? p[k - 2] : 0) | (uint32_t)p[k - 1] << 8 | (uint32_t)p[k] << 16 |
                         (uint32_t)(k + 1 < s.n ? p[k + 1] : 0) << 24;
            if ((p[k] & 0xC0) == 0x80 || (p[k - 1] | p[k]) < 0x80)
                continue;
            if ((k == 1 && p[0] >= 0x80) || (k + 1 == s.n && p[k] >= 0x80))
                set(c->near, x >> 8 & 0xFFFF);
            else
                set(c->wide, bpe_cross_wide(bpe_cross_context(x)));
        }
    }
    return 0;
}

void bpe_crossings_free(struct bpe_crossings *c)
{
    free(c->near);
    *c = (struct bpe_crossings){0};
}
