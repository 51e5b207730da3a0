#include "kernels/gate.h"

#include "kernels/check.h"
#include "kernels/gate_simd.h"

int gate_add_cpu(struct device *dev, enum dtype dt, void *y, const void *x, const float *gate, int64_t t, int64_t c,
                 struct err *e)
{
    TRY(check_rows(dt, t, c, "gate_add", e));
    ISA_PICK(gate_add_loop)(dev, dt, y, x, gate, t, c);
    return 0;
}

int gate_back_cpu(struct device *dev, enum dtype dt, void *dx, void *dgate, const void *dy, const void *x, const float *gate,
                  int64_t t, int64_t c, struct err *e)
{
    TRY(check_rows(dt, t, c, "gate_back", e));
    ISA_PICK(gate_back_loop)(dev, dt, dx, dgate, dy, x, gate, t, c);
    return 0;
}

int gate_mul_cpu(struct device *dev, enum dtype dt, void *y, const void *x, const struct gate_rows *g, struct err *e)
{
    TRY(check_gate_rows(dt, g, "gate_mul", e));
    ISA_PICK(gate_mul_loop)(dev, dt, y, x, g);
    return 0;
}

int gate_slope_cpu(struct device *dev, enum dtype dt, void *dgate, const void *dx, const void *x, const struct gate_rows *g,
                   struct err *e)
{
    TRY(check_gate_rows(dt, g, "gate_slope", e));
    ISA_PICK(gate_slope_loop)(dev, dt, dgate, dx, x, g);
    return 0;
}
