/* The same steps as Hugging Face's BpeTrainer takes, for the same result to the last tie:
 *
 * - A heap entry is a pair, its count when it was put there, and the words where it has
 *   been seen since the pair's last entry was made.  A pair can have several entries.
 * - The top is the highest count, then the lowest pair.  If its count is out of date it goes
 *   back with the right one.
 * - Joining a pair changes the counts of its neighbours, not its own.
 */
#include "tokenize/merges.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"

struct list { /* of words, ascending within one filling, each once */
    uint32_t *v;
    uint32_t n, cap;
};

struct pair {
    uint64_t key; /* left << 32 | right */
    int64_t count;
    uint32_t list; /* the list being filled in this step + 1; 0: none */
    bool used;
};

struct entry {
    int64_t count;
    uint64_t key;
    uint32_t list;
};

struct trainer {
    struct merges_words *words;
    uint32_t *length; /* of each word now */
    struct pair *pairs;
    uint64_t mask, n_pairs;
    struct list *lists;
    uint32_t n_lists, cap_lists, free_list; /* free ones are chained through n */
    struct entry *heap;
    size_t n_heap, cap_heap;
    uint64_t *filling; /* pairs whose lists are being filled */
    size_t n_filling, cap_filling;
};

enum { NONE = UINT32_MAX };

/* Makes room for one more in an array. */
static int room(void **v, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 256;
    void *p;

    if (n < *cap)
        return 0;
    p = realloc(*v, more * size);
    if (!p)
        return ERR_NOMEM;
    *v = p;
    *cap = more;
    return 0;
}

/* ---- the heap ---- */

static bool above(const struct entry *x, const struct entry *y)
{
    return x->count > y->count || (x->count == y->count && x->key < y->key);
}

