#include "curate/filter.h"

#include <math.h>
#include <stdlib.h>

#include "base/node.h"
#include "curate/filter_text.h"

enum compare { ABOVE, BELOW };
#define OFF NAN

/* ---- the table of rules ---- */

static const struct rule {
    const char *name;
    const char *key;          /* among the signals; NULL: the name */
    filter_signal *signal;    /* NULL: a setting that other rules use */
    int arg;
    enum compare drop;        /* the document is dropped if the signal is */
    double threshold;
    size_t param;             /* 1 + offset in struct filter_params that follows the threshold */
    bool line;                /* the rule strikes lines, never the document */
} quality[] = {
    {"gopher_short_doc", NULL, gopher_words, 0, BELOW, 50, 0, false},
    {"gopher_long_doc", NULL, gopher_words, 0, ABOVE, 100000, 0, false},
    {"gopher_below_avg_threshold", NULL, gopher_mean_length, 0, BELOW, 3, 0, false},
    {"gopher_above_avg_threshold", NULL, gopher_mean_length, 0, ABOVE, 10, 0, false},
    {"gopher_too_many_hashes", NULL, gopher_hashes, 0, ABOVE, 0.1, 0, false},
    {"gopher_too_many_ellipsis", NULL, gopher_ellipses, 0, ABOVE, 0.1, 0, false},
    {"gopher_too_many_bullets", NULL, gopher_bullet_lines, 0, ABOVE, 0.9, 0, false},
    {"gopher_too_many_end_ellipsis", NULL, gopher_ellipsis_lines, 0, ABOVE, 0.3, 0, false},
    {"gopher_below_alpha_threshold", NULL, gopher_letter_words, 0, BELOW, 0.8, 0, false},
    {"gopher_enough_stop_words", NULL, gopher_stop_words, 0, BELOW, 2, 0, false},
    {0},
}, repetition[] = {
    {"empty", NULL, gopher_empty, 0, ABOVE, 0, 0, false},
    {"dup_para_frac", NULL, gopher_paragraph_copies, 0, ABOVE, 0.3, 0, false},
    {"dup_para_char_frac", NULL, gopher_paragraph_copies, 1, ABOVE, 0.2, 0, false},
    {"dup_line_frac", NULL, gopher_line_copies, 0, ABOVE, 0.3, 0, false},
    {"dup_line_char_frac", NULL, gopher_line_copies, 1, ABOVE, 0.2, 0, false},
    {"top_2_gram", NULL, gopher_top_gram, 2, ABOVE, 0.2, 0, false},
    {"top_3_gram", NULL, gopher_top_gram, 3, ABOVE, 0.18, 0, false},
    {"top_4_gram", NULL, gopher_top_gram, 4, ABOVE, 0.16, 0, false},
    {"duplicated_5_n_grams", NULL, gopher_duplicate_grams, 5, ABOVE, 0.15, 0, false},
    {"duplicated_6_n_grams", NULL, gopher_duplicate_grams, 6, ABOVE, 0.14, 0, false},
    {"duplicated_7_n_grams", NULL, gopher_duplicate_grams, 7, ABOVE, 0.13, 0, false},
    {"duplicated_8_n_grams", NULL, gopher_duplicate_grams, 8, ABOVE, 0.12, 0, false},
    {"duplicated_9_n_grams", NULL, gopher_duplicate_grams, 9, ABOVE, 0.11, 0, false},
    {"duplicated_10_n_grams", NULL, gopher_duplicate_grams, 10, ABOVE, 0.10, 0, false},
    {0},
}, c4[] = {
#define C4(field) c4_count, offsetof(struct filter_text, c4.field) - offsetof(struct filter_text, c4)
#define PARAM(field) 1 + offsetof(struct filter_params, field)
    {"line_too_long_word", NULL, C4(long_word), ABOVE, 1000, PARAM(max_word_length), true},
    {"line_no_terminal_punct", NULL, C4(no_terminal), ABOVE, 0, PARAM(terminal_punct), true},
    {"line_too_few_words", NULL, C4(few_words), BELOW, 3, PARAM(min_words), true},
    {"lorem_ipsum", NULL, C4(lorem_ipsum), ABOVE, 0, PARAM(lorem_ipsum), false},
    {"line_javascript", NULL, C4(javascript), ABOVE, 0, PARAM(javascript), true},
    {"curly_bracket", NULL, C4(curly_bracket), ABOVE, 0, PARAM(curly_bracket), false},
    {"line_policy", NULL, C4(policy), ABOVE, 0, PARAM(policy), true},
    {"too_few_sentences", NULL, C4(sentences), BELOW, 5, PARAM(min_sentences), false},
    {"remove_citations", NULL, NULL, 0, ABOVE, 1, PARAM(remove_citations), false},
    {0},
}, fineweb[] = {
    {"empty", "fineweb_empty", fineweb_empty, 0, ABOVE, 0, 0, false},
    {"line_punct_ratio", NULL, fineweb_terminal_lines, 0, BELOW, 0.12, 0, false},
    {"short_line_ratio", NULL, fineweb_short_lines, 0, ABOVE, 0.67, 0, false},
    {"short_line_length", NULL, NULL, 0, ABOVE, 30, PARAM(short_line_length), false},
    {"char_dup_ratio", NULL, fineweb_line_copies, 0, ABOVE, 0.01, 0, false},
    {"list_ratio", NULL, fineweb_newlines, 0, ABOVE, 0.3, 0, false},
    {0},
};

