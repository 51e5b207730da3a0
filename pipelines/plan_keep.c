#include "pipelines/plan_keep.h"

#include "base/log.h"

/* ---- forgetting ---- */

/* Whether anything is to be forgotten. */
static bool has_pages(const struct forget_conf *pages)
{
    return pages->ids.n || pages->urls.n;
}

static int copy_list(struct opt_list *to, const struct opt_list *from, struct err *e)
{
    for (int i = 0; i < from->n; i++)
        TRY(opt_list_add(to, from->v[i], e));
    return 0;
}

/* A stage `forget` of these files, whose lists are its own; plan_free releases them. */
static int forget_node(struct plan *p, const struct forget_conf *pages, struct plan_node *out, struct err *e)
{
    struct forget_conf *conf = arena_calloc(&p->arena, 1, sizeof *conf);

    if (!conf)
        return err_set(e, ERR_NOMEM, "out of memory for the plan");
    *out = (struct plan_node){.conf = conf};
    node_kind_find(span_of("forget"), &out->kind);
    TRY(copy_list(&conf->ids, &pages->ids, e));
    return copy_list(&conf->urls, &pages->urls, e);
}

/* Puts a node into a branch, behind its first `at`. */
static int put_node(struct plan *p, struct plan_branch *b, int at, const struct plan_node *n, struct err *e)
{
    struct plan_node *node = arena_calloc(&p->arena, (size_t)b->n_nodes + 1, sizeof *node);

    if (!node)
        return err_set(e, ERR_NOMEM, "out of memory for the plan");
    for (int i = 0; i < b->n_nodes; i++)
        node[i + (i >= at)] = b->node[i];
    node[at] = *n;
    b->node = node;
    b->n_nodes++;
    return 0;
}

int plan_forget(struct plan *p, const struct forget_conf *pages, struct err *e)
{
    struct plan_node n;

    if (!has_pages(pages))
        return 0;
    TRY(copy_list(&p->forget.ids, &pages->ids, e));
    TRY(copy_list(&p->forget.urls, &pages->urls, e));
    if (p->keep)
        return 0;
    TRY(forget_node(p, pages, &n, e));
    return put_node(p, p->branch, 0, &n, e);
}

/* Opens a stage `forget` in front of stage b->cut, which is of this branch. */
static int forget_at_cut(struct plan *p, struct plan_branch *b, struct stage *stage, struct err *e)
{
    int at = b->cut;
    struct plan_node n;
    struct stage s;

    TRY(forget_node(p, &p->forget, &n, e));
    TRY(put_node(p, b, at - b->first, &n, e));
    TRY(n.kind.stage->open(&s, n.conf, e));
    for (int i = p->n_stages++; i > at; i--) {
        p->stage[i] = p->stage[i - 1];
        stage[i] = stage[i - 1];
    }
    p->stage[at] = n;
    stage[at] = s;
    b->last++;
    for (struct plan_branch *x = b + 1; x < p->branch + p->n_branches; x++) {
        x->first++;
        x->last++;
        x->cut += x->cut >= 0;
    }
    return 0;
}

/* ---- cuts ---- */

/* The stage in front of which a branch would be cut by itself; -1: none. */
static int own_cut(const struct plan_branch *b, const struct stage *stage)
{
    for (int k = b->first; k < b->last; k++)
        if (stage[k].ops->commit)
            return k;
    return b->output ? b->first + b->n_nodes : -1;
}

/* Whether all that a branch reads was compared with nothing, and is not cut. */
static bool reads_alone(const struct plan *p, const struct plan_branch *b)
{
    for (int k = 0; k < b->n_from; k++)
        if (!p->branch[b->from[k]].alone || p->branch[b->from[k]].cut >= 0)
            return false;
    return true;
}

/* Whether a branch that is not alone reads this one. */
static bool is_read_by_others(const struct plan *p, int branch)
{
    for (const struct plan_branch *b = p->branch + branch + 1; b < p->branch + p->n_branches; b++)
        for (int k = 0; k < b->n_from; k++)
            if (b->from[k] == branch && !b->alone)
                return true;
    return false;
}

/* One look at all branches; true: another is needed.  Branches only ever cease to be alone, so there is an end to it. */
static bool look_for_cuts(struct plan *p, const struct stage *stage)
{
    bool changed = false;

    for (int i = 0; i < p->n_branches; i++) {
        struct plan_branch *b = &p->branch[i];
        bool alone = b->alone && reads_alone(p, b);
        int cut = alone ? own_cut(b, stage) : -1;

        if (alone && cut < 0 && is_read_by_others(p, i))
            cut = b->first + b->n_nodes;
        changed |= alone != b->alone || cut != b->cut;
        b->alone = alone;
        b->cut = cut;
    }
    return changed;
}

int plan_find_cuts(struct plan *p, struct stage *stage, struct err *e)
{
    for (int i = 0; i < p->n_branches; i++) {
        p->branch[i].alone = true;
        p->branch[i].cut = -1;
    }
    while (look_for_cuts(p, stage))
        continue;
    for (int i = 0; i < p->n_branches && has_pages(&p->forget); i++)
        if (p->branch[i].cut >= 0)
            TRY(forget_at_cut(p, &p->branch[i], stage, e));
    return 0;
}

void plan_tell_kept(const struct plan *p, bool kept)
{
    if (kept)
        log_msg(LOG_INFO, "going on from the documents in '%s': only the stages behind them are run", p->keep);
    else if (has_pages(&p->forget) && p->keep)
        log_msg(LOG_INFO, "'%s' does not have all documents: the whole plan is run", p->keep);
    else if (has_pages(&p->forget))
        log_msg(LOG_INFO, "the plan has kept no documents (keep): the whole plan is run");
}
