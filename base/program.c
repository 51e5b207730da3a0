#include "base/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void program_path(const char *name, char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    if (n > 0) {
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (slash && (size_t)(slash - path) + strlen(name) + 8 < size) {
            snprintf(slash + 1, size - (size_t)(slash + 1 - path), "quern-%s", name);
            if (access(path, X_OK) == 0)
                return;
        }
    }
    snprintf(path, size, "quern-%s", name);
}
