#include "tokenize/train.h"

#include "tokenize/merges.h"
#include "tokenize/model.h"
#include "tokenize/train_words.h"
#include "tokenize/train_write.h"

enum { PAIRS_MAX = 1 << 17 }; /* looked after at a time */

/* ---- tokens ---- */

/* Tokens as they stand in the file: special ones as they are, others mapped by format_map_bytes. */
struct lexicon {
    struct vocab vocab;
    struct buf text; /* scratch */
    uint32_t byte_id[256];
};

static int add_new(struct lexicon *l, struct span s, uint32_t *id, struct err *e)
{
    int64_t there = vocab_find(&l->vocab, s);

    *id = there >= 0 ? (uint32_t)there : l->vocab.n;
    return there >= 0 ? 0 : vocab_add(&l->vocab, *id, s, e);
}

static int add_specials(struct lexicon *l, const struct train_options *x, struct err *e)
{
    uint32_t id;

    for (int i = 0; i < x->n_specials; i++) {
        if (!x->specials[i][0])
            return err_set(e, ERR_ARG, "a special token is empty");
        TRY(add_new(l, span_of(x->specials[i]), &id, e));
    }
    return 0;
}

/* The 256 bytes: by value, or in the order of the characters that stand for them. */
static int add_bytes(struct lexicon *l, bool by_value, struct err *e)
{
    for (int round = 0; round < 2; round++) /* first those that stand for themselves */
        for (int b = 0; b < 256; b++) {
            char c = (char)b;
            bool itself;
            buf_clear(&l->text);
            if (format_map_bytes((struct span){&c, 1}, &l->text) < 0)
                return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
            itself = l->text.n == 1 || (unsigned char)l->text.p[0] < 0xC4;
            if (by_value ? round == 0 : (round == 0) == itself)
                TRY(add_new(l, buf_span(&l->text), &l->byte_id[b], e));
        }
    return 0;
}

static int join_tokens(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e)
{
    struct lexicon *l = state;

    buf_clear(&l->text);
    if (buf_put_span(&l->text, vocab_get(&l->vocab, left)) < 0 || buf_put_span(&l->text, vocab_get(&l->vocab, right)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    return add_new(l, buf_span(&l->text), id, e);
}

/* ---- training ---- */

/* Different ones. */
static uint32_t count_specials(const struct train_options *x)
{
    uint32_t n = 0;

    for (int i = 0; i < x->n_specials; i++)
        n += !train_is_repeated(x, i);
    return n;
}

static int find_merges(struct train_words *w, struct lexicon *l, const struct train_options *x, struct buf *found,
                       struct err *e)
{
    struct merges_rules rules = {.target = x->vocab_size,
                                 .min_frequency = x->min_frequency,
                                 .max_length = x->max_length,
                                 .first_place = x->ties == TRAIN_TIES_TIKTOKEN,
                                 .join = join_tokens,
                                 .state = l,
                                 .pairs = x->memory / 2048 < PAIRS_MAX ? x->memory / 2048 : PAIRS_MAX};

    if (x->ties == TRAIN_TIES_TIKTOKEN) /* their places are kept */
        rules.target -= count_specials(x);
    return merges_find(&w->m, w->on_disk ? &w->file : NULL, &rules, &l->vocab.n, found, e);
}

static int check(const struct train_options *x, struct err *e)
{
    uint32_t least = 256 + count_specials(x);

    if (!x->output && !x->folder && !x->ranks)
        return err_set(e, ERR_ARG, "no file to write is named");
    if (x->memory < TRAIN_MEMORY_MIN)
        return err_set(e, ERR_ARG, "training takes at least %d MiB of memory", TRAIN_MEMORY_MIN >> 20);
    if (x->vocab_size < least)
        return err_set(e, ERR_ARG, "a vocabulary of %u has no room for 256 bytes and %u special tokens", x->vocab_size,
                       least - 256);
    return 0;
}

int train_tokenizer(char *const *paths, int n_paths, const struct train_options *x, struct train_result *r,
                    struct err *e)
{
    struct word_counts counts;
    struct train_words words = {0};
    struct lexicon l = {0};
    struct buf found = {0};
    bool specials_last = x->ties == TRAIN_TIES_TIKTOKEN;
    int rc;

    memset(r, 0, sizeof *r);
    TRY(check(x, e));
    rc = word_counts_make(&counts, paths, n_paths, x, r, e);
    if (rc == 0 && !specials_last)
        rc = add_specials(&l, x, e);
    if (rc == 0)
        rc = add_bytes(&l, x->ties == TRAIN_TIES_TIKTOKEN, e);
    if (rc == 0)
        rc = train_words_make(&words, &counts, x, l.byte_id, e);
    word_counts_free(&counts);
    if (rc == 0)
        rc = find_merges(&words, &l, x, &found, e);
    train_words_free(&words);
    if (rc == 0 && specials_last)
        rc = add_specials(&l, x, e);
    r->tokens = l.vocab.n;
    r->merges = (uint32_t)(found.n / sizeof(struct merge));
    if (rc == 0)
        rc = train_write(x, &l.vocab, l.byte_id, (const struct merge *)(const void *)found.p, r->merges, e);
    buf_free(&found);
    buf_free(&l.text);
    vocab_free(&l.vocab);
    return rc;
}
