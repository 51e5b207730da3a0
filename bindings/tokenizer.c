/* Tokenizers: one that threads share, and what each thread that encodes or decodes needs. */
#include "tokenize/tokenizer.h"

#include <stdlib.h>

#include "bindings/batch.h"
#include "bindings/call.h"

enum {
    IDLE_MAX = 64,       /* workers kept for the next call */
    OUT_KEPT = 4 << 20   /* bytes of output that an idle one may hold */
};

/* Idle workers lie in slots that are exchanged, without a lock: so a fork at any moment leaves the child a whole tokenizer,
 * which lacks at most those that were at work. */
struct quern_tokenizer {
    struct tokenizer *t;
    uint8_t *special; /* a bit an id */
    struct worker *idle[IDLE_MAX];
};

/* ---- opening ---- */

static bool is_special(const quern_tokenizer *t, uint32_t id)
{
    return id < tokenizer_vocab_size(t->t) && (t->special[id / 8] >> id % 8 & 1);
}

static int open_tokenizer(quern_tokenizer *t, const char *path, const quern_tokenizer_settings *s, struct err *e)
{
    struct tokenizer_settings as = {.pattern = s->pattern, .special_tokens = s->special_tokens, .eod = s->eod};

    TRY(tokenizer_open_as(&t->t, path, &as, e));
    t->special = calloc(tokenizer_vocab_size(t->t) / 8 + 1, 1);
    if (!t->special)
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    tokenizer_mark_specials(t->t, t->special);
    return 0;
}

int quern_tokenizer_open(quern_tokenizer **out, const char *path, const quern_tokenizer_settings *settings, quern_error *e)
{
    quern_tokenizer_settings s;
    quern_tokenizer *t;
    struct err why;
    int rc;

    if (!out || !path)
        return call_refused(e, "no place for the tokenizer, or no path");
    *out = NULL;
    TRY(call_settings(&s, sizeof s, settings, e));
    if (strcmp(path, "-") == 0 || (s.special_tokens && strcmp(s.special_tokens, "-") == 0))
        return call_refused(e, "'-' is no file here");
    t = calloc(1, sizeof *t);
    rc = t ? open_tokenizer(t, path, &s, &why) : err_set(&why, ERR_NOMEM, "out of memory for a tokenizer");
    if (rc < 0) {
        quern_tokenizer_close(t);
        return call_failed(e, &why);
    }
    *out = t;
    return 0;
}

static void worker_free(struct worker *w)
{
    if (!w)
        return;
    encoder_free(w->enc);
    buf_free(&w->out);
    buf_free(&w->ids);
    free(w);
}

void quern_tokenizer_close(quern_tokenizer *t)
{
    if (!t)
        return;
    for (int i = 0; i < IDLE_MAX; i++)
        worker_free(t->idle[i]);
    tokenizer_close(t->t);
    free(t->special);
    free(t);
}

/* ---- workers ---- */

struct worker *worker_take(quern_tokenizer *t)
{
    struct worker *w;

    for (int i = 0; i < IDLE_MAX; i++)
        if (__atomic_load_n(&t->idle[i], __ATOMIC_RELAXED) && (w = __atomic_exchange_n(&t->idle[i], NULL, __ATOMIC_ACQUIRE)))
            return w;
    w = calloc(1, sizeof *w);
    if (w && !(w->enc = encoder_new(t->t))) {
        free(w);
        return NULL;
    }
    return w;
}

/* An idle one holds no large output. */
static void trim(struct buf *b)
{
    buf_clear(b);
    if (b->cap > OUT_KEPT)
        buf_free(b);
}