static const struct preset {
    const char *name, *source;
    const struct rule *rules;
    bool rewrites; /* c4: the text that is left goes on */
} presets[] = {
    {"gopher-quality", "datatrove 0.10 GopherQualityFilter; Rae et al. 2021", quality, false},
    {"gopher-repetition", "datatrove 0.10 GopherRepetitionFilter; Rae et al. 2021", repetition, false},
    {"c4", "datatrove 0.10 C4QualityFilter; Raffel et al. 2020", c4, true},
    {"fineweb", "datatrove 0.10 FineWebQualityFilter; Penedo et al. 2024", fineweb, false},
};
static const char *const planned[] = {"nemo", "dolma", "dclm", "rpv2"};
enum { N_PRESETS = sizeof presets / sizeof *presets, MAX_RULES = 16 };

/* ---- the stage ---- */

struct chosen {
    const struct preset *preset;
    double threshold[MAX_RULES]; /* NAN: the rule is off */
};
struct filter {
    struct chosen all[N_PRESETS]; /* as configured, in the order of presets */
    struct chosen *run[N_PRESETS];
    int n;
    bool annotate;
    struct filter_params params;
};

static bool drops(const struct rule *r, double value, double threshold)
{
    return r->drop == ABOVE ? value > threshold : value < threshold; /* false if either is NAN */
}

/* Asks the rules of one preset in order.  Fills v at the first that drops, or appends
 * the signals when json is given. */
static int ask_rules(const struct chosen *c, struct filter_text *t, struct verdict *v, struct buf *json)
{
    const struct rule *r = c->preset->rules;

    for (int i = 0; r[i].name; i++) {
        double value;

        if (!r[i].signal || (!json && (r[i].line || isnan(c->threshold[i]))))
            continue;
        value = r[i].signal(t, r[i].arg);
        if (t->rc < 0)
            return t->rc;
        if (json) {
            TRY(json_put_key(json, r[i].key ? r[i].key : r[i].name));
            TRY(json_put_num(json, value));
        } else if (drops(&r[i], value, c->threshold[i])) {
            return verdict_drop(v, r[i].name, value, c->threshold[i]);
        }
    }
    return 0;
}

