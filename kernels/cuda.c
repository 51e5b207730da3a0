#include "kernels/cuda.h"

#include "base/plugin.h"

static char backend_path[4096];

const char *cuda_backend_path(void)
{
    return backend_path;
}

int cuda_backend_open(const struct cuda_backend **b, struct err *e)
{
    const void *table;
    int rc = plugin_find("quern-cuda.so", "QUERN_CUDA", backend_path, sizeof backend_path, e);

    *b = NULL;
    if (rc < 0) {
        err_wrap(e, "this build has no CUDA backend");
        return rc;
    }
    TRY(plugin_open(backend_path, false, "CUDA", CUDA_BACKEND_SYMBOL, CUDA_BACKEND_ABI, &table, e));
    *b = table;
    return 0;
}
