/* Reads an ablation's file: the plan, what the variants change, evaluations. */
#include "pipelines/ablation/ablation_read.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/near.h"
#include "base/opt_map.h"
#include "pipelines/nodes.h"
#include "tokenize/tasks/task.h"

/* The keys whose values are no words. */
static const char *const file_keys[] = {"input", "stages", "model", "eval", "decontaminate", "variants", NULL};
static const char *const variant_keys[] = {"input", "set", "without", "add", "weights", NULL};
int ablation_no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the ablation");
}

int ablation_wrong(const struct ablation *a, int line, struct err *e, const char *fmt, ...)
{
    char what[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_FORMAT, "'%s' line %d: %s", a->file, line, what);
}

double ablation_duration(const char *text)
{
    static const char unit[] = "smhd";
    static const double seconds[] = {1, 60, 3600, 86400};
    char *end;
    double v = strtod(text, &end);
    const char *u = *end && !end[1] ? strchr(unit, *end) : NULL;

    if (end == text || !(v >= 0 && v < 1e12) || (*end && !u))
        return -1;
    return v * (u ? seconds[u - unit] : 1);
}

/* ---- nodes that are put together ---- */

struct node *ablation_node(struct ablation *a, enum node_type type, int line, const char *key)
{
    struct node *n = arena_calloc(&a->arena, 1, sizeof *n);

    if (n)
        *n = (struct node){.type = type, .line = line, .key = span_of(key)};
    return n;
}

int ablation_add(struct ablation *a, struct node *to, const struct node *n, const char *key, struct err *e)
{
    struct node *copy = arena_calloc(&a->arena, 1, sizeof *copy), **at = &to->child;

    if (!copy)
        return ablation_no_memory(e);
    *copy = *n;
    copy->next = NULL;
    if (key)
        copy->key = span_of(key);
    while (*at)
        at = &(*at)->next;
    *at = copy;
    to->count++;
    return 0;
}

int ablation_add_word(struct ablation *a, struct node *to, const char *key, const char *word, int line, struct err *e)
{
    const struct node n = {.type = NODE_STR, .line = line, .str = span_of(word)};

    return ablation_add(a, to, &n, key, e);
}

bool ablation_is_among(struct span key, const char *const *keys)
{
    while (*keys && !span_is(key, *keys))
        keys++;
    return *keys != NULL;
}

/* Sets the options whose keys are in the map; those of `others` are read elsewhere. */
static int read_words(struct ablation *a, const struct node *map, const char *what, const char *const *others,
                      const struct opt *opts, struct err *e)
{
    struct node *words = ablation_node(a, NODE_MAP, map->line, NULL);

    if (!words)
        return ablation_no_memory(e);
    for (const struct node *n = map->child; n; n = n->next)
        if (!ablation_is_among(n->key, others))
            TRY(ablation_add(a, words, n, NULL, e));
    return opt_set_map(opts, what, words, a->file, &a->arena, e);
}

/* ---- variants ---- */

static struct span stage_name(const struct node *stage)
{
    return stage->type == NODE_MAP && stage->child ? stage->child->key : stage->str;
}

/* Where a stage stands: by its name, or of several its name and which one, "filter 2".  The place before it in the list. */
static int find_stage(const struct ablation *a, struct node *stages, struct span ref, int line, struct node ***at, struct err *e)
{
    struct near near = near_to(ref);
    struct span name = ref;
    int found = 0, which = 0;
    char meant[64];

    if (ref.n > 2 && ref.p[ref.n - 2] == ' ' && ref.p[ref.n - 1] >= '1' && ref.p[ref.n - 1] <= '9') {
        which = ref.p[ref.n - 1] - '0';
        name.n -= 2;
    }
    for (struct node **s = &stages->child; *s; s = &(*s)->next) {
        near_try(&near, stage_name(*s).p);
        if (!span_eq(stage_name(*s), name))
            continue;
        if (++found == which || !which)
            *at = s;
        if (found == which)
            return 0;
    }
    if (found == 1 && !which)
        return 0;
    if (found > 1 && !which)
        return ablation_wrong(a, line, e, "'%.*s' is there %d times: say '%.*s 1' and so on", (int)ref.n, ref.p, found,
                              (int)ref.n, ref.p);
    return ablation_wrong(a, line, e, "the plan has no stage '%.*s'%s", (int)ref.n, ref.p,
                          near_say(&near, "", meant, sizeof meant));
}

