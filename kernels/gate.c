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
