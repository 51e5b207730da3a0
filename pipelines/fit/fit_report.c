#include "pipelines/fit/fit_report_put.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOUND_ERROR 1e-9 /* of a sum of bounds */

static int fit_no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the report");
}

/* ---- options ---- */

static int name_at(const char *const *list, int n, struct span name)
{
    int i = 0;

    while (i < n && !span_is(name, list[i]))
        i++;
    return i < n ? i : -1;
}

/* NAME=X of an option, in a list of names: which, and *x.  Without "=X" it is 1, where that may be. */
static int read_pair(const char *option, struct span s, const char *const *list, int n, bool bare, double *x, struct err *e)
{
    const char *at = s.n ? memrchr(s.p, '=', s.n) : NULL;
    char number[64] = "1", *end = number;
    struct span name = s;
    int i = bare ? name_at(list, n, s) : -1;

    *x = 1;
    if (i >= 0)
        return i;
    if (!at)
        return err_set(e, ERR_ARG, bare ? "--%s: there is no '%.*s'" : "--%s '%.*s': NAME=X is wanted", option, (int)s.n, s.p);
    name.n = (size_t)(at - s.p);
    snprintf(number, sizeof number, "%.*s", (int)(s.n - name.n - 1), at + 1);
    *x = strtod(number, &end);
    if (end == number || *end || !(*x >= 0 && *x <= 1e30))
        return err_set(e, ERR_ARG, "--%s '%.*s': '%s' is no number from 0", option, (int)s.n, s.p, number);
    i = name_at(list, n, name);
    return i >= 0 ? i : err_set(e, ERR_ARG, "--%s: there is no '%.*s'", option, (int)name.n, name.p);
}

static int read_targets(struct mix_finding *f, struct err *e)
{
    const struct opt_list *l = &f->c->target;
    const struct mix_points *p = &f->points;
    double sum = 0;

    for (int i = 0; i < p->targets; i++)
        f->goal.share[i] = l->n ? 0 : 1;
    for (int i = 0; i < l->n; i++) {
        double x;
        int t = read_pair("target", span_of(l->v[i]), p->target, p->targets, true, &x, e);

        TRY(t);
        f->goal.share[t] = x;
    }
    for (int i = 0; i < p->targets; i++)
        sum += f->goal.share[i];
    for (int i = 0; i < p->targets && sum > 0; i++)
        f->goal.share[i] /= sum;
    return sum > 0 ? 0 : err_set(e, ERR_ARG, "--target: no target's loss counts");
}

/* Bounds of the weights, and that some weights meet them. */
static int read_bounds(struct mix_finding *f, struct err *e)
{
    const struct mix_report_conf *c = f->c;
    const struct mix_points *p = &f->points;
    struct mix_goal *g = &f->goal;
    double least = 0, most = 0, x;
    int i;

    for (i = 0; i < p->sources; i++)
        g->most[i] = 1;
    if (c->have.n && !(c->tokens > 0))
        return err_set(e, ERR_ARG, "--have needs --tokens: of how many the run is");
    for (int k = 0; k < c->least.n; k++) {
        TRY(i = read_pair("least", span_of(c->least.v[k]), p->source, p->sources, false, &x, e));
        g->least[i] = x;
    }
    for (int k = 0; k < c->most.n; k++) {
        TRY(i = read_pair("most", span_of(c->most.v[k]), p->source, p->sources, false, &x, e));
        g->most[i] = fmin(g->most[i], x);
    }
    for (int k = 0; k < c->have.n; k++) {
        TRY(i = read_pair("have", span_of(c->have.v[k]), p->source, p->sources, false, &x, e));
        g->most[i] = fmin(g->most[i], c->epochs * x / c->tokens);
    }
    for (i = 0; i < p->sources; i++) {
        if (g->least[i] > g->most[i])
            return err_set(e, ERR_ARG, "'%.100s' is to have at least %g, and at most %g", p->source[i], g->least[i], g->most[i]);
        least += g->least[i];
        most += g->most[i];
    }
    if (least > 1 + BOUND_ERROR || most < 1 - BOUND_ERROR)
        return err_set(e, ERR_ARG, "the weights are to sum to 1, but %s bounds sum to %g", least > 1 ? "the lower" : "the upper",
                       least > 1 ? least : most);
    return 0;
}

