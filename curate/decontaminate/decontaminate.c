#include "curate/decontaminate/decontaminate.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"
#include "curate/decontaminate/decontaminate_method.h"

/* Hits that go into a document, bytes of a text that go into the report, and how far from
 * a passage the end of its sentence is looked for. */
enum { MAX_ANNOTATED = 100, MAX_QUOTED = 500, MAX_SENTENCE = 200 };
/* How often a stripped text is looked at again. */
enum { MAX_ROUNDS = 8 };

const struct stage_rule decontaminate_rules[] = {
    [DECON_WORDS] = {"words", "words in a row that a question has too", "It holds a question of an evaluation set.",
                     "from", true},
    [DECON_SHARE] = {"share", "share of a question's words", "It holds most of a question of an evaluation set.", "from",
                     true},
    [DECON_NGRAM] = {"ngram", NULL, "It shares words in a row with a question of an evaluation set.", NULL, true},
    [DECON_SCORE] = {"score", "score of a question of an evaluation set", NULL, "from", true},
    [DECON_PIECES] = {"pieces", "pieces left", "Nothing is left once the passages of questions are cut out.", "below",
                      true},
    [DECON_SPLITS] = {"splits", "pieces", "Cutting out the passages of questions leaves too many pieces.", "above", true},
    {0},
};

struct decontaminate {
    struct decontaminate_conf conf;
    struct eval_set evals;
    const struct eval_method *method;
    void *m;
    struct file_out *report; /* from the first commit: only the process that commits writes it */
    uint64_t documents;   /* that have a question */
    uint32_t *documents_of; /* each item */
};

struct decontaminate_thread {
    void *method;
    struct eval_hits hits;
    struct buf text, json;
};

/* What commit must know: this, then the lines of the report. */
struct decontaminate_note {
    uint32_t drop, rule, item;
    double value, threshold;
};

int eval_hits_add(struct eval_hits *h, const struct eval_hit *hit)
{
    TRY(mem_grow(&h->v, &h->cap, h->n + 1, sizeof *h->v));
    h->v[h->n++] = *hit;
    return 0;
}

static int decontaminate_thread_open(void *stage, void **thread, struct err *e)
{
    struct decontaminate *s = stage;
    struct decontaminate_thread *t = calloc(1, sizeof *t);

    *thread = t;
    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    return s->method->thread_open(s->m, &t->method, e);
}

static void decontaminate_thread_close(void *stage, void *thread)
{
    struct decontaminate *s = stage;
    struct decontaminate_thread *t = thread;

    if (t->method)
        s->method->thread_close(s->m, t->method);
    free(t->hits.v);
    buf_free(&t->text);
    buf_free(&t->json);
    free(t);
}

/* ---- the report ---- */

static int put_place(struct buf *b, const char *key, struct span part, struct span whole, bool placed)
{
    struct span quote = part;

    if (quote.n > MAX_QUOTED)
        for (quote.n = MAX_QUOTED; quote.n && ((unsigned char)quote.p[quote.n] & 0xc0) == 0x80;)
            quote.n--;
    TRY(json_put_key(b, key));
    TRY(buf_putc(b, '{'));
    if (placed) {
        TRY(json_put_key(b, "begin"));
        TRY(json_put_int(b, part.p - whole.p));
        TRY(json_put_key(b, "end"));
        TRY(json_put_int(b, part.p - whole.p + (int64_t)part.n));
    }
    TRY(json_put_key(b, "text"));
    TRY(json_put_string(b, quote));
    return buf_putc(b, '}');
}

static int put_named(struct buf *b, const char *key, struct span value)
{
    TRY(json_put_key(b, key));
    return json_put_string(b, value);
}

static int put_score(struct buf *b, const struct eval_hit *h)
{
    TRY(put_named(b, "rule", span_of(decontaminate_rules[h->rule].name)));
    TRY(json_put_key(b, "value"));
    TRY(json_put_num(b, round(h->value * 1e6) / 1e6));
    TRY(json_put_key(b, "threshold"));
    return json_put_num(b, h->threshold);
}

static int put_line(const struct decontaminate *s, struct buf *b, const struct doc *d, const struct eval_hit *h)
{
    const struct eval_item *it = &s->evals.v[h->item];

    TRY(buf_putc(b, '{'));
    TRY(put_named(b, "id", d->id));
    TRY(put_named(b, "task", it->task));
    TRY(put_named(b, "question_id", it->id));
    TRY(put_named(b, "method", span_of(s->method->name)));
    TRY(put_score(b, h));
    TRY(put_place(b, "document", h->text, d->text, h->placed));
    if (h->placed)
        TRY(put_place(b, "question", h->part, it->text, true));
    return buf_puts(b, "}\n");
}

