/* kernels/cuda.h -- the CUDA backend: a shared object, found and opened at run time.
 *
 * Looked for as $QUERN_CUDA if that is set, else quern-cuda.so in ../lib/quern and ../lib
 * beside the folder of the program.  It holds its own CUDA runtime (linked statically), and that
 * finds the driver.  Whatever is missing or fails means "no GPU" and a reason.
 */
#ifndef KERNELS_CUDA_H
#define KERNELS_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

/* What there is; runtime and driver as 1000 major + 10 minor, 0: unknown. */
struct cuda_info {
    int runtime, driver, devices;
    char name[80];     /* of the device */
    int major, minor;  /* compute capability */
    int processors;    /* multiprocessors */
    uint64_t memory;   /* bytes */
    uint64_t l2;
    double memory_bandwidth; /* bytes/s by clock and bus width; 0: unknown */
    int64_t card;            /* a number that all processes have for this device alone; not 0 */
};

/* The one thing that the shared object shows; abi must be CUDA_BACKEND_ABI. */
enum { CUDA_BACKEND_ABI = 14 };
struct cuda_backend {
    int abi;
    /* Fills what can be known, also when it fails: ERR_UNSUPPORTED and the reason. */
    int (*info)(int number, struct cuda_info *info, struct err *e);
    int (*open)(struct device **dev, int number, struct err *e);
    /* Opens cuBLASLt and cuDNN, without which training is many times slower: their versions as they tell them; 0: not found. */
    void (*libraries)(size_t *cublaslt, size_t *cudnn);
};
#define CUDA_BACKEND_SYMBOL "quern_cuda_backend"

/* ERR_UNSUPPORTED with the reason; e.g. that this build has no backend.  The path that
 * was opened, or the first that was tried, is cuda_backend_path(). */
int cuda_backend_open(const struct cuda_backend **b, struct err *e);
const char *cuda_backend_path(void);

#ifdef __cplusplus
}
#endif
#endif