static int annotate(const struct filter *f, struct filter_text *t, struct doc *d)
{
    struct buf json = {0};
    int rc = buf_putc(&json, '{');

    for (int i = 0; i < f->n && rc == 0; i++) {
        rc = ask_rules(f->run[i], t, NULL, &json);
        if (rc == 0 && f->run[i]->preset->rewrites) {
            struct span s = arena_dup(d->arena, c4_rewritten(t));
            rc = s.p ? 0 : ERR_NOMEM;
            filter_text_set(t, s);
        }
    }
    if (rc == 0 && (rc = buf_putc(&json, '}')) == 0)
        rc = doc_set_raw(d, "signals", buf_span(&json));
    buf_free(&json);
    return rc;
}

static int filter_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                       struct err *e)
{
    const struct filter *f = stage;
    struct filter_text *t = thread;
    int rc = 0;

    (void)note;
    t->err = e;
    t->rc = 0;
    filter_text_set(t, d->text);
    if (f->annotate) {
        rc = annotate(f, t, d);
        if (rc < 0 && t->rc == 0)
            return err_set(e, rc, "no memory for the signals of a document");
        return rc == ERR_LIMIT ? ERR_FORMAT : rc;
    }
    for (int i = 0; i < f->n && rc == 0 && !v->drop; i++) {
        struct span left;

        rc = ask_rules(f->run[i], t, v, NULL);
        if (rc < 0 || v->drop || !f->run[i]->preset->rewrites)
            continue;
        left = c4_rewritten(t);
        if (t->rc < 0)
            return t->rc;
        if (!span_eq(t->text, left)) {
            if (doc_set_string(d, "text", left) < 0)
                return err_set(e, ERR_NOMEM, "no memory for a document");
            filter_text_set(t, d->text);
        }
    }
    return rc == ERR_LIMIT ? ERR_FORMAT : rc; /* too long a text is a bad document */
}

static int filter_thread_open(void *stage, void **thread, struct err *e)
{
    const struct filter *f = stage;
    struct filter_text *t = calloc(1, sizeof *t);

    if (!t)
        return err_set(e, ERR_NOMEM, "no memory for a filter");
    if (!chars_classes()) {
        free(t);
        return err_set(e, ERR_NOMEM, "no memory for the classes of characters");
    }
    t->params = &f->params;
    *thread = t;
    return 0;
}

static void filter_thread_close(void *stage, void *thread)
{
    (void)stage;
    if (thread)
        filter_text_free(thread);
    free(thread);
}

static void filter_close(void *stage) { free(stage); }

/* ---- opening ---- */

static struct chosen *find_preset(struct filter *f, struct span name)
{
    for (int i = 0; i < N_PRESETS; i++)
        if (span_is(name, presets[i].name))
            return &f->all[i];
    return NULL;
}

static int choose_presets(struct filter *f, const char *list, struct err *e)
{
    while (list && *list) {
        struct span name = {list, strcspn(list, ",")};
        struct chosen *c = find_preset(f, name);

        for (size_t i = 0; !c && i < sizeof planned / sizeof *planned; i++)
            if (span_is(name, planned[i]))
                return err_set(e, ERR_ARG, "preset '%s' is not implemented yet", planned[i]);
        if (!c)
            return err_set(e, ERR_ARG, "no preset '%.*s': there are gopher-quality, gopher-repetition, c4, fineweb",
                           (int)name.n, name.p);
        for (int i = 0; i < f->n; i++)
            if (f->run[i] == c)
                return err_set(e, ERR_ARG, "preset '%s' is given twice", c->preset->name);
        f->run[f->n++] = c;
        list += name.n + (list[name.n] == ',');
    }
    return f->n ? 0 : err_set(e, ERR_ARG, "no preset is given");
}

