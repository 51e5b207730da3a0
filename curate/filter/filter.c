#include "curate/filter/filter.h"

#include <stdlib.h>

#include "base/node.h"
#include "curate/filter/filter_preset.h"

static const struct preset *const presets[] = {
    &filter_gopher_quality, &filter_gopher_repetition, &filter_c4, &filter_fineweb, &filter_nemo, &filter_dolma,
    &filter_dclm, &filter_rpv2, &filter_fineweb2, &filter_url, &filter_c4_badwords,
    &filter_rights,
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

/* ---- the stage ---- */

struct chosen {
    const struct preset *preset;
    int at; /* among presets */
    struct setting set[MAX_RULES];
};
struct filter {
    struct chosen all[N_PRESETS]; /* as configured, in the order of presets */
    struct chosen *run[N_PRESETS];
    int n;
    bool annotate;
    struct filter_lists lists;
};
struct filter_thread {
    struct filter_text t;
    void *own[N_PRESETS]; /* states of the presets that run */
    struct buf json;      /* signals for the document */
};

/* The text changes: everything known of it goes. */
static void set_text(struct filter_thread *th, struct span text)
{
    filter_text_set(&th->t, text);
    for (int i = 0; i < N_PRESETS; i++)
        if (th->own[i])
            memset(th->own[i], 0, sizeof(unsigned));
}

static int put_signal(struct filter_text *t, struct buf *json, const struct rule *r, double value)
{
    TRY(json_put_key(json, r->key ? r->key : r->name));
    return r->put ? r->put(t, r->arg, json) : json_put_num(json, value);
}

/* As round(x, 5) in Python. */
static double five_places(double x)
{
    char text[400];

    snprintf(text, sizeof text, "%.5f", x);
    return strtod(text, NULL);
}

/* Does the rule drop the document, given its threshold and signal?  False if one of them is NAN. */
static bool drops(const struct preset *p, const struct rule *r, enum filter_action action, double limit, double value)
{
    if (action != ACTION_DROP || isnan(limit) || r->kind == RULE_SIGNAL)
        return false;
    if (r->lines)
        return value > 0;
    if (p->rounded && fabs(value - limit) < 1e-4)
        value = five_places(value);
    return r->kind == RULE_ABOVE ? value > limit : r->kind == RULE_BELOW ? value < limit : value >= limit;
}

/* Asks the rules of one preset in order, up to the first that drops.  Appends the signals
 * of those that annotate to json, with `all` of every rule, none of which drops then. */
static int ask_rules(const struct chosen *c, struct filter_thread *th, bool all, struct verdict *v)
{
    const struct rule *r = c->preset->rules;
    struct filter_text *t = &th->t;
    const char *last = ""; /* key that was written */

    for (int i = 0; r[i].name; i++) {
        const struct setting *set = &c->set[i];
        const char *key = r[i].key ? r[i].key : r[i].name;
        double value, limit;

        if (!r[i].signal || set->absent || (!all && (set->action == ACTION_STRIP || isnan(set->threshold))))
            continue;
        value = r[i].signal(t, r[i].arg);
        limit = r[i].limit && !set->given ? r[i].limit(t, r[i].arg) : set->threshold;
        if (t->rc < 0)
            return t->rc;
        if (all || set->action == ACTION_ANNOTATE) {
            if (strcmp(key, last) != 0)
                TRY(put_signal(t, &th->json, &r[i], value));
            last = key;
        } else if (drops(c->preset, &r[i], set->action, limit, value)) {
            return verdict_drop(v, &(struct stage_rule){.name = r[i].name}, value, r[i].lines ? 0 : limit);
        }
    }
    return 0;
}

/* Makes what the preset wants, or left, the text that is seen; `keep` leaves the document
 * as it is. */
static int rewrite(struct span (*text)(struct filter_text *), struct filter_thread *th, struct doc *d, bool keep)
{
    struct span left;

    if (!text)
        return 0;
    left = text(&th->t);
    if (th->t.rc < 0)
        return th->t.rc;
    if (span_eq(th->t.text, left))
        return 0;
    if (keep) {
        left = arena_dup(d->arena, left);
        if (!left.p)
            return ERR_NOMEM;
    } else {
        TRY(doc_set_string(d, "text", left));
        left = d->text;
    }
    set_text(th, left);
    return 0;
}

static int filter_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                       struct err *e)
{
    const struct filter *f = stage;
    struct filter_thread *th = thread;
    int rc;

    (void)note;
    th->t.err = e;
    th->t.rc = 0;
    th->t.all = f->annotate;
    th->t.doc = d;
    th->t.lists = &f->lists;
    set_text(th, d->text);
    buf_clear(&th->json);
    rc = buf_putc(&th->json, '{');
    for (int i = 0; i < f->n && rc == 0 && !v->drop; i++) {
        const struct preset *p = f->run[i]->preset;

        th->t.own = th->own[f->run[i]->at];
        th->t.set = f->run[i]->set;
        rc = rewrite(p->prepared, th, d, f->annotate);
        if (rc == 0)
            rc = ask_rules(f->run[i], th, f->annotate, v);
        if (rc == 0 && !v->drop)
            rc = rewrite(p->rewritten, th, d, f->annotate);
    }
    if (rc == 0 && !v->drop && (f->annotate || th->json.n > 1) && (rc = buf_putc(&th->json, '}')) == 0)
        rc = doc_set_raw(d, "signals", buf_span(&th->json));
    if (rc < 0 && th->t.rc == 0)
        return err_set(e, rc, "no memory for a document");
    return rc == ERR_LIMIT ? ERR_FORMAT : rc; /* too long a text is a bad document */
}