/* SOURCE=X,SOURCE=X */
static int read_at(struct mix_finding *f, struct mix_row *row, const char *text, struct err *e)
{
    const struct mix_points *p = &f->points;
    double sum = 0, x;

    row->name = text;
    for (const char *s = text; s; s = *s ? s + 1 : NULL) {
        struct span one = {s, strcspn(s, ",")};
        int i = read_pair("at", one, p->source, p->sources, false, &x, e);

        TRY(i);
        row->w[i] += x;
        sum += x;
        s += one.n;
        if (!*s)
            break;
    }
    if (fabs(sum - 1) > 1e-6)
        return err_set(e, ERR_ARG, "--at '%.100s': the weights sum to %.9g, not to 1", text, sum);
    return 0;
}

/* ---- ranges ---- */

/* The range of numbers x, of fits, and of y, of runs: one of each for each draw. */
static struct fit_range range_of(const struct mix_finding *f, double value, double *x, double *y)
{
    struct fit_range r = {.value = value};

    fit_range_of(x, f->a.draws, f->c->interval, &r.low, &r.high);
    fit_range_of(y, f->a.draws, f->c->interval, &r.run_low, &r.run_high);
    return r;
}

/* A target's loss at w; x: room for two numbers a draw. */
static struct fit_range predict_range(const struct mix_finding *f, int target, const double *w, double *x)
{
    double *y = x + f->a.draws;

    for (int d = 0; d < f->a.draws; d++) {
        double z = mix_predict(&f->a, target, d, w);

        x[d] = exp(z);
        y[d] = exp(z + f->a.noise[d * f->points.targets + target]);
    }
    return range_of(f, exp(mix_predict(&f->a, target, -1, w)), x, y);
}

static struct fit_range goal_range(const struct mix_finding *f, const double *w, double *x)
{
    const int targets = f->points.targets;
    double *y = x + f->a.draws;

    for (int d = 0; d < f->a.draws; d++) {
        x[d] = y[d] = 0;
        for (int t = 0; t < targets; t++) {
            double z = f->goal.share[t] > 0 ? mix_predict(&f->a, t, d, w) : 0, share = f->goal.share[t];

            x[d] += share * exp(z);
            y[d] += share * exp(z + f->a.noise[d * targets + t]);
        }
    }
    return range_of(f, mix_goal_loss(&f->a, &f->goal, -1, w), x, y);
}

static int predict_rows(struct mix_finding *f, struct err *e)
{
    double *x = malloc(sizeof *x * 2 * (size_t)f->a.draws);

    if (!x)
        return fit_no_memory(e);
    for (int i = 0; i < f->rows; i++) {
        f->row[i].goal = goal_range(f, f->row[i].w, x);
        for (int t = 0; t < f->points.targets; t++)
            f->row[i].loss[t] = predict_range(f, t, f->row[i].w, x);
    }
    free(x);
    return 0;
}

/* ---- the best weights ---- */

struct best_work {
    struct mix_finding *f;
    double *w; /* (draws, sources) */
};

static void best_of_draw(void *arg, int draw)
{
    struct best_work *b = arg;

    mix_best(&b->f->a, &b->f->goal, draw, &b->w[draw * b->f->points.sources]);
}

static int find_best(struct mix_finding *f, struct err *e)
{
    const int k = f->points.sources, draws = f->a.draws;
    struct best_work b = {f, malloc(sizeof(double) * (size_t)draws * (size_t)(k + 1))};
    double *one;

    if (!b.w)
        return fit_no_memory(e);
    one = b.w + (size_t)draws * (size_t)k;
    f->row[0].name = "best";
    mix_best(&f->a, &f->goal, -1, f->row[0].w);
    fit_parallel(f->c->threads, draws, best_of_draw, &b);
    for (int i = 0; i < k; i++) {
        for (int d = 0; d < draws; d++)
            one[d] = b.w[d * k + i];
        fit_range_of(one, draws, f->c->interval, &f->low[i], &f->high[i]);
    }
    free(b.w);
    return 0;
}

/* ---- points that were not fitted ---- */

/* Their place in the fit's lists: they may name fewer sources, and targets in another order. */
static int match_names(const struct mix_finding *f, int *source, int *target, struct err *e)
{
    const struct mix_points *p = &f->points, *q = &f->tests;

    for (int i = 0; i < q->sources; i++) {
        source[i] = name_at(p->source, p->sources, span_of(q->source[i]));
        if (source[i] < 0)
            return err_set(e, ERR_FORMAT, "'%s': the fit has no source '%.100s'", f->c->test.v[0], q->source[i]);
    }
    for (int i = 0; i < p->targets; i++) {
        target[i] = name_at(q->target, q->targets, span_of(p->target[i]));
        if (target[i] < 0)
            return err_set(e, ERR_FORMAT, "'%s': no losses of '%.100s'", f->c->test.v[0], p->target[i]);
    }
    return 0;
}

