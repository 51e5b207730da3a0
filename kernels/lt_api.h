/* kernels/lt_api.h -- the part of cuBLASLt's C interface that matmul.cu uses, as functions found at run time.
 *
 * Declared here, so that a build needs neither its header nor its library (half a gigabyte, which a machine without a GPU
 * lacks), and so that tests can put another behind it.  kernels/device_cuda.cu compares the numbers with the header's where
 * it is there.
 * Source: NVIDIA, cuBLAS library documentation, "Using the cuBLASLt API".
 */
#ifndef KERNELS_LT_API_H
#define KERNELS_LT_API_H

#include <stddef.h>
#include <stdint.h>

struct device;

enum { LT_F32 = 0, LT_BF16 = 14, LT_E4M3 = 28, LT_E5M2 = 29, LT_COMPUTE_F32 = 68, LT_OP_N = 0, LT_OP_T = 1 };
enum { LT_DESC_TRANSA = 3, LT_DESC_TRANSB = 4, LT_DESC_EPILOGUE = 7, LT_DESC_BIAS_POINTER = 8, LT_DESC_AUX_POINTER = 11,
       LT_DESC_AUX_LD = 12, LT_DESC_A_SCALE = 17, LT_DESC_B_SCALE = 18, LT_DESC_FAST = 25, LT_DESC_BIAS_TYPE = 26,
       LT_DESC_A_SCALE_MODE = 31, LT_DESC_B_SCALE_MODE = 32 };
enum { LT_SCALE_TENSOR = 0, LT_SCALE_ROWS = 4, LT_SCALE_SQUARES = 5 }; /* VEC128_32F, BLK128x128_32F: from 12.9 on, sm_90 */
enum { LT_EPILOGUE_NONE = 1, LT_EPILOGUE_BIAS = 4, LT_EPILOGUE_GELU_AUX = 160, LT_EPILOGUE_DGELU = 192,
       LT_EPILOGUE_BGRADB = 512 };
enum { LT_PREF_WORKSPACE = 1, LT_PREF_REDUCTIONS = 3 };
enum { LT_PREF_ALIGN_A = 5, LT_PREF_ALIGN_B = 6, LT_PREF_ALIGN_C = 7, LT_PREF_ALIGN_D = 8 };
/* How the parts of a product whose k is split are added up; a mask of what may be, to which none always belongs. */
enum { LT_REDUCTION_NONE = 0,
       LT_REDUCTION_IN_PLACE = 1, LT_REDUCTION_COMPUTE_TYPE = 2, LT_REDUCTION_OUTPUT_TYPE = 4, LT_REDUCTION_ANY = 7 };
enum { LT_ALGO_ID = 0, LT_ALGO_TILE = 1, LT_ALGO_SPLIT_K = 2, LT_ALGO_REDUCTION = 3, LT_ALGO_STAGES = 6 };

struct lt_algo {
    uint64_t data[8];
};
struct lt_result {
    struct lt_algo algo;
    size_t workspace;
    int state; /* 0: the rest is valid */
    float waves;
    int reserved[4];
};

/* Opaque: the library's handle, a product, the layout of a matrix, what is preferred.  Everything returns 0 when it succeeds.
 * Matrices are column-major. */
struct lt_api {
    size_t (*version)(void);
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*desc_create)(void **desc, int compute, int scale_type);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int what, const void *value, size_t bytes);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*pref_create)(void **pref);
    int (*pref_destroy)(void *pref);
    int (*pref_set)(void *pref, int what, const void *value, size_t bytes);
    int (*heuristic)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *pref, int most,
                     struct lt_result *result, int *count);
    int (*check)(void *handle, void *desc, void *a, void *b, void *c, void *d, const struct lt_algo *algo,
                 struct lt_result *result);
    int (*matmul)(void *handle, void *desc, const void *alpha, const void *a_at, void *a, const void *b_at, void *b,
                  const void *beta, const void *c_at, void *c, void *d_at, void *d, const struct lt_algo *algo,
                  void *workspace, size_t workspace_bytes, void *stream);
    int (*algo_get)(const struct lt_algo *algo, int what, void *value, size_t bytes, size_t *wrote);
};

#ifdef __cplusplus
extern "C" {
#endif
/* The library, or NULL if it is not here. */
const struct lt_api *cuda_lt(void);
#ifdef __cplusplus
}
#endif
#endif
