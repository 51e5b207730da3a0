#include "pipelines/plan_read.h"

#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/http.h"
#include "base/near.h"
#include "base/opt_map.h"
#include "base/parquet_write.h"
#include "curate/extract/walk.h"

/* The keys of a plan and of a branch whose values are not words. */
static const char input_key[] = "input", stages_key[] = "stages", branches_key[] = "branches";
static const char from_key[] = "from", if_key[] = "if";
static const char *const plan_keys[] = {input_key, stages_key, branches_key, NULL};
static const char *const branch_keys[] = {from_key, if_key, stages_key, NULL};

int plan_wrong(const struct plan *p, int line, struct err *e, const char *fmt, ...)
{
    char what[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_FORMAT, "'%s' line %d: %s", p->file, line, what);
}

/* ---- inputs ---- */

/* Puts a copy of text behind n in a list, which has a new place at each power of two. */
static int append(struct arena *a, char ***list, int n, const char *text, size_t length)
{
    struct span copy = arena_dup(a, (struct span){text, length});
    char **more = *list;

    if ((n & (n - 1)) == 0) {
        more = arena_alloc(a, (n ? 2 * (size_t)n : 1) * sizeof *more);
        if (more && n)
            memcpy(more, *list, (size_t)n * sizeof *more);
    }
    if (!copy.p || !more)
        return ERR_NOMEM;
    *list = more;
    more[n] = (char *)(uintptr_t)copy.p;
    return 0;
}

static int add_input(struct plan *p, const char *name, struct err *e)
{
    char *told = http_is_address(name) ? http_name(name) : strdup(name);
    int rc = told ? append(&p->arena, &p->input, p->n_inputs, name, strlen(name)) : ERR_NOMEM;

    if (rc == 0)
        rc = append(&p->arena, &p->name, p->n_inputs, told, strlen(told));
    free(told);
    p->n_inputs += rc == 0;
    return rc < 0 ? plan_no_memory(e) : 0;
}

