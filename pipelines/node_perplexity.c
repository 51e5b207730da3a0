#include "pipelines/node_perplexity.h"

#include <stdlib.h>

enum { NO_WORD = UINT32_MAX }; /* a piece of nothing but white space, which divides words */

/* What the threads share. */
struct pieces {
    struct tokenizer *tokenizer;
    const struct ngram_model *model;
    uint32_t *word; /* the model's, of each id */
    int64_t unknown;
};
struct pieces_thread {
    struct encoder *enc;
    struct buf ids, unknown; /* unknown: the texts of unknown pieces, each with its NUL */
};

static uint32_t word_of(const struct ngram_model *m, struct span piece)
{
    for (size_t i = 0; i < piece.n; i++)
        if (piece.p[i] != ' ' && (piece.p[i] < '\t' || piece.p[i] > '\r'))
            return ngram_word(m, piece);
    return NO_WORD;
}

static int pieces_begin(void *arg, const struct ngram_model *m, struct err *e)
{
    struct pieces *p = arg;
    uint32_t n = tokenizer_vocab_size(p->tokenizer);

    p->model = m;
    p->word = calloc((size_t)n + 1, sizeof *p->word);
    if (!p->word)
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer's pieces");
    for (uint32_t i = 0; i < n; i++)
        p->word[i] = word_of(m, tokenizer_bytes(p->tokenizer, i));
    return 0;
}

static int pieces_thread_open(void *arg, void **thread, struct err *e)
{
    struct pieces *p = arg;
    struct pieces_thread *t = *thread = calloc(1, sizeof *t);

    if (t)
        t->enc = encoder_new(p->tokenizer);
    if (!t || !t->enc)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    encoder_tell_unknown(t->enc, &t->unknown);
    return 0;
}

static void pieces_thread_close(void *arg, void *thread)
{
    struct pieces_thread *t = thread;

    (void)arg;
    encoder_free(t->enc);
    buf_free(&t->ids);
    buf_free(&t->unknown);
    free(t);
}

static int pieces_cut(void *arg, void *thread, struct span sentence, struct buf *words, struct err *e)
{
    const struct pieces *p = arg;
    struct pieces_thread *t = thread;
    const uint32_t *id;
    uint32_t *out;
    size_t n, at = 0;

    buf_clear(&t->ids);
    buf_clear(&t->unknown);
    TRY(encoder_encode(t->enc, sentence, 0, sizeof *id, &t->ids, e));
    n = t->ids.n / sizeof *id;
    if (buf_reserve(words, t->ids.n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the words of a document");
    id = (const uint32_t *)(const void *)t->ids.p;
    out = (uint32_t *)(void *)(words->p + words->n);
    for (size_t i = 0; i < n; i++) {
        uint32_t w = p->word[id[i]];
        if (id[i] == p->unknown && at < t->unknown.n) {
            struct span text = span_of(t->unknown.p + at);
            w = word_of(p->model, text);
            at += text.n + 1;
        }
        if (w != NO_WORD)
            *out++ = w;
    }
    words->n = (size_t)((char *)out - words->p);
    return 0;
}

static void pieces_close(void *arg)
{
    struct pieces *p = arg;

    tokenizer_close(p->tokenizer);
    free(p->word);
    free(p);
}

static const struct perplexity_words pieces_words = {pieces_begin, pieces_thread_open, pieces_thread_close, pieces_cut,
                                                     pieces_close};

void lm_conf_init(struct lm_conf *c)
{
    *c = (struct lm_conf){.tokenizer = NULL};
    perplexity_conf_init(&c->lm);
}

static int open_tokenizer(struct pieces *p, const struct lm_conf *c, struct err *e)
{
    TRY(tokenizer_open_as(&p->tokenizer, c->tokenizer, &c->settings, e));
    p->unknown = tokenizer_unknown(p->tokenizer);
    if (strcmp(tokenizer_facts(p->tokenizer).format, "SentencePiece model") != 0)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is no SentencePiece model: its tokens have no names that a language model knows",
                       c->tokenizer);
    return 0;
}

int lm_stage_open(struct stage *s, const struct lm_conf *c, struct err *e)
{
    struct perplexity_conf lm = c->lm;
    struct pieces *p;
    int rc;

    if (!c->tokenizer)
        return perplexity_stage_open(s, &lm, e);
    p = calloc(1, sizeof *p);
    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer's pieces");
    rc = open_tokenizer(p, c, e);
    if (rc < 0) {
        pieces_close(p);
        return rc;
    }
    lm.words = &pieces_words;
    lm.arg = p;
    return perplexity_stage_open(s, &lm, e);
}
