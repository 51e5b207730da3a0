#include "pipelines/node_model.h"

#include <math.h>
#include <stdlib.h>

#include "curate/language/perplexity.h"

enum { BATCH = 1 << 16 /* tokens, of whole documents, that are asked about together */ };

/* Of a document. */
struct answer {
    double log10;
    uint64_t tokens;
};
/* One that is yet to be asked about: where its ids begin, that of what it follows first. */
struct waiting {
    size_t at, n;
};

struct by_model {
    struct by_model_conf conf;
    struct perplexity_fields fields;
    struct tokenizer *tokenizer;
    struct word_share *share;
    struct scorer *scorer;
    int32_t before;          /* the id that each text follows */
    struct buf ids, waiting; /* int32_t, struct waiting */
    struct answer *answer;   /* of the documents in order */
    size_t n, cap;
};
struct by_model_thread {
    struct encoder *enc;
    struct buf ids;
};

static int short_of_memory(struct err *e) { return err_set(e, ERR_NOMEM, "no memory for the tokens of a document"); }

/* ---- documents to ids ---- */

static int by_model_thread_open(void *stage, void **thread, struct err *e)
{
    struct by_model *s = stage;
    struct by_model_thread *t = *thread = calloc(1, sizeof *t);

    if (t)
        t->enc = encoder_new(s->tokenizer);
    if (!t || !t->enc)
        return short_of_memory(e);
    encoder_share(t->enc, s->share);
    return 0;
}

static void by_model_thread_close(void *stage, void *thread)
{
    struct by_model_thread *t = thread;

    (void)stage;
    encoder_free(t->enc);
    buf_free(&t->ids);
    free(t);
}

static int by_model_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct by_model_thread *t = thread;

    (void)stage, (void)v;
    buf_clear(&t->ids);
    TRY(encoder_encode(t->enc, d->text, ENCODER_SPECIAL, sizeof(uint32_t), &t->ids, e));
    *note = arena_dup(d->arena, buf_span(&t->ids));
    return note->p ? 0 : short_of_memory(e);
}

/* ---- ids to answers ---- */

/* How many windows a document of n ids has, that of what it follows among them. */
static size_t windows_of(size_t n, size_t length) { return (n - 1 + length - 1) / length; }

/* As an evaluation's texts: each window scores as many tokens as the model sees, the last one what is left, and sees as much
 * before that as it can. */
static struct likelihood *put_windows(struct likelihood *r, const int32_t *ids, size_t n, size_t length)
{
    for (size_t at = 1, end, start; at < n; at = end) {
        end = n - at < length ? n : at + length;
        start = at == 1 ? 0 : end - length - 1;
        *r++ = (struct likelihood){.ids = ids + start, .n = (int64_t)(end - start), .from = (int64_t)(at - start)};
    }
    return r;
}

/* Asks about all that wait. */
static int ask(struct by_model *s, struct err *e)
{
    const struct waiting *w = (const struct waiting *)(const void *)s->waiting.p;
    size_t n = s->waiting.n / sizeof *w, length = (size_t)scorer_length(s->scorer), windows = 0;
    const int32_t *ids = (const int32_t *)(const void *)s->ids.p;
    struct likelihood *r, *to;
    int rc;

    for (size_t i = 0; i < n; i++)
        windows += windows_of(w[i].n, length);
    to = r = calloc(windows + 1, sizeof *r);
    if (!r)
        return short_of_memory(e);
    for (size_t i = 0; i < n; i++)
        to = put_windows(to, ids + w[i].at, w[i].n, length);
    rc = scorer_ask(s->scorer, r, (int64_t)windows, e);
    to = r;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct answer *a = &s->answer[s->n - n + i];
        double sum = 0;
        for (size_t k = windows_of(w[i].n, length); k > 0; k--)
            sum += to++->sum;
        *a = (struct answer){sum / M_LN10, w[i].n - 1};
    }
    free(r);
    buf_clear(&s->ids);
    buf_clear(&s->waiting);
    return rc;
}

