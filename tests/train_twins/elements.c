/* Ops on single elements, sums over them, the optimizer. */
#include "kernels/eight_bit.h"
#include "tests/train_twins/train_twins.h"

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

void twins_elements(struct twins *t)
{
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int d = 0; d < 2; d++)
            for (int64_t off = 0; off < 2; off++) {
                struct made m = {.t = t};
                elements_of(&m, both_types[d], lengths[i] * (i > 3 ? t->scale : 1), off);
                forget(&m);
            }
}

void twins_activations(struct twins *t)
{
    for (enum act a = (enum act)(ACT_NONE + 1); a < ACT_KINDS; a = (enum act)(a + 1))
        for (int k = 0; k < 4; k++) {
            struct made m = {.t = t};
            enum dtype dt = both_types[k % 2];
            int64_t rows = 5 * t->scale, f = k < 2 ? 37 : 512, n = rows * f;
            char s[80];
            struct tensor x = normal(&m, dt, 2 * n, k < 2, 4, 4, 0), dy = normal(&m, dt, n, 0, 5, 1, 0);
            struct tensor y = result(&m, dt, 2 * n, 0), dx = result(&m, dt, 2 * n, k < 2), gy = result(&m, dt, n, 0);
            struct tensor gx = result(&m, dt, 2 * n, 0);
            BOTH {
                CHECK(&m, OPS(&m, w)->act_fwd(DEV(&m, w), dt, a, on(&m, w, &y), on(&m, w, &x), 2 * n, &m.e));
                CHECK(&m, OPS(&m, w)->act_bwd(DEV(&m, w), dt, a, on(&m, w, &dx), on(&m, w, &y), on(&m, w, &x), 2 * n,
                                              &m.e));
                CHECK(&m, OPS(&m, w)->glu_fwd(DEV(&m, w), dt, a, on(&m, w, &gy), on(&m, w, &x), rows, f, &m.e));
                CHECK(&m, OPS(&m, w)->glu_bwd(DEV(&m, w), dt, a, on(&m, w, &gx), on(&m, w, &dy), on(&m, w, &x), rows, f,
                                              &m.e));
            }
            near(&m, name_of(s, "act", dt, a, f), &y, 1e-6, 1);
            near(&m, name_of(s, "act backward", dt, a, f), &dx, dt == DTYPE_BF16 ? 0x1p-7 : 3e-6, 1); /* its dy was rounded */
            near(&m, name_of(s, "glu", dt, a, f), &gy, 2e-6, 1);
            near(&m, name_of(s, "glu backward", dt, a, f), &gx, 4e-6, 1);
            forget(&m);
        }
}

void twins_dropout(struct twins *t)
{
    static const float ps[] = {0, 0.1f, 0.5f, 0.999f};

    for (int k = 0; k < 8; k++) {
        struct made m = {.t = t};
        enum dtype dt = both_types[k % 2];
        int64_t rows = 6 * t->scale, c = k < 4 ? 203 : 96;
        struct dropout d = {
            .p = ps[k / 2], .key = 0x123456789abcdefull, .stream = 0xfedcba987654321ull, .row0 = (int64_t)k << 33, .every = 7,
        };
        int now = dropout_now(&m);
        char s[80];
        struct tensor x = normal(&m, dt, rows * c, 0, 6, 1, 0), y = result(&m, dt, rows * c, 0);
        BOTH {
            d.now = k % 3 ? m.on[w][now] : NULL;
            CHECK(&m, OPS(&m, w)->vec_dropout(DEV(&m, w), dt, on(&m, w, &y), on(&m, w, &x), rows, c, &d, &m.e));
        }
        near(&m, name_of(s, "dropout", dt, rows, c), &y, 0, 1);
        forget(&m);
    }
}

void twins_sums(struct twins *t)
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

