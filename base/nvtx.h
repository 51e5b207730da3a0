/* base/nvtx.h -- named ranges for NVIDIA's profilers.
 *
 * A profiler that starts a program names a library in $NVTX_INJECTION64_PATH and wants to be told of ranges.  This speaks
 * with it directly, so that a build needs nothing of NVIDIA's; without one every call is a test of a pointer.
 * Source: NVIDIA, NVTX 3 (Apache-2.0), "Injection libraries".
 */
#ifndef BASE_NVTX_H
#define BASE_NVTX_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the profiler's library, once.  false: there is none, or it wants nothing. */
bool nvtx_open(void);
/* A range of the calling thread, inside those that are open; nvtx_pop ends the innermost. */
void nvtx_push(const char *name);
void nvtx_pop(void);
/* A moment. */
void nvtx_mark(const char *name);

#ifdef __cplusplus
}
#endif
#endif