static void filter_thread_close(void *stage, void *thread)
{
    struct filter_thread *th = thread;

    (void)stage;
    if (!th)
        return;
    for (int i = 0; i < N_PRESETS; i++) {
        if (th->own[i] && presets[i]->free)
            presets[i]->free(th->own[i]);
        free(th->own[i]);
    }
    filter_text_free(&th->t);
    buf_free(&th->json);
    free(th);
}

static int filter_thread_open(void *stage, void **thread, struct err *e)
{
    const struct filter *f = stage;
    struct filter_thread *th = calloc(1, sizeof *th);
    bool fine = th && chars_classes();

    for (int i = 0; i < f->n && fine; i++) {
        const struct chosen *c = f->run[i];
        if (c->preset->size)
            fine = (th->own[c->at] = calloc(1, c->preset->size)) != NULL;
    }
    if (!fine) {
        filter_thread_close(stage, th);
        return err_set(e, ERR_NOMEM, "no memory for a filter");
    }
    *thread = th;
    return 0;
}

static void filter_close(void *stage)
{
    struct filter *f = stage;

    filter_lists_close(&f->lists);
    free(f);
}

/* ---- opening ---- */

static struct chosen *find_preset(struct filter *f, struct span name)
{
    for (int i = 0; i < N_PRESETS; i++)
        if (span_is(name, presets[i]->name))
            return &f->all[i];
    return NULL;
}

static int refuse_preset(struct span name, struct err *e)
{
    char list[256] = "";

    if (span_is(name, "fineweb2"))
        return err_set(e, ERR_ARG, "preset 'fineweb2' needs datatrove's tokenizers; fineweb2-icu has its rules on other words");
    for (int i = 0, n = 0; i < N_PRESETS && n < (int)sizeof list; i++)
        n += snprintf(list + n, sizeof list - (size_t)n, "%s%s", i ? ", " : "", presets[i]->name);
    return err_set(e, ERR_ARG, "no preset '%.*s': there are %s", (int)name.n, name.p, list);
}

static int choose_presets(struct filter *f, const char *list, struct err *e)
{
    while (list && *list) {
        struct span name = {list, strcspn(list, ",")};
        struct chosen *c = find_preset(f, name);

        if (!c)
            return refuse_preset(name, e);
        for (int i = 0; i < f->n; i++)
            if (f->run[i] == c)
                return err_set(e, ERR_ARG, "preset '%s' is given twice", c->preset->name);
        f->run[f->n++] = c;
        list += name.n + (list[name.n] == ',');
    }
    return f->n ? 0 : err_set(e, ERR_ARG, "no preset is given");
}

