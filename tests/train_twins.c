/* The ops of training, one implementation against the other within the tolerances of docs/numerics.md. */
#include <math.h>

#include "tests/twins_memory.h"

/* ---- tensors on both devices ---- */

/* n elements, `off` elements into a block: what is not aligned to 16 bytes.  64 bytes of 0xff behind them. */
struct tensor {
    int block;
    enum dtype dt;
    int64_t n, off;
};

static struct tensor tensor_of(struct made *m, enum dtype dt, int64_t n, int64_t off, const float *value)
{
    size_t w = dtype_size(dt), bytes = (size_t)(off + n) * w + 64;
    unsigned char *host = host_of(m, bytes);

    memset(host, 0xff, bytes); /* NaN in either type */
    for (int64_t i = 0; value && i < n; i++) {
        uint16_t low = bf16_of(value[i]);
        memcpy(host + (size_t)(off + i) * w, dt == DTYPE_BF16 ? (const void *)&low : (const void *)&value[i], w);
    }
    return (struct tensor){give(m, host, bytes), dt, n, off};
}

/* Normal numbers times scale plus shift. */
static struct tensor normal(struct made *m, enum dtype dt, int64_t n, int64_t off, uint64_t seed, float scale, float shift)
{
    float *v = malloc((size_t)(n + 1) * sizeof *v);
    struct tensor t;

    for (int64_t i = 0; v && i < n; i += 2) {
        uint32_t w[4];
        double z[2];
        rng_philox(seed, (uint64_t)i, 6, w);
        rng_normal2(w[0], w[1], z);
        v[i] = (float)z[0] * scale + shift;
        v[i + 1] = (float)z[1] * scale + shift;
    }
    t = tensor_of(m, dt, n, off, v);
    free(v);
    return t;
}

/* A result: NaN until it is written. */
static struct tensor result(struct made *m, enum dtype dt, int64_t n, int64_t off)
{
    return tensor_of(m, dt, n, off, NULL);
}

static void *on(const struct made *m, int w, const struct tensor *t)
{
    return (char *)m->on[w][t->block] + (size_t)t->off * dtype_size(t->dt);
}

static float value_at(const unsigned char *p, enum dtype dt, int64_t i)
{
    uint16_t low;
    float x;

    if (dt == DTYPE_F32) {
        memcpy(&x, p + (size_t)i * 4, 4);
        return x;
    }
    memcpy(&low, p + (size_t)i * 2, 2);
    return bf16_to(low);
}

/* |got - want| <= tol (|want| + s), NaN never; tol 0: the same bits.  bf16 may be a unit in the last place off: two sides of a
 * rounding. */
static void near(struct made *m, const char *what, const struct tensor *t, double tol, double s)
{
    size_t w = dtype_size(t->dt), bytes = (size_t)(t->off + t->n) * w + 64;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);

    CHECK(m, device_get(m->t->cpu, want, m->on[0][t->block], bytes, &m->e));
    CHECK(m, device_get(m->t->other, got, m->on[1][t->block], bytes, &m->e));
    for (size_t i = bytes - 64; i < bytes; i++)
        if (want[i] != 0xff || got[i] != 0xff)
            wrong(m->t, "%s: wrote behind its end", what);
    for (int64_t i = 0; i < t->off; i++)
        if (!isnan(value_at(got, t->dt, i)))
            wrong(m->t, "%s: wrote before its beginning", what);
    for (int64_t i = t->off; i < t->off + t->n && !m->t->wrong[0]; i++) {
        double a = (double)value_at(want, t->dt, i), b = (double)value_at(got, t->dt, i);
        double err = fabs(a - b) / (fabs(a) + s), most = tol + (t->dt == DTYPE_BF16 && tol > 0 ? 0x1p-7 : 0);
        if (tol > 0 ? !(err <= most) : memcmp(want + (size_t)i * w, got + (size_t)i * w, w) != 0)
            wrong(m->t, "%s: element %lld of %lld is %.9g, not %.9g", what, (long long)(i - t->off), (long long)t->n, b, a);
    }
    free(want);
    free(got);
}

/* Ids below `limit`, every seventh -1 if `some` is set. */
static int ids(struct made *m, int64_t n, uint64_t seed, int64_t limit, bool some)
{
    int32_t *v = host_of(m, (size_t)n * 4);

    for (int64_t i = 0; i < n; i++)
        v[i] = some && i % 7 == 5 ? -1 : (int32_t)(number(seed, i) % (uint64_t)limit);
    return give(m, v, (size_t)n * 4);
}

#define BOTH for (int w = 0; w < 2; w++)
#define OPS(m, w) (device_of((m)->t, w)->ops)
#define DEV(m, w) device_of((m)->t, w)
static const enum dtype both_types[] = {DTYPE_F32, DTYPE_BF16};
static const char *name_of(char *buf, const char *what, enum dtype dt, int64_t a, int64_t b)
{
    snprintf(buf, 80, "%s %s, %lld x %lld", what, dtype_name(dt), (long long)a, (long long)b);
    return buf;
}

/* ---- elements ---- */

static const int64_t lengths[] = {1, 7, 8, 15, 1000, 4099};