static int configure_rule(struct chosen *c, const struct node *n, const char *file, struct err *e)
{
    const struct rule *r = c->preset->rules;
    int i = 0;

    while (r[i].name && !span_is(n->key, r[i].name))
        i++;
    if (!r[i].name)
        return err_set(e, ERR_FORMAT, "'%s' line %d: preset %s has no rule '%.*s'", file, n->line,
                       c->preset->name, (int)n->key.n, n->key.p);
    if (n->type == NODE_INT || n->type == NODE_NUM)
        c->threshold[i] = n->num;
    else if (n->type == NODE_BOOL || span_is(n->str, "off") || span_is(n->str, "on"))
        c->threshold[i] = (n->type == NODE_BOOL ? n->integer != 0 : span_is(n->str, "on")) ? r[i].threshold : OFF;
    else
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s needs a number, on or off", file, n->line, r[i].name);
    if (isinf(c->threshold[i]) || c->threshold[i] < 0 || (n->type == NODE_NUM && isnan(n->num)))
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s cannot be %.*s", file, n->line, r[i].name,
                       (int)n->str.n, n->str.p);
    return 0;
}

static int configure(struct filter *f, const char *file, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_load_yaml(&a, file, &root, e);

    if (rc == 0 && root->type != NODE_MAP)
        rc = err_set(e, ERR_FORMAT, "'%s': not a map of presets", file);
    for (const struct node *p = rc == 0 ? root->child : NULL; p && rc == 0; p = p->next) {
        struct chosen *c = find_preset(f, p->key);

        if (!c)
            rc = err_set(e, ERR_FORMAT, "'%s' line %d: no preset '%.*s'", file, p->line, (int)p->key.n, p->key.p);
        else if (p->type != NODE_MAP)
            rc = err_set(e, ERR_FORMAT, "'%s' line %d: preset %s needs a map of rules", file, p->line,
                         c->preset->name);
        for (const struct node *n = rc == 0 ? p->child : NULL; n && rc == 0; n = n->next)
            rc = configure_rule(c, n, file, e);
    }
    arena_free(&a);
    return rc;
}

/* Copies the thresholds that rules share into the parameters. */
static void set_params(struct filter *f)
{
    for (int i = 0; i < N_PRESETS; i++)
        for (int k = 0; presets[i].rules[k].name; k++) {
            size_t at = presets[i].rules[k].param;
            if (at)
                memcpy((char *)&f->params + at - 1, &f->all[i].threshold[k], sizeof(double));
        }
    f->params.all = f->annotate;
}

static const struct stage_ops ops = {
    .name = "filter",
    .thread_open = filter_thread_open,
    .thread_close = filter_thread_close,
    .work = filter_work,
    .close = filter_close,
};

int filter_stage_open(struct stage *s, const struct filter_conf *conf, struct err *e)
{
    struct filter *f = calloc(1, sizeof *f);
    int rc;

    if (!f)
        return err_set(e, ERR_NOMEM, "no memory for a filter");
    f->annotate = conf->annotate;
    for (int i = 0; i < N_PRESETS; i++) {
        f->all[i].preset = &presets[i];
        for (int k = 0; presets[i].rules[k].name; k++)
            f->all[i].threshold[k] = presets[i].rules[k].threshold;
    }
    rc = choose_presets(f, conf->presets, e);
    if (rc == 0 && conf->config)
        rc = configure(f, conf->config, e);
    if (rc < 0) {
        free(f);
        return rc;
    }
    set_params(f);
    s->ops = &ops;
    s->state = f;
    return 0;
}

void filter_list_rules(FILE *out)
{
    fprintf(out, "preset\trule\tdrops\tthreshold\tsource\n");
    for (int i = 0; i < N_PRESETS; i++)
        for (const struct rule *r = presets[i].rules; r->name; r++)
            fprintf(out, "%s\t%s\t%s\t%g\t%s\n", presets[i].name, r->name,
                    !r->signal ? "(setting)" : r->line ? "lines" : r->drop == ABOVE ? "above" : "below",
                    r->threshold, presets[i].source);
}
