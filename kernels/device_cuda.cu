/* The CUDA backend: memory, streams and events, and the table of its ops. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"
#include "kernels/cuda_op.cuh"
#include "kernels/cuda_ops.h"
#include "kernels/device_calls.h"
#include "kernels/dnn_api.h"
#include "kernels/lt_api.h"

struct device_impl {
    int number, processors, threads; /* threads that a multiprocessor holds */
    void *scratch, **scratch_kept; /* kept: for graphs */
    size_t scratch_bytes, kept_bytes;
    int n_kept, graphs;
    cudaStream_t capture; /* where graphs are recorded */
    struct device_stream *before;
    struct cuda_state state[CUDA_STATES];
};

static int check(cudaError_t c, const char *what, struct err *e)
{
    if (c == cudaSuccess)
        return 0;
    (void)cudaGetLastError(); /* a failure is said once */
    return err_set(e, c == cudaErrorMemoryAllocation ? ERR_NOMEM : ERR_DEVICE, "CUDA: %s: %s", what,
                   cudaGetErrorString(c));
}

cudaStream_t cuda_stream(const struct device *dev)
{
    return (cudaStream_t)dev->stream;
}

/* ---- memory ---- */

static void gpu_close(struct device *dev)
{
    cudaDeviceSynchronize();
    for (int i = 0; i < CUDA_STATES; i++)
        if (dev->impl->state[i].free)
            dev->impl->state[i].free(dev->impl->state[i].p);
    cudaFree(dev->impl->scratch);
    for (int i = 0; i < dev->impl->n_kept; i++)
        cudaFree(dev->impl->scratch_kept[i]);
    free(dev->impl->scratch_kept);
    if (dev->impl->capture)
        cudaStreamDestroy(dev->impl->capture);
    free(dev->impl);
}

/* Where the GPU has too little, says how much that is. */
static int allocate(void **p, size_t bytes, const char *what, struct err *e)
{
    cudaError_t c = cudaMalloc(p, bytes ? bytes : 1);
    const double gib = 1 << 30;
    size_t left = 0, all = 0;

    if (c != cudaErrorMemoryAllocation)
        return check(c, what, e);
    (void)cudaGetLastError();
    cudaMemGetInfo(&left, &all);
    return err_set(e, ERR_NOMEM, "the GPU has no room for %.3f GiB of %s: of its %.1f GiB %.3f are free", (double)bytes / gib,
                   what, (double)all / gib, (double)left / gib);
}

static int gpu_alloc(struct device *dev, void **p, size_t bytes, struct err *e)
{
    (void)dev;
    *p = NULL;
    return allocate(p, bytes, "memory", e);
}

static void gpu_free(struct device *dev, void *p)
{
    (void)dev;
    cudaFree(p);
}

static int gpu_alloc_host(struct device *dev, void **p, size_t bytes, struct err *e)
{
    (void)dev;
    *p = NULL;
    return check(cudaMallocHost(p, bytes ? bytes : 1), "pinned memory", e);
}

static void gpu_free_host(struct device *dev, void *p)
{
    (void)dev;
    cudaFreeHost(p);
}

static int gpu_copy(struct device *dev, void *dst, const void *src, size_t bytes, enum copy_way way, struct err *e)
{
    static const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};

    return check(cudaMemcpyAsync(dst, src, bytes, kinds[way], cuda_stream(dev)), "copy", e);
}

static int gpu_copy_rows(struct device *dev, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes,
                         size_t rows, struct err *e)
{
    return check(cudaMemcpy2DAsync(dst, dst_row, src, src_row, bytes, rows, cudaMemcpyDeviceToDevice, cuda_stream(dev)),
                 "copy", e);
}

static int gpu_zero(struct device *dev, void *dst, size_t bytes, struct err *e)
{
    return cuda_fill(dev, dst, 0, bytes, e);
}

static int gpu_sync(struct device *dev, struct err *e)
{
    return check(cudaStreamSynchronize(cuda_stream(dev)), "waiting", e);
}

/* ---- streams and events ---- */

static int gpu_stream_new(struct device *dev, struct device_stream **s, struct err *e)
{
    cudaStream_t stream = NULL;
    int rc = check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream", e);

    (void)dev;
    *s = (struct device_stream *)stream;
    return rc;
}

