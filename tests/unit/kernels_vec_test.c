/* The element-wise ops: casts, sums, dropout, activations, AdamW, and simd.h's functions. */
#include "tests/kernels.h"

#include "kernels/act_simd.h"
#include "kernels/eight_bit.h"

static const int64_t sizes[] = {0, 1, 3, 15, 16, 17, 63, 64, 65, 1000, 40001};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void casts_round_to_nearest_even(void **s)
{
    (void)s;
    for (int k = 0; k < N_SIZES; k++) {
        int64_t n = sizes[k];
        struct tn x = tn_random(DTYPE_F32, n, 3, 10, 0), h = tn_poison(DTYPE_BF16, n);
        struct tn back = tn_poison(DTYPE_F32, n);

        if (n >= 15) { /* ties, infinities, the largest, denormals, NaN */
            const uint32_t odd[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f800000, 0xff800000,
                                    0x7f7fffff, 0x00000001, 0x00018000, 0x7f800001, 0xffc12345,
                                    0x80000000};
            memcpy(x.p, odd, sizeof odd);
        }
        for (int d = 0; d < 3; d++) {
            OK(vec_cast_cpu(tn_devices[d], h.p, DTYPE_BF16, x.p, DTYPE_F32, n, &tn_err));
            OK(vec_cast_cpu(tn_devices[d], back.p, DTYPE_F32, h.p, DTYPE_BF16, n, &tn_err));
            for (int64_t i = 0; i < n; i++) {
                uint16_t want = bf16_of(((float *)x.p)[i]);
                uint32_t wide = (uint32_t)want << 16;

                assert_int_equal(((uint16_t *)h.p)[i], want);
                assert_memory_equal((float *)back.p + i, &wide, 4);
            }
        }
        tn_whole("bf16", &h);
        tn_whole("fp32", &back);
    }
    assert_int_equal(bf16_of(1.00390625f), 0x3f80); /* a tie goes to even */
    assert_int_equal(bf16_of(1.01171875f), 0x3f82);
}

static void sums_and_scales(void **s)
{
    (void)s;
    for (int k = 0; k < 2 * N_SIZES; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        int64_t n = sizes[k / 2];
        struct tn x = tn_random(dt, n, 5, 1, 0), y = tn_random(dt, n, 6, 1, 0);
        struct tn sum = tn_poison(dt, n), y2 = tn_copy(&y), y3 = tn_copy(&y);
        double *want = tn_doubles(n);

        OK(vec_add_cpu(tn_devices[1], dt, sum.p, x.p, y.p, n, &tn_err));
        for (int64_t i = 0; i < n; i++)
            want[i] = x.v[i] + y.v[i];
        tn_near("add", &sum, want, 1e-7, 0);
        OK(vec_axpy_cpu(tn_devices[2], dt, y2.p, -0.75f, x.p, n, &tn_err));
        for (int64_t i = 0; i < n; i++)
            want[i] = y.v[i] - 0.75 * x.v[i];
        tn_near("axpy", &y2, want, 1e-7, 1);
        OK(vec_scale_cpu(tn_devices[0], dt, y3.p, 0.3f, n, &tn_err));
        for (int64_t i = 0; i < n; i++)
            want[i] = y.v[i] * (double)0.3f;
        tn_near("scale", &y3, want, 1e-7, 0);
    }
}

static void dropout_follows_philox(void **s)
{
    const int64_t shapes[][2] = {{1, 1}, {3, 5}, {7, 64}, {5, 130}, {2, 1023}};
    const struct dropout drop = {.p = 0.3f, .key = 0x123456789abcdef0u, .stream = 1ull << 40 | 9,
                                 .row0 = 0x7fffffff};

    (void)s;
    for (int k = 0; k < 10; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        int64_t t = shapes[k / 2][0], c = shapes[k / 2][1];
        struct tn x = tn_random(dt, t * c, 8, 1, 3), y = tn_poison(dt, t * c);
        double *want = tn_doubles(t * c);

        for (int64_t i = 0; i < t * c; i++) {
            uint32_t w[4];
            int64_t row = i / c, col = i % c;

            rng_philox(drop.key, (uint64_t)((drop.row0 + row) * ((c + 3) / 4) + col / 4),
                       drop.stream, w);
            if ((double)w[col % 4] >= rint((double)0.3f * 4294967296.0))
                want[i] = x.v[i] / (1 - (double)0.3f);
        }
        OK(vec_dropout_cpu(tn_devices[k % 3], dt, y.p, x.p, t, c, &drop, &tn_err));
        tn_near("dropout", &y, want, 1e-6, 0);
        for (int64_t i = 0; i < t * c; i++)
            assert_true((want[i] == 0) == (tn_at(&y, i) == 0));
        OK(vec_dropout_cpu(tn_devices[0], dt, y.p, x.p, t, c, NULL, &tn_err));
        tn_near("no dropout", &y, x.v, 0, 0);
    }
}

