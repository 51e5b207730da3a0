/* Matrix products with epilogues, and the device itself. */
#include "tests/kernels.h"

static const int64_t shapes[][3] = {{1, 1, 1},   {3, 5, 7},    {16, 16, 16}, {64, 64, 64},
                                    {65, 63, 33}, {100, 1, 200}, {1, 300, 70}, {130, 96, 515},
                                    {256, 192, 64}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static double act_ref(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

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

static void epilogues_run_activations_both_ways(void **s)
{
    (void)s;
    for (int k = 0; k < 2 * N_SHAPES; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        int64_t m = shapes[k / 2][0], n = shapes[k / 2][1], kk = shapes[k / 2][2];
        struct tn a = tn_random(dt, m * kk, 60, 0.5, 0), b = tn_random(dt, n * kk, 61, 0.5, 0);
        struct tn bias = tn_random(dt, n, 62, 1, 0), c = tn_poison(dt, m * n);
        struct tn aux = tn_poison(dt, m * n), dc = tn_poison(dt, m * n);
        double *want = tn_doubles(m * n), *dwant = tn_doubles(m * n), *pre = tn_doubles(m * n);
        struct matmul p = {.m = m, .n = n, .k = kk, .trans_b = true, .dt = dt, .dt_c = dt,
                           .a = a.p, .b = b.p, .c = c.p, .bias = bias.p, .act = ACT_GELU_TANH,
                           .aux = aux.p};

        OK(matmul_cpu(tn_devices[1], &p, &tn_err));
        for (int64_t i = 0; i < m * n; i++) {
            double x = 0, at = tn_at(&aux, i);

            for (int64_t l = 0; l < kk; l++)
                x += a.v[i / n * kk + l] * b.v[i % n * kk + l];
            pre[i] = x + bias.v[i % n];
            want[i] = act_ref(at);
            dwant[i] = x * (act_ref(at + 1e-5) - act_ref(at - 1e-5)) / 2e-5;
        }
        tn_near("before", &aux, pre, 2e-6, sqrt((double)kk));
        tn_near("after", &c, want, 2e-6, 1);
        p.act = ACT_NONE;
        p.bias = NULL;
        p.dact = ACT_GELU_TANH;
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
    OK(device_peak_flops(dev, DTYPE_F32, &flops, &tn_err));
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
        OPS_TEST(epilogues_run_activations_both_ways),
        OPS_TEST(products_refuse_nonsense),
        OPS_TEST(more_shapes_than_plans),
        OPS_TEST(devices_open_and_move_bytes),
    };
    return cmocka_run_group_tests_name("kernels_matmul", tests, tn_open, tn_close);
}
