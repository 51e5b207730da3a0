#include "tokenize/train.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/pool.h"
#include "tokenize/merges.h"
#include "tokenize/model.h"
#include "tokenize/tally.h"
#include "tokenize/train_write.h"

/* ---- counting words ---- */

enum { ENDS = 1024 };

struct counting {
    const struct train_options *x;
    struct corpus corpus;
    struct split split;
    struct gate read;
    struct tally *tally; /* one a thread */
    uint64_t texts, bytes, bad; /* under the read gate's order, see count_texts */
    uint64_t next;
    pthread_mutex_t lock;
    struct err err;
    int rc;
};

static void fail(struct counting *c, int rc, const struct err *e)
{
    pthread_mutex_lock(&c->lock);
    if (c->rc == 0) {
        c->rc = rc;
        c->err = *e;
    }
    pthread_mutex_unlock(&c->lock);
    gate_stop(&c->read);
}

static int count_words(const struct split *split, struct tally *t, struct span text, struct err *e)
{
    struct split_state st = {.text = (const uint8_t *)text.p, .n = text.n};
    uint32_t ends[ENDS], begin = 0;
    int64_t n;

    if (text.n > INT32_MAX)
        return err_set(e, ERR_FORMAT, "the text is longer than 2 GiB");
    while ((n = split_next(split, &st, ends, ENDS, e)) > 0) {
        for (int64_t i = 0; i < n; i++) {
            if (tally_add(t, st.text + begin, ends[i] - begin, 1) < 0)
                return err_set(e, ERR_NOMEM, "out of memory for words");
            begin = ends[i];
        }
    }
    return n < 0 ? (int)n : 0;
}

/* The words of a block; its bad lines are told at once: their order among threads is free,
 * so the caller gets them under the lock. */
static int count_block(struct counting *c, struct corpus_block *b, struct corpus_reader *r, struct tally *t,
                       struct err *e)
{
    uint64_t texts = 0, bytes = 0;

    for (size_t i = 0; i < b->n; i++) {
        struct span text;
        int rc = corpus_text(&c->corpus, b, i, r, &text, e);
        if (rc == ERR_FORMAT) {
            pthread_mutex_lock(&c->lock);
            c->bad++;
            if (c->x->bad)
                c->x->bad(corpus_line(b, i), e);
            pthread_mutex_unlock(&c->lock);
            continue;
        }
        TRY(rc);
        TRY(count_words(&c->split, t, text, e));
        texts++;
        bytes += text.n;
    }
    pthread_mutex_lock(&c->lock);
    c->texts += texts;
    c->bytes += bytes;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static void count_thread(void *arg, int thread)
{
    struct counting *c = arg;
    struct corpus_block b = {0};
    struct corpus_reader r;
    struct err e;
    int rc = corpus_reader_init(&r, &e);

    while (rc == 0) {
        uint64_t ticket = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
        if (gate_enter(&c->read, ticket) < 0)
            break;
        rc = corpus_fill(&c->corpus, &b, &e);
        gate_leave(&c->read);
        if (rc < 0 || b.n == 0)
            break;
        rc = count_block(c, &b, &r, &c->tally[thread], &e);
    }
    if (rc < 0)
        fail(c, rc, &e);
    corpus_reader_free(&r);
    corpus_block_free(&b);
}

/* The tallies of all threads together in the first. */
static int sum_tallies(struct tally *t, int n)
{
    for (int k = 1; k < n; k++) {
        for (uint64_t i = 0; t[k].entries && i <= t[k].mask; i++) {
            const struct tally_entry *x = &t[k].entries[i];
            struct span s = tally_word(&t[k], x);
            if (x->count)
                TRY(tally_add(&t[0], (const uint8_t *)s.p, s.n, x->count));
        }
        tally_free(&t[k]);
    }
    return 0;
}

static int count_corpus(char *const *paths, int n_paths, const struct train_options *x, struct tally *tally,
                        struct train_result *r, struct err *e)
{
    struct counting c = {.x = x, .tally = tally};
    int rc = split_find(&c.split, x->pattern ? x->pattern : "gpt2", e);

