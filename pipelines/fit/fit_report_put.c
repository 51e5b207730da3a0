/* What was found about mixtures, for a terminal, for programs, and as an ablation. */
#include "pipelines/fit/fit_report_put.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "pipelines/ablation/ablation.h"

int fit_heads(struct text_table *t, const char *names)
{
    t->columns = 1;
    for (const char *s = names; *s; s++)
        t->columns += *s == '|';
    for (const char *s = names; s; s = strchr(s, '|') ? strchr(s, '|') + 1 : NULL)
        TRY(text_table_add(t, (struct span){s, strcspn(s, "|")}));
    return 0;
}

int fit_end_table(struct text_table *t, int rc, struct buf *b)
{
    if (rc == 0)
        rc = text_table_put(t, 0, b);
    text_table_free(t);
    return rc;
}

int fit_put_range(struct buf *b, const struct fit_range *r)
{
    TRY(json_put_real(b, "loss", r->value));
    TRY(json_put_real(b, "low", r->low));
    TRY(json_put_real(b, "high", r->high));
    TRY(json_put_real(b, "run_low", r->run_low));
    return json_put_real(b, "run_high", r->run_high);
}

/* ---- a table ---- */

/* Each target: the form that is believed, and how far each is from mixtures that it has not seen. */
static int put_forms(const struct mix_finding *f, struct buf *b)
{
    struct text_table t = {0};
    int rc = fit_heads(&t, "target|form|left out: error|rank corr.|linear|exponential|power");

    for (int i = 0; i < f->points.targets && rc == 0; i++) {
        const struct mix_target *x = &f->a.target[i];

        rc = text_table_add(&t, span_of(f->points.target[i]));
        if (rc == 0)
            rc = text_table_add(&t, span_of(mix_form_name(x->form)));
        if (rc == 0)
            rc = text_table_add_as(&t, "%.3f %%", 100 * x->error[x->form]);
        if (rc == 0)
            rc = text_table_add_as(&t, "%.4f", x->correlation[x->form]);
        for (int k = 0; k < MIX_FORMS && rc == 0; k++)
            rc = text_table_add_as(&t, "%.3f %%", 100 * x->error[k]);
    }
    return fit_end_table(&t, rc, b);
}

static int put_best(const struct mix_finding *f, struct buf *b)
{
    struct text_table t = {0};
    int rc = fit_heads(&t, "source|best weight|from|to|at least|at most");

    for (int i = 0; i < f->points.sources && rc == 0; i++) {
        const double v[] = {f->row[0].w[i], f->low[i], f->high[i], f->goal.least[i], f->goal.most[i]};

        rc = text_table_add(&t, span_of(f->points.source[i]));
        for (int k = 0; k < 5 && rc == 0; k++)
            rc = text_table_add_as(&t, "%.4f", v[k]);
    }
    return fit_end_table(&t, rc, b);
}

static int put_range_cells(struct text_table *t, const char *mixture, const char *target, const struct fit_range *r)
{
    TRY(text_table_add(t, span_of(mixture)));
    TRY(text_table_add(t, span_of(target)));
    TRY(text_table_add_as(t, "%.4f", r->value));
    TRY(text_table_add_as(t, "%.4f", r->low));
    TRY(text_table_add_as(t, "%.4f", r->high));
    TRY(text_table_add_as(t, "%.4f", r->run_low));
    return text_table_add_as(t, "%.4f", r->run_high);
}

static int put_predictions(const struct mix_finding *f, struct buf *b)
{
    struct text_table t = {0};
    int rc = fit_heads(&t, "mixture|target|predicted|from|to|a run: from|to");

    for (int i = 0; i < f->rows && rc == 0; i++) {
        if (f->points.targets > 1)
            rc = put_range_cells(&t, f->row[i].name, "(goal)", &f->row[i].goal);
        for (int k = 0; k < f->points.targets && rc == 0; k++)
            rc = put_range_cells(&t, f->row[i].name, f->points.target[k], &f->row[i].loss[k]);
    }
    return fit_end_table(&t, rc, b);
}

