/* kernels/dnn_api.h -- the part of cuDNN's backend interface that attention_cudnn.cu uses, as functions found at run time.
 *
 * Declared here for the reasons that kernels/lt_api.h gives.  Source: NVIDIA, cuDNN library documentation, "cuDNN backend".
 */
#ifndef KERNELS_DNN_API_H
#define KERNELS_DNN_API_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DNN_DATA_FLOAT = 0, DNN_DATA_INT32 = 4, DNN_DATA_BFLOAT16 = 9, DNN_DATA_INT64 = 10, DNN_DATA_BOOLEAN = 11 };
enum { DNN_POINTWISE_ADD = 0, DNN_POINTWISE_DIV = 6, DNN_POINTWISE_MUL = 1, DNN_POINTWISE_SUB = 9, DNN_POINTWISE_EXP = 13,
       DNN_POINTWISE_LOG = 15, DNN_POINTWISE_GEN_INDEX = 501, DNN_POINTWISE_CMP_GE = 303, DNN_POINTWISE_CMP_LT = 304,
       DNN_POINTWISE_LOGICAL_AND = 400, DNN_POINTWISE_BINARY_SELECT = 601, DNN_POINTWISE_IDENTITY = 21 };
enum { DNN_TENSOR = 17, DNN_POINTWISE = 0, DNN_OPERATION_POINTWISE = 13, DNN_MATMUL = 18, DNN_OPERATION_MATMUL = 19,
       DNN_REDUCTION = 21, DNN_OPERATION_REDUCTION = 22, DNN_OPERATION_RESHAPE = 31, DNN_OPERATIONGRAPH = 15,
       DNN_ENGINEHEUR = 4, DNN_ENGINECFG = 3, DNN_ENGINE = 2, DNN_EXECUTION_PLAN = 5, DNN_VARIANT_PACK = 16,
       DNN_RNG = 32, DNN_OPERATION_RNG = 33, DNN_DEVICEPROP = 38 };
enum { DNN_ATTR_TENSOR_DATA_TYPE = 901, DNN_ATTR_TENSOR_DIMENSIONS = 902, DNN_ATTR_TENSOR_STRIDES = 903,
       DNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900, DNN_ATTR_TENSOR_UNIQUE_ID = 906, DNN_ATTR_TENSOR_IS_VIRTUAL = 907,
       DNN_ATTR_TENSOR_IS_BY_VALUE = 908, DNN_ATTR_TENSOR_REORDERING_MODE = 909, DNN_ATTR_POINTWISE_MODE = 0,
       DNN_ATTR_POINTWISE_MATH_PREC = 1, DNN_ATTR_POINTWISE_AXIS = 9, DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
       DNN_ATTR_OPERATION_POINTWISE_XDESC = 751, DNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
       DNN_ATTR_OPERATION_POINTWISE_TDESC = 758, DNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
       DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC = 913, DNN_ATTR_OPERATION_MATMUL_M_OVERRIDE = 1525,
       DNN_ATTR_OPERATION_MATMUL_N_OVERRIDE = 1526, DNN_ATTR_OPERATION_MATMUL_K_OVERRIDE = 1527,
       DNN_ATTR_RNG_DISTRIBUTION = 2300, DNN_ATTR_RNG_BERNOULLI_PROBABILITY = 2305, DNN_ATTR_OPERATION_RNG_YDESC = 2310,
       DNN_ATTR_OPERATION_RNG_SEED = 2311, DNN_ATTR_OPERATION_RNG_DESC = 2312, DNN_ATTR_OPERATION_RNG_OFFSET = 2313,
       DNN_ATTR_MATMUL_COMP_TYPE = 1500, DNN_ATTR_OPERATION_MATMUL_ADESC = 1520, DNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
       DNN_ATTR_OPERATION_MATMUL_CDESC = 1522, DNN_ATTR_OPERATION_MATMUL_DESC = 1523, DNN_ATTR_REDUCTION_OPERATOR = 1600,
       DNN_ATTR_REDUCTION_COMP_TYPE = 1601, DNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
       DNN_ATTR_OPERATION_REDUCTION_YDESC = 1611, DNN_ATTR_OPERATION_REDUCTION_DESC = 1612,
       DNN_ATTR_OPERATION_RESHAPE_XDESC = 2200, DNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,
       DNN_ATTR_OPERATIONGRAPH_HANDLE = 800, DNN_ATTR_OPERATIONGRAPH_OPS = 801, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
       DNN_ATTR_ENGINEHEUR_MODE = 200, DNN_ATTR_ENGINEHEUR_DEVICEPROP = 204, DNN_ATTR_ENGINEHEUR_RESULTS = 202,
       DNN_ATTR_ENGINECFG_ENGINE = 300, DNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
       DNN_ATTR_EXECUTION_PLAN_HANDLE = 400, DNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407,
       DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
       DNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001, DNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
       DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702 };
