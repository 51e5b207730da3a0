#include "tokenize/merges_runs.h"

enum {
    STEP = 64,       /* the bar is a part of the highest count */
    LEVEL_PARTS = 8, /* levels between a power of two and the next */
    LEVELS = 62 * LEVEL_PARTS
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for pairs");
}

/* ---- reading all words ---- */

static int rewind_words(struct merges_state *t, struct err *e)
{
    t->read = false;
    if (t->file)
        TRY(word_file_rewind(t->file, t->renew, t, e));
    t->renew = NULL;
    return 0;
}

/* All words there are, in one or more parts: 1; 0: no more. */
static int next_words(struct merges_state *t, const struct merges_words **w, struct err *e)
{
    if (t->file)
        return word_file_next(t->file, w, e);
    *w = t->words;
    t->read = !t->read;
    return t->read;
}

/* The next place of a pair behind *at in the cells; false: none. */
static inline bool next_pair(const struct merges_state *t, const struct merges_words *w, uint64_t *at, uint64_t *key)
{
    const uint32_t *c = w->cells;

    for (uint64_t p = *at + 1; p + 1 < w->n_cells; p++) {
        *key = (uint64_t)c[p] << 32 | c[p + 1];
        if (c[p] != MERGES_END && c[p + 1] != MERGES_END && merges_is_allowed(t, *key)) {
            *at = p;
            return true;
        }
    }
    return false;
}

/* Counts all pairs by their hash: upper bounds of theirs. */
static int count_by_hash(struct merges_state *t, const struct merges_counters *c, struct err *e)
{
    const struct merges_words *w;
    uint64_t key;
    int rc;

    memset(c->of, 0, c->n * sizeof *c->of);
    TRY(rewind_words(t, e));
    while ((rc = next_words(t, &w, e)) > 0)
        for (uint64_t at = 0; next_pair(t, w, &at, &key);)
            c->of[merges_counter(c, pair_hash(key))] += w->count[w->word[at]];
    t->counters = *c;
    return rc;
}

/* Counts from a level's bound up to the next one's are on it. */
static unsigned level_of(uint64_t count)
{
    unsigned shift = count < LEVEL_PARTS ? 0 : 60 - (unsigned)__builtin_clzll(count);

    return shift * LEVEL_PARTS + (unsigned)(count >> shift);
}

static int64_t level_bound(unsigned level)
{
    unsigned shift = level < 2 * LEVEL_PARTS ? 0 : level / LEVEL_PARTS - 1;

    return (int64_t)((uint64_t)(level - shift * LEVEL_PARTS) << shift);
}

/* Sets the bar to a part of the highest count, and higher while more than n counters reach it; gives how many reached the
 * first. */
static uint64_t find_bar(struct merges_state *t, uint64_t n)
{
    const struct merges_counters *c = &t->counters;
    uint64_t on[LEVELS] = {0}, first = 0, reach, most = 0;
    unsigned level;

    for (uint64_t i = 0; i < c->n; i++) {
        most = c->of[i] > most ? c->of[i] : most;
        on[level_of(c->of[i])]++;
    }
    if ((int64_t)most < t->most) /* several pairs in one counter */
        t->most = (int64_t)most;
    t->bar = t->most / STEP > t->floor ? t->most / STEP : t->floor;
    level = level_of((uint64_t)t->bar);
    for (unsigned i = level; i < LEVELS; i++)
        first += on[i];
    reach = first;
    while (reach > n && level_bound(level + 1) <= t->most / 2) { /* never all: the bar has to sink */
        reach -= on[level++];
        t->bar = level_bound(level);
    }
    return first;
}

/* Sets the bar by the highest count that there can be: 1; 0: no pair is left. */
static int set_bar(struct merges_state *t, struct err *e)
{
    struct merges_counters many = {t->words->counters, t->words->n_counters};
    uint64_t n = t->rules->pairs / 2;

    if (!t->file && many.n > t->words->n_cells) /* there are no more pairs */
        many.n = t->words->n_cells;
    TRY(count_by_hash(t, &t->few, e));
    if (find_bar(t, n) > t->few.n / 4 && many.n > t->few.n) { /* so full that they say little */
        TRY(count_by_hash(t, &many, e));
        find_bar(t, n);
    }
    return t->most >= t->floor;
}