static int put_tests(const struct mix_finding *f, struct buf *b)
{
    struct text_table t = {0};
    int rc = fit_heads(&t, "not fitted|points|error|rank corr.|within a run's range");

    for (int i = f->points.targets > 1 ? -1 : 0; i < f->points.targets && rc == 0; i++) {
        const struct mix_test *x = i < 0 ? &f->goal_test : &f->test[i];

        rc = text_table_add(&t, span_of(i < 0 ? "(goal)" : f->points.target[i]));
        if (rc == 0)
            rc = text_table_add_int(&t, (uint64_t)f->tests.n);
        if (rc == 0)
            rc = text_table_add_as(&t, "%.3f %%", 100 * x->error);
        if (rc == 0)
            rc = text_table_add_as(&t, "%.4f", x->correlation);
        if (rc == 0)
            rc = text_table_add_int(&t, (uint64_t)x->inside);
    }
    return fit_end_table(&t, rc, b);
}

int mix_put_table(const struct mix_finding *f, struct buf *b)
{
    TRY(buf_printf(b, "%d points of %d mixtures of %d sources; ranges have %g %% of %" PRId64 " bootstrap fits, seed %" PRId64
                   "\n\n", f->points.n, f->points.mixtures, f->points.sources, 100 * f->c->interval, f->c->draws, f->c->seed));
    TRY(put_forms(f, b));
    TRY(buf_putc(b, '\n'));
    TRY(put_best(f, b));
    TRY(buf_putc(b, '\n'));
    TRY(put_predictions(f, b));
    if (!f->tests.n)
        return 0;
    TRY(buf_putc(b, '\n'));
    return put_tests(f, b);
}

/* ---- JSON ---- */

static int put_range(struct buf *b, const char *key, const struct fit_range *r)
{
    TRY(json_put_key(b, key));
    TRY(buf_putc(b, '{'));
    TRY(fit_put_range(b, r));
    return buf_putc(b, '}');
}

static int put_sources(const struct mix_finding *f, const char *key, const double *v, struct buf *b)
{
    TRY(json_put_key(b, key));
    TRY(buf_putc(b, '{'));
    for (int i = 0; i < f->points.sources; i++)
        TRY(json_put_real(b, f->points.source[i], v[i]));
    return buf_putc(b, '}');
}

static int put_test(const struct mix_finding *f, const char *key, const struct mix_test *x, struct buf *b)
{
    if (!f->tests.n)
        return 0;
    TRY(json_put_key(b, key));
    TRY(buf_puts(b, "{\"points\":"));
    TRY(json_put_int(b, f->tests.n));
    TRY(json_put_real(b, "error", x->error));
    TRY(json_put_real(b, "rank_correlation", x->correlation));
    TRY(json_put_count(b, "within", (uint64_t)x->inside));
    return buf_putc(b, '}');
}

static int put_target(const struct mix_finding *f, int target, struct buf *b)
{
    const struct mix_target *x = &f->a.target[target];

    TRY(json_put_key(b, f->points.target[target]));
    TRY(buf_puts(b, "{\"form\":"));
    TRY(json_put_name(b, mix_form_name(x->form)));
    TRY(json_put_key(b, "forms"));
    TRY(buf_putc(b, '{'));
    for (int k = 0; k < MIX_FORMS; k++) {
        if (isnan(x->error[k]))
            continue;
        TRY(json_put_key(b, mix_form_name((enum mix_form)k)));
        TRY(buf_putc(b, '{'));
        TRY(json_put_real(b, "error", x->error[k]));
        TRY(json_put_real(b, "rank_correlation", x->correlation[k]));
        TRY(json_put_key(b, "parameters"));
        TRY(buf_putc(b, '['));
        for (int i = 0; i < mix_form_params((enum mix_form)k, f->points.sources); i++) {
            TRY(i ? buf_putc(b, ',') : 0);
            TRY(json_put_num(b, x->p[k][i]));
        }
        TRY(buf_puts(b, "]}"));
    }
    TRY(buf_putc(b, '}'));
    TRY(put_test(f, "test", &f->test[target], b));
    return buf_putc(b, '}');
}