/* ---- actions ---- */

static void drop_for(const struct decontaminate *s, struct verdict *v, const struct eval_hit *h)
{
    verdict_drop(v, &decontaminate_rules[h->rule], round(h->value * 1e6) / 1e6, h->threshold);
    v->survivor = s->evals.v[h->item].id;
}

static int annotate(const struct decontaminate *s, struct decontaminate_thread *t, struct doc *d)
{
    struct buf *b = &t->json;

    buf_clear(b);
    TRY(buf_putc(b, '['));
    for (size_t i = 0; i < t->hits.n && i < MAX_ANNOTATED; i++) {
        const struct eval_item *it = &s->evals.v[t->hits.v[i].item];
        TRY(buf_puts(b, i ? ",{" : "{"));
        TRY(put_named(b, "task", it->task));
        TRY(put_named(b, "id", it->id));
        TRY(put_score(b, &t->hits.v[i]));
        TRY(buf_putc(b, '}'));
    }
    TRY(buf_putc(b, ']'));
    return doc_set_raw(d, "contamination", buf_span(b));
}

static bool ends_sentence(char c)
{
    return c == '.' || c == '!' || c == '?' || c == '\n';
}

/* The passage and what else its first and last sentence have. */
static struct span whole_sentences(struct span text, struct span part)
{
    const char *end = text.p + text.n, *from = part.p, *to = part.p + part.n;
    const char *first = from - text.p > MAX_SENTENCE ? from - MAX_SENTENCE : text.p;
    const char *last = end - to > MAX_SENTENCE ? to + MAX_SENTENCE : end;
    const char *p;

    for (p = from; p > first && !ends_sentence(p[-1]); p--)
        ;
    if (p == text.p || ends_sentence(p[-1]))
        from = p;
    for (p = to; p < last && !ends_sentence(*p); p++)
        ;
    if (p == end || p < last)
        to = p < end ? p + (*p != '\n') : p;
    return (struct span){from, (size_t)(to - from)};
}

static int by_place(const void *a, const void *b)
{
    const struct eval_hit *x = a, *y = b;

    return x->around.p < y->around.p ? -1 : x->around.p > y->around.p;
}

static bool is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(" \t\r\n", s.p[i]))
            return false;
    return true;
}

/* The text without what was found in it. */
static int cut_out(struct decontaminate_thread *t, struct span text)
{
    const char *at = text.p;

    buf_clear(&t->text);
    qsort(t->hits.v, t->hits.n, sizeof *t->hits.v, by_place);
    for (size_t i = 0; i < t->hits.n; i++) {
        struct span out = whole_sentences(text, t->hits.v[i].around);
        if (out.p > at)
            TRY(buf_put(&t->text, at, (size_t)(out.p - at)));
        if (out.p + out.n > at)
            at = out.p + out.n;
    }
    return buf_put(&t->text, at, (size_t)(text.p + text.n - at));
}

/* Takes the passages out until nothing is found; a document of which nothing is left, or
 * that has more and more of them, is dropped. */
static int strip(const struct decontaminate *s, struct decontaminate_thread *t, struct doc *d, struct verdict *v)
{
    struct eval_hit strongest = t->hits.v[0];

    for (int round = 0; round < MAX_ROUNDS; round++) {
        TRY(cut_out(t, d->text));
        if (is_blank(buf_span(&t->text)))
            break;
        TRY(doc_set_string(d, "text", buf_span(&t->text)));
        t->hits.n = 0;
        TRY(s->method->find(s->m, t->method, d->text, d->arena, &t->hits, NULL));
        if (!t->hits.n)
            return 0;
    }
    drop_for(s, v, &strongest);
    return 0;
}

static int act(const struct decontaminate *s, struct decontaminate_thread *t, struct doc *d, struct verdict *v)
{
    switch (s->conf.action) {
    case DECON_STRIP:
        return strip(s, t, d, v);
    case DECON_ANNOTATE:
        return annotate(s, t, d);
    default:
        drop_for(s, v, &t->hits.v[0]);
        return 0;
    }
}

/* ---- the stage ---- */

/* The hit is not the first of its item. */
static bool counted(const struct eval_hits *h, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (h->v[k].item == h->v[i].item)
            return true;
    return false;
}

