/* What a text that a model wrote is worth: cut where it ends, taken through filters, held against what is right. */
#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/regex.h"
#include "base/utf8.h"
#include "tokenize/tasks/parts.h"

enum step { STEP_REGEX, STEP_LOWER, STEP_UPPER, STEP_STRIP, STEP_FIRST };

struct filter_step {
    enum step what;
    struct regex *regex;
    int64_t select;
    struct span fallback;
};

enum { FILTERS = 8, STEPS = 8, IGNORED = 16, STOPS = 32 };

struct task_judge {
    struct {
        const char *metric; /* exact_match, with the filter's name behind it */
        struct filter_step step[STEPS];
        int n;
    } filter[FILTERS];
    int filters;
    struct regex *ignored[IGNORED];
    int n_ignored;
    bool ignore_case, ignore_punctuation, ignore_numbers;
    struct span stop[STOPS];
    int stops;
    struct jinja *lower, *upper;
    int64_t most;
};

static int no_memory(struct err *e) { return err_set(e, ERR_NOMEM, "out of memory for a task"); }

/* ---- opening ---- */

static int open_regex(struct regex **x, const struct task_conf *c, const struct node *pattern, struct err *e)
{
    int rc = regex_new(x, pattern->str, e);

    return rc == ERR_FORMAT ? task_conf_error(c, pattern, e, "%s", e->msg) : rc;
}

static int open_step(struct filter_step *s, const struct task_conf *c, const struct node *n, struct err *e)
{
    static const char *const names[] = {"regex", "lowercase", "uppercase", "remove_whitespace", "take_first", NULL};
    static const struct node gsm8k = {.type = NODE_STR, .str = {"#### (\\-?[0-9\\.\\,]+)", 21}};
    const char *name = node_str(n, "function");
    const struct node *pattern = node_get(n, "regex_pattern"), *fallback = node_get(n, "fallback");
    int i = 0;

    while (names[i] && !(name && strcmp(name, names[i]) == 0))
        i++;
    if (!names[i])
        return task_conf_error(c, n, e, "there is no filter '%s'", name ? name : "");
    s->what = (enum step)i;
    s->select = node_int(n, "group_select", 0);
    s->fallback = fallback && fallback->type == NODE_STR ? fallback->str : span_of("[invalid]");
    return i == STEP_REGEX ? open_regex(&s->regex, c, pattern && pattern->type == NODE_STR ? pattern : &gsm8k, e) : 0;
}

static int open_filters(struct task_judge *j, struct task_conf *c, struct err *e)
{
    const struct node *list = task_conf_get(c, "filter_list");

    if (!list) {
        j->filter[j->filters++].metric = task_metric_name(METRIC_EXACT);
        return 0;
    }
    for (const struct node *f = list->child; f; f = f->next) {
        const struct node *steps = node_get(f, "filter");
        const char *name = node_str(f, "name");
        size_t room = strlen(name ? name : "") + 20;
        char *metric = arena_alloc(&c->arena, room);

        if (!metric)
            return no_memory(e);
        if (!name || !steps || steps->type != NODE_LIST || j->filters == FILTERS || steps->count > STEPS)
            return task_conf_error(c, f, e, "filter_list is a list of at most %d mappings of a 'name' and a list 'filter' of %d",
                                   FILTERS, STEPS);
        snprintf(metric, room, "exact_match,%s", name);
        j->filter[j->filters].metric = metric;
        for (const struct node *s = steps->child; s; s = s->next)
            TRY(open_step(&j->filter[j->filters].step[j->filter[j->filters].n++], c, s, e));
        j->filters++;
    }
    return 0;
}

/* What of the metric is not compared. */
static int open_metric(struct task_judge *j, const struct task_conf *c, struct err *e)
{
    const struct node *list = task_conf_get(c, "metric_list"), *metric = list ? list->child : NULL,
                      *ignored = node_get(metric, "regexes_to_ignore");

    j->ignore_case = node_bool(metric, "ignore_case", false);
    j->ignore_punctuation = node_bool(metric, "ignore_punctuation", false);
    j->ignore_numbers = node_bool(metric, "ignore_numbers", false);
    for (const struct node *n = ignored ? ignored->child : NULL; n; n = n->next) {
        if (j->n_ignored == IGNORED || n->type != NODE_STR)
            return task_conf_error(c, n, e, "regexes_to_ignore is a list of at most %d expressions", IGNORED);
        TRY(open_regex(&j->ignored[j->n_ignored++], c, n, e));
    }
    return 0;
}

static int add_stop(struct task_judge *j, const struct task_conf *c, const struct node *n, struct err *e)
{
    if (j->stops == STOPS || n->type != NODE_STR)
        return task_conf_error(c, n, e, "until is a text, or a list of at most %d texts", STOPS);
    if (n->str.n)
        j->stop[j->stops++] = n->str;
    return 0;
}

