/* What a task's file says. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenize/tasks/parts.h"

static const struct {
    const char *name, *aggregation;
    unsigned kinds; /* bits of the kinds of task that have it */
} metrics[METRICS] = {
    [METRIC_ACC] = {"acc", "mean", 1 << TASK_CHOICE | 1 << TASK_LIKELIHOOD},
    [METRIC_ACC_NORM] = {"acc_norm", "mean", 1 << TASK_CHOICE},
    [METRIC_ACC_BYTES] = {"acc_bytes", "mean", 1 << TASK_CHOICE},
    [METRIC_ACC_TOKENS] = {"acc_tokens", "mean", 1 << TASK_CHOICE},
    [METRIC_EXACT] = {"exact_match", "mean", 1 << TASK_CHOICE | 1 << TASK_WRITING},
    [METRIC_MUTUAL] = {"acc_mutual_info", "mean", 1 << TASK_CHOICE},
    [METRIC_PERPLEXITY] = {"perplexity", "perplexity", 1 << TASK_LIKELIHOOD},
    [METRIC_WORD_PERPLEXITY] = {"word_perplexity", "weighted_perplexity", 1 << TASK_ROLLING},
    [METRIC_BYTE_PERPLEXITY] = {"byte_perplexity", "weighted_perplexity", 1 << TASK_ROLLING},
    [METRIC_BITS_PER_BYTE] = {"bits_per_byte", "bits_per_byte", 1 << TASK_ROLLING},
};

const char *task_metric_name(enum task_metric m) { return metrics[m].name; }

static const char *const known[] = {
    "task", "task_alias", "tag", "include", "dataset_path", "dataset_name", "dataset_kwargs", "training_split",
    "validation_split", "test_split", "fewshot_split", "doc_to_text", "doc_to_target", "doc_to_choice", "description",
    "target_delimiter", "fewshot_delimiter", "fewshot_config", "num_fewshot", "metric_list", "output_type", "repeats",
    "should_decontaminate", "doc_to_decontamination_query", "metadata",
    "generation_kwargs", "filter_list", NULL};
static const char *const known_fewshot[] = {
    "sampler", "split", "samples", "fewshot_indices", "doc_to_text", "doc_to_target", "doc_to_choice", "target_delimiter",
    "fewshot_delimiter", NULL};

/* Whether n is in the tree of root. */
static bool within(const struct node *root, const struct node *n)
{
    if (root == n)
        return true;
    for (const struct node *c = root->child; c; c = c->next)
        if (within(c, n))
            return true;
    return false;
}

int task_conf_error(const struct task_conf *c, const struct node *n, struct err *e, const char *fmt, ...)
{
    char text[400];
    int i = 0;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    while (n && i < c->n - 1 && !within(c->root[i], n))
        i++;
    return n ? err_set(e, ERR_FORMAT, "'%s': line %d: %s", c->path[i], n->line, text)
             : err_set(e, ERR_FORMAT, "'%s': %s", c->path[0], text);
}

static const struct node *there(const struct node *n) { return n && n->type != NODE_NULL ? n : NULL; }

const struct node *task_conf_get(const struct task_conf *c, const char *key)
{
    for (int i = 0; i < c->n; i++)
        if (node_get(c->root[i], key))
            return there(node_get(c->root[i], key));
    return NULL;
}

const struct node *task_conf_fewshot(const struct task_conf *c, const char *key)
{
    return there(node_get(task_conf_get(c, "fewshot_config"), key));
}

static int check_keys(const struct task_conf *c, const struct node *map, const char *const *names, struct err *e)
{
    for (const struct node *n = map ? map->child : NULL; n; n = n->next) {
        int i = 0;

        while (names[i] && !span_is(n->key, names[i]))
            i++;
        if (!names[i])
            return task_conf_error(c, n, e, "'%s' is not known here", n->key.p);
    }
    return 0;
}

