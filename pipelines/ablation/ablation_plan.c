/* One plan for the variants that have the same inputs: a tree of stages, in which what begins alike stands once. */
#include "pipelines/ablation/ablation.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"

/* A stage in the tree of a group. */
struct tree_stage {
    struct span text; /* as JSON */
    int parent, children, ends; /* ends: variants whose last stage this is */
    int branch; /* number; 0: the plan's own stages */
};

/* tree[0] stands before all stages. */
struct stage_tree {
    struct tree_stage *at;
    int n;
    int end[ABLATION_VARIANTS];     /* where each variant of the group ends */
    int branches;
    int from[2 * ABLATION_VARIANTS + 2]; /* of each branch: the one it reads */
    int first[2 * ABLATION_VARIANTS + 2]; /* its first stage */
    int owner[2 * ABLATION_VARIANTS + 2]; /* the variant that it ends in; -1: it is shared */
};

void ablation_group_path(const struct ablation *a, int group, char path[4096])
{
    snprintf(path, 4096, "%s/data/%s", a->work, a->group[group].key);
}

void ablation_data_path(const struct ablation *a, int variant, char path[4096])
{
    const struct ablation_variant *v = &a->variant[variant];

    snprintf(path, 4096, "%s/data/%s/%s%s", a->work, a->group[v->group].key, v->name, v->weights ? "/" : "");
}

void ablation_runs_path(const struct ablation *a, int variant, char path[4096])
{
    snprintf(path, 4096, "%s/runs/%s-%s", a->work, a->variant[variant].name, a->variant[variant].key);
}

/* The child of a stage with this text, made if it is not there; -1: out of memory. */
static int child_of(struct ablation *a, struct stage_tree *t, int parent, const struct node *stage)
{
    struct buf text = {0};
    int at = -1;

    if (node_put_json(&text, stage, " ") == 0) {
        for (int i = parent + 1; i < t->n && at < 0; i++)
            at = t->at[i].parent == parent && span_eq(t->at[i].text, buf_span(&text)) ? i : -1;
        if (at < 0) {
            struct span copy = arena_dup(&a->arena, buf_span(&text));

            if (copy.p) {
                at = t->n++;
                t->at[at] = (struct tree_stage){.text = copy, .parent = parent};
                t->at[parent].children++;
            }
        }
    }
    buf_free(&text);
    return at;
}

/* The stages of all variants of a group.  The branches follow: one goes on as long as nothing ends or forks. */
static int grow_tree(struct ablation *a, int group, struct stage_tree *t)
{
    size_t room = 1;

    for (int v = 0; v < a->n_variants; v++)
        room += a->variant[v].group == group ? (size_t)a->variant[v].stages->count : 0;
    *t = (struct stage_tree){.at = calloc(room, sizeof *t->at), .n = 1};
    if (!t->at)
        return ERR_NOMEM;
    for (int v = 0; v < a->n_variants; v++) {
        int at = 0;

        if (a->variant[v].group != group)
            continue;
        for (const struct node *s = a->variant[v].stages->child; s && at >= 0; s = s->next)
            at = child_of(a, t, at, s);
        if (at < 0)
            return ERR_NOMEM;
        t->end[v] = at;
        t->at[at].ends++;
    }
    return 0;
}

static bool goes_on(const struct tree_stage *s)
{
    return s->ends == 0 && s->children == 1;
}

/* Gives each stage its branch, and each variant one that ends in its dataset: that of its last stage, if it has it alone, else
 * one more. */
static void cut_branches(const struct ablation *a, int group, struct stage_tree *t)
{
    t->owner[0] = -1;
    t->branches = 1;
    for (int i = 1; i < t->n; i++) { /* parents stand before their children */
        const struct tree_stage *p = &t->at[t->at[i].parent];

        t->at[i].branch = p->branch;
        if (goes_on(p))
            continue;
        t->at[i].branch = t->branches;
        t->from[t->branches] = p->branch;
        t->first[t->branches] = i;
        t->owner[t->branches++] = -1;
    }
    for (int v = 0; v < a->n_variants; v++) {
        const struct tree_stage *s = &t->at[t->end[v]];

        if (a->variant[v].group != group)
            continue;
        if (s->branch && s->ends == 1 && s->children == 0) {
            t->owner[s->branch] = v;
            continue;
        }
        t->from[t->branches] = s->branch;
        t->first[t->branches] = t->n;
        t->owner[t->branches++] = v;
    }
}

/* Branch b is called after the variant that it ends in. */
static void name_branch(const struct ablation *a, const struct stage_tree *t, int b, char name[300])
{
    if (t->owner[b] >= 0)
        snprintf(name, 300, "%s", a->variant[t->owner[b]].name);
    else if (b)
        snprintf(name, 300, "shared %d", b);
    else
        *name = '\0';
}

