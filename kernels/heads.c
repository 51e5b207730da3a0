#include "kernels/heads.h"

#include "kernels/check.h"
#include "kernels/cpu.h"

static inline void move_row(char *y, const char *x, size_t w, const struct heads_part *p, int64_t t)
{
    for (int64_t h = 0; h < p->heads; h++) {
        char *to = y + (size_t)(t * p->y.row + h * p->y.head) * w;

        if (x)
            memcpy(to, x + (size_t)(t * p->x.row + h * p->x.head) * w, (size_t)p->c * w);
        else
            memset(to, 0, (size_t)p->c * w);
    }
}

int heads_move_cpu(struct device *dev, enum dtype dt, void *y, const void *x, const struct heads_part *p, struct err *e)
{
    TRY(check_heads(dt, p, "heads_move", e));
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->heads * p->c))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        for (int64_t t = lo; t < hi; t++)
            move_row(y, x, dtype_size(dt), p, t);
    }
    return 0;
}

static inline float get(enum dtype dt, const void *p, int64_t i)
{
    return dt == DTYPE_BF16 ? bf16_to(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static inline void sum_row(enum dtype dt, void *y, const void *x, const struct heads_part *p, int64_t t)
{
    for (int64_t i = 0; i < p->c; i++) {
        int64_t at = t * p->y.row + i;
        float sum = 0;

        for (int64_t h = 0; h < p->heads; h++)
            sum += get(dt, x, t * p->x.row + h * p->x.head + i);
        if (dt == DTYPE_BF16)
            ((uint16_t *)y)[at] = bf16_of(sum);
        else
            ((float *)y)[at] = sum;
    }
}

int heads_sum_cpu(struct device *dev, enum dtype dt, void *y, const void *x, const struct heads_part *p, struct err *e)
{
    TRY(check_heads(dt, p, "heads_sum", e));
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->heads * p->c))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        for (int64_t t = lo; t < hi; t++)
            sum_row(dt, y, x, p, t);
    }
    return 0;
}
