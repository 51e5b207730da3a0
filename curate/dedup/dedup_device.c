#include "curate/dedup/dedup_device.h"

#include "base/log.h"

int dedup_device_open(struct device **gpu, int which, struct err *e)
{
    char why[DEVICE_WHY_BYTES];

    *gpu = NULL;
    if (which == DEDUP_CPU)
        return 0;
    TRY(device_open_dedup(gpu, which == DEDUP_CUDA ? "cuda" : "auto", 1, why, e));
    if ((*gpu)->kind == DEVICE_CPU) {
        log_msg(LOG_INFO, "on the CPU: %s", why);
        device_close(*gpu);
        *gpu = NULL;
    }
    return 0;
}