static void gpu_stream_free(struct device *dev, struct device_stream *s)
{
    (void)dev;
    cudaStreamDestroy((cudaStream_t)s);
}

static int gpu_event_new(struct device *dev, struct device_event **ev, bool timed, struct err *e)
{
    cudaEvent_t event = NULL;
    int rc = check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming), "event", e);

    (void)dev;
    *ev = (struct device_event *)event;
    return rc;
}

static void gpu_event_free(struct device *dev, struct device_event *ev)
{
    (void)dev;
    cudaEventDestroy((cudaEvent_t)ev);
}

static int gpu_event_record(struct device *dev, struct device_event *ev, struct err *e)
{
    return check(cudaEventRecord((cudaEvent_t)ev, cuda_stream(dev)), "event", e);
}

static int gpu_event_wait(struct device *dev, struct device_event *ev, struct err *e)
{
    return check(cudaStreamWaitEvent(cuda_stream(dev), (cudaEvent_t)ev, 0), "event", e);
}

static int gpu_event_seconds(struct device *dev, struct device_event *from, struct device_event *to, double *seconds,
                             struct err *e)
{
    float ms = 0;

    (void)dev;
    TRY(check(cudaEventSynchronize((cudaEvent_t)to), "event", e));
    TRY(check(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to), "event", e));
    *seconds = 1e-3 * ms;
    return 0;
}

static int gpu_event_query(struct device *dev, struct device_event *ev, bool *come, struct err *e)
{
    cudaError_t c = cudaEventQuery((cudaEvent_t)ev);

    (void)dev;
    *come = c == cudaSuccess;
    return c == cudaErrorNotReady ? 0 : check(c, "event", e);
}

static int gpu_bind(struct device *dev, struct err *e)
{
    return check(cudaSetDevice(dev->impl->number), "device", e);
}

/* ---- graphs: recorded from a stream of their own, for the default one cannot be; other threads go on with what they do ---- */

static int gpu_capture_begin(struct device *dev, struct err *e)
{
    struct device_impl *d = dev->impl;

    if (!d->capture)
        TRY(check(cudaStreamCreateWithFlags(&d->capture, cudaStreamNonBlocking), "stream", e));
    TRY(check(cudaStreamBeginCapture(d->capture, cudaStreamCaptureModeThreadLocal), "graph", e));
    d->before = dev->stream;
    dev->stream = (struct device_stream *)d->capture;
    return 0;
}

static int gpu_capture_end(struct device *dev, struct device_graph **g, struct err *e)
{
    struct device_impl *d = dev->impl;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    int rc = check(cudaStreamEndCapture(d->capture, &graph), "graph", e);

    dev->stream = d->before;
    if (rc == 0 && g)
        rc = check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "graph", e);
    if (graph)
        cudaGraphDestroy(graph);
    if (rc < 0 || !g)
        return rc;
    d->graphs++;
    *g = (struct device_graph *)exec;
    return 0;
}

static int gpu_graph_launch(struct device *dev, struct device_graph *g, struct err *e)
{
    return check(cudaGraphLaunch((cudaGraphExec_t)g, cuda_stream(dev)), "graph", e);
}

static void gpu_graph_free(struct device *dev, struct device_graph *g)
{
    cudaGraphExecDestroy((cudaGraphExec_t)g);
    dev->impl->graphs--;
}

static size_t gpu_overhead(const struct device *dev)
{
    return dev->impl->scratch_bytes + dev->impl->kept_bytes;
}

static const struct device_calls gpu_calls = {
    gpu_close,      gpu_alloc,      gpu_free,         gpu_alloc_host, gpu_free_host,
    gpu_copy,       gpu_copy_rows,  gpu_zero,         gpu_sync,         gpu_stream_new, gpu_stream_free,
    gpu_event_new,  gpu_event_free, gpu_event_record, gpu_event_wait, gpu_event_seconds, gpu_event_query, gpu_bind,
    gpu_capture_begin, gpu_capture_end, gpu_graph_launch, gpu_graph_free, gpu_overhead,
};

static const struct dedup_ops gpu_dedup_ops = {
    minhash_sign_cuda, band_keys_cuda,
};

