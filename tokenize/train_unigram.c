#include "tokenize/train_unigram.h"

#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { ROUNDS = 2 }; /* of expectation and maximisation between two prunings */

static size_t n_chars(const struct train_unigram *t)
{
    return t->chars.n / sizeof(struct train_char);
}

static struct train_char *all_chars(const struct train_unigram *t)
{
    return (struct train_char *)(void *)t->chars.p;
}

int train_unigram_read(struct train_unigram *t, struct word_counts *words, const struct train_options *x, struct err *e)
{
    t->u.memory = x->memory;
    t->u.threads = x->threads;
    TRY(train_chars_choose(words, x->coverage, UNIGRAM_RARE, &t->chars, e));
    return unigram_words_make(&t->u, words, all_chars(t), n_chars(t), e);
}

/* ---- the vocabulary ---- */

struct token {
    float score;
    struct span text;
};

static int by_score(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    size_t n = x->text.n < y->text.n ? x->text.n : y->text.n;
    int order;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    order = memcmp(x->text.p, y->text.p, n);
    return order ? order : (x->text.n > y->text.n) - (x->text.n < y->text.n);
}

/* Tokens of all characters.  Those that are pieces no more get the lowest score and a little more, the rarer the more.
 * scores: of characters that are pieces, by code point, else NaN; text: room for 4 bytes a character. */
static void take_chars(const struct train_unigram *t, const float *scores, char *text, struct token *v)
{
    const struct train_char *c = all_chars(t);
    float more = 0;

    for (size_t i = 0; i < n_chars(t); i++, text += 4) {
        v[i] = (struct token){scores[c[i].cp], {text, (size_t)utf8_put(text, c[i].cp)}};
        if (isnan(v[i].score)) {
            v[i].score = t->u.least + more;
            more += 0.0001f;
        }
    }
}

/* The pieces of several characters, the best first; their number.  Scores of the others to scores, by code point. */
static size_t part_pieces(const struct unigram_train *u, float *scores, struct token *v)
{
    size_t n = 0;
    uint32_t cp;

    for (uint32_t id = 0; id < u->n; id++) {
        struct token x = {u->pieces[id].score, unigram_text_of(u, &u->pieces[id])};
        utf8_next(x.text.p, x.text.p + x.text.n, &cp);
        if (u->pieces[id].chars > 1)
            v[n++] = x;
        else
            scores[cp] = x.score;
    }
    qsort(v, n, sizeof *v, by_score);
    return n;
}

static int give_tokens(const struct token *v, size_t n, struct train_symbols *s, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (vocab_find(&s->vocab, v[i].text) >= 0) /* a special token */
            continue;
        TRY(vocab_add(&s->vocab, s->vocab.n, v[i].text, e));
        if (buf_put(&s->scores, &v[i].score, sizeof v[i].score) < 0)
            return unigram_no_memory(e);
    }
    return 0;
}

/* All characters and the best of the other pieces, as many as there is room for. */
static int choose_tokens(const struct train_unigram *t, size_t room, struct train_symbols *s, struct err *e)
{
    enum { CODE_POINTS = 0x110000 };
    size_t n = n_chars(t), n_rest;
    char *text = malloc(4 * n + 4);
    float *scores = malloc(CODE_POINTS * sizeof *scores);
    struct token *v = malloc((n + t->u.n + 1) * sizeof *v), *rest = malloc((t->u.n + 1) * sizeof *rest);
    int rc = text && scores && v && rest ? 0 : unigram_no_memory(e);

    if (rc == 0) {
        for (uint32_t cp = 0; cp < CODE_POINTS; cp++)
            scores[cp] = NAN;
        n_rest = part_pieces(&t->u, scores, rest);
        take_chars(t, scores, text, v);
        for (size_t i = 0; i < n_rest && n < room; i++)
            v[n++] = rest[i];
        qsort(v, n, sizeof *v, by_score);
        rc = give_tokens(v, n, s, e);
    }
    free(text);
    free(scores);
    free(v);
    free(rest);
    return rc;
}

int train_unigram_find(struct train_unigram *t, const struct train_options *x, struct train_symbols *s, struct err *e)
{
    struct unigram_train *u = &t->u;
    uint32_t desired = (uint32_t)(x->vocab_size * 1.1), before = 0;

    if (s->vocab.n + n_chars(t) > x->vocab_size)
        return train_no_room(s->vocab.n + (uint32_t)n_chars(t), x->vocab_size, e);
    if (u->n_words)
        TRY(unigram_seed(u, all_chars(t), n_chars(t), e));
    while (u->n && u->n != before) {
        for (int i = 0; i < ROUNDS && u->n; i++)
            TRY(unigram_em(u, e));
        if (u->n <= desired)
            break;
        before = u->n;
        TRY(unigram_prune(u, desired, e));
    }
    return choose_tokens(t, x->vocab_size - s->vocab.n, s, e);
}

void train_unigram_free(struct train_unigram *t)
{
    unigram_train_free(&t->u);
    buf_free(&t->chars);
}