static int find(struct decontaminate *s, struct decontaminate_thread *t, struct doc *d, struct err *e)
{
    t->hits.n = 0;
    TRY(s->method->find(s->m, t->method, d->text, d->arena, &t->hits, e));
    if (!t->hits.n)
        return 0;
    __atomic_fetch_add(&s->documents, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < t->hits.n; i++)
        if (!counted(&t->hits, i))
            __atomic_fetch_add(&s->documents_of[t->hits.v[i].item], 1, __ATOMIC_RELAXED);
    return 1;
}

static int work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct decontaminate *s = stage;
    struct decontaminate_thread *t = thread;
    int rc = find(s, t, d, e);

    (void)note;
    if (rc <= 0)
        return rc;
    return act(s, t, d, v) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a document") : 0;
}

/* With a report: commit writes it in order, so it is commit that drops. */
static int make_note(const struct decontaminate *s, struct decontaminate_thread *t, struct doc *d, struct verdict *v,
                     struct span *note)
{
    struct decontaminate_note n = {.item = t->hits.v[0].item};

    buf_clear(&t->text);
    TRY(buf_put(&t->text, &n, sizeof n));
    for (size_t i = 0; i < t->hits.n; i++)
        TRY(put_line(s, &t->text, d, &t->hits.v[i]));
    *note = arena_dup(d->arena, buf_span(&t->text));
    if (!note->p)
        return ERR_NOMEM;
    n.rule = t->hits.v[0].rule;
    TRY(act(s, t, d, v));
    n.drop = v->drop;
    n.value = v->value;
    n.threshold = v->threshold;
    *v = (struct verdict){0};
    memcpy((void *)(uintptr_t)note->p, &n, sizeof n);
    return 0;
}

static int work_reported(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                         struct err *e)
{
    struct decontaminate *s = stage;
    struct decontaminate_thread *t = thread;
    int rc = find(s, t, d, e);

    if (rc <= 0)
        return rc;
    return make_note(s, t, d, v, note) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a document") : 0;
}

static int commit_report(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                         struct err *e)
{
    struct decontaminate *s = stage;
    struct decontaminate_note n;

    (void)reply, (void)a;
    if (note.n < sizeof n)
        return 0;
    memcpy(&n, note.p, sizeof n);
    if (!s->report)
        TRY(file_create(&s->report, s->conf.report, 0, e));
    TRY(file_write(s->report, note.p + sizeof n, note.n - sizeof n, e));
    if (n.drop) {
        verdict_drop(v, &decontaminate_rules[n.rule], n.value, n.threshold);
        v->survivor = s->evals.v[n.item].id;
    }
    return 0;
}

static int finish(void *stage, struct file_group *files, struct err *e)
{
    struct decontaminate *s = stage;
    struct file_out *f;

    if (!s->report)
        TRY(file_create(&s->report, s->conf.report, 0, e));
    f = s->report;
    s->report = NULL;
    return file_group_add(files, f, e);
}

/* Questions of the task that begins at item i, and documents that have them, counted once
 * for each; a task's questions stand together in a set. */
static int put_task(const struct decontaminate *s, struct buf *json, size_t *i)
{
    struct span task = s->evals.v[*i].task;
    size_t n = 0;
    uint64_t documents = 0;

    for (; *i < s->evals.n && span_eq(s->evals.v[*i].task, task); ++*i, n++)
        documents += s->documents_of[*i];
    TRY(buf_putc(json, '{'));
    TRY(put_named(json, "task", task));
    TRY(json_put_count(json, "questions", n));
    TRY(json_put_count(json, "documents", documents));
    return buf_putc(json, '}');
}

static int put_stats(void *stage, struct buf *json)
{
    const struct decontaminate *s = stage;
    size_t skipped = 0, bytes = 0;

    s->method->describe(s->m, &skipped, &bytes);
    TRY(put_named(json, "method", span_of(s->method->name)));
    TRY(json_put_count(json, "questions", s->evals.n));
    TRY(json_put_count(json, "too_short", skipped));
    TRY(json_put_count(json, "index_bytes", bytes));
    TRY(json_put_count(json, "contaminated", s->documents));
    TRY(json_put_key(json, "tasks"));
    TRY(buf_putc(json, '['));
    for (size_t i = 0; i < s->evals.n;) {
        TRY(i ? buf_putc(json, ',') : 0);
        TRY(put_task(s, json, &i));
    }
    return buf_putc(json, ']');
}

