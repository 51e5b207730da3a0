/* Matrix products, in fp32, bf16 and FP8, and the conversions to FP8. */
#include "tests/train_twins/train_twins.h"

/* ---- matrix products ---- */

struct product {
    int64_t m, n, k;
    bool ta, tb, wide, bias, sums;
    float beta;
    enum act act, dact;
    int64_t pad;
    bool ragged, fp32_scales; /* the last: by blocks */
};

#define ACT_TITLE(name, ...) , #name
static const char *const act_titles[] = {"" ACTS(ACT_TITLE)};
enum { TITLE = 200 };
/* A product in words: its shape, types, how its matrices lie, what is added and done to it. */
static const char *title(char *buf, const char *what, const char *a, const char *b, enum dtype c, const struct product *q,
                         bool plain)
{
    snprintf(buf, TITLE, "%s %s by %s to %s, %lld x %lld x %lld%s%s%s%s%s%s%s%s%s%s%s%s", what, a, b, dtype_name(c),
             (long long)q->m, (long long)q->n, (long long)q->k, q->ta ? ", A transposed" : "", q->tb ? ", B transposed" : "",
             q->pad ? ", rows apart" : "", q->beta != 0 ? ", beta 1" : "", q->bias ? ", bias" : "", q->sums ? ", sums" : "",
             q->act ? ", " : "", act_titles[q->act], q->dact ? ", through " : "", act_titles[q->dact],
             q->ragged ? ", ragged" : "", plain ? ", without a library" : "");
    return buf;
}

/* What sums of k products of normal numbers in fp32 may differ by, as a share of sqrt(k): each addition errs by a share of what
 * is there by then. */
static double of_sums(double k) { return 3e-6 + 1e-7 * sqrt(k); }

static void product_with(struct made *m, enum dtype dt, const struct product *q, bool plain)
{
    enum dtype dc = q->wide ? DTYPE_F32 : dt;
    int64_t lda = (q->ta ? q->m : q->k) + q->pad, ldb = (q->tb ? q->k : q->n) + q->pad;
    int64_t ldc = q->n + (q->act || q->dact ? 0 : q->pad);
    struct tensor a = normal(m, dt, (q->ta ? q->k : q->m) * lda, 0, 70, 1, 0);
    struct tensor b = normal(m, dt, (q->tb ? q->n : q->k) * ldb, 0, 71, 1, 0);
    struct tensor c = normal(m, dc, q->m * ldc, 0, 72, 1, 0), bias = normal(m, dt, q->n, 0, 73, 1, 0);
    struct tensor aux = result(m, dt, q->m * q->n, 0), daux = normal(m, dt, q->m * q->n, 0, 74, 1, 0);
    struct tensor sums = normal(m, DTYPE_F32, q->m, 0, 75, 1, 0);
    double s = 1 + sqrt((double)q->k);
    const char *type = dtype_name(dt);
    char name[TITLE];

    BOTH {
        struct matmul p = {.m = q->m, .n = q->n, .k = q->k, .trans_a = q->ta, .trans_b = q->tb, .dt = dt, .dt_c = dc,
                           .a = on(m, w, &a), .b = on(m, w, &b), .c = on(m, w, &c), .lda = lda, .ldb = ldb, .ldc = ldc,
                           .beta = q->beta, .bias = q->bias ? on(m, w, &bias) : NULL, .act = q->act,
                           .aux = q->act ? on(m, w, &aux) : NULL, .dact = q->dact,
                           .dact_aux = q->dact ? on(m, w, &daux) : NULL, .ragged = q->ragged,
                           .sums = q->sums ? on(m, w, &sums) : NULL};
        CHECK(m, (plain && w && m->t->plain ? m->t->plain : OPS(m, w)->matmul)(DEV(m, w), &p, &m->e));
    }
    if (q->sums)
        near(m, title(name, "sums of columns", type, type, dc, q, plain), &sums, of_sums((double)q->k), s);
    /* an activation of the product: of the rounded one or not */
    near(m, title(name, "product", type, type, dc, q, plain), &c,
         dt == DTYPE_BF16 && (q->act || q->dact) ? 0x1p-7 : of_sums((double)q->k), s);
    if (q->act)
        near(m, title(name, "before the activation, product", type, type, dt, q, plain), &aux, of_sums((double)q->k), s);
}

