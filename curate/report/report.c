#include "curate/report/report.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/node.h"
#include "curate/stream/doc.h"
#include "curate/report/reject.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the report");
}

/* At most n bytes of s, no character cut. */
static struct span head(struct span s, size_t n)
{
    if (s.n > n)
        for (s.n = n; s.n && ((unsigned char)s.p[s.n] & 0xC0) == 0x80; s.n--)
            ;
    return s;
}

/* ---- rules ---- */

static int find_rule(struct report *r, struct span stage, struct span rule, struct report_rule **out, struct err *e)
{
    struct buf key = {0};
    size_t number = REPORT_RULES;
    int rc;

    stage = head(stage, REPORT_NAME_BYTES);
    rule = head(rule, REPORT_NAME_BYTES);
    if (buf_put_span(&key, stage) < 0 || buf_putc(&key, '\0') < 0 || buf_put_span(&key, rule) < 0)
        rc = no_memory(e);
    else if (name_table_find(&r->rules, buf_span(&key), &number) || r->rules.n == REPORT_RULES)
        rc = 0;
    else
        rc = name_table_add(&r->rules, buf_span(&key), &number);
    buf_free(&key);
    if (rc < 0)
        return no_memory(e);
    *out = &r->rule[number];
    if (number == REPORT_RULES) /* the others */
        stage = rule = span_of("(others)");
    if (!(*out)->stage.p) {
        (*out)->stage = arena_dup(&r->bytes, stage);
        (*out)->rule = arena_dup(&r->bytes, rule);
    }
    return (*out)->stage.p && (*out)->rule.p ? 0 : no_memory(e);
}

/* ---- statistics ---- */

static uint64_t count_of(const struct node *n, const char *key)
{
    int64_t v = node_int(n, key, 0);

    return v > 0 ? (uint64_t)v : 0;
}

static int add_stage(struct report *r, const struct node *n, const char *file, bool other, struct err *e)
{
    struct report_stage **list = other ? &r->other : &r->stage;
    int *count = other ? &r->n_others : &r->n_stages;
    const struct node *rules = node_get(n, "dropped_by");
    const char *name = node_str(n, "stage"), *branch = node_str(n, "branch");
    struct report_stage *s = realloc(*list, (size_t)(*count + 1) * sizeof *s);
    struct report_rule *rule;

    if (!s)
        return no_memory(e);
    *list = s;
    s += (*count)++;
    *s = (struct report_stage){{0}, {0}, file, count_of(n, "docs_in"), count_of(n, "docs_out"), count_of(n, "bytes_in"),
                               count_of(n, "bytes_out")};
    s->name = arena_dup(&r->bytes, head(span_of(name ? name : "?"), REPORT_NAME_BYTES));
    if (branch)
        s->branch = arena_dup(&r->bytes, head(span_of(branch), REPORT_NAME_BYTES));
    if (!s->name.p || (branch && !s->branch.p))
        return no_memory(e);
    for (const struct node *k = rules ? rules->child : NULL; k; k = k->next) {
        TRY(find_rule(r, s->name, k->key, &rule, e));
        *(other ? &rule->other : &rule->said) += k->type == NODE_INT && k->integer > 0 ? (uint64_t)k->integer : 0;
    }
    return 0;
}

static void read_out(struct report *r, const struct node *root, bool other)
{
    const struct report_stage *s = other ? r->other : r->stage;
    struct report_out *out = other ? &r->other_out : &r->out;
    int n = other ? r->n_others : r->n_stages;

    if (node_get(root, "docs_out"))
        *out = (struct report_out){count_of(root, "docs_out"), count_of(root, "bytes_out")};
    else if (n)
        *out = (struct report_out){s[n - 1].docs_out, s[n - 1].bytes_out};
}

