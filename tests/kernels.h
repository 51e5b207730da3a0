/* tests/kernels.h -- tensors with canaries, poison and references, for the tests of ops.
 *
 * A tensor holds what the op sees (p, of type dt) and the same values as doubles for the
 * reference.  Outputs start as NaN; comparisons are written so that NaN fails.
 */
#ifndef TESTS_KERNELS_H
#define TESTS_KERNELS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernels/device.h"

enum { CANARY = 64 };

struct tn {
    enum dtype dt;
    int64_t n;
    char *raw;
    void *p;
    double *v;
};

/* Everything that a test made, freed by tn_teardown. */
enum { TN_MAX = 65536 };
static void *tn_made[TN_MAX];
static int tn_count;
static struct device *tn_devices[3];
static struct err tn_err;

#define OK(call)                                                               \
    do {                                                                       \
        if ((call) != 0)                                                       \
            fail_msg("%s: %s", #call, tn_err.msg);                             \
    } while (0)

static inline void *tn_keep(void *p)
{
    assert_non_null(p);
    assert_true(tn_count < TN_MAX);
    return tn_made[tn_count++] = p;
}

static inline int tn_teardown(void **s)
{
    (void)s;
    while (tn_count > 0)
        free(tn_made[--tn_count]);
    return 0;
}

/* Devices of 1, 2 and 3 threads, made once. */
static inline int tn_open(void **s)
{
    (void)s;
    for (int i = 0; i < 3; i++)
        if (device_open(&tn_devices[i], "cpu", i + 1, &tn_err) < 0)
            return -1;
    return 0;
}

static inline int tn_close(void **s)
{
    (void)s;
    for (int i = 0; i < 3; i++)
        device_close(tn_devices[i]);
    return 0;
}

static inline double tn_at(const struct tn *t, int64_t i)
{
    return t->dt == DTYPE_BF16 ? (double)bf16_to(((uint16_t *)t->p)[i])
                               : (double)((float *)t->p)[i];
}

static inline void tn_set(struct tn *t, int64_t i, double x)
{
    if (t->dt == DTYPE_BF16)
        ((uint16_t *)t->p)[i] = bf16_of((float)x);
    else
        ((float *)t->p)[i] = (float)x;
    t->v[i] = tn_at(t, i);
}

static inline struct tn tn_poison(enum dtype dt, int64_t n)
{
    struct tn t = {.dt = dt, .n = n};
    size_t bytes = (size_t)n * dtype_size(dt);

    t.raw = tn_keep(malloc(bytes + 2 * CANARY));
    memset(t.raw, 0xa5, bytes + 2 * CANARY);
    t.p = t.raw + CANARY;
    t.v = tn_keep(malloc((size_t)(n ? n : 1) * sizeof *t.v));
    for (int64_t i = 0; i < n; i++)
        tn_set(&t, i, NAN);
    return t;
}

/* Normal numbers times scale plus shift, a pure function of seed. */
static inline struct tn tn_random(enum dtype dt, int64_t n, uint64_t seed, double scale,
                                  double shift)
{
    struct tn t = tn_poison(dt, n);

    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];
        double z[2];

        rng_philox(seed, (uint64_t)i, 77, w);
        rng_normal2(w[0], w[1], z);
        tn_set(&t, i, z[0] * scale + shift);
    }
    return t;
}

static inline struct tn tn_zero(enum dtype dt, int64_t n)
{
    return tn_random(dt, n, 1, 0, 0);
}

/* A fresh copy: what the op sees, and v. */
static inline struct tn tn_copy(const struct tn *t)
{
    struct tn c = tn_poison(t->dt, t->n);

    for (int64_t i = 0; i < t->n; i++)
        tn_set(&c, i, t->v[i]);
    return c;
}

static inline int32_t *tn_ids(int64_t n, uint64_t seed, int32_t limit)
{
    int32_t *p = tn_keep(malloc((size_t)(n ? n : 1) * sizeof *p));

    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];

        rng_philox(seed, (uint64_t)i, 78, w);
        p[i] = (int32_t)(w[0] % (uint32_t)limit);
    }
    return p;
}

