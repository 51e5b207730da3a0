/* The questions of a task: documents and templates to texts. */
#include <stdlib.h>

#include "base/ascii.h"
#include "tokenize/tasks/parts.h"

static int no_memory(struct err *e) { return err_set(e, ERR_NOMEM, "out of memory for a task"); }

/* ---- opening ---- */

static bool is_feature(const struct task_maker *m, struct span name)
{
    for (int64_t i = 0; i < m->features; i++)
        if (span_eq(m->feature[i], name))
            return true;
    return false;
}

/* The names of all fields, in the order in which they first occur. */
static int find_features(struct task_maker *m, struct err *e)
{
    struct buf names = {0};

    for (int64_t i = 0; i < m->docs.n; i++)
        for (const struct node *f = m->docs.doc[i]->child; f; f = f->next)
            if (!is_feature(m, f->key)) {
                if (buf_put(&names, &f->key, sizeof f->key) < 0)
                    return no_memory(e);
                m->feature = (struct span *)(void *)names.p; /* freed with the maker */
                m->features++;
            }
    return 0;
}

static int open_field(struct task_maker *m, struct task_field *f, const struct node *value, struct err *e)
{
    f->value = value;
    if (!value || value->type != NODE_STR || is_feature(m, value->str))
        return 0;
    if (jinja_new(&f->template, value->str, JINJA_TASK, e) < 0)
        return task_conf_error(m->conf, value, e, "%s", e->msg);
    return 0;
}

static struct span delimiter(const struct node *n, struct span usual) { return n && n->type == NODE_STR ? n->str : usual; }

static int open_fields(struct task_maker *m, struct err *e)
{
    const struct task_conf *c = m->conf;
    struct task_fields *own = &m->own, *shot = &m->shot;

#define SHOT(key) (task_conf_fewshot(c, key) ? task_conf_fewshot(c, key) : task_conf_get(c, key))
    TRY(open_field(m, &own->text, task_conf_get(c, "doc_to_text"), e));
    TRY(open_field(m, &own->target, task_conf_get(c, "doc_to_target"), e));
    TRY(open_field(m, &own->choice, task_conf_get(c, "doc_to_choice"), e));
    TRY(open_field(m, &shot->text, SHOT("doc_to_text"), e));
    TRY(open_field(m, &shot->target, SHOT("doc_to_target"), e));
    TRY(open_field(m, &shot->choice, SHOT("doc_to_choice"), e));
    TRY(open_field(m, &m->describe, task_conf_get(c, "description"), e));
    own->target_delimiter = delimiter(task_conf_get(c, "target_delimiter"), span_of(" "));
    own->fewshot_delimiter = delimiter(task_conf_get(c, "fewshot_delimiter"), span_of("\n\n"));
    shot->target_delimiter = delimiter(SHOT("target_delimiter"), own->target_delimiter);
    shot->fewshot_delimiter = delimiter(SHOT("fewshot_delimiter"), own->fewshot_delimiter);
#undef SHOT
    if (c->kind == TASK_CHOICE && !own->choice.value)
        return task_conf_error(c, NULL, e, "multiple_choice needs doc_to_choice");
    if (!own->target.value || (c->kind != TASK_ROLLING && !own->text.value))
        return task_conf_error(c, NULL, e, "doc_to_text and doc_to_target are needed");
    return 0;
}

/* Where examples come from: a split or a list that the task names, else its training, validation or test split. */
static int open_examples(struct task_maker *m, struct err *e)
{
    static const char *const splits[] = {"training_split", "validation_split", "test_split"};
    const struct task_conf *c = m->conf;
    const struct node *split = task_conf_fewshot(c, "split"), *samples = task_conf_fewshot(c, "samples"),
                      *indices = task_conf_fewshot(c, "fewshot_indices"), *sampler = task_conf_fewshot(c, "sampler"),
                      *test = task_conf_get(c, "test_split");
    struct node **kept;
    int64_t n = 0;

    split = split ? split : task_conf_get(c, "fewshot_split");
    m->excludes = split && test ? span_eq(split->str, test->str) : !split && !test;
    m->first = sampler && sampler->type == NODE_STR && span_is(sampler->str, "first_n");
    if (sampler && !m->first && !span_is(sampler->str, "default"))
        return task_conf_error(c, sampler, e, "there is no sampler '%s'", sampler->str.p ? sampler->str.p : "");
    if (!split && samples)
        TRY(task_docs_list(&m->examples, samples, &m->arena, e));
    for (int i = 0; i < 3 && !split && !samples; i++)
        split = task_conf_get(c, splits[i]);
    if (split)
        TRY(task_docs_read(&m->examples, c, &m->arena, split->str.p ? split->str.p : "", e));
    if (!indices)
        return 0;
    kept = arena_calloc(&m->arena, (size_t)indices->count + 1, sizeof *kept);
    if (!kept)
        return no_memory(e);
    for (const struct node *i = indices->child; i; i = i->next) {
        if (i->type != NODE_INT || i->integer < 0 || i->integer >= m->examples.n)
            return task_conf_error(c, i, e, "there is no such example");
        kept[n++] = m->examples.doc[i->integer];
    }
    m->examples.doc = kept;
    m->examples.n = n;
    return 0;
}