/* The stages of a branch, a line each. */
static int put_stages(const struct stage_tree *t, int branch, struct buf *b, const char *indent)
{
    for (int i = branch ? t->first[branch] : 1; i < t->n; i++)
        if (t->at[i].branch == branch)
            TRY(buf_printf(b, "%s  - %.*s\n", indent, (int)t->at[i].text.n, t->at[i].text.p));
    return 0;
}

/* What ends a variant's branch. */
static int put_end(const struct ablation *a, int variant, struct buf *b)
{
    char path[4096];

    ablation_data_path(a, variant, path);
    TRY(buf_puts(b, "      - {\"tokenize\": {\"append-eod\": true, \"tokenizer\": "));
    TRY(json_put_name(b, a->variant[variant].tokenizer));
    TRY(buf_puts(b, ", \"output-prefix\": "));
    TRY(json_put_name(b, path));
    return buf_puts(b, "}}\n");
}

/* The plan's own stages: the source, and what all variants begin with. */
static int put_own(const struct ablation_variant *v, const struct stage_tree *t, struct buf *b)
{
    TRY(buf_puts(b, "input: "));
    TRY(node_put_json(b, v->input, " "));
    if (!v->source && (t->n == 1 || t->at[1].branch))
        return buf_puts(b, "\nstages: []\n");
    TRY(buf_puts(b, "\nstages:\n"));
    if (v->source) {
        TRY(buf_puts(b, "  - "));
        TRY(node_put_json(b, v->source, " "));
        TRY(buf_putc(b, '\n'));
    }
    return put_stages(t, 0, b, "");
}

static int put_place(const struct ablation *a, int group, const char *key, const char *name, struct buf *b)
{
    char folder[4096], path[4200];

    ablation_group_path(a, group, folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    TRY(buf_printf(b, "%s: ", key));
    TRY(json_put_name(b, path));
    return buf_putc(b, '\n');
}

static int put_plan(const struct ablation *a, int group, const struct stage_tree *t, struct buf *b)
{
    char name[300];

    TRY(put_own(&a->variant[a->group[group].first], t, b));
    TRY(buf_puts(b, "branches:\n"));
    for (int i = 1; i < t->branches; i++) {
        name_branch(a, t, i, name);
        TRY(buf_printf(b, "  \"%s\":\n", name));
        if (t->from[i]) {
            name_branch(a, t, t->from[i], name);
            TRY(buf_printf(b, "    from: \"%s\"\n", name));
        }
        TRY(buf_puts(b, "    stages:\n"));
        TRY(put_stages(t, i, b, "    "));
        TRY(t->owner[i] >= 0 ? put_end(a, t->owner[i], b) : 0);
    }
    TRY(put_place(a, group, "stats", "stats.json", b));
    return put_place(a, group, "work", "work", b);
}

/* The names of the branches that a variant goes through. */
static int note_branches(struct ablation *a, const struct stage_tree *t, int variant)
{
    struct ablation_variant *v = &a->variant[variant];
    int b = 1;
    char name[300];

    while (t->owner[b] != variant)
        b++;
    v->branch = arena_calloc(&a->arena, (size_t)t->branches, sizeof *v->branch);
    for (v->n_branches = 0; v->branch; b = t->from[b]) {
        struct span copy;

        name_branch(a, t, b, name);
        copy = arena_dup(&a->arena, span_of(name));
        if (!copy.p)
            return ERR_NOMEM;
        v->branch[v->n_branches++] = copy.p;
        if (b == 0)
            return 0;
    }
    return ERR_NOMEM;
}

static int make_plan(struct ablation *a, int group)
{
    struct ablation_group *g = &a->group[group];
    struct stage_tree t;
    struct buf keys = {0};
    int rc = grow_tree(a, group, &t);

    if (rc == 0)
        cut_branches(a, group, &t);
    for (int v = 0; v < a->n_variants && rc == 0; v++)
        if (a->variant[v].group == group)
            rc = buf_printf(&keys, "%s %s\n", a->variant[v].name, a->variant[v].data);
    if (rc == 0) {
        snprintf(g->key, sizeof g->key, "%016" PRIx64, hash_xxh3_64(buf_span(&keys)));
        rc = put_plan(a, group, &t, &g->plan);
    }
    for (int v = 0; v < a->n_variants && rc == 0; v++)
        if (a->variant[v].group == group)
            rc = note_branches(a, &t, v);
    buf_free(&keys);
    free(t.at);
    return rc;
}

int ablation_plans(struct ablation *a, struct err *e)
{
    for (int g = 0; g < a->n_groups; g++)
        if (make_plan(a, g) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for the plans");
    return 0;
}