static void elements_of(struct made *m, enum dtype dt, int64_t n, int64_t off)
{
    char s[80];
    struct tensor x = normal(m, dt, n, off, 1, 2, 0), y = normal(m, dt, n, off, 2, 1, 0), z = result(m, dt, n, 0);
    struct tensor f = result(m, DTYPE_F32, n, off), h = result(m, DTYPE_BF16, n, off), sum = normal(m, dt, n, off, 3, 1, 0);

    BOTH {
        CHECK(m, OPS(m, w)->vec_cast(DEV(m, w), on(m, w, &f), DTYPE_F32, on(m, w, &x), dt, n, &m->e));
        CHECK(m, OPS(m, w)->vec_cast(DEV(m, w), on(m, w, &h), DTYPE_BF16, on(m, w, &x), dt, n, &m->e));
        CHECK(m, OPS(m, w)->vec_add(DEV(m, w), dt, on(m, w, &z), on(m, w, &x), on(m, w, &y), n, &m->e));
        CHECK(m, OPS(m, w)->vec_scale(DEV(m, w), dt, on(m, w, &y), 0.3f, n, &m->e));
        CHECK(m, OPS(m, w)->vec_axpy(DEV(m, w), dt, on(m, w, &sum), 1.7f, on(m, w, &x), n, &m->e));
    }
    near(m, name_of(s, "cast to fp32", dt, n, off), &f, 0, 1);
    near(m, name_of(s, "cast to bf16", dt, n, off), &h, 0, 1);
    near(m, name_of(s, "add", dt, n, off), &z, 0, 1);
    near(m, name_of(s, "scale", dt, n, off), &y, 0, 1);
    near(m, name_of(s, "axpy", dt, n, off), &sum, 2e-7, 1);
}

static void elements(struct twins *t)
{
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int d = 0; d < 2; d++)
            for (int64_t off = 0; off < 2; off++) {
                struct made m = {.t = t};
                elements_of(&m, both_types[d], lengths[i] * (i > 3 ? t->scale : 1), off);
                forget(&m);
            }
}

static void activations(struct twins *t)
{
    static const enum act acts[] = {ACT_GELU_TANH, ACT_GELU_ERF, ACT_SILU};

    for (int a = 0; a < 3; a++)
        for (int k = 0; k < 4; k++) {
            struct made m = {.t = t};
            enum dtype dt = both_types[k % 2];
            int64_t rows = 5 * t->scale, f = k < 2 ? 37 : 512, n = rows * f;
            char s[80];
            struct tensor x = normal(&m, dt, 2 * n, k < 2, 4, 4, 0), dy = normal(&m, dt, n, 0, 5, 1, 0);
            struct tensor y = result(&m, dt, 2 * n, 0), dx = result(&m, dt, 2 * n, k < 2), gy = result(&m, dt, n, 0);
            struct tensor gx = result(&m, dt, 2 * n, 0);
            BOTH {
                CHECK(&m, OPS(&m, w)->act_fwd(DEV(&m, w), dt, acts[a], on(&m, w, &y), on(&m, w, &x), 2 * n, &m.e));
                CHECK(&m, OPS(&m, w)->act_bwd(DEV(&m, w), dt, acts[a], on(&m, w, &dx), on(&m, w, &y),
                                                   on(&m, w, &x), 2 * n, &m.e));
                CHECK(&m, OPS(&m, w)->glu_fwd(DEV(&m, w), dt, acts[a], on(&m, w, &gy), on(&m, w, &x), rows, f, &m.e));
                CHECK(&m, OPS(&m, w)->glu_bwd(DEV(&m, w), dt, acts[a], on(&m, w, &gx), on(&m, w, &dy),
                                                   on(&m, w, &x), rows, f, &m.e));
            }
            near(&m, name_of(s, "act", dt, a, f), &y, 1e-6, 1);
            near(&m, name_of(s, "act backward", dt, a, f), &dx, dt == DTYPE_BF16 ? 0x1p-7 : 3e-6, 1); /* its dy was rounded */
            near(&m, name_of(s, "glu", dt, a, f), &gy, 2e-6, 1);
            near(&m, name_of(s, "glu backward", dt, a, f), &gx, 4e-6, 1);
            forget(&m);
        }
}

static void dropouts(struct twins *t)
{
    static const float ps[] = {0, 0.1f, 0.5f, 0.999f};

    for (int k = 0; k < 8; k++) {
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        int64_t rows = 6 * t->scale, c = k < 4 ? 203 : 96;
        struct dropout d = {
            .p = ps[k / 2], .key = 0x123456789abcdefull, .stream = 0xfedcba987654321ull, .row0 = (int64_t)k << 33,
        };
        char s[80];
        struct tensor x = normal(&m, dt, rows * c, 0, 6, 1, 0), y = result(&m, dt, rows * c, 0);
        BOTH CHECK(&m, OPS(&m, w)->vec_dropout(DEV(&m, w), dt, on(&m, w, &y), on(&m, w, &x), rows, c, &d, &m.e));
        near(&m, name_of(s, "dropout", dt, rows, c), &y, 0, 1);
        forget(&m);
    }
}

