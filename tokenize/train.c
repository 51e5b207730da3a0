#include "tokenize/train.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "tokenize/merges.h"
#include "tokenize/train_symbols.h"
#include "tokenize/train_unigram.h"
#include "tokenize/train_words.h"
#include "tokenize/train_write.h"

static int find_merges(struct train_words *w, struct train_symbols *s, const struct train_options *x, uint32_t target,
                       struct buf *found, struct err *e)
{
    struct merges_rules rules = {.target = target,
                                 .min_frequency = x->min_frequency,
                                 .max_length = x->max_length || !s->kind->longest ? x->max_length : s->kind->longest + 1,
                                 .first_place = x->ties == TRAIN_TIES_TIKTOKEN,
                                 .join = train_symbols_join,
                                 .state = s,
                                 .pairs = train_pairs(x)};

    return merges_find(&w->m, w->on_disk ? &w->file : NULL, &rules, &s->vocab.n, found, e);
}

/* Tokens within words: by merges, or the pieces of Unigram. */
static int train_in_words(char *const *paths, int n_paths, const struct train_options *x, struct train_symbols *s,
                          struct buf *found, struct train_result *r, struct err *e)
{
    uint32_t target = train_kinds[x->model].across ? x->subwords : x->vocab_size;
    bool scored = train_kinds[x->model].scored;
    struct train_unigram unigram = {0};
    struct train_words words = {0};
    struct word_counts counts;
    int rc = word_counts_make(&counts, paths, n_paths, NULL, x, r, e);

    if (x->ties == TRAIN_TIES_TIKTOKEN) /* their places are kept */
        target -= train_specials(x);
    if (rc == 0)
        rc = train_symbols_make(s, &counts, x, e);
    if (rc == 0)
        rc = scored ? train_unigram_read(&unigram, &counts, x, e) : train_words_make(&words, &counts, x, s, e);
    word_counts_free(&counts);
    if (rc == 0)
        rc = scored ? train_unigram_find(&unigram, x, s, e) : find_merges(&words, s, x, target, found, e);
    train_words_free(&words);
    train_unigram_free(&unigram);
    return rc;
}

/* ---- merges across words ---- */

/* The words in each token there is: 1 if it begins with a space.  NULL: out of memory. */
static uint32_t *count_words_in(const struct vocab *v)
{
    static const char space[] = "\xc4\xa0"; /* as byte-level tokens write it */
    uint32_t *n = malloc((v->n + 1) * sizeof *n);

    for (uint32_t id = 0; n && id < v->n; id++) {
        struct span s = vocab_get(v, id);
        n[id] = s.n >= 2 && memcmp(s.p, space, 2) == 0;
    }
    return n;
}

static int find_across(struct train_words *w, struct train_symbols *s, const struct train_options *x, struct buf *found,
                       struct err *e)
{
    struct merges_rules rules = {.target = x->vocab_size,
                                 .min_frequency = x->min_frequency < 2 ? 2 : x->min_frequency,
                                 .max_length = ACROSS_WORDS + 1,
                                 .lengths = count_words_in(&s->vocab),
                                 .join = train_symbols_join_new,
                                 .state = s,
                                 .pairs = train_pairs(x)};
    int rc = rules.lengths ? merges_find(&w->m, w->on_disk ? &w->file : NULL, &rules, &s->vocab.n, found, e)
                           : err_set(e, ERR_NOMEM, "out of memory for %u tokens", s->vocab.n);

    free((uint32_t *)(uintptr_t)rules.lengths);
    return rc;
}

/* More merges, of the tokens that words have become. */
static int train_across_words(char *const *paths, int n_paths, const struct train_options *x, struct train_symbols *s,
                              struct buf *found, uint64_t bytes, struct err *e)
{
    struct word_counts counts = {.words = {.fd = -1}};
    struct train_across across = {0};
    struct train_words words = {0};
    struct train_options quiet = *x; /* bad lines have been told of */
    struct train_result again = {0};
    struct buf json = {0};
    int rc = train_write_json(&json, train_pattern(x), x, s, (const struct merge *)(const void *)found->p,
                              found->n / sizeof(struct merge), e);

    quiet.bad = NULL;
    if (rc == 0)
        rc = train_across_open(&across, buf_span(&json), s->kind->across, bytes, x->sample ? x->sample : bytes, e);
    buf_free(&json);
    if (rc == 0)
        rc = word_counts_make(&counts, paths, n_paths, &across, &quiet, &again, e);
    train_across_close(&across);
    s->across = true;
    if (rc == 0)
        rc = train_words_make(&words, &counts, x, s, e);
    word_counts_free(&counts);
    if (rc == 0)
        rc = find_across(&words, s, x, found, e);
    train_words_free(&words);
    return rc;
}

/* Each file is read twice. */
static int check_files(char *const *paths, int n_paths, struct err *e)
{
    struct stat st;

    for (int i = 0; i < n_paths; i++)
        if (strcmp(paths[i], "-") == 0 || (stat(paths[i], &st) == 0 && !S_ISREG(st.st_mode)))
            return err_set(e, ERR_ARG, "'%s' is no regular file: merges across words read their input twice", paths[i]);
    return n_paths ? 0 : err_set(e, ERR_ARG, "merges across words read their input twice: name files");
}

static int check_across(char *const *paths, int n_paths, const struct train_options *x, struct err *e)
{
    if (x->folder || x->ranks || x->max_length || x->ties != TRAIN_TIES_HUGGINGFACE)
        return err_set(e, ERR_ARG, "merges across words have no merges.txt, ranks, longest token or ties of tiktoken");
    if (x->subwords > x->vocab_size || x->subwords < 256 + train_specials(x))
        return err_set(e, ERR_ARG, "%u of %u tokens cannot be made within words", x->subwords, x->vocab_size);
    return check_files(paths, n_paths, e);
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
    struct train_symbols s = {0};
    struct buf found = {0};
    int rc;

    memset(r, 0, sizeof *r);
    TRY(check(x, e));
    if (train_kinds[x->model].across)
        TRY(check_across(paths, n_paths, x, e));
    rc = train_in_words(paths, n_paths, x, &s, &found, r, e);
    if (rc == 0 && s.kind->across)
        rc = train_across_words(paths, n_paths, x, &s, &found, r->bytes, e);
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