static const struct product products[] = {
    {.m = 1, .n = 1, .k = 1}, {.m = 70, .n = 33, .k = 40, .tb = true}, {.m = 64, .n = 128, .k = 16, .bias = true},
    {.m = 70, .n = 65, .k = 33, .tb = true, .bias = true, .act = ACT_GELU_TANH},
    {.m = 64, .n = 64, .k = 64, .tb = true, .bias = true, .act = ACT_GELU_TANH},
    {.m = 33, .n = 72, .k = 8, .dact = ACT_GELU_TANH}, {.m = 33, .n = 40, .k = 70, .ta = true, .wide = true, .beta = 1},
    {.m = 64, .n = 32, .k = 48, .ta = true, .wide = true, .beta = 1}, {.m = 64, .n = 32, .k = 48, .ta = true, .wide = true},
    {.m = 20, .n = 24, .k = 31, .ta = true, .tb = true, .pad = 5}, {.m = 20, .n = 24, .k = 40, .wide = true, .bias = true},
    {.m = 71, .n = 24, .k = 40, .tb = true, .bias = true, .ragged = true}, {.m = 16, .n = 40, .k = 32, .ragged = true},
    {.m = 24, .n = 40, .k = 91, .ta = true, .wide = true, .beta = 1, .ragged = true},
    {.m = 24, .n = 40, .k = 64, .ta = true, .wide = true, .ragged = true},
    {.m = 64, .n = 32, .k = 48, .ta = true, .wide = true, .beta = 1, .sums = true},
    {.m = 33, .n = 40, .k = 70, .ta = true, .wide = true, .sums = true},
    {.m = 24, .n = 40, .k = 64, .ta = true, .wide = true, .beta = 1, .ragged = true, .sums = true},
    {.m = 8, .n = 24, .k = 0, .bias = true}, {.m = 9, .n = 24, .k = 0, .tb = true, .beta = 1}, {.m = 0, .n = 24, .k = 3},
};

/* In both types, by the library and without. */
static void product_each_way(struct twins *t, struct product q)
{
    if (q.k > 1 && t->scale > 1) /* whole tiles stay so */
        q.m *= 8, q.n *= 8, q.k *= 8;
    for (int k = 0; k < (t->plain ? 4 : 2); k++) {
        struct made m = {.t = t};
        product_with(&m, both_types[k % 2], &q, k > 1);
        forget(&m);
    }
}

void twins_matmul(struct twins *t)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        product_each_way(t, products[i]);
    for (enum act a = (enum act)(ACT_NONE + 1); a < ACT_KINDS; a = (enum act)(a + 1))
        for (int k = 0; k < 2; k++) {
            product_each_way(t, (struct product){.m = 64, .n = k ? 64 : 33, .k = 24, .tb = true, .bias = true, .act = a});
            product_each_way(t, (struct product){.m = 32, .n = k ? 64 : 33, .k = 16, .dact = a});
        }
}

/* ---- groups ---- */

enum grouped { FORWARD, INPUT, WEIGHT, GROUPED };

/* rows: of all groups, of which the counts' (NULL: all) are used; from -> to channels. */
struct groups {
    int64_t n, rows, from, to;
    const int32_t *count;
};
struct grouped_tensors {
    struct tensor x, y, weight, bias, dweight, sums;
    int count;
};

