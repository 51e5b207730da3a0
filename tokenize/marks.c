#include "tokenize/marks.h"

#include <ctype.h>

static bool is_mark(const uint8_t *p)
{
    return p[0] == 0xE2 && p[1] == 0x96 && p[2] == 0x81;
}

/* Characters of a kind stand in tokens behind much the same ones. */
static uint8_t kind_of(int c)
{
    static const char *const kinds[] = {".,;:!?", "()[]{}<>", "'\"`_"};

    for (int i = 0; i < 3; i++)
        if (c && strchr(kinds[i], c))
            return (uint8_t)(1 << i);
    return islower(c) ? 8 : isupper(c) ? 16 : isdigit(c) ? 32 : c <= ' ' ? 64 : 128;
}

void word_marks_find(struct word_marks *m, const struct vocab *v, bool at_marks, bool in_ascii)
{
    m->at_marks = at_marks;
    m->cuts = at_marks || in_ascii;
    for (int c = 0; c < 128; c++)
        m->kind[c] = kind_of(c);
    memset(m->joined, in_ascii ? 0 : 0xFF, sizeof m->joined);
    for (uint32_t id = 0; id < v->n; id++) {
        struct span s = vocab_get(v, id);
        if (s.n < 2)
            continue;
        const uint8_t *p = (const uint8_t *)s.p, *end = p + s.n;
        for (size_t i = 1; in_ascii && i < s.n; i++)
            if ((p[i - 1] | p[i]) < 0x80 && !(m->joined[p[i - 1]] & m->kind[p[i]])) /* what is written is waited for */
                m->joined[p[i - 1]] |= m->kind[p[i]];
        for (const uint8_t *q = p + 1; at_marks && q < end && (q = memchr(q, 0xE2, (size_t)(end - q))); q++)
            if (end - q >= 3 && is_mark(q) && !(q - p >= 3 && is_mark(q - 3)))
                m->crossed[q[-1]] = 1;
    }
}
