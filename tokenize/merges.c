#include "tokenize/merges.h"

#include <stdlib.h>

#include "base/hash.h"

#define INSIDE (UINT32_MAX - 1) /* a cell that is neither the first nor the last of its token */
#define FREE UINT64_MAX

enum {
    STEP = 64,      /* the bar is a part of the highest count */
    COUNTER_BITS = 17,
    AHEAD = 16,       /* places whose cells are fetched early */
    REST = 256        /* places between two rests */
};

struct pair {
    uint64_t key; /* left << 32 | right; FREE */
    int64_t count;
    uint64_t list; /* its places, ascending; some are none any more */
    uint32_t n;
};

struct entry { /* of the heap; what it says was true once and can only have become less */
    int64_t count;
    uint64_t tie; /* the lower the better */
    uint64_t key;
};

/* What the neighbours of one kind of a joined pair lose and gain. */
struct side {
    int64_t loss, gain;
    uint64_t list;
    uint32_t n; /* places */
    bool met, kept;
};

struct trainer {
    struct merges_words *words;
    const struct merges_rules *rules;
    uint32_t *length; /* of each token */
    int64_t bar, floor;
    int64_t most; /* no pair occurs more often */
    uint64_t *counters; /* of pairs by hash: an upper bound */
    struct pair *pairs;
    uint64_t mask, n_pairs;
    uint64_t listed; /* of words->lists */
    struct buf heap;            /* struct entry */
    struct side *left, *right;  /* by token */
    struct buf lefts, rights;   /* those met */
    uint32_t worked;
};

static uint64_t hash_pair(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15ULL;
    return (key ^ key >> 32) * 0xD6E8FEB86659FD93ULL;
}

static void rest(struct trainer *t, uint32_t places)
{
    if (t->rules->rest && (t->worked += places) >= REST) {
        t->worked = 0;
        t->rules->rest(t->rules->rest_state);
    }
}

/* ---- the heap ---- */

static struct entry *heap_of(const struct trainer *t)
{
    return (struct entry *)(void *)t->heap.p;
}

static size_t heap_size(const struct trainer *t)
{
    return t->heap.n / sizeof(struct entry);
}

static bool above(const struct entry *x, const struct entry *y)
{
    if (x->count != y->count)
        return x->count > y->count;
    return x->tie < y->tie;
}

static int push(struct trainer *t, struct entry x)
{
    size_t i = heap_size(t);
    struct entry *h;

    TRY(buf_put(&t->heap, &x, sizeof x));
    h = heap_of(t);
    for (; i && above(&x, &h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = x;
    return 0;
}

/* Puts x in the place of the top, which is gone. */
static void replace_top(struct trainer *t, struct entry x)
{
    struct entry *h = heap_of(t);
    size_t n = heap_size(t), i = 0;

    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && above(&h[c + 1], &h[c]))
            c++;
        if (!above(&h[c], &x))
            break;
        h[i] = h[c];
    }
    h[i] = x;
}

static void pop(struct trainer *t)
{
    t->heap.n -= sizeof(struct entry);
    if (t->heap.n)
        replace_top(t, heap_of(t)[heap_size(t)]);
}

/* ---- the table of pairs ---- */

static struct pair *slot_of(struct pair *pairs, uint64_t mask, uint64_t key)
{
    uint64_t i = hash_pair(key) & mask;

    while (pairs[i].key != FREE && pairs[i].key != key)
        i = (i + 1) & mask;
    return &pairs[i];
}

static struct pair *find_pair(const struct trainer *t, uint64_t key)
{
    struct pair *p = slot_of(t->pairs, t->mask, key);

    return p->key == FREE ? NULL : p;
}

/* Makes a table for n pairs of those that reach the bar, and all when all is true. */
static int resize(struct trainer *t, uint64_t n, bool all)
{
    uint64_t size = 1 << 10;
    struct pair *fresh;

    while (size < n * 2)
        size *= 2;
    fresh = malloc(size * sizeof *fresh);
    if (!fresh)
        return ERR_NOMEM;
    for (uint64_t i = 0; i < size; i++)
        fresh[i].key = FREE;
    t->n_pairs = 0;
    for (uint64_t i = 0; t->pairs && i <= t->mask; i++) {
        if (t->pairs[i].key == FREE || (!all && t->pairs[i].count < t->bar))
            continue;
        *slot_of(fresh, size - 1, t->pairs[i].key) = t->pairs[i];
        t->n_pairs++;
    }
    free(t->pairs);
    t->pairs = fresh;
    t->mask = size - 1;
    return 0;
}