static struct matmul_grouped grouped_on(const struct made *m, int w, const struct grouped_tensors *t, const struct groups *g,
                                        enum grouped what)
{
    enum dtype dt = t->x.dt;
    struct matmul_grouped q = {
        .of = {.m = g->rows, .n = g->to, .k = g->from, .trans_b = true, .dt = dt, .dt_c = dt, .a = on(m, w, &t->x),
               .b = on(m, w, &t->weight), .c = on(m, w, &t->y), .bias = on(m, w, &t->bias)},
        .groups = g->n, .count = g->count ? m->on[w][t->count] : NULL, .most = 131, .step = t->weight.n / g->n,
        .step_bias = t->bias.n / g->n,
    };

    if (what == INPUT)
        q.of = (struct matmul){.m = g->rows, .n = g->from, .k = g->to, .dt = dt, .dt_c = dt, .a = on(m, w, &t->y),
                               .b = on(m, w, &t->weight), .c = on(m, w, &t->x)};
    if (what == WEIGHT) {
        q.of = (struct matmul){.m = g->to, .n = g->from, .k = g->rows, .trans_a = true, .dt = dt, .dt_c = DTYPE_F32,
                               .a = on(m, w, &t->y), .b = on(m, w, &t->x), .c = on(m, w, &t->dweight)};
        q.sums = on(m, w, &t->sums);
    }
    return q;
}

static void grouped_with(struct made *m, enum dtype dt, const struct groups *g, enum grouped what, bool known, float beta)
{
    int64_t weight = g->n * (g->from * g->to + 16), bias = g->n * (g->to + 8); /* gaps between groups */
    struct grouped_tensors t = {
        normal(m, dt, g->rows * g->from, 0, 120, 1, 0), normal(m, dt, g->rows * g->to, 0, 121, 1, 0),
        normal(m, dt, weight, 0, 122, 1, 0), normal(m, dt, bias, 0, 123, 1, 0), normal(m, DTYPE_F32, weight, 0, 124, 1, 0),
        normal(m, DTYPE_F32, bias, 0, 125, 1, 0), give(m, g->count ? g->count : (const int32_t[1]){0},
                                                       g->count ? (size_t)g->n * sizeof *g->count : 0),
    };
    double k = (double)(what == FORWARD ? g->from : what == INPUT ? g->to : g->rows), s = 1 + sqrt(k);
    char name[TITLE], of[TITLE];

    BOTH {
        struct matmul_grouped q = grouped_on(m, w, &t, g, what);
        q.of.beta = beta;
        q.of.bias = beta == 0 ? q.of.bias : NULL;
        q.known = known ? g->count : NULL;
        CHECK(m, OPS(m, w)->matmul_grouped(DEV(m, w), &q, &m->e));
    }
    snprintf(of, sizeof of, "%lld groups%s of %lld rows, %lld to %lld, %s%s%s", (long long)g->n,
             known ? " that the host knows" : "", (long long)g->rows,
             (long long)g->from, (long long)g->to, dtype_name(dt), beta != 0 ? ", beta 1" : "",
             what == FORWARD && beta == 0 ? ", bias" : "");
    snprintf(name, sizeof name, "%s, %.150s",
             what == FORWARD ? "products" : what == INPUT ? "gradients of rows" : "gradients of weights", of);
    near(m, name, what == FORWARD ? &t.y : what == INPUT ? &t.x : &t.dweight, of_sums(k), s);
    snprintf(name, sizeof name, "sums of columns, %.150s", of);
    near(m, name, &t.sums, 1e-6 * s, s);
}

/* Groups of no row, of one, of many tiles, of all rows; more than a warp has lanes; widths that are whole chunks and such that
 * are not; rows that nobody has behind the last. */
