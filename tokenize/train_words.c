#include "tokenize/train_words.h"

#include <inttypes.h>
#include <sys/mman.h>

enum { OTHER_MEMORY = 32 << 20 }; /* what training takes beside the words: pairs, tokens, the program */

void train_words_rest(void *words)
{
    struct train_words *w = words;

    if (!w->on_disk || mem_resident().files < w->memory / 2)
        return;
    spill_map_forget(&w->cells);
    spill_map_forget(&w->word);
    spill_map_forget(&w->count);
    spill_map_forget(&w->lists);
}

void train_words_free(struct train_words *w)
{
    spill_map_close(&w->cells);
    spill_map_close(&w->word);
    spill_map_close(&w->count);
    spill_map_close(&w->lists);
}

static int make_map(struct spill_map *m, uint64_t n, bool on_disk, const char *dir, struct err *e)
{
    if (on_disk)
        return spill_map_open(m, dir, n, e);
    m->p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->p == MAP_FAILED) {
        m->p = NULL;
        return err_set(e, ERR_NOMEM, "out of memory for words");
    }
    m->n = n;
    madvise(m->p, n, MADV_HUGEPAGE);
    return 0;
}

static void put_word(void *arg, struct span word, uint64_t count)
{
    struct train_words *w = arg;

    w->m.count[w->n] = count;
    for (size_t i = 0; i <= word.n; i++, w->at++) {
        w->m.word[w->at] = (uint32_t)w->n;
        w->m.cells[w->at] = i < word.n ? w->byte_id[(unsigned char)word.p[i]] : MERGES_END;
        if (w->at % (1 << 16) == 0)
            train_words_rest(w);
    }
    w->n++;
}

int train_words_make(struct train_words *w, struct word_counts *c, const struct train_options *x,
                     const uint32_t *byte_id, struct err *e)
{
    uint64_t cells = c->bytes + c->n + 1, here = cells * 8 + c->n * 8, lists = cells * 12;

    *w = (struct train_words){.memory = x->memory, .byte_id = byte_id, .at = 1};
    if (cells > MERGES_CELLS_MAX)
        return err_set(e, ERR_LIMIT, "%" PRIu64 " distinct words of %" PRIu64 " bytes: more than 4 GiB", c->n, c->bytes);
    w->on_disk = here + lists / 2 + OTHER_MEMORY > x->memory;
    if (w->on_disk || tally_size(&c->tally) + here + OTHER_MEMORY > x->memory)
        TRY(word_counts_move(c, x, e));
    TRY(make_map(&w->cells, cells * 4, w->on_disk, x->tmp, e));
    TRY(make_map(&w->word, cells * 4, w->on_disk, x->tmp, e));
    TRY(make_map(&w->count, (c->n + 1) * 8, w->on_disk, x->tmp, e));
    TRY(make_map(&w->lists, lists, w->on_disk, x->tmp, e));
    w->m = (struct merges_words){(void *)w->cells.p, (void *)w->word.p, (void *)w->count.p, (void *)w->lists.p, cells};
    w->m.cells[0] = MERGES_END;
    w->m.word[0] = 0;
    return word_counts_each(c, put_word, w, e);
}
