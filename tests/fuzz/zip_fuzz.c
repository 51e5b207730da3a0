/* Any bytes as a zip archive: its directory, and each member, in bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "curate/archive/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct zip z;
    static struct buf out;
    struct err e;

    if (zip_open(&z, (struct span){(const char *)data, size}, &e) < 0)
        return 0;
    for (size_t i = 0; i < z.n && i < 16; i++) {
        if (zip_read(&z, &z.member[i], 4096, &out, &e) == 0 && out.n > 4096)
            abort();
        if (!zip_find(&z, z.member[i].name))
            abort();
    }
    return 0;
}
