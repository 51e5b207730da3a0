#include "tokenize/train.h"

#include "tokenize/merges.h"
#include "tokenize/train_symbols.h"
#include "tokenize/train_unigram.h"
#include "tokenize/train_words.h"
#include "tokenize/train_write.h"

enum { PAIRS_MAX = 1 << 17 }; /* looked after at a time */

static int find_merges(struct train_words *w, struct train_symbols *s, const struct train_options *x, struct buf *found,
                       struct err *e)
{
    struct merges_rules rules = {.target = x->vocab_size,
                                 .min_frequency = x->min_frequency,
                                 .max_length = x->max_length || !s->kind->longest ? x->max_length : s->kind->longest + 1,
                                 .first_place = x->ties == TRAIN_TIES_TIKTOKEN,
                                 .join = train_symbols_join,
                                 .state = s,
                                 .pairs = x->memory / 2048 < PAIRS_MAX ? x->memory / 2048 : PAIRS_MAX};

    if (x->ties == TRAIN_TIES_TIKTOKEN) /* their places are kept */
        rules.target -= train_specials(x);
    return merges_find(&w->m, w->on_disk ? &w->file : NULL, &rules, &s->vocab.n, found, e);
}

static int check(const struct train_options *x, struct err *e)
{
    const struct train_kind *kind = &train_kinds[x->model];
    uint32_t specials = train_specials(x);

    if (!x->output && !x->folder && !x->ranks && !x->spm)
        return err_set(e, ERR_ARG, "no file to write is named");
    if (kind->characters && (x->folder || x->ranks || x->pattern || x->ties != TRAIN_TIES_HUGGINGFACE))
        return err_set(e, ERR_ARG, "vocab.json and merges.txt, ranks, a pattern and the ties of tiktoken are for BPE of bytes");
    if (x->spm && x->model != TRAIN_BYTE_FALLBACK && !kind->scored)
        return err_set(e, ERR_ARG, "a SentencePiece model is for BPE with byte fallback and for Unigram");
    if (kind->scored && (x->min_frequency || x->max_length))
        return err_set(e, ERR_ARG, "Unigram has no least frequency of pairs, and its tokens have at most %d characters",
                       UNIGRAM_LONGEST);
    if (kind->scored && !unigram_seed_can())
        return err_set(e, ERR_UNSUPPORTED, "Unigram needs libdivsufsort, which this build does without");
    if (x->byte_fallback && !kind->scored)
        return err_set(e, ERR_ARG, "byte fallback is an option of Unigram; of BPE it is a model (byte-fallback)");
    if (x->memory < TRAIN_MEMORY_MIN)
        return err_set(e, ERR_ARG, "training takes at least %d MiB of memory", TRAIN_MEMORY_MIN >> 20);
    if (!kind->characters && x->vocab_size < 256 + specials)
        return err_set(e, ERR_ARG, "a vocabulary of %u has no room for 256 bytes and %u special tokens", x->vocab_size,
                       specials);
    return 0;
}

int train_tokenizer(char *const *paths, int n_paths, const struct train_options *x, struct train_result *r,
                    struct err *e)
{
    struct word_counts counts;
    struct train_words words = {0};
    struct train_unigram unigram = {0};
    bool scored = train_kinds[x->model].scored;
    struct train_symbols s = {0};
    struct buf found = {0};
    int rc;

    memset(r, 0, sizeof *r);
    TRY(check(x, e));
    rc = word_counts_make(&counts, paths, n_paths, x, r, e);
    if (rc == 0)
        rc = train_symbols_make(&s, &counts, x, e);
    if (rc == 0)
        rc = scored ? train_unigram_read(&unigram, &counts, x, e) : train_words_make(&words, &counts, x, &s, e);
    word_counts_free(&counts);
    if (rc == 0)
        rc = scored ? train_unigram_find(&unigram, x, &s, e) : find_merges(&words, &s, x, &found, e);
    train_words_free(&words);
    train_unigram_free(&unigram);
    if (rc == 0)
        rc = train_symbols_end(&s, x, e);
    r->tokens = s.vocab.n;
    r->merges = (uint32_t)(found.n / sizeof(struct merge));
    if (rc == 0)
        rc = train_write(x, &s, (const struct merge *)(const void *)found.p, r->merges, e);
    buf_free(&found);
    train_symbols_free(&s);
    return rc;
}