/* Rows 5 .. 24 of stretches of 4 rows, which begin at 100, 7, 130, 37, 160, 67, ... */
static void dropout_of_stretches(void **s)
{
    struct dropout drop = {.p = 0.4f, .key = 5, .stream = 6, .row0 = 90, .cut = 4, .first = 5, .every = 30, .at = {10, -83}};
    struct tn x = tn_random(DTYPE_F32, 20 * 33, 8, 1, 3), y = tn_poison(DTYPE_F32, x.n), one = tn_poison(DTYPE_F32, 33);

    (void)s;
    OK(vec_dropout_cpu(tn_devices[1], DTYPE_F32, y.p, x.p, 20, 33, &drop, &tn_err));
    drop.cut = 0;
    for (int64_t i = 0; i < 20; i++) {
        int64_t n = (i + 5) / 4;

        drop.row0 = (n % 2 ? 7 : 100) + n / 2 * 30 + (i + 5) % 4;
        OK(vec_dropout_cpu(tn_devices[1], DTYPE_F32, one.p, (float *)x.p + i * 33, 1, 33, &drop, &tn_err));
        for (int64_t j = 0; j < 33; j++)
            assert_true(tn_at(&one, j) == tn_at(&y, i * 33 + j));
    }
}

/* The step is added to the stream, the sample's rows to the first one. */
static void dropout_reads_what_is_known_later(void **s)
{
    struct dropout_now now = {(uint64_t)1 << 40 | 5, 3};
    struct dropout drop = {.p = 0.4f, .key = 5, .stream = 6, .row0 = 90, .every = 30, .now = &now};
    struct tn x = tn_random(DTYPE_F32, 20 * 33, 8, 1, 3), y = tn_poison(DTYPE_F32, x.n), z = tn_poison(DTYPE_F32, x.n);

    (void)s;
    OK(vec_dropout_cpu(tn_devices[1], DTYPE_F32, y.p, x.p, 20, 33, &drop, &tn_err));
    drop = (struct dropout){.p = 0.4f, .key = 5, .stream = 6 + (now.step << 20), .row0 = 180};
    OK(vec_dropout_cpu(tn_devices[1], DTYPE_F32, z.p, x.p, 20, 33, &drop, &tn_err));
    assert_memory_equal(y.p, z.p, (size_t)x.n * sizeof(float));
}

static void dropout_keeps_the_share_it_should(void **s)
{
    int64_t t = 100, c = 4096, kept = 0;
    struct tn x = tn_random(DTYPE_F32, t * c, 8, 0, 1);
    struct dropout drop = {.p = 0.1f, .key = 42, .stream = 7};

    (void)s;
    OK(vec_dropout_cpu(tn_devices[1], DTYPE_F32, x.p, x.p, t, c, &drop, &tn_err));
    for (int64_t i = 0; i < t * c; i++)
        kept += tn_at(&x, i) != 0;
    assert_true(fabs((double)kept / (double)(t * c) - 0.9) < 5 * sqrt(0.09 / (double)(t * c)));
}

static void column_sums_are_exact_and_thread_free(void **s)
{
    const int64_t shapes[][2] = {{1, 1}, {5, 3}, {31, 17}, {33, 64}, {200, 129}, {0, 9}};

    (void)s;
    for (int k = 0; k < 12; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        int64_t t = shapes[k / 2][0], c = shapes[k / 2][1], ld = c + 5;
        struct tn x = tn_random(dt, t * ld, 9, 1, 0), start = tn_random(DTYPE_F32, c, 10, 1, 0);
        struct tn got[3];
        double *want = tn_doubles(c);

        for (int64_t i = 0; i < c; i++) {
            want[i] = start.v[i];
            for (int64_t r = 0; r < t; r++)
                want[i] += x.v[r * ld + i];
        }
        for (int d = 0; d < 3; d++) {
            got[d] = tn_copy(&start);
            OK(vec_colsum_cpu(tn_devices[d], dt, got[d].p, x.p, t, c, ld, &tn_err));
            tn_near("colsum", &got[d], want, 1e-6, 20);
            tn_same("colsum", &got[0], &got[d]);
        }
    }
}

