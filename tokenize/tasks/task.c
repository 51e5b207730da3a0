/* A task: its questions as requests. */
#include "tokenize/tasks/task.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "tokenize/tasks/parts.h"

struct asker {
    struct task *t;
    struct encoder *encoder;
    struct span bos_text; /* of the token before each text; p NULL: none */
    int32_t bos, prefix;  /* its id, -1: none; what a text without anything before it follows */
    int64_t length;
    struct err *e;
};

static int no_memory(struct err *e) { return err_set(e, ERR_NOMEM, "out of memory for a task"); }

static const int32_t *ids_of(const struct buf *b) { return (const int32_t *)(const void *)b->p; }
static int64_t count_of(const struct buf *b) { return (int64_t)(b->n / sizeof(int32_t)); }

/* The ids of a text, after the token before each unless the text has it itself. */
static int encode(struct asker *x, struct span text, bool begins, struct buf *ids)
{
    bool has = x->bos < 0 || (text.n >= x->bos_text.n && memcmp(text.p, x->bos_text.p, x->bos_text.n) == 0);

    if (begins && !has && buf_put(ids, &x->bos, sizeof x->bos) < 0)
        return no_memory(x->e);
    return encoder_encode(x->encoder, text, ENCODER_SPECIAL, 4, ids, x->e);
}

/* The request for ids, of which those from `from` on are scored: what is too long loses its beginning. */
static int add(struct asker *x, const int32_t *ids, int64_t n, int64_t from)
{
    int64_t cut = n > x->length + 1 ? n - x->length - 1 : 0;
    struct task_request r = {.n = n - cut, .from = from - cut}; /* ids: when all are there */

    if (n <= from)
        return err_set(x->e, ERR_FORMAT, "a continuation without a token");
    if (r.from < 1)
        return err_set(x->e, ERR_LIMIT, "a continuation of %" PRId64 " tokens; the model sees %" PRId64, n - from, x->length);
    if (buf_put(&x->t->ids, ids + cut, (size_t)r.n * sizeof *ids) < 0 || buf_put(&x->t->requests, &r, sizeof r) < 0)
        return no_memory(x->e);
    return 0;
}

/* A continuation behind a context: what is scored is what the whole has more tokens than the context, whose white space at the
 * end counts as the continuation's. */
static int ask_pair(struct asker *x, const struct task_pair *p, struct arena *a)
{
    struct span context = jinja_strip(p->context, (struct span){NULL, 0}, false, true);
    struct buf ids = {0}, before = {0};
    char *both = arena_alloc(a, p->context.n + p->continuation.n + 1);
    int64_t skip = 0;
    int rc = both ? 0 : no_memory(x->e);

    if (rc == 0 && p->context.n) {
        memcpy(both, p->context.p, p->context.n);
        memcpy(both + p->context.n, p->continuation.p, p->continuation.n);
        rc = encode(x, (struct span){both, p->context.n + p->continuation.n}, true, &ids);
        rc = rc ? rc : encode(x, context, true, &before);
    } else if (rc == 0) {
        rc = buf_put(&ids, &x->prefix, sizeof x->prefix) < 0 || buf_put(&before, &x->prefix, sizeof x->prefix) < 0
                 ? no_memory(x->e) : encode(x, p->continuation, false, &ids);
        skip = rc == 0 && count_of(&ids) > 1 && ids_of(&ids)[1] == x->prefix; /* it brings that itself */
    }
    if (rc == 0)
        rc = add(x, ids_of(&ids) + skip, count_of(&ids) - skip, count_of(&before));
    buf_free(&ids);
    buf_free(&before);
    return rc;
}

/* What follows a context, of which the end is kept that leaves room for what is written. */
static int ask_more(struct asker *x, struct span context)
{
    int64_t room = x->length - task_judge_most(x->t->judge), cut;
    struct task_request r = {0};
    struct buf ids = {0};
    int rc = room < 1 ? err_set(x->e, ERR_ARG, "%" PRId64 " tokens to be written are more than the model has room for, %" PRId64,
                                task_judge_most(x->t->judge), x->length - 1)
                      : encode(x, context, true, &ids);

    if (rc == 0 && ids.n == 0 && buf_put(&ids, &x->prefix, sizeof x->prefix) < 0)
        rc = no_memory(x->e);
    cut = count_of(&ids) > room ? count_of(&ids) - room : 0;
    r.n = r.from = count_of(&ids) - cut;
    if (rc == 0 && (buf_put(&x->t->ids, ids_of(&ids) + cut, (size_t)r.n * sizeof(int32_t)) < 0 ||
                    buf_put(&x->t->requests, &r, sizeof r) < 0))
        rc = no_memory(x->e);
    buf_free(&ids);
    return rc;
}

