#include "pipelines/part_counts.h"

#include <stdlib.h>

#include "base/json.h"
#include "pipelines/counts.h"
#include "pipelines/work.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for counts");
}

int part_counts_init(struct part_counts *c, const struct plan *p)
{
    *c = (struct part_counts){.own = calloc((size_t)p->n_stages + 1, sizeof *c->own)};
    return c->own && flows_init(&c->flows, p->n_stages) == 0 ? 0 : ERR_NOMEM;
}

void part_counts_free(struct part_counts *c)
{
    for (int i = 0; i < c->flows.n && c->own; i++)
        buf_free(&c->own[i]);
    free(c->own);
    flows_free(&c->flows);
    *c = (struct part_counts){0};
}

int part_counts_add(struct part_counts *c, int k, int sign, struct span own, struct err *e)
{
    struct buf sum = {0};
    int rc;

    if (!own.n)
        return 0;
    rc = counts_add(&sum, buf_span(&c->own[k]), sign, own, e);
    if (rc < 0) {
        buf_free(&sum);
        return rc;
    }
    buf_free(&c->own[k]);
    c->own[k] = sum;
    return 0;
}

int part_counts_ask(const struct source *source, const struct stage *stage, int k, struct buf *out, struct err *e)
{
    int rc = 0;

    buf_clear(out);
    if (k == 0 && source && source->ops->stats)
        rc = source->ops->stats(source->state, out);
    else if (k > 0 && stage[k - 1].ops->stats)
        rc = stage[k - 1].ops->stats(stage[k - 1].state, out);
    return rc < 0 ? no_memory(e) : 0;
}

/* The part of all flows that is a pass's. */
static struct flows flows_of(const struct part_counts *c, const struct plan_pass *pass)
{
    return (struct flows){c->flows.flow + pass->first, pass->last - pass->first + 1, c->flows.dropped, c->flows.bad};
}

int part_counts_put(const struct part_counts *c, const struct plan_pass *pass, const struct buf *own, struct buf *b)
{
    struct flows f = flows_of(c, pass);

    TRY(json_put_key(b, "counts"));
    TRY(flows_put(&f, b));
    TRY(json_put_key(b, "own"));
    TRY(buf_putc(b, '['));
    for (int k = pass->first; k <= pass->last; k++) {
        if (k > pass->first)
            TRY(buf_putc(b, ','));
        TRY(json_put_string(b, buf_span(&own[k])));
    }
    return buf_putc(b, ']');
}

int part_counts_get(struct part_counts *c, const struct plan_pass *pass, const struct node *n, const char *path, struct err *e)
{
    const struct node *own = node_get(n, "own");
    struct flows sum = flows_of(c, pass), f;
    int rc = flows_init(&f, sum.n - 1), k = pass->first;

    if (rc == 0)
        rc = flows_get(&f, node_get(n, "counts"), e);
    if (rc == 0)
        rc = flows_add(&sum, &f);
    c->flows.dropped = sum.dropped;
    c->flows.bad = sum.bad;
    if (rc == 0 && (!own || own->type != NODE_LIST || own->count != f.n))
        rc = err_set(e, ERR_FORMAT, "they are those of other stages");
    flows_free(&f);
    if (rc == ERR_NOMEM)
        return no_memory(e);
    for (const struct node *o = rc == 0 ? own->child : NULL; o && rc == 0; o = o->next, k++)
        rc = part_counts_add(c, k, 1, o->str, e);
    return rc < 0 ? err_wrap(e, "'%s'", path) : 0;
}

int part_counts_read(struct part_counts *c, const struct plan *p, int pass, int input, struct err *e)
{
    struct arena a = {0};
    char path[4096];
    struct node *n;
    int rc;

    work_part(p, pass, input, WORK_DONE, path);
    rc = node_load_json(&a, path, &n, e);
    if (rc == 0)
        rc = part_counts_get(c, &p->pass[pass], n, path, e);
    arena_free(&a);
    return rc;
}

int part_counts_decided(struct part_counts *c, const struct plan *p, const struct plan_pass *pass, struct err *e)
{
    struct buf own = {0};
    char path[4096];
    int rc = 0;

    for (int g = 0; g < pass->groups && rc == 0; g++) {
        buf_clear(&own);
        work_decided(p, pass, g, path);
        rc = file_read_all(path, 64 << 20, &own, e);
        if (rc == 0)
            rc = part_counts_add(c, pass->last, 1, buf_span(&own), e);
    }
    buf_free(&own);
    return rc;
}