static void norms_add_up_and_clip(void **s)
{
    (void)s;
    for (int k = 0; k < N_SIZES + 1; k++) {
        int64_t n = k < N_SIZES ? sizes[k] : 200003;
        struct tn x = tn_random(DTYPE_F32, n, 11, 1, 0), h = tn_random(DTYPE_BF16, n, 11, 1, 0);
        double want = 0, got[3], block[2][3200];
        float scale;

        for (int64_t i = 0; i < n; i++)
            want += x.v[i] * x.v[i] + h.v[i] * h.v[i];
        for (int d = 0; d < 3; d++) {
            got[d] = 0;
            OK(vec_sumsq_cpu(tn_devices[d], DTYPE_F32, &got[d], n + 1, x.p, n, &tn_err));
            OK(vec_sumsq_cpu(tn_devices[d], DTYPE_BF16, &got[d], n + 1, h.p, n, &tn_err));
            assert_true(fabs(got[d] - want) <= 1e-6 * want);
            assert_memory_equal(&got[0], &got[d], sizeof *got);
        }
        /* A block has the same bits wherever a call begins. */
        memset(block, 0, sizeof block);
        OK(vec_sumsq_cpu(tn_devices[2], DTYPE_F32, block[0], 64, x.p, n, &tn_err));
        for (int64_t i = 0; i < n; i += 192)
            OK(vec_sumsq_cpu(tn_devices[0], DTYPE_F32, block[1] + i / 64, 64, (float *)x.p + i,
                             n - i < 192 ? n - i : 192, &tn_err));
        assert_memory_equal(block[0], block[1], sizeof *block);
        OK(clip_scale_cpu(tn_devices[0], &scale, got, 1, 1.0f, &tn_err));
        assert_true(fabs((double)scale - fmin(1, 1 / (sqrt(want) + 1e-6))) <= 1e-6);
        OK(clip_scale_cpu(tn_devices[0], &scale, got, 1, 0, &tn_err));
        assert_true(scale == 1);
    }
    double bad = NAN;
    float scale = 0;
    OK(clip_scale_cpu(tn_devices[0], &scale, &bad, 1, 1, &tn_err));
    assert_true(isnan(scale));
    bad = INFINITY;
    OK(clip_scale_cpu(tn_devices[0], &scale, &bad, 1, 1, &tn_err));
    assert_true(scale == 0);
}

/* The largest error of an approximation, relative to max(|true|, floor). */
static double worst(int which, double lo, double hi, double floor_, double (*f)(double))
{
    enum { N = 200001 };
    float *x = tn_keep(malloc(N * sizeof *x)), *y = tn_keep(malloc(N * sizeof *y));
    double w = 0;

    for (int i = 0; i < N; i++)
        x[i] = (float)(lo + (hi - lo) * i / (N - 1));
    ISA_PICK(act_approx)(which, y, x, N);
    for (int i = 0; i < N; i++) {
        double want = f((double)x[i]), err = fabs((double)y[i] - want) / fmax(fabs(want), floor_);
        if (!(err <= w))
            w = err;
    }
    return w;
}
static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2)); }

static void approximations_keep_their_bounds(void **s)
{
    const float odd[] = {-INFINITY, INFINITY, NAN, -1000, 88.8f, 88.7f, -87.0f, 0, -0.0f};
    float y[9];

    (void)s;
    assert_true(worst(0, -86.8, 88.72, 0, exp) <= 1e-7);
    assert_true(worst(0, -1, 1, 0, exp) <= 1e-7);
    assert_true(worst(0, -100, -80, 2e-38, exp) <= 1); /* 0 from -86.9: absolute */
    assert_true(worst(1, -12, 12, 1, normal_cdf) <= 2.5e-7);
    assert_true(worst(1, -1, 8, 0, normal_cdf) <= 5e-7);
    assert_true(worst(1, -5, -1, 0, normal_cdf) <= 2.5e-6);
    assert_true(worst(1, -12, -5, 0, normal_cdf) <= 1.5e-5);
    ISA_PICK(act_approx)(0, y, odd, 9);
    assert_true(y[0] == 0 && isinf(y[1]) && isnan(y[2]) && y[3] == 0 && isinf(y[4]));
    assert_true(!isinf(y[5]) && y[6] == 0 && y[7] == 1 && y[8] == 1);
}

static bool far_out(float got, float want)
{
    return got == want || fabsf(got - want) <= 1e-18f;
}