static int put_row(const struct mix_finding *f, int i, struct buf *b)
{
    const struct mix_row *r = &f->row[i];

    TRY(buf_puts(b, i ? ",\n{\"mixture\":" : "\n{\"mixture\":"));
    TRY(json_put_name(b, r->name));
    TRY(put_sources(f, "weights", r->w, b));
    if (i == 0) {
        TRY(put_sources(f, "low", f->low, b));
        TRY(put_sources(f, "high", f->high, b));
    }
    TRY(put_range(b, "goal", &r->goal));
    TRY(json_put_key(b, "losses"));
    TRY(buf_putc(b, '{'));
    for (int t = 0; t < f->points.targets; t++)
        TRY(put_range(b, f->points.target[t], &r->loss[t]));
    return buf_puts(b, "}}");
}

int mix_put_json(const struct mix_finding *f, struct buf *b)
{
    TRY(buf_printf(b, "{\"points\":%d,\"mixtures\":%d,\"seed\":%" PRId64 ",\"draws\":%" PRId64, f->points.n, f->points.mixtures,
                   f->c->seed, f->c->draws));
    TRY(json_put_real(b, "interval", f->c->interval));
    TRY(json_put_key(b, "targets"));
    TRY(buf_putc(b, '{'));
    for (int t = 0; t < f->points.targets; t++)
        TRY(put_target(f, t, b));
    TRY(buf_putc(b, '}'));
    TRY(put_test(f, "goal_test", &f->goal_test, b));
    TRY(json_put_key(b, "predictions"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < f->rows; i++)
        TRY(put_row(f, i, b));
    return buf_puts(b, "]}\n");
}

/* ---- an ablation ---- */

/* What the file says, but for variants, and for results that would take the place of its own.  The work folder is the same, so
 * that what is curated is not curated again. */
static int put_settings(const struct node *root, const char *of, struct buf *b)
{
    struct buf work = {0};
    int rc = 0;

    if (!node_get(root, "work")) {
        rc = buf_printf(&work, "%s.work", of);
        if (rc == 0)
            rc = buf_puts(b, "work: ");
        if (rc == 0)
            rc = json_put_name(b, work.p);
        if (rc == 0)
            rc = buf_putc(b, '\n');
        buf_free(&work);
        TRY(rc);
    }
    for (const struct node *n = root->child; n; n = n->next) {
        if (span_is(n->key, "variants") || span_is(n->key, "stats") || span_is(n->key, "report"))
            continue;
        TRY(json_put_name(b, n->key.p));
        TRY(buf_puts(b, ": "));
        TRY(node_put_json(b, n, " "));
        TRY(buf_putc(b, '\n'));
    }
    return 0;
}

/* Weights of six places; an ablation takes them as shares of their sum. */
static int put_variants(const struct mix_finding *f, struct buf *b)
{
    const int k = f->points.sources;

    TRY(buf_puts(b, "variants:\n"));
    for (int i = 0; i < f->c->propose; i++) {
        const double *w = &f->proposal[i * k];

        TRY(i ? buf_printf(b, "  mixture-%d: {weights: {", i) : buf_puts(b, "  best: {weights: {"));
        for (int s = 0; s < k; s++) {
            TRY(s ? buf_puts(b, ", ") : 0);
            TRY(json_put_name(b, f->points.source[s]));
            TRY(buf_printf(b, ": %.6f", w[s]));
        }
        TRY(buf_puts(b, "}}\n"));
    }
    return 0;
}

int mix_put_proposal(const struct mix_finding *f, struct buf *b, struct err *e)
{
    struct arena mem = {0};
    struct node *root = NULL;
    int rc = f->c->of ? node_load_yaml(&mem, f->c->of, &root, e) : 0;

    if (rc == 0 && root && root->type != NODE_MAP)
        rc = err_set(e, ERR_FORMAT, "'%s' is no ablation: a map of settings", f->c->of);
    if (rc == 0 && ((root && put_settings(root, f->c->of, b) < 0) || put_variants(f, b) < 0))
        rc = err_set(e, ERR_NOMEM, "out of memory for mixtures");
    arena_free(&mem);
    return rc;
}
