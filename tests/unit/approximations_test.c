/* What kernels compute by the GPU's own approximations because it is rounded to bf16: all bf16 numbers, each result beside its
 * definition in double.  The approximations err as much as PTX allows (tests/ptx.h). */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/xent.h"
#include "tests/simt_device.h"

enum { ALL = 1 << 16, ONE = 0x3f80, FINITE = 0x7f80 };

/* Of a unit in bf16's last place: half is the rounding itself. */
#define BOUND (0.5 + 0x1p-5)
/* What is smaller may be 0. */
#define TINY 0x1p-117

static struct device *dev;

static int open_device(void **s)
{
    struct err e;

    (void)s;
    return simt_open(&dev, 0, &e);
}

static int close_device(void **s)
{
    (void)s;
    device_close(dev);
    return 0;
}

/* How many units of bf16's last place lie between them. */
static double places(double got, double want)
{
    double unit = ldexp(1, (want == 0 ? -126 : ilogb(want) < -126 ? -126 : ilogb(want)) - 7);

    return fabs(got - want) < TINY ? 0 : fabs(got - want) / unit;
}

/* Memory of the device with n bf16 numbers. */
static uint16_t *put(const uint16_t *host, int64_t n)
{
    struct err e;
    void *p;

    if (device_alloc(dev, &p, (size_t)n * sizeof *host, &e) < 0 || device_put(dev, p, host, (size_t)n * sizeof *host, &e) < 0)
        fail_msg("%s", e.msg);
    return p;
}

static void get(uint16_t *host, uint16_t *p, int64_t n)
{
    struct err e;

    assert_int_equal(device_get(dev, host, p, (size_t)n * sizeof *host, &e), 0);
    device_free(dev, p);
}

/* ---- activations ---- */

static double logistic(double x) { return 1 / (1 + exp(-x)); }

/* act(x), and its derivative to *slope, in double. */
static double defined(enum act act, double x, double *slope)
{
    double k = 2 * sqrt(2 / M_PI), s, g = x < (double)ACT_LIMIT ? x : (double)ACT_LIMIT;

    switch (act) {
    case ACT_GELU_TANH:
        s = logistic(k * (x + 0.044715 * x * x * x));
        *slope = s + x * s * logistic(-k * (x + 0.044715 * x * x * x)) * k * (1 + 3 * 0.044715 * x * x);
        *slope = fabs(x) > 1e3 ? x > 0 : *slope;
        return x * s;
    case ACT_GELU_ERF:
        s = erfc(-x * M_SQRT1_2) / 2;
        *slope = s + x * exp(-x * x / 2) / sqrt(2 * M_PI);
        return x * s;
    case ACT_CLAMPED:
        s = logistic((double)ACT_QUICK * g);
        *slope = x > (double)ACT_LIMIT ? 0 : s + (double)ACT_QUICK * g * s * logistic((double)-ACT_QUICK * g);
        return g * s;
    case ACT_RELU:
        *slope = x > 0;
        return fmax(x, 0);
    case ACT_RELU2:
        *slope = 2 * fmax(x, 0);
        return fmax(x, 0) * fmax(x, 0);
    default:
        s = logistic(x);
        *slope = s + x * s * logistic(-x);
        return x * s;
    }
}

/* Whether bf16 number u is of any use in forward and backward. */
static bool counts(uint32_t u, double x, double want)
{
    return (u & 0x7fff) < FINITE && fabs(want) < FLT_MAX && fabs(x) < FLT_MAX;
}

static void activations_are_within_half_a_place(void **s)
{
    static uint16_t all[ALL], ones[ALL], y[ALL], dx[ALL];
    struct err e;

    (void)s;
    for (int i = 0; i < ALL; i++) {
        all[i] = (uint16_t)i;
        ones[i] = ONE;
    }
    for (enum act a = (enum act)(ACT_NONE + 1); a < ACT_KINDS; a = (enum act)(a + 1)) {
        uint16_t *x = put(all, ALL), *dy = put(ones, ALL), *to = put(ones, ALL), *back = put(ones, ALL);
        double most = 0;
        assert_int_equal(dev->ops->act_fwd(dev, DTYPE_BF16, a, to, x, ALL, &e), 0);
        assert_int_equal(dev->ops->act_bwd(dev, DTYPE_BF16, a, back, dy, x, ALL, &e), 0);
        get(y, to, ALL);
        get(dx, back, ALL);
        device_free(dev, x);
        device_free(dev, dy);
        for (uint32_t u = 0; u < ALL; u++) {
            double in = (double)bf16_to((uint16_t)u), slope, want = defined(a, in, &slope);
            if ((u & 0x7fff) > FINITE)
                assert_true(isnan(bf16_to(y[u])));
            if (!counts(u, in, want))
                continue;
            most = fmax(most, fmax(places((double)bf16_to(y[u]), want), places((double)bf16_to(dx[u]), slope)));
            if (!(most <= BOUND))
                fail_msg("activation %d of %a: %a, slope %a, not %a and %a", (int)a, in, (double)bf16_to(y[u]),
                         (double)bf16_to(dx[u]), want, slope);
        }
        assert_true(most > 0 || a == ACT_RELU);
    }
}

