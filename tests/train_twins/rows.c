/* Ops on rows: embedding, rotary positions, norms, cross-entropy. */
#include "tests/train_twins/train_twins.h"

/* ---- rows ---- */

void twins_embedding(struct twins *t)
{
    for (int k = 0; k < 8; k++) {
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        int64_t rows = 60 * t->scale, c = k < 4 ? 72 : 301, vocab = 23, positions = k % 4 < 2 ? 20 : 0;
        struct tensor wte = normal(&m, dt, vocab * c, 0, 20, 1, 0), wpe = normal(&m, dt, 20 * c, 0, 21, 1, 0);
        struct tensor out = result(&m, dt, rows * c, 0), dout = normal(&m, dt, rows * c, 0, 22, 1, 0);
        struct tensor dwte = normal(&m, DTYPE_F32, vocab * c, 0, 23, 1, 0), dwpe = normal(&m, DTYPE_F32, 20 * c, 0, 24, 1, 0);
        int token = ids(&m, rows, 25, k < 6 ? vocab : 2 * vocab, false), pos = ids(&m, rows, 26, 20, false);
        char s[80];
        BOTH {
            struct embedding p = {rows, c, m.on[w][token], m.on[w][pos], k < 6 ? 0 : 11, vocab, positions};
            CHECK(&m, OPS(&m, w)->embedding_fwd(DEV(&m, w), dt, on(&m, w, &out), &p, on(&m, w, &wte),
                                                positions ? on(&m, w, &wpe) : NULL, &m.e));
            CHECK(&m, OPS(&m, w)->embedding_bwd(DEV(&m, w), dt, on(&m, w, &dwte), positions ? on(&m, w, &dwpe) : NULL, &p,
                                                on(&m, w, &dout), &m.e));
        }
        near(&m, name_of(s, "embedding", dt, rows, c), &out, 0, 1);
        near(&m, name_of(s, "token gradients", dt, rows, c), &dwte, 0, 1);
        near(&m, name_of(s, "position gradients", dt, rows, c), &dwpe, 0, 1);
        forget(&m);
    }
}

void twins_rope(struct twins *t)
{
    static const int64_t shape[][5] = {{9, 3, 64, 64, 192}, {10, 2, 20, 12, 50}, {5, 4, 128, 128, 600}};

    for (int k = 0; k < 12; k++) {
        const int64_t *h = shape[k / 4];
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        int64_t rows = h[0] * t->scale;
        struct tensor x = normal(&m, dt, rows * h[4], 0, 30, 1, 0), cs;
        int pos = ids(&m, rows, 31, 40, false);
        float *table = malloc((size_t)(40 * h[3]) * 4);
        char s[80];
        rope_table(table, 40, h[3], 10000, NULL);
        cs = tensor_of(&m, DTYPE_F32, 40 * h[3], 0, table);
        free(table);
        BOTH {
            struct rope p = {rows, h[1], h[2], h[4], h[3], 40, on(&m, w, &cs), m.on[w][pos], k % 4 > 1};
            CHECK(&m, OPS(&m, w)->rope(DEV(&m, w), dt, on(&m, w, &x), &p, &m.e));
        }
        near(&m, name_of(s, "rope", dt, rows, h[2]), &x, 1e-6, 1);
        forget(&m);
    }
}