/* A stage with other settings: those of `changes` in place of its own, or beside them. */
static int set_stage(struct ablation *a, struct node *stages, const struct node *changes, struct err *e)
{
    struct node **at, *stage, *settings;

    if (changes->type != NODE_MAP)
        return ablation_wrong(a, changes->line, e, "set has a stage's settings: a map");
    TRY(find_stage(a, stages, changes->key, changes->line, &at, e));
    stage = ablation_node(a, NODE_MAP, changes->line, NULL);
    settings = ablation_node(a, NODE_MAP, changes->line, stage_name(*at).p);
    if (!stage || !settings)
        return ablation_no_memory(e);
    for (const struct node *n = (*at)->type == NODE_MAP ? (*at)->child->child : NULL; n; n = n->next)
        if (!node_get(changes, n->key.p))
            TRY(ablation_add(a, settings, n, NULL, e));
    for (const struct node *n = changes->child; n; n = n->next)
        TRY(ablation_add(a, settings, n, NULL, e));
    stage->child = settings;
    stage->count = 1;
    stage->next = (*at)->next;
    *at = stage;
    return 0;
}

static int drop_stage(struct ablation *a, struct node *stages, const struct node *name, struct err *e)
{
    struct node **at;

    if (name->type != NODE_STR)
        return ablation_wrong(a, name->line, e, "without is the name of a stage or a list of them");
    TRY(find_stage(a, stages, name->str, name->line, &at, e));
    *at = (*at)->next;
    stages->count--;
    return 0;
}

/* Stages put in before or after one, or at the end. */
static int add_stages(struct ablation *a, struct node *stages, const struct node *add, const char *before, const char *after,
                      struct err *e)
{
    struct node more = {.type = NODE_LIST}, **at = &stages->child, *rest;

    if (before && after)
        return ablation_wrong(a, add->line, e, "before and after are one too many");
    if (before || after)
        TRY(find_stage(a, stages, span_of(before ? before : after), add->line, &at, e));
    else
        while (*at)
            at = &(*at)->next;
    at = after ? &(*at)->next : at;
    if (add->type != NODE_LIST)
        TRY(ablation_add(a, &more, add, NULL, e));
    for (const struct node *n = add->type == NODE_LIST ? add->child : NULL; n; n = n->next)
        TRY(ablation_add(a, &more, n, NULL, e));
    rest = *at;
    *at = more.child;
    while (*at)
        at = &(*at)->next;
    *at = rest;
    stages->count += more.count;
    return 0;
}

/* The plan's stages with the changes of a variant. */
static int change_stages(struct ablation *a, const struct node *n, struct node *stages, const char *before, const char *after,
                         struct err *e)
{
    const struct node *set = node_get(n, "set"), *without = node_get(n, "without"), *add = node_get(n, "add");

    if (set && set->type != NODE_MAP)
        return ablation_wrong(a, set->line, e, "set is a map of stages to settings");
    for (const struct node *s = set ? set->child : NULL; s; s = s->next)
        TRY(set_stage(a, stages, s, e));
    if (without && without->type != NODE_LIST)
        TRY(drop_stage(a, stages, without, e));
    for (const struct node *s = without && without->type == NODE_LIST ? without->child : NULL; s; s = s->next)
        TRY(drop_stage(a, stages, s, e));
    if ((before || after) && !add)
        return ablation_wrong(a, n->line, e, "%s says where stages are put in, but none is", before ? "before" : "after");
    return add ? add_stages(a, stages, add, before, after, e) : 0;
}

/* Takes the source off the list, and puts in what keeps the texts of evaluations out. */
static int finish_stages(struct ablation *a, struct ablation_variant *v, struct node *stages, const struct node *against,
                         struct err *e)
{
    struct node_kind kind;