static int push(struct trainer *t, struct entry x)
{
    size_t i = t->n_heap;
    void *v = t->heap;

    TRY(room(&v, t->n_heap, &t->cap_heap, sizeof x));
    t->heap = v;
    t->n_heap++;
    for (; i && above(&x, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = x;
    return 0;
}

/* Puts x in the place of the top, which is gone. */
static void replace_top(struct trainer *t, struct entry x)
{
    size_t i = 0;

    for (size_t c; (c = 2 * i + 1) < t->n_heap; i = c) {
        if (c + 1 < t->n_heap && above(&t->heap[c + 1], &t->heap[c]))
            c++;
        if (!above(&t->heap[c], &x))
            break;
        t->heap[i] = t->heap[c];
    }
    t->heap[i] = x;
}

/* ---- pairs and their words ---- */

static struct pair *slot_of(struct pair *pairs, uint64_t mask, uint64_t key)
{
    uint64_t i = hash_mix64(key) & mask;

    while (pairs[i].used && pairs[i].key != key)
        i = (i + 1) & mask;
    return &pairs[i];
}

/* The pair's record, made if need be; NULL: out of memory. */
static struct pair *find_pair(struct trainer *t, uint64_t key)
{
    struct pair *p;

    if ((t->n_pairs + 1) * 2 > (t->pairs ? t->mask + 1 : 0)) {
        uint64_t size = t->pairs ? (t->mask + 1) * 2 : 1 << 16;
        struct pair *fresh = calloc(size, sizeof *fresh);
        if (!fresh)
            return NULL;
        for (uint64_t i = 0; t->pairs && i <= t->mask; i++)
            if (t->pairs[i].used)
                *slot_of(fresh, size - 1, t->pairs[i].key) = t->pairs[i];
        free(t->pairs);
        t->pairs = fresh;
        t->mask = size - 1;
    }
    p = slot_of(t->pairs, t->mask, key);
    if (!p->used) {
        *p = (struct pair){.key = key, .used = true};
        t->n_pairs++;
    }
    return p;
}

/* A fresh, empty list; NONE: out of memory. */
static uint32_t new_list(struct trainer *t)
{
    uint32_t i = t->free_list;

    if (i != NONE) {
        t->free_list = t->lists[i].n;
        t->lists[i].n = 0;
        return i;
    }
    if (t->n_lists == t->cap_lists) {
        uint32_t cap = t->cap_lists ? t->cap_lists * 2 : 1024;
        struct list *v = realloc(t->lists, cap * sizeof *v);
        if (!v)
            return NONE;
        t->lists = v;
        t->cap_lists = cap;
    }
    t->lists[t->n_lists] = (struct list){0};
    return t->n_lists++;
}

static void drop_list(struct trainer *t, uint32_t i)
{
    free(t->lists[i].v);
    t->lists[i] = (struct list){.n = t->free_list};
    t->free_list = i;
}

/* The pair occurs in word w, `count` times more (or less); more: it has to be looked at again. */
static int change(struct trainer *t, uint32_t left, uint32_t right, int64_t count, uint32_t w)
{
    struct pair *p = find_pair(t, (uint64_t)left << 32 | right);
    struct list *l;

    if (!p)
        return ERR_NOMEM;
    p->count += count;
    if (count < 0)
        return 0;
    if (!p->list) {
        void *v = t->filling;
        uint32_t fresh;
        TRY(room(&v, t->n_filling, &t->cap_filling, sizeof *t->filling));
        t->filling = v;
        fresh = new_list(t);
        if (fresh == NONE)
            return ERR_NOMEM;
        t->filling[t->n_filling++] = p->key;
        p->list = fresh + 1;
    }
    l = &t->lists[p->list - 1];
    if (l->n && l->v[l->n - 1] == w)
        return 0;
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 2;
        uint32_t *v = realloc(l->v, cap * sizeof *v);
        if (!v)
            return ERR_NOMEM;
        l->v = v;
        l->cap = cap;
    }
    l->v[l->n++] = w;
    return 0;
}

/* What was filled becomes entries of the heap. */
static int put_filled(struct trainer *t)
{
    int rc = 0;

    for (size_t i = 0; i < t->n_filling; i++) {
        struct pair *p = find_pair(t, t->filling[i]);
        uint32_t list = p->list - 1;
        p->list = 0;
        if (p->count > 0 && rc == 0)
            rc = push(t, (struct entry){p->count, p->key, list});
        else
            drop_list(t, list);
    }
    t->n_filling = 0;
    return rc;
}

/* Joins left and right to id in word w. */
static int join_in_word(struct trainer *t, uint32_t w, uint32_t left, uint32_t right, uint32_t id)
{
    uint32_t *s = t->words->symbols + t->words->start[w], n = t->length[w], to = 0;
    int64_t count = t->words->count[w];

    for (uint32_t i = 0; i < n; i++) {
        if (s[i] != left || i + 1 >= n || s[i + 1] != right) {
            s[to++] = s[i];
            continue;
        }
        if (to > 0) {
            TRY(change(t, s[to - 1], left, -count, w));
            TRY(change(t, s[to - 1], id, count, w));
        }
        if (i + 2 < n) {
            TRY(change(t, right, s[i + 2], -count, w));
            TRY(change(t, id, s[i + 2], count, w));
        }
        s[to++] = id;
        i++;
    }
    t->length[w] = to;
    return 0;
}

static int count_pairs(struct trainer *t)
{
    const struct merges_words *words = t->words;

    for (uint32_t w = 0; w < words->n; w++) {
        const uint32_t *s = words->symbols + words->start[w];
        t->length[w] = (uint32_t)(words->start[w + 1] - words->start[w]);
        for (uint32_t i = 0; i + 1 < t->length[w]; i++)
            TRY(change(t, s[i], s[i + 1], words->count[w], w));
    }
    return put_filled(t);
}

static int find_merges(struct trainer *t, uint64_t min_frequency, uint32_t target, uint32_t *tokens,
                       int (*join)(void *, uint32_t, uint32_t, uint32_t *), void *state, struct buf *found)
{
    TRY(count_pairs(t));
    while (*tokens < target && t->n_heap) {
        struct entry top = t->heap[0];
        int64_t now = find_pair(t, top.key)->count;
        struct merge m = {(uint32_t)(top.key >> 32), (uint32_t)top.key, 0};
        int rc = 0;

        if (top.count != now) {
            /* Hugging Face compares and keeps counts as unsigned: one that fell to nothing
             * or below ends its run when it comes to the top. */
            if (now > 0) {
                top.count = now;
                replace_top(t, top);
                continue;
            }
            drop_list(t, top.list);
            if (--t->n_heap)
                replace_top(t, t->heap[t->n_heap]);
            continue;
        }
        if ((uint64_t)top.count < min_frequency)
            break;
        if (--t->n_heap)
            replace_top(t, t->heap[t->n_heap]);
        TRY(join(state, m.left, m.right, &m.id));
        TRY(buf_put(found, &m, sizeof m));
        for (uint32_t i = 0; i < t->lists[top.list].n && rc == 0; i++)
            rc = join_in_word(t, t->lists[top.list].v[i], m.left, m.right, m.id);
        drop_list(t, top.list);
        TRY(rc);
        TRY(put_filled(t));
    }
    return 0;
}

int merges_find(struct merges_words *words, uint64_t min_frequency, uint32_t target, uint32_t *tokens,
                int (*join)(void *state, uint32_t left, uint32_t right, uint32_t *id), void *state,
                struct buf *found, struct err *e)
{
    struct trainer t = {.words = words, .free_list = NONE};
    int rc = ERR_NOMEM;

    t.length = malloc(((size_t)words->n + 1) * sizeof *t.length);
    if (t.length)
        rc = find_merges(&t, min_frequency, target, tokens, join, state, found);
    for (uint32_t i = 0; i < t.n_lists; i++)
        free(t.lists[i].v);
    free(t.lists);
    free(t.length);
    free(t.pairs);
    free(t.heap);
    free(t.filling);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for %u words", words->n) : 0;
}
