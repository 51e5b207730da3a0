#include "tokenize/pair_table.h"

#include <stdlib.h>

enum { SIZE_MIN = 1 << 10 };

static struct pair *make_slots(uint64_t size)
{
    struct pair *slots = malloc(size * sizeof *slots);

    for (uint64_t i = 0; slots && i < size; i++)
        slots[i].key = PAIR_FREE;
    return slots;
}

int pairs_clear(struct pair_table *t)
{
    pairs_free(t);
    t->slots = make_slots(SIZE_MIN);
    t->mask = SIZE_MIN - 1;
    return t->slots ? 0 : ERR_NOMEM;
}

/* Moves those that keep is true for (NULL: all) into a table of `size` slots. */
static int move(struct pair_table *t, uint64_t size, bool (*keep)(const void *, const struct pair *), const void *arg)
{
    struct pair *fresh = make_slots(size);

    if (!fresh)
        return ERR_NOMEM;
    t->n = 0;
    for (uint64_t i = 0; i <= t->mask; i++) {
        if (t->slots[i].key == PAIR_FREE || (keep && !keep(arg, &t->slots[i])))
            continue;
        *pair_slot(fresh, size - 1, t->slots[i].key) = t->slots[i];
        t->n++;
    }
    free(t->slots);
    t->slots = fresh;
    t->mask = size - 1;
    return 0;
}

struct pair *pairs_add(struct pair_table *t, uint64_t key)
{
    struct pair *p = pair_slot(t->slots, t->mask, key);

    if (p->key != PAIR_FREE)
        return p;
    if ((t->n + 1) * 2 > t->mask + 1) {
        if (move(t, (t->mask + 1) * 2, NULL, NULL) < 0)
            return NULL;
        p = pair_slot(t->slots, t->mask, key);
    }
    *p = (struct pair){.key = key};
    t->n++;
    return p;
}

int pairs_keep(struct pair_table *t, bool (*keep)(const void *arg, const struct pair *p), const void *arg)
{
    uint64_t n = 0, size = SIZE_MIN;

    for (uint64_t i = 0; i <= t->mask; i++)
        n += t->slots[i].key != PAIR_FREE && keep(arg, &t->slots[i]);
    while (size < n * 2)
        size *= 2;
    return move(t, size, keep, arg);
}

void pairs_free(struct pair_table *t)
{
    free(t->slots);
    *t = (struct pair_table){0};
}

/* ---- the heap ---- */

static bool above(const struct pair_entry *x, const struct pair_entry *y)
{
    if (x->count != y->count)
        return x->count > y->count;
    return x->tie < y->tie;
}

int heap_push(struct buf *heap, struct pair_entry x)
{
    size_t i = heap_size(heap);
    struct pair_entry *h;

    TRY(buf_put(heap, &x, sizeof x));
    h = heap_entries(heap);
    for (; i && above(&x, &h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = x;
    return 0;
}

void heap_replace(struct buf *heap, struct pair_entry x)
{
    struct pair_entry *h = heap_entries(heap);
    size_t n = heap_size(heap), i = 0;

    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && above(&h[c + 1], &h[c]))
            c++;
        if (!above(&h[c], &x))
            break;
        h[i] = h[c];
    }
    h[i] = x;
}

void heap_pop(struct buf *heap)
{
    heap->n -= sizeof(struct pair_entry);
    if (heap->n)
        heap_replace(heap, heap_entries(heap)[heap_size(heap)]);
}

static int by_rank(const void *a, const void *b)
{
    return above(b, a) - above(a, b);
}

void heap_sort(struct buf *heap, size_t n)
{
    if (heap->n)
        qsort(heap->p, heap_size(heap), sizeof(struct pair_entry), by_rank);
    if (heap_size(heap) > n)
        heap->n = n * sizeof(struct pair_entry);
}