static void norm_forward(struct made *m, enum dtype dt, bool rms, int how, int64_t rows, int64_t c)
{
    int64_t heads = how == 3 ? 3 : 0, ld = 3 * c + 8, n = heads ? rows / 3 * ld : rows * c;
    struct dropout d = {.p = 0.2f, .key = 77, .stream = 5, .row0 = 1000, .cut = 3, .first = 2, .every = 40, .at = {6, 33}};
    int now = dropout_now(m);
    struct tensor x = normal(m, dt, n, 0, 40, 1, 0.5f), r = normal(m, dt, n, 0, 41, 1, 0), s = result(m, dt, n, 0);
    struct tensor y = heads ? normal(m, dt, n, 0, 44, 1, 0) : result(m, dt, n, 0), g = normal(m, dt, c, 0, 42, 1, 1);
    struct tensor b = normal(m, dt, c, 0, 43, 1, 0), mean = result(m, DTYPE_F32, rows, 0), rstd = result(m, DTYPE_F32, rows, 0);
    char name[80];

    BOTH {
        d.now = m->on[w][now];
        struct norm_fwd p = {.t = rows, .c = c, .x_heads = {heads, ld}, .y_heads = {heads, ld}, .eps = 1e-5f, .x = on(m, w, &x),
                             .residual = how == 1 || how == 2 ? on(m, w, &r) : NULL, .drop = how == 2 ? &d : NULL,
                             .gamma = how == 4 ? NULL : on(m, w, &g), .beta = rms || how == 4 ? NULL : on(m, w, &b),
                             .y = on(m, w, &y), .mean = rms ? NULL : on(m, w, &mean), .rstd = on(m, w, &rstd),
                             .plus = how == 1 || how == 4};
        p.s = p.residual ? on(m, w, &s) : NULL;
        CHECK(m, (rms ? OPS(m, w)->rmsnorm_fwd : OPS(m, w)->layernorm_fwd)(DEV(m, w), dt, &p, &m->e));
    }
    if (how == 1 || how == 2)
        near(m, name_of(name, "stream", dt, rows, c), &s, 2e-7, 1);
    near(m, name_of(name, "norm", dt, rows, c), &y, 4e-6, 1);
    near(m, name_of(name, "deviation", dt, rows, c), &rstd, 4e-6, 0);
    if (!rms)
        near(m, name_of(name, "mean", dt, rows, c), &mean, 2e-6, 1);
}

/* Into FP8 at once, the same bits as converted from its output. */
static void norm_converted(struct made *m, bool rms, bool added, int64_t rows, int64_t c)
{
    struct dropout d = {.p = 0.2f, .key = 77, .stream = 5, .row0 = 1000, .cut = 3, .first = 2, .every = 40, .at = {6, 33}};
    int64_t n = rows * c, ld = (rows + FP8_WHOLE - 1) / FP8_WHOLE * FP8_WHOLE;
    int now = dropout_now(m);
    float first[2] = {100, 2};
    struct tensor x = normal(m, DTYPE_BF16, n, 0, 45, 1, 0.5f), r = normal(m, DTYPE_BF16, n, 0, 46, 1, 0);
    struct tensor s = result(m, DTYPE_BF16, n, 0), y = result(m, DTYPE_BF16, n, 0), g = normal(m, DTYPE_BF16, c, 0, 47, 1, 1);
    struct tensor cells[2], low[2], turned[2];
    char name[80];

    for (int k = 0; k < 2; k++) {
        cells[k] = tensor_of(m, DTYPE_F32, 2, 0, first);
        low[k] = result(m, DTYPE_F32, (n + 3) / 4, 0);
        turned[k] = result(m, DTYPE_F32, ld * c / 4, 0);
        BOTH {
            const struct device_ops *o = OPS(m, w);
            float *cell = on(m, w, &cells[k]);
            struct fp8_quantize to = {.rows = rows, .cols = c, .to = FP8_E4M3, .dt = DTYPE_BF16, .x = on(m, w, &y),
                                      .y = on(m, w, &low[k]), .yt = on(m, w, &turned[k]), .scale = cell, .amax = cell + 1,
                                      .yt_ld = ld};
            struct norm_fwd p = {.t = rows, .c = c, .eps = 1e-5f, .x = on(m, w, &x), .residual = added ? on(m, w, &r) : NULL,
                                 .drop = added ? &d : NULL, .gamma = on(m, w, &g), .beta = rms ? NULL : on(m, w, &g),
                                 .s = added ? on(m, w, &s) : NULL, .y = k ? on(m, w, &y) : NULL, .fp8 = k ? NULL : &to,
                                 .plus = added};
            d.now = m->on[w][now];
            CHECK(m, (rms ? o->rmsnorm_fwd : o->layernorm_fwd)(DEV(m, w), DTYPE_BF16, &p, &m->e));
            if (k)
                CHECK(m, o->fp8_quantize(DEV(m, w), &to, &m->e));
        }
    }
    same(m, name_of(name, "norm in FP8", DTYPE_BF16, rows, c), &low[0], &low[1]);
    same(m, name_of(name, "norm in FP8, transposed", DTYPE_BF16, rows, c), &turned[0], &turned[1]);
    same(m, name_of(name, "norm's largest", DTYPE_BF16, rows, c), &cells[0], &cells[1]);
    near(m, name_of(name, "norm's largest", DTYPE_BF16, rows, c), &cells[0], 1e-5, 1);
}

