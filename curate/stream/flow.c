#include "curate/stream/flow.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/version.h"

int flows_init(struct flows *t, int n_stages)
{
    *t = (struct flows){.n = n_stages + 1};
    t->flow = calloc((size_t)t->n, sizeof *t->flow);
    return t->flow ? 0 : ERR_NOMEM;
}

static void flow_free(struct flow *f)
{
    for (int i = 0; i < f->n_rules; i++)
        free((void *)(uintptr_t)f->rule[i].rule);
    free(f->rule);
    *f = (struct flow){0};
}

void flows_free(struct flows *t)
{
    for (int i = 0; i < t->n && t->flow; i++)
        flow_free(&t->flow[i]);
    free(t->flow);
    *t = (struct flows){0};
}

int flow_count_rule(struct flow *f, const char *rule, uint64_t n)
{
    struct rule_count *p;
    int i = 0;

    while (i < f->n_rules && strcmp(f->rule[i].rule, rule) != 0)
        i++;
    if (i == f->n_rules) {
        char *copy = strdup(rule);
        p = copy ? realloc(f->rule, (size_t)(i + 1) * sizeof *p) : NULL;
        if (!p) {
            free(copy);
            return ERR_NOMEM;
        }
        f->rule = p;
        f->rule[f->n_rules++] = (struct rule_count){copy, 0};
    }
    f->rule[i].n += n;
    return 0;
}

int flows_add(struct flows *a, const struct flows *b)
{
    for (int i = 0; i < a->n; i++) {
        struct flow *x = &a->flow[i];
        const struct flow *y = &b->flow[i];

        x->docs_in += y->docs_in;
        x->docs_out += y->docs_out;
        x->bytes_in += y->bytes_in;
        x->bytes_out += y->bytes_out;
        for (int k = 0; k < y->n_rules; k++)
            TRY(flow_count_rule(x, y->rule[k].rule, y->rule[k].n));
    }
    a->dropped += b->dropped;
    a->bad += b->bad;
    return 0;
}

/* ---- JSON ---- */

static int put_flow(struct buf *b, const struct flow *f)
{
    TRY(json_put_count(b, "docs_in", f->docs_in));
    TRY(json_put_count(b, "docs_out", f->docs_out));
    TRY(json_put_count(b, "bytes_in", f->bytes_in));
    TRY(json_put_count(b, "bytes_out", f->bytes_out));
    TRY(json_put_key(b, "dropped_by"));
    TRY(buf_putc(b, '{'));
    for (int i = 0; i < f->n_rules; i++)
        TRY(json_put_count(b, f->rule[i].rule, f->rule[i].n));
    return buf_putc(b, '}');
}

int flows_check(const struct flows *t, const struct source *source, struct err *e)
{
    if (source || t->flow[0].docs_in || !t->bad)
        return 0;
    return err_set(e, ERR_FORMAT, "none of %" PRIu64 " records is a document: nothing is written", t->bad);
}

int flows_put(const struct flows *t, struct buf *json)
{
    TRY(buf_putc(json, '{'));
    TRY(json_put_count(json, "dropped", t->dropped));
    TRY(json_put_count(json, "bad", t->bad));
    TRY(json_put_key(json, "flow"));
    TRY(buf_putc(json, '['));
    for (int i = 0; i < t->n; i++) {
        TRY(buf_puts(json, i ? ",{" : "{"));
        if (t->flow[i].docs_in || t->flow[i].docs_out || t->flow[i].n_rules) /* of many stages a part has met few */
            TRY(put_flow(json, &t->flow[i]));
        TRY(buf_putc(json, '}'));
    }
    return buf_puts(json, "]}");
}

static uint64_t get_count(const struct node *n, const char *key)
{
    return (uint64_t)node_int(n, key, 0);
}

static int get_flow(struct flow *f, const struct node *n)
{
    const struct node *rules = node_get(n, "dropped_by");

    f->docs_in = get_count(n, "docs_in");
    f->docs_out = get_count(n, "docs_out");
    f->bytes_in = get_count(n, "bytes_in");
    f->bytes_out = get_count(n, "bytes_out");
    for (const struct node *r = rules ? rules->child : NULL; r; r = r->next)
        TRY(flow_count_rule(f, r->key.p, (uint64_t)r->integer));
    return 0;
}

int flows_get(struct flows *t, const struct node *n, struct err *e)
{
    const struct node *flow = node_get(n, "flow");
    int i = 0;

    if (!flow || flow->type != NODE_LIST || flow->count != t->n)
        return err_set(e, ERR_FORMAT, "the counts are not those of %d stages", t->n - 1);
    t->dropped = get_count(n, "dropped");
    t->bad = get_count(n, "bad");
    for (const struct node *f = flow->child; f; f = f->next, i++)
        if (get_flow(&t->flow[i], f) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for the counts");
    return 0;
}

/* What passed stage k - 1, or for 0 the source. */
static int put_stage(struct buf *b, const struct stats *s, int k)
{
    const char *branch = k && s->branch ? s->branch[k - 1] : NULL;

    TRY(buf_puts(b, "{\"stage\":"));
    TRY(json_put_string(b, span_of(k ? s->stages[k - 1].ops->name : s->source->ops->name)));
    if (branch) {
        TRY(json_put_key(b, "branch"));
        TRY(json_put_string(b, span_of(branch)));
    }
    TRY(put_flow(b, &s->flows->flow[k]));
    if (s->own[k].n)
        TRY(buf_putc(b, ','));
    TRY(buf_put_span(b, buf_span(&s->own[k])));
    return buf_putc(b, '}');
}

int stats_put(struct buf *json, const struct stats *s)
{
    const struct flow *in = s->flows->flow;
    int first = s->source ? 0 : 1;

    TRY(buf_puts(json, "{\"quern\":\"" QUERN_VERSION "\""));
    TRY(json_put_count(json, "docs_in", in->docs_in));
    TRY(json_put_count(json, "docs_out", s->docs_out));
    TRY(json_put_count(json, "dropped", s->flows->dropped));
    TRY(json_put_count(json, "bad", s->flows->bad));
    TRY(json_put_count(json, "bytes_in", in->bytes_in));
    TRY(json_put_count(json, "bytes_out", s->bytes_out));
    TRY(json_put_key(json, "seconds"));
    TRY(json_put_num(json, s->seconds));
    if (s->laps) {
        TRY(json_put_key(json, "time"));
        TRY(laps_json(s->laps, json));
    }
    TRY(json_put_key(json, "stages"));
    TRY(buf_putc(json, '['));
    for (int k = first; k < s->flows->n; k++) {
        if (k > first)
            TRY(buf_putc(json, ','));
        TRY(put_stage(json, s, k));
    }
    return buf_puts(json, "]}\n");
}
