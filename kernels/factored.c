#include "kernels/factored.h"

#include <math.h>

#include "kernels/check.h"
#include "kernels/factored_simd.h"

int factored_cpu(struct device *dev, const struct factored *p, float *g, float *row, float *col, struct err *e)
{
    double mean = 0;
    void *part;

    TRY(check_factored(p, col, e));
    if (!col) {
        ISA_PICK(factored_vector_loop)(dev, p, g, row);
        return 0;
    }
    TRY(cpu_scratch(dev, &part, (size_t)(CPU_GROUPS * p->cols) * sizeof(float), e));
    ISA_PICK(factored_means_loop)(dev, p, row, col, g, part);
    for (int64_t i = 0; i < p->rows; i++)
        mean += (double)row[i] / (double)p->rows;
    ISA_PICK(factored_scale_loop)(dev, p, g, row, col, (float)(1 / fmax(mean, p->eps)));
    return 0;
}
