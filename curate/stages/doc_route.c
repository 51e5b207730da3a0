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

/* A document that is asked about its fields.  The object that was parsed last is kept: tests of a plan often ask for one. */
struct asked {
    struct doc *doc;
    struct span field; /* p NULL: none yet */
    struct node *value; /* NULL: the document lacks it */
};

static int parse_field(struct asked *a, struct span field, struct err *e)
{
    struct span name, s;

    if (a->field.p && span_eq(a->field, field))
        return 0;
    name = arena_dup(a->doc->arena, field);
    if (!name.p)
        return err_set(e, ERR_NOMEM, "out of memory for a document's fields");
    s = doc_raw(a->doc, name.p);
    a->field = field;
    a->value = NULL;
    return s.p ? node_parse_json(a->doc->arena, s, &a->value, e) : 0;
}

/* What a document has under a test's field. */
static int get_field(void *arg, const struct where_node *test, struct where_value *v, struct err *e)
{
    struct asked *a = arg;
    const char *dot = strchr(test->field, '.');
    struct span s = dot ? (struct span){NULL, 0} : doc_string(a->doc, test->field);
    const struct node *n;

    if (s.p) {
        *v = (struct where_value){WHERE_TEXT, s, 0};
        return 0;
    }
    TRY(parse_field(a, dot ? (struct span){test->field, (size_t)(dot - test->field)} : span_of(test->field), e));
    n = a->value && dot ? node_get(a->value, dot + 1) : a->value;
    if (n && (n->type == NODE_STR || n->type == NODE_BOOL))
        *v = (struct where_value){WHERE_TEXT, n->str, 0};
    else if (n && (n->type == NODE_INT || n->type == NODE_NUM))
        *v = (struct where_value){WHERE_NUMBER, {NULL, 0}, n->num};
    return 0;
}

/* ---- the stage ---- */

struct router {
    const struct doc_route_conf *conf;
    uint64_t *taken; /* by each route */
};

/* Whether a document goes to a branch with tests. */
static int takes(const struct doc_route *r, struct asked *a, struct err *e)
{
    for (int i = 0; i < r->n_tests; i++) {
        int rc = where_meets(r->test[i], get_field, a, e);

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
    struct asked a = {.doc = d};

    (void)thread;
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for a document's branches");
    for (int i = 0; i < c->n; i++) {
        int rc = takes(&c->route[i], &a, e);

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
    r->conf = conf;
    r->taken = taken;
    s->ops = &route_ops;
    s->state = r;
    return 0;
}