static void norm_backward(struct made *m, enum dtype dt, bool rms, int how, int64_t rows, int64_t c)
{
    int64_t heads = how == 3 ? 3 : 0, ld = 3 * c + 8, n = heads ? rows / 3 * ld : rows * c;
    struct dropout d = {.p = 0.2f, .key = 77, .stream = 5, .row0 = 1000, .cut = 3, .first = 2, .every = 40, .at = {6, 33}};
    int now = dropout_now(m);
    struct tensor dy = normal(m, dt, n, 0, 50, 1, 0), dres = normal(m, dt, n, 0, 51, 1, 0), s = normal(m, dt, n, 0, 52, 1, 0.3f);
    struct tensor mean = normal(m, DTYPE_F32, rows, 0, 53, 0.1f, 0.3f), rstd = normal(m, DTYPE_F32, rows, 0, 54, 0.05f, 1);
    struct tensor g = normal(m, dt, c, 0, 55, 1, 1), ds = result(m, dt, n, 0), dx = result(m, dt, n, 0);
    struct tensor dg = normal(m, DTYPE_F32, c, 0, 56, 1, 0), db = normal(m, DTYPE_F32, c, 0, 57, 1, 0);
    char name[80];

    BOTH {
        d.now = m->on[w][now];
        struct norm_bwd p = {.t = rows, .c = c, .heads = {heads, ld}, .dy = on(m, w, &dy),
                             .dres = how == 1 || how == 2 ? on(m, w, &dres) : NULL,
                             .s = on(m, w, &s), .mean = rms ? NULL : on(m, w, &mean), .rstd = on(m, w, &rstd),
                             .gamma = how == 4 ? NULL : on(m, w, &g), .drop = how == 2 ? &d : NULL,
                             .ds = how == 2 ? on(m, w, &ds) : on(m, w, &dy), .dx = how == 2 ? on(m, w, &dx) : NULL,
                             .dgamma = how == 4 ? NULL : on(m, w, &dg), .dbeta = rms || how == 4 ? NULL : on(m, w, &db),
                             .plus = how == 1 || how == 4};
        CHECK(m, (rms ? OPS(m, w)->rmsnorm_bwd : OPS(m, w)->layernorm_bwd)(DEV(m, w), dt, &p, &m->e));
    }
    near(m, name_of(name, "stream's gradient", dt, rows, c), how == 2 ? &ds : &dy, 1e-5, 1);
    if (how == 2)
        near(m, name_of(name, "branch's gradient", dt, rows, c), &dx, 1e-5, 1);
    near(m, name_of(name, "gamma's gradient", dt, rows, c), &dg, 1e-5, sqrt((double)rows));
    near(m, name_of(name, "beta's gradient", dt, rows, c), &db, 1e-5, sqrt((double)rows));
}