/* ---- the most frequent pairs ---- */

/* Pairs whose hash is in a range, in units of 2^32, and whose counter reaches the bar. */
struct range {
    const struct merges_state *t;
    uint64_t from, to;
};

static bool is_in(const struct range *r, uint64_t key)
{
    uint64_t h = pair_hash(key);

    return h >> 32 >= r->from && h >> 32 < r->to && r->t->counters.of[merges_counter(&r->t->counters, h)] >= (uint64_t)r->t->bar;
}

static bool keep_in(const void *range, const struct pair *p)
{
    return is_in(range, p->key);
}

/* Makes less of what is looked for, until the pairs fit. */
static int narrow(struct merges_state *t, struct range *r)
{
    while (t->pairs.n > t->rules->pairs) {
        if (t->bar < t->most / 2) /* never all: the bar has to sink */
            t->bar = t->bar < t->most / 8 ? t->bar * 4 : t->most / 2;
        else if (r->to - r->from > 1)
            r->to = r->from + (r->to - r->from) / 2;
        else
            break;
        TRY(pairs_keep(&t->pairs, keep_in, r));
    }
    return 0;
}

/* Counts the pairs of a range, which becomes smaller if they are too many. */
static int count_range(struct merges_state *t, struct range *r, struct err *e)
{
    const struct merges_words *w;
    uint64_t key, n = 0;
    int rc;

    if (pairs_clear(&t->pairs) < 0)
        return no_memory(e);
    TRY(rewind_words(t, e));
    while ((rc = next_words(t, &w, e)) > 0) {
        for (uint64_t at = 0; next_pair(t, w, &at, &key); n++) {
            struct pair *p;
            if (!is_in(r, key))
                continue;
            p = pairs_add(&t->pairs, key);
            if (!p)
                return no_memory(e);
            if (!p->count)
                p->list = n; /* its first place */
            p->count += (int64_t)w->count[w->word[at]];
            if (t->pairs.n > t->rules->pairs && narrow(t, r) < 0)
                return no_memory(e);
        }
    }
    return rc;
}

/* Puts the most frequent pairs onto the heap, in order: at most rules->pairs. */
static int find_best(struct merges_state *t, struct err *e)
{
    struct range r = {t, 0, 0};
    uint64_t most = t->rules->pairs;
    size_t n;
    int rc = 0;

    t->tie = UINT64_MAX;
    buf_clear(&t->heap);
    while (rc == 0 && r.to < (uint64_t)1 << 32) {
        r = (struct range){t, r.to, (uint64_t)1 << 32};
        rc = count_range(t, &r, e);
        for (uint64_t i = 0; rc == 0 && i <= t->pairs.mask; i++) {
            const struct pair *p = &t->pairs.slots[i];
            struct pair_entry x = {p->count, t->rules->first_place ? p->list : p->key, p->key};
            if (p->key == PAIR_FREE || p->count < t->bar || merges_is_refused(t, p->key))
                continue;
            if (buf_put(&t->heap, &x, sizeof x) < 0)
                return no_memory(e);
        }
        n = heap_size(&t->heap);
        heap_sort(&t->heap, most);
        if (n > most) { /* the others are not looked after, though they may reach the bar */
            t->bar = heap_entries(&t->heap)[most - 1].count;
            t->tie = heap_entries(&t->heap)[most - 1].tie;
        }
    }
    n = heap_size(&t->heap);
    while (n && heap_entries(&t->heap)[n - 1].count < t->bar) /* from before the bar rose */
        n--;
    t->heap.n = n * sizeof(struct pair_entry);
    if (n == 0)
        t->tie = UINT64_MAX;
    return rc;
}