void twins_matmul_grouped(struct twins *t)
{
    static const int32_t some[] = {0, 1, 7, 0, 130, 64, 33, 0}, all[] = {0, 0, 200, 0}, one[] = {5};
    int32_t many[70];
    const struct groups cases[] = {{8, 240, 48, 40, some}, {4, 200, 64, 136, all}, {1, 5, 8, 8, one}, {70, 160, 16, 24, many},
                                   {8, 235, 33, 20, some}, {4, 120, 40, 32, NULL}, {3, 0, 16, 16, (const int32_t[3]){0}}};

    for (int i = 0; i < 70; i++)
        many[i] = i % 4;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < GROUPED * 8 && (i != 1 || k < GROUPED * 4); k++) {
            struct made m = {.t = t};
            struct groups g = cases[i];
            if (t->scale > 1 && !g.count)
                g.rows *= 8, g.from *= 8, g.to *= 8;
            else if (t->scale > 1)
                g.from *= 16, g.to *= 16;
            grouped_with(&m, both_types[k / GROUPED % 2], &g, (enum grouped)(k % GROUPED), k / GROUPED / 2 % 2,
                         (float)(k / GROUPED / 4 % 2));
            forget(&m);
        }
}

/* ---- FP8 ---- */

static struct tensor bytes_of(struct made *m, int64_t n)
{
    return result(m, DTYPE_F32, (n + 3) / 4, 0);
}

/* A matrix in FP8 with its scales, as quantize makes it; the same transposed; its columns' sums (NULL: none). */
static void quantized(struct made *m, struct tensor q[2], const struct tensor *x, enum fp8 to, const struct tensor *cells,
                      int64_t rows, int64_t cols, int64_t yt_ld, const struct tensor *sums)
{
    q[0] = bytes_of(m, rows * cols);
    q[1] = bytes_of(m, (yt_ld ? yt_ld : rows) * cols);
    BOTH {
        float *cell = on(m, w, cells);
        struct fp8_quantize p = {.rows = rows, .cols = cols, .to = to, .dt = x->dt, .x = on(m, w, x), .y = on(m, w, &q[0]),
                                 .yt = on(m, w, &q[1]), .scale = cell + FP8_SCALE, .amax = cell + FP8_HISTORY, .yt_ld = yt_ld,
                                 .colsum = sums ? on(m, w, sums) : NULL};
        CHECK(m, OPS(m, w)->fp8_quantize(DEV(m, w), &p, &m->e));
    }
}

/* The op that stands for two: of each device the same bits as both by themselves. */
static void converted_behind(struct made *m, enum act act, bool glu, bool back, int64_t rows, int64_t f)
{
    int64_t cols = glu && back ? 2 * f : f, ld = (rows + FP8_WHOLE - 1) / FP8_WHOLE * FP8_WHOLE;
    enum fp8 to = back ? FP8_E5M2 : FP8_E4M3;
    float first[2][2] = {{30, 2}, {30, 2}};
    struct tensor x = normal(m, DTYPE_BF16, rows * f * (1 + glu), 0, 110, 2, 0);
    struct tensor dy = normal(m, DTYPE_BF16, rows * f, 0, 111, 1, 0);
    struct tensor mid = result(m, DTYPE_BF16, rows * cols, 0), q[2][2], cells[2], sums[2];
    char s[80];

    for (int k = 0; k < 2; k++) {
        q[k][0] = bytes_of(m, rows * cols);
        q[k][1] = bytes_of(m, ld * cols);
        cells[k] = tensor_of(m, DTYPE_F32, 2, 0, first[k]);
        sums[k] = normal(m, DTYPE_F32, cols, 0, 112, 1, 0);
        BOTH {
            const struct device_ops *o = OPS(m, w);
            void *y = on(m, w, &mid), *in = on(m, w, &x), *d = on(m, w, &dy);
            float *cell = on(m, w, &cells[k]);
            struct fp8_quantize p = {
                .rows = rows, .cols = cols, .to = to, .dt = DTYPE_BF16, .x = k ? y : in, .y = on(m, w, &q[k][0]),
                .yt = on(m, w, &q[k][1]), .scale = cell, .amax = cell + 1, .yt_ld = ld,
                .colsum = back ? on(m, w, &sums[k]) : NULL, .act = k ? ACT_NONE : act,
                .glu = !k && glu, .dy = !k && back ? d : NULL,
            };
            if (k && glu)
                CHECK(m, back ? o->glu_bwd(DEV(m, w), DTYPE_BF16, act, y, d, in, rows, f, &m->e)
                              : o->glu_fwd(DEV(m, w), DTYPE_BF16, act, y, in, rows, f, &m->e));
            else if (k)
                CHECK(m, back ? o->act_bwd(DEV(m, w), DTYPE_BF16, act, y, d, in, rows * f, &m->e)
                              : o->act_fwd(DEV(m, w), DTYPE_BF16, act, y, in, rows * f, &m->e));
            CHECK(m, o->fp8_quantize(DEV(m, w), &p, &m->e));
        }
    }
    for (int i = 0; i < 4; i++) {
        const struct tensor *of[] = {&q[0][0], &q[0][1], &cells[0], &sums[0]}, *as[] = {&q[1][0], &q[1][1], &cells[1], &sums[1]};
        same(m, name_of(s, "FP8 through an activation", DTYPE_BF16, rows, f), of[i], as[i]);
    }
    /* of numbers in bf16, some of which are rounded to the other side */
    near(m, name_of(s, "largest, through an activation", DTYPE_BF16, rows, f), &cells[0], 0x1p-7, 1);
    near(m, name_of(s, "sums, through an activation", DTYPE_BF16, rows, f), &sums[0], 1e-3, 3 * sqrt((double)rows));
}

