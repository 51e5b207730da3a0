/* Any bytes as the file of algorithms of matrix products. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/lt_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char before[] = "130300\tcuda: NVIDIA H200", key[] = "64 64 64 64 64 64 0 1 1 1 1 1 0 0 256 7";
    char *text = malloc(size + 2);
    uint64_t algo[8];

    if (!text)
        return 0;
    text[0] = '\n';
    memcpy(text + 1, data, size);
    text[size + 1] = '\0';
    if (lt_cache_parse(text, before, key, algo) && !strstr(text, key))
        abort();
    free(text);
    return 0;
}