static int field_value(struct task_maker *m, const struct task_field *f, const struct node *doc, struct arena *a,
                       struct node **out, struct err *e);

int task_maker_open(struct task_maker *m, const struct task_conf *c, const struct task_settings *s, struct err *e)
{
    const struct node *split = task_conf_get(c, "test_split");
    struct node *text;

    *m = (struct task_maker){.conf = c, .shots = s->shots >= 0 ? s->shots : c->shots};
    split = split ? split : task_conf_get(c, "validation_split");
    if (!split || split->type != NODE_STR)
        return task_conf_error(c, NULL, e, "a test_split or validation_split is needed");
    TRY(task_docs_read(&m->docs, c, &m->arena, split->str.p, e));
    TRY(find_features(m, e));
    TRY(open_fields(m, e));
    if (m->shots)
        TRY(open_examples(m, e));
    rng_mt_seed_python(&m->rng, (uint64_t)s->seed);
    if (c->kind == TASK_CHOICE) { /* of the first document, as the harness looks */
        TRY(field_value(m, &m->own.text, m->docs.doc[0], &m->arena, &text, e));
        m->several = text->type == NODE_INT;
    }
    if (s->limit && s->limit < m->docs.n)
        m->docs.n = s->limit;
    return 0;
}

static void close_fields(struct task_fields *f)
{
    jinja_free(f->text.template);
    jinja_free(f->target.template);
    jinja_free(f->choice.template);
}

void task_maker_close(struct task_maker *m)
{
    close_fields(&m->own);
    close_fields(&m->shot);
    jinja_free(m->describe.template);
    free(m->feature);
    arena_free(&m->arena);
}

/* ---- fields of a document ---- */

static struct node *text_node(struct arena *a, struct span s)
{
    struct node *n = arena_calloc(a, 1, sizeof *n);

    if (n)
        *n = (struct node){.type = NODE_STR, .str = arena_dup(a, s)};
    return n && n->str.p ? n : NULL;
}

static int render(struct task_maker *m, const struct jinja *x, const struct node *doc, struct arena *a, struct buf *out,
                  struct err *e)
{
    static const struct node none = {.type = NODE_NULL};
    struct jinja_var *v = arena_calloc(a, (size_t)m->features + 1, sizeof *v);
    struct buf ranges = {0};
    int rc;

    if (!v)
        return no_memory(e);
    for (int64_t i = 0; i < m->features; i++) {
        const struct node *value = node_get(doc, m->feature[i].p);

        v[i] = (struct jinja_var){m->feature[i].p, value ? value : &none};
    }
    rc = jinja_render(x, v, (int)m->features, NULL, a, out, &ranges, e);
    buf_free(&ranges);
    return rc;
}

static bool all_digits(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_digit(s.p[i]))
            return false;
    return s.n > 0 && s.n < 10;
}

/* What a field is for a document: a constant, what stands in the document, or what the template makes, which may be a number
 * (where there are choices) or, of a target or choices, a list.  A truth is a number. */
static int field_value(struct task_maker *m, const struct task_field *f, const struct node *doc, struct arena *a,
                       struct node **out, struct err *e)
{
    bool list = f == &m->own.choice || f == &m->shot.choice, target = f == &m->own.target || f == &m->shot.target;
    struct buf text = {0};
    struct node *n;
    int rc = 0;