    if (stages->child && node_kind_find(stage_name(stages->child), &kind) && kind.source) {
        v->source = stages->child;
        stages->child = stages->child->next;
        stages->count--;
    }
    v->stages = stages;
    return against ? ablation_add(a, stages, against, NULL, e) : 0;
}

static bool name_is_plain(struct span s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";

    return s.n > 0 && s.n <= 64 && s.p[0] != '.' && strspn(s.p, letters) == s.n;
}

static int read_variant(struct ablation *a, const struct node *root, const struct node *n, const struct node *against,
                        struct err *e)
{
    struct ablation_variant *v = &a->variant[a->n_variants];
    struct node *stages = ablation_node(a, NODE_LIST, n->line, NULL);
    const char *before = NULL, *after = NULL;
    const struct opt opts[] = {OPT_STR(0, "tokenizer", &v->tokenizer, "", ""), OPT_STR(0, "before", &before, "", ""),
                               OPT_STR(0, "after", &after, "", ""), OPT_END};

    if (!name_is_plain(n->key))
        return ablation_wrong(a, n->line, e, "'%.*s' is no name: 1 to 64 letters of A-Z, a-z, 0-9 and ._-+", (int)n->key.n,
                              n->key.p);
    if (n->type != NODE_MAP && n->type != NODE_NULL)
        return ablation_wrong(a, n->line, e, "a variant is a map of what it changes");
    *v = (struct ablation_variant){.name = n->key.p, .line = n->line, .tokenizer = a->tokenizer};
    TRY(read_words(a, n, "a variant", variant_keys, opts, e));
    if (!stages)
        return ablation_no_memory(e);
    for (const struct node *s = node_get(root, "stages")->child; s; s = s->next)
        TRY(ablation_add(a, stages, s, NULL, e));
    TRY(change_stages(a, n, stages, before, after, e));
    TRY(finish_stages(a, v, stages, against, e));
    v->weights = node_get(n, "weights");
    v->input = node_get(n, "input") ? node_get(n, "input") : node_get(root, "input");
    if (!v->input)
        return ablation_wrong(a, n->line, e, "neither the plan nor variant '%s' has an input", v->name);
    if (!v->tokenizer)
        return ablation_wrong(a, n->line, e, "neither the file nor variant '%s' names a tokenizer", v->name);
    a->n_variants++;
    return 0;
}

/* ---- evaluations ---- */

/* An evaluation that n names. */
static int add_eval(struct ablation *a, const struct node *n, struct ablation_eval x, struct err *e)
{
    struct stat st;

    if (a->n_evals == ABLATION_EVALS)
        return ablation_wrong(a, n->line, e, "more than %d evaluations", ABLATION_EVALS);
    for (int i = 0; i < x.n_from; i++)
        if (stat(x.from[i], &st) < 0)
            return err_sys(e, ERR_IO, "'%s' line %d: cannot open '%s'", a->file, n->line, x.from[i]);
    for (int i = 0; i < a->n_evals; i++)
        if (strcmp(a->eval[i].name, x.name) == 0)
            return ablation_wrong(a, n->line, e, "'%s' is there twice", x.name);
    a->eval[a->n_evals++] = x;
    return 0;
}

static int add_text(struct ablation *a, const struct node *n, struct err *e)
{
    struct ablation_eval x = {.name = n->key.p, .n_from = 1};

    if (n->type != NODE_STR)
        return ablation_wrong(a, n->line, e, "texts is a map of names to files");
    if (!name_is_plain(n->key))
        return ablation_wrong(a, n->line, e, "'%s' is no name: 1 to 64 letters of A-Z, a-z, 0-9 and ._-+", x.name);
    x.from = arena_alloc(&a->arena, sizeof *x.from);
    if (!x.from)
        return ablation_no_memory(e);
    *x.from = n->str.p;
    return add_eval(a, n, x, e);
}