/* The pair's record, made if need be; NULL: out of memory. */
static struct pair *add_pair(struct trainer *t, uint64_t key)
{
    struct pair *p = slot_of(t->pairs, t->mask, key);

    if (p->key == FREE) {
        if ((t->n_pairs + 1) * 2 > t->mask + 1) {
            if (resize(t, (t->n_pairs + 1) * 2, true) < 0)
                return NULL;
            p = slot_of(t->pairs, t->mask, key);
        }
        *p = (struct pair){.key = key};
        t->n_pairs++;
    }
    return p;
}

static bool is_at(const struct trainer *t, const struct pair *p, uint32_t at)
{
    uint32_t left = (uint32_t)(p->key >> 32);
    const uint32_t *c = t->words->cells;

    return c[at] == left && c[at + t->length[left]] == (uint32_t)p->key;
}

/* What decides among pairs of the same count. */
static uint64_t tie_of(const struct trainer *t, struct pair *p)
{
    if (!t->rules->first_place)
        return p->key;
    while (p->n && !is_at(t, p, t->words->lists[p->list])) {
        p->list++;
        p->n--;
    }
    return p->n ? t->words->lists[p->list] : UINT64_MAX;
}

static bool is_allowed(const struct trainer *t, uint64_t key)
{
    uint32_t bytes = t->length[key >> 32] + t->length[(uint32_t)key];

    return !t->rules->max_length || bytes < t->rules->max_length || bytes == 2;
}

/* ---- reading all words for the pairs that reach the bar ---- */

/* The next place of a pair behind *at in the cells; false: none. */
static inline bool next_pair(const struct trainer *t, uint64_t *at, uint64_t *key)
{
    const uint32_t *c = t->words->cells;
    uint64_t p = *at, q;

    p += c[p] == MERGES_END ? 1 : t->length[c[p]];
    for (; p < t->words->n_cells; p = q) {
        if (c[p] == MERGES_END) {
            q = p + 1;
            continue;
        }
        q = p + t->length[c[p]];
        *key = (uint64_t)c[p] << 32 | c[q];
        if (c[q] != MERGES_END && is_allowed(t, *key)) {
            *at = p;
            return true;
        }
    }
    return false;
}

static uint64_t counter_of(uint64_t key)
{
    return hash_pair(key) >> (64 - COUNTER_BITS);
}

/* Sets the bar by the highest count that there can be; false: no pair is left. */
static bool set_bar(struct trainer *t)
{
    int64_t most = 0;
    uint64_t key;

    memset(t->counters, 0, sizeof *t->counters << COUNTER_BITS);
    for (uint64_t at = 0; next_pair(t, &at, &key);) {
        t->counters[counter_of(key)] += t->words->count[t->words->word[at]];
        rest(t, 1);
    }
    for (uint64_t i = 0; i < (uint64_t)1 << COUNTER_BITS; i++)
        most = (int64_t)t->counters[i] > most ? (int64_t)t->counters[i] : most;
    if (most >= t->bar) /* several pairs in one counter */
        most = t->bar - 1;
    if (most < t->floor)
        return false;
    t->most = most;
    t->bar = most / STEP > t->floor ? most / STEP : t->floor;
    return true;
}

/* Counts the pairs whose counters reach the bar; with more of them than there should be, the bar is
 * raised. */
static int count_pairs(struct trainer *t)
{
    uint64_t key;

    free(t->pairs);
    t->pairs = NULL;
    TRY(resize(t, 0, false));
    for (uint64_t at = 0; next_pair(t, &at, &key); rest(t, 1)) {
        struct pair *p;
        if (t->counters[counter_of(key)] < (uint64_t)t->bar)
            continue;
        p = add_pair(t, key);
        if (!p)
            return ERR_NOMEM;
        p->count += (int64_t)t->words->count[t->words->word[at]];
        p->n++;
        if (t->n_pairs > t->rules->pairs && t->bar < t->most / 2) {
            t->bar = t->bar < t->most / 8 ? t->bar * 4 : t->most / 2; /* never all: the bar has to sink */
            return count_pairs(t);
        }
    }
    return resize(t, t->n_pairs, false);
}