static int by_model_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct by_model *s = stage;
    struct waiting w = {s->ids.n / sizeof s->before, note.n / sizeof s->before + 1};

    (void)v, (void)reply, (void)a;
    if (note.n % sizeof s->before)
        return err_set(e, ERR_FORMAT, "a note of tokens has %zu bytes", note.n);
    if (buf_put(&s->ids, &s->before, sizeof s->before) < 0 || buf_put_span(&s->ids, note) < 0 ||
        buf_put(&s->waiting, &w, sizeof w) < 0 || mem_grow(&s->answer, &s->cap, s->n + 1, sizeof *s->answer) < 0)
        return short_of_memory(e);
    s->n++;
    return s->ids.n / sizeof s->before >= BATCH ? ask(s, e) : 0;
}

static int by_model_resolve(void *stage, int jobs, struct err *e)
{
    (void)jobs;
    return ask(stage, e);
}

static int by_model_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    const struct by_model *s = stage;

    (void)v;
    if (n >= s->n)
        return err_set(e, ERR_FORMAT, "a document without a note of its tokens");
    *reply = arena_dup(a, (struct span){(const char *)&s->answer[n], sizeof *s->answer});
    return reply->p ? 0 : short_of_memory(e);
}

static int by_model_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    const struct by_model *s = stage;
    struct answer a;
    double x;

    (void)thread;
    if (reply.n != sizeof a)
        return err_set(e, ERR_FORMAT, "an answer about a document has %zu bytes", reply.n);
    memcpy(&a, reply.p, sizeof a);
    if (perplexity_fields_set(&s->fields, d, a.log10, a.tokens, &x) < 0 ||
        doc_set_num(d, s->fields.bits, a.tokens ? -a.log10 * M_LN10 / M_LN2 / (double)d->text.n : NAN) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a document");
    perplexity_bound(s->conf.least, s->conf.most, x, v);
    return 0;
}

/* ---- the stage ---- */

static void by_model_close(void *stage)
{
    struct by_model *s = stage;

    scorer_close(s->scorer);
    word_share_free(s->share);
    if (s->tokenizer)
        tokenizer_close(s->tokenizer);
    perplexity_fields_close(&s->fields);
    buf_free(&s->ids);
    buf_free(&s->waiting);
    free(s->answer);
    free(s);
}

static const struct stage_ops ops = {
    .name = "perplexity model",
    .thread_open = by_model_thread_open, .thread_close = by_model_thread_close,
    .work = by_model_work, .commit = by_model_commit, .resolve = by_model_resolve, .judge = by_model_judge,
    .apply = by_model_apply, .close = by_model_close,
};

void by_model_conf_init(struct by_model_conf *c)
{
    *c = (struct by_model_conf){.scorer = {.step = -1, .rows = 4}, .field = "perplexity"};
}

static int open_all(struct by_model *s, struct err *e)
{
    const struct by_model_conf *c = &s->conf;
    int64_t before;

    if (!c->scorer.load)
        return err_set(e, ERR_ARG, "which model? (--load DIR)");
    if (!c->tokenizer)
        return err_set(e, ERR_ARG, "the model's tokenizer is needed (--tokenizer FILE)");
    TRY(perplexity_fields_open(&s->fields, c->field, e));
    TRY(perplexity_check_bounds(c->least, c->most, e));
    TRY(tokenizer_open_as(&s->tokenizer, c->tokenizer, &c->settings, e));
    before = c->bos ? tokenizer_find(s->tokenizer, span_of(c->bos)) : tokenizer_eod(s->tokenizer);
    if (before < 0)
        return err_set(e, ERR_ARG, c->bos ? "the tokenizer has no token '%s'"
                                          : "the tokenizer names no end of document: bos-token has to say what texts follow",
                       c->bos);
    s->before = (int32_t)before;
    TRY(scorer_open(&s->scorer, &c->scorer, e));
    if ((int64_t)tokenizer_vocab_size(s->tokenizer) > scorer_vocab(s->scorer))
        return err_set(e, ERR_ARG, "'%s' has %u tokens, the model of '%s' %lld", c->tokenizer, tokenizer_vocab_size(s->tokenizer),
                       c->scorer.load, (long long)scorer_vocab(s->scorer));
    s->share = word_share_new(); /* faster with it, but as good without */
    return 0;
}

int by_model_stage_open(struct stage *s, const struct by_model_conf *c, struct err *e)
{
    struct by_model *m = calloc(1, sizeof *m);
    int rc;

    if (!m)
        return short_of_memory(e);
    m->conf = *c;
    rc = open_all(m, e);
    if (rc < 0) {
        by_model_close(m);
        return rc;
    }
    *s = (struct stage){&ops, m};
    return 0;
}