static int set_threshold(struct setting *set, const struct rule *r, const struct node *n, const char *file,
                         struct err *e)
{
    bool on = n->type == NODE_BOOL ? n->integer != 0 : span_is(n->str, "on");

    if (r->kind == RULE_SIGNAL)
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s is a signal and has no threshold", file, n->line, r->name);
    if (n->type == NODE_INT || n->type == NODE_NUM)
        set->threshold = n->num;
    else if (n->type == NODE_BOOL || span_is(n->str, "off") || span_is(n->str, "on"))
        set->threshold = on ? r->threshold : RULE_OFF;
    else
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s needs a number, on or off", file, n->line, r->name);
    if (on && isnan(r->threshold))
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s is off by itself and needs a number", file, n->line, r->name);
    set->given = !(on && r->limit);
    if (isinf(set->threshold) || set->threshold < 0 || (n->type == NODE_NUM && isnan(n->num)))
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s cannot be %.*s", file, n->line, r->name,
                       (int)n->str.n, n->str.p);
    if (r->lines && r->threshold == 0 && set->threshold != 0 && !isnan(set->threshold))
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s is on or off", file, n->line, r->name);
    return 0;
}

static int set_action(struct setting *set, const struct rule *r, const struct node *n, const char *file,
                      struct err *e)
{
    static const char *const names[] = {"drop", "annotate", "strip"};
    int i = 0;

    while (i < 3 && !(n->type == NODE_STR && span_is(n->str, names[i])))
        i++;
    if (i == 3)
        return err_set(e, ERR_FORMAT, "'%s' line %d: the action of %s is drop, annotate or strip", file, n->line,
                       r->name);
    if (r->kind == RULE_SETTING)
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s is a setting and takes no action", file, n->line, r->name);
    if (i == ACTION_DROP && r->kind == RULE_SIGNAL)
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s is a signal and drops nothing", file, n->line, r->name);
    if (i == ACTION_STRIP && !r->lines)
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s does not judge lines and cannot strip them", file, n->line,
                       r->name);
    set->action = (enum filter_action)i;
    if (isnan(set->threshold))
        set->threshold = r->threshold; /* what is told to act is on */
    return 0;
}

