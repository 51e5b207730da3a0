/* Rankings of variants: quantiles and paired intervals as scipy has them, and who is stopped when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "base/node.h"
#include "pipelines/ablation/ablation.h"
#include "pipelines/ablation/ablation_rank.h"

static const char recorded[] = "tests/data/ablation/ranking.json";

static void close_to(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fmax(1e-3, fabs(want))))
        fail_msg("%.17g, not %.17g", got, want);
}

static const struct node *at(const struct node *list, int i)
{
    const struct node *n = list->child;

    for (; i > 0 && n; i--)
        n = n->next;
    assert_non_null(n);
    return n;
}

static struct node *load(struct arena *a)
{
    struct node *root;
    struct err e;

    if (node_load_json(a, recorded, &root, &e) < 0)
        fail_msg("%s", e.msg);
    return root;
}

static void quantiles_are_scipys(void **state)
{
    struct arena a = {0};
    int n = 0;

    (void)state;
    for (const struct node *q = node_get(load(&a), "quantiles")->child; q; q = q->next, n++)
        close_to(student_quantile(at(q, 0)->num, (int)at(q, 1)->integer), at(q, 2)->num, 1e-9);
    assert_int_equal(n, 72);
    arena_free(&a);
}

/* The scores of a case, as lower is better; returns how many seeds there are. */
static int read_scores(const struct node *list, double *score)
{
    int n = 0;

    for (const struct node *row = list->child; row; row = row->next)
        for (const struct node *x = row->child; x; x = x->next)
            score[n++] = x->type == NODE_NULL ? NAN : x->num;
    return n / (int)list->count;
}

/* Each pair is recorded once, a before b; the ranking has it the better one first, and how much lower that is. */
static void compare_pairs(const struct ranking *r, const struct node *want)
{
    int found = 0;

    for (int i = 0; i < r->n_pairs; i++)
        for (const struct node *w = want->child; w; w = w->next) {
            const struct ranked_pair *p = &r->pair[i];
            bool same = at(w, 0)->integer == p->a && at(w, 1)->integer == p->b;

            if (!same && (at(w, 0)->integer != p->b || at(w, 1)->integer != p->a))
                continue;
            found++;
            close_to(p->gain.mean, same ? -at(w, 2)->num : at(w, 2)->num, 1e-9);
            close_to(p->gain.half, at(w, 3)->num, 1e-9);
            assert_int_equal(p->decided != 0, at(w, 4)->integer);
            assert_true(p->decided == 0 || (p->decided > 0) == (p->gain.mean > 0));
        }
    assert_int_equal(found, r->n_pairs);
}

static void intervals_are_scipys(void **state)
{
    struct arena a = {0};
    int n = 0, decided = 0;

    (void)state;
    for (const struct node *c = node_get(load(&a), "cases")->child; c; c = c->next, n++) {
        double score[64];
        int upto[8], variants = (int)node_get(c, "scores")->count, seeds = read_scores(node_get(c, "scores"), score);
        const struct rank_scores x = {.score = score, .variants = variants, .seeds = seeds, .stride = seeds};
        struct ranking r;
        struct err e;

        rank_schedule(&x, upto);
        assert_int_equal(rank_variants(&r, &x, upto, node_num(c, "alpha", 0), &e), 0);
        assert_int_equal(r.comparisons, node_int(c, "comparisons", 0));
        for (int v = 0; v < variants; v++) {
            close_to(r.score[v].mean, at(at(node_get(c, "variants"), v), 0)->num, 1e-12);
            close_to(r.score[v].half, at(at(node_get(c, "variants"), v), 1)->num, 1e-9);
        }
        for (int i = 1; i < variants; i++)
            assert_true(r.score[r.order[i - 1]].mean <= r.score[r.order[i]].mean);
        compare_pairs(&r, node_get(c, "pairs"));
        for (int i = 0; i < r.n_pairs; i++)
            decided += r.pair[i].decided != 0;
        ranking_free(&r);
    }
    assert_int_equal(n, 4);
    assert_true(decided > 0);
    arena_free(&a);
}

