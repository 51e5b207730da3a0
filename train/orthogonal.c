#include "train/orthogonal.h"

#include <math.h>

#include "train/squares.h"

/* a, b and c of the iterations, the first first; what is behind the last set is said by `again`. */
static const struct {
    int sets;
    bool again; /* from the first on; else the last */
    double abc[8][3];
} coefficients[] = {
    [ORTHOGONAL_QUINTIC] = {5, true, {{4.0848, -6.8946, 2.9270}, {3.9505, -6.3029, 2.6377}, {3.7418, -5.5913, 2.3037},
                                      {2.8769, -3.1427, 1.2046}, {2.8366, -3.0525, 1.2012}}},
    [ORTHOGONAL_SIMPLE] = {1, true, {{3.4445, -4.7750, 2.0315}}},
    [ORTHOGONAL_POLAR_EXPRESS] = {8, false, {{8.2051, -22.9019, 16.4607}, {4.0664, -2.8612, 0.5184}, {3.9096, -2.8234, 0.5250},
                                             {3.2856, -2.4153, 0.4853}, {2.2779, -1.6198, 0.3985}, {1.8726, -1.2307, 0.3585},
                                             {1.8564, -1.2132, 0.3568}, {1.8750, -1.2500, 0.3750}}},
};

static const double *coefficients_of(const struct orthogonal *o, int64_t step)
{
    int n = coefficients[o->coefficients].sets;
    bool again = coefficients[o->coefficients].again;

    return coefficients[o->coefficients].abc[step < n ? step : again ? step % n : n - 1];
}

/* A matrix at work: r is the shorter of its sides. */
struct at_work {
    struct device *dev;
    enum dtype dt;
    int64_t rows, cols, r, n;
    float *w;         /* (rows, cols) fp32 */
    void *x, *a, *b;  /* (rows, cols), (r, r), (r, r) of dt */
    double *sums;     /* of squares */
};

/* Bytes of n elements, rounded so that what follows is aligned. */
static size_t room(int64_t n, size_t size)
{
    return ((size_t)n * size + 63) / 64 * 64;
}

size_t orthogonal_bytes(const struct orthogonal *o, int64_t elements, int64_t side)
{
    return room(elements, dtype_size(o->dt)) + 2 * room(side * side, dtype_size(o->dt)) +
           squares_bytes(elements);
}

static struct at_work at_work(struct device *dev, const struct orthogonal *o, float *w, int64_t rows, int64_t cols, void *work)
{
    struct at_work k = {
        .dev = dev, .dt = o->dt, .rows = rows, .cols = cols, .r = rows < cols ? rows : cols, .n = rows * cols, .w = w, .x = work,
    };

    k.a = (char *)k.x + room(k.n, dtype_size(k.dt));
    k.b = (char *)k.a + room(k.r * k.r, dtype_size(k.dt));
    k.sums = (double *)(void *)((char *)k.b + room(k.r * k.r, dtype_size(k.dt)));
    return k;
}

/* x = w / |w|. */
static int normalize(const struct at_work *k, struct err *e)
{
    const struct device_ops *ops = k->dev->ops;
    double sum;

    TRY(squares_sum(k->dev, DTYPE_F32, k->w, k->n, k->sums, &sum, e));
    TRY(ops->vec_scale(k->dev, DTYPE_F32, k->w, (float)(1 / fmax(sqrt(sum), 1e-15)), k->n, e));
    return ops->vec_cast(k->dev, k->x, k->dt, k->w, DTYPE_F32, k->n, e);
}

/* b = c (A A + b / c A), A = X X^T or X^T X, r by r, in fp32 where w is until it is done. */
static int square(const struct at_work *k, const double *abc, struct err *e)
{
    const struct device_ops *ops = k->dev->ops;
    float *sum = k->dt == DTYPE_F32 ? k->b : k->w;
    bool tall = k->rows > k->cols;
    const struct matmul gram = {
        .m = k->r, .n = k->r, .k = tall ? k->rows : k->cols, .trans_a = tall, .trans_b = !tall, .dt = k->dt, .dt_c = k->dt,
        .a = k->x, .b = k->x, .c = k->a,
    };
    const struct matmul squared = {
        .m = k->r, .n = k->r, .k = k->r, .dt = k->dt, .dt_c = DTYPE_F32, .a = k->a, .b = k->a, .c = sum, .beta = 1,
    };

    TRY(ops->matmul(k->dev, &gram, e));
    TRY(ops->vec_cast(k->dev, sum, DTYPE_F32, k->a, k->dt, k->r * k->r, e));
    TRY(ops->vec_scale(k->dev, DTYPE_F32, sum, (float)(abc[1] / abc[2]), k->r * k->r, e));
    TRY(ops->matmul(k->dev, &squared, e));
    TRY(ops->vec_scale(k->dev, DTYPE_F32, sum, (float)abc[2], k->r * k->r, e));
    return (void *)sum == k->b ? 0 : ops->vec_cast(k->dev, k->b, k->dt, sum, DTYPE_F32, k->r * k->r, e);
}

/* w = a X + b X or a X + X b. */
static int polynomial(const struct at_work *k, const double *abc, struct err *e)
{
    const struct device_ops *ops = k->dev->ops;
    bool tall = k->rows > k->cols;
    const struct matmul product = {
        .m = k->rows, .n = k->cols, .k = k->r, .dt = k->dt, .dt_c = DTYPE_F32, .a = tall ? k->x : k->b, .b = tall ? k->b : k->x,
        .c = k->w, .beta = 1,
    };

    TRY(square(k, abc, e));
    TRY(ops->vec_cast(k->dev, k->w, DTYPE_F32, k->x, k->dt, k->n, e));
    TRY(ops->vec_scale(k->dev, DTYPE_F32, k->w, (float)abc[0], k->n, e));
    return ops->matmul(k->dev, &product, e);
}

static double scale_of(const struct orthogonal *o, int64_t rows, int64_t cols)
{
    double tall = (double)rows / (double)cols;

    if (o->scale == ORTHOGONAL_SPECTRAL)
        return sqrt((double)(rows > cols ? rows : cols));
    return sqrt(o->scale == ORTHOGONAL_UNIT_RMS_NORM ? tall : fmax(1, tall));
}

int orthogonal(struct device *dev, const struct orthogonal *o, float *w, int64_t rows, int64_t cols, void *work, struct err *e)
{
    const struct at_work k = at_work(dev, o, w, rows, cols, work);

    TRY(normalize(&k, e));
    for (int64_t i = 0; i < o->steps; i++) {
        TRY(polynomial(&k, coefficients_of(o, i), e));
        if (i + 1 < o->steps)
            TRY(dev->ops->vec_cast(dev, k.x, k.dt, w, DTYPE_F32, k.n, e));
    }
    return dev->ops->vec_scale(dev, DTYPE_F32, w, (float)(o->factor * scale_of(o, rows, cols)), k.n, e);
}
