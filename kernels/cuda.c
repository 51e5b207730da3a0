#include "kernels/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char backend_path[4096];

const char *cuda_backend_path(void)
{
    return backend_path;
}

/* The folder of the program, without a slash; "" if that is not to be known. */
static void program_folder(char *to, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", to, size - 1);
    char *slash;

    to[n > 0 ? n : 0] = '\0';
    slash = strrchr(to, '/');
    if (slash)
        *slash = '\0';
}

static int find(struct err *e)
{
    static const char *const places[] = {"/../lib/quern/quern-cuda.so", "/../lib/quern-cuda.so"};
    const char *given = getenv("QUERN_CUDA");
    char folder[2048];

    if (given) {
        snprintf(backend_path, sizeof backend_path, "%s", given);
        return 0;
    }
    program_folder(folder, sizeof folder);
    for (int i = 0; i < 2; i++) {
        snprintf(backend_path, sizeof backend_path, "%s%s", folder, places[i]);
        if (access(backend_path, R_OK) == 0)
            return 0;
    }
    return err_set(e, ERR_UNSUPPORTED, "this build has no CUDA backend (no '%s')", backend_path);
}

int cuda_backend_open(const struct cuda_backend **b, struct err *e)
{
    union { void *data; const struct cuda_backend *table; } symbol;
    void *library;

    *b = NULL;
    TRY(find(e));
    library = dlopen(backend_path, RTLD_NOW | RTLD_LOCAL); /* stays: the driver's threads may */
    if (!library)
        return err_set(e, ERR_UNSUPPORTED, "cannot open the CUDA backend: %s", dlerror());
    symbol.data = dlsym(library, CUDA_BACKEND_SYMBOL);
    if (!symbol.data || symbol.table->abi != CUDA_BACKEND_ABI) {
        dlclose(library);
        return err_set(e, ERR_UNSUPPORTED, "'%s' is not the CUDA backend of this build", backend_path);
    }
    *b = symbol.table;
    return 0;
}
