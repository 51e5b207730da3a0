#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl_library.h"

static struct nccl_api api;
static void *library;

static void load(const char *name)
{
    static const char *const names[] = {
        "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommDestroy", "ncclCommAbort", "ncclCommGetAsyncError",
        "ncclGetErrorString", "ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv",
        "ncclGroupStart", "ncclGroupEnd", "ncclCommSplit", "ncclGetLastError",
    };
    enum { ALL = sizeof names / sizeof *names, NEEDED = ALL - 2 };
    void *at[ALL], *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    _Static_assert(sizeof at == sizeof api, "a name for each function");
    for (int i = 0; i < ALL && lib; i++) {
        at[i] = dlsym(lib, names[i]);
        if (!at[i] && i < NEEDED) {
            dlclose(lib);
            lib = NULL;
        }
    }
    if (lib)
        memcpy(&api, at, sizeof api);
    library = lib;
}

const char *const *nccl_library_places(void)
{
    static const char *const usual[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2", NULL};
    static const char *given[2];

    given[0] = getenv("QUERN_NCCL");
    return given[0] ? given : usual;
}

int nccl_library(const struct nccl_api **out, struct err *e)
{
    const char *why;
    int version = 0;

    for (const char *const *at = nccl_library_places(); *at && !library; at++)
        load(*at);
    if (!library) {
        why = dlerror();
        return err_set(e, ERR_UNSUPPORTED, "cannot open NCCL: %s", why ? why : "it lacks functions");
    }
    if (api.version(&version) != NCCL_SUCCESS || version < NCCL_OLDEST)
        return err_set(e, ERR_UNSUPPORTED, "NCCL is older than 2.10");
    *out = &api;
    return 0;
}

bool nccl_library_takes_host(void)
{
    return library && dlsym(library, NCCL_TAKES_HOST_MEMORY);
}