    if (f->value->type != NODE_STR || !f->template) {
        const struct node *found = f->value->type == NODE_STR ? node_get(doc, f->value->str.p) : f->value;

        if (!found)
            return err_set(e, ERR_FORMAT, "it has no '%s'", f->value->str.p);
        if (!(n = arena_calloc(a, 1, sizeof *n)))
            return no_memory(e);
        *n = *found;
        if (n->type == NODE_BOOL)
            n->type = NODE_INT;
        *out = n;
        return 0;
    }
    rc = render(m, f->template, doc, a, &text, e);
    n = rc < 0 ? NULL : text_node(a, buf_span(&text));
    buf_free(&text);
    if (rc < 0)
        return rc;
    if (!n)
        return no_memory(e);
    *out = n;
    if (!list && m->own.choice.value && all_digits(n->str))
        return task_literal(a, n->str, out, e);
    if (list || (target && n->str.n >= 2 && n->str.p[0] == '[' && n->str.p[n->str.n - 1] == ']')) {
        struct err why;

        rc = task_literal(a, n->str, out, list ? e : &why);
        if (rc < 0 && !list)
            *out = n;
        return list ? rc : 0;
    }
    return 0;
}

/* A value as the text that Python's str has for it. */
static int text_of(const struct node *n, struct span *s, struct err *e)
{
    static const char *const truths[] = {"False", "True"};

    switch (n->type) {
    case NODE_STR:
    case NODE_INT:
    case NODE_NUM:
        *s = n->str;
        if (s->p)
            return 0;
        return err_set(e, ERR_FORMAT, "a number stands where a text is wanted");
    case NODE_BOOL:
        *s = span_of(truths[n->integer != 0]);
        return 0;
    default:
        return err_set(e, ERR_FORMAT, "%s stands where a text is wanted", n->type == NODE_NULL ? "null" : "a list or an object");
    }
}

static int choices_of(struct task_maker *m, const struct task_field *f, const struct node *doc, struct arena *a,
                      struct span **choice, int64_t *n, struct err *e)
{
    struct node *list;

    *n = 0;
    TRY(field_value(m, f, doc, a, &list, e));
    if ((list->type != NODE_LIST && list->type != NODE_MAP) || list->count == 0)
        return err_set(e, ERR_FORMAT, "doc_to_choice gives no list");
    *choice = arena_calloc(a, (size_t)list->count, sizeof **choice);
    if (!*choice)
        return no_memory(e);
    for (const struct node *c = list->child; c; c = c->next)
        TRY(text_of(c, &(*choice)[(*n)++], e));
    return 0;
}

/* ---- examples ---- */

static bool same(const struct node *a, const struct node *b)
{
    if (a->type != b->type || a->count != b->count || !span_eq(a->str, b->str) || a->integer != b->integer)
        return false;
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if (!span_eq(a->key, b->key) || !same(a, b))
            return false;
    return true;
}

/* Draws n of from[0 .. pool) to out. */
static int draw(struct task_maker *m, struct node **from, int64_t pool, int64_t n, struct node **out, struct arena *a,
                struct err *e)
{
    uint32_t *at = arena_calloc(a, (size_t)n + 1, sizeof *at);

    if (n > pool)
        return err_set(e, ERR_ARG, "%lld examples are more than the %lld that there are", (long long)n, (long long)pool);
    if (!at || (n && rng_mt_sample(&m->rng, (uint32_t)pool, (uint32_t)n, at) < 0))
        return no_memory(e);
    for (int64_t i = 0; i < n; i++)
        out[i] = from[at[i]];
    return 0;
}

/* m->shots examples to out, as the harness's samplers choose them: one more than wanted is drawn, and the question taken out;
 * where it was drawn twice, they are drawn again from all that differ. */
static int examples_of(struct task_maker *m, const struct node *doc, struct node **out, struct arena *a, struct err *e)
{
    const struct task_docs *x = &m->examples;
    struct node **drawn = arena_calloc(a, (size_t)(m->shots + 1), sizeof *drawn), **others;
    int64_t n = 0, rest = 0;

    if (!drawn)
        return no_memory(e);
    if (m->first) {
        for (int64_t i = 0; i < x->n && n < m->shots; i++)
            if (!m->excludes || !same(x->doc[i], doc))
                out[n++] = x->doc[i];
        return n == m->shots ? 0 : err_set(e, ERR_ARG, "there are only %lld examples", (long long)n);
    }
    if (!m->excludes)
        return draw(m, x->doc, x->n, m->shots, out, a, e);
    TRY(draw(m, x->doc, x->n, m->shots + 1, drawn, a, e));
    for (int64_t i = 0; i <= m->shots && n < m->shots; i++)
        if (!same(drawn[i], doc))
            out[n++] = drawn[i];
    if (n == m->shots)
        return 0;
    if (!(others = arena_calloc(a, (size_t)x->n, sizeof *others)))
        return no_memory(e);
    for (int64_t i = 0; i < x->n; i++)
        if (!same(x->doc[i], doc))
            others[rest++] = x->doc[i];
    return draw(m, others, rest, m->shots, out, a, e);
}

