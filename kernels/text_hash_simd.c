/* The library chooses its vectors by what this file is compiled for. */
#include "base/hash.h"
#include "kernels/text_hash.h"

void ISA_FN(text_hash_one)(const void *p, uint64_t n, uint64_t hash[2])
{
    XXH128_hash_t h = XXH3_128bits(p, n);

    hash[0] = h.low64;
    hash[1] = h.high64;
}