/* A point's loss of a target, or of the goal (-1); column: where each target stands. */
static double measured_loss(const struct mix_finding *f, int point, int target, const int *column)
{
    const double *loss = f->tests.loss + point * f->tests.targets;
    double sum = 0;

    if (target >= 0)
        return loss[column[target]];
    for (int t = 0; t < f->points.targets; t++)
        sum += f->goal.share[t] * loss[column[t]];
    return sum;
}

/* What was measured of a target or the goal (-1) beside what is predicted; room: four numbers a point, and two a draw. */
static void hold_against(struct mix_finding *f, int target, const int *column, const double *w, double *room)
{
    struct mix_test *t = target >= 0 ? &f->test[target] : &f->goal_test;
    const int n = f->tests.n;
    double *predicted = room, *measured = room + n, *ranks = room + 2 * n, *x = room + 4 * n, sum = 0;

    for (int i = 0; i < n; i++) {
        const double *at = &w[i * f->points.sources], loss = measured_loss(f, i, target, column);
        struct fit_range r = target >= 0 ? predict_range(f, target, at, x) : goal_range(f, at, x);

        predicted[i] = log(r.value);
        measured[i] = log(loss);
        t->inside += loss >= r.run_low && loss <= r.run_high;
        sum += (predicted[i] - measured[i]) * (predicted[i] - measured[i]);
    }
    t->error = sqrt(sum / n);
    t->correlation = fit_rank_correlation(predicted, measured, n, ranks);
}

static int run_tests(struct mix_finding *f, struct err *e)
{
    const int k = f->points.sources;
    int source[FIT_SOURCES] = {0}, target[FIT_TARGETS];
    double *w, *room;

    if (!f->c->test.n)
        return 0;
    TRY(mix_points_read(&f->tests, f->c->test.v, f->c->test.n, e));
    TRY(match_names(f, source, target, e));
    w = calloc((size_t)f->tests.n * (size_t)(k + 4) + 2 * (size_t)f->a.draws, sizeof *w);
    if (!w)
        return fit_no_memory(e);
    room = w + (size_t)f->tests.n * (size_t)k;
    for (int i = 0; i < f->tests.n; i++)
        for (int s = 0; s < f->tests.sources; s++)
            w[i * k + source[s]] = f->tests.weight[i * f->tests.sources + s];
    for (int t = -1; t < f->points.targets; t++)
        hold_against(f, t, target, w, room);
    free(w);
    return 0;
}

/* ---- the whole ---- */

static int propose(struct mix_finding *f, struct err *e)
{
    int n = (int)f->c->propose;

    f->proposal = calloc((size_t)n * (size_t)f->points.sources + 1, sizeof *f->proposal);
    if (!f->proposal)
        return fit_no_memory(e);
    return n ? mix_propose(&f->a, &f->goal, (uint64_t)f->c->seed, n, f->proposal, e) : 0;
}

static int find_all(struct mix_finding *f, const char *const *files, int n, struct err *e)
{
    const struct mix_report_conf *c = f->c;
    const struct mix_fit_conf how = {(uint64_t)c->seed, (int)c->draws, c->threads, c->form ? c->form - 1 : MIX_FORMS};

    TRY(mix_points_read(&f->points, files, n, e));
    TRY(read_targets(f, e));
    TRY(read_bounds(f, e));
    f->rows = 1 + c->at.n;
    f->row = calloc((size_t)f->rows, sizeof *f->row);
    if (!f->row)
        return fit_no_memory(e);
    for (int i = 0; i < c->at.n; i++)
        TRY(read_at(f, &f->row[1 + i], c->at.v[i], e));
    if (mix_analyse(&f->a, &f->points, &how, e) < 0)
        return e->code == ERR_FORMAT ? err_wrap(e, "'%s'", files[0]) : e->code;
    TRY(find_best(f, e));
    TRY(predict_rows(f, e));
    TRY(run_tests(f, e));
    return propose(f, e);
}

int mix_report(const struct mix_report_conf *c, const char *const *files, int n, struct mix_report_text *t, struct err *e)
{
    struct mix_finding *f = calloc(1, sizeof *f);
    int rc;

    *t = (struct mix_report_text){0};
    if (!f)
        return fit_no_memory(e);
    f->c = c;
    rc = find_all(f, files, n, e);
    if (rc == 0 && (mix_put_table(f, &t->table) < 0 || mix_put_json(f, &t->json) < 0))
        rc = fit_no_memory(e);
    if (rc == 0 && c->propose)
        rc = mix_put_proposal(f, &t->proposal, e);
    mix_analysis_free(&f->a);
    mix_points_free(&f->points);
    mix_points_free(&f->tests);
    free(f->row);
    free(f->proposal);
    free(f);
    return rc;
}
