/* Fits of losses beside scipy's of the same points (tests/record/fits.py), and what they promise: the same for any threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/node.h"
#include "pipelines/fit/fit_mixture.h"
#include "pipelines/fit/fit_scale.h"

static const char scale_file[] = "tests/data/fit/scale.jsonl", mixture_file[] = "tests/data/fit/mixtures.jsonl";
static struct arena arena;
static struct node *answers;
static struct mix_points mixtures;
static struct scale_points sizes;
static struct err e;

static int set_up(void **state)
{
    const char *const m = mixture_file, *const s = scale_file;

    (void)state;
    return node_load_json(&arena, "tests/data/fit/answers.json", &answers, &e) | mix_points_read(&mixtures, &m, 1, &e) |
           scale_points_read(&sizes, &s, 1, &e);
}

static int tear_down(void **state)
{
    (void)state;
    mix_points_free(&mixtures);
    scale_points_free(&sizes);
    arena_free(&arena);
    return 0;
}

static void near_to_recorded(double got, double want, double part)
{
    if (!(fabs(got - want) <= part * fmax(fabs(want), 1e-300)))
        fail_msg("%.12g, but %.12g is recorded", got, want);
}

static double number_of(const struct node *n, const char *key)
{
    return node_num(n, key, NAN);
}

/* The numbers of a list; how many. */
static int list_of(const struct node *n, double *to)
{
    int i = 0;

    for (const struct node *c = n->child; c; c = c->next)
        to[i++] = c->num;
    return i;
}

static void solves_least_squares(void **state)
{
    /* a line through (0, 1), (1, 3), (2, 4), (3, 4): 1.5 + x */
    double a[] = {1, 0, 1, 1, 1, 2, 1, 3}, b[] = {1, 3, 4, 4}, x[2], twice[] = {1, 2, 2, 4, 3, 6}, c[] = {1, 2, 3};

    (void)state;
    assert_int_equal(fit_least_squares(a, b, 4, 2, x), 2);
    near_to_recorded(x[0], 1.5, 1e-14);
    near_to_recorded(x[1], 1, 1e-14);
    assert_int_equal(fit_least_squares(twice, c, 3, 2, x), 1);
}

/* Rosenbrock's function of six numbers, least at 1. */
static double rosenbrock(const void *arg, const double *x, double *g)
{
    double sum = 0;

    (void)arg;
    memset(g, 0, 6 * sizeof *g);
    for (int i = 0; i < 5; i++) {
        double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];

        sum += 100 * a * a + b * b;
        g[i] += -400 * a * x[i] - 2 * b;
        g[i + 1] += 200 * a;
    }
    return sum;
}

static void finds_the_end_of_a_valley(void **state)
{
    double x[6] = {-1.2, 1, -1.2, 1, .5, 1}, value;

    (void)state;
    value = fit_descend(rosenbrock, NULL, 6, x, 1000);
    assert_true(value < 1e-12);
    assert_true(fit_polish(rosenbrock, NULL, 6, x) <= value);
    for (int i = 0; i < 6; i++)
        near_to_recorded(x[i], 1, 1e-12);
}

static void orders_as_scipy(void **state)
{
    const struct node *n = node_get(answers, "numbers");
    double x[32], y[32], ranks[64];
    int k = list_of(node_get(n, "x"), x);

    (void)state;
    assert_int_equal(list_of(node_get(n, "y"), y), k);
    near_to_recorded(fit_rank_correlation(x, y, k, ranks), number_of(n, "correlation"), 1e-12);
    near_to_recorded(fit_quantile(y, k, .07), number_of(n, "quantile"), 1e-12);
}

static void weights_of_a_bootstrap(void **state)
{
    double w[50], again[50], sum = 0;

    (void)state;
    fit_resample(7, 3, 50, w);
    fit_resample(7, 3, 50, again);
    assert_memory_equal(w, again, sizeof w);
    for (int i = 0; i < 50; i++) {
        assert_true(w[i] > 0);
        sum += w[i];
    }
    near_to_recorded(sum, 50, 1e-12);
    fit_resample(7, 4, 50, again);
    assert_memory_not_equal(w, again, sizeof w);
}

