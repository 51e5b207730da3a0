// Where cuDNN itself is, it checks our graphs without a GPU.
#include "tests/simt_dnn.h"

/* Packed qkv; dense o and dout. */
struct dnn_shape simt_dnn_shape_of(const struct simt_dnn_shape *of)
{
    struct dnn_shape s = {};
    int64_t row = (of->heads + 2 * of->kv_heads) * of->d;

    s.b = of->b, s.t = of->t, s.heads = of->heads, s.kv_heads = of->kv_heads, s.d = of->d, s.backward = of->backward;
    s.documents = of->documents, s.drop = of->drop;
    for (int i = 0; i < 8; i++) {
        s.stride[i][1] = (i == 3 || i == 4 ? s.heads * s.d : row);
        s.stride[i][0] = s.documents ? 0 : s.t * s.stride[i][1];
    }
    return s;
}

/* An H200 to the library: what its runtime would say of one. */
static const char h200[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
    "\"multiProcessorCount\":132,"
    "\"warpSize\":32,\"maxCtasPerSM\":32,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,\"deviceName\":\"NVIDIA H200\",\"deviceVer\":900,\"driverVer\":13000,"
    "\"cudaDeviceId\":0,\"totalGlobalMem\":150110011392,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
    "\"maxSharedMemoryPerSM\":233472,\"sharedMemPerMultiprocessor\":233472}";

extern "C" int simt_dnn_engines(const char *library, const struct simt_dnn_shape *of, int *engines, struct err *e)
{
    static struct dnn_api api;
    static void *prop;
    struct dnn_plan p = {};

    *engines = 0;
    if (!prop && (!dnn_load(&api, dlopen(library, RTLD_NOW | RTLD_LOCAL)) || api.desc_create(DNN_DEVICEPROP, &prop) ||
                  api.set(prop, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, DNN_TYPE_CHAR, sizeof h200 - 1, h200) ||
                  api.finalize(prop)))
        return err_set(e, ERR_UNSUPPORTED, "no cuDNN in '%s' that plans without a GPU", library);
    p.shape = simt_dnn_shape_of(of);
    TRY(dnn_plan_make(&api, NULL, prop, &p, e));
    *engines = p.engines;
    return 0;
}
