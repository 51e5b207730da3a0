/* Matrix products with epilogues, and the device itself. */
#include "kernels/amx.h"
#include "tests/kernels.h"

static const int64_t shapes[][3] = {{1, 1, 1},   {3, 5, 7},    {16, 16, 16}, {64, 64, 64},
                                    {65, 63, 33}, {100, 1, 200}, {1, 300, 70}, {130, 96, 515},
                                    {256, 192, 64}, {1024, 40, 24}, {4096, 24, 37}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Both implementations, all transpositions, types, strides, beta and bias. */
static void products_equal_the_definition(void **s)
{
    (void)s;
    for (int k = 0; k < N_SHAPES * 4 * 3 * 3 * 2; k++) {
        int64_t m = shapes[k % N_SHAPES][0], n = shapes[k % N_SHAPES][1],
                kk = shapes[k % N_SHAPES][2];
        int r = k / N_SHAPES;
        bool ta = r % 2, tb = r / 2 % 2, plain = r / 36;
        int types = r / 4 % 3, mode = r / 12 % 3; /* mode: bare, bias, beta */
        enum dtype dt = types ? DTYPE_BF16 : DTYPE_F32, dc = types == 1 ? DTYPE_BF16 : DTYPE_F32;
        int64_t pad = k % 2 ? 3 : 0, lda = (ta ? m : kk) + pad, ldb = (tb ? kk : n) + pad;
        int64_t ldc = n + pad, na = (ta ? kk : m) * lda, nb = (tb ? n : kk) * ldb, nc = m * ldc;
        struct tn a = tn_random(dt, na, 60, 1, 0), b = tn_random(dt, nb, 61, 1, 0);
        struct tn bias = tn_random(dt, n, 62, 1, 0), start = tn_random(dc, nc, 63, 1, 0);
        double *want = tn_doubles(nc);
        struct tn got[3];

        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = mode == 1 ? bias.v[j] : mode == 2 ? start.v[i * ldc + j] : 0;

                for (int64_t l = 0; l < kk; l++)
                    sum += a.v[ta ? l * lda + i : i * lda + l] * b.v[tb ? j * ldb + l : l * ldb + j];
                want[i * ldc + j] = sum;
            }
        for (int d = 0; d < (plain ? 3 : 2); d++) {
            struct matmul p = {.m = m, .n = n, .k = kk, .trans_a = ta, .trans_b = tb, .dt = dt,
                               .dt_c = dc, .a = a.p, .b = b.p, .lda = pad ? lda : 0,
                               .ldb = pad ? ldb : 0, .ldc = pad ? ldc : 0,
                               .bias = mode == 1 ? bias.p : NULL, .beta = mode == 2, .ragged = k % 5 < 2};

            got[d] = mode == 2 ? tn_copy(&start) : tn_poison(dc, nc);
            p.c = got[d].p;
            OK((plain ? matmul_plain_cpu : matmul_cpu)(tn_devices[d], &p, &tn_err));
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = n; j < ldc; j++) { /* between the rows: as it was */
                    assert_true(mode == 2 ? tn_at(&got[d], i * ldc + j) == start.v[i * ldc + j]
                                          : isnan(tn_at(&got[d], i * ldc + j)));
                    tn_set(&got[d], i * ldc + j, 0);
                }
            tn_near("product", &got[d], want, 3e-6, sqrt((double)kk) + 1);
            if (plain)
                tn_same("product", &got[0], &got[d]);
            if (d == 0)
                continue;
            struct tn again = mode == 2 ? tn_copy(&start) : tn_poison(dc, nc);
            p.c = again.p;
            OK((plain ? matmul_plain_cpu : matmul_cpu)(tn_devices[d], &p, &tn_err));
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = n; j < ldc; j++)
                    tn_set(&again, i * ldc + j, 0);
            tn_same("the same product", &got[d], &again);
        }
    }
}

/* Rows, columns and an inner dimension beyond what is worked on at once, none of them whole: as the plain product within
 * rounding, and by AMX in the same bits for any number of threads. */
