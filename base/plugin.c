#include "base/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int plugin_find(const char *name, const char *env, char *path, size_t size, struct err *e)
{
    static const char *const places[] = {"/../lib/quern/", "/../lib/"};
    const char *given = getenv(env);
    char folder[2048];

    if (given) {
        snprintf(path, size, "%s", given);
        return 0;
    }
    program_folder(folder, sizeof folder);
    for (int i = 0; i < 2; i++) {
        snprintf(path, size, "%s%s%s", folder, places[i], name);
        if (access(path, R_OK) == 0)
            return 0;
    }
    return err_set(e, ERR_UNSUPPORTED, "no '%s'", path);
}

int plugin_open(const char *path, bool global, const char *what, const char *symbol, int abi,
                const void **table, struct err *e)
{
    void *library = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));

    *table = NULL;
    if (!library)
        return err_set(e, ERR_UNSUPPORTED, "cannot open the %s backend: %s", what, dlerror());
    *table = dlsym(library, symbol);
    if (*table && *(const int *)*table == abi)
        return 0;
    *table = NULL;
    dlclose(library);
    return err_set(e, ERR_UNSUPPORTED, "'%s' is not the %s backend of this build", path, what);
}
