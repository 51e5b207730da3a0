#include "tokenize/train_words.h"

#include <inttypes.h>
#include <sys/mman.h>

enum {
    OTHER_MEMORY = 20 << 20, /* what training takes beside words and pairs: buffers, the program */
    RUNS_LEAST = 12 << 20,
    TOKEN_MEMORY = 160,      /* for each token */
    CELL = 12,               /* bytes: the token, the word, a place in lists */
    WORD = 8,                /* its count */
    RUN_CELL = CELL + 4,     /* the token that was there */
    RUN = WORD + 8 + 16      /* where it begins, then and now; four slots at most */
};

/* What is not for words. */
static uint64_t other_memory(const struct train_options *x)
{
    uint64_t pairs = (x->memory < (uint64_t)256 << 20 ? x->memory : (uint64_t)256 << 20) / 10;

    return OTHER_MEMORY + pairs + (uint64_t)x->vocab_size * TOKEN_MEMORY;
}

/* Memory that is taken as it is used. */
static void *take(uint64_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, n, MADV_HUGEPAGE);
    return p;
}

static int make_room(struct merges_words *m, uint64_t cells, uint64_t words, bool runs, struct err *e)
{
    m->max_cells = cells;
    m->max_words = words;
    m->cells = take(cells * 4);
    m->word = take(cells * 4);
    m->lists = take(cells * 8);
    m->count = take((words + 1) * 8);
    if (runs) {
        m->runs = take(cells * 4);
        m->first = take((words + 1) * 4);
        m->now = take((words + 1) * 4);
        m->slots = take(merges_slots(words) * 4);
    }
    if (m->cells && m->word && m->lists && m->count && (!runs || (m->runs && m->first && m->now && m->slots)))
        return 0;
    return err_set(e, ERR_NOMEM, "out of memory for words");
}

static void give_back(void *p, uint64_t n)
{
    if (p)
        munmap(p, n);
}

void train_words_free(struct train_words *w)
{
    struct merges_words *m = &w->m;

    give_back(m->cells, m->max_cells * 4);
    give_back(m->word, m->max_cells * 4);
    give_back(m->lists, m->max_cells * 8);
    give_back(m->count, (m->max_words + 1) * 8);
    give_back(m->runs, m->max_cells * 4);
    give_back(m->first, (m->max_words + 1) * 4);
    give_back(m->now, (m->max_words + 1) * 4);
    give_back(m->slots, merges_slots(m->max_words) * 4);
    buf_free(&w->word);
    if (w->on_disk)
        word_file_close(&w->file);
}

static void put_word(void *arg, struct span word, uint64_t count)
{
    struct train_words *w = arg;
    struct merges_words *m = &w->m;

    for (size_t i = 0; i < word.n; i++) {
        m->word[m->n_cells] = (uint32_t)m->n_words;
        m->cells[m->n_cells++] = w->byte_id[(unsigned char)word.p[i]];
    }
    m->word[m->n_cells] = (uint32_t)m->n_words;
    m->cells[m->n_cells++] = MERGES_END;
    m->count[m->n_words++] = count;
}

static void file_word(void *arg, struct span word, uint64_t count)
{
    struct train_words *w = arg;
    uint32_t *tokens;

    buf_clear(&w->word);
    if (w->rc == 0 && buf_reserve(&w->word, word.n * sizeof *tokens) < 0)
        w->rc = err_set(w->e, ERR_NOMEM, "out of memory for words");
    if (w->rc < 0)
        return;
    tokens = (uint32_t *)(void *)w->word.p;
    for (size_t i = 0; i < word.n; i++)
        tokens[i] = w->byte_id[(unsigned char)word.p[i]];
    w->rc = word_file_put(&w->file, tokens, word.n, count, w->e);
}

/* All words into the file, and room for as many runs as the memory has. */
static int put_on_disk(struct train_words *w, struct word_counts *c, const struct train_options *x, struct err *e)
{
    uint64_t other = other_memory(x);
    uint64_t memory = x->memory > other + RUNS_LEAST ? x->memory - other : RUNS_LEAST;
    uint64_t cells = memory / (RUN_CELL + RUN / 4); /* a run takes four cells and more, on average */

    w->on_disk = true;
    w->e = e;
    TRY(word_counts_move(c, x, e));
    TRY(word_file_open(&w->file, x->tmp, e));
    TRY(word_counts_each(c, file_word, w, e));
    TRY(w->rc);
    TRY(word_file_end(&w->file, e));
    return make_room(&w->m, cells < MERGES_CELLS_MAX ? cells : MERGES_CELLS_MAX, cells / 4, true, e);
}

int train_words_make(struct train_words *w, struct word_counts *c, const struct train_options *x,
                     const uint32_t *byte_id, struct err *e)
{
    uint64_t cells = c->bytes + c->n + 1, here = cells * CELL + c->n * WORD + other_memory(x);

    *w = (struct train_words){.byte_id = byte_id};
    if (cells > MERGES_CELLS_MAX || here > x->memory)
        return put_on_disk(w, c, x, e);
    if (tally_size(&c->tally) + here > x->memory)
        TRY(word_counts_move(c, x, e));
    TRY(make_room(&w->m, cells, c->n, false, e));
    w->m.cells[0] = MERGES_END;
    w->m.n_cells = 1;
    return word_counts_each(c, put_word, w, e);
}
