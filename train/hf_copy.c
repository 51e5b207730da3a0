#include "train/hf_copy.h"

#include <math.h>
#include <string.h>

#include "kernels/dtype.h"

static float half_to(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    float x;

    if (exponent == 31)
        x = mantissa ? NAN : INFINITY;
    else
        x = exponent ? ldexpf((float)(mantissa + 1024), exponent - 25) : ldexpf((float)mantissa, -24);
    return h & 0x8000 ? -x : x;
}

/* Infinity where x is too large. */
static uint16_t half_of(float x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    float a = fabsf(x);
    int exponent;
    long m;

    if (isnan(x))
        return 0x7e00;
    if (a >= 65520)
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x1p-14f)
        return (uint16_t)(sign | (uint16_t)lrintf(a * 0x1p24f)); /* 1024 of these are the smallest normal one */
    m = lrintf(ldexpf(frexpf(a, &exponent), 11)); /* 1024 .. 2048 */
    return (uint16_t)(sign | (uint16_t)(((exponent + 14) << 10) + (m - 1024)));
}

/* Element types, so that each loop is compiled for its own. */
enum element { E_F32, E_BF16, E_F16, E_F64, E_NONE };

static enum element element_of(const char *dtype)
{
    static const char *const names[] = {"F32", "BF16", "F16", "F64"};
    int i = 0;

    while (i < E_NONE && strcmp(dtype, names[i]) != 0)
        i++;
    return (enum element)i;
}

/* Files need not be aligned. */
static inline float get(const char *in, enum element t, int64_t i)
{
    uint16_t h;
    double d;
    float f;

    switch (t) {
    case E_BF16:
    case E_F16:
        memcpy(&h, in + 2 * i, 2);
        return t == E_BF16 ? bf16_to(h) : half_to(h);
    case E_F64:
        memcpy(&d, in + 8 * i, 8);
        return (float)d;
    default:
        memcpy(&f, in + 4 * i, 4);
        return f;
    }
}

/* Where row j of a block stands in theirs. */
static inline int64_t in_block(const struct hf_at *at, int64_t j)
{
    int64_t first = at->block - at->pairs, i = j - first, half = at->pairs / 2;

    if (at->halves)
        return (j + at->block / 2) % at->block;
    return i < 0 ? j : first + (i < half ? 2 * i : 2 * (i - half) + 1);
}

/* The element of theirs that is column c of row r. */
static inline int64_t place(const struct hf_at *at, int64_t cols, int64_t r, int64_t c)
{
    int64_t row = at->first + (at->block ? r / at->block * at->apart + in_block(at, r % at->block) : r);

    return at->turned ? c * at->of + row : row * cols + c;
}

static inline void widen(float *out, const void *in, enum element t, struct hf_shape s, const struct hf_at *at)
{
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < s.rows; r++)
        for (int64_t c = 0; c < s.cols; c++)
            out[r * s.cols + c] = get(in, t, place(at, s.cols, r, c));
}

int hf_widen(float *out, const void *in, const char *dtype, struct hf_shape s, const struct hf_at *at, struct err *e)
{
    switch (element_of(dtype)) {
    case E_F32:
        widen(out, in, E_F32, s, at);
        return 0;
    case E_BF16:
        widen(out, in, E_BF16, s, at);
        return 0;
    case E_F16:
        widen(out, in, E_F16, s, at);
        return 0;
    case E_F64:
        widen(out, in, E_F64, s, at);
        return 0;
    default:
        return err_set(e, ERR_UNSUPPORTED, "elements of type %s are no weights", dtype);
    }
}

int hf_narrow(void *out, const float *in, const char *dtype, struct hf_shape s, const struct hf_at *at, struct err *e)
{
    enum element t = element_of(dtype);
    int64_t over = 0;

    if (t > E_F16)
        return err_set(e, ERR_UNSUPPORTED, "weights are written as F32, BF16 or F16, not %s", dtype);
#pragma omp parallel for schedule(static) reduction(+ : over)
    for (int64_t r = 0; r < s.rows; r++)
        for (int64_t c = 0; c < s.cols; c++) {
            int64_t i = place(at, s.cols, r, c);
            float x = in[r * s.cols + c];

            if (t == E_F32)
                ((float *)out)[i] = x;
            else
                ((uint16_t *)out)[i] = t == E_BF16 ? bf16_of(x) : half_of(x);
            over += t == E_F16 && isfinite(x) && fabsf(x) >= 65520;
        }
    return over ? err_set(e, ERR_LIMIT, "%lld values are too large for F16", (long long)over) : 0;
}
