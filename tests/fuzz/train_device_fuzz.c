/* Any bytes as the file of a measured device. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train/plan_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct plan_dims d = {.m = 16384, .n = 1600, .k = 1600, .d = 64, .kv = 25};
    struct plan_machine m;
    struct err e;
    int measured;

    if (plan_device_parse(&m, "fuzz", (struct span){(const char *)data, size}, &measured, &e) < 0)
        return 0;
    for (int op = 0; op < PLAN_OPS; op++)
        if (!(plan_op_seconds(&m.rates, (enum plan_op)op, &d, true, NULL) > 0)) /* nor NaN */
            abort();
    return 0;
}