static void activations_and_their_slopes(void **s)
{
    (void)s;
    for (int k = 0; k < 2 * N_SIZES; k++)
        for (enum act a = ACT_NONE + 1; a < ACT_KINDS; a++) {
            enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
            int64_t n = sizes[k / 2];
            struct tn x = tn_random(dt, n, 12, 3, 0), dy = tn_random(dt, n, 13, 1, 0);
            struct tn y = tn_poison(dt, n), dx = tn_poison(dt, n);
            double *want = tn_doubles(n);

            OK(act_fwd_cpu(tn_devices[1], dt, a, y.p, x.p, n, &tn_err));
            for (int64_t i = 0; i < n; i++)
                want[i] = tn_act(a, x.v[i]);
            tn_near("act", &y, want, 1e-6, 0.1);
            OK(act_bwd_cpu(tn_devices[2], dt, a, dx.p, dy.p, x.p, n, &tn_err));
            for (int64_t i = 0; i < n; i++)
                want[i] = dy.v[i] * tn_act_slope(a, x.v[i]);
            tn_near("act'", &dx, want, 1e-6, 1);
            OK(act_bwd_cpu(tn_devices[0], dt, a, dy.p, dy.p, x.p, n, &tn_err));
            tn_same("act' in place", &dx, &dy);
        }
    /* far out: the identity or its square, or nothing; never NaN */
    for (enum act a = ACT_NONE + 1; a < ACT_KINDS; a++) {
        float x[] = {1e20f, -1e20f, 3e38f, -3e38f, 50, -50}, one[6] = {1, 1, 1, 1, 1, 1}, y[6];
        OK(act_fwd_cpu(tn_devices[0], DTYPE_F32, a, y, x, 6, &tn_err));
        for (int i = 0; i < 6; i++)
            assert_true(a == ACT_CLAMPED && x[i] > 0 ? fabs(y[i] - tn_act(a, 7)) < 1e-6 :
                        far_out(y[i], x[i] < 0 ? 0 : a == ACT_RELU2 ? x[i] * x[i] : x[i]));
        OK(act_bwd_cpu(tn_devices[0], DTYPE_F32, a, y, one, x, 6, &tn_err));
        for (int i = 0; i < 6; i++)
            assert_true(far_out(y[i], x[i] < 0 ? 0 : a == ACT_RELU2 ? x[i] + x[i] : a == ACT_CLAMPED ? 0 : 1));
    }
    assert_int_equal(act_fwd_cpu(tn_devices[0], DTYPE_F32, ACT_NONE, NULL, NULL, 0, &tn_err),
                     ERR_ARG);
}

static void gated_units(void **s)
{
    const int64_t shapes[][2] = {{1, 1}, {3, 5}, {4, 16}, {9, 43}, {64, 170}};

    (void)s;
    for (int k = 0; k < 10 * (ACT_KINDS - 1); k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        enum act a = (enum act)(1 + k / 10);
        int64_t t = shapes[k % 10 / 2][0], f = shapes[k % 10 / 2][1];
        struct tn x = tn_random(dt, 2 * t * f, 14, a == ACT_CLAMPED ? 6 : 2, 0), dy = tn_random(dt, t * f, 15, 1, 0);
        struct tn y = tn_poison(dt, t * f), dx = tn_poison(dt, 2 * t * f);
        double *want = tn_doubles(t * f), *dwant = tn_doubles(2 * t * f);

        for (int64_t i = 0; i < t * f; i++) {
            int64_t at = i / f * 2 * f + i % f;
            double g = x.v[at], u = x.v[at + f];

            want[i] = tn_act(a, g) * tn_up(a, u);
            dwant[at] = dy.v[i] * tn_up(a, u) * tn_act_slope(a, g);
            dwant[at + f] = dy.v[i] * tn_act(a, g) * tn_up_slope(a, u);
        }
        OK(glu_fwd_cpu(tn_devices[k % 3], dt, a, y.p, x.p, t, f, &tn_err));
        tn_near("glu", &y, want, 1e-6, 0.1);
        OK(glu_bwd_cpu(tn_devices[k % 3], dt, a, dx.p, dy.p, x.p, t, f, &tn_err));
        tn_near("glu'", &dx, dwant, 1e-6, 1);
    }
}

/* One element by the definition (kernels/update.h), rate .01, weight decay .1, betas .9 and .95. */
static void update_ref(enum update_kind kind, int64_t step, double g, double *w, double *m, double *v)
{
    double c = 0.9 * *m + 0.1 * g;

    if (kind == UPDATE_LION) {
        *m = 0.95 * *m + 0.05 * g;
        *w = *w * (1 - 1e-3) - 1e-2 * (c > 0 ? 1 : c < 0 ? -1 : 0);
    } else if (kind == UPDATE_SGD) {
        *m = 0.9 * *m + g + 0.1 * *w;
        *w -= 1e-2 * *m;
    } else {
        *m = c;
        *v = 0.95 * *v + 0.05 * g * g;
        *w = *w * (1 - 1e-3) -
             1e-2 * (*m / (1 - pow(0.9, (double)step))) / (sqrt(*v / (1 - pow(0.95, (double)step))) + 1e-8);
    }
}

