#include "curate/dedup/dedup_substring.h"

#include <stdlib.h>

#include "base/json.h"
#include "curate/dedup/dedup_repeats.h"
#include "curate/dedup/dedup_text.h"
#include "curate/dedup/dedup_tokens.h"

enum { SNAP_CHAR, SNAP_WORD, SNAP_LINE };

struct substring {
    struct dedup_substring_conf c;
    int width;
    size_t length;
    struct repeats *repeats;
    void *cutter; /* by a tokenizer; NULL: none */
    struct buf ranges;
    struct dedup_left least;
    struct dedup_struck struck;
};

struct worker {
    struct dedup_text text; /* first */
    struct dedup_tokens tokens;
    void *cutter; /* of this thread */
    struct anchors anchors;
    struct buf out;
};

/* What a note begins with; then the anchors, then the elements. */
struct head {
    uint64_t anchors, n;
};

static void substring_thread_close(void *stage, void *thread)
{
    struct worker *w = thread;

    (void)stage;
    dedup_text_close(&w->text);
    if (w->cutter)
        dedup_tokenizers->thread_close(w->cutter);
    dedup_tokens_free(&w->tokens);
    anchors_free(&w->anchors);
    buf_free(&w->out);
    free(w);
}

static int substring_thread_open(void *stage, void **thread, struct err *e)
{
    const struct substring *s = stage;

    TRY(dedup_text_thread(thread, sizeof(struct worker), e));
    return s->cutter ? dedup_tokenizers->thread_open(s->cutter, &((struct worker *)*thread)->cutter, e) : 0;
}

static int cut(struct worker *w, struct span text, struct err *e)
{
    return w->cutter ? dedup_tokenizers->cut(w->cutter, &w->tokens, text, e) : dedup_tokens_cut(&w->tokens, text, e);
}

static int substring_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                          struct err *e)
{
    const struct substring *s = stage;
    struct worker *w = thread;
    const void *p = d->text.p;
    struct head h = {0, d->text.n};
    size_t bytes, anchors;
    char *to;

    (void)v;
    if (s->width == 4) {
        TRY(cut(w, d->text, e));
        p = w->tokens.hash;
        h.n = w->tokens.n;
    }
    if (h.n >= UINT32_MAX)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to compare", d->text.n);
    if (anchors_find(&w->anchors, p, h.n, s->width, s->length) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the passages of a text");
    h.anchors = w->anchors.n;
    anchors = h.anchors * sizeof *w->anchors.a;
    bytes = h.n * (size_t)s->width;
    to = arena_alloc(d->arena, sizeof h + anchors + bytes);
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", d->text.n);
    *note = (struct span){to, sizeof h + anchors + bytes};
    memcpy(to, &h, sizeof h);
    if (anchors)
        memcpy(to + sizeof h, w->anchors.a, anchors);
    if (bytes)
        memcpy(to + sizeof h + anchors, p, bytes);
    return 0;
}

static int substring_commit(void *stage, struct span note, struct verdict *v, struct span *reply,
                            struct arena *a, struct err *e)
{
    struct substring *s = stage;
    const struct head *h = (const void *)note.p;
    const struct anchor *anchor = (const void *)(h + 1);

    (void)v;
    (void)reply;
    (void)a;
    return repeats_add(s->repeats, anchor + h->anchors, h->n, anchor, h->anchors, e);
}

static int substring_resolve(void *stage, int jobs, struct err *e)
{
    struct substring *s = stage;

    return repeats_resolve(s->repeats, jobs, e);
}

static int substring_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                           struct err *e)
{
    struct substring *s = stage;

    (void)n;
    (void)v;
    buf_clear(&s->ranges);
    TRY(repeats_next(s->repeats, &s->ranges, e));
    if (!s->ranges.n)
        return 0;
    *reply = arena_dup(a, buf_span(&s->ranges));
    return reply->p ? 0 : err_set(e, ERR_NOMEM, "out of memory for the repeats of a text");
}

/* ---- striking ---- */

/* May what is struck begin, or end, before byte i?  It begins behind white space, so that no
 * two words that stay become one. */
static bool boundary(struct span text, size_t i, int snap, bool end)
{
    struct span before = {text.p, i};
    int n;

    if (i == 0 || i == text.n)
        return true;
    if (((unsigned char)text.p[i] & 0xC0) == 0x80)
        return false;
    if (snap == SNAP_LINE)
        return text.p[i - 1] == '\n';
    return snap != SNAP_WORD || (end && chars_space_at(text.p + i, text.p + text.n, &n)) ||
           chars_rstrip(before).n < i;
}