/* ---- for the ops ---- */

extern "C" int cuda_launched(struct device *dev, const char *op, struct err *e)
{
    (void)dev;
    return check(cudaGetLastError(), op, e);
}

extern "C" int cuda_fill(struct device *dev, void *p, int byte, size_t bytes, struct err *e)
{
    return check(cudaMemsetAsync(p, byte, bytes, cuda_stream(dev)), "fill", e);
}

extern "C" int cuda_processors(const struct device *dev)
{
    return dev->impl->processors;
}

extern "C" int cuda_threads(const struct device *dev)
{
    return dev->impl->threads;
}

/* The block that a graph was recorded with stays where it is. */
static int keep_scratch(struct device_impl *d, struct err *e)
{
    void **kept = (void **)realloc(d->scratch_kept, (size_t)(d->n_kept + 1) * sizeof *kept);

    if (!kept)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->scratch_kept = kept;
    kept[d->n_kept++] = d->scratch;
    d->kept_bytes += d->scratch_bytes;
    d->scratch = NULL;
    d->scratch_bytes = 0;
    return 0;
}

extern "C" int cuda_scratch(struct device *dev, void **p, size_t bytes, struct err *e)
{
    struct device_impl *d = dev->impl;

    *p = NULL;
    if (bytes > d->scratch_bytes) {
        void *bigger;

        if (d->graphs && d->scratch)
            TRY(keep_scratch(d, e));
        TRY(allocate(&bigger, bytes, "scratch memory", e));
        cudaFree(d->scratch); /* waits for what still uses it */
        d->scratch = bigger;
        d->scratch_bytes = bytes;
    }
    *p = d->scratch;
    return 0;
}

extern "C" struct cuda_state *cuda_kept(struct device *dev, enum cuda_state_of which)
{
    return &dev->impl->state[which];
}