void twins_fp8_activations(struct twins *t)
{
    static const int64_t shape[][2] = {{1, 8}, {37, 45}, {130, 264}};

    for (int k = 0; k < 12 * (ACT_KINDS - 1); k++) {
        struct made m = {.t = t};
        int64_t f = shape[k % 3][1];
        bool glu = k / 3 % 2, back = k / 6 % 2;

        converted_behind(&m, (enum act)(1 + k / 12), glu, back, shape[k % 3][0] * t->scale, glu && back ? (f + 7) / 8 * 8 : f);
        forget(&m);
    }
}

void twins_fp8_conversions(struct twins *t)
{
    static const int64_t shape[][2] = {{1, 1}, {16, 128}, {37, 45}, {130, 259}, {128, 136}};

    for (int k = 0; k < 40; k++) {
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        enum fp8 to = k / 2 % 2 ? FP8_E5M2 : FP8_E4M3;
        int64_t rows = shape[k / 8][0] * t->scale, cols = shape[k / 8][1];
        int64_t ld = k / 4 % 2 ? (rows + FP8_WHOLE - 1) / FP8_WHOLE * FP8_WHOLE : 0;
        enum { LEN = 4, LD = FP8_HISTORY + LEN };
        float first[LD] = {[FP8_MAX] = fp8_max(to), [FP8_HISTORY] = 0.5f, 3, 0, 9};
        struct tensor x = normal(&m, dt, rows * cols, 0, 100, 3, 0), cells = tensor_of(&m, DTYPE_F32, LD, 0, first), q[2];
        struct tensor sums = normal(&m, DTYPE_F32, cols, 0, 101, 1, 0);
        char s[80];
        BOTH {
            struct fp8_update u = {on(&m, w, &cells), 1, LD, LEN, 0, false, true};
            float *now = (float *)on(&m, w, &cells) + FP8_NOW;
            CHECK(&m, OPS(&m, w)->fp8_amax(DEV(&m, w), dt, now, on(&m, w, &x), rows * cols, &m.e));
            CHECK(&m, OPS(&m, w)->fp8_update(DEV(&m, w), &u, &m.e));
        }
        quantized(&m, q, &x, to, &cells, rows, cols, ld, k % 3 ? &sums : NULL);
        near(&m, name_of(s, "FP8", dt, rows, cols), &q[0], 0, 1);
        near(&m, name_of(s, "FP8 transposed", dt, rows, cols), &q[1], 0, 1);
        near(&m, name_of(s, "scales", dt, rows, cols), &cells, 0, 1);
        near(&m, name_of(s, "column sums", dt, rows, cols), &sums, 1e-6 * sqrt((double)rows), 3 * sqrt((double)rows));
        BOTH {
            struct fp8_update u = {on(&m, w, &cells), 1, LD, 1 + k % LEN, k % 3, k % 2, false};
            CHECK(&m, OPS(&m, w)->fp8_update(DEV(&m, w), &u, &m.e));
        }
        near(&m, name_of(s, "new scales", dt, rows, cols), &cells, 0, 1);
        forget(&m);
    }
}