/* Shrinks [from, to) to boundaries. */
static void shrink(struct span text, int snap, size_t *from, size_t *to)
{
    while (*from < *to && !boundary(text, *from, snap, false))
        ++*from;
    while (*to > *from && !boundary(text, *to, snap, true))
        --*to;
}

/* The text without the ranges, into w->out; their number. */
static int64_t strike(const struct substring *s, struct worker *w, struct span text, struct span reply,
                      struct err *e)
{
    const uint64_t *range = (const void *)reply.p;
    size_t n = reply.n / (2 * sizeof *range), kept = 0;
    int64_t struck = 0;

    buf_clear(&w->out);
    if (s->width == 4)
        TRY(cut(w, text, e));
    for (size_t i = 0; i < n; i++) {
        size_t from = (size_t)range[2 * i], to = (size_t)range[2 * i + 1];
        if (s->width == 4) {
            from = w->tokens.place[from].from;
            to = w->tokens.place[to - 1].to;
        }
        shrink(text, s->c.snap, &from, &to);
        if (from == to)
            continue;
        if (buf_put(&w->out, text.p + kept, from - kept) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", text.n);
        kept = to;
        struck++;
    }
    if (buf_put(&w->out, text.p + kept, text.n - kept) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", text.n);
    return struck;
}

static int substring_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v,
                           struct err *e)
{
    struct substring *s = stage;
    struct worker *w = thread;
    int64_t struck = strike(s, w, d->text, reply, e);

    if (struck <= 0)
        return (int)struck;
    return dedup_text_replace(&w->text, d, buf_span(&w->out), (uint64_t)struck, &s->least, &s->struck, v, e);
}

/* ---- the stage ---- */

static int substring_stats(void *stage, struct buf *json)
{
    const struct substring *s = stage;
    struct repeats_tally t = repeats_tally(s->repeats);

    TRY(json_put_count(json, s->width == 4 ? "tokens" : "bytes", t.elements));
    TRY(json_put_count(json, "candidates", t.candidates));
    return dedup_struck_stats(&s->struck, "passages_struck", json);
}

static void substring_close(void *stage)
{
    struct substring *s = stage;

    if (!s)
        return;
    repeats_close(s->repeats);
    if (s->cutter)
        dedup_tokenizers->close(s->cutter);
    buf_free(&s->ranges);
    free(s);
}

static const struct stage_ops substring_ops = {
    .name = "dedup substring",
    .thread_open = substring_thread_open,
    .thread_close = substring_thread_close,
    .work = substring_work,
    .commit = substring_commit,
    .resolve = substring_resolve,
    .judge = substring_judge,
    .apply = substring_apply,
    .stats = substring_stats,
    .close = substring_close,
};

void dedup_substring_conf_init(struct dedup_substring_conf *c)
{
    *c = (struct dedup_substring_conf){.length = 100, .memory = 1 << 30};
}

/* The tokenizer, if one is named. */
static int open_cutter(struct substring *s, struct err *e)
{
    if (!s->c.tokenizer)
        return 0;
    if (!s->c.tokens)
        return err_set(e, ERR_ARG, "of a tokenizer passages are so many tokens: --tokens says how many");
    if (!dedup_tokenizers)
        return err_set(e, ERR_UNSUPPORTED, "there are no tokenizers here");
    return dedup_tokenizers->open(&s->cutter, s->c.tokenizer, e);
}

int dedup_substring_stage_open(struct stage *st, const struct dedup_substring_conf *c, struct err *e)
{
    struct substring *s = calloc(1, sizeof *s);
    struct repeats_conf rc = {.all = c->keep == 1, .memory = c->memory, .dir = c->dir};
    int status;

    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->c = *c;
    s->width = rc.width = c->tokens ? 4 : 1;
    s->length = rc.length = (size_t)(c->tokens ? c->tokens : c->length);
    s->least = (struct dedup_left){c->min_words, c->min_sentences};
    status = rc.length * (size_t)rc.width < 8
                 ? err_set(e, ERR_ARG, "a passage must have at least 8 bytes or 2 tokens")
                 : open_cutter(s, e);
    if (status == 0)
        status = repeats_open(&s->repeats, &rc, e);
    if (status < 0) {
        substring_close(s);
        return status;
    }
    *st = (struct stage){&substring_ops, s};
    return 0;
}