void twins_updates(struct twins *t)
{
    for (int k = 0; k < 16 * UPDATE_KINDS; k++) {
        struct made m = {.t = t};
        enum update_kind kind = (enum update_kind)(k / 16);
        enum dtype m_type = (enum dtype)(k / 4 % 2), v_type = (enum dtype)(k / 8 % 2);
        int way = k % 4;
        int64_t n = (way < 2 ? 1003 : 64) * t->scale, off = way % 2;
        float one = 0.37f;
        char s[80];
        struct tensor w_ = normal(&m, DTYPE_F32, n, off, 9, 1, 0), m_ = normal(&m, m_type, n, off, 10, 0, 0);
        struct tensor v_ = normal(&m, v_type, n, off, 11, 0, 0), low = result(&m, DTYPE_BF16, n, off), g[3];
        struct tensor scale = tensor_of(&m, DTYPE_F32, 1, 0, &one);
        for (int i = 0; i < 3; i++)
            g[i] = normal(&m, DTYPE_F32, n, off, 12 + (uint64_t)i, 0.1f, 0);
        for (int i = 0; i < 3; i++)
            BOTH {
                struct update a = {
                    i + 1, 1e-2, 0.9, 0.95, 1e-8, 0.1, way < 2 ? on(&m, w, &scale) : NULL, {0}, kind, m_type, v_type, NULL, NULL,
                };
                CHECK(&m, OPS(&m, w)->update(DEV(&m, w), &a, on(&m, w, &w_), on(&m, w, &m_),
                                             kind == UPDATE_ADAMW ? on(&m, w, &v_) : NULL, on(&m, w, &g[i]),
                                             way == 3 ? NULL : on(&m, w, &low), n, &m.e));
            }
        near(&m, name_of(s, "weights", DTYPE_F32, n, k), &w_, 1e-6, 1);
        near(&m, name_of(s, "moments", m_type, n, k), &m_, 1e-6, 1e-3);
        near(&m, name_of(s, "second moments", v_type, n, k), &v_, 1e-6, 1e-5);
        if (way < 3)
            near(&m, name_of(s, "bf16 weights", DTYPE_BF16, n, k), &low, 1e-6, 1);
        forget(&m);
    }
}

/* bf16 weights alone, of a matrix or of some of its columns: the same bits. */
void twins_updates_rounded(struct twins *t)
{
    for (int k = 0; k < 6; k++) {
        enum update_kind kind = (enum update_kind)(k % UPDATE_KINDS);
        enum dtype types = (enum dtype)(k / 3);
        struct made m = {.t = t};
        int64_t cols = k % 3 ? 37 : 96, n = 40 * cols * t->scale, off = k % 2;
        struct tensor low = normal(&m, DTYPE_BF16, n, off, 9, 1, 0), m_ = normal(&m, types, n, off, 10, 0, 0);
        struct tensor v_ = normal(&m, types, n, off, 11, 0, 0), g[3];
        char s[80];
        for (int i = 0; i < 3; i++)
            g[i] = normal(&m, DTYPE_F32, n, off, 12 + (uint64_t)i, 0.1f, 0);
        for (int i = 0; i < 3; i++)
            BOTH {
                struct update a = {
                    i + 1, 1e-3, 0.9, 0.95, 1e-8, 0.1, NULL, {77, 5 * k, cols, k % 3 == 2 ? 128 : cols}, kind, types, types,
                    NULL, NULL,
                };
                CHECK(&m, OPS(&m, w)->update(DEV(&m, w), &a, NULL, on(&m, w, &m_), on(&m, w, &v_), on(&m, w, &g[i]),
                                            on(&m, w, &low), n, &m.e));
            }
        near(&m, name_of(s, "rounded weights", DTYPE_BF16, n, k), &low, 0, 0);
        near(&m, name_of(s, "their moments", types, n, k), &m_, 0, 0);
        forget(&m);
    }
}