/* The file at path and, behind it, those it includes, which stand beside it. */
static int load(struct task_conf *c, const char *path, struct err *e)
{
    struct node *root;

    while (path) {
        const char *include, *slash = strrchr(path, '/');
        size_t room = (size_t)(slash ? slash + 1 - path : 0);

        if (c->n == CONF_FILES)
            return err_set(e, ERR_LIMIT, "'%s': more than %d files that include one another", path, CONF_FILES);
        TRY(node_load_yaml(&c->arena, path, &root, e));
        c->path[c->n] = strdup(path);
        c->root[c->n] = root;
        if (!c->path[c->n])
            return err_set(e, ERR_NOMEM, "out of memory");
        path = c->path[c->n++];
        if (root->type != NODE_MAP)
            return task_conf_error(c, NULL, e, "a task is a mapping of keys");
        TRY(check_keys(c, root, known, e));
        include = node_str(root, "include");
        if (!include)
            return 0;
        if (*include == '/')
            room = 0;
        char *next = arena_alloc(&c->arena, room + strlen(include) + 1);
        if (!next)
            return err_set(e, ERR_NOMEM, "out of memory");
        memcpy(next, path, room);
        memcpy(next + room, include, strlen(include) + 1);
        path = next;
    }
    return 0;
}

static int add_metric(struct task_conf *c, const struct node *at, const char *name, struct err *e)
{
    for (int m = 0; m < METRICS; m++)
        if (strcmp(metrics[m].name, name) == 0 && metrics[m].kinds >> c->kind & 1) {
            if (!c->metric[m])
                c->order[c->n_metrics++] = (enum task_metric)m;
            c->metric[m] = true;
            return m;
        }
    return task_conf_error(c, at, e, "there is no metric '%s' of tasks of this output_type", name);
}

static int take_metrics(struct task_conf *c, struct err *e)
{
    static const char *const usual[TASK_KINDS][4] = {
        [TASK_CHOICE] = {"acc", "acc_norm"},
        [TASK_LIKELIHOOD] = {"perplexity", "acc"},
        [TASK_ROLLING] = {"word_perplexity", "byte_perplexity", "bits_per_byte"},
        [TASK_WRITING] = {"exact_match"},
    };
    const struct node *list = task_conf_get(c, "metric_list");

    for (int i = 0; !list && usual[c->kind][i]; i++)
        TRY(add_metric(c, NULL, usual[c->kind][i], e));
    if (list && list->type != NODE_LIST)
        return task_conf_error(c, list, e, "metric_list is a list of mappings with a 'metric'");
    for (const struct node *n = list ? list->child : NULL; n; n = n->next) {
        const char *name = node_str(n, "metric"), *by = node_str(n, "aggregation");
        int m = name ? add_metric(c, n, name, e) : task_conf_error(c, n, e, "this has no 'metric'");

        if (m < 0)
            return m;
        if (by && strcmp(by, metrics[m].aggregation) != 0)
            return task_conf_error(c, n, e, "%s is aggregated by %s, not by %s", name, metrics[m].aggregation, by);
    }
    return 0;
}

int task_conf_open(struct task_conf *c, const char *path, struct err *e)
{
    static const char *const kinds[TASK_KINDS] = {"multiple_choice", "loglikelihood", "loglikelihood_rolling", "generate_until"};
    const struct node *kind, *shots, *repeats, *writing;
    int k = 0;

    *c = (struct task_conf){0};
    TRY(load(c, path, e));
    TRY(check_keys(c, task_conf_get(c, "fewshot_config"), known_fewshot, e));
    kind = task_conf_get(c, "output_type");
    while (k < TASK_KINDS && !(kind && kind->type == NODE_STR && span_is(kind->str, kinds[k])))
        k++;
    if (k == TASK_KINDS)
        return task_conf_error(c, kind, e, "output_type has to be multiple_choice, loglikelihood, loglikelihood_rolling or "
                                           "generate_until");
    c->kind = (enum task_kind)k;
    writing = task_conf_get(c, "generation_kwargs") ? task_conf_get(c, "generation_kwargs") : task_conf_get(c, "filter_list");
    if (writing && k != TASK_WRITING)
        return task_conf_error(c, writing, e, "%s is of generate_until alone", writing->key.p);
    c->name = task_conf_get(c, "task") && task_conf_get(c, "task")->type == NODE_STR ? task_conf_get(c, "task")->str.p : path;
    shots = task_conf_get(c, "num_fewshot");
    if (shots && (shots->type != NODE_INT || shots->integer < 0 || shots->integer > 10000))
        return task_conf_error(c, shots, e, "num_fewshot is a whole number");
    c->shots = shots ? shots->integer : 0;
    repeats = task_conf_get(c, "repeats");
    if (repeats && (repeats->type != NODE_INT || repeats->integer != 1))
        return task_conf_error(c, repeats, e, "an answer needs no repeats");
    c->chance = node_num(task_conf_get(c, "metadata"), "random_baseline", NAN);
    return take_metrics(c, e);
}

void task_conf_close(struct task_conf *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->path[i]);
    arena_free(&c->arena);
}
