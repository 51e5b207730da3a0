#include "tokenize/word_file.h"

#include <stdlib.h>

enum { BLOCK_CELLS = 1 << 15, FILE_BUFFER = 1 << 20, NUMBER_MAX = 10 };

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for words");
}

int word_file_open(struct word_file *f, const char *dir, struct err *e)
{
    *f = (struct word_file){.dir = dir, .words = {.fd = -1}, .fresh = {.fd = -1}};
    return spill_open(&f->words, dir, FILE_BUFFER, e);
}

void word_file_close(struct word_file *f)
{
    spill_close(&f->words);
    spill_close(&f->fresh);
    spill_reader_close(&f->reader);
    buf_free(&f->out);
    free(f->block.cells);
    free(f->block.word);
    free(f->block.count);
    *f = (struct word_file){.words = {.fd = -1}, .fresh = {.fd = -1}};
}

/* ---- writing: the count, the number of tokens, and the tokens, seven bits a byte ---- */

static char *put_number(char *o, uint64_t x)
{
    for (; x > 127; x >>= 7)
        *o++ = (char)(x | 128);
    *o++ = (char)x;
    return o;
}

static int put_word(struct word_file *f, struct spill *to, const uint32_t *tokens, size_t n, uint64_t count,
                    struct err *e)
{
    char *o;

    buf_clear(&f->out);
    if (buf_reserve(&f->out, (n + 4) * NUMBER_MAX / 2) < 0)
        return no_memory(e);
    o = put_number(f->out.p, count);
    o = put_number(o, n);
    for (size_t i = 0; i < n; i++)
        o = put_number(o, tokens[i]);
    return spill_put(to, f->out.p, (size_t)(o - f->out.p), e);
}

int word_file_put(struct word_file *f, const uint32_t *tokens, size_t n, uint64_t count, struct err *e)
{
    return n < 2 ? 0 : put_word(f, &f->words, tokens, n, count, e);
}

int word_file_end(struct word_file *f, struct err *e)
{
    return spill_flush(&f->words, e);
}

/* ---- reading ---- */

int word_file_rewind(struct word_file *f, word_file_renew *renew, void *arg, struct err *e)
{
    spill_reader_close(&f->reader);
    f->renew = renew;
    f->arg = arg;
    if (renew)
        TRY(spill_open(&f->fresh, f->dir, FILE_BUFFER, e));
    return spill_reader_open(&f->reader, &f->words, 0, f->words.size, FILE_BUFFER, e);
}

static bool is_at_end(const struct word_file *f)
{
    return f->reader.at == f->reader.end && f->reader.pos == f->reader.have;
}

static int get_number(struct spill_reader *r, uint64_t *x, struct err *e)
{
    size_t got = r->have - r->pos;

    if (got < NUMBER_MAX)
        TRY(spill_ahead(r, NUMBER_MAX, &got, e));
    *x = 0;
    for (unsigned shift = 0; got && shift < 64; got--, shift += 7) {
        unsigned char c = (unsigned char)r->buf[r->pos++];
        *x |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return 0;
    }
    return err_set(e, ERR_IO, "a temporary file ends too early");
}

/* Room for a word of n more tokens in the block. */
static int make_room(struct word_file *f, uint64_t n)
{
    struct merges_words *b = &f->block;

    TRY(mem_grow(&b->cells, &f->cell_room, b->n_cells + n + 1, sizeof *b->cells));
    TRY(mem_grow(&b->word, &f->owner_room, b->n_cells + n + 1, sizeof *b->word));
    return mem_grow(&b->count, &f->count_room, b->n_words + 1, sizeof *b->count);
}

static int next_word(struct word_file *f, struct err *e)
{
    struct merges_words *b = &f->block;
    uint64_t n, count, token;
    uint32_t *to;

    TRY(get_number(&f->reader, &count, e));
    TRY(get_number(&f->reader, &n, e));
    if (make_room(f, n) < 0)
        return no_memory(e);
    to = b->cells + b->n_cells;
    for (uint64_t i = 0; i < n; i++) {
        TRY(get_number(&f->reader, &token, e));
        to[i] = (uint32_t)token;
    }
    if (f->renew)
        n = f->renew(f->arg, to, n);
    if (n < 2)
        return 0;
    if (f->renew)
        TRY(put_word(f, &f->fresh, to, n, count, e));
    to[n] = MERGES_END;
    for (uint64_t i = 0; i <= n; i++)
        b->word[b->n_cells + i] = (uint32_t)b->n_words;
    b->count[b->n_words++] = count;
    b->n_cells += n + 1;
    return 0;
}

int word_file_next(struct word_file *f, const struct merges_words **block, struct err *e)
{
    struct merges_words *b = &f->block;

    b->n_cells = b->n_words = 0;
    if (make_room(f, 0) < 0)
        return no_memory(e);
    b->cells[0] = MERGES_END;
    b->word[0] = 0;
    b->n_cells = 1;
    while (b->n_cells < BLOCK_CELLS && !is_at_end(f))
        TRY(next_word(f, e));
    *block = b;
    if (b->n_words)
        return 1;
    if (f->renew) {
        TRY(spill_flush(&f->fresh, e));
        spill_close(&f->words);
        f->words = f->fresh;
        f->fresh = (struct spill){.fd = -1};
        f->renew = NULL;
    }
    return 0;
}