/* Fills the table with the heap's pairs; their ranks are where their lists will be. */
static int keep_best(struct merges_state *t, struct err *e)
{
    if (pairs_clear(&t->pairs) < 0)
        return no_memory(e);
    memset(t->filter, 0, sizeof *t->filter << MERGES_FILTER_BITS >> 6);
    for (size_t i = 0; i < heap_size(&t->heap); i++) {
        const struct pair_entry *x = &heap_entries(&t->heap)[i];
        struct pair *p = pairs_add(&t->pairs, x->key);
        uint64_t bit = pair_hash(x->key) >> (64 - MERGES_FILTER_BITS);
        if (!p)
            return no_memory(e);
        t->filter[bit / 64] |= (uint64_t)1 << bit % 64;
        p->count = x->count;
        p->list = i;
    }
    return 0;
}

/* ---- the places ---- */

uint64_t merges_tie(const struct merges_state *t, struct pair *p)
{
    if (!t->rules->first_place)
        return p->key;
    while (p->n && !merges_is_at(t, p->key, t->words->lists[p->list])) {
        p->list++;
        p->n--;
    }
    return p->n ? t->words->lists[p->list] : UINT64_MAX;
}

static void list_places(struct merges_state *t)
{
    const struct merges_words *w = t->words;
    struct pair_entry *x = heap_entries(&t->heap);
    size_t n = heap_size(&t->heap);
    struct pair *p;
    uint64_t key;

    t->listed = 0;
    for (uint64_t at = 0; next_pair(t, w, &at, &key);)
        if ((p = merges_find_pair(t, key)))
            p->n++;
    for (size_t i = 0; i < n; i++) {
        p = pairs_find(&t->pairs, x[i].key);
        p->list = t->listed;
        t->listed += p->n;
        p->n = 0;
    }
    for (uint64_t at = 0; next_pair(t, w, &at, &key);)
        if ((p = merges_find_pair(t, key)))
            w->lists[p->list + p->n++] = (uint32_t)at;
    for (size_t i = 0; i < n; i++)
        x[i].tie = merges_tie(t, pairs_find(&t->pairs, x[i].key));
}

/* The bar when only the pairs on the heap are looked after, though others may occur as often as the last. */
static void set_bar_by_last(struct merges_state *t)
{
    const struct pair_entry *last = &heap_entries(&t->heap)[heap_size(&t->heap) - 1];

    t->bar = last->count;
    t->tie = last->tie;
    if (!t->rules->first_place)
        return;
    /* A token that is made may end where one of those others begins, and come first itself then: not before this run. */
    while (t->words->cells[t->tie] != MERGES_END)
        t->tie--;
}

int merges_begin_round(struct merges_state *t, struct pair_entry *alone, struct err *e)
{
    struct pair_entry best;
    size_t n;
    int rc = set_bar(t, e);

    if (rc <= 0)
        return rc;
    *alone = (struct pair_entry){0};
    TRY(find_best(t, e));
    TRY(keep_best(t, e));
    n = heap_size(&t->heap);
    if (n == 0)
        return 1;
    best = heap_entries(&t->heap)[0];
    if (t->file) {
        TRY(merges_take_runs(t, e));
        TRY(keep_best(t, e));
    }
    if (!t->heap.n) {
        *alone = best;
        return 1;
    }
    list_places(t);
    if (heap_size(&t->heap) < n || t->tie != UINT64_MAX)
        set_bar_by_last(t);
    return 1;
}

void merges_end_round(struct merges_state *t)
{
    struct merges_words *w = t->words;
    uint64_t to = 1, n = 0, start;

    for (uint64_t at = 1; at < w->n_cells; at++) {
        uint32_t word = w->word[at];
        for (start = to; w->cells[at] != MERGES_END; at += t->width[w->cells[at]])
            w->cells[to++] = w->cells[at];
        if (to - start < 2 && !t->file) { /* nothing to join any more */
            to = start;
            continue;
        }
        w->cells[to++] = MERGES_END;
        for (uint64_t i = start; i < to; i++)
            w->word[i] = (uint32_t)n;
        if (t->file)
            w->now[n] = (uint32_t)start;
        w->count[n++] = w->count[word];
    }
    w->n_cells = to;
    w->n_words = n;
    for (uint32_t i = 0; i < t->ids; i++)
        t->width[i] = 1;
}
