/* A mixture of experts: which tokens go where, and their rows. */
#include "tests/train_twins/train_twins.h"

struct routed {
    int64_t t, experts, k, c;
    int64_t groups, of; /* 0: it has none */
};

static int indices(struct made *m, int64_t n)
{
    int32_t *v = host_of(m, (size_t)n * 4);

    for (int64_t i = 0; i < n; i++)
        v[i] = -1;
    return give(m, v, (size_t)n * 4);
}

/* Integers must be the same. */
static void equal_indices(struct made *m, const char *what, int block, int64_t n)
{
    int32_t *a = malloc((size_t)n * 4), *b = malloc((size_t)n * 4);
    struct twins_found f = {.what = what, .how = m->t->how, .n = n};
    char why[256] = "";

    CHECK(m, device_get(m->t->cpu, a, m->on[0][block], (size_t)n * 4, &m->e));
    CHECK(m, device_get(m->t->other, b, m->on[1][block], (size_t)n * 4, &m->e));
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i] && f.wrong++ == 0)
            snprintf(why, sizeof why, "%s: element %lld of %lld is %d, not %d", what, (long long)i, (long long)n, b[i], a[i]);
    f.why = why;
    found(m->t, &f);
    free(a);
    free(b);
}

/* What is chosen by, and weighed. */
enum by { BY_SOFTMAX, BY_SOFTMAX_OF_ALL, BY_SIGMOID, BY_GROUPS, BY_GROUPS_OF_ALL, BY_SIGMOID_GROUPS, BY_BIAS,
          BY_BIAS_GROUPS, BYS };

