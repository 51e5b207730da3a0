#include "tests/train_twins/train_twins.h"

struct tensor tensor_of(struct made *m, enum dtype dt, int64_t n, int64_t off, const float *value)
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

struct tensor normal(struct made *m, enum dtype dt, int64_t n, int64_t off, uint64_t seed, float scale, float shift)
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

struct tensor result(struct made *m, enum dtype dt, int64_t n, int64_t off)
{
    return tensor_of(m, dt, n, off, NULL);
}

void *on(const struct made *m, int w, const struct tensor *t)
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

/* What the norm of the errors of n bf16 elements may be a share of the norm of what was wanted.  Both sides round sums that are
 * nearly the same, so few fall on two sides of a rounding; rounded twice, as bf16 parts of a sum are, it would be three times as
 * much. */
static double norm_of_roundings(int64_t n)
{
    return 0x1p-11 + 0x1p-7 / sqrt((double)n);
}

/* What was written where nothing was to be: "", or what to say. */
static const char *strayed(const unsigned char *want, const unsigned char *got, const struct tensor *t, size_t bytes)
{
    for (size_t i = bytes - 64; i < bytes; i++)
        if (want[i] != 0xff || got[i] != 0xff)
            return "wrote behind its end";
    for (int64_t i = 0; i < t->off; i++)
        if (!isnan(value_at(got, t->dt, i)))
            return "wrote before its beginning";
    return "";
}

void near(struct made *m, const char *what, const struct tensor *t, double tol, double s)
{
    double errors = 0, wanted = 0, norm, most = tol + (t->dt == DTYPE_BF16 && tol > 0 ? 0x1p-7 : 0);
    size_t w = dtype_size(t->dt), bytes = (size_t)(t->off + t->n) * w + 64;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    struct twins_found f = {.what = what, .how = m->t->how, .n = t->n};
    char why[256] = "";

    CHECK(m, device_get(m->t->cpu, want, m->on[0][t->block], bytes, &m->e));
    CHECK(m, device_get(m->t->other, got, m->on[1][t->block], bytes, &m->e));
    for (int64_t i = t->off; i < t->off + t->n; i++) {
        double a = (double)value_at(want, t->dt, i), b = (double)value_at(got, t->dt, i), err = fabs(a - b) / (fabs(a) + s);
        bool is = tol > 0 ? err <= most : memcmp(want + (size_t)i * w, got + (size_t)i * w, w) == 0;

        if (!is && f.wrong++ == 0)
            snprintf(why, sizeof why, "%s: element %lld of %lld is %.9g, not %.9g", what, (long long)(i - t->off),
                     (long long)t->n, b, a);
        f.most = tol > 0 && !(err / most <= f.most) && !isnan(f.most) ? err / most : f.most;
        errors += (a - b) * (a - b);
        wanted += a * a;
    }
    norm = tol * (sqrt(wanted) + s * sqrt((double)t->n));
    if (t->dt == DTYPE_BF16)
        norm = norm_of_roundings(t->n) * sqrt(wanted) + norm / 2;
    if (tol > 0 && t->n > 0 && errors != 0) {
        f.norm = sqrt(errors) / norm;
        if (!(f.norm <= 1) && !why[0])
            snprintf(why, sizeof why, "%s: the norm of the errors of %lld elements is %.4g, of the elements %.4g", what,
                     (long long)t->n, sqrt(errors), sqrt(wanted));
    }
    if (!why[0] && strayed(want, got, t, bytes)[0])
        snprintf(why, sizeof why, "%s: %s", what, strayed(want, got, t, bytes));
    f.why = why;
    found(m->t, &f);
    free(want);
    free(got);
}

void same(struct made *m, const char *what, const struct tensor *a, const struct tensor *b)
{
    size_t bytes = (size_t)a->n * dtype_size(a->dt);
    unsigned char *x = malloc(2 * bytes);
    struct twins_found f = {.what = what, .how = m->t->how, .n = 2 * (int64_t)bytes};
    char why[256] = "";

    BOTH {
        CHECK(m, device_get(DEV(m, w), x, on(m, w, a), bytes, &m->e));
        CHECK(m, device_get(DEV(m, w), x + bytes, on(m, w, b), bytes, &m->e));
        for (size_t i = 0; i < bytes; i++)
            if (x[i] != x[bytes + i] && f.wrong++ == 0)
                snprintf(why, sizeof why, "%s: byte %zu of %zu is %02x, not %02x", what, i, bytes, x[i], x[bytes + i]);
    }
    f.why = why;
    found(m->t, &f);
    free(x);
}

int ids(struct made *m, int64_t n, uint64_t seed, int64_t limit, bool some)
{
    int32_t *v = host_of(m, (size_t)n * 4);

    for (int64_t i = 0; i < n; i++)
        v[i] = some && i % 7 == 5 ? -1 : (int32_t)(number(seed, i) % (uint64_t)limit);
    return give(m, v, (size_t)n * 4);
}

const enum dtype both_types[2] = {DTYPE_F32, DTYPE_BF16};

int dropout_now(struct made *m)
{
    return give(m, &(struct dropout_now){(uint64_t)3 << 30 | 77, 5}, sizeof(struct dropout_now));
}

const char *name_of(char *buf, const char *what, enum dtype dt, int64_t a, int64_t b)
{
    snprintf(buf, 80, "%s %s, %lld x %lld", what, dtype_name(dt), (long long)a, (long long)b);
    return buf;
}
