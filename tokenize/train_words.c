#include "tokenize/train_words.h"

#include <sys/mman.h>

enum {
    OTHER_MEMORY = 20 << 20, /* what training takes beside words and pairs: buffers, the program */
    FILE_MEMORY = 7 << 20,   /* and what the file of words takes: buffers, blocks, what the heap keeps of them */
    RUNS_LEAST = 12 << 20,
    PAIRS_MAX = 1 << 17,     /* looked after at a time: a few million places */
    PAIRS_ACROSS = 1 << 21,  /* across words there are many more that are rare, and fewer places of each */
    PAIR_MEMORY = 205,       /* for each of them: its slots, twice while a table grows, and the heap */
    TOKEN_MEMORY = 160,      /* for each token */
    CHARACTERS_MEMORY = 9 << 20, /* and for the tokens of characters */
    CELL = 12,               /* bytes: the token, the word, a place in lists */
    CELL_LISTED = CELL + 4,  /* two places, which saves readings */
    WORD = 8,                /* its count */
    RUN_CELL = CELL_LISTED + 4, /* the token that was there */
    RUN = WORD + 8 + 16      /* where it begins, then and now; four slots at most */
};

uint64_t train_pairs(const struct train_options *x)
{
    uint64_t most = train_kinds[x->model].across ? PAIRS_ACROSS : PAIRS_MAX;

    return x->memory / 2048 < most ? x->memory / 2048 : most;
}

/* What is not for words. */
static uint64_t other_memory(const struct train_options *x)
{
    return OTHER_MEMORY + train_pairs(x) * PAIR_MEMORY + (uint64_t)x->vocab_size * TOKEN_MEMORY +
           (train_kinds[x->model].characters ? CHARACTERS_MEMORY : 0);
}

/* The arrays, in one piece of memory, which is taken as it is used. */
static int make_room(struct train_words *w, uint64_t cells, uint64_t words, uint64_t listed, bool runs, struct err *e)
{
    struct merges_words *m = &w->m;
    uint64_t size = cells * 16 + words * 8 + (runs ? cells * 4 + words * 8 + merges_slots(words) * 4 : 0);

    m->count = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->count == MAP_FAILED)
        return err_set(e, ERR_NOMEM, "out of memory for words");
    madvise(m->count, size, MADV_HUGEPAGE);
    w->room = m->count;
    w->room_size = size;
    m->max_cells = cells;
    m->max_words = words;
    m->cells = (uint32_t *)(void *)(m->count + words);
    m->word = m->cells + cells;
    m->lists = m->word + cells;
    m->runs = m->lists + 2 * cells;
    m->first = m->runs + cells;
    m->now = m->first + words;
    m->slots = m->now + words;
    m->max_listed = listed;
    m->counters = runs ? m->count : m->count + words + cells;
    m->n_counters = runs ? size / 8 : listed / 2;
    return 0;
}

void train_words_free(struct train_words *w)
{
    if (w->room)
        munmap(w->room, w->room_size);
    buf_free(&w->word);
    if (w->on_disk)
        word_file_close(&w->file);
}

/* Tokens without a break, as a word of its own, into memory. */
static int put_cells(struct train_words *w, const uint32_t *tokens, size_t n, uint64_t count, struct err *e)
{
    struct merges_words *m = &w->m;

    (void)e;
    for (size_t i = 0; i < n; i++) {
        m->word[m->n_cells] = (uint32_t)m->n_words;
        m->cells[m->n_cells++] = tokens[i];
    }
    m->word[m->n_cells] = (uint32_t)m->n_words;
    m->cells[m->n_cells++] = MERGES_END;
    m->count[m->n_words++] = count;
    return 0;
}

/* The same into the file. */
static int put_filed(struct train_words *w, const uint32_t *tokens, size_t n, uint64_t count, struct err *e)
{
    return word_file_put(&w->file, tokens, n, count, e);
}

/* A word's tokens to where words go; what lies between characters without a token are words. */
static int put_word(void *arg, struct span word, uint64_t count, struct err *e)
{
    struct train_words *w = arg;
    uint32_t *tokens;
    size_t n, end;

    buf_clear(&w->word);
    if (buf_reserve(&w->word, word.n * sizeof *tokens) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for words");
    tokens = (uint32_t *)(void *)w->word.p;
    n = train_symbols_of(w->symbols, word, tokens);
    for (size_t at = 0; at < n; at = end + 1) {
        for (end = at; end < n && tokens[end] != MERGES_END;)
            end++;
        if (end - at > 1)
            TRY((w->on_disk ? put_filed : put_cells)(w, tokens + at, end - at, count, e));
    }
    return 0;
}

/* All words into the file, and room for as many runs as the memory has. */
static int put_on_disk(struct train_words *w, struct word_counts *c, const struct train_options *x, struct err *e)
{
    uint64_t other = other_memory(x) + FILE_MEMORY;
    uint64_t memory = x->memory > other + RUNS_LEAST ? x->memory - other : RUNS_LEAST;
    uint64_t cells = memory / (RUN_CELL + RUN / 4); /* a run takes four cells and more, on average */

    w->on_disk = true;
    TRY(word_counts_move(c, x, e));
    TRY(word_file_open(&w->file, x->tmp, e));
    TRY(word_counts_each(c, put_word, w, e));
    TRY(word_file_end(&w->file, e));
    cells = cells < MERGES_CELLS_MAX ? cells : MERGES_CELLS_MAX;
    return make_room(w, cells, cells / 4, 2 * cells, true, e);
}

int train_words_make(struct train_words *w, struct word_counts *c, const struct train_options *x,
                     const struct train_symbols *symbols, struct err *e)
{
    uint64_t words = symbols->kind->characters ? c->n + c->bytes / 3 : c->n; /* two characters, and one without a token */
    uint64_t bytes = symbols->across ? c->bytes / sizeof(uint32_t) : c->bytes; /* a token each at most */
    uint64_t cells = bytes + words + 1, here = cells * CELL + words * WORD + other_memory(x), listed;

    *w = (struct train_words){.symbols = symbols};
    if (cells > MERGES_CELLS_MAX || here > x->memory)
        return put_on_disk(w, c, x, e);
    if (tally_size(&c->tally) + here > x->memory)
        TRY(word_counts_move(c, x, e));
    listed = here + cells * (CELL_LISTED - CELL) > x->memory ? cells : 2 * cells;
    TRY(make_room(w, cells, words, listed, false, e));
    w->m.cells[0] = MERGES_END;
    w->m.n_cells = 1;
    return word_counts_each(c, put_word, w, e);
}
