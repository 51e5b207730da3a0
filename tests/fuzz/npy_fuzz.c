/* A NumPy array of any type and one or two dimensions: what opens has all the elements that it says. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "indexed_dataset/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile int64_t sink;
    int fd = memfd_create("npy", 0);
    char path[64];

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (int type = NPY_U2; type <= NPY_I8; type++)
        for (int64_t cols = 0; cols < 3; cols++) {
            struct npy a;
            struct err e;
            if (npy_load(&a, path, (enum npy_type)type, -1, cols, &e) < 0) {
                if (!e.msg[0])
                    abort();
                continue;
            }
            for (int64_t i = 0, n = a.rows * (cols ? cols : 1); i < n; i++)
                sink ^= npy_at(&a, i);
            npy_free(&a);
        }
    (void)sink;
    close(fd);
    return 0;
}