static void fp8_product_with(struct made *m, const struct product *q, enum fp8 fa, bool plain)
{
    enum dtype dc = q->wide ? DTYPE_F32 : DTYPE_BF16;
    float first[2][FP8_HISTORY + 1] = {{[FP8_MAX] = fp8_max(fa), [FP8_SCALE] = 64, [FP8_INVERSE] = 1.0f / 64},
                                       {[FP8_MAX] = 448, [FP8_SCALE] = 32, [FP8_INVERSE] = 1.0f / 32}};
    struct tensor a = normal(m, DTYPE_BF16, q->m * q->k, 0, 110, 1, 0), b = normal(m, DTYPE_BF16, q->n * q->k, 0, 111, 1, 0);
    struct tensor sa = tensor_of(m, DTYPE_F32, FP8_HISTORY + 1, 0, first[0]), qa[2], qb[2];
    struct tensor sb = tensor_of(m, DTYPE_F32, FP8_HISTORY + 1, 0, first[1]);
    struct tensor c = normal(m, dc, q->m * q->n, 0, 112, 1, 0), bias = normal(m, DTYPE_BF16, q->n, 0, 113, 1, 0);
    struct tensor aux = result(m, DTYPE_BF16, q->m * q->n, 0), daux = normal(m, DTYPE_BF16, q->m * q->n, 0, 114, 1, 0);
    double s = 1 + sqrt((double)q->k);
    const char *type = fa == FP8_E5M2 ? "E5M2" : "E4M3";
    char name[TITLE];
    struct product r = *q;

    r.tb = true;
    quantized(m, qa, &a, fa, &sa, q->m, q->k, 0, NULL);
    quantized(m, qb, &b, FP8_E4M3, &sb, q->n, q->k, 0, NULL);
    BOTH {
        struct matmul p = {.m = q->m, .n = q->n, .k = q->k, .trans_b = true, .dt = DTYPE_BF16, .dt_c = dc, .a = on(m, w, &qa[0]),
                           .b = on(m, w, &qb[0]), .c = on(m, w, &c), .beta = q->beta, .bias = q->bias ? on(m, w, &bias) : NULL,
                           .act = q->act, .aux = q->act ? on(m, w, &aux) : NULL, .dact = q->dact,
                           .dact_aux = q->dact ? on(m, w, &daux) : NULL, .fp8_a = fa, .fp8_b = FP8_E4M3,
                           .inv_a = (float *)on(m, w, &sa) + FP8_INVERSE, .inv_b = (float *)on(m, w, &sb) + FP8_INVERSE,
                           .ragged = q->ragged};
        CHECK(m, (plain && w && m->t->plain ? m->t->plain : OPS(m, w)->matmul)(DEV(m, w), &p, &m->e));
    }
    double tol = m->t->short_sums ? 2e-3 : of_sums((double)q->k);
    near(m, title(name, "FP8 product", type, "E4M3", dc, &r, plain), &c, q->act || q->dact ? 0x1p-7 : tol, s);
    if (q->act)
        near(m, title(name, "before the activation, FP8 product", type, "E4M3", DTYPE_BF16, &r, plain), &aux, tol, s);
}