/* Second moments by rows and columns, and of a vector (columns 0), over three updates. */
void twins_factored(struct twins *t)
{
    static const int64_t shape[][2] = {{1, 1}, {37, 5}, {64, 300}, {700, 33}, {3, 2100}, {1000, 0}};

    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++) {
        struct made m = {.t = t};
        bool vector = !shape[k][1];
        int64_t rows = shape[k][0] * t->scale, cols = vector ? 1 : shape[k][1], n = rows * cols;
        struct tensor row = normal(&m, DTYPE_F32, rows, k % 2, 13, 0, 0), col = normal(&m, DTYPE_F32, cols, 0, 14, 0, 0), g[3];
        char s[80];
        for (int i = 0; i < 3; i++) {
            struct factored p = {rows, cols, pow(i + 1, -0.8), 1e-3};
            g[i] = normal(&m, DTYPE_F32, n, k % 2, 15 + (uint64_t)i, 0.1f, 0);
            BOTH CHECK(&m, OPS(&m, w)->factored(DEV(&m, w), &p, on(&m, w, &g[i]), on(&m, w, &row),
                                               vector ? NULL : on(&m, w, &col), &m.e));
            near(&m, name_of(s, "over the root", DTYPE_F32, rows, shape[k][1]), &g[i], 2e-6, 1);
        }
        near(&m, name_of(s, "means of rows", DTYPE_F32, rows, shape[k][1]), &row, 2e-6, 1e-3);
        near(&m, name_of(s, "means of columns", DTYPE_F32, rows, shape[k][1]), &col, 2e-6, 1e-3);
        forget(&m);
    }
}

/* Moments of eight bits, or one of them: the same codes. */
void twins_updates_eight_bits(struct twins *t)
{
    for (int k = 0; k < 3 * UPDATE_KINDS; k++) {
        struct made m = {.t = t};
        enum update_kind kind = (enum update_kind)(k / 3);
        bool codes[2] = {k % 3 != 1, k % 3 != 2};
        int64_t n = (k % 2 ? 1003 : 1024) * t->scale, blocks = eight_bit_blocks(n);
        struct tensor w_ = normal(&m, DTYPE_F32, n, 0, 9, 1, 0), low = result(&m, DTYPE_BF16, n, 0), of[2], scale[2];
        char s[80];
        if (kind != UPDATE_ADAMW && !codes[0]) {
            forget(&m);
            continue;
        }
        for (int i = 0; i < 2; i++) { /* codes lie in floats */
            of[i] = normal(&m, DTYPE_F32, codes[i] ? (n + 3) / 4 : n, 0, 10, 0, 0);
            scale[i] = normal(&m, DTYPE_F32, blocks, 0, 11, 0, 0);
        }
        for (int i = 0; i < 3; i++) {
            struct tensor g = normal(&m, DTYPE_F32, n, 0, 12 + (uint64_t)i, 0.1f, 0);
            BOTH {
                struct update a = {
                    i + 1, 1e-2, 0.9, 0.95, 1e-8, 0.1, NULL, {0}, kind, codes[0] ? DTYPE_8BIT : DTYPE_F32,
                    codes[1] ? DTYPE_8BIT : DTYPE_F32, codes[0] ? on(&m, w, &scale[0]) : NULL,
                    codes[1] ? on(&m, w, &scale[1]) : NULL,
                };
                CHECK(&m, OPS(&m, w)->update(DEV(&m, w), &a, on(&m, w, &w_), on(&m, w, &of[0]), on(&m, w, &of[1]),
                                             on(&m, w, &g), on(&m, w, &low), n, &m.e));
            }
            near(&m, name_of(s, "weights by codes", DTYPE_F32, n, k), &w_, 1e-6, 1);
        }
        near(&m, name_of(s, "bf16 weights by codes", DTYPE_BF16, n, k), &low, 1e-6, 1);
        for (int i = 0; i < 2; i++)
            if (codes[i])
                near(&m, name_of(s, "scales", DTYPE_F32, n, k), &scale[i], 1e-6, 1e-6);
        forget(&m);
    }
}