static void sizes_as_scipy(void **state)
{
    const struct node *n = node_get(answers, "scale");
    const struct scale_conf c = {1e-3, 1, 20, 2};
    struct scale_fit f;
    double params, tokens;

    (void)state;
    assert_int_equal(scale_analyse(&f, &sizes, &c, &e), 0);
    near_to_recorded(f.objective, number_of(n, "objective"), 1e-9);
    near_to_recorded(f.law.e, number_of(n, "e"), 1e-6);
    near_to_recorded(f.law.a, number_of(n, "a"), 1e-6);
    near_to_recorded(f.law.alpha, number_of(n, "alpha"), 1e-6);
    near_to_recorded(f.law.b, number_of(n, "b"), 1e-6);
    near_to_recorded(f.law.beta, number_of(n, "beta"), 1e-6);
    assert_true(scale_optimum(&f.law, number_of(n, "flops"), &params, &tokens));
    near_to_recorded(params, number_of(n, "params"), 1e-6);
    near_to_recorded(params * tokens * 6, number_of(n, "flops"), 1e-12);
    near_to_recorded(scale_loss(&f.law, params, tokens), number_of(n, "loss"), 1e-9);
    assert_true(f.held);
    scale_fit_free(&f);
}

/* Points of a law that all have the same tokens: of these it is found again, and of others nothing. */
static void sizes_of_one_number_of_tokens(void **state)
{
    double params[] = {1e4, 2e4, 4e4, 7e4, 1e5}, tokens[] = {2e6, 2e6, 2e6, 2e6, 2e6}, loss[5];
    struct scale_points p = {.n = 5, .params = params, .tokens = tokens, .loss = loss};
    const struct scale_conf c = {1e-3, 1, 20, 2};
    struct scale_fit f;

    (void)state;
    for (int i = 0; i < 5; i++)
        loss[i] = 2.5 + 20 / pow(params[i], .3);
    assert_int_equal(scale_analyse(&f, &p, &c, &e), 0);
    assert_int_equal(f.numbers, SCALE_ONE_NUMBERS);
    near_to_recorded(exp(f.law.e), 2.5, 1e-6);
    near_to_recorded(exp(f.law.a), 20, 1e-5);
    near_to_recorded(f.law.alpha, .3, 1e-6);
    near_to_recorded(scale_loss(&f.law, 8e5, 2e6), 2.5 + 20 / pow(8e5, .3), 1e-6);
    assert_false(scale_optimum(&f.law, 1e12, &params[0], &tokens[0]));
    assert_true(f.held);
    near_to_recorded(scale_loss(&f.without, 1e5, 2e6), loss[4], 1e-6);
    scale_fit_free(&f);
    p.n = 3;
    assert_int_equal(scale_analyse(&f, &p, &c, &e), ERR_FORMAT);
    scale_fit_free(&f);
}

/* The parameters of a law, of which scipy's is one of several that are the same. */
static void mixtures_as_scipy(void **state)
{
    static const enum mix_form form[] = {MIX_LINEAR, MIX_EXPONENTIAL, MIX_POWER};
    const struct mix_fit_conf c = {1, 0, 2, MIX_FORMS};
    struct mix_analysis a;

    (void)state;
    assert_int_equal(mix_analyse(&a, &mixtures, &c, &e), 0);
    for (int t = 0; t < 3; t++) {
        const struct node *n = node_get(node_get(answers, "mixtures"), mix_form_name(form[t]));
        double p[FIT_PARAMS];
        int k = list_of(node_get(n, "p"), p);

        assert_string_equal(mixtures.target[t], ((const char *[]){"first", "second", "third"})[t]);
        assert_int_equal(k, mix_form_params(form[t], 3));
        for (int i = 0; i < k; i++)
            near_to_recorded(a.target[t].p[form[t]][i], p[i], 1e-6);
        near_to_recorded(a.target[t].error[form[t]], number_of(n, "error"), 1e-6);
        near_to_recorded(a.target[t].correlation[form[t]], number_of(n, "correlation"), 1e-12);
    }
    mix_analysis_free(&a);
}

static void best_weights_as_scipy(void **state)
{
    static const char *const what[] = {"best", "bounded"};
    const double most[2][3] = {{1, 1, 1}, {.3, 1, .4}};
    struct mix_analysis a;
    struct mix_goal g = {.share = {1. / 3, 1. / 3, 1. / 3}};
    const struct mix_fit_conf c = {1, 0, 2, MIX_FORMS};

    (void)state;
    assert_int_equal(mix_analyse(&a, &mixtures, &c, &e), 0);
    for (int t = 0; t < 3; t++) /* each by its law, as recorded */
        a.target[t].form = (enum mix_form)t;
    for (int k = 0; k < 2; k++) {
        const struct node *n = node_get(node_get(answers, "mixtures"), what[k]);
        double w[3], want[3];

        memcpy(g.most, most[k], sizeof most[k]);
        mix_best(&a, &g, -1, w);
        list_of(node_get(n, "weights"), want);
        near_to_recorded(mix_goal_loss(&a, &g, -1, w), number_of(n, "loss"), 1e-9);
        for (int i = 0; i < 3; i++)
            assert_true(fabs(w[i] - want[i]) < 1e-4);
    }
    mix_analysis_free(&a);
}