/* n products, with A in either format, by the library and without. */
static void fp8_each_way(struct twins *t, const struct product *all, size_t n,
                         void (*with)(struct made *m, const struct product *q, enum fp8 fa, bool plain))
{
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < (t->plain ? 4 : 2); k++) {
            struct made m = {.t = t};
            struct product q = all[i];
            if (t->scale > 1)
                q.m *= 8, q.n *= 8, q.k *= 8;
            with(&m, &q, k % 2 ? FP8_E5M2 : FP8_E4M3, k > 1);
            forget(&m);
        }
}

/* ---- by blocks ---- */

/* A matrix (rows, k) by blocks and its 1 / scale; the same transposed, (k, ld). */
struct blocked {
    struct tensor y, yt, inv, inv_t;
};
static struct blocked blocked(struct made *m, const struct tensor *x, enum fp8 to, bool squares, bool fp32, int64_t rows,
                              int64_t k, int64_t ld, const struct tensor *sums)
{
    enum fp8_scales by = squares ? FP8_OF_SQUARES : FP8_OF_ROWS;
    struct blocked q = {bytes_of(m, rows * k), bytes_of(m, k * ld),
                        result(m, DTYPE_F32, fp8_scales_floats(by, rows, k), 0),
                        result(m, DTYPE_F32, fp8_scales_floats(by, k, ld), 0)};

    BOTH {
        struct fp8_blocks p = {.rows = rows, .cols = k, .to = to, .squares = squares, .fp32_scales = fp32, .x = on(m, w, x),
                               .y = on(m, w, &q.y), .yt = on(m, w, &q.yt), .inv = on(m, w, &q.inv), .inv_t = on(m, w, &q.inv_t),
                               .yt_ld = ld, .colsum = sums ? on(m, w, sums) : NULL};
        CHECK(m, OPS(m, w)->fp8_blocks(DEV(m, w), &p, &m->e));
    }
    return q;
}

void twins_fp8_blocks(struct twins *t)
{
    static const int64_t shape[][2] = {{1, 1}, {37, 45}, {130, 259}, {128, 256}, {260, 136}};

    for (int k = 0; k < 40; k++) {
        struct made m = {.t = t};
        int64_t rows = shape[k / 8][0] * t->scale, cols = shape[k / 8][1];
        int64_t ld = k % 2 ? rows : fp8_blocks_of(rows) * FP8_BLOCK;
        float size = k / 8 == 3 ? 1e-37f : 30; /* with infinite scales */
        struct tensor x = normal(&m, DTYPE_BF16, rows * cols, 0, 104, size, 0), sums = normal(&m, DTYPE_F32, cols, 0, 105, 1, 0);
        struct blocked q = blocked(&m, &x, k % 2 ? FP8_E5M2 : FP8_E4M3, k / 2 % 2, k / 4 % 2, rows, cols, ld, &sums);
        char s[80];

        near(&m, name_of(s, "FP8 by blocks", DTYPE_BF16, rows, cols), &q.y, 0, 1);
        near(&m, name_of(s, "FP8 by blocks, transposed", DTYPE_BF16, rows, cols), &q.yt, 0, 1);
        near(&m, name_of(s, "scales of blocks", DTYPE_BF16, rows, cols), &q.inv, 0, 1);
        near(&m, name_of(s, "scales of blocks, transposed", DTYPE_BF16, rows, cols), &q.inv_t, 0, 1);
        near(&m, name_of(s, "column sums by blocks", DTYPE_BF16, rows, cols), &sums, 1e-5 * sqrt((double)rows),
             90 * sqrt((double)rows));
        forget(&m);
    }
}