enum { DNN_TYPE_HANDLE = 0, DNN_TYPE_DATA_TYPE = 1, DNN_TYPE_BOOLEAN = 2, DNN_TYPE_INT64 = 3, DNN_TYPE_DOUBLE = 5,
       DNN_TYPE_VOID_PTR = 6,
       DNN_TYPE_HEUR_MODE = 8, DNN_TYPE_NUMERICAL_NOTE = 11, DNN_TYPE_POINTWISE_MODE = 14,
       DNN_TYPE_REDUCTION_OPERATOR_TYPE = 18, DNN_TYPE_BACKEND_DESCRIPTOR = 15, DNN_TYPE_CHAR = 24,
       DNN_TYPE_TENSOR_REORDERING_MODE = 20, DNN_TYPE_RNG_DISTRIBUTION = 29 };
enum { DNN_HEUR_A = 3, DNN_HEUR_FALLBACK = 2 };
enum { DNN_REDUCE_ADD = 0, DNN_REDUCE_MAX = 3 };
enum { DNN_NOTE_NONDETERMINISTIC = 4 };
enum { DNN_REORDERING_F16x16 = 2 };
enum { DNN_RNG_BERNOULLI = 0 };

/* Everything returns 0 when it succeeds; descriptors and handles are opaque. */
struct dnn_api {
    size_t (*version)(void);
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*desc_create)(int kind, void **desc);
    int (*desc_destroy)(void *desc);
    int (*set)(void *desc, int what, int type, int64_t n, const void *values);
    int (*get)(const void *desc, int what, int type, int64_t most, int64_t *n, void *values);
    int (*finalize)(void *desc);
    int (*execute)(void *handle, void *plan, void *pack);
    void (*last_error)(char *text, size_t bytes);
};

/* cudnnGetVersion of 9.minor.patch. */
static inline size_t dnn_version(int minor, int patch) { return 90000 + 100 * (size_t)minor + (size_t)patch; }

/* What attention in bf16 asks of a version: over so many keys at most, by heads of d. */
struct dnn_asked {
    int64_t keys, d;
    bool backward, drop, documents;
};

/* Why it is not left to this version; NULL: it may do it.  Source: what NVIDIA's own frontend of the interface refuses, or does
 * by a mask of padding, for known bugs. */
static inline const char *dnn_distrusted(size_t version, const struct dnn_asked *of)
{
    if (version == dnn_version(10, 0) || version == dnn_version(10, 1))
        return "cuDNN 9.10.0 and 9.10.1 have known bugs in attention";
    if ((of->drop || of->d > 128) && version < dnn_version(8, 0))
        return "dropout and heads of more than 128 are asked of cuDNN 9.8 and later alone, whose checks are known to take them";
    if (of->documents && version < dnn_version(10, 2))
        return "documents need cuDNN 9.10.2, earlier ones another mask of padding";
    if (of->backward && !of->documents && version <= dnn_version(15, 0) && of->keys % 128 != 0)
        return "gradients of cuDNN up to 9.15.0 may be wrong where the keys are no multiple of 128";
    return NULL;
}

/* Backward adds dq up in memory that its caller must have zeroed; later versions zero it themselves. */
static inline bool dnn_wants_zeros(size_t version) { return version < dnn_version(6, 0); }

/* From a library that dlopen gave.  False: NULL, or not one with this interface. */
static inline bool dnn_load(struct dnn_api *api, void *library)
{
    static const char *const names[] = {
        "cudnnGetVersion", "cudnnCreate", "cudnnDestroy", "cudnnSetStream", "cudnnBackendCreateDescriptor",
        "cudnnBackendDestroyDescriptor", "cudnnBackendSetAttribute", "cudnnBackendGetAttribute", "cudnnBackendFinalize",
        "cudnnBackendExecute", "cudnnGetLastErrorString",
    };
    void *at[sizeof names / sizeof *names];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!library || !(at[i] = dlsym(library, names[i])))
            return false;
    memcpy(api, at, sizeof *api);
    return true;
}

#ifdef __cplusplus
extern "C" {
#endif
/* The library, or NULL if it is not here. */
const struct dnn_api *cuda_dnn(void);
#ifdef __cplusplus
}
#endif
#endif