/* An example's text, with its answer. */
static int put_example(struct task_maker *m, const struct node *doc, struct arena *a, struct buf *out, struct err *e)
{
    const struct task_fields *f = &m->shot;
    struct span *choice = NULL, text = {NULL, 0}, answer = {NULL, 0};
    struct node *q, *t;
    int64_t n = 0;

    TRY(field_value(m, &f->text, doc, a, &q, e));
    if (f->choice.value)
        TRY(choices_of(m, &f->choice, doc, a, &choice, &n, e));
    TRY(field_value(m, &f->target, doc, a, &t, e));
    if (m->several) {
        if (!choice || q->type != NODE_INT || q->integer < 0 || q->integer >= n)
            return err_set(e, ERR_FORMAT, "doc_to_text of an example is no choice's number");
        text = choice[q->integer];
    } else {
        TRY(text_of(q, &text, e));
    }
    if (t->type == NODE_INT && n && !m->several) {
        int64_t at = t->integer < 0 ? t->integer + n : t->integer;

        if (at < 0 || at >= n)
            return err_set(e, ERR_FORMAT, "doc_to_target of an example is no choice's number");
        answer = choice[at];
    } else {
        const struct node *one = t->type == NODE_LIST ? t->child : t;

        if (!one || one->type != NODE_STR)
            return err_set(e, ERR_FORMAT, "doc_to_target of an example is neither a text nor a choice's number");
        answer = one->str;
    }
    buf_put_span(out, text);
    if (answer.n) {
        buf_put_span(out, f->target_delimiter);
        buf_put_span(out, answer);
        buf_put_span(out, f->fewshot_delimiter);
    }
    return out->failed ? no_memory(e) : 0;
}

/* ---- questions ---- */

/* The description and the examples. */
static int put_before(struct task_maker *m, const struct node *doc, struct arena *a, struct buf *out, struct err *e)
{
    struct node **example = arena_calloc(a, (size_t)m->shots + 1, sizeof *example), *text;
    struct span s = {NULL, 0};

    if (!example)
        return no_memory(e);
    if (m->describe.value && m->describe.value->str.n) {
        TRY(field_value(m, &m->describe, doc, a, &text, e));
        TRY(text_of(text, &s, e));
        buf_put_span(out, s);
    }
    if (m->shots)
        TRY(examples_of(m, doc, example, a, e));
    for (int64_t i = 0; i < m->shots; i++)
        TRY(put_example(m, example[i], a, out, e));
    return out->failed ? no_memory(e) : 0;
}

static int joined(struct arena *a, struct span x, struct span y, struct span *out, struct err *e)
{
    char *p = arena_alloc(a, x.n + y.n + 1);

    if (!p)
        return no_memory(e);
    memcpy(p, x.p ? x.p : "", x.n);
    memcpy(p + x.n, y.p ? y.p : "", y.n);
    p[x.n + y.n] = 0;
    *out = (struct span){p, x.n + y.n};
    return 0;
}

/* Which choices are right: numbers, or their texts. */
static int take_gold(const struct node *n, struct arena *a, struct task_question *q, struct err *e)
{
    const struct node *one = n->type == NODE_LIST ? n->child : n;

    q->gold = arena_calloc(a, n->type == NODE_LIST ? (size_t)n->count + 1 : 1, sizeof *q->gold);
    if (!q->gold)
        return no_memory(e);
    for (; one; one = n->type == NODE_LIST ? one->next : NULL) {
        int64_t at = -1;

        if (one->type == NODE_INT || one->type == NODE_BOOL)
            at = one->integer < q->choices ? one->integer : -1;
        else if (one->type == NODE_STR)
            for (int64_t i = q->choices; i-- > 0;)
                at = span_eq(q->choice[i], one->str) ? i : at;
        else
            return err_set(e, ERR_FORMAT, "what is right is neither a number nor a text");
        q->gold[q->golds++] = at;
    }
    return 0;
}