/* B has squares, but where the sum is over rows. */
static void blocks_product_with(struct made *m, const struct product *q, enum fp8 fa, bool plain)
{
    enum dtype dc = q->wide ? DTYPE_F32 : DTYPE_BF16;
    bool squares = !q->wide;
    struct tensor a = normal(m, DTYPE_BF16, q->m * q->k, 0, 110, 1, 0), b = normal(m, DTYPE_BF16, q->n * q->k, 0, 111, 1, 0);
    struct tensor c = normal(m, dc, q->m * q->n, 0, 112, 1, 0), bias = normal(m, DTYPE_BF16, q->n, 0, 113, 1, 0);
    struct blocked qa = blocked(m, &a, fa, false, q->fp32_scales, q->m, q->k, q->m, NULL);
    struct blocked qb = blocked(m, &b, FP8_E4M3, squares, q->fp32_scales, q->n, q->k, q->n, NULL);
    const char *type = fa == FP8_E5M2 ? "E5M2 by blocks" : "E4M3 by blocks";
    const char *op = q->fp32_scales ? "FP8 product, fp32 scales" : "FP8 product";
    struct product r = *q;
    char name[TITLE];

    r.tb = true;
    BOTH {
        struct matmul p = {.m = q->m, .n = q->n, .k = q->k, .trans_b = true, .dt = DTYPE_BF16, .dt_c = dc, .a = on(m, w, &qa.y),
                           .b = on(m, w, &qb.y), .c = on(m, w, &c), .beta = q->beta, .bias = q->bias ? on(m, w, &bias) : NULL,
                           .fp8_a = fa, .fp8_b = FP8_E4M3, .inv_a = on(m, w, &qa.inv), .inv_b = on(m, w, &qb.inv),
                           .by_a = FP8_OF_ROWS, .by_b = squares ? FP8_OF_SQUARES : FP8_OF_ROWS, .fp32_scales = q->fp32_scales,
                           .ragged = q->ragged};
        CHECK(m, (plain && w && m->t->plain ? m->t->plain : OPS(m, w)->matmul)(DEV(m, w), &p, &m->e));
    }
    near(m, title(name, op, type, squares ? "E4M3 by squares" : "E4M3 by blocks", dc, &r, plain), &c,
         m->t->short_sums ? 2e-3 : of_sums((double)q->k), 1 + sqrt((double)q->k));
}

void twins_fp8_blocks_products(struct twins *t)
{
    static const struct product all[] = {
        {.m = 64, .n = 48, .k = 128, .bias = true}, {.m = 80, .n = 160, .k = 256}, {.m = 33, .n = 20, .k = 128},
        {.m = 144, .n = 32, .k = 384, .wide = true, .beta = 1}, {.m = 37, .n = 32, .k = 128, .bias = true, .ragged = true},
        {.m = 48, .n = 32, .k = 640, .wide = true, .beta = 1, .ragged = true}, {.m = 80, .n = 160, .k = 256, .fp32_scales = true},
        {.m = 48, .n = 32, .k = 640, .wide = true, .beta = 1, .ragged = true, .fp32_scales = true},
    };

    fp8_each_way(t, all, sizeof all / sizeof *all, blocks_product_with);
}

void twins_fp8_products(struct twins *t)
{
    static const struct product all[] = {
        {.m = 64, .n = 48, .k = 32, .bias = true}, {.m = 80, .n = 64, .k = 96, .bias = true, .act = ACT_GELU_TANH},
        {.m = 32, .n = 64, .k = 64, .dact = ACT_GELU_TANH}, {.m = 64, .n = 32, .k = 48, .wide = true, .beta = 1},
        {.m = 33, .n = 20, .k = 24}, {.m = 48, .n = 32, .k = 16, .wide = true},
        {.m = 37, .n = 32, .k = 48, .bias = true, .ragged = true},
        {.m = 48, .n = 32, .k = 112, .wide = true, .beta = 1, .ragged = true},
    };

    fp8_each_way(t, all, sizeof all / sizeof *all, fp8_product_with);
}