static int find_frequent(struct trainer *t)
{
    const struct merges_words *w = t->words;
    struct pair *p;
    uint64_t key;

    TRY(count_pairs(t));
    t->listed = 0;
    for (uint64_t i = 0; i <= t->mask; i++) {
        p = &t->pairs[i];
        if (p->key == FREE)
            continue;
        p->list = t->listed;
        t->listed += p->n;
        p->n = 0;
    }
    for (uint64_t at = 0; next_pair(t, &at, &key); rest(t, 1)) {
        if (t->counters[counter_of(key)] >= (uint64_t)t->bar && (p = find_pair(t, key)))
            w->lists[p->list + p->n++] = (uint32_t)at;
    }
    for (uint64_t i = 0; i <= t->mask; i++) {
        p = &t->pairs[i];
        if (p->key != FREE)
            TRY(push(t, (struct entry){p->count, tie_of(t, p), p->key}));
    }
    return 0;
}

/* ---- joining ---- */

static int meet(struct side *sides, struct buf *met, uint32_t token, uint64_t gain, uint64_t loss)
{
    struct side *s = &sides[token];

    if (!s->met) {
        *s = (struct side){.met = true};
        TRY(buf_put(met, &token, sizeof token));
    }
    s->n++;
    s->gain += (int64_t)gain;
    s->loss += (int64_t)loss;
    return 0;
}

/* Joins at a place. */
static int join_at(struct trainer *t, uint32_t at, uint32_t left, uint32_t right, uint32_t id)
{
    uint32_t *c = t->words->cells + at;
    uint32_t middle = t->length[left], end = middle + t->length[right];
    uint64_t count = t->words->count[t->words->word[at]];

    c[middle - 1] = c[middle] = INSIDE;
    c[0] = c[end - 1] = id;
    if (c[-1] == id) { /* joined just now: what it had on its right has become its like */
        t->right[left].gain -= (int64_t)count;
        t->right[left].n--;
        TRY(meet(t->right, &t->rights, id, count, 0));
    } else if (c[-1] != MERGES_END) {
        TRY(meet(t->left, &t->lefts, c[-1], count, count));
    }
    return c[end] != MERGES_END ? meet(t->right, &t->rights, c[end], count, count) : 0;
}

/* Counts that fall, by how much the pairs of old lose to those of the new token. */
static void lose(struct trainer *t, uint64_t key, int64_t count)
{
    struct pair *p = find_pair(t, key);

    if (p)
        p->count -= count;
}

/* A pair of the new token: looked after if it is frequent. */
static int gain(struct trainer *t, uint64_t key, struct side *s)
{
    struct pair *p;

    s->met = false;
    s->kept = s->n && s->gain >= t->bar && is_allowed(t, key);
    if (!s->kept)
        return 0;
    p = add_pair(t, key);
    if (!p)
        return ERR_NOMEM;
    *p = (struct pair){.key = key, .count = s->gain, .list = t->listed, .n = s->n};
    s->list = t->listed;
    t->listed += s->n;
    return 0;
}

static const uint32_t *tokens_of(const struct buf *met, size_t *n)
{
    *n = met->n / sizeof(uint32_t);
    return (const uint32_t *)(const void *)met->p;
}

/* Lists the places of the new token's pairs, which are among n places of the old pair. */
static void list_places(struct trainer *t, const uint32_t *at, uint32_t n, uint32_t id)
{
    const struct merges_words *w = t->words;
    uint32_t length = t->length[id], end = 0; /* of the one before: its last cell is no place */

    for (uint32_t i = 0; i < n; i++, rest(t, 1)) {
        const uint32_t *c = w->cells + at[i];
        uint32_t left = c[-1], right;
        if (c[0] != id || at[i] < end)
            continue;
        right = c[length];
        end = at[i] + length;
        if (left != MERGES_END && left != id && t->left[left].kept)
            w->lists[t->left[left].list++] = at[i] - t->length[left];
        if (right != MERGES_END && t->right[right].kept)
            w->lists[t->right[right].list++] = at[i];
    }
}

static int push_pair(struct trainer *t, uint64_t key)
{
    struct pair *p = find_pair(t, key);

    return push(t, (struct entry){p->count, tie_of(t, p), key});
}

