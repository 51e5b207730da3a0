#include "tokenize/merges_runs.h"

/* ---- runs in a word ---- */

/* The end of the run that begins at tokens[0]: how many tokens it has.  ranks: only pairs before this one
 * count, and refused ones, which may be frequent though they are not among the round's. */
static uint64_t run_length(const struct merges_state *t, const uint32_t *tokens, uint64_t n, uint64_t ranks)
{
    uint64_t i = 0;

    for (; i + 1 < n; i++) {
        uint64_t key = (uint64_t)tokens[i] << 32 | tokens[i + 1];
        const struct pair *p = merges_find_pair(t, key);
        if ((!p || p->list >= ranks) && !merges_is_refused(t, key))
            break;
    }
    return i + 1;
}

static uint64_t hash_run(const uint32_t *tokens, uint64_t n)
{
    uint64_t h = n;

    for (uint64_t i = 0; i < n; i++)
        h = (h ^ tokens[i]) * 0x9E3779B97F4A7C15ULL, h ^= h >> 32;
    return h * 0xD6E8FEB86659FD93ULL >> 20;
}

/* Where the run's number, plus one, is, or is to be. */
static uint32_t *slot_of(const struct merges_words *w, const uint32_t *tokens, uint64_t n)
{
    uint64_t mask = merges_slots(w->max_words) - 1, i = hash_run(tokens, n) & mask;

    for (; w->slots[i]; i = (i + 1) & mask) {
        const uint32_t *run = w->runs + w->first[w->slots[i] - 1];
        if (run + n < w->runs + w->n_runs && run[n] == MERGES_END && memcmp(run, tokens, n * sizeof *run) == 0)
            break;
    }
    return &w->slots[i];
}

/* ---- taking them ---- */

struct taking {
    struct merges_state *t;
    uint64_t ranks; /* runs are made by the pairs before this one */
};

static void begin(struct merges_words *w)
{
    memset(w->slots, 0, merges_slots(w->max_words) * sizeof *w->slots);
    w->n_runs = w->n_words = 0;
}

/* Counts the runs of a word; false: there is no room for one of them. */
static bool add_runs(const struct taking *k, const uint32_t *tokens, uint64_t n, uint64_t count)
{
    struct merges_words *w = k->t->words;

    for (uint64_t at = 0, length; at + 1 < n; at += length) {
        uint32_t *slot;
        length = run_length(k->t, tokens + at, n - at, k->ranks);
        if (length < 2)
            continue;
        slot = slot_of(w, tokens + at, length);
        if (!*slot) {
            if (w->n_runs + length + 2 > w->max_cells || w->n_words == w->max_words)
                return false;
            w->first[w->n_words] = (uint32_t)w->n_runs;
            memcpy(w->runs + w->n_runs, tokens + at, length * sizeof *tokens);
            w->n_runs += length + 1;
            w->runs[w->n_runs - 1] = MERGES_END;
            w->count[w->n_words] = 0;
            *slot = (uint32_t)++w->n_words;
        }
        w->count[*slot - 1] += count;
    }
    return true;
}

/* Takes back what add_runs has counted of a word that found no room. */
static void undo_runs(const struct taking *k, const uint32_t *tokens, uint64_t n, uint64_t count)
{
    const struct merges_words *w = k->t->words;

    for (uint64_t at = 0, length; at + 1 < n; at += length) {
        const uint32_t *slot;
        length = run_length(k->t, tokens + at, n - at, k->ranks);
        if (length < 2)
            continue;
        slot = slot_of(w, tokens + at, length);
        if (!*slot)
            break;
        w->count[*slot - 1] -= count;
    }
}

static uint64_t word_length(const uint32_t *cells)
{
    uint64_t n = 0;

    while (cells[n] != MERGES_END)
        n++;
    return n;
}

/* Makes the runs of fewer pairs from those there are, until they take but part of the room. */
static void take_less(struct taking *k)
{
    struct merges_words *w = k->t->words;
    uint64_t cells = w->n_runs, *count = (uint64_t *)(void *)w->lists;
    bool fits = false;

    memcpy(w->cells, w->runs, cells * sizeof *w->cells);
    memcpy(count, w->count, w->n_words * sizeof *count);
    while (!fits && k->ranks) {
        uint64_t word = 0;
        k->ranks -= k->ranks / 4 + 1;
        begin(w);
        fits = true;
        for (uint64_t at = 0, n; at < cells && fits; at += n + 1) {
            n = word_length(w->cells + at);
            fits = add_runs(k, w->cells + at, n, count[word++]);
        }
        fits = fits && w->n_runs < w->max_cells - w->max_cells / 4 && w->n_words <= w->max_words - w->max_words / 4;
    }
}

static void fill_cells(struct merges_words *w)
{
    uint32_t word = 0;

    w->n_cells = w->n_runs + 1;
    w->cells[0] = MERGES_END;
    w->word[0] = 0;
    for (uint64_t i = 1; i < w->n_cells; i++) {
        w->cells[i] = w->runs[i - 1];
        w->word[i] = word;
        word += w->cells[i] == MERGES_END;
    }
}

int merges_take_runs(struct merges_state *t, struct err *e)
{
    const struct merges_words *block;
    struct taking k = {t, heap_size(&t->heap)};
    int rc = 0;

    begin(t->words);
    TRY(word_file_rewind(t->file, NULL, NULL, e));
    while (k.ranks && (rc = word_file_next(t->file, &block, e)) > 0)
        for (uint64_t at = 1, n; at < block->n_cells && k.ranks; at += n + 1) {
            uint64_t count = block->count[block->word[at]];
            n = word_length(block->cells + at);
            while (k.ranks && !add_runs(&k, block->cells + at, n, count)) {
                undo_runs(&k, block->cells + at, n, count);
                take_less(&k);
            }
        }
    if (rc < 0)
        return rc;
    t->heap.n = k.ranks * sizeof(struct pair_entry);
    fill_cells(t->words);
    return 0;
}

/* ---- putting them back ---- */

uint64_t merges_put_runs(void *trainer, uint32_t *tokens, uint64_t n)
{
    const struct merges_state *t = trainer;
    const struct merges_words *w = t->words;
    uint64_t m = 0;

    for (uint64_t at = 0, length; at < n; at += length) {
        uint32_t word;
        length = run_length(t, tokens + at, n - at, UINT64_MAX);
        if (length < 2) {
            tokens[m++] = tokens[at];
            continue;
        }
        word = *slot_of(w, tokens + at, length) - 1;
        for (const uint32_t *c = w->cells + w->now[word]; *c != MERGES_END; c++)
            tokens[m++] = *c;
    }
    return m;
}