static void gates_are_within_half_a_place(void **s)
{
    static uint16_t all[ALL], ones[ALL], y[ALL];
    struct gate_rows g = {.t = ALL / 256, .c = 256, .ld = 256};
    uint16_t *x, *to, *gate;
    struct err e;

    (void)s;
    for (int i = 0; i < ALL; i++) {
        all[i] = (uint16_t)i;
        ones[i] = ONE;
    }
    x = put(ones, ALL), to = put(ones, ALL), gate = put(all, ALL);
    g.gate = gate;
    assert_int_equal(dev->ops->gate_mul(dev, DTYPE_BF16, to, x, &g, &e), 0);
    get(y, to, ALL);
    device_free(dev, x);
    device_free(dev, gate);
    for (uint32_t u = 0; u < ALL; u++) {
        double in = (double)bf16_to((uint16_t)u), want = logistic(in), got = (double)bf16_to(y[u]);
        if ((u & 0x7fff) < FINITE && !(places(got, want) <= BOUND))
            fail_msg("gate of %a: %a, not %a", in, got, want);
    }
}

/* ---- cross-entropy ---- */

/* All bf16 numbers of a size that logits have are a row, in `order`; the largest is last or first. */
static int64_t logits(uint16_t *row, bool descending)
{
    int64_t n = 0;

    for (int u = 0; u < FINITE; u++)
        for (int sign = 0; sign < 2; sign++)
            if (bf16_to((uint16_t)u) <= 60)
                row[n++] = (uint16_t)(u | sign << 15);
    for (int64_t i = 0; descending && i < n / 2; i++) {
        uint16_t x = row[i];
        row[i] = row[n - 1 - i];
        row[n - 1 - i] = x;
    }
    return n;
}

static void softmaxes_are_within_half_a_place(void **s)
{
    static uint16_t row[ALL], got[ALL];
    struct err e;

    (void)s;
    for (int how = 0; how < 8; how++) {
        bool cap = how & 2;
        int64_t n = logits(row, how & 1) - (how & 4 ? 3 : 0);
        int32_t target = how & 4 ? (int32_t)n - 1 : 77;
        float scale = 1, loss, zeros[3] = {0};
        void *memory;
        uint16_t *x = put(row, ALL);
        double sum = 0, largest = 0, wanted = 0;
        struct xent p = {.t = 1, .v = n, .ld = n + 5, .logits = x, .cap = cap ? 30 : 0};
        assert_int_equal(device_alloc(dev, &memory, sizeof zeros, &e), 0);
        memcpy(zeros, &target, sizeof target);
        zeros[1] = scale;
        assert_int_equal(device_put(dev, memory, zeros, sizeof zeros, &e), 0);
        p.target = memory, p.scale = (float *)memory + 1;
        assert_int_equal(dev->ops->xent(dev, DTYPE_BF16, &p, (float *)memory + 2, &e), 0);
        assert_int_equal(device_get(dev, &loss, (float *)memory + 2, sizeof loss, &e), 0);
        get(got, x, ALL);
        device_free(dev, memory);
        for (int64_t i = 0; i < n; i++) {
            double y = (double)bf16_to(row[i]);
            y = cap ? 30 * tanh(y / 30) : y;
            largest = i == 0 || y > largest ? y : largest;
            wanted = i == target ? y : wanted;
        }
        for (int64_t i = 0; i < n; i++) {
            double y = (double)bf16_to(row[i]);
            sum += exp((cap ? 30 * tanh(y / 30) : y) - largest);
        }
        assert_true(fabs((double)loss - (log(sum) + largest - wanted)) <= (cap ? 6e-6 : 2e-6) * (1 + fabs((double)loss)));
        for (int64_t i = 0; i < n; i++) {
            double y = (double)bf16_to(row[i]), t = tanh(y / 30);
            double want = (exp((cap ? 30 * t : y) - largest) / sum - (i == target)) * (cap ? 1 - t * t : 1);
            if (!(places((double)bf16_to(got[i]), want) <= BOUND))
                fail_msg("way %d, logit %lld, %a: %a, not %a", how, (long long)i, y, (double)bf16_to(got[i]), want);
        }
        for (int64_t i = n; i < n + 5; i++)
            assert_int_equal(got[i], 0);
        assert_int_equal(got[n + 5], row[n + 5]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_within_half_a_place),
        cmocka_unit_test(gates_are_within_half_a_place),
        cmocka_unit_test(softmaxes_are_within_half_a_place),
    };
    return cmocka_run_group_tests_name("approximations", tests, open_device, close_device);
}
