#include "curate/stages/doc_route.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/node.h"

const struct stage_rule doc_route_rules[] = {
    {"no_branch", NULL, "no branch of the plan takes such documents", NULL, false},
    {0},
};

/* ---- tests ---- */

static int wrong(const char *text, const char *why, struct err *e)
{
    return err_set(e, ERR_FORMAT, "'%s' %s: a test is FIELD OP VALUE, as in lang == de", text, why);
}

/* Cuts off the next word of *p, between blanks, perhaps in quotes; NULL at the end.  *p is NULL after a quote without an end. */
static char *next_word(char **p)
{
    char *s = *p ? *p + strspn(*p, " \t,") : NULL, *end;

    if (!s || !*s)
        return NULL;
    end = *s == '"' || *s == '\'' ? strchr(s + 1, *s) : s + strcspn(s, " \t,");
    s += *s == '"' || *s == '\'';
    *p = end && *end ? end + 1 : end;
    if (end)
        *end = '\0';
    return s;
}

static double number_of(const char *word)
{
    struct arena a = {0};
    struct node *n;
    struct err e;
    double x = NAN;

    if (node_parse_json(&a, span_of(word), &n, &e) == 0 && (n->type == NODE_INT || n->type == NODE_NUM))
        x = n->num;
    arena_free(&a);
    return x;
}

static int find_op(const char *word)
{
    static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};

    for (int i = 0; word && i < 6; i++)
        if (strcmp(word, ops[i]) == 0)
            return i;
    return word && strcmp(word, "in") == 0 ? DOC_IS : -1;
}

int doc_test_read(struct doc_test *t, const char *text, struct arena *a, struct err *e)
{
    char *p = (char *)(uintptr_t)arena_dup(a, span_of(text)).p, *field = next_word(&p), *op = next_word(&p), *word, *dot;
    size_t room = strlen(text) + 1;
    int found = find_op(op);

    *t = (struct doc_test){.text = arena_dup(a, span_of(text)).p, .field = field, .word = arena_alloc(a, room * sizeof *t->word),
                           .number = arena_alloc(a, room * sizeof *t->number)};
    if (!t->text || !t->word || !t->number)
        return err_set(e, ERR_NOMEM, "out of memory for a test");
    if (!field || !op)
        return wrong(text, "is none", e);
    if (found < 0)
        return wrong(text, "has an operator that is not ==, !=, <, <=, >, >= or in", e);
    t->op = (enum doc_test_op)found;
    dot = strchr(field, '.');
    if (dot) {
        *dot = '\0';
        t->within = dot + 1;
    }
    while ((word = next_word(&p))) {
        t->word[t->n] = word;
        t->number[t->n++] = number_of(word);
    }
    if (!p)
        return wrong(text, "has a quote without an end", e);
    if (!t->n)
        return wrong(text, "has no value", e);
    if (t->n > 1 && strcmp(op, "in") != 0)
        return wrong(text, "has several values, which only in takes", e);
    if (t->op >= DOC_LESS && isnan(t->number[0]))
        return wrong(text, "compares with what is no number", e);
    return 0;
}

static bool compare(enum doc_test_op op, double x, double y)
{
    switch (op) {
    case DOC_LESS:
        return x < y;
    case DOC_AT_MOST:
        return x <= y;
    case DOC_MORE:
        return x > y;
    case DOC_AT_LEAST:
        return x >= y;
    case DOC_IS_NOT:
        return x != y;
    default:
        return x == y;
    }
}

static bool meets_text(const struct doc_test *t, struct span s)
{
    if (t->op >= DOC_LESS)
        return false;
    for (int i = 0; i < t->n; i++)
        if (span_is(s, t->word[i]))
            return t->op == DOC_IS;
    return t->op == DOC_IS_NOT;
}

static bool meets_value(const struct doc_test *t, const struct node *n)
{
    if (n->type == NODE_STR || n->type == NODE_BOOL)
        return meets_text(t, n->str);
    if (n->type != NODE_INT && n->type != NODE_NUM)
        return false;
    for (int i = 0; i < t->n; i++)
        if (compare(t->op, n->num, t->number[i]))
            return true;
    return false;
}

/* The field of a document that was parsed last: the tests of a plan often ask for one object. */
struct parsed {
    const char *field; /* NULL: none yet */
    struct node *value; /* NULL: the document lacks it */
};

static int parse_field(struct parsed *last, const char *field, struct doc *d, struct err *e)
{
    struct span s;

    if (last->field && strcmp(last->field, field) == 0)
        return 0;
    s = doc_raw(d, field);
    *last = (struct parsed){field, NULL};
    return s.p ? node_parse_json(d->arena, s, &last->value, e) : 0;
}

/* 1: the document meets the test. */
static int meets(const struct doc_test *t, struct doc *d, struct parsed *last, struct err *e)
{
    struct span s = doc_string(d, t->field);
    const struct node *n;

    if (s.p)
        return !t->within && meets_text(t, s);
    TRY(parse_field(last, t->field, d, e));
    n = last->value && t->within ? node_get(last->value, t->within) : last->value;
    return n && meets_value(t, n);
}

/* ---- the stage ---- */

struct router {
    const struct doc_route_conf *conf;
    uint64_t *taken; /* by each route */
};

/* Whether a document goes to a branch with tests. */
static int takes(const struct doc_route *r, struct doc *d, struct parsed *last, struct err *e)
{
    for (int i = 0; i < r->n_tests; i++) {
        int rc = meets(&r->test[i], d, last, e);

        if (rc <= 0)
            return rc;
    }
    return !r->otherwise;
}

static int route_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    const struct router *s = stage;
    const struct doc_route_conf *c = s->conf;
    char *to = arena_calloc(d->arena, (size_t)c->n + 1, 1);
    bool tested = false, any = c->kept;
    struct parsed last = {0};

    (void)thread;
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for a document's branches");
    for (int i = 0; i < c->n; i++) {
        int rc = takes(&c->route[i], d, &last, e);

        TRY(rc);
        to[i] = (char)rc;
        tested |= rc && c->route[i].n_tests;
    }
    for (int i = 0; i < c->n; i++) {
        if (c->route[i].otherwise)
            to[i] = !tested;
        any |= to[i];
        if (to[i])
            __atomic_fetch_add(&s->taken[i], 1, __ATOMIC_RELAXED);
    }
    *note = (struct span){to, (size_t)c->n};
    return any ? 0 : verdict_drop(v, &doc_route_rules[0], NAN, NAN);
}

static int route_stats(void *stage, struct buf *json)
{
    const struct router *s = stage;

    TRY(json_put_key(json, "branches"));
    TRY(buf_putc(json, '{'));
    for (int i = 0; i < s->conf->n; i++)
        TRY(json_put_count(json, s->conf->route[i].name, s->taken[i]));
    return buf_putc(json, '}');
}

static void route_close(void *stage)
{
    struct router *s = stage;

    free(s->taken);
    free(s);
}

static const struct stage_ops route_ops = {
    .name = "branches", .work = route_work, .stats = route_stats, .close = route_close,
};

int doc_route_stage_open(struct stage *s, const struct doc_route_conf *conf, struct err *e)
{
    struct router *r = calloc(1, sizeof *r);
    uint64_t *taken = calloc((size_t)conf->n + 1, sizeof *taken);

    if (!r || !taken) {
        free(r);
        free(taken);
        return err_set(e, ERR_NOMEM, "out of memory for branches");
    }
    *r = (struct router){conf, taken};
    *s = (struct stage){&route_ops, r};
    return 0;
}