/* By hand: differences 1, 2, 3 have mean 2, a standard error of 1 / sqrt 3, and t(.975, 2) is 4.302653. */
static void an_interval_by_hand(void **state)
{
    const double score[] = {1, 2, 3, 2, 4, 6}, one[] = {5, NAN};
    int upto[] = {3, 3};
    struct rank_scores x = {.score = score, .variants = 2, .seeds = 3, .stride = 3};
    struct rank_interval i = interval_of(one, 2, .05);
    struct ranking r;
    struct err e;

    (void)state;
    assert_int_equal(rank_variants(&r, &x, upto, .05, &e), 0);
    assert_int_equal(r.order[0], 0);
    close_to(r.pair[0].gain.mean, 2, 1e-12);
    close_to(r.pair[0].gain.half, 4.302652729911275 / sqrt(3), 1e-10);
    assert_int_equal(r.pair[0].decided, 0); /* 2 is less than 2.48 */
    ranking_free(&r);
    x.higher = true;
    assert_int_equal(rank_variants(&r, &x, upto, .1, &e), 0);
    assert_int_equal(r.order[0], 1);
    close_to(r.pair[0].gain.half, 2.919985580355516 / sqrt(3), 1e-10);
    assert_int_equal(r.pair[0].decided, 1); /* and more than 1.69 */
    ranking_free(&r);
    assert_true(i.n == 1 && i.mean == 5 && isinf(i.half));
}

/* The ones whose scores are the same in all seeds differ by nothing, and that is no decision. */
static void equals_are_not_decided(void **state)
{
    const double score[] = {1, 2, 1, 2};
    int upto[] = {2, 2};
    const struct rank_scores x = {.score = score, .variants = 2, .seeds = 2, .stride = 2};
    struct ranking r;
    struct err e;

    (void)state;
    assert_int_equal(rank_variants(&r, &x, upto, .05, &e), 0);
    assert_int_equal(r.order[0], 0);
    assert_int_equal(r.pair[0].decided, 0);
    ranking_free(&r);
}

/* Six variants, five seeds: 6, 6, then 3, 3, then 2. */
static void halving_stops_the_worse_half(void **state)
{
    double score[30];
    int upto[6];
    struct rank_scores x = {.score = score, .variants = 6, .seeds = 5, .stride = 5, .halving = true};
    const int active[] = {6, 6, 3, 3, 2}, want[] = {4, 2, 5, 2, 5, 2}; /* 0 is good in the first two alone; 1, 3, 5 are bad */
    struct ranking r;
    struct err e;

    (void)state;
    for (int s = 0; s < 5; s++)
        assert_int_equal(rank_active(6, s, true), active[s]);
    for (int i = 0; i < 30; i++)
        score[i] = NAN;
    assert_false(rank_schedule(&x, upto));
    for (int v = 0; v < 6; v++)
        assert_int_equal(upto[v], 2); /* more is not known yet */
    for (int v = 0; v < 6; v++)
        score[5 * v] = score[5 * v + 1] = v % 2 ? 9 + v : v + 1;
    assert_false(rank_schedule(&x, upto));
    assert_int_equal(upto[0], 4);
    assert_int_equal(upto[1], 2);
    for (int v = 0; v < 6; v += 2)
        score[5 * v + 2] = score[5 * v + 3] = v == 0 ? 20 : 2;
    assert_true(rank_schedule(&x, upto));
    for (int v = 0; v < 6; v++)
        assert_int_equal(upto[v], want[v]);
    score[5 * 2 + 4] = score[5 * 4 + 4] = 2;
    assert_int_equal(rank_variants(&r, &x, upto, .05, &e), 0);
    assert_int_equal(r.comparisons, 15 * 3); /* after two rounds, and at the end */
    assert_int_equal(r.order[0], 2);
    assert_int_equal(r.order[2], 0); /* behind those that went on, whatever its mean */
    ranking_free(&r);
}

static void durations_have_units(void **state)
{
    (void)state;
    assert_true(ablation_duration("90") == 90 && ablation_duration("1.5h") == 5400 && ablation_duration("2d") == 172800);
    assert_true(ablation_duration("") < 0 && ablation_duration("h") < 0 && ablation_duration("2w") < 0);
    assert_true(ablation_duration("-1s") < 0);
    assert_true(ablation_duration("nan") < 0 && ablation_duration("1hh") < 0 && ablation_duration("1e99") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_scipys), cmocka_unit_test(intervals_are_scipys), cmocka_unit_test(an_interval_by_hand),
        cmocka_unit_test(equals_are_not_decided), cmocka_unit_test(halving_stops_the_worse_half),
        cmocka_unit_test(durations_have_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