static void updates_follow_their_formulas(void **s)
{
    (void)s;
    for (int k = 0; k < N_SIZES * UPDATE_KINDS; k++) {
        int64_t n = sizes[k / UPDATE_KINDS];
        struct tn w = tn_random(DTYPE_F32, n, 16, 1, 0), m = tn_zero(DTYPE_F32, n);
        struct tn v = tn_zero(DTYPE_F32, n), low = tn_poison(DTYPE_BF16, n);
        double *rw = tn_doubles(n), *rm = tn_doubles(n), *rv = tn_doubles(n);
        float scale = 0.5f;
        struct update p = {.kind = (enum update_kind)(k % UPDATE_KINDS), .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
                           .weight_decay = 0.1, .grad_scale = &scale};

        memcpy(rw, w.v, (size_t)n * sizeof *rw);
        for (p.step = 1; p.step <= 5; p.step++) {
            struct tn g = tn_random(DTYPE_F32, n, 100 + (uint64_t)p.step, 1, 0);

            OK(update_cpu(tn_devices[p.step % 3], &p, w.p, m.p, p.kind == UPDATE_ADAMW ? v.p : NULL, g.p, low.p, n, &tn_err));
            for (int64_t i = 0; i < n; i++)
                update_ref(p.kind, p.step, g.v[i] * 0.5, &rw[i], &rm[i], &rv[i]);
        }
        tn_near("w", &w, rw, 1e-6, 1);
        tn_near("m", &m, rm, 1e-6, 1);
        tn_near("v", &v, rv, 1e-6, 1);
        tn_whole("low", &low);
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(((uint16_t *)low.p)[i], bf16_of(((float *)w.p)[i]));
    }
    const struct update zeroth = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}, none = {.step = 1, .eps = 1, .kind = UPDATE_KINDS};
    assert_int_equal(update_cpu(tn_devices[0], &zeroth, NULL, NULL, NULL, NULL, NULL, 0, &tn_err), ERR_ARG);
    assert_int_equal(update_cpu(tn_devices[0], &none, NULL, NULL, NULL, NULL, NULL, 0, &tn_err), ERR_ARG);
}

/* bf16 moments: one of the two beside what fp32 ones would be, without a bias, so that second moments shrink when gradients are
 * small, where the nearest would stay; the same for any cut. */
static void moments_round_both_ways(void **s)
{
    enum { N = 5000, STEPS = 200, CUT = 1237 };
    struct tn w = tn_zero(DTYPE_F32, N), m = tn_zero(DTYPE_BF16, N), v = tn_zero(DTYPE_BF16, N);
    struct tn w2 = tn_zero(DTYPE_F32, N), m2 = tn_zero(DTYPE_BF16, N), v2 = tn_zero(DTYPE_BF16, N);
    struct update p = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .m_type = DTYPE_BF16, .v_type = DTYPE_BF16};
    double exact_m = 0, exact_v = 1, mean_m = 0, mean_v = 0;

    (void)s;
    for (int i = 0; i < N; i++) {
        ((float *)w.p)[i] = ((float *)w2.p)[i] = (float)i;
        ((uint16_t *)v.p)[i] = ((uint16_t *)v2.p)[i] = bf16_of(1);
    }
    for (p.step = 1; p.step <= STEPS; p.step++) {
        struct tn g = tn_random(DTYPE_F32, N, 3, 0, 0);

        for (int i = 0; i < N; i++)
            ((float *)g.p)[i] = 0.01f;
        exact_m = 0.9 * exact_m + 0.1 * 0.01;
        exact_v = 0.999 * exact_v + 0.001 * 1e-4;
        OK(update_cpu(tn_devices[p.step % 3], &p, w.p, m.p, v.p, g.p, NULL, N, &tn_err));
        OK(update_cpu(tn_devices[0], &p, w2.p, m2.p, v2.p, g.p, NULL, CUT, &tn_err));
        OK(update_cpu(tn_devices[1], &p, (float *)w2.p + CUT, (uint16_t *)m2.p + CUT, (uint16_t *)v2.p + CUT, g.p, NULL, N - CUT,
                      &tn_err));
    }
    for (int i = 0; i < N; i++) {
        mean_m += (double)bf16_to(((uint16_t *)m.p)[i]) / N;
        mean_v += (double)bf16_to(((uint16_t *)v.p)[i]) / N;
    }
    assert_true(fabs(mean_m / exact_m - 1) < 1e-3);
    assert_true(exact_v < 0.82 && fabs(mean_v / exact_v - 1) < 1e-3);
    assert_memory_equal(w.p, w2.p, N * sizeof(float));
    assert_memory_equal(m.p, m2.p, N * sizeof(uint16_t));
    assert_memory_equal(v.p, v2.p, N * sizeof(uint16_t));
}