void worker_give(quern_tokenizer *t, struct worker *w)
{
    trim(&w->out);
    trim(&w->ids);
    for (int i = 0; i < IDLE_MAX && !w->spent; i++) {
        struct worker *none = NULL;
        if (__atomic_compare_exchange_n(&t->idle[i], &none, w, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
    worker_free(w);
}

int worker_encode(struct worker *w, struct span text, int flags, struct err *e)
{
    int rc = encoder_encode(w->enc, text, flags & QUERN_SPECIAL ? ENCODER_SPECIAL : 0, 4, &w->out, e);

    w->spent |= rc == ERR_NOMEM;
    return rc;
}

static int decode(quern_tokenizer *t, struct worker *w, const uint32_t *ids, size_t n, int flags, struct err *e)
{
    if (flags & QUERN_SKIP_SPECIAL) {
        uint32_t *kept;
        size_t k = 0;
        buf_clear(&w->ids);
        if (n > SIZE_MAX / sizeof *ids || buf_reserve(&w->ids, n * sizeof *ids) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for %zu ids", n);
        kept = (uint32_t *)(void *)w->ids.p;
        for (size_t i = 0; i < n; i++)
            if (!is_special(t, ids[i]))
                kept[k++] = ids[i];
        ids = kept;
        n = k;
    }
    return tokenizer_decode(t->t, ids, n, &w->out, e);
}

int worker_decode(quern_tokenizer *t, struct worker *w, const uint32_t *ids, size_t n, int flags, struct err *e)
{
    int rc = decode(t, w, ids, n, flags, e);

    w->spent |= rc == ERR_NOMEM;
    return rc;
}

/* ---- tokens ---- */

/* As much of n bytes as there is room for; n. */
static int64_t put(const void *p, size_t n, void *out, size_t room)
{
    if (n && room)
        memcpy(out, p, n < room ? n : room);
    return (int64_t)n;
}

size_t quern_vocab_size(const quern_tokenizer *t)
{
    return t ? tokenizer_vocab_size(t->t) : 0;
}

int64_t quern_token_to_id(const quern_tokenizer *t, const char *token, size_t size)
{
    return t && token ? tokenizer_find(t->t, (struct span){token, size}) : -1;
}

int64_t quern_id_to_token(const quern_tokenizer *t, uint32_t id, char *token, size_t room)
{
    struct span s = {NULL, 0};

    if (t && (token || !room))
        s = tokenizer_bytes(t->t, id);
    return s.p ? put(s.p, s.n, token, room) : -1;
}

int quern_is_special(const quern_tokenizer *t, uint32_t id)
{
    return t && is_special(t, id);
}

int64_t quern_eod(const quern_tokenizer *t)
{
    return t ? tokenizer_eod(t->t) : -1;
}

/* ---- one text ---- */

int64_t quern_encode(quern_tokenizer *t, const char *text, size_t size, int flags, uint32_t *ids, size_t room, quern_error *e)
{
    struct worker *w;
    struct err why;
    int64_t n;

    if (!t || (!text && size) || (!ids && room) || flags & ~QUERN_SPECIAL)
        return call_refused(e, "encode: no tokenizer, no text, nowhere to put its ids, or a flag that is none");
    w = worker_take(t);
    if (!w)
        n = err_set(&why, ERR_NOMEM, "out of memory for an encoder");
    else if ((n = worker_encode(w, (struct span){text, size}, flags, &why)) == 0)
        n = put(w->out.p, w->out.n, ids, room < SIZE_MAX / 4 ? room * 4 : SIZE_MAX) / 4;
    if (w)
        worker_give(t, w);
    return n < 0 ? call_failed(e, &why) : n;
}

int64_t quern_decode(quern_tokenizer *t, const uint32_t *ids, size_t n_ids, int flags, char *text, size_t room, quern_error *e)
{
    struct worker *w;
    struct err why;
    int64_t n;

    if (!t || (!ids && n_ids) || (!text && room) || flags & ~QUERN_SKIP_SPECIAL)
        return call_refused(e, "decode: no tokenizer, no ids, nowhere to put their text, or a flag that is none");
    w = worker_take(t);
    if (!w)
        n = err_set(&why, ERR_NOMEM, "out of memory for a decoder");
    else if ((n = worker_decode(t, w, ids, n_ids, flags, &why)) == 0)
        n = put(w->out.p, w->out.n, text, room);
    if (w)
        worker_give(t, w);
    return n < 0 ? call_failed(e, &why) : n;
}