static int open_generation(struct task_judge *j, const struct task_conf *c, struct err *e)
{
    static const char *const known[] = {"until", "do_sample", "temperature", "max_gen_toks", "max_new_tokens", "max_tokens",
                                        "max_completion_tokens"};
    const struct node *conf = task_conf_get(c, "generation_kwargs"), *until = node_get(conf, "until"),
                      *delimiter = task_conf_get(c, "fewshot_delimiter");
    const struct node usual = {.type = NODE_STR, .str = delimiter ? delimiter->str : span_of("\n\n")};

    j->most = 256;
    for (const struct node *n = conf ? conf->child : NULL; n; n = n->next) {
        size_t k = 0;

        while (k < sizeof known / sizeof *known && !span_is(n->key, known[k]))
            k++;
        if (k == sizeof known / sizeof *known)
            return task_conf_error(c, n, e, "'%s' is not known here", n->key.p);
        if ((k == 1 && n->integer) || (k == 2 && n->num != 0))
            return task_conf_error(c, n, e, "texts are written without chance: do_sample: false, temperature: 0");
    }
    for (size_t k = sizeof known / sizeof *known; k-- > 3;)
        j->most = node_int(conf, known[k], j->most);
    if (j->most < 1 || j->most > 1 << 20)
        return task_conf_error(c, conf, e, "max_gen_toks is 1 to %d", 1 << 20);
    if (until && until->type == NODE_LIST) {
        for (const struct node *n = until->child; n; n = n->next)
            TRY(add_stop(j, c, n, e));
        return 0;
    }
    return add_stop(j, c, until ? until : &usual, e);
}

int task_judge_open(struct task_judge **out, struct task_conf *c, struct err *e)
{
    struct task_judge *j = *out = calloc(1, sizeof *j);

    if (!j)
        return no_memory(e);
    TRY(open_filters(j, c, e));
    TRY(open_metric(j, c, e));
    TRY(open_generation(j, c, e));
    TRY(jinja_new(&j->lower, span_of("{{ x | lower }}"), JINJA_TASK, e));
    return jinja_new(&j->upper, span_of("{{ x | upper }}"), JINJA_TASK, e);
}

void task_judge_close(struct task_judge *j)
{
    if (!j)
        return;
    for (int f = 0; f < FILTERS; f++)
        for (int s = 0; s < STEPS; s++)
            regex_free(j->filter[f].step[s].regex);
    for (int i = 0; i < j->n_ignored; i++)
        regex_free(j->ignored[i]);
    jinja_free(j->lower);
    jinja_free(j->upper);
    free(j);
}

int64_t task_judge_most(const struct task_judge *j) { return j->most; }
int task_judge_metrics(const struct task_judge *j) { return j->filters; }
const char *task_judge_metric(const struct task_judge *j, int i) { return j->filter[i].metric; }

/* ---- texts ---- */

bool task_judge_cut(const struct task_judge *j, struct span *text)
{
    size_t n = text->n;

    for (int i = 0; i < j->stops; i++) {
        const char *at = text->n ? memmem(text->p, text->n, j->stop[i].p, j->stop[i].n) : NULL;

        if (at)
            text->n = (size_t)(at - text->p);
    }
    return text->n < n;
}

/* A copy in a. */
static int keep(struct arena *a, const struct buf *b, struct span *s, struct err *e)
{
    *s = arena_dup(a, buf_span(b));
    return b->failed || !s->p ? no_memory(e) : 0;
}

static int change_case(const struct jinja *x, struct arena *a, struct span *s, struct err *e)
{
    const struct node n = {.type = NODE_STR, .str = *s};
    const struct jinja_var v = {"x", &n};
    struct buf out = {0}, ranges = {0};
    int rc = jinja_render(x, &v, 1, NULL, a, &out, &ranges, e);

    rc = rc ? rc : keep(a, &out, s, e);
    buf_free(&out);
    buf_free(&ranges);
    return rc;
}

static int step(const struct task_judge *j, const struct filter_step *f, struct arena *a, struct span *s, struct err *e)
{
    const struct span white = {NULL, 0};
    struct span found;
    int rc;

    switch (f->what) {
    case STEP_REGEX:
        rc = regex_find(f->regex, *s, f->select, &found, e);
        if (rc >= 0)
            *s = rc ? jinja_strip(found, white, true, true) : f->fallback;
        return rc < 0 ? rc : 0;
    case STEP_LOWER:
        return change_case(j->lower, a, s, e);
    case STEP_UPPER:
        return change_case(j->upper, a, s, e);
    case STEP_STRIP:
        *s = jinja_strip(*s, white, true, true);
        return 0;
    default:
        return 0;
    }
}

/* A text without what is not compared. */
static int compared(const struct task_judge *j, struct arena *a, struct span *s, struct err *e)
{
    struct buf b = {0};
    int rc = 0;

    for (int i = 0; rc == 0 && i < j->n_ignored; i++) {
        buf_clear(&b);
        rc = regex_remove(j->ignored[i], *s, &b, e);
        rc = rc ? rc : keep(a, &b, s, e);
    }
    if (rc == 0 && j->ignore_case)
        rc = change_case(j->lower, a, s, e);
    if (rc == 0 && (j->ignore_punctuation || j->ignore_numbers)) {
        buf_clear(&b);
        for (size_t i = 0; i < s->n; i++) {
            char x = s->p[i];
            bool sign = x > ' ' && x < 127 && !ascii_is_alnum(x);

            if (!(j->ignore_punctuation && sign) && !(j->ignore_numbers && ascii_is_digit(x)))
                buf_putc(&b, x);
        }
        rc = keep(a, &b, s, e);
    }
    buf_free(&b);
    return rc;
}

int task_judge_filtered(const struct task_judge *j, int filter, struct arena *a, struct span *text, struct err *e)
{
    for (int i = 0; i < j->filter[filter].n; i++)
        TRY(step(j, &j->filter[filter].step[i], a, text, e));
    return 0;
}

int task_judge_right(const struct task_judge *j, struct arena *a, struct span text, const struct span *gold, int64_t golds,
                     bool *right, struct err *e)
{
    *right = false;
    TRY(compared(j, a, &text, e));
    for (int64_t i = 0; i < golds && !*right; i++) {
        struct span g = gold[i];

        TRY(compared(j, a, &g, e));
        *right = span_eq(text, g);
    }
    return 0;
}