/* Of all magnitudes the level that is nearest, found by looking at each; what a block's largest is comes back as it was. */
static void eight_bits_are_the_nearest(void **s)
{
    (void)s;
    for (int sg = 0; sg < 2; sg++) {
        const struct eight_bit_table *m = eight_bit_levels(sg);
        int last = eight_bit_last(sg);

        for (int i = 0; i <= last; i++) {
            assert_true(i == 0 ? m->level[0] == 0 : m->level[i] > m->level[i - 1]);
            assert_int_equal(eight_bit_nearest(m->level, last, m->level[i]), i);
        }
        for (uint32_t i = 0; i < 300000; i++) {
            float x = (float)exp(-(double)i / 300000 * 20), back, scale = 1;
            double best = 2;
            uint8_t code;

            eight_bit_encode(m, sg, &x, 1, true, &code, &scale);
            assert_int_equal(code, eight_bit_code(sg, eight_bit_nearest(m->level, last, x), false));
            eight_bit_decode(m, &code, 1, 1, &back);
            for (int k = 0; k <= last && i % 97 == 0; k++)
                best = fmin(best, fabs((double)m->level[k] - (double)x));
            assert_true(i % 97 || fabs((double)back - (double)x) <= best + 1e-9);
            x = -x;
            eight_bit_encode(m, sg, &x, 1, false, &code, &scale);
            eight_bit_decode(m, &code, scale, 1, &back);
            assert_true(scale == -x && back == (sg ? x * m->level[127] : -x));
            scale = 1;
        }
    }
}

/* Moments of eight bits: the update is made of numbers that are not rounded yet, then each is the nearest of its block; the same
 * for any cut between blocks and any number of threads. */
static void moments_in_eight_bits(void **s)
{
    enum { N = 20000, CUT = 37 * EIGHT_BIT_BLOCK, BLOCKS = (N + 255) / 256 };

    (void)s;
    for (int k = 0; k < 4 + 2; k++) { /* AdamW: both, each; Lion, SGD */
        enum update_kind kind = k < 3 ? UPDATE_ADAMW : (enum update_kind)(k - 2 < UPDATE_KINDS ? k - 2 : UPDATE_SGD);
        enum dtype mt = k == 1 ? DTYPE_F32 : DTYPE_8BIT, vt = k == 2 ? DTYPE_F32 : DTYPE_8BIT;
        struct update p = {.kind = kind, .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .m_type = mt, .v_type = vt};
        struct tn w = tn_zero(DTYPE_F32, N), w2 = tn_zero(DTYPE_F32, N), want = tn_zero(DTYPE_F32, N);
        struct tn low = tn_zero(DTYPE_BF16, N);
        struct tn m = tn_zero(DTYPE_F32, N), v = tn_zero(DTYPE_F32, N), m2 = tn_zero(DTYPE_F32, N), v2 = tn_zero(DTYPE_F32, N);
        struct tn ms = tn_zero(DTYPE_F32, BLOCKS), vs = tn_zero(DTYPE_F32, BLOCKS);
        struct tn ms2 = tn_zero(DTYPE_F32, BLOCKS), vs2 = tn_zero(DTYPE_F32, BLOCKS);
        struct tn rm = tn_zero(DTYPE_F32, N), rv = tn_zero(DTYPE_F32, N);

        for (p.step = 1; p.step <= 4; p.step++) {
            struct tn g = tn_random(DTYPE_F32, N, 40 + (uint64_t)p.step, 0.1, 0);
            struct update plain = p;
            bool adamw = kind == UPDATE_ADAMW;

            plain.m_type = plain.v_type = DTYPE_F32;
            OK(update_cpu(tn_devices[0], &plain, want.p, rm.p, rv.p, g.p, NULL, N, &tn_err));
            p.m_scale = ms.p, p.v_scale = vs.p;
            OK(update_cpu(tn_devices[p.step % 3], &p, w.p, m.p, v.p, g.p, low.p, N, &tn_err));
            p.m_scale = ms2.p, p.v_scale = vs2.p;
            OK(update_cpu(tn_devices[1], &p, w2.p, m2.p, v2.p, g.p, NULL, CUT, &tn_err));
            p.m_scale += CUT / EIGHT_BIT_BLOCK, p.v_scale += CUT / EIGHT_BIT_BLOCK;
            OK(update_cpu(tn_devices[2], &p, (float *)w2.p + CUT, (char *)m2.p + CUT * dtype_size(mt),
                          (char *)v2.p + CUT * dtype_size(vt), (float *)g.p + CUT, NULL, N - CUT, &tn_err));
            assert_memory_equal(w.p, want.p, N * sizeof(float));
            assert_memory_equal(w.p, w2.p, N * sizeof(float));
            for (int b = 0; b < BLOCKS; b++) { /* from here on the plain ones are what eight bits have left */
                int64_t at = b * EIGHT_BIT_BLOCK, n = N - at < EIGHT_BIT_BLOCK ? N - at : EIGHT_BIT_BLOCK;

                for (int i = 0; i < 2; i++) {
                    float *x = (float *)(i ? rv.p : rm.p) + at, scale = 0;
                    uint8_t code[EIGHT_BIT_BLOCK], *got = (uint8_t *)(i ? v.p : m.p) + at;

                    if ((i ? vt : mt) == DTYPE_F32 || (i && !adamw))
                        continue;
                    eight_bit_encode(eight_bit_levels(!i), !i, x, n, false, code, &scale);
                    assert_memory_equal(code, got, (size_t)n);
                    assert_true(scale == ((float *)(i ? vs.p : ms.p))[b]);
                    eight_bit_decode(eight_bit_levels(!i), code, scale, n, x);
                }
            }
        }
        assert_memory_equal(m.p, m2.p, N * dtype_size(mt));
        assert_memory_equal(v.p, v2.p, N * dtype_size(vt));
        for (int64_t i = 0; i < N; i++)
            assert_int_equal(((uint16_t *)low.p)[i], bf16_of(((float *)w.p)[i]));
        p.step = 1;
        assert_int_equal(update_cpu(tn_devices[0], &p, NULL, m.p, v.p, w.p, low.p, N, &tn_err), ERR_ARG);
        p.m_scale = p.v_scale = NULL;
        assert_int_equal(update_cpu(tn_devices[0], &p, w.p, m.p, v.p, w.p, NULL, N, &tn_err), ERR_ARG);
    }
}