static int read_stats(struct report *r, const char *file, bool other, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    const struct node *stages;
    int rc = node_load_json(&a, file, &root, e);

    stages = rc == 0 ? node_get(root, "stages") : NULL;
    if (rc == 0 && (!stages || stages->type != NODE_LIST))
        rc = err_set(e, ERR_FORMAT, "'%s' has no statistics of stages", file);
    for (const struct node *n = rc == 0 ? stages->child : NULL; n && rc == 0; n = n->next)
        rc = add_stage(r, n, file, other, e);
    if (rc == 0)
        read_out(r, root, other);
    if (rc == 0 && !other)
        r->bad += count_of(root, "bad");
    arena_free(&a);
    return rc;
}

/* ---- accounts ---- */

struct gather {
    struct report *r;
    const struct report_conf *conf;
    struct reject_reader reader;
    struct name_table wanted; /* ids of the examples */
    struct report_example **first; /* of each id; others of the same id get their text from it */
    struct report_rule *last; /* rule: lines of one often stand together */
};

/* Among the examples of its rule if its id's hash is small enough. */
static int offer(struct gather *g, struct report_rule *rule, const struct reject *x)
{
    int most = (int)g->conf->examples, at = rule->n_examples;
    uint64_t hash = hash_xxh3_64(x->id);
    struct report_example *p = rule->example;

    if (most == 0 || x->id.n > REPORT_ID_BYTES || (at == most && hash >= p[most - 1].hash))
        return 0;
    if (!p) {
        p = rule->example = calloc((size_t)most, sizeof *p);
        if (!p)
            return ERR_NOMEM;
    }
    for (int i = 0; i < at; i++)
        if (p[i].hash == hash && span_eq(p[i].id, x->id))
            return 0;
    if (at == most)
        at--;
    else
        rule->n_examples++;
    for (; at > 0 && p[at - 1].hash > hash; at--)
        p[at] = p[at - 1];
    p[at] = (struct report_example){.hash = hash, .value = x->value, .threshold = x->threshold};
    p[at].id = arena_dup(&g->r->bytes, x->id);
    if (x->survivor.p) {
        p[at].survivor = arena_dup(&g->r->bytes, head(x->survivor, REPORT_ID_BYTES));
        if (!p[at].survivor.p)
            return ERR_NOMEM;
    }
    return p[at].id.p ? 0 : ERR_NOMEM;
}

static int see_reject(void *to, const struct item *it, struct err *e)
{
    struct gather *g = to;
    struct report_rule *rule = g->last;
    struct reject x;
    int rc = 0;

    TRY(reject_parse(&g->reader, it->line, &x, e));
    if (!rule || !span_eq(rule->rule, x.rule) || !span_eq(rule->stage, x.stage))
        TRY(find_rule(g->r, x.stage, x.rule, &rule, e));
    g->last = rule;
    rule->found++;
    if (isfinite(x.value) && isfinite(x.threshold)) {
        rule->against++;
        rule->near += x.threshold != 0 && fabs(x.value - x.threshold) <= fabs(x.threshold) / 10;
    }
    if (isfinite(x.value))
        rc = sketch_add(&rule->value, x.value);
    if (rc == 0 && isfinite(x.threshold))
        rc = sketch_add(&rule->threshold, x.threshold);
    if (rc == 0)
        rc = offer(g, rule, &x);
    return rc < 0 ? no_memory(e) : 0;
}

/* ---- texts of the examples ---- */

static int see_doc(void *to, const struct item *it, struct err *e)
{
    struct gather *g = to;
    struct report_example *x;
    struct span text;
    struct doc d;
    size_t number;

    if (!line_may_be(it->line, &g->wanted))
        return 0;
    arena_reset(&g->reader.arena);
    doc_init(&d, &g->reader.arena);
    d.file = it->file;
    d.offset = it->offset;
    TRY(doc_parse(&d, g->reader.json, it->line, e));
    if (!name_table_find(&g->wanted, d.id, &number) || g->first[number]->text.p)
        return 0;
    x = g->first[number];
    text = head(d.text, REPORT_TEXT_BYTES);
    x->cut = text.n < d.text.n;
    x->text = arena_dup(&g->r->bytes, text);
    return x->text.p ? 0 : no_memory(e);
}

