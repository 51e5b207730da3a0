#include "tokenize/merges_runs.h"

#include <stdlib.h>

#define INSIDE (UINT32_MAX - 1) /* a cell that is neither the first nor the last of its token */

enum {
    COUNTERS = 1 << 17,      /* more are no faster: they leave the cache */
    COUNTERS_FILE = 1 << 20, /* but another reading of a file costs more */
    AHEAD = 16               /* places whose cells are fetched early */
};

/* ---- joining ---- */

static int meet(struct merges_side *sides, struct buf *met, uint32_t token, uint64_t gain, uint64_t loss)
{
    struct merges_side *s = &sides[token];

    if (!s->met) {
        *s = (struct merges_side){.met = true};
        TRY(buf_put(met, &token, sizeof token));
    }
    s->n++;
    s->gain += (int64_t)gain;
    s->loss += (int64_t)loss;
    return 0;
}

/* Joins at a place. */
static int join_at(struct merges_state *t, uint32_t at, uint32_t left, uint32_t right, uint32_t id)
{
    uint32_t *c = t->words->cells + at;
    uint32_t middle = t->width[left], end = middle + t->width[right];
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
static void lose(struct merges_state *t, uint64_t key, int64_t count)
{
    struct pair *p = pairs_find(&t->pairs, key);

    if (p)
        p->count -= count;
}

/* A pair of the new token: looked after if it is frequent. */
static int gain(struct merges_state *t, uint64_t key, struct merges_side *s)
{
    struct pair *p;

    s->met = false;
    s->kept = s->n && s->gain >= t->bar && merges_is_allowed(t, key);
    if (!s->kept)
        return 0;
    p = pairs_add(&t->pairs, key);
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
static void list_places(struct merges_state *t, const uint32_t *at, uint32_t n, uint32_t id)
{
    const struct merges_words *w = t->words;
    uint32_t width = t->width[id], end = 0; /* of the one before: its last cell is no place */

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *c = w->cells + at[i];
        uint32_t left = c[-1], right;
        if (c[0] != id || at[i] < end)
            continue;
        right = c[width];
        end = at[i] + width;
        if (left != MERGES_END && left != id && t->left[left].kept)
            w->lists[t->left[left].list++] = at[i] - t->width[left];
        if (right != MERGES_END && t->right[right].kept)
            w->lists[t->right[right].list++] = at[i];
    }
}

static int push_pair(struct merges_state *t, uint64_t key)
{
    struct pair *p = pairs_find(&t->pairs, key);

    return heap_push(&t->heap, (struct pair_entry){p->count, merges_tie(t, p), key});
}

/* Joins a pair everywhere; what is around it gets new pairs. */
static int join_pair(struct merges_state *t, struct pair pair, uint32_t id)
{
    const struct merges_words *w = t->words;
    const uint32_t *at = w->lists + pair.list, *lefts, *rights;
    uint32_t left = (uint32_t)(pair.key >> 32), right = (uint32_t)pair.key;
    size_t n_lefts, n_rights;

    for (uint32_t i = 0; i < pair.n; i++) {
        if (i + AHEAD < pair.n) {
            __builtin_prefetch(&w->cells[at[i + AHEAD]], 1);
            __builtin_prefetch(&w->word[at[i + AHEAD]]);
            __builtin_prefetch(&w->count[w->word[at[i + AHEAD / 2]]]);
        }
        if (merges_is_at(t, pair.key, at[i]))
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
static bool refresh(struct merges_state *t, bool first)
{
    struct pair_entry *top = heap_entries(&t->heap);
    struct pair *p = pairs_find(&t->pairs, top->key);
    uint64_t tie = p->count >= t->bar ? merges_tie(t, p) : 0;

    if (p->count < t->bar || (p->count == t->bar && tie > t->tie && !first)) /* nothing is better than the first */
        heap_pop(&t->heap);
    else if (p->count != top->count || tie != top->tie)
        heap_replace(&t->heap, (struct pair_entry){p->count, tie, p->key});
    else
        return false;
    return true;
}

/* ---- rounds ---- */

static int refuse(struct merges_state *t, uint64_t key)
{
    if (!t->refused.slots)
        TRY(pairs_clear(&t->refused));
    return pairs_add(&t->refused, key) ? 0 : ERR_NOMEM;
}

/* The token of a pair; its id is MERGES_END if there is to be none. */
static int make_token(struct merges_state *t, uint64_t key, struct merge *m, struct buf *found, struct err *e)
{
    *m = (struct merge){(uint32_t)(key >> 32), (uint32_t)key, 0};
    TRY(t->rules->join(t->rules->state, m->left, m->right, &m->id, e));
    if (m->id == MERGES_END)
        return refuse(t, key);
    t->length[m->id] = t->length[m->left] + t->length[m->right];
    t->width[m->id] = t->width[m->left] + t->width[m->right];
    return buf_put(found, m, sizeof *m);
}

/* Joins this round's pairs. */
static int join_pairs(struct merges_state *t, const uint32_t *tokens, struct buf *found, struct err *e)
{
    bool first = true, known = false;
    struct merge m;

    t->most = t->tie == UINT64_MAX ? t->bar - 1 : t->bar; /* when the heap is empty */
    for (; t->heap.n && *tokens < t->rules->target; first = false) {
        uint32_t n = *tokens;
        struct pair p;
        while (t->heap.n && refresh(t, first))
            ;
        if (!t->heap.n)
            break;
        p = *pairs_find(&t->pairs, heap_entries(&t->heap)->key);
        /* The lists or the table may be full; and a token there was before (a special one) has not the id that what is said
         * of ties at the ends of runs relies upon. */
        if (known || (!first && (t->listed + 2ULL * p.n > t->words->max_listed || t->pairs.n > 2 * t->rules->pairs))) {
            t->most = p.count;
            break;
        }
        heap_pop(&t->heap);
        TRY(make_token(t, p.key, &m, found, e));
        if (m.id == MERGES_END)
            continue;
        TRY(join_pair(t, p, m.id));
        known = m.id < n;
    }
    return 0;
}

/* Of one pair, which is not among what memory holds. */
static uint64_t join_alone(void *trainer, uint32_t *tokens, uint64_t n)
{
    const struct merge *j = &((const struct merges_state *)trainer)->alone;
    uint64_t m = 0;

    for (uint64_t i = 0; i < n; m++) {
        bool here = i + 1 < n && tokens[i] == j->left && tokens[i + 1] == j->right;
        tokens[m] = here ? j->id : tokens[i];
        i += here ? 2 : 1;
    }
    return m;
}

static int find_merges(struct merges_state *t, uint32_t *tokens, struct buf *found, struct err *e)
{
    struct pair_entry alone;
    int rc = 0;

    for (uint32_t i = 0; i < t->ids; i++) /* bytes; those of joined tokens come with them */
        t->length[i] = t->width[i] = 1;
    for (uint32_t i = 0; i < *tokens && t->rules->lengths; i++)
        t->length[i] = t->rules->lengths[i];
    while (*tokens < t->rules->target && (rc = merges_begin_round(t, &alone, e)) > 0) {
        if (alone.count) {
            rc = make_token(t, alone.key, &t->alone, found, e);
            t->most = alone.count;
            t->renew = t->alone.id == MERGES_END ? NULL : join_alone;
        } else {
            t->renew = t->heap.n ? merges_put_runs : NULL; /* none: no runs were taken */
            rc = join_pairs(t, tokens, found, e);
        }
        if (rc < 0)
            return rc == ERR_NOMEM ? err_set(e, ERR_NOMEM, "out of memory for pairs") : rc;
        merges_end_round(t);
    }
    return rc < 0 ? rc : 0;
}

int merges_find(struct merges_words *words, struct word_file *file, const struct merges_rules *rules, uint32_t *tokens,
                struct buf *found, struct err *e)
{
    struct merges_state t = {.words = words, .file = file, .rules = rules, .most = INT64_MAX};
    int rc;

    t.ids = (rules->target > *tokens ? rules->target : *tokens) + 1;
    t.floor = rules->min_frequency < 1 ? 1 : rules->min_frequency > INT64_MAX ? INT64_MAX : (int64_t)rules->min_frequency;
    t.few.n = file ? COUNTERS_FILE : COUNTERS;
    if (t.few.n > rules->pairs * 16)
        t.few.n = rules->pairs * 16;
    t.length = calloc(t.ids, sizeof *t.length);
    t.width = calloc(t.ids, sizeof *t.width);
    t.left = calloc(t.ids, sizeof *t.left);
    t.right = calloc(t.ids, sizeof *t.right);
    t.few.of = malloc(t.few.n * sizeof *t.few.of);
    t.filter = calloc((size_t)1 << MERGES_FILTER_BITS >> 6, sizeof *t.filter);
    if (t.filter && t.length && t.width && t.left && t.right && t.few.of)
        rc = find_merges(&t, tokens, found, e);
    else
        rc = err_set(e, ERR_NOMEM, "out of memory for %u tokens", rules->target);
    free(t.length);
    free(t.width);
    free(t.left);
    free(t.right);
    free(t.few.of);
    free(t.filter);
    pairs_free(&t.pairs);
    pairs_free(&t.refused);
    buf_free(&t.heap);
    buf_free(&t.lefts);
    buf_free(&t.rights);
    return rc;
}