/* A folder of JSON lines stands for its files; a source walks folders itself. */
static int add_path(struct plan *p, char *path, struct err *e)
{
    struct walk w = {0};
    struct stat st;
    int rc;

    if (p->source.kind.source || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return add_input(p, path, e);
    rc = walk_list(&w, &path, 1, e);
    for (int i = 0; i < w.n && rc == 0; i++)
        rc = add_input(p, w.file[i].path, e);
    walk_free(&w);
    return rc;
}

/* A name, an address, or a pattern as in the shell. */
static int add_pattern(struct plan *p, const char *pattern, int line, struct err *e)
{
    glob_t g;
    int rc;

    if (http_is_address(pattern))
        return add_input(p, pattern, e);
    rc = glob(pattern, strpbrk(pattern, "*?[") ? GLOB_ERR : GLOB_NOCHECK, NULL, &g);

    if (rc == GLOB_NOMATCH)
        return plan_wrong(p, line, e, "no file matches '%s'", pattern);
    if (rc == GLOB_NOSPACE)
        return err_set(e, ERR_NOMEM, "out of memory for a list of files");
    if (rc)
        return plan_wrong(p, line, e, "cannot list '%s'", pattern);
    for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
        rc = add_path(p, g.gl_pathv[i], e);
    globfree(&g);
    return rc;
}

static int read_inputs(struct plan *p, const struct node *n, struct err *e)
{
    if (n->type == NODE_STR)
        return add_pattern(p, n->str.p, n->line, e);
    if (n->type != NODE_LIST)
        return plan_wrong(p, n->line, e, "input is a name or a list of names");
    for (const struct node *i = n->child; i; i = i->next) {
        if (i->type != NODE_STR)
            return plan_wrong(p, i->line, e, "input is a list of names");
        TRY(add_pattern(p, i->str.p, i->line, e));
    }
    return 0;
}

/* ---- stages ---- */

static int no_stage(const struct plan *p, int line, struct span name, struct err *e)
{
    struct near near = near_to(name);
    struct node_kind k;
    char list[256], meant[64];
    size_t at = 0;

    for (int i = 0; node_kind_at(i, &k) && at < sizeof list; i++) {
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", k.stage->name);
        near_try(&near, k.stage->name);
    }
    return plan_wrong(p, line, e, "no stage '%.*s': there are %s%s", (int)name.n, name.p, list,
                      near_say(&near, "", meant, sizeof meant));
}

/* Where a node stands: a source begins the plan, nothing follows an end. */
static int place_node(struct plan *p, struct plan_branch *b, const struct plan_node *n, struct err *e)
{
    if (b->n_nodes && b->node[b->n_nodes - 1].kind.end)
        return plan_wrong(p, n->line, e, "%s ends its branch: nothing can follow it there",
                          b->node[b->n_nodes - 1].kind.stage->name);
    if (!n->kind.source) {
        b->node[b->n_nodes++] = *n;
        return 0;
    }
    if (b != p->branch || b->n_nodes || p->source.kind.source)
        return plan_wrong(p, n->line, e, "%s can only be the first stage", n->kind.stage->name);
    p->source = *n;
    return 0;
}

/* One of `stages`: a name, or a map of one name to settings. */
static int add_stage(struct plan *p, struct plan_branch *b, const struct node *n, struct err *e)
{
    static const struct node none = {.type = NODE_NULL};
    const struct node *settings = n->type == NODE_MAP ? n->child : &none;
    struct span name = n->type == NODE_MAP && n->child ? n->child->key : n->str;
    struct plan_node node = {.line = n->line};
    struct opt opts[STAGE_MAX_OPTS];

    if ((n->type != NODE_MAP && n->type != NODE_STR) || (n->type == NODE_MAP && n->count != 1))
        return plan_wrong(p, n->line, e, "a stage is a name, or one name with its settings");
    if (!node_kind_find(name, &node.kind))
        return no_stage(p, n->line, name, e);
    node.conf = arena_calloc(&p->arena, 1, node.kind.stage->conf_size + 1);
    if (!node.conf)
        return plan_no_memory(e);
    node.kind.stage->init(node.conf);
    node.kind.stage->options(node.conf, opts);
    TRY(place_node(p, b, &node, e));
    return opt_set_map(opts, node.kind.stage->name, settings, p->file, &p->arena, e);
}

static int read_stages(struct plan *p, struct plan_branch *b, const struct node *list, struct err *e)
{
    if (list->type != NODE_LIST)
        return plan_wrong(p, list->line, e, "stages is a list");
    b->node = arena_calloc(&p->arena, (size_t)list->count + 1, sizeof *b->node);
    if (!b->node)
        return plan_no_memory(e);
    for (const struct node *n = list->child; n; n = n->next)
        TRY(add_stage(p, b, n, e));
    return 0;
}

/* ---- words ---- */

static bool is_one_of(struct span key, const char *const *keys)
{
    while (*keys && !span_is(key, *keys))
        keys++;
    return *keys != NULL;
}

static int no_key(const struct plan *p, const char *what, const char *const *keys, const struct opt *opts, const struct node *n,
                  struct err *e)
{
    struct near near = near_to(n->key);
    char list[256], meant[64];
    size_t at = 0;

    for (; *keys; keys++) {
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", *keys);
        near_try(&near, *keys);
    }
    for (; opts->type != OPT_TYPE_END; opts++) {
        at += (size_t)snprintf(list + at, sizeof list - at, ", %s", opts->name);
        near_try(&near, opts->name);
    }
    return plan_wrong(p, n->line, e, "%s has no key '%.*s', but %s%s", what, (int)n->key.n, n->key.p, list,
                      near_say(&near, "", meant, sizeof meant));
}

/* Whether a value is of its option's type: a flag is true or false, a number one, all others are words. */
static bool fits(const struct opt *o, const struct node *n)
{
    return n->type == NODE_STR || (n->type == NODE_BOOL && o->type == OPT_TYPE_FLAG) ||
           (n->type == NODE_INT && o->type == OPT_TYPE_INT);
}

/* The entries of a map whose values are words or numbers; those of other keys are read elsewhere. */
static int read_words(struct plan *p, const char *what, const char *const *keys, const struct opt *opts, const struct node *map,
                      struct err *e)
{
    struct err why;

    for (const struct node *n = map->child; n; n = n->next) {
        if (is_one_of(n->key, keys))
            continue;
        if (!opt_find(opts, n->key.p))
            return no_key(p, what, keys, opts, n, e);
        if (!fits(opt_find(opts, n->key.p), n))
            return plan_wrong(p, n->line, e, "%.*s needs a %s", (int)n->key.n, n->key.p,
                              opt_find(opts, n->key.p)->type == OPT_TYPE_INT ? "number" : "word");
        if (opt_set(opts, n->key.p, n->str.p, &why) < 0)
            return plan_wrong(p, n->line, e, "%s", why.msg);
    }
    return 0;
}

/* ---- branches ---- */

/* A branch that stands before b by its name: its number, or the error. */
static int find_branch(const struct plan *p, const struct plan_branch *b, const struct node *name, struct err *e)
{
    struct near near = near_to(name->str);
    char meant[64];

    for (const struct plan_branch *q = p->branch + 1; q < b; q++)
        if (span_is(name->str, q->name))
            return (int)(q - p->branch);
    for (const struct plan_branch *q = p->branch + 1; q < b; q++)
        near_try(&near, q->name);
    return plan_wrong(p, name->line, e, "no branch '%.*s' stands before this one%s", (int)name->str.n, name->str.p,
                      near_say(&near, "", meant, sizeof meant));
}

static int add_from(struct plan *p, struct plan_branch *b, const struct node *name, struct err *e)
{
    int k;

    if (name->type != NODE_STR)
        return plan_wrong(p, name->line, e, "from is the name of a branch or a list of them");
    TRY(k = find_branch(p, b, name, e));
    for (int i = 0; i < b->n_from; i++)
        if (b->from[i] == k)
            return plan_wrong(p, name->line, e, "'%.*s' is there twice", (int)name->str.n, name->str.p);
    b->from[b->n_from++] = k;
    return 0;
}

/* What it reads: the plan's own stages, if nothing is said. */
static int read_from(struct plan *p, struct plan_branch *b, const struct node *n, struct err *e)
{
    size_t room = n && n->type == NODE_LIST ? (size_t)n->count + 1 : 1;

    b->from = arena_calloc(&p->arena, room, sizeof *b->from);
    b->out = arena_calloc(&p->arena, room, sizeof *b->out);
    if (!b->from || !b->out)
        return plan_no_memory(e);
    if (!n) {
        b->n_from = 1;
        return 0;
    }
    if (n->type != NODE_LIST)
        return add_from(p, b, n, e);
    if (!n->child)
        return plan_wrong(p, n->line, e, "from names no branch");
    for (const struct node *i = n->child; i; i = i->next)
        TRY(add_from(p, b, i, e));
    return 0;
}

static int add_test(struct plan *p, struct plan_branch *b, const struct node *n, struct err *e)
{
    struct err why;

    if (n->type != NODE_STR)
        return plan_wrong(p, n->line, e, "if is a test such as lang == de, a list of tests that must all be met, or else");
    if (where_read(&b->route.test[b->route.n_tests++], n->str.p, NULL, &why) == 0)
        return 0;
    return why.code == ERR_NOMEM ? plan_no_memory(e) : plan_wrong(p, n->line, e, "'%s': %s", n->str.p, why.msg);
}

static int read_if(struct plan *p, struct plan_branch *b, const struct node *n, struct err *e)
{
    b->route.test = arena_calloc(&p->arena, n && n->type == NODE_LIST ? (size_t)n->count + 1 : 1, sizeof *b->route.test);
    if (!b->route.test)
        return plan_no_memory(e);
    if (!n)
        return 0;
    b->route.otherwise = n->type == NODE_STR && span_is(n->str, "else");
    if (b->route.otherwise)
        return 0;
    if (n->type != NODE_LIST)
        return add_test(p, b, n, e);
    for (const struct node *i = n->child; i; i = i->next)
        TRY(add_test(p, b, i, e));
    return 0;
}

static int read_branch(struct plan *p, struct plan_branch *b, const struct node *n, struct err *e)
{
    const struct opt opts[] = {OPT_STR(0, "output", &b->output, "", ""), OPT_ENUM(0, "compress", &b->compress, "none|gz|zst", ""),
                               OPT_END};
    const struct node *stages = node_get(n, stages_key);

    b->name = b->route.name = n->key.p;
    b->line = n->line;
    if (n->type != NODE_MAP)
        return plan_wrong(p, n->line, e, "a branch is a map with the keys from, if, stages and output");
    TRY(read_words(p, "a branch", branch_keys, opts, n, e));
    TRY(read_from(p, b, node_get(n, from_key), e));
    TRY(read_if(p, b, node_get(n, if_key), e));
    return stages ? read_stages(p, b, stages, e) : 0;
}

static int read_branches(struct plan *p, const struct node *map, struct err *e)
{
    if (map && map->type != NODE_MAP)
        return plan_wrong(p, map->line, e, "branches is a map of names to branches");
    for (const struct node *n = map ? map->child : NULL; n; n = n->next)
        TRY(read_branch(p, &p->branch[p->n_branches++], n, e));
    return 0;
}

/* ---- the whole ---- */

static int read_plan(struct plan *p, const struct node *root, char *const *inputs, int n_inputs, struct err *e)
{
    const struct node *stages = node_get(root, stages_key), *input = node_get(root, input_key);
    const struct node *branches = node_get(root, branches_key);

    size_t n = branches && branches->type == NODE_MAP ? (size_t)branches->count + 1 : 1;

    p->branch = arena_calloc(&p->arena, n, sizeof *p->branch);
    if (!p->branch)
        return plan_no_memory(e);
    p->n_branches = 1;
    const struct opt opts[] = {
        OPT_STR(0, "columns", &p->columns, "", ""), OPT_STR(0, "json-key", &p->text_key, "", ""),
        OPT_STR(0, "output", &p->branch->output, "", ""),
        OPT_INT(0, "row-group-size", &p->row_group, 0, PARQUET_GROUP_ROWS_MAX, ""), OPT_STR(0, "rejects", &p->rejects, "", ""),
        OPT_FLAG(0, "rejects-full", &p->rejects_full, ""),
        OPT_STR(0, "stats", &p->stats, "", ""), OPT_STR(0, "report", &p->report, "", ""), OPT_STR(0, "work", &p->work, "", ""),
        OPT_STR(0, "keep", &p->keep, "", ""),
        OPT_ENUM(0, "compress", &p->branch->compress, "none|gz|zst", ""),
        OPT_END,
    };
    if (root->type != NODE_MAP)
        return plan_wrong(p, 1, e, "a plan is a map with the keys input, stages and output");
    TRY(read_words(p, "a plan", plan_keys, opts, root, e));
    if (!stages)
        return plan_wrong(p, root->line, e, "the plan has no stages");
    p->branch->line = stages->line;
    TRY(read_stages(p, p->branch, stages, e)); /* before inputs: they say what these are */
    TRY(read_branches(p, branches, e));
    for (int i = 0; i < n_inputs; i++)
        TRY(add_path(p, inputs[i], e));
    return input && !n_inputs ? read_inputs(p, input, e) : 0;
}

int plan_load_tree(struct plan *p, const char *file, const struct node *root, struct err *e)
{
    int rc;

    *p = (struct plan){.file = file};
    rc = read_plan(p, root, NULL, 0, e);
    if (rc < 0)
        plan_free(p);
    return rc;
}

int plan_load(struct plan *p, const char *path, char *const *inputs, int n, struct err *e)
{
    struct node *root;
    int rc;

    *p = (struct plan){.file = path};
    rc = node_load_yaml(&p->arena, path, &root, e);
    if (rc == 0)
        rc = read_plan(p, root, inputs, n, e);
    if (rc < 0)
        plan_free(p);
    return rc;
}

static void free_lists(const struct plan_node *n)
{
    struct opt opts[STAGE_MAX_OPTS];

    n->kind.stage->options(n->conf, opts);
    opt_lists_free(opts);
}

void plan_free(struct plan *p)
{
    if (p->source.kind.stage)
        free_lists(&p->source);
    for (int b = 0; b < p->n_branches; b++) {
        for (int i = 0; i < p->branch[b].n_nodes; i++)
            free_lists(&p->branch[b].node[i]);
        for (int i = 0; i < p->branch[b].route.n_tests; i++)
            where_free(p->branch[b].route.test[i]);
    }
    opt_list_free(&p->forget.ids);
    opt_list_free(&p->forget.urls);
    arena_free(&p->arena);
    *p = (struct plan){0};
}
