/* Routing to experts, against its definition in double. */
#include "tests/kernels.h"

static const int64_t shapes[][4] = {{1, 1, 1, 5}, {7, 3, 3, 16}, {60, 8, 2, 33}, {40, 70, 6, 100}};

/* Whether expert i comes before j by their logits. */
static bool before(const double *x, int64_t i, int64_t j)
{
    return x[i] > x[j] || (x[i] == x[j] && i < j);
}

static double by_softmax(const double *x, int64_t experts, const int32_t *chosen, int64_t k, int64_t i, bool pre)
{
    double sum = 0;

    for (int64_t j = 0; j < (pre ? experts : k); j++)
        sum += exp(x[pre ? j : chosen[j]] - x[i]);
    return 1 / sum;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The weight of expert i, one of the chosen. */
static double weight_of(const struct route *p, const double *x, const int32_t *chosen, int64_t i)
{
    double scale = p->scale != 0 ? (double)p->scale : 1, sum = 0;

    if (p->score == ROUTE_SOFTMAX)
        return scale * by_softmax(x, p->experts, chosen, p->k, i, p->pre);
    for (int64_t j = 0; j < p->k; j++)
        sum += p->k > 1 ? sigmoid(x[chosen[j]]) : 1;
    return scale * sigmoid(x[i]) / sum;
}

/* What a row of logits adds to the loss of which route_bwd gives the gradient: the weights times dw, the probabilities times
 * balance, and half of z times the square of the log-sum-exp. */
static double loss_of(const struct route *p, const double *x, const int32_t *chosen, const double *dw, const double *balance,
                      double z)
{
    double sum = 0, lse = 0, loss = 0;

    for (int64_t i = 0; i < p->experts; i++) {
        lse += exp(x[i]);
        sum += p->score == ROUTE_SIGMOID ? sigmoid(x[i]) : exp(x[i]);
    }
    for (int64_t i = 0; i < p->experts; i++)
        loss += balance[i] * (p->score == ROUTE_SIGMOID ? sigmoid(x[i]) : exp(x[i])) / sum;
    for (int64_t j = 0; j < p->k; j++)
        loss += dw[j] * weight_of(p, x, chosen, chosen[j]);
    return loss + z / 2 * log(lse) * log(lse);
}

/* By central differences. */
static void gradient(const struct route *p, double *x, const int32_t *chosen, const double *dw, const double *balance, double z,
                     double *d)
{
    for (int64_t i = 0; i < p->experts; i++) {
        double was = x[i], loss[2];

        for (int side = 0; side < 2; side++) {
            x[i] = was + (side ? 1e-5 : -1e-5);
            loss[side] = loss_of(p, x, chosen, dw, balance, z);
        }
        x[i] = was;
        d[i] = (loss[1] - loss[0]) / 2e-5;
    }
}

static void check_choice(const struct route *p, const double *x, const int32_t *choice, const struct tn *weight)
{
    for (int64_t t = 0; t < p->t; t++)
        for (int64_t j = 0; j < p->k; j++) {
            const double *row = x + t * p->experts;
            int32_t c = choice[t * p->k + j];
            int64_t rank = 0;

            for (int64_t i = 0; i < p->experts; i++)
                rank += before(row, i, c);
            assert_int_equal(rank, j);
            double w = weight_of(p, row, choice + t * p->k, c);
            assert_true(fabs(tn_at(weight, t * p->k + j) - w) <= 2e-6 * (p->scale != 0 ? (double)p->scale : 1));
        }
}

static void choices_equal_the_definition(void **s)
{
    (void)s;
    for (int k = 0; k < 48; k++) {
        const int64_t *h = shapes[k / 2 % 4];
        const struct route p = {
            .t = h[0], .experts = h[1], .k = h[2], .pre = k % 2 && k < 24, .score = k < 24 ? ROUTE_SOFTMAX : ROUTE_SIGMOID,
            .scale = k % 5 ? 0 : 2.5f,
        };
        int64_t n = p.t * p.k;
        struct device *dev = tn_devices[k / 8 % 3];
        struct tn x = tn_random(DTYPE_F32, p.t * p.experts, 1, 2, 0), lse = tn_poison(DTYPE_F32, p.t);
        struct tn weight = tn_poison(DTYPE_F32, n), dw = tn_random(DTYPE_F32, n, 2, 1, 0);
        struct tn balance = tn_random(DTYPE_F32, p.t * p.experts, 3, 0.1, 0), d = tn_poison(DTYPE_F32, p.t * p.experts);
        int32_t *choice = tn_keep(malloc((size_t)n * sizeof *choice));
        double *logits = tn_doubles(p.t * p.experts), *want = tn_doubles(p.t * p.experts);

        for (int64_t i = 0; i < p.experts && i < 4; i++)
            tn_set(&x, i, 0.5); /* equal ones */
        for (int64_t i = 0; i < p.t * p.experts; i++)
            logits[i] = x.v[i];
        OK(route_fwd_cpu(dev, &p, x.p, lse.p, choice, weight.p, &tn_err));
        check_choice(&p, logits, choice, &weight);
        OK(route_bwd_cpu(dev, DTYPE_F32, &p, d.p,
                         &(struct route_grad){x.p, lse.p, weight.p, dw.p, balance.p, choice, 0.03f, k % 3}, &tn_err));
        for (int64_t t = 0; t < p.t; t++)
            gradient(&p, logits + t * p.experts, choice + t * p.k, dw.v + t * p.k,
                     balance.v + (k % 3 ? t / (k % 3) * p.experts : 0), 0.03, want + t * p.experts);
        tn_near("gradients of logits", &d, want, 3e-6, 1);
        tn_teardown(NULL);
    }
}

/* Whether group g of a row comes before group h by the sum of their n largest values. */
static bool group_before(const struct route *p, const double *v, int64_t g, int64_t h)
{
    int64_t each = p->experts / p->groups;
    double sum[2] = {0};

    for (int s = 0; s < 2; s++)
        for (int64_t i = (s ? h : g) * each, end = i + each, first = i; i < end; i++) {
            int64_t rank = 0;

            for (int64_t j = first; j < end; j++)
                rank += before(v, j, i);
            sum[s] += rank < (p->limited ? 1 : p->k / p->of) ? v[i] : 0;
        }
    return sum[0] > sum[1] || (sum[0] == sum[1] && g < h);
}

/* The choice is among the experts of the best groups alone. */
static void groups_bound_the_choice(void **s)
{
    static const int64_t forms[][4] = {{8, 4, 4, 2}, {12, 4, 4, 2}, {64, 6, 8, 3}, {6, 2, 2, 1}, {128, 4, 64, 4}};

    (void)s;
    for (int k = 0; k < 30; k++) {
        const int64_t *f = forms[k / 6];
        const struct route p = {.t = 50, .experts = f[0], .k = f[1], .groups = f[2], .of = f[3], .pre = k % 3 == 1,
                                .score = k % 3 == 2 ? ROUTE_SIGMOID : ROUTE_SOFTMAX, .limited = k / 3 % 2};
        int64_t n = p.t * p.k, each = p.experts / p.groups;
        struct tn x = tn_random(DTYPE_F32, p.t * p.experts, 7, 2, 0), lse = tn_poison(DTYPE_F32, p.t);
        struct tn w = tn_poison(DTYPE_F32, n);
        int32_t *choice = tn_keep(malloc((size_t)n * sizeof *choice));
        double *v = tn_doubles(p.experts);

        OK(route_fwd_cpu(tn_devices[k % 3], &p, x.p, lse.p, choice, w.p, &tn_err));
        for (int64_t t = 0; t < p.t; t++) {
            const double *row = x.v + t * p.experts;

            for (int64_t i = 0; i < p.experts; i++)
                v[i] = p.score == ROUTE_SIGMOID ? sigmoid(row[i]) : p.pre ? exp(row[i]) : row[i];
            for (int64_t j = 0; j < p.k; j++) {
                int32_t c = choice[t * p.k + j];
                int64_t rank = 0, group = 0;

                for (int64_t g = 0; g < p.groups; g++)
                    group += group_before(&p, v, g, c / each);
                assert_in_range(group, 0, p.of - 1);
                for (int64_t i = 0; i < p.experts; i++) {
                    group = 0;
                    for (int64_t g = 0; g < p.groups; g++)
                        group += group_before(&p, v, g, i / each);
                    rank += group < p.of && before(row, i, c);
                }
                assert_int_equal(rank, j);
            }
        }
        tn_teardown(NULL);
    }
    const struct route uneven = {.t = 1, .experts = 8, .k = 4, .groups = 3, .of = 2};
    const struct route few = {.t = 1, .experts = 8, .k = 6, .groups = 4, .of = 2};

    assert_int_equal(route_fwd_cpu(tn_devices[0], &uneven, NULL, NULL, NULL, NULL, &tn_err), ERR_ARG);
    assert_int_equal(route_fwd_cpu(tn_devices[0], &few, NULL, NULL, NULL, NULL, &tn_err), ERR_ARG);
}

/* Probabilities add up to 1 in the order of the logits, and the likeliest experts are counted by stretches of tokens. */
static void likely_experts_are_counted(void **s)
{
    (void)s;
    for (int k = 0; k < 6; k++) {
        const struct route p = {.t = 60, .experts = 8, .k = 3, .score = k < 3 ? ROUTE_SOFTMAX : ROUTE_SIGMOID};
        int64_t parts = k % 3 + 1, wrong = 0;
        struct tn x = tn_random(DTYPE_F32, 60 * 8, 6, 2, 0), prob = tn_poison(DTYPE_F32, 60 * 8);
        int32_t count[3 * 8] = {0}, want[3 * 8] = {0};

        OK(route_likely_cpu(tn_devices[k % 3], &p, parts, x.p, prob.p, count, &tn_err));
        for (int64_t t = 0; t < p.t; t++) {
            double sum = 0;

            for (int64_t i = 0; i < 8; i++) {
                int64_t rank = 0;

                sum += p.score == ROUTE_SIGMOID ? sigmoid(x.v[t * 8 + i]) : 1;
                for (int64_t j = 0; j < 8; j++)
                    rank += before(x.v + t * 8, j, i);
                want[t / (60 / parts) * 8 + i] += rank < 3;
            }
            for (int64_t i = 0; i < 8; i++) {
                double v = x.v[t * 8 + i];
                wrong += !(fabs(tn_at(&prob, t * 8 + i) - (p.score == ROUTE_SIGMOID ? sigmoid(v) / sum : v)) <= 1e-6);
            }
        }
        assert_int_equal(wrong, 0);
        assert_memory_equal(count, want, sizeof count);
        OK(route_likely_cpu(tn_devices[k % 3], &p, parts, x.p, NULL, count, &tn_err)); /* onto them */
        assert_int_equal(count[0], 2 * want[0]);
        assert_int_equal(route_likely_cpu(tn_devices[0], &p, 7, x.p, NULL, count, &tn_err), ERR_ARG);
        tn_teardown(NULL);
    }
}

/* Rows by expert, and for each in the order of tokens; there and back they are the sums. */
static void rows_go_and_come_back(void **s)
{
    (void)s;
    for (int k = 0; k < 8; k++) {
        const int64_t *h = shapes[k % 4];
        const struct route p = {.t = h[0], .experts = h[1], .k = h[2]};
        int64_t n = p.t * p.k, c = h[3], row = 0;
        enum dtype dt = k < 4 ? DTYPE_F32 : DTYPE_BF16;
        struct device *dev = tn_devices[k % 3];
        struct tn x = tn_random(dt, p.t * c, 4, 1, 0), in = tn_poison(dt, n * c), y = tn_poison(dt, p.t * c);
        int32_t *id = tn_keep(malloc((size_t)(3 * n + p.experts) * sizeof *id));
        int32_t *choice = id, *place = id + n, *from = place + n, *count = from + n;
        double *want = tn_doubles(p.t * c);

        for (int64_t i = 0; i < n; i++) /* k different ones of each token */
            choice[i] = (int32_t)((i / p.k * 5 + i % p.k) % p.experts);
        OK(route_place_cpu(dev, &p, choice, NULL, place, from, count, &tn_err));
        for (int64_t e = 0; e < p.experts; e++) {
            int64_t first = row;

            for (int64_t i = 0; i < n; i++)
                if (choice[i] == e) {
                    assert_int_equal(place[i], row);
                    assert_int_equal(from[row++], i / p.k);
                }
            assert_int_equal(count[e], row - first);
        }
        OK(route_take_cpu(dev, dt, in.p, x.p, from, n, c, &tn_err));
        OK(route_join_cpu(dev, dt, &p, y.p, in.p, place, NULL, c, &tn_err));
        for (int64_t i = 0; i < p.t * c; i++)
            want[i] = (double)p.k * x.v[i];
        tn_near("rows that came back", &y, want, 1e-6, 1);
        choice[0] = (int32_t)p.experts;
        assert_int_equal(route_place_cpu(dev, &p, choice, NULL, place, from, count, &tn_err), ERR_ARG);
        tn_teardown(NULL);
    }
    const struct route more = {.t = 1, .experts = 2, .k = 3};

    assert_int_equal(route_fwd_cpu(tn_devices[0], &more, NULL, NULL, NULL, NULL, &tn_err), ERR_ARG);
}

/* Whether choice i of an expert is among the first `most` of those that chose it. */
static void a_balance_counts_what_is_likely(void **state)
{
    float sums[] = {1.5f, 2, 0.25f};
    double loss = 10;

    (void)state;
    OK(route_balance_cpu(tn_devices[0], 3, sums, (const int32_t[]){4, 0, 8}, 0.5f, 0.125, &loss, &tn_err));
    assert_true(loss == 10 + 0.125 * (6 + 2));
    assert_true(sums[0] == 2 && sums[1] == 0 && sums[2] == 4);
    OK(route_balance_cpu(tn_devices[0], 3, sums, (const int32_t[]){1, 1, 1}, 3, 1, NULL, &tn_err));
    assert_true(sums[0] == 3 && sums[1] == 3 && sums[2] == 3);
}

static bool is_kept(const struct route *p, const int32_t *choice, const double *weight, int64_t i, int64_t most)
{
    int64_t before = 0;

    for (int64_t j = 0; j < p->t * p->k; j++)
        if (choice[j] == choice[i] && (p->by_position || weight[j] == weight[i] ? j < i : weight[j] > weight[i]))
            before++;
    return before < most;
}

/* Experts with a capacity keep the largest weights, or the first tokens; rows stay in the order of tokens, padded ones are 0,
 * and what is dropped has no part in sums and gradients. */
static void a_capacity_drops_by_weight_or_position(void **s)
{
    (void)s;
    for (int k = 0; k < 64; k++) {
        const int64_t *h = shapes[k % 4];
        int64_t even = (h[0] * h[2] + h[1] - 1) / h[1], c = h[3], row = 0;
        const struct route p = {
            h[0], h[1], h[2], false, .capacity = k & 4 ? even / 2 + 1 : even, .by_position = k & 8, .pad = k & 16,
        };
        int64_t n = p.t * p.k, rows = route_rows(&p);
        enum dtype dt = k & 32 ? DTYPE_BF16 : DTYPE_F32;
        struct device *dev = tn_devices[k % 3];
        struct tn x = tn_random(dt, p.t * c, 4, 1, 0), in = tn_poison(dt, rows * c), y = tn_poison(dt, p.t * c);
        struct tn weight = tn_random(DTYPE_F32, n, 5, 0.5, 0), dweight = tn_poison(DTYPE_F32, n), dx = tn_poison(dt, rows * c);
        int32_t *id = tn_keep(malloc((size_t)(2 * n + rows + p.experts) * sizeof *id));
        int32_t *choice = id, *place = id + n, *count = place + n, *from = count + p.experts;
        double *want = tn_doubles(p.t * c), *dot = tn_doubles(n);

        for (int64_t i = 0; i < n; i++) { /* the first experts are wanted most, and some weights are equal */
            choice[i] = (int32_t)((i / p.k % 3 * (i / p.k % 2) + i % p.k) % p.experts);
            tn_set(&weight, i, i % 5 ? fabs(weight.v[i]) : 0.25);
        }
        OK(route_place_cpu(dev, &p, choice, weight.p, place, from, count, &tn_err));
        for (int64_t e = 0; e < p.experts; e++) {
            int64_t first = row;

            for (int64_t i = 0; i < n; i++)
                if (choice[i] == e) {
                    bool kept = is_kept(&p, choice, weight.v, i, p.capacity);

                    assert_int_equal(place[i], kept ? row : -1);
                    if (kept)
                        assert_int_equal(from[row++], i / p.k);
                }
            for (; p.pad && row < first + p.capacity; row++)
                assert_int_equal(from[row], -1);
            assert_int_equal(route_kept(&p, count[e]), row - first);
        }
        assert_true(row <= rows);
        OK(route_take_cpu(dev, dt, in.p, x.p, from, row, c, &tn_err));
        OK(route_join_cpu(dev, dt, &p, y.p, in.p, place, weight.p, c, &tn_err));
        OK(route_join_bwd_cpu(dev, dt, &p, dx.p, dweight.p, x.p, in.p, place, weight.p, c, &tn_err));
        for (int64_t i = 0; i < n * c; i++)
            if (place[i / c] >= 0) {
                double v = x.v[i / c / p.k * c + i % c];

                want[i / c / p.k * c + i % c] += weight.v[i / c] * v;
                dot[i / c] += v * v;
                assert_true(fabs(tn_at(&dx, place[i / c] * c + i % c) - weight.v[i / c] * v) <= (dt == DTYPE_BF16 ? 3e-2 : 4e-6));
            }
        tn_near("rows that came back", &y, want, 1e-5, 1);
        tn_near("gradients of weights", &dweight, dot, 1e-5, (double)c);
        tn_teardown(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(choices_equal_the_definition, tn_teardown),
        cmocka_unit_test_teardown(groups_bound_the_choice, tn_teardown),
        cmocka_unit_test_teardown(likely_experts_are_counted, tn_teardown),
        cmocka_unit_test_teardown(rows_go_and_come_back, tn_teardown),
        cmocka_unit_test_teardown(a_capacity_drops_by_weight_or_position, tn_teardown),
        cmocka_unit_test(a_balance_counts_what_is_likely),
    };

    return cmocka_run_group_tests_name("kernels_route", tests, tn_open, tn_close);
}