/* Gives each example its text, if fill; else notes the ids that are wanted. */
static int each_example(struct gather *g, bool fill)
{
    size_t number;

    for (size_t i = 0; i <= g->r->rules.n; i++) {
        struct report_rule *rule = &g->r->rule[i < g->r->rules.n ? i : REPORT_RULES];

        for (int k = 0; k < rule->n_examples; k++) {
            struct report_example *x = &rule->example[k];

            if (!fill) {
                int rc = name_table_add(&g->wanted, x->id, &number);
                TRY(rc);
                if (rc)
                    g->first[number] = x;
            } else if (name_table_find(&g->wanted, x->id, &number)) {
                x->text = g->first[number]->text;
                x->cut = g->first[number]->cut;
            }
        }
    }
    return 0;
}

static int find_texts(struct gather *g, struct err *e)
{
    uint64_t *bad = NULL; /* they were told of when the documents were counted */
    int rc;

    g->first = calloc((size_t)(REPORT_RULES + 1) * (size_t)g->conf->examples + 1, sizeof(struct report_example *));
    rc = g->first ? each_example(g, false) : ERR_NOMEM;
    if (rc < 0)
        return no_memory(e);
    if (g->wanted.n == 0)
        return 0;
    TRY(lines_read(g->conf->input, g->conf->n_input, see_doc, g, bad, e));
    TRY(lines_read(g->conf->docs, g->conf->n_docs, see_doc, g, bad, e));
    return each_example(g, true);
}

/* ---- everything ---- */

static int read_corpus(struct corpus_stats *c, bool *have, char *const *files, int n, int jobs, struct err *e)
{
    struct corpus_conf conf;

    *have = n > 0;
    if (!n)
        return 0;
    corpus_conf_init(&conf);
    conf.inputs = files;
    conf.n_inputs = n;
    conf.jobs = jobs;
    return corpus_read(c, &conf, e);
}

static int read_all(struct gather *g, struct err *e)
{
    const struct report_conf *c = g->conf;
    struct report *r = g->r;

    for (int i = 0; i < c->n_stats; i++)
        TRY(read_stats(r, c->stats[i], false, e));
    for (int i = 0; i < c->n_other; i++)
        TRY(read_stats(r, c->other[i], true, e));
    TRY(lines_read(c->rejects, c->n_rejects, see_reject, g, &r->bad_lines, e));
    TRY(read_corpus(&r->input, &r->have_input, c->input, c->n_input, c->jobs, e));
    TRY(read_corpus(&r->docs, &r->have_docs, c->docs, c->n_docs, c->jobs, e));
    r->bad_lines += r->input.bad + r->docs.bad;
    return find_texts(g, e);
}

int report_read(struct report *r, const struct report_conf *conf, struct err *e)
{
    struct gather g = {.r = r, .conf = conf};
    int rc;

    *r = (struct report){0};
    r->rule = calloc(REPORT_RULES + 1, sizeof *r->rule);
    rc = r->rule ? reject_reader_open(&g.reader, e) : no_memory(e);
    if (rc == 0)
        rc = read_all(&g, e);
    reject_reader_close(&g.reader);
    name_table_free(&g.wanted);
    free(g.first);
    return rc;
}

void report_free(struct report *r)
{
    for (size_t i = 0; r->rule && i <= REPORT_RULES; i++) {
        sketch_free(&r->rule[i].value);
        sketch_free(&r->rule[i].threshold);
        free(r->rule[i].example);
    }
    free(r->rule);
    free(r->stage);
    free(r->other);
    name_table_free(&r->rules);
    if (r->have_input)
        corpus_free(&r->input);
    if (r->have_docs)
        corpus_free(&r->docs);
    arena_free(&r->bytes);
    *r = (struct report){0};
}
