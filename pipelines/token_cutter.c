#include "pipelines/token_cutter.h"

#include <stdlib.h>

#include "tokenize/tokenizer.h"

struct cutter {
    struct tokenizer *tokenizer;
    struct word_share *share;
};
struct cutter_thread {
    const struct tokenizer *tokenizer;
    struct encoder *enc;
    struct buf ids;
};

static void cutter_close(void *arg)
{
    struct cutter *c = arg;

    if (!c)
        return;
    word_share_free(c->share);
    tokenizer_close(c->tokenizer);
    free(c);
}

static int cutter_open(void **arg, const char *path, struct err *e)
{
    struct cutter *c = calloc(1, sizeof *c);
    int rc = c ? tokenizer_open(&c->tokenizer, path, NULL, e) : err_set(e, ERR_NOMEM, "out of memory for a tokenizer");

    if (rc < 0) {
        cutter_close(c);
        return rc;
    }
    c->share = word_share_new(); /* faster with it, but as good without */
    *arg = c;
    return 0;
}

static void cutter_thread_close(void *thread)
{
    struct cutter_thread *t = thread;

    if (!t)
        return;
    encoder_free(t->enc);
    buf_free(&t->ids);
    free(t);
}

static int cutter_thread_open(void *arg, void **thread, struct err *e)
{
    const struct cutter *c = arg;
    struct cutter_thread *t = calloc(1, sizeof *t);

    if (t)
        t->enc = encoder_new(c->tokenizer);
    if (!t || !t->enc) {
        cutter_thread_close(t);
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    }
    t->tokenizer = c->tokenizer;
    encoder_share(t->enc, c->share);
    *thread = t;
    return 0;
}

/* Each token must be the bytes of the text that come next. */
static int place_tokens(const struct cutter_thread *c, struct dedup_tokens *t, struct span text, struct err *e)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n; i++) {
        struct span token = tokenizer_bytes(c->tokenizer, t->hash[i]);
        if (token.n > text.n - at || (token.n && memcmp(token.p, text.p + at, token.n) != 0))
            return err_set(e, ERR_FORMAT, "its tokens are not its text at byte %zu: a tokenizer that changes texts does not say "
                           "what to strike", at);
        t->place[i] = (struct token_place){(uint32_t)at, (uint32_t)(at + token.n)};
        at += token.n;
    }
    return at == text.n ? 0 : err_set(e, ERR_FORMAT, "its tokens end at byte %zu of its text", at);
}

static int cutter_cut(void *thread, struct dedup_tokens *t, struct span text, struct err *e)
{
    struct cutter_thread *c = thread;

    t->n = 0;
    buf_clear(&c->ids);
    TRY(encoder_encode(c->enc, text, 0, sizeof *t->hash, &c->ids, e));
    TRY(dedup_tokens_room(t, c->ids.n / sizeof *t->hash, e));
    t->n = c->ids.n / sizeof *t->hash;
    if (t->n)
        memcpy(t->hash, c->ids.p, c->ids.n);
    return place_tokens(c, t, text, e);
}

const struct dedup_cutter token_cutter = {cutter_open, cutter_close, cutter_thread_open, cutter_thread_close, cutter_cut};