/* Joins a pair everywhere; what is around it gets new pairs. */
static int join_pair(struct trainer *t, struct pair pair, uint32_t id)
{
    const struct merges_words *w = t->words;
    const uint32_t *at = w->lists + pair.list, *lefts, *rights;
    uint32_t left = (uint32_t)(pair.key >> 32), right = (uint32_t)pair.key;
    size_t n_lefts, n_rights;

    for (uint32_t i = 0; i < pair.n; i++, rest(t, 1)) {
        if (i + AHEAD < pair.n) {
            __builtin_prefetch(&w->cells[at[i + AHEAD]], 1);
            __builtin_prefetch(&w->word[at[i + AHEAD]]);
            __builtin_prefetch(&w->count[w->word[at[i + AHEAD / 2]]]);
        }
        if (is_at(t, &pair, at[i]))
            TRY(join_at(t, at[i], left, right, id));
    }
    lefts = tokens_of(&t->lefts, &n_lefts);
    rights = tokens_of(&t->rights, &n_rights);
    for (size_t i = 0; i < n_lefts; i++) {
        lose(t, (uint64_t)lefts[i] << 32 | left, t->left[lefts[i]].loss);
        TRY(gain(t, (uint64_t)lefts[i] << 32 | id, &t->left[lefts[i]]));
    }
    for (size_t i = 0; i < n_rights; i++) {
        lose(t, (uint64_t)right << 32 | rights[i], t->right[rights[i]].loss);
        TRY(gain(t, (uint64_t)id << 32 | rights[i], &t->right[rights[i]]));
    }
    list_places(t, at, pair.n, id);
    for (size_t i = 0; i < n_lefts; i++)
        if (t->left[lefts[i]].kept)
            TRY(push_pair(t, (uint64_t)lefts[i] << 32 | id));
    for (size_t i = 0; i < n_rights; i++)
        if (t->right[rights[i]].kept)
            TRY(push_pair(t, (uint64_t)id << 32 | rights[i]));
    buf_clear(&t->lefts);
    buf_clear(&t->rights);
    return 0;
}

/* Brings the top of the heap up to date; false: it was, and is the best pair. */
static bool refresh(struct trainer *t)
{
    struct entry *top = heap_of(t);
    struct pair *p = find_pair(t, top->key);
    uint64_t tie = p->count >= t->bar ? tie_of(t, p) : 0;

    if (p->count < t->bar)
        pop(t);
    else if (p->count != top->count || tie != top->tie)
        replace_top(t, (struct entry){p->count, tie, p->key});
    else
        return false;
    return true;
}

static int find_merges(struct trainer *t, uint32_t *tokens, struct buf *found, struct err *e)
{
    int rc = 0;

    while (*tokens < t->rules->target && rc >= 0) {
        struct merge m;
        struct pair *p;
        if (!t->heap.n) {
            if (!set_bar(t))
                break;
            rc = find_frequent(t);
            continue;
        }
        if (refresh(t))
            continue;
        p = find_pair(t, heap_of(t)->key);
        pop(t);
        m = (struct merge){(uint32_t)(p->key >> 32), (uint32_t)p->key, 0};
        TRY(t->rules->join(t->rules->state, m.left, m.right, &m.id, e));
        t->length[m.id] = t->length[m.left] + t->length[m.right];
        rc = buf_put(found, &m, sizeof m);
        if (rc == 0)
            rc = join_pair(t, *p, m.id);
    }
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for pairs") : 0;
}

int merges_find(struct merges_words *words, const struct merges_rules *rules, uint32_t *tokens, struct buf *found,
                struct err *e)
{
    struct trainer t = {.words = words, .rules = rules, .bar = INT64_MAX};
    size_t ids = (size_t)(rules->target > *tokens ? rules->target : *tokens) + 1;
    int rc = 0;

    t.floor = rules->min_frequency < 1 ? 1 : rules->min_frequency > INT64_MAX ? INT64_MAX : (int64_t)rules->min_frequency;
    t.length = calloc(ids, sizeof *t.length);
    t.left = calloc(ids, sizeof *t.left);
    t.right = calloc(ids, sizeof *t.right);
    t.counters = malloc(sizeof *t.counters << COUNTER_BITS);
    if (t.length && t.left && t.right && t.counters) {
        for (size_t i = 0; i < ids; i++) /* bytes; those of joined tokens come with them */
            t.length[i] = 1;
        rc = find_merges(&t, tokens, found, e);
    } else {
        rc = err_set(e, ERR_NOMEM, "out of memory for %u tokens", rules->target);
    }
    free(t.length);
    free(t.left);
    free(t.right);
    free(t.counters);
    free(t.pairs);
    buf_free(&t.heap);
    buf_free(&t.lefts);
    buf_free(&t.rights);
    return rc;
}
