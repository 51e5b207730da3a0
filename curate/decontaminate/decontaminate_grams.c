#include "curate/decontaminate/decontaminate_grams.h"

#include <stdlib.h>

int gram_index_add(struct gram_index *x, const struct hashed_words *ws, struct err *e)
{
    if (x->n_words + ws->n >= GRAM_NONE)
        return err_set(e, ERR_LIMIT, "the evaluation sets have 2^32 words or more");
    if (mem_grow(&x->word, &x->cap_words, x->n_words + ws->n, sizeof *x->word) < 0 ||
        mem_grow(&x->start, &x->cap_texts, x->n_texts + 2, sizeof *x->start) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the words of the evaluation sets");
    x->start[x->n_texts++] = (uint32_t)x->n_words;
    for (size_t i = 0; i < ws->n; i++)
        x->word[x->n_words++] = ws->w[i].hash;
    x->start[x->n_texts] = (uint32_t)x->n_words;
    return 0;
}

uint64_t gram_hash(const uint64_t *word, int width)
{
    uint64_t h = 0;

    for (int i = 0; i < width; i++)
        h = gram_push(h, word[i]);
    return h;
}

static struct gram_slot *slot_of(const struct gram_index *x, uint64_t hash)
{
    size_t at = hash_mix64(hash) & x->mask;

    while (x->slot[at].first != GRAM_NONE && x->slot[at].hash != hash)
        at = (at + 1) & x->mask;
    return &x->slot[at];
}

const struct gram_slot *gram_find(const struct gram_index *x, uint64_t hash)
{
    const struct gram_slot *s = slot_of(x, hash);

    return s->first == GRAM_NONE ? NULL : s;
}

uint32_t gram_index_text(const struct gram_index *x, uint32_t place)
{
    size_t lo = 0, hi = x->n_texts;

    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (x->start[mid] <= place)
            lo = mid;
        else
            hi = mid;
    }
    return (uint32_t)lo;
}

/* One more place of a gram.  Places are added from the last to the first, so that a chain
 * goes forward. */
static void add_place(struct gram_index *x, uint64_t hash, uint32_t place)
{
    struct gram_slot *s = slot_of(x, hash);
    uint64_t mixed = hash_mix64(hash);

    x->next[place] = GRAM_NONE;
    if (s->first == GRAM_NONE) {
        *s = (struct gram_slot){hash, GRAM_NONE, 0};
        x->used++;
        x->filter[mixed >> x->filter_shift] |= gram_filter_bits(mixed);
    }
    if (s->count == GRAM_MAX_PLACES)
        return;
    x->next[place] = s->first;
    s->first = place;
    s->count++;
}

static int make_tables(struct gram_index *x)
{
    size_t grams = 0, slots = 1024;
    int bits = 10;

    for (size_t t = 0; t < x->n_texts; t++) {
        size_t n = x->start[t + 1] - x->start[t];
        grams += n >= (size_t)x->width ? n - (size_t)x->width + 1 : 0;
    }
    while (slots < grams + grams / 2)
        slots *= 2;
    while (((size_t)1 << bits) < grams / 6) /* 10 bits a gram or more */
        bits++;
    x->filter_shift = 64 - bits;
    x->mask = slots - 1;
    x->slot = malloc(slots * sizeof *x->slot);
    x->filter = calloc((size_t)1 << bits, sizeof *x->filter);
    x->next = malloc((x->n_words + 1) * sizeof *x->next);
    for (size_t i = 0; x->slot && i < slots; i++)
        x->slot[i].first = GRAM_NONE;
    return x->slot && x->filter && x->next ? 0 : ERR_NOMEM;
}

int gram_index_build(struct gram_index *x, int width, struct err *e)
{
    x->width = width;
    x->power = 1;
    for (int i = 0; i < width; i++)
        x->power *= GRAM_FACTOR;
    if (make_tables(x) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an index of %zu words", x->n_words);
    for (size_t t = x->n_texts; t-- > 0;)
        for (size_t i = x->start[t + 1]; i-- > x->start[t];)
            if (i + (size_t)width <= x->start[t + 1])
                add_place(x, gram_hash(x->word + i, width), (uint32_t)i);
    return 0;
}

size_t gram_index_bytes(const struct gram_index *x)
{
    return x->cap_words * sizeof *x->word + x->cap_texts * sizeof *x->start + (x->n_words + 1) * sizeof *x->next +
           (x->mask + 1) * sizeof *x->slot + ((size_t)1 << (64 - x->filter_shift)) * sizeof *x->filter;
}

void gram_index_free(struct gram_index *x)
{
    free(x->word);
    free(x->start);
    free(x->next);
    free(x->slot);
    free(x->filter);
    *x = (struct gram_index){0};
}