static void large_products_equal_plain_ones(void **s)
{
    enum { M = 1061, N = 1117, K = 2093 };

    (void)s;
    for (int k = 0; k < 4; k++) {
        bool ta = k & 1, tb = k & 2;
        int64_t m = ta ? N : M, n = ta ? M : N;
        struct tn a = tn_random(DTYPE_BF16, m * K, 60, 1, 0), b = tn_random(DTYPE_BF16, n * K, 61, 1, 0);
        struct matmul p = {.m = m, .n = n, .k = K, .trans_a = ta, .trans_b = tb, .dt = DTYPE_BF16, .dt_c = DTYPE_F32, .a = a.p,
                           .b = b.p};
        double *want = tn_doubles(m * n);
        struct tn c = tn_poison(DTYPE_F32, m * n), got[3];

        p.c = c.p;
        OK(matmul_plain_cpu(tn_devices[2], &p, &tn_err));
        for (int64_t i = 0; i < m * n; i++)
            want[i] = tn_at(&c, i);
        for (int d = 0; d < 3; d++) {
            got[d] = tn_poison(DTYPE_F32, m * n);
            p.c = got[d].p;
            OK(matmul_cpu(tn_devices[d], &p, &tn_err));
            tn_near("a large product", &got[d], want, 1e-5, sqrt((double)K));
            if (amx_here())
                tn_same("a large product on other threads", &got[0], &got[d]);
        }
    }
}

static void epilogues_run_activations_both_ways(void **s)
{
    (void)s;
    for (int k = 0; k < 2 * N_SHAPES * (ACT_KINDS - 1); k++) {
        const int64_t *shape = shapes[k / 2 % N_SHAPES];
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        enum act act = (enum act)(1 + k / (2 * N_SHAPES));
        int64_t m = shape[0], n = shape[1], kk = shape[2];
        struct tn a = tn_random(dt, m * kk, 60, 0.5, 0), b = tn_random(dt, n * kk, 61, 0.5, 0);
        struct tn bias = tn_random(dt, n, 62, 1, 0), c = tn_poison(dt, m * n);
        struct tn aux = tn_poison(dt, m * n), dc = tn_poison(dt, m * n);
        double *want = tn_doubles(m * n), *dwant = tn_doubles(m * n), *pre = tn_doubles(m * n);
        struct matmul p = {.m = m, .n = n, .k = kk, .trans_b = true, .dt = dt, .dt_c = dt,
                           .a = a.p, .b = b.p, .c = c.p, .bias = bias.p, .act = act,
                           .aux = aux.p};

        OK(matmul_cpu(tn_devices[1], &p, &tn_err));
        for (int64_t i = 0; i < m * n; i++) {
            double x = 0, at = tn_at(&aux, i);

            for (int64_t l = 0; l < kk; l++)
                x += a.v[i / n * kk + l] * b.v[i % n * kk + l];
            pre[i] = x + bias.v[i % n];
            want[i] = tn_act(act, at);
            dwant[i] = x * tn_act_slope(act, at);
        }
        tn_near("before", &aux, pre, 2e-6, sqrt((double)kk));
        tn_near("after", &c, want, 2e-6, 1);
        p.act = ACT_NONE;
        p.bias = NULL;
        p.dact = act;
        p.dact_aux = aux.p;
        p.c = dc.p;
        OK(matmul_cpu(tn_devices[2], &p, &tn_err));
        tn_near("slope", &dc, dwant, dt == DTYPE_BF16 ? 8e-3 : 2e-6, sqrt((double)kk));
    }
}

static void products_refuse_nonsense(void **s)
{
    float x[16] = {0};
    const struct matmul good = {.m = 2, .n = 2, .k = 2, .a = x, .b = x + 4, .c = x + 8};
    struct matmul bad[8];

    (void)s;
    OK(matmul_cpu(tn_devices[0], &good, &tn_err));
    for (int i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].m = -1;
    bad[1].lda = 1;
    bad[2].beta = 0.5f;
    bad[3].act = ACT_SILU;
    bad[4].dt_c = DTYPE_BF16;
    bad[5].beta = 1;
    bad[5].bias = x;
    bad[6].dt = (enum dtype)7;
    bad[7].ldc = 1;
    for (int i = 0; i < 8; i++)
        assert_int_equal(matmul_cpu(tn_devices[0], &bad[i], &tn_err), ERR_ARG);
    struct matmul none = good;
    float c[4] = {1, 2, 3, 4}, bias[2] = {5, 6};
    none.k = 0; /* an empty sum: C becomes the bias */
    none.c = c;
    none.bias = bias;
    OK(matmul_cpu(tn_devices[0], &none, &tn_err));
    assert_true(c[0] == 5 && c[1] == 6 && c[2] == 5 && c[3] == 6);
}

