/* Norms with residual and dropout, embeddings, rotary positions, cross-entropy. */
#include "tests/kernels.h"

static const int64_t shapes[][2] = {{1, 1}, {2, 3}, {3, 16}, {5, 63}, {33, 64}, {40, 100}, {70, 768}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static double plus; /* added to the weights of norms */

/* One row of the reference: y from s; mean and rstd. */
static void norm_row(double *y, const double *s, const double *g, const double *b, int64_t c,
                     double eps, bool rms)
{
    double mean = 0, var = 0, r;

    for (int64_t i = 0; i < c && !rms; i++)
        mean += s[i] / (double)c;
    for (int64_t i = 0; i < c; i++)
        var += (s[i] - mean) * (s[i] - mean) / (double)c;
    r = 1 / sqrt(var + eps);
    for (int64_t i = 0; i < c; i++)
        y[i] = (s[i] - mean) * r * ((g ? g[i] : 0) + plus) + (b ? b[i] : 0);
}

static void norms_of_residual_sums(void **st)
{
    const struct dropout drop = {.p = 0.2f, .key = 5, .stream = 6, .row0 = 3};

    (void)st;
    for (int k = 0; k < N_SHAPES * 12; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        bool rms = k / 2 % 2;
        int mode = k / 4 % 3; /* plain, residual, residual and dropout */
        int64_t t = shapes[k / 12][0], c = shapes[k / 12][1], n = t * c;
        struct tn x = tn_random(dt, n, 20, 2, 0.5), r = tn_random(dt, n, 21, 2, 0);
        struct tn g = tn_random(dt, c, 22, 0.5, 1), b = tn_random(dt, c, 23, 1, 0);
        double *want = tn_doubles(n), *want_s = tn_doubles(n);
        const struct dropout *d = mode == 2 ? &drop : NULL;

        plus = mode == 1;
        for (int dev = 0; dev < 3; dev++) {
            struct tn y = tn_poison(dt, n), s = tn_poison(dt, n);
            struct tn mean = tn_poison(DTYPE_F32, t), rstd = tn_poison(DTYPE_F32, t);
            struct norm_fwd p = {.t = t, .c = c, .eps = 1e-5f, .x = x.p, .gamma = g.p,
                                 .beta = rms ? NULL : b.p, .y = y.p, .mean = mean.p,
                                 .rstd = rstd.p, .drop = d, .plus = (float)plus};

            if (mode) {
                p.residual = r.p;
                p.s = s.p;
            }
            OK((rms ? rmsnorm_fwd_cpu : layernorm_fwd_cpu)(tn_devices[dev], dt, &p, &tn_err));
            for (int64_t i = 0; i < n; i++)
                want_s[i] = r.v[i] + x.v[i] * tn_drop_factor(d, i / c, i % c, c);
            if (mode)
                tn_near("s", &s, want_s, 1e-6, 1);
            for (int64_t i = 0; i < t; i++) {
                double row[1024];

                for (int64_t j = 0; j < c; j++)
                    row[j] = mode ? tn_at(&s, i * c + j) : x.v[i * c + j];
                norm_row(want + i * c, row, g.v, rms ? NULL : b.v, c, 1e-5, rms);
            }
            if (c > 1 || rms) /* one channel: the difference of equal numbers, scaled up */
                tn_near("y", &y, want, 4e-6, 1);
            tn_whole("mean", &mean);
            tn_whole("rstd", &rstd);
        }
    }
}

/* Loss = sum(dy * norm(s)) + sum(dres * s) as a function of s, gamma and beta. */
struct norm_loss {
    int64_t t, c;
    bool rms;
    double *s, *g, *b, *dy, *dres;
};
static double norm_loss(void *ctx)
{
    struct norm_loss *l = ctx;
    double sum = 0, y[64];

    for (int64_t t = 0; t < l->t; t++) {
        norm_row(y, l->s + t * l->c, l->g, l->rms ? NULL : l->b, l->c, 1e-5, l->rms);
        for (int64_t i = 0; i < l->c; i++)
            sum += y[i] * l->dy[t * l->c + i] +
                   (l->dres ? l->dres[t * l->c + i] * l->s[t * l->c + i] : 0);
    }
    return sum;
}

static void norm_gradients_are_slopes(void **st)
{
    const int64_t small[][2] = {{1, 4}, {3, 16}, {5, 33}, {37, 12}};
    const struct dropout drop = {.p = 0.2f, .key = 5, .stream = 6};

    (void)st;
    for (int k = 0; k < 4 * 8; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        bool rms = k / 2 % 2, with = k / 4 % 2;
        int64_t t = small[k / 8][0], c = small[k / 8][1], n = t * c;
        struct tn s = tn_random(dt, n, 20, 1, 0.5), g = tn_random(dt, c, 22, 0.5, 1);
        struct tn b = tn_random(dt, c, 23, 1, 0), dy = tn_random(dt, n, 24, 1, 0);
        struct tn dres = tn_random(dt, n, 25, 1, 0), y = tn_poison(dt, n);
        struct tn mean = tn_poison(DTYPE_F32, t), rstd = tn_poison(DTYPE_F32, t);
        struct tn ds[3], dg[3], db[3], dx;
        struct norm_loss l = {t, c, rms, s.v, g.v, b.v, dy.v, with ? dres.v : NULL};
        struct norm_fwd f = {.t = t, .c = c, .eps = 1e-5f, .x = s.p, .gamma = g.p, .y = y.p,
                             .beta = rms ? NULL : b.p, .mean = mean.p, .rstd = rstd.p, .plus = with};
        double *want = tn_doubles(n), *wg = tn_doubles(c), *wb = tn_doubles(c);

        plus = with;
        OK((rms ? rmsnorm_fwd_cpu : layernorm_fwd_cpu)(tn_devices[0], dt, &f, &tn_err));
        for (int64_t i = 0; i < n; i++)
            want[i] = tn_slope(norm_loss, &l, &s.v[i], 1e-4);
        for (int64_t i = 0; i < c; i++) {
            wg[i] = 1 + tn_slope(norm_loss, &l, &g.v[i], 1e-4);
            wb[i] = 1 + tn_slope(norm_loss, &l, &b.v[i], 1e-4);
        }
        for (int d = 0; d < 3; d++) {
            struct norm_bwd p = {.t = t, .c = c, .dy = dy.p, .s = s.p, .gamma = g.p,
                                 .mean = mean.p, .rstd = rstd.p, .plus = with};

            ds[d] = tn_poison(dt, n);
            dx = tn_poison(dt, n);
            dg[d] = tn_random(DTYPE_F32, c, 1, 0, 1); /* += on ones */
            db[d] = tn_random(DTYPE_F32, c, 1, 0, 1);
            p.ds = ds[d].p;
            p.dgamma = dg[d].p;
            p.dbeta = rms ? NULL : db[d].p;
            if (with) {
                p.dres = dres.p;
                p.drop = &drop;
                p.dx = dx.p;
            }
            OK((rms ? rmsnorm_bwd_cpu : layernorm_bwd_cpu)(tn_devices[d], dt, &p, &tn_err));
            tn_near("ds", &ds[d], want, 1e-5, 1);
            tn_near("dgamma", &dg[d], wg, 1e-5, 5);
            if (!rms)
                tn_near("dbeta", &db[d], wb, 1e-5, 5);
            tn_same("ds", &ds[0], &ds[d]);
            tn_same("dgamma", &dg[0], &dg[d]);
            tn_same("dbeta", &db[0], &db[d]);
            if (with) {
                double *wx = tn_doubles(n);

                for (int64_t i = 0; i < n; i++)
                    wx[i] = tn_at(&ds[d], i) * tn_drop_factor(&drop, i / c, i % c, c);
                tn_near("dx", &dx, wx, 1e-6, 0);
            }
        }
        /* in place of dres and of dy */
        struct tn over = tn_copy(&dy);
        struct norm_bwd p = {.t = t, .c = c, .dy = over.p, .s = s.p, .gamma = g.p,
                             .mean = mean.p, .rstd = rstd.p, .ds = over.p,
                             .dres = with ? dres.p : NULL, .plus = with};
        OK((rms ? rmsnorm_bwd_cpu : layernorm_bwd_cpu)(tn_devices[1], dt, &p, &tn_err));
        tn_same("ds over dy", &ds[0], &over);
    }
}

/* Without weights: as with weights of 1, to the bit, forward and back. */
static void norms_without_weights(void **st)
{
    enum { ROWS = 5, C = 33, N = ROWS * C };

    (void)st;
    for (int k = 0; k < 4; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        bool rms = k / 2;
        struct tn s = tn_random(dt, N, 20, 1, 0.5), dy = tn_random(dt, N, 24, 1, 0), ones = tn_random(dt, C, 1, 0, 1);
        struct tn y[2], ds[2];

        for (int bare = 0; bare < 2; bare++) {
            struct tn mean = tn_poison(DTYPE_F32, ROWS), rstd = tn_poison(DTYPE_F32, ROWS), dg = tn_random(DTYPE_F32, C, 1, 0, 1);
            struct norm_fwd f = {.t = ROWS, .c = C, .eps = 1e-5f, .x = s.p, .mean = mean.p, .rstd = rstd.p};
            struct norm_bwd b = {.t = ROWS, .c = C, .dy = dy.p, .s = s.p, .mean = mean.p, .rstd = rstd.p};

            y[bare] = tn_poison(dt, N);
            ds[bare] = tn_poison(dt, N);
            f.y = y[bare].p;
            b.ds = ds[bare].p;
            f.gamma = b.gamma = bare ? NULL : ones.p;
            f.plus = b.plus = (float)bare;
            b.dgamma = bare ? NULL : dg.p;
            OK((rms ? rmsnorm_fwd_cpu : layernorm_fwd_cpu)(tn_devices[k % 3], dt, &f, &tn_err));
            OK((rms ? rmsnorm_bwd_cpu : layernorm_bwd_cpu)(tn_devices[k % 3], dt, &b, &tn_err));
        }
        tn_same("y", &y[0], &y[1]);
        tn_same("ds", &ds[0], &ds[1]);
    }
}

static void embeddings_gather_and_scatter(void **st)
{
    const int64_t sh[][4] = {{1, 1, 1, 1}, {7, 5, 3, 2}, {64, 33, 10, 64}, {100, 130, 50, 9}};

    (void)st;
    for (int k = 0; k < 16; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        bool positions = k / 2 % 2;
        int64_t t = sh[k / 4][0], c = sh[k / 4][1], v = sh[k / 4][2], np = sh[k / 4][3];
        struct embedding p = {.t = t, .c = c, .n_vocab = v, .n_pos = np, .first = 4};
        struct tn wte = tn_random(dt, v * c, 30, 1, 0), wpe = tn_random(dt, np * c, 31, 1, 0);
        struct tn out = tn_poison(dt, t * c), dout = tn_random(dt, t * c, 32, 1, 0);
        struct tn te[3], pe[3];
        double *want = tn_doubles(t * c), *dte = tn_doubles(v * c), *dpe = tn_doubles(np * c);

        p.token = tn_ids(t, 33, (int32_t)(v + 8)); /* some before, some beyond the slice */
        p.pos = tn_ids(t, 34, (int32_t)np);
        for (int64_t i = 0; i < t * c; i++) {
            int64_t row = p.token[i / c] - 4, at = p.pos[i / c] * c + i % c;

            if (row >= 0 && row < v) {
                want[i] += wte.v[row * c + i % c];
                dte[row * c + i % c] += dout.v[i];
            }
            if (positions)
                want[i] += wpe.v[at];
            dpe[at] += dout.v[i];
        }
        OK(embedding_fwd_cpu(tn_devices[k % 3], dt, out.p, &p, wte.p, positions ? wpe.p : NULL,
                             &tn_err));
        tn_near("embedding", &out, want, 1e-7, 1e-7);
        for (int d = 0; d < 3; d++) {
            te[d] = tn_zero(DTYPE_F32, v * c);
            pe[d] = tn_zero(DTYPE_F32, np * c);
            OK(embedding_bwd_cpu(tn_devices[d], dt, te[d].p, positions ? pe[d].p : NULL, &p,
                                 dout.p, &tn_err));
            tn_near("dwte", &te[d], dte, 1e-6, 10);
            if (positions)
                tn_near("dwpe", &pe[d], dpe, 1e-6, 10);
            tn_same("dwte", &te[0], &te[d]);
            tn_same("dwpe", &pe[0], &pe[d]);
        }
    }
    const int32_t low = -1, far = 9, fine = 0;
    struct embedding p = {.t = 1, .c = 1, .token = &low, .pos = &fine, .n_vocab = 1, .n_pos = 1};
    float x = 0;
    assert_int_equal(embedding_fwd_cpu(tn_devices[0], DTYPE_F32, &x, &p, &x, &x, &tn_err), ERR_ARG);
    p.token = &fine;
    p.pos = &far;
    assert_int_equal(embedding_fwd_cpu(tn_devices[0], DTYPE_F32, &x, &p, &x, &x, &tn_err), ERR_ARG);
}

static void rotary_turns_and_turns_back(void **st)
{
    const int64_t sh[][4] = {{3, 1, 2, 2}, {5, 2, 8, 6}, {40, 3, 64, 64}, {9, 2, 70, 34}};

    (void)st;
    for (int k = 0; k < 8; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        int64_t t = sh[k / 2][0], h = sh[k / 2][1], d = sh[k / 2][2], rot = sh[k / 2][3];
        int64_t ld = h * d + 3, half = rot / 2;
        struct tn x = tn_random(dt, t * ld, 40, 1, 0), y = tn_copy(&x);
        float *cs = tn_keep(malloc((size_t)(50 * rot) * sizeof *cs));
        struct rope p = {.t = t, .heads = h, .d = d, .ldx = ld, .rot = rot, .n_pos = 50, .cs = cs};
        double *want = tn_doubles(t * ld);

        rope_table(cs, 50, rot, 10000, NULL);
        p.pos = tn_ids(t, 41, 50);
        memcpy(want, x.v, (size_t)(t * ld) * sizeof *want);
        for (int64_t i = 0; i < t * h * half; i++) {
            int64_t r = i / (h * half), at = r * ld + i / half % h * d + i % half;
            double a = p.pos[r] * pow(10000, -2.0 * (double)(i % half) / (double)rot);

            want[at] = x.v[at] * cos(a) - x.v[at + half] * sin(a);
            want[at + half] = x.v[at + half] * cos(a) + x.v[at] * sin(a);
        }
        OK(rope_cpu(tn_devices[k % 3], dt, y.p, &p, &tn_err));
        tn_near("rope", &y, want, 1e-6, 1);
        p.inverse = true;
        OK(rope_cpu(tn_devices[0], dt, y.p, &p, &tn_err));
        tn_near("back", &y, x.v, dt == DTYPE_BF16 ? 8e-3 : 1e-6, 1);
    }
}

static double capped(double cap, double x)
{
    return cap > 0 ? cap * tanh(x / cap) : x;
}

/* softmax cross-entropy of a row in double, of logits as they count. */
static double xent_row(const double *x, int64_t v, double cap, int64_t target, double *soft)
{
    double max = -INFINITY, sum = 0;

    for (int64_t i = 0; i < v; i++)
        max = fmax(max, capped(cap, x[i]));
    for (int64_t i = 0; i < v; i++)
        sum += exp(capped(cap, x[i]) - max);
    for (int64_t i = 0; i < v; i++)
        soft[i] = exp(capped(cap, x[i]) - max) / sum;
    return log(sum) + max - capped(cap, x[target]);
}

static void losses_and_their_gradients(void **st)
{
    const int64_t sh[][3] = {{1, 1, 1}, {3, 7, 7}, {5, 50, 64}, {17, 1000, 1003}, {4, 50257, 50304}};

    (void)st;
    for (int k = 0; k < 20; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        int64_t t = sh[k / 2 % 5][0], v = sh[k / 2 % 5][1], ld = sh[k / 2 % 5][2], a = v / 3;
        float cap = k < 10 ? 0 : 3, z = k % 4 > 1 ? 0.05f : 0;
        struct tn x = tn_random(dt, t * ld, 50, 4, 0), scale = tn_random(DTYPE_F32, t, 51, 1, 0);
        struct tn loss = tn_poison(DTYPE_F32, t), one = tn_copy(&x), two = tn_copy(&x);
        double *want = tn_doubles(t), *grad = tn_doubles(t * ld), *soft = tn_doubles(v);
        int32_t *target = tn_ids(t, 52, (int32_t)v);
        struct xent p = {.t = t, .v = v, .ld = ld, .logits = one.p, .target = target, .cap = cap, .z = z};

        if (t > 2) { /* masked, and without a target */
            tn_set(&scale, 1, 0);
            target[2] = -1;
        }
        for (int64_t i = 0; i < t; i++) {
            double l = xent_row(x.v + i * ld, v, (double)cap, target[i] < 0 ? 0 : target[i], soft);

            double lse = l + capped((double)cap, x.v[i * ld + (target[i] < 0 ? 0 : target[i])]);

            want[i] = target[i] < 0 ? 0 : l;
            for (int64_t j = 0; j < v && target[i] >= 0; j++)
                grad[i * ld + j] = (soft[j] * (1 + 2 * (double)z * lse) - (j == target[i])) * scale.v[i] *
                                   (cap > 0 ? 1 - pow(tanh(x.v[i * ld + j] / (double)cap), 2) : 1);
        }
        OK(xent_cpu(tn_devices[k % 3], dt, &p, loss.p, &tn_err)); /* loss alone */
        tn_near("loss", &loss, want, 1e-6, 5);
        tn_same("logits", &x, &one);
        p.scale = scale.p;
        OK(xent_cpu(tn_devices[k % 3], dt, &p, loss.p, &tn_err));
        tn_near("loss", &loss, want, 1e-6, 5);
        tn_near("gradient", &one, grad, cap > 0 ? 1e-5 : 2e-6, 1e-3);

        /* the vocabulary split in two, and the two reductions done by hand */
        struct xent half[2] = {p, p};
        struct tn max[2], sum[2], at[2];
        half[0].logits = two.p;
        half[0].v = a;
        half[0].ld = ld;
        half[1].logits = (char *)two.p + (size_t)a * dtype_size(dt);
        half[1].v = v - a;
        half[1].first = a;
        for (int i = 0; i < 2; i++) {
            max[i] = tn_poison(DTYPE_F32, t);
            sum[i] = tn_poison(DTYPE_F32, t);
            at[i] = tn_poison(DTYPE_F32, t);
            OK(xent_max_cpu(tn_devices[i], dt, &half[i], max[i].p, &tn_err));
        }
        for (int64_t i = 0; i < t; i++)
            tn_set(&max[0], i, fmax(tn_at(&max[0], i), tn_at(&max[1], i)));
        for (int i = 0; i < 2; i++)
            OK(xent_sum_cpu(tn_devices[i], dt, &half[i], max[0].p, sum[i].p, at[i].p, &tn_err));
        for (int64_t i = 0; i < t; i++) {
            tn_set(&sum[0], i, tn_at(&sum[0], i) + tn_at(&sum[1], i));
            tn_set(&at[0], i, tn_at(&at[0], i) + tn_at(&at[1], i));
        }
        loss = tn_poison(DTYPE_F32, t);
        half[1].ld = ld; /* the left one first: it clears what lies beyond its columns */
        struct tn left = tn_copy(&two);
        half[0].logits = left.p;
        OK(xent_finish_cpu(tn_devices[0], dt, &half[0], max[0].p, sum[0].p, at[0].p, loss.p,
                           &tn_err));
        tn_near("split loss", &loss, want, 1e-6, 5);
        half[1].ld = ld;
        half[1].t = 1; /* one row: its padding would be the next row's left part */
        half[1].v = ld - a;
        if (ld == v) {
            OK(xent_finish_cpu(tn_devices[1], dt, &half[1], max[0].p, sum[0].p, at[0].p, NULL,
                               &tn_err));
            for (int64_t j = a; j < v; j++)
                assert_true(fabs(tn_at(&two, j) - grad[j]) <=
                            (dt == DTYPE_BF16 ? 5e-3 : cap > 0 ? 1e-5 : 2e-6) * (fabs(grad[j]) + 1e-3));
        }
        for (int64_t i = 0; i < t; i++)
            for (int64_t j = 0; j < a; j++)
                assert_true(fabs(tn_at(&left, i * ld + j) - grad[i * ld + j]) <=
                            (dt == DTYPE_BF16 ? 5e-3 : cap > 0 ? 1e-5 : 2e-6) * (fabs(grad[i * ld + j]) + 1e-3));
    }
    float x[2] = {0, 0}, loss;
    const int32_t far = 2;
    struct xent p = {.t = 1, .v = 2, .ld = 2, .logits = x, .target = &far};
    assert_int_equal(xent_cpu(tn_devices[0], DTYPE_F32, &p, &loss, &tn_err), ERR_ARG);
    x[1] = NAN;
    p.target = (const int32_t[]){0};
    OK(xent_cpu(tn_devices[0], DTYPE_F32, &p, &loss, &tn_err));
    assert_true(isnan(loss));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPS_TEST(norms_of_residual_sums),
        OPS_TEST(norm_gradients_are_slopes),
        OPS_TEST(norms_without_weights),
        OPS_TEST(embeddings_gather_and_scatter),
        OPS_TEST(rotary_turns_and_turns_back),
        OPS_TEST(losses_and_their_gradients),
    };
    return cmocka_run_group_tests_name("kernels_norm", tests, tn_open, tn_close);
}
