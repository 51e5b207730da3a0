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
    if ((rc = split_table_make(&x->t, steps, n)) != 1) {
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

/* Whether a piece begins at the mark that was set in this state; the next byte is at `at`. */
static bool mark_holds(const struct split_bytes *b, const uint8_t *text, uint32_t at, uint32_t end, uint8_t state)
{
    const struct split_table *t = b->t;

    while (t->waits[state] && at < end) {
        state = t->next[b->symbol[text[at++]]][state];
        if (t->event[state] & (EVENT_MARK | EVENT_SET))
            return t->event[state] & EVENT_MARK;
    }
    return t->waits[state] && t->at_end[state] & EVENT_MARK;
}

/* The piece from s->at to `end`, or what is left of it, as far as there is room; returns the number of ends. */
static size_t cut_piece(const struct split_bytes *b, const uint8_t *text, uint32_t end, struct split_bytes_state *s,
                        uint32_t *ends, size_t most)
{
    const struct split_table *t = b->t;
    uint32_t at = s->at;
    uint8_t state = s->state, event;
    size_t n = 0;

    if (!s->begun) /* a piece begins there anyway */
        state = t->next[b->symbol[text[at++]]][t->begin];
    for (; at < end && n + 3 <= most; at++) {
        state = t->next[b->symbol[text[at]]][state];
        event = t->event[state];
        if (event & EVENT_BACK || (event & EVENT_SET && mark_holds(b, text, at + 1, end, state)))
            ends[n++] = at - 1;
        if (event & EVENT_HERE)
            ends[n++] = at;
    }
    s->at = at;
    s->state = state;
    s->begun = at < end;
    if (s->begun)
        return n;
    if (t->at_end[state] & EVENT_BACK)
        ends[n++] = end - 1;
    ends[n++] = end;
    return n;
}

size_t split_bytes_cut(const struct split_bytes *b, const uint8_t *text, const uint32_t *wide, size_t n,
                       struct split_bytes_state *s, uint32_t *ends, size_t most, size_t *written)
{
    size_t i = 0, k = 0;

    while (i < n && k + 3 <= most) {
        if (s->quiet < s->at)
            s->quiet = s->at;
        while (s->quiet < wide[n - 1] && !b->loud[text[s->quiet]])
            s->quiet++;
        for (; !s->begun && i < n && wide[i] <= s->quiet && k < most; i++)
            s->at = ends[k++] = wide[i];
        if (i < n && k + 3 <= most) {
            k += cut_piece(b, text, wide[i], s, ends + k, most - k);
            i += !s->begun;
        }
    }
    *written = k;
    return i;
}