/* The bf16 number for element e, by the definition: x plus sixteen random bits, cut off. */
static uint16_t rounded(float x, uint64_t key, uint64_t step, int64_t e)
{
    uint32_t u, word[4];

    rng_philox(key, (uint64_t)e / 8, step, word);
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + (word[e % 8 / 2] >> 16 * (e % 2) & 0xffff)) >> 16);
}

/* A matrix of 61 columns, whole and as two halves of its columns. */
static void adamw_rounds_bf16_weights(void **s)
{
    enum { ROWS = 67, WIDTH = 61, N = ROWS * WIDTH };
    struct tn g = tn_random(DTYPE_F32, N, 17, 1, 0), w = tn_zero(DTYPE_F32, N);
    struct tn m = tn_zero(DTYPE_F32, N), v = tn_zero(DTYPE_F32, N);
    struct tn low = tn_zero(DTYPE_BF16, N), m2 = tn_zero(DTYPE_F32, N), v2 = tn_zero(DTYPE_F32, N);
    struct update p = {.step = 3, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .round = {99, 0, WIDTH, WIDTH}};
    double mean = 0;

    (void)s;
    for (int i = 0; i < N; i++) {
        ((float *)g.p)[i] = 1;
        ((float *)w.p)[i] = i % 2 ? 1.5f : -1.5f;
        ((uint16_t *)low.p)[i] = bf16_of(i % 2 ? 1.5f : -1.5f);
    }
    OK(update_cpu(tn_devices[1], &p, w.p, m.p, v.p, g.p, NULL, N, &tn_err));
    OK(update_cpu(tn_devices[2], &p, NULL, m2.p, v2.p, g.p, low.p, N, &tn_err));
    tn_whole("low", &low);
    assert_memory_equal(m.p, m2.p, N * sizeof(float));
    assert_memory_equal(v.p, v2.p, N * sizeof(float));
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(((uint16_t *)low.p)[i], rounded(((float *)w.p)[i], 99, 3, i));
        mean += (double)bf16_to(((uint16_t *)low.p)[i]) - (double)((float *)w.p)[i];
    }
    assert_true(fabs(mean / N) < 3e-4); /* a place is 8e-3, and the update less than half of it */
    for (int from = 0, cols = 29; from < WIDTH; from += cols, cols = WIDTH - cols) {
        struct tn half = tn_zero(DTYPE_BF16, ROWS * cols);
        struct tn m3 = tn_zero(DTYPE_F32, ROWS * cols), v3 = tn_zero(DTYPE_F32, ROWS * cols);

        for (int i = 0; i < ROWS * cols; i++)
            ((uint16_t *)half.p)[i] = bf16_of((i / cols * WIDTH + from + i % cols) % 2 ? 1.5f : -1.5f);
        p.round = (struct update_round){99, from, cols, WIDTH};
        OK(update_cpu(tn_devices[1], &p, NULL, m3.p, v3.p, g.p, half.p, ROWS * cols, &tn_err));
        for (int i = 0; i < ROWS * cols; i++)
            assert_int_equal(((uint16_t *)half.p)[i], ((uint16_t *)low.p)[i / cols * WIDTH + from + i % cols]);
    }
    ((float *)g.p)[0] = NAN;
    p.round.cols = 0;
    assert_int_equal(update_cpu(tn_devices[0], &p, NULL, m.p, v.p, g.p, low.p, N, &tn_err), ERR_ARG);
    p.round = (struct update_round){99, 0, WIDTH, WIDTH};
    OK(update_cpu(tn_devices[0], &p, NULL, m.p, v.p, g.p, low.p, N, &tn_err));
    assert_true(isnan(bf16_to(((uint16_t *)low.p)[0])));
}

