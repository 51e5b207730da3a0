/* kernels/band_keys.h -- from signatures to the keys of their bands, and their sketches. */
#ifndef KERNELS_BAND_KEYS_H
#define KERNELS_BAND_KEYS_H

#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

#define BAND_KEY_NONE UINT64_MAX

struct band_keys {
    int64_t docs;
    int n, bands, rows;  /* n >= bands * rows hashes in a signature */
    const uint64_t *sig; /* docs x n */
    uint64_t *key;       /* docs x bands: XXH3-64 of the band's rows, 8 bytes each; 0 in
                            place of BAND_KEY_NONE, which a document without
                            shingles (MINHASH_EMPTY) has */
    uint8_t *sketch;     /* docs x sketch_bytes: the lowest byte of each of the first
                            bands * rows hashes, then 0; all 0 without shingles.
                            NULL: not wanted */
    int sketch_bytes;    /* >= bands * rows */
};

typedef int band_keys_fn(struct device *dev, const struct band_keys *p, struct err *e);
band_keys_fn band_keys_cpu, band_keys_cuda;

#ifdef __cplusplus
}
#endif
#endif