/* how: 0 any number of rows an expert; else of half of those by even use the largest, the first, padded ones. */
static void route_with(struct made *m, enum dtype dt, const struct routed *r, enum by by, bool losses, int how)
{
    bool bias = by == BY_BIAS || by == BY_BIAS_GROUPS, sigmoid = bias || by == BY_SIGMOID || by == BY_SIGMOID_GROUPS;
    bool some = by >= BY_GROUPS && by != BY_BIAS && r->groups > 0;
    struct route p = {
        r->t, r->experts, r->k, by == BY_SOFTMAX_OF_ALL || by == BY_GROUPS_OF_ALL,
        .score = sigmoid ? ROUTE_SIGMOID : ROUTE_SOFTMAX, .scale = sigmoid ? 2.5f : 0, .groups = some ? r->groups : 0,
        .of = some ? r->of : 0, .limited = some && by == BY_GROUPS_OF_ALL,
        .capacity = how ? r->t * r->k / (2 * r->experts) + 1 : 0, .by_position = how == 2,
        .pad = how == 3,
    };
    int64_t n = r->t * r->k, rows = route_rows(&p);
    struct tensor logits = normal(m, DTYPE_F32, r->t * r->experts, 0, 100, 2, 0.5f), lse = result(m, DTYPE_F32, r->t, 0);
    struct tensor weight = result(m, DTYPE_F32, n, 0), dweight = result(m, DTYPE_F32, n, 0);
    struct tensor balance = normal(m, DTYPE_F32, r->t * r->experts, 0, 101, 0.1f, 0);
    struct tensor dlogits = result(m, dt, r->t * r->experts, 0);
    struct tensor x = normal(m, dt, r->t * r->c, 0, 102, 1, 0), out = normal(m, dt, rows * r->c, 0, 103, 1, 0);
    struct tensor in = result(m, dt, rows * r->c, 0), y = result(m, dt, r->t * r->c, 0), dx = result(m, dt, rows * r->c, 0);
    struct tensor plain = result(m, dt, r->t * r->c, 0), sums = normal(m, DTYPE_F32, r->experts, 0, 104, 3, 0);
    struct tensor uneven = tensor_of(m, DTYPE_F32, 2, 0, (const float[]){0, 0});
    struct tensor prob = result(m, DTYPE_F32, r->t * r->experts, 0);
    struct tensor biases = normal(m, DTYPE_F32, r->experts, 0, 105, 0.1f, 0);
    int choice = indices(m, n), place = indices(m, n), from = indices(m, rows), count = indices(m, r->experts);
    int likely = indices(m, r->t * r->experts), load = indices(m, r->experts);
    double loss[2] = {0, 1};
    float same = 0.25f;
    char s[80];

    BOTH {
        struct route_grad g = {on(m, w, &logits), on(m, w, &lse), on(m, w, &weight), on(m, w, &dweight),
                               losses ? on(m, w, &balance) : NULL, m->on[w][choice], losses ? 0.01f : 0, how % 2};

        for (int i = 0; i < 3 && r->experts > 2; i++) /* equal ones: the lower number comes first */
            CHECK(m, device_put(DEV(m, w), (char *)on(m, w, &logits) + i * 4, &same, 4, &m->e));
        p.bias = bias ? on(m, w, &biases) : NULL;
        CHECK(m, OPS(m, w)->route_fwd(DEV(m, w), &p, on(m, w, &logits), on(m, w, &lse), m->on[w][choice], on(m, w, &weight),
                                      &m->e));
        CHECK(m, OPS(m, w)->route_place(DEV(m, w), &p, m->on[w][choice], on(m, w, &weight), m->on[w][place],
                                        m->on[w][from], m->on[w][count], &m->e));
        CHECK(m, OPS(m, w)->route_tally(DEV(m, w), r->experts, m->on[w][load], m->on[w][count], &m->e));
        CHECK(m, OPS(m, w)->route_likely(DEV(m, w), &p, r->t, on(m, w, &logits), on(m, w, &prob), m->on[w][likely], &m->e));
        CHECK(m, OPS(m, w)->route_balance(DEV(m, w), r->experts, on(m, w, &sums), m->on[w][count], 0.3f, 0.01,
                                          on(m, w, &uneven), &m->e));
        CHECK(m, device_get(DEV(m, w), &loss[w], on(m, w, &uneven), sizeof *loss, &m->e));
        CHECK(m, OPS(m, w)->route_take(DEV(m, w), dt, on(m, w, &in), on(m, w, &x), m->on[w][from], rows, r->c, &m->e));
        CHECK(m, OPS(m, w)->route_join(DEV(m, w), dt, &p, on(m, w, &y), on(m, w, &out), m->on[w][place], on(m, w, &weight),
                                       r->c, &m->e));
        CHECK(m, OPS(m, w)->route_join(DEV(m, w), dt, &p, on(m, w, &plain), on(m, w, &out), m->on[w][place], NULL, r->c,
                                       &m->e));
        CHECK(m, device_zero(DEV(m, w), on(m, w, &dx), (size_t)(rows * r->c) * dtype_size(dt), &m->e));
        CHECK(m, OPS(m, w)->route_join_bwd(DEV(m, w), dt, &p, on(m, w, &dx), on(m, w, &dweight), on(m, w, &x), on(m, w, &out),
                                           m->on[w][place], on(m, w, &weight), r->c, &m->e));
        CHECK(m, OPS(m, w)->route_bwd(DEV(m, w), dt, &p, on(m, w, &dlogits), &g, &m->e));
    }
    equal_indices(m, name_of(s, "choice", dt, r->t, r->experts), choice, n);
    equal_indices(m, name_of(s, "place", dt, r->t, r->experts), place, n);
    equal_indices(m, name_of(s, "where from", dt, r->t, r->experts), from, rows);
    equal_indices(m, name_of(s, "count", dt, r->t, r->experts), count, r->experts);
    equal_indices(m, name_of(s, "load", dt, r->t, r->experts), load, r->experts);
    equal_indices(m, name_of(s, "likely ones", dt, r->t, r->experts), likely, r->t * r->experts);
    near(m, name_of(s, "normalised probabilities", dt, r->t, r->experts), &prob, 2e-6, 1e-3);
    near(m, name_of(s, "gradient of the balance", dt, r->t, r->experts), &sums, 0, 1);
    if (!(fabs(loss[1] - loss[0]) <= 1e-12 * (double)(r->t * r->experts)))
        wrong(m->t, "balance of %lld experts: %.17g, not %.17g", (long long)r->experts, loss[1], loss[0]);
    near(m, name_of(s, "probabilities", dt, r->t, r->experts), &logits, 2e-6, 1e-3);
    near(m, name_of(s, "log-sum-exp", dt, r->t, r->experts), &lse, 2e-6, 1);
    near(m, name_of(s, "weights", dt, r->t, r->k), &weight, 2e-6, 1e-3);
    near(m, name_of(s, "rows taken", dt, rows, r->c), &in, 0, 1);
    near(m, name_of(s, "rows joined", dt, r->t, r->c), &y, 2e-6, 1);
    near(m, name_of(s, "rows added", dt, r->t, r->c), &plain, 2e-6, 1);
    near(m, name_of(s, "gradients of rows", dt, rows, r->c), &dx, 2e-6, 1);
    near(m, name_of(s, "gradients of weights", dt, r->t, r->k), &dweight, 4e-6, sqrt((double)r->c));
    near(m, name_of(s, "gradients of logits", dt, r->t, r->experts), &dlogits, 1e-5, sqrt((double)r->c));
}