/* Derivatives by parameters and by weights beside differences. */
static void slopes_are_those_of_differences(void **state)
{
    const double w[3] = {.5, .2, .3}, h = 1e-6;
    const double start[MIX_FORMS][5] = {{1, .5, .2}, {.1, .5, -.3, .2}, {.1, -.4, .3, -2, .5}};

    (void)state;
    for (int f = 0; f < MIX_FORMS; f++) {
        double p[5], v[3], d[5], up, down;

        memcpy(p, start[f], sizeof p);
        mix_log_loss((enum mix_form)f, p, 3, w, d);
        for (int i = 0; i < 3 + f; i++) {
            p[i] = start[f][i] + h;
            up = mix_log_loss((enum mix_form)f, p, 3, w, NULL);
            p[i] = start[f][i] - h;
            down = mix_log_loss((enum mix_form)f, p, 3, w, NULL);
            p[i] = start[f][i];
            near_to_recorded((up - down) / (2 * h), d[i], 1e-6);
        }
        mix_loss((enum mix_form)f, p, 3, w, d);
        for (int i = 0; i < 3; i++) {
            memcpy(v, w, sizeof v);
            v[i] += h;
            up = exp(mix_log_loss((enum mix_form)f, p, 3, v, NULL));
            v[i] -= 2 * h;
            down = exp(mix_log_loss((enum mix_form)f, p, 3, v, NULL));
            near_to_recorded((up - down) / (2 * h), d[i], 1e-6);
        }
    }
}

static void the_same_for_any_threads(void **state)
{
    struct mix_analysis a, b;
    struct scale_fit f, g;
    struct mix_fit_conf m = {5, 8, 1, MIX_FORMS};
    struct scale_conf s = {1e-3, 5, 8, 1};

    (void)state;
    assert_int_equal(mix_analyse(&a, &mixtures, &m, &e) | scale_analyse(&f, &sizes, &s, &e), 0);
    m.threads = s.threads = 3;
    assert_int_equal(mix_analyse(&b, &mixtures, &m, &e) | scale_analyse(&g, &sizes, &s, &e), 0);
    assert_memory_equal(a.p, b.p, sizeof *a.p * 8 * 3 * FIT_PARAMS);
    assert_memory_equal(a.noise, b.noise, sizeof *a.noise * 8 * 3);
    assert_memory_equal(&f.law, &g.law, sizeof f.law);
    assert_memory_equal(f.draw, g.draw, sizeof *f.draw * 8);
    mix_analysis_free(&a);
    mix_analysis_free(&b);
    scale_fit_free(&f);
    scale_fit_free(&g);
}

/* What is proposed is within bounds, sums to 1, and no mixture comes twice. */
static void proposals_fill_the_space(void **state)
{
    struct mix_analysis a;
    struct mix_goal g = {.share = {1}, .least = {0, .1, 0}, .most = {.5, 1, .6}};
    const struct mix_fit_conf c = {1, 0, 1, MIX_LINEAR};
    double w[8 * 3];

    (void)state;
    assert_int_equal(mix_analyse(&a, &mixtures, &c, &e), 0);
    assert_int_equal(mix_propose(&a, &g, 11, 8, w, &e), 0);
    for (int i = 0; i < 8; i++) {
        double sum = 0;

        for (int k = 0; k < 3; k++) {
            assert_true(w[3 * i + k] >= g.least[k] - 1e-12 && w[3 * i + k] <= g.most[k] + 1e-12);
            sum += w[3 * i + k];
        }
        near_to_recorded(sum, 1, 1e-12);
        for (int j = 0; j < i; j++)
            assert_true(fabs(w[3 * i] - w[3 * j]) + fabs(w[3 * i + 1] - w[3 * j + 1]) > .01);
    }
    mix_analysis_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves_least_squares),
        cmocka_unit_test(finds_the_end_of_a_valley),
        cmocka_unit_test(orders_as_scipy),
        cmocka_unit_test(weights_of_a_bootstrap),
        cmocka_unit_test(slopes_are_those_of_differences),
        cmocka_unit_test(sizes_as_scipy),
        cmocka_unit_test(sizes_of_one_number_of_tokens),
        cmocka_unit_test(mixtures_as_scipy),
        cmocka_unit_test(best_weights_as_scipy),
        cmocka_unit_test(the_same_for_any_threads),
        cmocka_unit_test(proposals_fill_the_space),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