/* Each group's rows and matrix, by the definition: the same bits for any number of threads, and rows of no group as they were. */
static void groups_equal_the_definition(void **s)
{
    static const int32_t counts[][6] = {{0, 1, 300, 17, 0, 20}, {0, 0, 338, 0, 0, 0}, {1, 1, 1, 1, 1, 1}, {0}}, most = 300;
    enum { E = 6, ROWS = 340, OUT = 72, IN = 600 };

    (void)s;
    for (int k = 0; k < 4 * 3 * 2 * 2; k++) {
        const int32_t *count = counts[k % 4];
        int what = k / 4 % 3; /* forward, input, weight */
        enum dtype dt = k / 12 % 2 ? DTYPE_BF16 : DTYPE_F32, dc = what == 2 ? DTYPE_F32 : dt;
        bool add = k / 24;
        int64_t nc = what == 2 ? E * OUT * IN : ROWS * (what ? IN : OUT);
        struct tn x = tn_random(dt, ROWS * IN, 60, 1, 0), y = tn_random(dt, ROWS * OUT, 61, 1, 0);
        struct tn w = tn_random(dt, E * OUT * IN, 62, 1, 0), bias = tn_random(dt, E * OUT, 63, 1, 0);
        struct tn c = tn_random(dc, nc, 64, 1, 0), db = tn_random(DTYPE_F32, E * OUT, 65, 1, 0), got[3], sums[3];
        double *want = tn_doubles(nc), *want_db = tn_doubles(E * OUT);

        for (int64_t i = 0; i < nc; i++)
            want[i] = what == 2 && !add ? 0 : c.v[i];
        for (int64_t i = 0; i < E * OUT; i++)
            want_db[i] = db.v[i];
        for (int64_t g = 0, r = 0; g < E; g++)
            for (int64_t end = r + (count[g] < most ? count[g] : most); r < end; r++)
                for (int64_t o = 0; o < OUT; o++) {
                    double sum = what == 0 && add ? c.v[r * OUT + o] : bias.v[g * OUT + o];

                    for (int64_t i = 0; i < IN; i++) {
                        double *to = want + (what == 2 ? (g * OUT + o) * IN : r * IN) + i, wt = w.v[(g * OUT + o) * IN + i];

                        sum += x.v[r * IN + i] * wt;
                        if (what == 1)
                            *to = (o || add ? *to : 0) + y.v[r * OUT + o] * wt;
                        if (what == 2)
                            *to += y.v[r * OUT + o] * x.v[r * IN + i];
                    }
                    if (what == 0)
                        want[r * OUT + o] = sum;
                    want_db[g * OUT + o] += what == 2 ? y.v[r * OUT + o] : 0;
                }
        for (int d = 0; d < 3; d++) {
            struct matmul_grouped q = {.groups = E, .count = count, .most = most, .step = OUT * IN, .step_bias = OUT};

            got[d] = tn_copy(&c);
            sums[d] = tn_copy(&db);
            if (what == 0)
                q.of = (struct matmul){.m = ROWS, .n = OUT, .k = IN, .trans_b = true, .a = x.p, .b = w.p,
                                       .bias = add ? NULL : bias.p};
            else if (what == 1)
                q.of = (struct matmul){.m = ROWS, .n = IN, .k = OUT, .a = y.p, .b = w.p};
            else
                q.of = (struct matmul){.m = OUT, .n = IN, .k = ROWS, .trans_a = true, .a = y.p, .b = x.p};
            q.of.dt = dt, q.of.dt_c = dc, q.of.c = got[d].p, q.of.beta = add;
            q.sums = what == 2 ? sums[d].p : NULL;
            OK(matmul_grouped_cpu(tn_devices[d], &q, &tn_err));
            tn_near("groups", &got[d], want, 3e-6, sqrt(IN) + 1);
            tn_near("groups' sums", &sums[d], want_db, 3e-6, 20);
            tn_same("groups", &got[0], &got[d]);
        }
    }
}

