#include "tokenize/marks.h"

static bool is_mark(const uint8_t *p)
{
    return p[0] == 0xE2 && p[1] == 0x96 && p[2] == 0x81;
}

void word_marks_find(struct word_marks *m, const struct vocab *v)
{
    for (uint32_t id = 0; id < v->n; id++) {
        struct span s = vocab_get(v, id);
        const uint8_t *p = (const uint8_t *)s.p;
        for (size_t i = 1; i + 3 <= s.n; i++)
            if (is_mark(p + i) && !(i >= 3 && is_mark(p + i - 3)))
                m->crossed[p[i - 1]] = 1;
    }
}

size_t word_marks_length(const struct word_marks *m, const uint8_t *p, size_t n)
{
    for (size_t i = 1; m->cuts && i + 3 <= n; i++) {
        const uint8_t *hit = memchr(p + i, 0xE2, n - i);
        if (!hit || (size_t)(hit - p) + 3 > n)
            break;
        i = (size_t)(hit - p);
        if (is_mark(hit) && !m->crossed[hit[-1]] && !(i >= 3 && is_mark(hit - 3)))
            return i;
    }
    return n;
}