static void gate_with(struct made *m, enum dtype dt, int64_t t, int64_t c)
{
    struct tensor gate = normal(m, DTYPE_F32, t, 0, 110, 2, 0), x = normal(m, dt, t * c, 0, 111, 1, 0);
    struct tensor y = normal(m, dt, t * c, 0, 112, 1, 0), dy = normal(m, dt, t * c, 0, 113, 1, 0);
    struct tensor dx = result(m, dt, t * c, 0), dgate = result(m, dt, t, 0);
    char s[80];

    struct tensor wide = normal(m, dt, t * (c + 5), 0, 77, 2, 0), prod = result(m, dt, t * c, 0);
    struct tensor slope = normal(m, dt, t * (c + 5), 0, 78, 1, 0);

    BOTH {
        const struct gate_rows rows = {on(m, w, &wide), c + 5, t, c};
        CHECK(m, OPS(m, w)->gate_mul(DEV(m, w), dt, on(m, w, &prod), on(m, w, &x), &rows, &m->e));
        CHECK(m, OPS(m, w)->gate_slope(DEV(m, w), dt, on(m, w, &slope), on(m, w, &dy), on(m, w, &x), &rows, &m->e));
        CHECK(m, OPS(m, w)->gate_add(DEV(m, w), dt, on(m, w, &y), on(m, w, &x), on(m, w, &gate), t, c, &m->e));
        CHECK(m, OPS(m, w)->gate_back(DEV(m, w), dt, on(m, w, &dx), on(m, w, &dgate), on(m, w, &dy), on(m, w, &x),
                                      on(m, w, &gate), t, c, &m->e));
    }
    near(m, name_of(s, "rows gated", dt, t, c), &y, 2e-6, 1);
    near(m, name_of(s, "gradients of gated rows", dt, t, c), &dx, 2e-6, 1);
    near(m, name_of(s, "gradients of gates", dt, t, c), &dgate, 4e-6, sqrt((double)c));
    near(m, name_of(s, "gate by elements", dt, t, c), &prod, 2e-6, 1);
    near(m, name_of(s, "its gradient", dt, t, c), &slope, 2e-6, 1);
}

/* A part of each head to where another tensor has it, also what all share, zeros, and sums over heads. */
static void heads_with(struct made *m, enum dtype dt, int64_t t, int64_t c)
{
    const int64_t heads = 5, d = c + 3, row = heads * d + 2;
    struct tensor x = normal(m, dt, t * row, 0, 120, 1, 0), y = normal(m, dt, t * row, 0, 121, 1, 0);
    struct tensor shared = normal(m, dt, t * row, 0, 122, 1, 0), sum = normal(m, dt, t * row, 0, 123, 1, 0);
    const struct heads_part dense = {t, heads, c, {heads * c, c}, {row, d}}, same = {t, heads, c, {row, d}, {row, 0}};
    char s[80];

    BOTH {
        CHECK(m, OPS(m, w)->heads_move(DEV(m, w), dt, on(m, w, &y), on(m, w, &x), &dense, &m->e));
        CHECK(m, OPS(m, w)->heads_move(DEV(m, w), dt, on(m, w, &shared), on(m, w, &x), &same, &m->e));
        CHECK(m, OPS(m, w)->heads_sum(DEV(m, w), dt, on(m, w, &sum), on(m, w, &x), &dense, &m->e));
        CHECK(m, OPS(m, w)->heads_move(DEV(m, w), dt, on(m, w, &x), NULL, &same, &m->e));
    }
    near(m, name_of(s, "heads moved", dt, t, c), &y, 0, 1);
    near(m, name_of(s, "one for all heads", dt, t, c), &shared, 0, 1);
    near(m, name_of(s, "sums of heads", dt, t, c), &sum, 2e-6, 1);
    near(m, name_of(s, "zeros in heads", dt, t, c), &x, 0, 1);
}

void twins_route(struct twins *t)
{
    static const struct routed shape[] = {
        {5, 1, 1, 3, 1, 1}, {40, 8, 2, 64, 4, 1}, {300, 5, 3, 33, 0, 0}, {65, 70, 6, 264, 35, 3}, {9, 3, 3, 16, 3, 3},
    };

    for (int k = 0; k < 120; k++) {
        struct made m = {.t = t};
        struct routed r = shape[k / 4 % 5];
        r.t *= t->scale;
        enum by by = (enum by)(k < 40 ? k >> 1 & 1 : BY_SIGMOID + k / 2 % (BYS - BY_SIGMOID));
        route_with(&m, both_types[k % 2], &r, by, k & 1, k % 40 < 20 ? 0 : 1 + k % 3);
        gate_with(&m, both_types[k % 2], r.t, r.c);
        if (k < 20)
            heads_with(&m, both_types[k % 2], r.t, r.c);
        forget(&m);
    }
}