static void sums(struct twins *t)
{
    static const int64_t shape[][3] = {{1, 1, 1}, {33, 5, 9}, {100, 300, 300}, {600, 64, 192}, {700, 2100, 2100}};

    for (int k = 0; k < 10; k++) {
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        int64_t rows = shape[k / 2][0] * t->scale, c = shape[k / 2][1], ld = shape[k / 2][2];
        float clip_at[2] = {1.0f, 1e6f}, poison = NAN;
        double zero = 0.25, norm[2];
        char s[80];
        struct tensor x = normal(&m, dt, rows * ld, 0, 7, 1, 0.1f), sum = normal(&m, DTYPE_F32, c, 0, 8, 1, 0);
        struct tensor clip[2] = {tensor_of(&m, DTYPE_F32, 1, 0, &poison), tensor_of(&m, DTYPE_F32, 1, 0, &poison)};
        int squares = give(&m, &zero, sizeof zero);
        BOTH {
            CHECK(&m, OPS(&m, w)->vec_colsum(DEV(&m, w), dt, on(&m, w, &sum), on(&m, w, &x), rows, c, ld, &m.e));
            CHECK(&m, OPS(&m, w)->vec_sumsq(DEV(&m, w), dt, m.on[w][squares], rows * ld, on(&m, w, &x), rows * ld, &m.e));
            CHECK(&m, device_get(DEV(&m, w), &norm[w], m.on[w][squares], sizeof zero, &m.e));
            for (int i = 0; i < 2; i++)
                CHECK(&m, OPS(&m, w)->clip_scale(DEV(&m, w), on(&m, w, &clip[i]), m.on[w][squares], 1, clip_at[i], &m.e));
        }
        near(&m, name_of(s, "column sums", dt, rows, c), &sum, 1e-7 * sqrt((double)rows) * 10, sqrt((double)rows));
        if (!(fabs(norm[0] - norm[1]) <= 1e-6 * norm[0]))
            wrong(t, "sum of squares of %lld: %.17g, not %.17g", (long long)(rows * ld), norm[1], norm[0]);
        near(&m, "no clip", &clip[1], 1e-6, 0);
        double many[700];
        for (int i = 0; i < 700; i++)
            many[i] = (double)(i * 7919 % 1009) * 0x1.8p-20;
        squares = give(&m, many, sizeof many);
        BOTH {
            CHECK(&m, OPS(&m, w)->clip_scale(DEV(&m, w), on(&m, w, &clip[1]), m.on[w][squares], 700 - 61 * k, 0.1f, &m.e));
            CHECK(&m, device_get(DEV(&m, w), &norm[w], m.on[w][squares], sizeof norm[w], &m.e));
        }
        if (norm[0] != norm[1])
            wrong(t, "sum of %d blocks: %.17g, not %.17g", 700 - 61 * k, norm[1], norm[0]);
        near(&m, "clip by many", &clip[1], 1e-6, 0);
        struct tensor losses = normal(&m, DTYPE_F32, rows, 0, 9, 1, 3);
        BOTH {
            CHECK(&m, OPS(&m, w)->vec_total(DEV(&m, w), m.on[w][squares], on(&m, w, &losses), rows, &m.e));
            CHECK(&m, device_get(DEV(&m, w), &norm[w], m.on[w][squares], sizeof norm[w], &m.e));
        }
        if (!(fabs(norm[0] - norm[1]) <= 1e-13 * fabs(norm[0])))
            wrong(t, "sum of %lld losses: %.17g, not %.17g", (long long)rows, norm[1], norm[0]);
        near(&m, "clip", &clip[0], 1e-6, 0);
        forget(&m);
    }
}

static void adamw(struct twins *t)
{
    for (int k = 0; k < 4; k++) {
        struct made m = {.t = t};
        int64_t n = (k < 2 ? 1003 : 64) * t->scale, off = k % 2;
        float one = 0.37f;
        char s[80];
        struct tensor w_ = normal(&m, DTYPE_F32, n, off, 9, 1, 0), m_ = normal(&m, DTYPE_F32, n, off, 10, 0, 0);
        struct tensor v_ = normal(&m, DTYPE_F32, n, off, 11, 0, 0), low = result(&m, DTYPE_BF16, n, off), g[3];
        struct tensor scale = tensor_of(&m, DTYPE_F32, 1, 0, &one);
        for (int i = 0; i < 3; i++)
            g[i] = normal(&m, DTYPE_F32, n, off, 12 + (uint64_t)i, 0.1f, 0);
        for (int i = 0; i < 3; i++)
            BOTH {
                struct adamw a = {i + 1, 1e-2, 0.9, 0.95, 1e-8, 0.1, k < 2 ? on(&m, w, &scale) : NULL, {0}};
                CHECK(&m, OPS(&m, w)->adamw(DEV(&m, w), &a, on(&m, w, &w_), on(&m, w, &m_), on(&m, w, &v_), on(&m, w, &g[i]),
                                            k == 3 ? NULL : on(&m, w, &low), n, &m.e));
            }
        near(&m, name_of(s, "weights", DTYPE_F32, n, k), &w_, 1e-6, 1);
        near(&m, name_of(s, "moments", DTYPE_F32, n, k), &m_, 1e-6, 1e-3);
        near(&m, name_of(s, "second moments", DTYPE_F32, n, k), &v_, 1e-6, 1e-5);
        if (k < 3)
            near(&m, name_of(s, "bf16 weights", DTYPE_BF16, n, k), &low, 1e-6, 1);
        forget(&m);
    }
}

/* bf16 weights alone, of a matrix or of some of its columns: the same bits. */
static void adamw_rounded_weights(struct twins *t)
{
    for (int k = 0; k < 3; k++) {
        struct made m = {.t = t};
        int64_t cols = k ? 37 : 96, n = 40 * cols * t->scale, off = k % 2;
        struct tensor low = normal(&m, DTYPE_BF16, n, off, 9, 1, 0), m_ = normal(&m, DTYPE_F32, n, off, 10, 0, 0);
        struct tensor v_ = normal(&m, DTYPE_F32, n, off, 11, 0, 0), g[3];
        char s[80];
        for (int i = 0; i < 3; i++)
            g[i] = normal(&m, DTYPE_F32, n, off, 12 + (uint64_t)i, 0.1f, 0);
        for (int i = 0; i < 3; i++)
            BOTH {
                struct adamw a = {i + 1, 1e-3, 0.9, 0.95, 1e-8, 0.1, NULL, {77, 5 * k, cols, k == 2 ? 128 : cols}};
                CHECK(&m, OPS(&m, w)->adamw(DEV(&m, w), &a, NULL, on(&m, w, &m_), on(&m, w, &v_), on(&m, w, &g[i]),
                                            on(&m, w, &low), n, &m.e));
            }
        near(&m, name_of(s, "rounded weights", DTYPE_BF16, n, k), &low, 0, 0);
        near(&m, name_of(s, "their moments", DTYPE_F32, n, k), &m_, 0, 0);
        forget(&m);
    }
}

/* ---- rows ---- */

static void embedding(struct twins *t)
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