/* Second moments by rows and columns, by the definition in double; the same bits for any number of threads. */
static void second_moments_are_factored(void **s)
{
    static const int64_t shape[][2] = {{1, 1}, {1, 40}, {40, 1}, {33, 65}, {200, 77}, {5000, 0}};

    (void)s;
    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++) {
        int64_t rows = shape[k][0], cols = shape[k][1] ? shape[k][1] : 1, n = rows * cols;
        bool vector = !shape[k][1];
        struct tn row[3], col[3];
        double *r = tn_doubles(rows), *c = tn_doubles(cols), *want = tn_doubles(n);

        memset(r, 0, (size_t)rows * sizeof *r);
        memset(c, 0, (size_t)cols * sizeof *c);
        for (int d = 0; d < 3; d++) {
            row[d] = tn_zero(DTYPE_F32, rows);
            col[d] = tn_zero(DTYPE_F32, cols);
        }
        for (int step = 1; step <= 3; step++) {
            const struct factored p = {rows, cols, pow(step, -0.8), step == 2 ? 0.5 : 1e-7};
            struct tn g[3];
            double mean = 0, least = p.eps * p.eps;

            for (int d = 0; d < 3; d++) {
                g[d] = tn_random(DTYPE_F32, n, 20 + (uint64_t)step, 0.7, 0);
                OK(factored_cpu(tn_devices[d], &p, g[d].p, row[d].p, vector ? NULL : col[d].p, &tn_err));
                assert_memory_equal(g[0].p, g[d].p, (size_t)n * sizeof(float));
            }
            for (int64_t i = 0; i < rows; i++) {
                double sum = 0;

                for (int64_t j = 0; j < cols; j++)
                    sum += g->v[i * cols + j] * g->v[i * cols + j];
                r[i] += p.fresh * (sum / (double)cols - r[i]);
                mean += r[i] / (double)rows;
            }
            for (int64_t j = 0; j < cols; j++) {
                double sum = 0;

                for (int64_t i = 0; i < rows; i++)
                    sum += g->v[i * cols + j] * g->v[i * cols + j];
                c[j] += p.fresh * (sum / (double)rows - c[j]);
            }
            for (int64_t i = 0; i < n; i++) {
                double v = vector ? r[i] : r[i / cols] * c[i % cols] / fmax(mean, p.eps);

                want[i] = g->v[i] / sqrt(fmax(v, least));
            }
            tn_near("g", g, want, 2e-6, 1);
        }
        tn_near("row", row, r, 2e-6, 1e-2);
        if (!vector)
            tn_near("col", col, c, 2e-6, 1e-2);
    }
    assert_int_equal(factored_cpu(tn_devices[0], &(struct factored){2, 2, 0.5, 1e-7}, NULL, NULL, NULL, &tn_err), ERR_ARG);
    assert_int_equal(factored_cpu(tn_devices[0], &(struct factored){2, 1, 1.5, 1e-7}, NULL, NULL, NULL, &tn_err), ERR_ARG);
    assert_int_equal(factored_cpu(tn_devices[0], &(struct factored){2, 1, 0.5, 0}, NULL, NULL, NULL, &tn_err), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPS_TEST(casts_round_to_nearest_even),
        OPS_TEST(sums_and_scales),
        OPS_TEST(dropout_follows_philox),
        OPS_TEST(dropout_of_stretches),
        OPS_TEST(dropout_reads_what_is_known_later),
        OPS_TEST(dropout_keeps_the_share_it_should),
        OPS_TEST(column_sums_are_exact_and_thread_free),
        OPS_TEST(norms_add_up_and_clip),
        OPS_TEST(approximations_keep_their_bounds),
        OPS_TEST(activations_and_their_slopes),
        OPS_TEST(gated_units),
        OPS_TEST(updates_follow_their_formulas),
        OPS_TEST(adamw_rounds_bf16_weights),
        OPS_TEST(moments_round_both_ways),
        OPS_TEST(eight_bits_are_the_nearest),
        OPS_TEST(moments_in_eight_bits),
        OPS_TEST(second_moments_are_factored),
    };
    return cmocka_run_group_tests_name("kernels_vec", tests, tn_open, tn_close);
}