void twins_fp8_norms(struct twins *t)
{
    static const int64_t shape[][2] = {{1, 8}, {37, 45}, {130, 264}};

    for (int k = 0; k < 12; k++) {
        struct made m = {.t = t};

        norm_converted(&m, k % 2, k / 2 % 2, shape[k / 4][0] * t->scale, shape[k / 4][1]);
        forget(&m);
    }
}

void twins_norms(struct twins *t)
{
    static const int64_t cs[] = {1, 64, 100, 256, 264, 1601, 4100, 8192};

    for (int k = 0; k < 8; k++)
        for (int how = 0; how < 5; how++) /* 4: without weights */
            for (int i = 0; i < 4; i++) {
                struct made m = {.t = t};
                int64_t rows = (k < 6 ? 18 : 3) * t->scale;
                norm_forward(&m, both_types[i % 2], i > 1, how, rows, cs[k]);
                forget(&m);
                norm_backward(&m, both_types[i % 2], i > 1, how, rows, cs[k]);
                forget(&m);
            }
}

/* ---- cross-entropy ---- */

static void xent_with(struct made *m, enum dtype dt, int64_t rows, int64_t v, int64_t ld, int how)
{
    bool split = how & 1, gradient = how & 2, cap = how & 4;
    struct tensor x = normal(m, dt, rows * ld, 0, 60, 3, 1), scale = normal(m, DTYPE_F32, rows, 0, 61, 0.1f, 0.5f);
    struct tensor loss = result(m, DTYPE_F32, rows, 0), max = result(m, DTYPE_F32, rows, 0), sum = result(m, DTYPE_F32, rows, 0);
    struct tensor at = result(m, DTYPE_F32, rows, 0);
    int target = ids(m, rows, 62, split ? 3 * v : v, true);
    char name[80];
    float none = 0;

    BOTH {
        struct xent p = {rows, v, ld, split ? v : 0, on(m, w, &x), m->on[w][target], gradient ? on(m, w, &scale) : NULL,
                         cap ? 5.0f : 0, rows % 2 ? 0.02f : 0};
        if (rows > 3) /* a masked token */
            CHECK(m, device_put(DEV(m, w), (char *)on(m, w, &scale) + 8, &none, 4, &m->e));
        if (!split) {
            CHECK(m, OPS(m, w)->xent(DEV(m, w), dt, &p, on(m, w, &loss), &m->e));
            continue;
        }
        CHECK(m, OPS(m, w)->xent_max(DEV(m, w), dt, &p, on(m, w, &max), &m->e));
        CHECK(m, OPS(m, w)->xent_sum(DEV(m, w), dt, &p, on(m, w, &max), on(m, w, &sum), on(m, w, &at), &m->e));
        CHECK(m, OPS(m, w)->xent_finish(DEV(m, w), dt, &p, on(m, w, &max), on(m, w, &sum), on(m, w, &at),
                                           on(m, w, &loss), &m->e));
    }
    if (split) {
        near(m, name_of(name, "largest logit", dt, rows, v), &max, cap ? 2e-6 : 0, cap);
        near(m, name_of(name, "sum", dt, rows, v), &sum, cap ? 8e-6 : 2e-6, 0);
        near(m, name_of(name, "target's logit", dt, rows, v), &at, cap ? 4e-6 : 0, cap);
    }
    near(m, name_of(name, "loss", dt, rows, v), &loss, 2e-6, 1);
    near(m, name_of(name, "logits' gradient", dt, rows, v), &x, gradient ? cap ? 1e-5 : 4e-6 : 1e-30, 0.05); /* of 0.5 */
}

void twins_xent(struct twins *t)
{
    static const int64_t shape[][3] = {{5, 1, 1}, {9, 50, 64}, {4, 501, 503}, {3, 9001, 9088}};

    for (int k = 0; k < 64; k++) {
        struct made m = {.t = t};
        const int64_t *s = shape[k / 16];
        xent_with(&m, both_types[k % 2], s[0] * t->scale, s[1], s[2], k / 2 % 8);
        forget(&m);
    }
}