static void rope(struct twins *t)
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
    struct tensor x = normal(m, dt, n, 0, 40, 1, 0.5f), r = normal(m, dt, n, 0, 41, 1, 0), s = result(m, dt, n, 0);
    struct tensor y = heads ? normal(m, dt, n, 0, 44, 1, 0) : result(m, dt, n, 0), g = normal(m, dt, c, 0, 42, 1, 1);
    struct tensor b = normal(m, dt, c, 0, 43, 1, 0), mean = result(m, DTYPE_F32, rows, 0), rstd = result(m, DTYPE_F32, rows, 0);
    char name[80];

    BOTH {
        struct norm_fwd p = {.t = rows, .c = c, .x_heads = {heads, ld}, .y_heads = {heads, ld}, .eps = 1e-5f, .x = on(m, w, &x),
                             .residual = how == 1 || how == 2 ? on(m, w, &r) : NULL, .drop = how == 2 ? &d : NULL,
                             .gamma = on(m, w, &g), .beta = rms ? NULL : on(m, w, &b), .y = on(m, w, &y),
                             .mean = rms ? NULL : on(m, w, &mean), .rstd = on(m, w, &rstd)};
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

static void norm_backward(struct made *m, enum dtype dt, bool rms, int how, int64_t rows, int64_t c)
{
    int64_t heads = how == 3 ? 3 : 0, ld = 3 * c + 8, n = heads ? rows / 3 * ld : rows * c;
    struct dropout d = {.p = 0.2f, .key = 77, .stream = 5, .row0 = 1000, .cut = 3, .first = 2, .every = 40, .at = {6, 33}};
    struct tensor dy = normal(m, dt, n, 0, 50, 1, 0), dres = normal(m, dt, n, 0, 51, 1, 0), s = normal(m, dt, n, 0, 52, 1, 0.3f);
    struct tensor mean = normal(m, DTYPE_F32, rows, 0, 53, 0.1f, 0.3f), rstd = normal(m, DTYPE_F32, rows, 0, 54, 0.05f, 1);
    struct tensor g = normal(m, dt, c, 0, 55, 1, 1), ds = result(m, dt, n, 0), dx = result(m, dt, n, 0);
    struct tensor dg = normal(m, DTYPE_F32, c, 0, 56, 1, 0), db = normal(m, DTYPE_F32, c, 0, 57, 1, 0);
    char name[80];

    BOTH {
        struct norm_bwd p = {.t = rows, .c = c, .heads = {heads, ld}, .dy = on(m, w, &dy),
                             .dres = how == 1 || how == 2 ? on(m, w, &dres) : NULL,
                             .s = on(m, w, &s), .mean = rms ? NULL : on(m, w, &mean), .rstd = on(m, w, &rstd),
                             .gamma = on(m, w, &g), .drop = how == 2 ? &d : NULL, .ds = how == 2 ? on(m, w, &ds) : on(m, w, &dy),
                             .dx = how == 2 ? on(m, w, &dx) : NULL, .dgamma = on(m, w, &dg), .dbeta = rms ? NULL : on(m, w, &db)};
        CHECK(m, (rms ? OPS(m, w)->rmsnorm_bwd : OPS(m, w)->layernorm_bwd)(DEV(m, w), dt, &p, &m->e));
    }
    near(m, name_of(name, "stream's gradient", dt, rows, c), how == 2 ? &ds : &dy, 1e-5, 1);
    if (how == 2)
        near(m, name_of(name, "branch's gradient", dt, rows, c), &dx, 1e-5, 1);
    near(m, name_of(name, "gamma's gradient", dt, rows, c), &dg, 1e-5, sqrt((double)rows));
    near(m, name_of(name, "beta's gradient", dt, rows, c), &db, 1e-5, sqrt((double)rows));
}

static void norms(struct twins *t)
{
    static const int64_t cs[] = {1, 64, 100, 256, 264, 1601, 4100, 8192};

    for (int k = 0; k < 8; k++)
        for (int how = 0; how < 4; how++)
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

static void xent_with(struct made *m, enum dtype dt, int64_t rows, int64_t v, int64_t ld, bool split, bool gradient)
{
    struct tensor x = normal(m, dt, rows * ld, 0, 60, 3, 1), scale = normal(m, DTYPE_F32, rows, 0, 61, 0.1f, 0.5f);
    struct tensor loss = result(m, DTYPE_F32, rows, 0), max = result(m, DTYPE_F32, rows, 0), sum = result(m, DTYPE_F32, rows, 0);
    struct tensor at = result(m, DTYPE_F32, rows, 0);
    int target = ids(m, rows, 62, split ? 3 * v : v, true);
    char name[80];
    float none = 0;

    BOTH {
        struct xent p = {rows, v, ld, split ? v : 0, on(m, w, &x), m->on[w][target], gradient ? on(m, w, &scale) : NULL};
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
        near(m, name_of(name, "largest logit", dt, rows, v), &max, 0, 0);
        near(m, name_of(name, "sum", dt, rows, v), &sum, 2e-6, 0);
        near(m, name_of(name, "target's logit", dt, rows, v), &at, 0, 0);
    }
    near(m, name_of(name, "loss", dt, rows, v), &loss, 2e-6, 1);
    near(m, name_of(name, "logits' gradient", dt, rows, v), &x, gradient ? 4e-6 : 1e-30, 1e-3);
}

static void xent(struct twins *t)
{
    static const int64_t shape[][3] = {{5, 1, 1}, {9, 50, 64}, {4, 501, 503}, {3, 9001, 9088}};

    for (int k = 0; k < 32; k++) {
        struct made m = {.t = t};
        const int64_t *s = shape[k / 8];
        xent_with(&m, both_types[k % 2], s[0] * t->scale, s[1], s[2], k & 2, k & 4);
        forget(&m);
    }
}

/* ---- matrix products ---- */

struct product {
    int64_t m, n, k;
    bool ta, tb, wide, bias;
    float beta;
    enum act act, dact;
    int64_t pad;
    bool ragged;
};

static void product_with(struct made *m, enum dtype dt, const struct product *q, bool plain)
{
    enum dtype dc = q->wide ? DTYPE_F32 : dt;
    int64_t lda = (q->ta ? q->m : q->k) + q->pad, ldb = (q->tb ? q->k : q->n) + q->pad;
    int64_t ldc = q->n + (q->act || q->dact ? 0 : q->pad);
    struct tensor a = normal(m, dt, (q->ta ? q->k : q->m) * lda, 0, 70, 1, 0);
    struct tensor b = normal(m, dt, (q->tb ? q->n : q->k) * ldb, 0, 71, 1, 0);
    struct tensor c = normal(m, dc, q->m * ldc, 0, 72, 1, 0), bias = normal(m, dt, q->n, 0, 73, 1, 0);
    struct tensor aux = result(m, dt, q->m * q->n, 0), daux = normal(m, dt, q->m * q->n, 0, 74, 1, 0);
    double s = 1 + sqrt((double)q->k);
    char name[80];

    BOTH {
        struct matmul p = {.m = q->m, .n = q->n, .k = q->k, .trans_a = q->ta, .trans_b = q->tb, .dt = dt, .dt_c = dc,
                           .a = on(m, w, &a), .b = on(m, w, &b), .c = on(m, w, &c), .lda = lda, .ldb = ldb, .ldc = ldc,
                           .beta = q->beta, .bias = q->bias ? on(m, w, &bias) : NULL, .act = q->act,
                           .aux = q->act ? on(m, w, &aux) : NULL, .dact = q->dact,
                           .dact_aux = q->dact ? on(m, w, &daux) : NULL, .ragged = q->ragged};
        CHECK(m, (plain && w && m->t->plain ? m->t->plain : OPS(m, w)->matmul)(DEV(m, w), &p, &m->e));
    }
    /* an activation of the product: of the rounded one or not */
    near(m, name_of(name, "product", dt, q->m, q->n), &c, dt == DTYPE_BF16 && (q->act || q->dact) ? 0x1p-7 : 3e-6, s);
    if (q->act)
        near(m, name_of(name, "product before its activation", dt, q->m, q->n), &aux, 3e-6, s);
}

static const struct product products[] = {
    {.m = 1, .n = 1, .k = 1}, {.m = 70, .n = 33, .k = 40, .tb = true}, {.m = 64, .n = 128, .k = 16, .bias = true},
    {.m = 70, .n = 65, .k = 33, .tb = true, .bias = true, .act = ACT_GELU_TANH},
    {.m = 64, .n = 64, .k = 64, .tb = true, .bias = true, .act = ACT_GELU_TANH},
    {.m = 64, .n = 64, .k = 24, .tb = true, .bias = true, .act = ACT_SILU}, {.m = 33, .n = 72, .k = 8, .dact = ACT_GELU_TANH},
    {.m = 32, .n = 64, .k = 16, .dact = ACT_GELU_TANH}, {.m = 33, .n = 40, .k = 70, .ta = true, .wide = true, .beta = 1},
    {.m = 64, .n = 32, .k = 48, .ta = true, .wide = true, .beta = 1}, {.m = 64, .n = 32, .k = 48, .ta = true, .wide = true},
    {.m = 20, .n = 24, .k = 31, .ta = true, .tb = true, .pad = 5}, {.m = 20, .n = 24, .k = 40, .wide = true, .bias = true},
    {.m = 71, .n = 24, .k = 40, .tb = true, .bias = true, .ragged = true}, {.m = 16, .n = 40, .k = 32, .ragged = true},
    {.m = 24, .n = 40, .k = 91, .ta = true, .wide = true, .beta = 1, .ragged = true},
    {.m = 24, .n = 40, .k = 64, .ta = true, .wide = true, .ragged = true},
    {.m = 8, .n = 24, .k = 0, .bias = true}, {.m = 9, .n = 24, .k = 0, .tb = true, .beta = 1}, {.m = 0, .n = 24, .k = 3},
};

static void matmul(struct twins *t)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        for (int k = 0; k < 4; k++) {
            struct made m = {.t = t};
            struct product q = products[i];
            if (q.k > 1 && t->scale > 1) /* whole tiles stay so */
                q.m *= 8, q.n *= 8, q.k *= 8;
            product_with(&m, both_types[k % 2], &q, k > 1);
            forget(&m);
        }
}

/* ---- FP8 ---- */

static struct tensor bytes_of(struct made *m, int64_t n)
{
    return result(m, DTYPE_F32, (n + 3) / 4, 0);
}

/* A matrix in FP8 with its scales, as quantize makes it; and the same transposed. */
static void quantized(struct made *m, struct tensor q[2], const struct tensor *x, enum fp8 to, const struct tensor *cells,
                      int64_t rows, int64_t cols)
{
    q[0] = bytes_of(m, rows * cols);
    q[1] = bytes_of(m, rows * cols);
    BOTH {
        float *cell = on(m, w, cells);
        struct fp8_quantize p = {rows, cols, to, x->dt, on(m, w, x), on(m, w, &q[0]), on(m, w, &q[1]), cell + FP8_SCALE,
                                 cell + FP8_HISTORY};
        CHECK(m, OPS(m, w)->fp8_quantize(DEV(m, w), &p, &m->e));
    }
}

static void fp8_conversions(struct twins *t)
{
    static const int64_t shape[][2] = {{1, 1}, {16, 128}, {37, 45}, {130, 259}, {128, 136}};

    for (int k = 0; k < 20; k++) {
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        enum fp8 to = k / 2 % 2 ? FP8_E5M2 : FP8_E4M3;
        int64_t rows = shape[k / 4][0] * t->scale, cols = shape[k / 4][1];
        float first[8] = {fp8_max(to), 0, 0, 0, 0.5f, 3, 0, 9};
        struct tensor x = normal(&m, dt, rows * cols, 0, 100, 3, 0), cells = tensor_of(&m, DTYPE_F32, 8, 0, first), q[2];
        char s[80];
        BOTH {
            struct fp8_update u = {on(&m, w, &cells), 1, 8, 4, 0, false, true};
            float *now = (float *)on(&m, w, &cells) + FP8_NOW;
            CHECK(&m, OPS(&m, w)->fp8_amax(DEV(&m, w), dt, now, on(&m, w, &x), rows * cols, &m.e));
            CHECK(&m, OPS(&m, w)->fp8_update(DEV(&m, w), &u, &m.e));
        }
        quantized(&m, q, &x, to, &cells, rows, cols);
        near(&m, name_of(s, "FP8", dt, rows, cols), &q[0], 0, 1);
        near(&m, name_of(s, "FP8 transposed", dt, rows, cols), &q[1], 0, 1);
        near(&m, name_of(s, "scales", dt, rows, cols), &cells, 0, 1);
        BOTH {
            struct fp8_update u = {on(&m, w, &cells), 1, 8, 1 + k % 4, k % 3, k % 2, false};
            CHECK(&m, OPS(&m, w)->fp8_update(DEV(&m, w), &u, &m.e));
        }
        near(&m, name_of(s, "new scales", dt, rows, cols), &cells, 0, 1);
        forget(&m);
    }
}

static void fp8_product_with(struct made *m, const struct product *q, enum fp8 fa, bool plain)
{
    enum dtype dc = q->wide ? DTYPE_F32 : DTYPE_BF16;
    float first[2][5] = {{fp8_max(fa), 0, 64, 1.0f / 64}, {448, 0, 32, 1.0f / 32}};
    struct tensor a = normal(m, DTYPE_BF16, q->m * q->k, 0, 110, 1, 0), b = normal(m, DTYPE_BF16, q->n * q->k, 0, 111, 1, 0);
    struct tensor sa = tensor_of(m, DTYPE_F32, 5, 0, first[0]), sb = tensor_of(m, DTYPE_F32, 5, 0, first[1]), qa[2], qb[2];
    struct tensor c = normal(m, dc, q->m * q->n, 0, 112, 1, 0), bias = normal(m, DTYPE_BF16, q->n, 0, 113, 1, 0);
    struct tensor aux = result(m, DTYPE_BF16, q->m * q->n, 0), daux = normal(m, DTYPE_BF16, q->m * q->n, 0, 114, 1, 0);
    double s = 1 + sqrt((double)q->k);
    char name[80];

    quantized(m, qa, &a, fa, &sa, q->m, q->k);
    quantized(m, qb, &b, FP8_E4M3, &sb, q->n, q->k);
    BOTH {
        struct matmul p = {.m = q->m, .n = q->n, .k = q->k, .trans_b = true, .dt = DTYPE_BF16, .dt_c = dc, .a = on(m, w, &qa[0]),
                           .b = on(m, w, &qb[0]), .c = on(m, w, &c), .beta = q->beta, .bias = q->bias ? on(m, w, &bias) : NULL,
                           .act = q->act, .aux = q->act ? on(m, w, &aux) : NULL, .dact = q->dact,
                           .dact_aux = q->dact ? on(m, w, &daux) : NULL, .fp8_a = fa, .fp8_b = FP8_E4M3,
                           .inv_a = (float *)on(m, w, &sa) + FP8_INVERSE, .inv_b = (float *)on(m, w, &sb) + FP8_INVERSE};
        CHECK(m, (plain && w && m->t->plain ? m->t->plain : OPS(m, w)->matmul)(DEV(m, w), &p, &m->e));
    }
    double tol = m->t->short_sums ? 2e-3 : 3e-6;
    near(m, name_of(name, "FP8 product", dc, q->m, q->n), &c, q->act || q->dact ? 0x1p-7 : tol, s);
    if (q->act)
        near(m, name_of(name, "FP8 product before its activation", dc, q->m, q->n), &aux, tol, s);
}

static void fp8_products(struct twins *t)
{
    static const struct product all[] = {
        {.m = 64, .n = 48, .k = 32, .bias = true}, {.m = 80, .n = 64, .k = 96, .bias = true, .act = ACT_GELU_TANH},
        {.m = 32, .n = 64, .k = 64, .dact = ACT_GELU_TANH}, {.m = 64, .n = 32, .k = 48, .wide = true, .beta = 1},
        {.m = 33, .n = 20, .k = 24}, {.m = 48, .n = 32, .k = 16, .wide = true},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int k = 0; k < 4; k++) {
            struct made m = {.t = t};
            struct product q = all[i];
            if (t->scale > 1)
                q.m *= 8, q.n *= 8, q.k *= 8;
            fp8_product_with(&m, &q, k % 2 ? FP8_E5M2 : FP8_E4M3, k > 1);
            forget(&m);
        }
}

/* ---- attention ---- */

struct heads {
    int64_t b, t, t_kv, heads, kv, d;
    float p;
    bool documents;
};

static struct attention_view view(void *p, int64_t t, int64_t row)
{
    return (struct attention_view){p, t * row, row};
}

/* Where the document of each of (b, t) tokens at `at` and on begins: in front of them, then among them. */
static int documents(struct made *m, int64_t b, int64_t t, int64_t at)
{
    int32_t *v = host_of(m, (size_t)(b * t) * 4);

    for (int64_t i = 0; i < b * t; i++)
        v[i] = i % t == 0 ? (int32_t)(at / 4) : number(92, i) % 12 == 0 ? (int32_t)(at + i % t) : v[i - 1];
    return give(m, v, (size_t)(b * t) * 4);
}

/* q, k and v packed in rows when as many keys as queries are there, else apart; the gradients likewise. */
static void attention_with(struct made *m, enum dtype dt, const struct heads *h)
{
    int64_t qw = h->heads * h->d, kw = h->kv * h->d, row = qw + 2 * kw, n = h->b * h->t_kv * row, no = h->b * h->t * qw;
    size_t es = dtype_size(dt);
    struct tensor qkv = normal(m, dt, n, 0, 80, 1, 0), o = result(m, dt, no, 0);
    struct tensor lse = result(m, DTYPE_F32, h->b * h->heads * h->t, 0);
    struct tensor dout = normal(m, dt, no, 0, 81, 1, 0), dqkv = normal(m, dt, n, 0, 82, 0, 0);
    struct dropout d = {.p = h->p, .key = 99, .stream = 3, .row0 = 40};
    int start = documents(m, h->b, h->t, 0);
    char name[80];

    BOTH {
        char *base = on(m, w, &qkv), *g = on(m, w, &dqkv);
        struct attention p = {.b = h->b, .t = h->t, .heads = h->heads, .kv_heads = h->kv, .d = h->d, .t_kv = h->t_kv,
                              .scale = 1 / sqrtf((float)h->d), .q = view(base, h->t_kv, row),
                              .k = view(base + (size_t)qw * es, h->t_kv, row),
                              .v = view(base + (size_t)(qw + kw) * es, h->t_kv, row), .o = view(on(m, w, &o), h->t, qw),
                              .lse = on(m, w, &lse), .drop = h->p > 0 ? &d : NULL,
                              .start = h->documents ? m->on[w][start] : NULL};
        CHECK(m, OPS(m, w)->attention_fwd(DEV(m, w), dt, &p, &m->e));
        CHECK(m, OPS(m, w)->attention_bwd(DEV(m, w), dt, &p, view(on(m, w, &dout), h->t, qw), view(g, h->t_kv, row),
                                          view(g + (size_t)qw * es, h->t_kv, row),
                                          view(g + (size_t)(qw + kw) * es, h->t_kv, row), &m->e));
    }
    near(m, name_of(name, "attention", dt, h->t, h->d), &o, dt == DTYPE_BF16 ? 0x1p-7 : 1e-5, 1);
    near(m, name_of(name, "log-sum-exp", dt, h->t, h->d), &lse, dt == DTYPE_BF16 ? 2e-5 : 2e-6, 1);
    near(m, name_of(name, "attention's gradients", dt, h->t, h->d), &dqkv, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
}

/* Queries of a half with keys of both, as blocks: the first half fully seen, the other one as far as it is, which comes first
 * with documents. */
static void attention_blocks(struct made *m, enum dtype dt, const struct heads *h)
{
    int64_t qw = h->heads * h->d, kw = h->kv * h->d, n = h->b * h->t * kw, no = h->b * h->t * qw;
    struct tensor q = normal(m, dt, no, 0, 83, 1, 0), k[2] = {normal(m, dt, n, 0, 84, 1, 0), normal(m, dt, n, 0, 85, 1, 0)};
    struct tensor v[2] = {normal(m, dt, n, 0, 86, 1, 0), normal(m, dt, n, 0, 87, 1, 0)}, sum = result(m, DTYPE_F32, no, 0);
    struct tensor o = result(m, dt, no, 0), lse = result(m, DTYPE_F32, h->b * h->heads * h->t, 0);
    struct tensor dout = normal(m, dt, no, 0, 88, 1, 0), dq = normal(m, DTYPE_F32, no, 0, 89, 1, 0);
    struct tensor dk = normal(m, DTYPE_F32, n, 0, 90, 1, 0), dv = normal(m, DTYPE_F32, n, 0, 91, 1, 0);
    struct dropout d = {.p = h->p, .key = 99, .stream = 3, .row0 = 40};
    int start = documents(m, h->b, h->t, 2 * h->t);
    char name[80];

    BOTH {
        struct attention p = {.b = h->b, .t = h->t, .heads = h->heads, .kv_heads = h->kv, .d = h->d, .t_kv = h->t,
                              .scale = 1 / sqrtf((float)h->d), .q = view(on(m, w, &q), h->t, qw),
                              .o = view(on(m, w, &sum), h->t, qw),
                              .lse = on(m, w, &lse), .drop = h->p > 0 ? &d : NULL, .all_heads = h->heads + 2, .first_head = 1,
                              .all_t = 3 * h->t, .first_query = 2 * h->t,
                              .start = h->documents ? m->on[w][start] : NULL};
        for (int j = 0; j < 2; j++) {
            int i = h->documents ? 1 - j : j;
            p.k = view(on(m, w, &k[i]), h->t, kw);
            p.v = view(on(m, w, &v[i]), h->t, kw);
            p.first_key = i ? 2 * h->t : 0;
            p.full = i == 0;
            p.block = j ? ATTENTION_FURTHER : ATTENTION_FIRST;
            CHECK(m, OPS(m, w)->attention_fwd(DEV(m, w), dt, &p, &m->e));
        }
        CHECK(m, OPS(m, w)->vec_cast(DEV(m, w), on(m, w, &o), dt, on(m, w, &sum), DTYPE_F32, no, &m->e));
        p.o.p = on(m, w, &o);
        for (int i = 0; i < 2; i++) {
            p.k = view(on(m, w, &k[i]), h->t, kw);
            p.v = view(on(m, w, &v[i]), h->t, kw);
            p.first_key = i ? 2 * h->t : 0;
            p.full = i == 0;
            CHECK(m, OPS(m, w)->attention_bwd(DEV(m, w), dt, &p, view(on(m, w, &dout), h->t, qw), view(on(m, w, &dq), h->t, qw),
                                              view(on(m, w, &dk), h->t, kw), view(on(m, w, &dv), h->t, kw), &m->e));
        }
    }
    near(m, name_of(name, "attention by blocks", dt, h->t, h->d), &sum, dt == DTYPE_BF16 ? 0x1p-7 : 1e-5, 1);
    near(m, name_of(name, "their log-sum-exp", dt, h->t, h->d), &lse, 2e-6, 1);
    near(m, name_of(name, "gradients of queries", dt, h->t, h->d), &dq, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
    near(m, name_of(name, "gradients of keys", dt, h->t, h->d), &dk, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
    near(m, name_of(name, "gradients of values", dt, h->t, h->d), &dv, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
}

static void attention(struct twins *t)
{
    static const struct heads shape[] = {
        {2, 5, 5, 2, 1, 5, 0, false},     {1, 1, 40, 3, 3, 64, 0, false},      {1, 70, 70, 2, 2, 64, 0, false},
        {1, 66, 66, 4, 2, 32, 0.3f, false}, {1, 33, 70, 2, 1, 128, 0, false},  {1, 20, 20, 1, 1, 200, 0.1f, false},
        {2, 130, 130, 2, 1, 64, 0, false}, {1, 64, 64, 2, 2, 64, 0.2f, false}, {1, 80, 80, 1, 1, 96, 0, false},
    };

    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int d = 0; d < 4; d++) {
            struct made m = {.t = t};
            struct heads h = shape[i];
            if (t->scale > 1)
                h.b *= 3, h.t *= 5, h.t_kv *= 5;
            h.documents = d > 1 && h.t == h.t_kv;
            if (d > 1 && !h.documents)
                break;
            attention_with(&m, both_types[d % 2], &h);
            forget(&m);
            m = (struct made){.t = t};
            attention_blocks(&m, both_types[d % 2], &h);
            forget(&m);
        }
}

/* ---- a mixture of experts ---- */

struct routed {
    int64_t t, experts, k, c;
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

    CHECK(m, device_get(m->t->cpu, a, m->on[0][block], (size_t)n * 4, &m->e));
    CHECK(m, device_get(m->t->other, b, m->on[1][block], (size_t)n * 4, &m->e));
    for (int64_t i = 0; i < n && !m->t->wrong[0]; i++)
        if (a[i] != b[i])
            wrong(m->t, "%s: element %lld of %lld is %d, not %d", what, (long long)i, (long long)n, b[i], a[i]);
    free(a);
    free(b);
}

/* how: 0 any number of rows an expert; else of half of those by even use the largest, the first, padded ones. */
static void route_with(struct made *m, enum dtype dt, const struct routed *r, bool pre, bool losses, int how)
{
    const struct route p = {
        r->t, r->experts, r->k, pre, .capacity = how ? r->t * r->k / (2 * r->experts) + 1 : 0, .by_position = how == 2,
        .pad = how == 3,
    };
    int64_t n = r->t * r->k, rows = route_rows(&p);
    struct tensor logits = normal(m, DTYPE_F32, r->t * r->experts, 0, 100, 2, 0.5f), lse = result(m, DTYPE_F32, r->t, 0);
    struct tensor weight = result(m, DTYPE_F32, n, 0), dweight = result(m, DTYPE_F32, n, 0);
    struct tensor balance = normal(m, DTYPE_F32, r->experts, 0, 101, 0.1f, 0), dlogits = result(m, dt, r->t * r->experts, 0);
    struct tensor x = normal(m, dt, r->t * r->c, 0, 102, 1, 0), out = normal(m, dt, rows * r->c, 0, 103, 1, 0);
    struct tensor in = result(m, dt, rows * r->c, 0), y = result(m, dt, r->t * r->c, 0), dx = result(m, dt, rows * r->c, 0);
    struct tensor plain = result(m, dt, r->t * r->c, 0);
    int choice = indices(m, n), place = indices(m, n), from = indices(m, rows), count = indices(m, r->experts);
    float same = 0.25f;
    char s[80];

    BOTH {
        struct route_grad g = {on(m, w, &logits), on(m, w, &lse), on(m, w, &weight), on(m, w, &dweight),
                               losses ? on(m, w, &balance) : NULL, m->on[w][choice], losses ? 0.01f : 0};

        for (int i = 0; i < 3 && r->experts > 2; i++) /* equal ones: the lower number comes first */
            CHECK(m, device_put(DEV(m, w), (char *)on(m, w, &logits) + i * 4, &same, 4, &m->e));
        CHECK(m, OPS(m, w)->route_fwd(DEV(m, w), &p, on(m, w, &logits), on(m, w, &lse), m->on[w][choice], on(m, w, &weight),
                                      &m->e));
        CHECK(m, OPS(m, w)->route_place(DEV(m, w), &p, m->on[w][choice], on(m, w, &weight), m->on[w][place],
                                        m->on[w][from], m->on[w][count], &m->e));
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

static void route(struct twins *t)
{
    static const struct routed shape[] = {{5, 1, 1, 3}, {40, 8, 2, 64}, {300, 5, 3, 33}, {65, 70, 6, 264}, {9, 3, 3, 16}};

    for (int k = 0; k < 40; k++) {
        struct made m = {.t = t};
        struct routed r = shape[k / 4 % 5];
        r.t *= t->scale;
        route_with(&m, both_types[k % 2], &r, k & 2, k & 1, k < 20 ? 0 : 1 + k % 3);
        forget(&m);
    }
}

const struct twins_case train_twins_cases[] = {
    {"elements", elements},
    {"activations", activations},
    {"dropout", dropouts},
    {"sums", sums},
    {"adamw", adamw},
    {"adamw, bf16 weights", adamw_rounded_weights},
    {"embedding", embedding},
    {"rope", rope},
    {"norms", norms},
    {"cross-entropy", xent},
    {"matmul", matmul},
    {"fp8", fp8_conversions},
    {"fp8 products", fp8_products},
    {"attention", attention},
    {"route", route},
    {NULL, NULL},
};