/* A text by windows: each scores as many tokens as the model sees, the first behind the prefix token, the others behind the one
 * before; the last scores what is left and sees as much before that as it can. */
static int ask_text(struct asker *x, struct span text)
{
    struct buf ids = {0};
    int rc = buf_put(&ids, &x->prefix, sizeof x->prefix) < 0 ? no_memory(x->e) : encode(x, text, true, &ids);

    for (int64_t at = 1, n = count_of(&ids), end, start; rc == 0 && at < n; at = end) {
        end = n - at < x->length ? n : at + x->length;
        start = at == 1 ? 0 : end - x->length - 1;
        rc = add(x, ids_of(&ids) + start, end - start, at - start);
    }
    buf_free(&ids);
    return rc;
}

static int64_t characters(struct span s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Words as re.split(r"\s+", text) counts them: what stands before, between and behind white space, empty or not. */
static int64_t words(struct span s)
{
    int64_t n = 1;

    for (size_t i = 0; i < s.n;) {
        struct span rest = {s.p + i, s.n - i}, left = jinja_strip(rest, (struct span){NULL, 0}, true, false);

        if (left.n < rest.n) {
            n++;
            i += rest.n - left.n;
        } else {
            i++;
        }
    }
    return n;
}

static int keep(struct asker *x, const struct task_question *q, int64_t first)
{
    struct task *t = x->t;
    struct task_kept k = {
        .first = first, .requests = (int64_t)(t->requests.n / sizeof(struct task_request)) - first, .choices = q->choices,
        .lengths = (int64_t)(t->lengths.n / sizeof(int64_t)), .gold = (int64_t)(t->golds.n / sizeof(int64_t)),
        .golds = q->golds, .words = words(q->target), .bytes = (int64_t)q->target.n,
    };

    k.right = arena_calloc(&t->arena, (size_t)q->rights + 1, sizeof *k.right);
    if (!k.right)
        return no_memory(x->e);
    for (; k.rights < q->rights; k.rights++)
        if (!(k.right[k.rights] = arena_dup(&t->arena, q->right[k.rights])).p)
            return no_memory(x->e);
    for (int64_t i = 0; i < q->choices; i++) {
        int64_t length[2] = {characters(q->choice[i]), (int64_t)q->choice[i].n};

        buf_put(&t->lengths, length, sizeof length);
    }
    buf_put(&t->golds, q->gold ? q->gold : &k.gold, (size_t)q->golds * sizeof *q->gold);
    if (buf_put(&t->kept, &k, sizeof k) < 0 || t->lengths.failed || t->golds.failed)
        return no_memory(x->e);
    t->questions++;
    return 0;
}

static int ask(struct asker *x, struct task_maker *m)
{
    struct arena a = {0};
    struct task_question q;
    int rc = 0;

    for (int64_t i = 0; rc == 0 && i < m->docs.n; i++) {
        int64_t first = (int64_t)(x->t->requests.n / sizeof(struct task_request));

        arena_reset(&a);
        rc = task_maker_question(m, i, &a, &q, x->e);
        if (rc < 0)
            break;
        for (int64_t k = 0; rc == 0 && k < q.pairs; k++)
            rc = m->conf->kind == TASK_ROLLING   ? ask_text(x, q.pair[k].continuation)
                 : m->conf->kind == TASK_WRITING ? ask_more(x, q.pair[k].context) : ask_pair(x, &q.pair[k], &a);
        rc = rc ? err_wrap(x->e, "'%s': question %" PRId64, m->conf->path[0], i + 1) : keep(x, &q, first);
    }
    arena_free(&a);
    return rc;
}

static int open_asker(struct asker *x, const struct tokenizer *tokenizer, const struct task_settings *s)
{
    int64_t id = s->bos ? tokenizer_find(tokenizer, span_of(s->bos)) : -1;

    if (s->bos && id < 0)
        return err_set(x->e, ERR_ARG, "the tokenizer has no token '%s'", s->bos);
    x->bos = (int32_t)id;
    x->prefix = (int32_t)(id >= 0 ? id : tokenizer_eod(tokenizer));
    if (x->prefix < 0)
        return err_set(x->e, ERR_ARG, "the tokenizer names no end of document: a token has to be named that texts begin with");
    x->bos_text = span_of(s->bos);
    x->encoder = encoder_new(tokenizer);
    return x->encoder ? 0 : no_memory(x->e);
}

int task_open(struct task **out, const char *path, const struct tokenizer *tokenizer, const struct task_settings *s,
              struct err *e)
{
    struct task *t = *out = calloc(1, sizeof *t);
    struct asker x = {.t = t, .length = s->length, .e = e};
    struct task_maker m = {0};
    const int32_t *ids;
    int rc = t ? task_conf_open(&t->conf, path, e) : no_memory(e);

    if (rc == 0) {
        t->tokenizer = tokenizer;
        t->special = calloc(tokenizer_vocab_size(tokenizer) / 8 + 1, 1);
        rc = t->special ? 0 : no_memory(e);
    }
    if (rc == 0) {
        tokenizer_mark_specials(tokenizer, t->special);
        rc = t->conf.kind == TASK_WRITING ? task_judge_open(&t->judge, &t->conf, e) : 0;
    }
    if (rc == 0)
        rc = open_asker(&x, tokenizer, s);
    if (rc == 0)
        rc = task_maker_open(&m, &t->conf, s, e);
    if (rc == 0)
        rc = ask(&x, &m);
    task_maker_close(&m);
    if (x.encoder)
        encoder_free(x.encoder);
    if (rc < 0) {
        task_close(t);
        *out = NULL;
        return rc;
    }
    ids = ids_of(&t->ids);
    for (struct task_request *r = (void *)t->requests.p, *end = r + t->requests.n / sizeof *r; r < end; ids += r->n, r++)
        r->ids = ids;
    return 0;
}

void task_close(struct task *t)
{
    if (!t)
        return;
    task_judge_close(t->judge);
    task_conf_close(&t->conf);
    arena_free(&t->arena);
    free(t->special);
    buf_free(&t->ids);
    buf_free(&t->requests);
    buf_free(&t->kept);
    buf_free(&t->lengths);
    buf_free(&t->golds);
    free(t);
}

const char *task_name(const struct task *t) { return t->conf.name; }
int64_t task_questions(const struct task *t) { return t->questions; }

int64_t task_requests(const struct task *t, const struct task_request **r)
{
    *r = (const struct task_request *)(const void *)t->requests.p;
    return (int64_t)(t->requests.n / sizeof **r);
}

int64_t task_writes(const struct task *t) { return t->judge ? task_judge_most(t->judge) : 0; }

int task_text(const struct task *t, const int32_t *ids, int64_t n, struct buf *text, bool *whole, struct err *e)
{
    struct buf kept = {0}, bytes = {0};
    struct span s;
    int rc = 0;

    *whole = n > 0 && ids[n - 1] == tokenizer_eod(t->tokenizer);
    for (int64_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)ids[i];

        /* A model may have more ids than the tokenizer: those are no text. */
        if (tokenizer_bytes(t->tokenizer, id).p && !(t->special[id / 8] >> id % 8 & 1))
            buf_put(&kept, &id, sizeof id);
    }
    rc = kept.failed ? no_memory(e)
                     : tokenizer_decode(t->tokenizer, (uint32_t *)(void *)kept.p, kept.n / sizeof(uint32_t), &bytes, e);
    if (rc == 0 && utf8_repair(buf_span(&bytes), text) < 0)
        rc = no_memory(e);
    s = buf_span(text);
    if (rc == 0 && task_judge_cut(t->judge, &s)) {
        text->n = s.n;
        *whole = true;
    }
    buf_free(&kept);
    buf_free(&bytes);
    return rc;
}

int task_ends(const struct task *t, const int32_t *ids, int64_t n, struct err *e)
{
    struct buf text = {0};
    bool whole;
    int rc = task_text(t, ids, n, &text, &whole, e);

    buf_free(&text);
    return rc < 0 ? rc : whole;
}

bool task_asks_greedy(const struct task *t)
{
    return (t->conf.kind == TASK_CHOICE && t->conf.metric[METRIC_EXACT]) ||
           (t->conf.kind == TASK_LIKELIHOOD && t->conf.metric[METRIC_ACC]);
}