static void groups_refuse_nonsense(void **s)
{
    float x[64] = {0};
    const int32_t count[2] = {1, 2}, more[2] = {1, 4}, less[2] = {3, -1};
    const struct matmul_grouped good = {.of = {.m = 4, .n = 2, .k = 2, .a = x, .b = x + 8, .c = x + 16}, .groups = 2,
                                        .count = count, .step = 4};
    struct matmul_grouped bad[7];

    (void)s;
    OK(matmul_grouped_cpu(tn_devices[0], &good, &tn_err));
    for (int i = 0; i < 7; i++)
        bad[i] = good;
    bad[0].groups = 0;
    bad[1].count = more;
    bad[2].count = less;
    bad[3].of.act = ACT_SILU;
    bad[3].of.aux = x + 32;
    bad[4].sums = x + 32;
    bad[5].count = NULL;
    bad[5].of.m = 5;
    bad[6].of.trans_a = bad[6].of.trans_b = true;
    for (int i = 0; i < 7; i++)
        assert_int_equal(matmul_grouped_cpu(tn_devices[0], &bad[i], &tn_err), ERR_ARG);
}

static void more_shapes_than_plans(void **s)
{
    struct tn a = tn_random(DTYPE_BF16, 400, 1, 1, 0), b = tn_random(DTYPE_BF16, 400, 2, 1, 0);

    (void)s;
    for (int64_t n = 1; n <= 300; n++) {
        struct tn c = tn_poison(DTYPE_F32, n);
        double *want = tn_doubles(n);
        struct matmul p = {.m = 1, .n = n, .k = 1, .dt = DTYPE_BF16, .a = a.p, .b = b.p, .c = c.p};

        for (int64_t i = 0; i < n; i++)
            want[i] = a.v[0] * b.v[i];
        OK(matmul_cpu(tn_devices[0], &p, &tn_err));
        tn_near("c", &c, want, 1e-6, 0);
    }
}

static void devices_open_and_move_bytes(void **s)
{
    struct device *dev;
    double flops = 0;
    void *p, *q;
    char in[100000], out[100000];

    (void)s;
    assert_int_equal(device_open(&dev, "tpu", 0, &tn_err), ERR_ARG);
    assert_null(dev);
    setenv("QUERN_CUDA", "/no/such/library.so", 1);
    assert_int_equal(device_open(&dev, "cuda", 0, &tn_err), ERR_UNSUPPORTED);
    assert_int_equal(device_open(&dev, "cpu", -1, &tn_err), ERR_ARG);
    OK(device_open(&dev, "auto", 2, &tn_err));
    assert_int_equal(dev->kind, DEVICE_CPU);
    assert_int_equal(dev->threads, 2);
    for (size_t i = 0; i < sizeof *dev->ops / sizeof(void *); i++)
        assert_non_null(((void *const *)dev->ops)[i]);
    OK(device_alloc(dev, &p, sizeof in, &tn_err));
    OK(device_alloc(dev, &q, (size_t)5 << 20, &tn_err));
    assert_int_equal((uintptr_t)p % 64, 0);
    assert_int_equal((uintptr_t)q % 4096, 0);
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (char)(i * 31);
    OK(device_put(dev, p, in, sizeof in, &tn_err));
    OK(device_copy(dev, q, p, sizeof in, &tn_err));
    OK(device_get(dev, out, q, sizeof in, &tn_err));
    assert_memory_equal(in, out, sizeof in);
    OK(device_zero(dev, q, sizeof in - 1, &tn_err));
    assert_int_equal(((char *)q)[sizeof in - 2], 0);
    assert_int_equal(((char *)q)[sizeof in - 1], in[sizeof in - 1]);
    OK(device_sync(dev, &tn_err));
    OK(device_peak_flops(dev, DTYPE_F32, 1e6, &flops, &tn_err));
    assert_true(flops > 1e8);
    assert_int_equal(device_alloc(dev, &p, SIZE_MAX, &tn_err), ERR_NOMEM);
    device_free(dev, q);
    device_close(dev);
    device_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPS_TEST(products_equal_the_definition),
        OPS_TEST(large_products_equal_plain_ones),
        OPS_TEST(epilogues_run_activations_both_ways),
        OPS_TEST(products_refuse_nonsense),
        OPS_TEST(groups_equal_the_definition),
        OPS_TEST(groups_refuse_nonsense),
        OPS_TEST(more_shapes_than_plans),
        OPS_TEST(devices_open_and_move_bytes),
    };
    return cmocka_run_group_tests_name("kernels_matmul", tests, tn_open, tn_close);
}