/* A task has the name that its file gives it. */
static int add_task(struct ablation *a, const struct node *n, struct err *e)
{
    struct task_about task;

    if (n->type != NODE_STR)
        return ablation_wrong(a, n->line, e, "tasks is a list of files");
    if (task_about(&task, n->str.p, &a->arena, e) < 0)
        return err_wrap(e, "'%s' line %d", a->file, n->line);
    return add_eval(a, n, (struct ablation_eval){.name = task.name, .task = true, .from = task.file, .n_from = task.n_files}, e);
}

static int read_evals(struct ablation *a, const struct node *n, int line, struct err *e)
{
    static const char *const keys[] = {"texts", "tasks", NULL};
    const struct opt none[] = {OPT_END};
    const struct node *texts = node_get(n, "texts"), *tasks = node_get(n, "tasks");

    if (!n || n->type != NODE_MAP)
        return ablation_wrong(a, n ? n->line : line, e, "eval is a map with texts, tasks or both");
    TRY(read_words(a, n, "eval", keys, none, e));
    if ((texts && texts->type != NODE_MAP) || (tasks && tasks->type != NODE_LIST))
        return ablation_wrong(a, n->line, e, "eval has a map of texts and a list of tasks");
    for (const struct node *t = texts ? texts->child : NULL; t; t = t->next)
        TRY(add_text(a, t, e));
    for (const struct node *t = tasks ? tasks->child : NULL; t; t = t->next)
        TRY(add_task(a, t, e));
    if (!a->n_evals)
        return ablation_wrong(a, n->line, e, "eval names no text and no task");
    for (a->ranked = 0; a->rank_by && a->ranked < a->n_evals; a->ranked++)
        if (strcmp(a->eval[a->ranked].name, a->rank_by) == 0)
            return 0;
    return a->rank_by ? ablation_wrong(a, line, e, "rank-by: there is no evaluation '%s'", a->rank_by) : 0;
}

/* The stage that drops what the texts of evaluations have too; *stage NULL: there is none. */
static int make_against(struct ablation *a, const struct node *n, int line, struct node **stage, struct err *e)
{
    struct node *settings = ablation_node(a, NODE_MAP, n ? n->line : line, "decontaminate");
    struct node *against = ablation_node(a, NODE_LIST, n ? n->line : line, "against");
    const struct node *more = node_get(n, "against");
    int texts = 0;

    *stage = NULL;
    if (n && n->type == NODE_BOOL && !n->integer)
        return 0;
    if (n && n->type != NODE_MAP && n->type != NODE_BOOL)
        return ablation_wrong(a, n->line, e, "decontaminate is true, false, or a map of its settings");
    if (!settings || !against)
        return ablation_no_memory(e);
    for (int i = 0; i < a->n_evals && !more; i++)
        if (!a->eval[i].task) {
            TRY(ablation_add_word(a, against, NULL, *a->eval[i].from, settings->line, e));
            texts++;
        }
    if (!texts && !more)
        return 0;
    if (texts)
        TRY(ablation_add(a, settings, against, NULL, e));
    if (texts && !node_get(n, "question-field"))
        TRY(ablation_add_word(a, settings, "question-field", "text", settings->line, e));
    for (const struct node *s = n && n->type == NODE_MAP ? n->child : NULL; s; s = s->next)
        TRY(ablation_add(a, settings, s, NULL, e));
    *stage = ablation_node(a, NODE_MAP, settings->line, NULL);
    if (!*stage)
        return ablation_no_memory(e);
    return ablation_add(a, *stage, settings, NULL, e);
}

/* ---- the whole ---- */

static bool same_node(const struct node *x, const struct node *y)
{
    if (!x || !y)
        return x == y;
    if (x->type != y->type || x->count != y->count || !span_eq(x->str, y->str))
        return false;
    for (x = x->child, y = y->child; x && y; x = x->next, y = y->next)
        if (!span_eq(x->key, y->key) || !same_node(x, y))
            return false;
    return x == y;
}