static inline double *tn_doubles(int64_t n)
{
    return tn_keep(calloc((size_t)(n ? n : 1), sizeof(double)));
}

static inline void tn_whole(const char *name, const struct tn *t)
{
    size_t bytes = (size_t)t->n * dtype_size(t->dt);

    for (int i = 0; i < CANARY; i++)
        if ((unsigned char)t->raw[i] != 0xa5 ||
            (unsigned char)t->raw[CANARY + bytes + (size_t)i] != 0xa5)
            fail_msg("%s: wrote outside", name);
}

/* |got - want| <= tol * (|want| + scale); bf16 results may be off by half a unit more. */
static inline void tn_near(const char *name, const struct tn *t, const double *want, double tol,
                           double scale)
{
    if (t->dt == DTYPE_BF16)
        tol += 0x1p-8;
    tn_whole(name, t);
    for (int64_t i = 0; i < t->n; i++) {
        double got = tn_at(t, i), err = fabs(got - want[i]);

        if (!(err <= tol * (fabs(want[i]) + scale)))
            fail_msg("%s[%lld]: %.9g, should be %.9g", name, (long long)i, got, want[i]);
    }
}

/* The same bytes. */
static inline void tn_same(const char *name, const struct tn *a, const struct tn *b)
{
    tn_whole(name, b);
    assert_int_equal(a->n, b->n);
    for (int64_t i = 0; i < a->n; i++)
        if (memcmp((char *)a->p + (size_t)i * dtype_size(a->dt),
                   (char *)b->p + (size_t)i * dtype_size(b->dt), dtype_size(a->dt)) != 0)
            fail_msg("%s[%lld]: %.9g, and %.9g another time", name, (long long)i,
                     tn_at(a, i), tn_at(b, i));
}

/* d f / d x[i] by central differences of a function in double. */
static inline double tn_slope(double (*f)(void *ctx), void *ctx, double *x, double h)
{
    double old = *x, up, down;

    *x = old + h;
    up = f(ctx);
    *x = old - h;
    down = f(ctx);
    *x = old;
    return (up - down) / (2 * h);
}

/* What dropout multiplies an element by; d may be NULL. */
static inline double tn_drop_factor(const struct dropout *d, int64_t row, int64_t col, int64_t cols)
{
    uint32_t w[4];

    if (!d)
        return 1;
    rng_philox(d->key, (uint64_t)((d->row0 + row) * ((cols + 3) / 4) + col / 4), d->stream, w);
    return (double)w[col % 4] < rint((double)d->p * 4294967296.0) ? 0 : 1 / (1 - (double)d->p);
}

/* An activation in double, and its derivative: by central differences, or exactly where it jumps. */
static inline double tn_act(enum act a, double x)
{
    if (a == ACT_GELU_TANH)
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (a == ACT_RELU || a == ACT_RELU2)
        return x <= 0 ? 0 : a == ACT_RELU ? x : x * x;
    if (a == ACT_CLAMPED)
        return fmin(x, ACT_LIMIT) / (1 + exp(-(double)ACT_QUICK * fmin(x, ACT_LIMIT)));
    return a == ACT_GELU_ERF ? 0.5 * x * erfc(-x / sqrt(2)) : x / (1 + exp(-x));
}

static inline double tn_act_slope(enum act a, double x)
{
    if (a == ACT_RELU)
        return x > 0;
    if (a == ACT_CLAMPED && x >= ACT_LIMIT)
        return x > ACT_LIMIT ? 0 : (tn_act(a, x) - tn_act(a, x - 1e-5)) / 1e-5;
    return (tn_act(a, x + 1e-5) - tn_act(a, x - 1e-5)) / 2e-5;
}

/* What multiplies a gate, and its derivative. */
static inline double tn_up(enum act a, double x)
{
    return a == ACT_CLAMPED ? fmax(fmin(x, ACT_LIMIT), -ACT_LIMIT) + 1 : x;
}

static inline double tn_up_slope(enum act a, double x)
{
    return a != ACT_CLAMPED || fabs(x) <= ACT_LIMIT;
}

#define OPS_TEST(f) cmocka_unit_test_teardown(f, tn_teardown)

#endif