    if (rc < 0)
        return rc;
    rc = corpus_open(&c.corpus, paths, n_paths, CORPUS_AUTO, x->key, e);
    gate_init(&c.read);
    pthread_mutex_init(&c.lock, NULL);
    if (rc == 0)
        rc = pool_run(x->threads, count_thread, &c, e);
    if (rc == 0 && (rc = c.rc) < 0)
        *e = c.err;
    if (rc == 0 && sum_tallies(tally, x->threads) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for words");
    pthread_mutex_destroy(&c.lock);
    gate_destroy(&c.read);
    corpus_close(&c.corpus);
    split_free(&c.split);
    r->texts = c.texts;
    r->bytes = c.bytes;
    r->bad = c.bad;
    r->words = tally->n;
    return rc;
}

/* ---- tokens ---- */

/* Tokens as they stand in the file: special ones as they are, others mapped by format_map_bytes. */
struct lexicon {
    struct vocab vocab;
    struct buf text; /* scratch */
    uint32_t byte_id[256];
    struct err *e;
};

static int add_new(struct lexicon *l, struct span s, uint32_t *id, struct err *e)
{
    int64_t there = vocab_find(&l->vocab, s);

    *id = there >= 0 ? (uint32_t)there : l->vocab.n;
    return there >= 0 ? 0 : vocab_add(&l->vocab, *id, s, e);
}

/* Special tokens, then the 256 bytes in the order of the characters that stand for them. */
static int add_alphabet(struct lexicon *l, const struct train_options *x, struct err *e)
{
    uint32_t id;

    for (int i = 0; i < x->n_specials; i++) {
        if (!x->specials[i][0])
            return err_set(e, ERR_ARG, "a special token is empty");
        TRY(add_new(l, span_of(x->specials[i]), &id, e));
    }
    for (int round = 0; round < 2; round++) /* first those that stand for themselves */
        for (int b = 0; b < 256; b++) {
            char c = (char)b;
            buf_clear(&l->text);
            if (format_map_bytes((struct span){&c, 1}, &l->text) < 0)
                return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
            if ((round == 0) == (l->text.n == 1 || (unsigned char)l->text.p[0] < 0xC4))
                TRY(add_new(l, buf_span(&l->text), &l->byte_id[b], e));
        }
    return 0;
}

static int join_tokens(void *state, uint32_t left, uint32_t right, uint32_t *id)
{
    struct lexicon *l = state;

    buf_clear(&l->text);
    TRY(buf_put_span(&l->text, vocab_get(&l->vocab, left)));
    TRY(buf_put_span(&l->text, vocab_get(&l->vocab, right)));
    return add_new(l, buf_span(&l->text), id, l->e);
}

/* The words of a tally as symbols. */
static int make_words(const struct tally *t, const struct lexicon *l, struct merges_words *w, struct err *e)
{
    uint64_t total = 0, at = 0;

    if (t->n >= UINT32_MAX)
        return err_set(e, ERR_LIMIT, "more than 2^32 distinct words");
    for (uint64_t i = 0; t->entries && i <= t->mask; i++)
        total += t->entries[i].count ? tally_word(t, &t->entries[i]).n : 0;
    w->symbols = malloc((total + 1) * sizeof *w->symbols);
    w->start = malloc((t->n + 1) * sizeof *w->start);
    w->count = malloc((t->n + 1) * sizeof *w->count);
    if (!w->symbols || !w->start || !w->count)
        return err_set(e, ERR_NOMEM, "out of memory for %llu words", (unsigned long long)t->n);
    for (uint64_t i = 0; t->entries && i <= t->mask; i++) {
        struct span s = tally_word(t, &t->entries[i]);
        if (!t->entries[i].count)
            continue;
        w->start[w->n] = at;
        w->count[w->n++] = (int64_t)t->entries[i].count;
        for (size_t j = 0; j < s.n; j++)
            w->symbols[at++] = l->byte_id[(unsigned char)s.p[j]];
    }
    w->start[w->n] = at;
    return 0;
}

int train_tokenizer(char *const *paths, int n_paths, const struct train_options *x, const char *output,
                    struct train_result *r, struct err *e)
{
    struct tally *tally = calloc((size_t)x->threads, sizeof *tally);
    struct merges_words words = {0};
    struct lexicon l = {.e = e};
    struct buf found = {0};
    int rc;

    memset(r, 0, sizeof *r);
    if (!tally)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = count_corpus(paths, n_paths, x, tally, r, e);
    if (rc == 0)
        rc = add_alphabet(&l, x, e);
    if (rc == 0)
        rc = make_words(tally, &l, &words, e);
    for (int i = 0; i < x->threads; i++)
        tally_free(&tally[i]);
    free(tally);
    if (rc == 0)
        rc = merges_find(&words, x->min_frequency, x->vocab_size, &l.vocab.n, join_tokens, &l, &found, e);
    if (rc == 0)
        rc = train_write(output, x, &l.vocab, (const struct merge *)(const void *)found.p,
                         found.n / sizeof(struct merge), &r->merges, e);
    r->tokens = l.vocab.n;
    free(words.symbols);
    free(words.start);
    free(words.count);
    buf_free(&found);
    buf_free(&l.text);
    vocab_free(&l.vocab);
    return rc;
}