/* Variants that read the same inputs in the same way are curated by one plan. */
static void group_variants(struct ablation *a)
{
    for (int i = 0; i < a->n_variants; i++) {
        struct ablation_variant *v = &a->variant[i];
        int g = 0;

        for (; g < a->n_groups; g++) {
            const struct ablation_variant *w = &a->variant[a->group[g].first];

            if (same_node(v->input, w->input) && same_node(v->source, w->source))
                break;
        }
        if (g == a->n_groups)
            a->group[a->n_groups++].first = i;
        v->group = g;
    }
}

static int read_variants(struct ablation *a, const struct node *root, const struct node *map, struct err *e)
{
    struct node *against;

    if (!map || map->type != NODE_MAP || map->count < 2)
        return ablation_wrong(a, map ? map->line : root->line, e, "variants is a map of two variants or more");
    if (map->count > ABLATION_VARIANTS)
        return ablation_wrong(a, map->line, e, "more than %d variants", ABLATION_VARIANTS);
    TRY(make_against(a, node_get(root, "decontaminate"), root->line, &against, e));
    for (const struct node *n = map->child; n; n = n->next)
        TRY(read_variant(a, root, n, against, e));
    return 0;
}

/* The words of the file, and where things go that it does not say. */
static int read_settings(struct ablation *a, const struct node *root, struct err *e)
{
    const char *budget = NULL;
    const struct opt opts[] = {
        OPT_STR(0, "tokenizer", &a->tokenizer, "", ""), OPT_STR(0, "work", &a->work, "", ""),
        OPT_STR(0, "stats", &a->stats, "", ""), OPT_STR(0, "report", &a->report, "", ""),
        OPT_STR(0, "rank-by", &a->rank_by, "", ""), OPT_STR(0, "budget", &budget, "", ""),
        OPT_INT(0, "tokens", &a->tokens, 1, INT64_MAX / 4, ""), OPT_INT(0, "seeds", &a->seeds, 1, ABLATION_SEEDS, ""),
        OPT_NUM(0, "false-decisions", &a->false_decisions, 1e-9, .5, ""), OPT_END,
    };
    struct buf b = {0};

    a->seeds = 3;
    a->false_decisions = .05;
    TRY(read_words(a, root, "an ablation", file_keys, opts, e));
    if (!a->tokens)
        return ablation_wrong(a, root->line, e, "tokens is missing: how many a run is trained on");
    a->budget = budget ? ablation_duration(budget) : 0;
    if (a->budget < 0)
        return ablation_wrong(a, node_get(root, "budget")->line, e, "'%s' is no time: a number and s, m, h or d", budget);
    if (!a->work) {
        if (buf_printf(&b, "%s.work", a->file) == 0)
            a->work = arena_dup(&a->arena, buf_span(&b)).p;
        buf_free(&b);
    }
    return a->work ? 0 : ablation_no_memory(e);
}

int ablation_load(struct ablation *a, const char *path, struct err *e)
{
    struct node *root;

    *a = (struct ablation){.file = path};
    TRY(node_load_yaml(&a->arena, path, &root, e));
    if (root->type != NODE_MAP)
        return ablation_wrong(a, 1, e,
                              "an ablation is a map with the keys input, stages, tokenizer, model, tokens, eval and variants");
    TRY(read_settings(a, root, e));
    if (!node_get(root, "stages") || node_get(root, "stages")->type != NODE_LIST)
        return ablation_wrong(a, root->line, e, "the plan has no stages: a list, which may be empty");
    TRY(read_evals(a, node_get(root, "eval"), root->line, e));
    TRY(read_variants(a, root, node_get(root, "variants"), e));
    TRY(ablation_read_model(a, node_get(root, "model"), root->line, e)); /* before the keys, of which it is part */
    for (int i = 0; i < a->n_variants; i++)
        TRY(ablation_check_variant(a, &a->variant[i], e));
    group_variants(a);
    return 0;
}

void ablation_free(struct ablation *a)
{
    for (int g = 0; g < a->n_groups; g++)
        buf_free(&a->group[g].plan);
    arena_free(&a->arena);
    *a = (struct ablation){0};
}