static int choice_question(struct task_maker *m, const struct node *doc, struct span before, struct arena *a,
                           struct task_question *q, struct err *e)
{
    const struct task_fields *f = &m->own;
    bool mutual = m->conf->metric[METRIC_MUTUAL];
    struct node *text, *target;
    struct span context = {NULL, 0}, behind = {NULL, 0};

    TRY(field_value(m, &f->text, doc, a, &text, e));
    TRY(choices_of(m, &f->choice, doc, a, &q->choice, &q->choices, e));
    TRY(field_value(m, &f->target, doc, a, &target, e));
    TRY(take_gold(m->several ? text : target, a, q, e));
    q->pairs = q->choices * (mutual ? 2 : 1);
    q->pair = arena_calloc(a, (size_t)q->pairs, sizeof *q->pair);
    if (!q->pair)
        return no_memory(e);
    if (m->several) {
        if (text->type != NODE_INT)
            return err_set(e, ERR_FORMAT, "doc_to_text is a number in the first document and a text here");
        TRY(text_of(target, &behind, e));
    } else {
        TRY(text_of(text, &context, e));
        TRY(joined(a, before, context, &context, e));
    }
    for (int64_t i = 0; i < q->choices; i++) {
        struct task_pair *p = &q->pair[i];

        p->context = context;
        if (m->several)
            TRY(joined(a, before, q->choice[i], &p->context, e));
        TRY(joined(a, f->target_delimiter, m->several ? behind : q->choice[i], &p->continuation, e));
        if (mutual)
            TRY(joined(a, f->target_delimiter, q->choice[i], &q->pair[q->choices + i].continuation, e));
    }
    return 0;
}

/* The texts that are right: the choice of that number, or what stands there, one or several. */
static int take_right(struct task_maker *m, const struct node *doc, const struct node *n, struct arena *a,
                      struct task_question *q, struct err *e)
{
    const struct node *one = n->type == NODE_LIST ? n->child : n;

    q->right = arena_calloc(a, n->type == NODE_LIST ? (size_t)n->count + 1 : 1, sizeof *q->right);
    if (!q->right)
        return no_memory(e);
    if (m->own.choice.value) {
        TRY(choices_of(m, &m->own.choice, doc, a, &q->choice, &q->choices, e));
        if (n->type != NODE_INT || n->integer < 0 || n->integer >= q->choices)
            return err_set(e, ERR_FORMAT, "doc_to_target is no choice's number");
        q->right[q->rights++] = q->choice[n->integer];
        q->choices = 0;
        return 0;
    }
    for (; one; one = n->type == NODE_LIST ? one->next : NULL)
        TRY(text_of(one, &q->right[q->rights++], e));
    return 0;
}

static int text_question(struct task_maker *m, const struct node *doc, struct span before, struct arena *a,
                         struct task_question *q, struct err *e)
{
    struct node *text, *target;
    struct span s = {NULL, 0};

    q->pairs = 1;
    if (!(q->pair = arena_calloc(a, 1, sizeof *q->pair)))
        return no_memory(e);
    TRY(field_value(m, &m->own.target, doc, a, &target, e));
    if (m->conf->kind == TASK_WRITING) {
        TRY(take_right(m, doc, target, a, q, e));
    } else {
        TRY(text_of(target, &q->target, e));
        q->pair->continuation = q->target;
    }
    if (m->conf->kind == TASK_ROLLING)
        return 0;
    TRY(field_value(m, &m->own.text, doc, a, &text, e));
    TRY(text_of(text, &s, e));
    return joined(a, before, s, &q->pair->context, e);
}

int task_maker_question(struct task_maker *m, int64_t i, struct arena *a, struct task_question *q, struct err *e)
{
    const struct node *doc = m->docs.doc[i];
    struct buf before = {0};
    int rc = 0;

    *q = (struct task_question){0};
    if (m->conf->kind != TASK_ROLLING)
        rc = put_before(m, doc, a, &before, e);
    if (rc == 0)
        rc = m->conf->kind == TASK_CHOICE ? choice_question(m, doc, buf_span(&before), a, q, e)
                                          : text_question(m, doc, buf_span(&before), a, q, e);
    buf_free(&before);
    return rc < 0 ? err_wrap(e, "'%s': question %lld", m->conf->path[0], (long long)i + 1) : 0;
}