/* `rule: X` or `rule: {threshold: X, action: A}`, in any order. */
static int configure_rule(struct chosen *c, const struct node *n, const char *file, struct err *e)
{
    const struct rule *r = c->preset->rules;
    struct setting *set = c->set;

    for (; r->name && !span_is(n->key, r->name); r++)
        set++;
    if (!r->name)
        return err_set(e, ERR_FORMAT, "'%s' line %d: preset %s has no rule '%.*s'", file, n->line,
                       c->preset->name, (int)n->key.n, n->key.p);
    if (n->type != NODE_MAP)
        return set_threshold(set, r, n, file, e);
    if (node_get(n, "action"))
        TRY(set_action(set, r, node_get(n, "action"), file, e));
    for (const struct node *x = n->child; x; x = x->next) {
        if (span_is(x->key, "threshold"))
            TRY(set_threshold(set, r, x, file, e));
        else if (!span_is(x->key, "action"))
            return err_set(e, ERR_FORMAT, "'%s' line %d: %s has no '%.*s', but threshold and action", file, x->line,
                           r->name, (int)x->key.n, x->key.p);
    }
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

/* Turns off the rules that lack what they need.  One that is configured must not, nor all
 * of a preset; and what is there must be needed. */
static int check_needs(struct filter *f, struct err *e)
{
    bool used[N_NEEDS] = {false};

    for (int i = 0; i < f->n; i++) {
        const struct preset *p = f->run[i]->preset;
        enum filter_needs last = NEEDS_NOTHING;
        bool any = false;

        for (int k = 0; p->rules[k].name; k++) {
            const struct rule *r = &p->rules[k];
            struct setting *set = &f->run[i]->set[k];

            used[r->needs] = true;
            last = r->needs;
            set->absent = !f->lists.have[r->needs];
            any |= !set->absent && r->kind != RULE_SETTING;
            if (set->absent && (set->action == ACTION_ANNOTATE || (set->given && !isnan(set->threshold))))
                return err_set(e, ERR_ARG, "preset %s: rule %s needs %s", p->name, r->name, filter_needs_name(r->needs));
        }
        if (!any)
            return err_set(e, ERR_ARG, "preset %s needs %s%s", p->name, filter_needs_name(last),
                           last == NEEDS_BANNED_SUBWORDS ? " or another of its lists" : "");
    }
    for (int i = NEEDS_MODEL + 1; i < NEEDS_LANG; i++)
        if (f->lists.have[i] && !used[i])
            return err_set(e, ERR_ARG, "no preset that is given looks at %s", filter_needs_name((enum filter_needs)i));
    return 0;
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
        const struct rule *r = presets[i]->rules;

        f->all[i].preset = presets[i];
        f->all[i].at = i;
        for (int k = 0; r[k].name; k++) {
            bool off = r[k].off || r[k].kind == RULE_SIGNAL;
            f->all[i].set[k] = (struct setting){.threshold = off ? RULE_OFF : r[k].threshold, .action = r[k].action};
        }
    }
    rc = choose_presets(f, conf->presets, e);
    if (rc == 0 && conf->config)
        rc = configure(f, conf->config, e);
    if (rc == 0)
        rc = filter_lists_open(&f->lists, conf, e);
    if (rc == 0)
        rc = check_needs(f, e);
    if (rc < 0) {
        filter_close(f);
        return rc;
    }
    s->ops = &ops;
    s->state = f;
    return 0;
}

void filter_conf_init(struct filter_conf *c) { *c = (struct filter_conf){0}; }

static const char *drops_where(const struct rule *r)
{
    return r->kind == RULE_ABOVE ? "above" : r->kind == RULE_REACHES ? "from" : "below";
}

/* What the rule says of itself, or for it the rule that it stands for. */
static const char *words_of(const struct rule *rule)
{
    for (int i = 0; i < N_PRESETS && !rule->words; i++)
        for (const struct rule *r = presets[i]->rules; r->name && !rule->words; r++)
            if (r->words && strcmp(r->name, rule->name) == 0)
                rule = r;
    return rule->words;
}

bool filter_rule_next(int *at, struct span name, struct filter_rule *out)
{
    while (*at < N_PRESETS) {
        const struct preset *p = presets[(*at)++];

        for (const struct rule *r = p->rules; r->name; r++)
            if (r->kind != RULE_SETTING && r->kind != RULE_SIGNAL && span_is(name, r->name)) {
                *out = (struct filter_rule){p->name, r->name, p->source, words_of(r), drops_where(r),
                                             r->limit || r->off ? NAN : r->threshold};
                return true;
            }
    }
    return false;
}

void filter_list_rules(FILE *out)
{
    fprintf(out, "preset\trule\tdrops\tthreshold\tsource\tmeaning\n");
    for (int i = 0; i < N_PRESETS; i++)
        for (const struct rule *r = presets[i]->rules; r->name; r++) {
            char threshold[32] = "by language";

            if (!r->limit)
                snprintf(threshold, sizeof threshold, isnan(r->threshold) ? "off" : "%g", r->threshold);
            fprintf(out, "%s\t%s\t%s\t%s%s\t%s\t%s\n", presets[i]->name, r->name,
                    r->kind == RULE_SETTING     ? "(setting)"
                    : r->needs == NEEDS_MODEL   ? "(needs a model)"
                    : r->kind == RULE_SIGNAL    ? "(signal)"
                    : r->action == ACTION_STRIP ? "lines"
                                                : drops_where(r),
                    threshold, r->off ? " (off)" : "", presets[i]->source, words_of(r));
        }
}