/* ---- cuBLASLt: found at run time, for only training needs it ---- */

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), "not the number that the library's header has")
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
SAME(LT_F32, CUDA_R_32F);
SAME(LT_BF16, CUDA_R_16BF);
SAME(LT_E4M3, CUDA_R_8F_E4M3);
SAME(LT_E5M2, CUDA_R_8F_E5M2);
SAME(LT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(LT_OP_N, CUBLAS_OP_N);
SAME(LT_OP_T, CUBLAS_OP_T);
SAME(LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(LT_DESC_AUX_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(LT_DESC_AUX_LD, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(LT_DESC_A_SCALE, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(LT_DESC_B_SCALE, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SAME(LT_DESC_FAST, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
SAME(LT_DESC_BIAS_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(LT_EPILOGUE_NONE, CUBLASLT_EPILOGUE_DEFAULT);
#if CUDART_VERSION >= 12090
SAME(LT_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
SAME(LT_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
SAME(LT_SCALE_TENSOR, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
SAME(LT_SCALE_ROWS, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
SAME(LT_SCALE_SQUARES, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
#endif
SAME(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(LT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX);
SAME((LT_EPILOGUE_GELU_AUX | LT_EPILOGUE_BIAS), CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME(LT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU);
SAME(LT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(LT_ALGO_ID, CUBLASLT_ALGO_CONFIG_ID);
SAME(LT_ALGO_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID);
SAME(LT_ALGO_SPLIT_K, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME(LT_ALGO_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
SAME(LT_ALGO_STAGES, CUBLASLT_ALGO_CONFIG_STAGES_ID);
SAME(LT_PREF_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(LT_EPILOGUE_BGRADB, CUBLASLT_EPILOGUE_BGRADB);
SAME(LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(LT_REDUCTION_IN_PLACE, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(LT_REDUCTION_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(LT_REDUCTION_OUTPUT_TYPE, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
SAME(LT_REDUCTION_ANY, CUBLASLT_REDUCTION_SCHEME_MASK);
SAME(LT_PREF_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(LT_PREF_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(struct lt_algo) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(struct lt_result) == sizeof(cublasLtMatmulHeuristicResult_t) &&
                  offsetof(struct lt_result, state) == offsetof(cublasLtMatmulHeuristicResult_t, state),
              "kernels/lt_api.h is not the library's interface");
#endif

#if __has_include(<cudnn.h>)
#include <cudnn.h>
SAME(DNN_DATA_FLOAT, CUDNN_DATA_FLOAT);
SAME(DNN_DATA_INT32, CUDNN_DATA_INT32);
SAME(DNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16);
SAME(DNN_DATA_INT64, CUDNN_DATA_INT64);
SAME(DNN_DATA_BOOLEAN, CUDNN_DATA_BOOLEAN);
SAME(DNN_POINTWISE_ADD, CUDNN_POINTWISE_ADD);
SAME(DNN_POINTWISE_DIV, CUDNN_POINTWISE_DIV);
SAME(DNN_POINTWISE_MUL, CUDNN_POINTWISE_MUL);
SAME(DNN_POINTWISE_SUB, CUDNN_POINTWISE_SUB);
SAME(DNN_POINTWISE_EXP, CUDNN_POINTWISE_EXP);
SAME(DNN_POINTWISE_LOG, CUDNN_POINTWISE_LOG);
SAME(DNN_POINTWISE_GEN_INDEX, CUDNN_POINTWISE_GEN_INDEX);
SAME(DNN_POINTWISE_CMP_GE, CUDNN_POINTWISE_CMP_GE);
SAME(DNN_POINTWISE_CMP_LT, CUDNN_POINTWISE_CMP_LT);
SAME(DNN_POINTWISE_LOGICAL_AND, CUDNN_POINTWISE_LOGICAL_AND);
SAME(DNN_POINTWISE_BINARY_SELECT, CUDNN_POINTWISE_BINARY_SELECT);
SAME(DNN_POINTWISE_IDENTITY, CUDNN_POINTWISE_IDENTITY);
SAME(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DNN_POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(DNN_OPERATION_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(DNN_MATMUL, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
SAME(DNN_OPERATION_MATMUL, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
SAME(DNN_REDUCTION, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
SAME(DNN_OPERATION_REDUCTION, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
SAME(DNN_OPERATION_RESHAPE, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
SAME(DNN_RNG, CUDNN_BACKEND_RNG_DESCRIPTOR);
SAME(DNN_OPERATION_RNG, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
SAME(DNN_OPERATIONGRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DNN_ENGINEHEUR, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DNN_ENGINECFG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(DNN_EXECUTION_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DNN_DEVICEPROP, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(DNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(DNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(DNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
SAME(DNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(DNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(DNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(DNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SAME(DNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_ATTR_TENSOR_REORDERING_MODE);
SAME(DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC);
SAME(DNN_ATTR_OPERATION_MATMUL_M_OVERRIDE, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC);
SAME(DNN_ATTR_OPERATION_MATMUL_N_OVERRIDE, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC);
SAME(DNN_ATTR_OPERATION_MATMUL_K_OVERRIDE, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC);
SAME(DNN_ATTR_RNG_DISTRIBUTION, CUDNN_ATTR_RNG_DISTRIBUTION);
SAME(DNN_ATTR_RNG_BERNOULLI_PROBABILITY, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
SAME(DNN_ATTR_OPERATION_RNG_YDESC, CUDNN_ATTR_OPERATION_RNG_YDESC);
SAME(DNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_SEED);
SAME(DNN_ATTR_OPERATION_RNG_DESC, CUDNN_ATTR_OPERATION_RNG_DESC);
SAME(DNN_ATTR_OPERATION_RNG_OFFSET, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC);
SAME(DNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE);
SAME(DNN_ATTR_POINTWISE_MATH_PREC, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(DNN_ATTR_POINTWISE_AXIS, CUDNN_ATTR_POINTWISE_AXIS);
SAME(DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(DNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(DNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(DNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
SAME(DNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(DNN_ATTR_MATMUL_COMP_TYPE, CUDNN_ATTR_MATMUL_COMP_TYPE);
SAME(DNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
SAME(DNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
SAME(DNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
SAME(DNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_ATTR_OPERATION_MATMUL_DESC);
SAME(DNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_OPERATOR);
SAME(DNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_ATTR_REDUCTION_COMP_TYPE);
SAME(DNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
SAME(DNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
SAME(DNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
SAME(DNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
SAME(DNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
SAME(DNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(DNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(DNN_ATTR_ENGINEHEUR_MODE, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(DNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(DNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(DNN_ATTR_ENGINECFG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(DNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(DNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(DNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(DNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(DNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
SAME(DNN_TYPE_DOUBLE, CUDNN_TYPE_DOUBLE);
SAME(DNN_TYPE_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION);
SAME(DNN_RNG_BERNOULLI, CUDNN_RNG_DISTRIBUTION_BERNOULLI);
SAME(DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE);
SAME(DNN_TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
SAME(DNN_TYPE_BOOLEAN, CUDNN_TYPE_BOOLEAN);
SAME(DNN_TYPE_INT64, CUDNN_TYPE_INT64);
SAME(DNN_TYPE_VOID_PTR, CUDNN_TYPE_VOID_PTR);
SAME(DNN_TYPE_HEUR_MODE, CUDNN_TYPE_HEUR_MODE);
SAME(DNN_TYPE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(DNN_TYPE_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE);
SAME(DNN_TYPE_REDUCTION_OPERATOR_TYPE, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SAME(DNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(DNN_TYPE_CHAR, CUDNN_TYPE_CHAR);
SAME(DNN_TYPE_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE);
SAME(DNN_HEUR_A, CUDNN_HEUR_MODE_A);
SAME(DNN_HEUR_FALLBACK, CUDNN_HEUR_MODE_FALLBACK);
SAME(DNN_REDUCE_ADD, CUDNN_REDUCE_TENSOR_ADD);
SAME(DNN_REDUCE_MAX, CUDNN_REDUCE_TENSOR_MAX);
SAME(DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(DNN_REORDERING_F16x16, CUDNN_TENSOR_REORDERING_F16x16);
#endif

/* A library: in the folders that $QUERN_CUDA_LIBRARIES names, as the linker finds it, in CUDA's own folder. */
static void *library_of(const char *name)
{
    const char *at = getenv("QUERN_CUDA_LIBRARIES"), *end;
    char path[4096];
    void *library;

    for (; at && *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, ':');
        snprintf(path, sizeof path, "%.*s/%s", (int)(end - at), at, name);
        if ((library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) != NULL)
            return library;
    }
    if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != NULL)
        return library;
    snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", name);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        cuda_note("%s", dlerror());
    return library;
}

/* Of this CUDA, else of another that has the same interface. */
static void *lt_library(void)
{
    static const int others[] = {CUDART_VERSION / 1000, 13, 12};
    char name[40];
    void *library = NULL;

    for (int i = 0; i < 3 && !library; i++) {
        snprintf(name, sizeof name, "libcublasLt.so.%d", others[i]);
        library = library_of(name);
    }
    return library;
}

extern "C" const struct lt_api *cuda_lt(void)
{
    static const char *const names[] = {
        "cublasLtGetVersion",                  "cublasLtCreate",                        "cublasLtDestroy",
        "cublasLtMatmulDescCreate",            "cublasLtMatmulDescDestroy",             "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",          "cublasLtMatrixLayoutDestroy",           "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceDestroy",     "cublasLtMatmulPreferenceSetAttribute",  "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmulAlgoCheck",             "cublasLtMatmul",                        "cublasLtMatmulAlgoConfigGetAttribute",
    };
    static struct lt_api api;
    static int state; /* 0: not tried; 1: here; -1: not */
    void *at[sizeof names / sizeof *names], *library;

    static_assert(sizeof at == sizeof api, "a name for each function");
    if (state)
        return state > 0 ? &api : NULL;
    state = -1;
    library = lt_library();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!library || !(at[i] = dlsym(library, names[i])))
            return NULL;
    memcpy(&api, at, sizeof api);
    state = 1;
    cuda_note("cuBLASLt %zu", api.version());
    return &api;
}

/* cuDNN the same way. */
extern "C" const struct dnn_api *cuda_dnn(void)
{
    static struct dnn_api api;
    static int state; /* 0: not tried; 1: here; -1: not */

    if (!state) {
        state = dnn_load(&api, library_of("libcudnn.so.9")) ? 1 : -1;
        if (state > 0)
            cuda_note("cuDNN %zu", api.version());
    }
    return state > 0 ? &api : NULL;
}

/* ---- opening ---- */

/* Why there is no GPU, in words that say what to do. */
static int no_gpu(cudaError_t c, struct err *e)
{
    (void)cudaGetLastError();
    if (c == cudaErrorInsufficientDriver)
        return err_set(e, ERR_UNSUPPORTED, "no GPU: no NVIDIA driver, or one too old for CUDA %d.%d", CUDART_VERSION / 1000,
                       CUDART_VERSION % 1000 / 10);
    return err_set(e, ERR_UNSUPPORTED, "no GPU: %s", c == cudaSuccess ? "the driver lists none" : cudaGetErrorString(c));
}

/* The GPU's UUID in one number, not 0. */
static int64_t card_of(const cudaUUID_t *id)
{
    uint64_t half[2];

    memcpy(half, id->bytes, sizeof half);
    return (int64_t)((half[0] ^ half[1]) | 1);
}

static int gpu_info(int number, struct cuda_info *info, struct err *e)
{
    cudaDeviceProp p;
    cudaError_t c;
    int khz = 0;

    *info = cuda_info();
    cudaRuntimeGetVersion(&info->runtime);
    cudaDriverGetVersion(&info->driver);
    c = cudaGetDeviceCount(&info->devices);
    if (c != cudaSuccess || info->devices <= number) {
        info->devices = c == cudaSuccess ? info->devices : 0;
        return no_gpu(c, e);
    }
    c = cudaGetDeviceProperties(&p, number);
    if (c != cudaSuccess)
        return no_gpu(c, e);
    snprintf(info->name, sizeof info->name, "%.79s", p.name);
    info->major = p.major;
    info->minor = p.minor;
    info->processors = p.multiProcessorCount;
    info->memory = p.totalGlobalMem;
    info->l2 = (uint64_t)p.l2CacheSize;
    info->card = card_of(&p.uuid);
    if (cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, number) == cudaSuccess)
        info->memory_bandwidth = 2e3 * khz * (p.memoryBusWidth / 8.0); /* double data rate */
    (void)cudaGetLastError();
    if (p.major < 8)
        return err_set(e, ERR_UNSUPPORTED, "no GPU of compute capability 8.0 or more: %s has %d.%d", p.name, p.major, p.minor);
    return 0;
}

static int gpu_open(struct device **out, int number, struct err *e)
{
    struct cuda_info info;
    struct device *dev;
    size_t room, all;
    cudaError_t c;
    int threads;

    *out = NULL;
    TRY(gpu_info(number, &info, e));
    c = cudaSetDevice(number);
    if (c == cudaSuccess)
        c = cudaFree(NULL); /* makes the context: now, not in the first op */
    if (c == cudaSuccess)
        c = cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, number);
    if (c == cudaSuccess)
        c = cudaMemGetInfo(&room, &all);
    if (c != cudaSuccess)
        return no_gpu(c, e);
    dev = (struct device *)calloc(1, sizeof *dev);
    if (dev)
        dev->impl = (struct device_impl *)calloc(1, sizeof *dev->impl);
    if (!dev || !dev->impl) {
        free(dev);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    dev->impl->number = number;
    dev->impl->processors = info.processors;
    dev->impl->threads = threads;
    dev->kind = DEVICE_CUDA;
    dev->card = info.card;
    dev->room = room;
    dev->calls = &gpu_calls;
    dev->dedup = &gpu_dedup_ops;
    dev->ops = &cuda_ops;
    dev->fast_bf16 = true;
    dev->fast_fp8 = info.major > 8 || (info.major == 8 && info.minor >= 9);
    dev->fast_blocks = info.major == 9; /* cuBLASLt has it for no other */
    snprintf(dev->name, sizeof dev->name, "cuda: %.70s", info.name);
    *out = dev;
    return 0;
}

static void gpu_libraries(size_t *cublaslt, size_t *cudnn)
{
    *cublaslt = cuda_lt() ? cuda_lt()->version() : 0;
    *cudnn = cuda_dnn() ? cuda_dnn()->version() : 0;
}

extern "C" __attribute__((visibility("default"))) const struct cuda_backend quern_cuda_backend = {
    CUDA_BACKEND_ABI,
    gpu_info,
    gpu_open,
    gpu_libraries,
};
