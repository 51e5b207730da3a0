/* kernels/cuda_op.cuh -- what the .cu file of an op stands on; for kernels/ alone.
 *
 * nvcc compiles these files for the GPU.  The tests compile them once more with g++ and
 * tests/simt.h in front (which defines SIMT), with their own versions of the functions
 * below; so a kernel is launched by LAUNCH only, and host code calls nothing of CUDA itself.
 * Nor anything of the program that opens the backend: device_get is there, cuda_get here.
 */
#ifndef KERNELS_CUDA_OP_CUH
#define KERNELS_CUDA_OP_CUH

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device_calls.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, dev, ...) kernel<<<grid, block, 0, cuda_stream(dev)>>>(__VA_ARGS__)
cudaStream_t cuda_stream(const struct device *dev);
#elif !defined(SIMT)
#error "compile with nvcc, or with tests/simt.h"
#endif

extern "C" {
/* After a launch: did it start?  e names the op. */
int cuda_launched(struct device *dev, const char *op, struct err *e);
/* At least bytes of scratch, 256-byte aligned, valid until the next call in any stream: an
 * op asks once.  Grows and never shrinks. */
int cuda_scratch(struct device *dev, void **p, size_t bytes, struct err *e);
int cuda_fill(struct device *dev, void *p, int byte, size_t bytes, struct err *e);
int cuda_processors(const struct device *dev);
/* Threads that one of them holds. */
int cuda_threads(const struct device *dev);

/* What an op keeps with the device: made once (tried says that it was), freed with it. */
struct cuda_state {
    bool tried;
    void *p;
    void (*free)(void *p);
};
enum cuda_state_of { CUDA_STATE_MATMUL, CUDA_STATE_ATTENTION, CUDA_STATES };
struct cuda_state *cuda_kept(struct device *dev, enum cuda_state_of which);

/* CUB, in one file for it is slow to compile.  temp_bytes of temp are what cub_temp says.
 * Sorts n keys with their values by the lowest `bits` of the keys, stable, from _in to _out. */
int cub_temp(struct device *dev, int64_t n, size_t *temp_bytes, struct err *e);
int cub_sort(struct device *dev, void *temp, size_t temp_bytes, const uint64_t *key_in, uint64_t *key_out,
             const uint32_t *value_in, uint32_t *value_out, int64_t n, int bits, struct err *e);
}

enum { CUDA_BLOCK = 256, CUDA_WARPS = CUDA_BLOCK / 32 };
/* What a kernel is compiled for, 900 for sm_90; on the host 0. */
#if defined(__CUDA_ARCH__)
enum { CUDA_ARCH = __CUDA_ARCH__ };
#else
enum { CUDA_ARCH = 0 };
#endif
/* Threads that a multiprocessor of it holds: for bounds of launches; the host asks cuda_threads. */
enum { CUDA_THREADS = CUDA_ARCH == 860 || CUDA_ARCH == 870 || CUDA_ARCH == 890 || CUDA_ARCH >= 1100 ? 1536 : 2048 };
/* Bounds of kernels for which ptxas, left alone, takes so few registers of sm_100 that it spills some. */
#define CUDA_ROOMY __launch_bounds__(CUDA_BLOCK, CUDA_ARCH < 1000 ? 0 : 4)

/* What is slower than it could be, or taken from where: a line on standard error if $QUERN_CUDA_NOTES is set. */
__attribute__((format(printf, 1, 2))) static inline void cuda_note(const char *fmt, ...)
{
    char text[400];
    va_list ap;

    if (!getenv("QUERN_CUDA_NOTES"))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "# cuda: %s\n", text);
}

/* Adds the way that an op took to what dev->how says, once. */
__attribute__((format(printf, 2, 3))) static inline void cuda_took(const struct device *dev, const char *fmt, ...)
{
    char way[200];
    size_t n = dev->how ? strlen(dev->how) : 0;
    va_list ap;

    if (!dev->how)
        return;
    va_start(ap, fmt);
    vsnprintf(way, sizeof way, fmt, ap);
    va_end(ap);
    if (!strstr(dev->how, way))
        snprintf(dev->how + n, DEVICE_HOW_BYTES - n, "%s%s", n ? "; " : "", way);
}

/* Fetches a result for the host, and waits for it. */
static inline int cuda_get(struct device *dev, void *host, const void *src, size_t bytes, struct err *e)
{
    TRY(dev->calls->copy(dev, host, src, bytes, COPY_GET, e));
    return dev->calls->sync(dev, e);
}

/* Blocks for `work` pieces, `each` a block: all, but not more than keep the GPU full (grids stride). */
static inline unsigned cuda_blocks(const struct device *dev, int64_t work, int64_t each)
{
    int64_t blocks = (work + each - 1) / each, most = (int64_t)cuda_processors(dev) * 32;

    return (unsigned)(blocks < most ? blocks : most);
}

#endif
