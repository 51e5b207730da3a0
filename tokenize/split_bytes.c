#include "tokenize/split_bytes.h"

#include <stdlib.h>

#include "tokenize/model.h"

struct split_bytes {
    struct split_table *t;
    uint8_t symbol[256];
    bool loud[256]; /* a piece without such bytes is not cut */
};

/* Bytes that leave the state of a word of letters what it is, which is where they lead from the beginning, too, are not loud. */
static void find_loud(struct split_bytes *b)
{
    const struct split_table *t = b->t;
    uint8_t word = t->next[b->symbol['a']][t->begin];
    bool quiet = !(t->at_end[word] & EVENT_BACK);

    for (int c = 0; c < 256; c++) {
        uint8_t first = t->next[b->symbol[c]][t->begin], more = t->next[b->symbol[c]][word];
        b->loud[c] = !quiet || t->same[first] != t->same[word] || t->same[more] != t->same[word] || t->event[more] ||
                     t->event[first] & EVENT_BACK;
    }
}

int split_bytes_make(struct split_bytes **b, const struct split_step *steps, size_t n)
{
    struct split_bytes *x = calloc(1, sizeof *x);
    int rc;

    *b = NULL;
    if (!x)
        return ERR_NOMEM;
    rc = split_table_make(&x->t, steps, n);
    for (unsigned i = 0; rc == 1 && i < x->t->states; i++)
        if (x->t->event[i] & EVENT_SET)
            rc = 0;
    if (rc != 1) {
        split_bytes_free(x);
        return rc;
    }
    for (uint32_t cp = 0; cp < 0x200; cp++)
        if (format_byte_of(cp) >= 0)
            x->symbol[format_byte_of(cp)] = (uint8_t)split_table_symbol(x->t, cp);
    find_loud(x);
    *b = x;
    return 1;
}

void split_bytes_free(struct split_bytes *b)
{
    if (b)
        split_table_free(b->t);
    free(b);
}

size_t split_bytes_cut(const struct split_bytes *b, const uint8_t *text, uint32_t end, struct split_bytes_state *s, uint32_t *ends,
                       size_t most)
{
    const struct split_table *t = b->t;
    uint32_t at = s->at;
    size_t n = 0;
    bool loud = s->begun;

    for (uint32_t i = at; !s->begun && i < end; i++)
        loud |= b->loud[text[i]];
    if (!s->begun)
        s->state = loud ? t->next[b->symbol[text[at++]]][t->begin] : t->begin; /* a piece begins there anyway */
    for (; loud && at < end && n + 3 <= most; at++) {
        uint8_t event = t->event[s->state = t->next[b->symbol[text[at]]][s->state]];
        if (event & EVENT_BACK)
            ends[n++] = at - 1;
        if (event & EVENT_HERE)
            ends[n++] = at;
    }
    s->begun = loud && at < end;
    s->at = s->begun ? at : end;
    if (s->begun)
        return n;
    if (loud && t->at_end[s->state] & EVENT_BACK)
        ends[n++] = end - 1;
    ends[n++] = end;
    return n;
}