static void close_stage(void *stage)
{
    struct decontaminate *s = stage;

    if (s->m)
        s->method->close(s->m);
    file_abort(s->report);
    eval_set_free(&s->evals);
    free(s->documents_of);
    free(s);
}

static const struct stage_ops ops_plain = {
    .name = "decontaminate",
    .thread_open = decontaminate_thread_open,
    .thread_close = decontaminate_thread_close,
    .work = work,
    .stats = put_stats,
    .close = close_stage,
};
static const struct stage_ops ops_reported = {
    .name = "decontaminate",
    .thread_open = decontaminate_thread_open,
    .thread_close = decontaminate_thread_close,
    .work = work_reported,
    .commit = commit_report,
    .finish = finish,
    .stats = put_stats,
    .close = close_stage,
};

/* ---- opening ---- */

void decontaminate_conf_init(struct decontaminate_conf *c)
{
    *c = (struct decontaminate_conf){
        .id = "id", .task = "task", .question = "question", .answer = "answer", .passage = "passage",
        .overlap_grams = true,
        .min_words = 8, .max_matches = 10, .cut = 200, .min_piece = 200, .max_splits = 10, .separator = "\n\n",
        .sample_every = 10, .max_misses = 11, .perfect_until = 20, .perfect_end = 50,
    };
}

static int check(const struct decontaminate_conf *c, struct err *e)
{
    if (!c->against.n)
        return err_set(e, ERR_ARG, "against which evaluation sets? (--against FILE)");
    if (!c->question || !*c->question)
        return err_set(e, ERR_ARG, "the field of the question needs a name");
    if (c->action == DECON_STRIP && c->method == DECON_DATATROVE)
        return err_set(e, ERR_ARG, "datatrove's words have no place in the text: it cannot strip");
    if (c->method == DECON_CURATOR && c->action == DECON_ANNOTATE)
        return err_set(e, ERR_ARG, "curator cuts documents: it does not annotate");
    if (c->method == DECON_CURATOR && c->report)
        return err_set(e, ERR_ARG, "curator knows n-grams, not questions: it has no report");
    if (c->perfect_end < c->perfect_until)
        return err_set(e, ERR_ARG, "perfect-end (%lld) is below perfect-until (%lld)", (long long)c->perfect_end,
                       (long long)c->perfect_until);
    return 0;
}

static int read_sets(struct eval_set *set, const struct decontaminate_conf *c, struct err *e)
{
    const struct eval_fields f = {c->id, c->task, c->question, c->answer, c->passage};

    for (int i = 0; i < c->against.n; i++)
        TRY(eval_set_read(set, c->against.v[i], &f, e));
    return set->n ? 0 : err_set(e, ERR_ARG, "there are no questions in '%s'", c->against.v[0]);
}

static int open_parts(struct decontaminate *s, struct err *e)
{
    static const struct eval_method *const methods[] = {
        [DECON_QUERN] = &eval_method_quern,
        [DECON_DATATROVE] = &eval_method_datatrove,
        [DECON_DECON] = &eval_method_decon,
    };
    double start = log_seconds();
    size_t skipped, bytes;

    s->method = methods[s->conf.method];
    s->documents_of = calloc(s->evals.n, sizeof *s->documents_of);
    if (!s->documents_of)
        return err_set(e, ERR_NOMEM, "out of memory for %zu questions", s->evals.n);
    TRY(s->method->open(&s->m, &s->conf, &s->evals, e));
    s->method->describe(s->m, &skipped, &bytes);
    log_msg(LOG_INFO, "%zu questions, %zu of them too short to be found; index of %.1f MB in %.0f ms", s->evals.n,
            skipped, (double)bytes / 1e6, 1e3 * (log_seconds() - start));
    return 0;
}

int decontaminate_stage_open(struct stage *st, const struct decontaminate_conf *c, struct err *e)
{
    struct decontaminate *s;
    int rc;

    TRY(check(c, e));
    s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->conf = *c;
    rc = read_sets(&s->evals, c, e);
    if (rc == 0 && c->method == DECON_CURATOR) {
        rc = decontaminate_curator_open(st, c, &s->evals, e);
        close_stage(s);
        return rc;
    }
    if (rc == 0)
        rc = open_parts(s, e);
    if (rc < 0) {
        close_stage(s);
        return rc;
    }
    *st = (struct stage){c->report ? &ops_reported : &ops_plain, s};
    return 0;
}
