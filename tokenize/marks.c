#include "tokenize/marks.h"

#include <ctype.h>

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
    void (*note)(struct word_marks *, const uint8_t *, size_t) = ISA_PICK(word_marks_note);

    m->at_marks = at_marks;
    m->cuts = at_marks || in_ascii;
    for (int c = 0; c < 128; c++)
        m->kind[c] = kind_of(c);
    memset(m->joined, in_ascii ? 0 : 0xFF, sizeof m->joined);
    for (uint32_t id = 0; id < v->n && m->cuts; id++) {
        struct span s = vocab_get(v, id);
        if (s.n > 1)
            note(m, (const uint8_t *)s.p, s.n);
    }
}
