// Stands for cuDNN where kernels run on the CPU: its backend interface (kernels/dnn_api.h) over plain loops
// (tests/simt_dnn_graph.cpp).  It checks what it is given: attributes that belong to the descriptor, of their type and number;
// tensors whose shapes go together; a graph that makes each tensor once and before it is read; at a call all of the tensors that
// lie outside of the graph, aligned as was said, and a workspace.  Matrix products are of numbers rounded to bf16.
//
// SIMT_DNN=VERSION, as cudnnGetVersion says it; unset: the library is not there.  Versions have the faults that are known of
// them: 9.10.0 and 9.10.1 give wrong results, gradients are wrong up to 9.15.0 where the keys are no multiple of 128, and before
// 9.6 the sum of dq goes on from what the memory held.  That sum is added up in another order at each call.
#include "tests/simt_dnn.h"

#include <string>

#include "tests/simt_device.h"

struct simt_dnn_calls simt_dnn_calls;

using namespace simt_dnn;

namespace {

enum { OK = 0, BAD_PARAM = 2000, NOT_FINALIZED = 2002, NOT_SUPPORTED = 3000, FAILED = 5000 };

std::string why;

int refuse(int status, const char *what)
{
    why = what;
    return status;
}

/* ---- descriptors ---- */

enum { HANDLE_IS = 0xd22 };
struct handle {
    int is;
    void *stream;
};

size_t bytes_of(int type)
{
    return type == DNN_TYPE_BOOLEAN || type == DNN_TYPE_CHAR ? 1
           : type == DNN_TYPE_HANDLE || type == DNN_TYPE_INT64 || type == DNN_TYPE_VOID_PTR || type == DNN_TYPE_DOUBLE ||
                   type == DNN_TYPE_BACKEND_DESCRIPTOR ? 8
                                                       : 4;
}

/* An attribute: of which descriptors, of what type, how many; whether it must be there. */
struct attribute {
    int kind, what, type, most;
    bool must;
};
enum { MANY = 64 };
const attribute attributes[] = {
    {DNN_TENSOR, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, true},
    {DNN_TENSOR, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, DIMS, true},
    {DNN_TENSOR, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, DIMS, true},
    {DNN_TENSOR, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, true},
    {DNN_TENSOR, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, true},
    {DNN_TENSOR, DNN_ATTR_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, false},
    {DNN_TENSOR, DNN_ATTR_TENSOR_IS_BY_VALUE, DNN_TYPE_BOOLEAN, 1, false},
    {DNN_TENSOR, DNN_ATTR_TENSOR_REORDERING_MODE, DNN_TYPE_TENSOR_REORDERING_MODE, 1, false},
    {DNN_TENSOR, DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {DNN_POINTWISE, DNN_ATTR_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, true},
    {DNN_POINTWISE, DNN_ATTR_POINTWISE_MATH_PREC, DNN_TYPE_DATA_TYPE, 1, true},
    {DNN_POINTWISE, DNN_ATTR_POINTWISE_AXIS, DNN_TYPE_INT64, 1, false},
    {DNN_OPERATION_POINTWISE, DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_POINTWISE, DNN_ATTR_OPERATION_POINTWISE_XDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_POINTWISE, DNN_ATTR_OPERATION_POINTWISE_BDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {DNN_OPERATION_POINTWISE, DNN_ATTR_OPERATION_POINTWISE_TDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {DNN_OPERATION_POINTWISE, DNN_ATTR_OPERATION_POINTWISE_YDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_MATMUL, DNN_ATTR_MATMUL_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, true},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_ADESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_BDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_CDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_M_OVERRIDE, DNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_N_OVERRIDE, DNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {DNN_OPERATION_MATMUL, DNN_ATTR_OPERATION_MATMUL_K_OVERRIDE, DNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {DNN_RNG, DNN_ATTR_RNG_DISTRIBUTION, DNN_TYPE_RNG_DISTRIBUTION, 1, true},
    {DNN_RNG, DNN_ATTR_RNG_BERNOULLI_PROBABILITY, DNN_TYPE_DOUBLE, 1, true},
    {DNN_OPERATION_RNG, DNN_ATTR_OPERATION_RNG_YDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_RNG, DNN_ATTR_OPERATION_RNG_SEED, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_RNG, DNN_ATTR_OPERATION_RNG_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_RNG, DNN_ATTR_OPERATION_RNG_OFFSET, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_REDUCTION, DNN_ATTR_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, true},
    {DNN_REDUCTION, DNN_ATTR_REDUCTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, true},
    {DNN_OPERATION_REDUCTION, DNN_ATTR_OPERATION_REDUCTION_XDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_REDUCTION, DNN_ATTR_OPERATION_REDUCTION_YDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_REDUCTION, DNN_ATTR_OPERATION_REDUCTION_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_RESHAPE, DNN_ATTR_OPERATION_RESHAPE_XDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATION_RESHAPE, DNN_ATTR_OPERATION_RESHAPE_YDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_OPERATIONGRAPH, DNN_ATTR_OPERATIONGRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR, MANY, true},
    {DNN_OPERATIONGRAPH, DNN_ATTR_OPERATIONGRAPH_HANDLE, DNN_TYPE_HANDLE, 1, true},
    {DNN_ENGINEHEUR, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_ENGINEHEUR, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1, true},
    {DNN_EXECUTION_PLAN, DNN_ATTR_EXECUTION_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, true},
    {DNN_EXECUTION_PLAN, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, DNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {DNN_VARIANT_PACK, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64, MANY, true},
    {DNN_VARIANT_PACK, DNN_ATTR_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR, MANY, true},
    {DNN_VARIANT_PACK, DNN_ATTR_VARIANT_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, true},
};

int create(void **h)
{
    *h = new handle{HANDLE_IS, NULL};
    return OK;
}
int destroy(void *h)
{
    delete (handle *)h;
    return OK;
}
int set_stream(void *h, void *stream)
{
    ((handle *)h)->stream = stream;
    return ((handle *)h)->is == HANDLE_IS ? OK : BAD_PARAM;
}

int desc_create(int kind, void **out)
{
    shared *d = new shared(new desc());

    (*d)->kind = kind;
    *out = d;
    return OK;
}
int desc_destroy(void *d)
{
    delete (shared *)d;
    return OK;
}

int set(void *to, int what, int type, int64_t n, const void *values)
{
    desc &d = **(shared *)to;

    if (d.final)
        return refuse(BAD_PARAM, "a descriptor is set after it was finished");
    for (const attribute &a : attributes) {
        if (a.kind != d.kind || a.what != what)
            continue;
        if (a.type != type || n < 1 || n > a.most || (a.most == DIMS && n != DIMS))
            return refuse(BAD_PARAM, "an attribute of another type or number");
        if (type == DNN_TYPE_BACKEND_DESCRIPTOR) {
            d.of[what].clear();
            for (int64_t i = 0; i < n; i++) {
                shared *other = ((shared *const *)values)[i];
                if (!other || !(*other)->final)
                    return refuse(NOT_FINALIZED, "a descriptor that is not finished");
                d.of[what].push_back(*other);
            }
            return OK;
        }
        const unsigned char *p = (const unsigned char *)values;
        d.bytes[what].assign(p, p + (size_t)n * bytes_of(type));
        return OK;
    }
    return refuse(BAD_PARAM, "an attribute that the descriptor does not have");
}

/* ---- finishing, asking, running ---- */

int finalize(void *of)
{
    desc &d = **(shared *)of;
    std::vector<operation> all;

    for (const attribute &a : attributes)
        if (a.kind == d.kind && a.must && !d.has(a.what))
            return refuse(BAD_PARAM, "a descriptor without what it must have");
    if (d.kind == DNN_TENSOR)
        for (int64_t n : d.all<int64_t>(DNN_ATTR_TENSOR_DIMENSIONS))
            if (n < 1)
                return refuse(BAD_PARAM, "a tensor of nothing");
    if (d.kind == DNN_OPERATIONGRAPH && (!understood(&d, all) || !in_order(all)))
        return refuse(NOT_SUPPORTED, "a graph that makes no sense");
    if (d.kind == DNN_OPERATIONGRAPH && has_documents(all) && !says_documents(all))
        return refuse(NOT_SUPPORTED, "documents whose lengths or beginnings are not said everywhere");
    if (d.kind == DNN_EXECUTION_PLAN && !d.at(DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->has(DNN_ATTR_ENGINE_NUMERICAL_NOTE))
        return refuse(NOT_SUPPORTED, "an engine that cannot be made ready");
    d.final = true;
    return OK;
}

/* The configurations of engines; of two the second can be made ready. */
int results(const desc &d, int64_t most, int64_t *n, void *values)
{
    *n = most < 2 ? most : 2;
    for (int64_t i = 0; i < *n; i++) {
        desc &config = ***((shared *const *)values + i);
        config.of[DNN_ATTR_ENGINECFG_ENGINE] = d.of.at(DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        if (i == 1)
            config.bytes[DNN_ATTR_ENGINE_NUMERICAL_NOTE].assign(4, 0);
        config.final = true;
    }
    return OK;
}

int get(const void *of, int what, int type, int64_t most, int64_t *n, void *values)
{
    const desc &d = **(const shared *)of;
    const int64_t bytes = WORKSPACE;

    if (!d.final)
        return refuse(NOT_FINALIZED, "a descriptor that is not finished is asked");
    if (what == DNN_ATTR_ENGINEHEUR_RESULTS && type == DNN_TYPE_BACKEND_DESCRIPTOR)
        return results(d, most, n, values);
    if (what != DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || type != DNN_TYPE_INT64 || most != 1)
        return refuse(BAD_PARAM, "an attribute that nobody has");
    *n = 1;
    memcpy(values, &bytes, sizeof bytes);
    return OK;
}

size_t version(void) { return getenv("SIMT_DNN") ? (size_t)atol(getenv("SIMT_DNN")) : 0; }

/* The tensor's place in the pack; a number by value is read now. */
int place_one(call &c, const desc &pack, const dnn_tensor &t)
{
    std::vector<int64_t> id = pack.all<int64_t>(DNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::vector<void *> p = pack.all<void *>(DNN_ATTR_VARIANT_PACK_DATA_POINTERS);

    for (size_t i = 0; i < id.size() && i < p.size(); i++) {
        if (id[i] != t.id)
            continue;
        if ((uintptr_t)p[i] % (uintptr_t)t.align && !t.by_value)
            return refuse(BAD_PARAM, "a tensor that is not aligned as was said");
        if (t.by_value)
            memcpy(&c.number[t.id], simt_place_host(p[i], "cuDNN: a number"), sizeof(float));
        else
            c.at[t.id] = simt_place(p[i], t.bytes(), "cuDNN: a tensor");
        c.given[t.id] = p[i];
        return OK;
    }
    return refuse(BAD_PARAM, "a tensor that is not given");
}

int execute(void *h, void *plan, void *pack)
{
    const desc &ready = **(shared *)plan, &p = **(shared *)pack;
    call c = {};
    std::vector<operation> all;

    if (((handle *)h)->is != HANDLE_IS || !ready.final || !p.final)
        return refuse(NOT_FINALIZED, "a call of what is not finished");
    if (simt_dnn_calls.fail)
        return refuse(FAILED, "a test has it fail");
    c.version = version();
    c.graph = ready.at(DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->of.at(DNN_ATTR_ENGINECFG_ENGINE)[0];
    understood(c.graph.get(), all);
    if (is_backward(all) && !scales_rows(all))
        return refuse(FAILED, "err 700 an illegal memory access was encountered");
    for (const dnn_tensor &t : outside(all))
        if (place_one(c, p, t))
            return BAD_PARAM;
    c.workspace = simt_place(p.one<void *>(DNN_ATTR_VARIANT_PACK_WORKSPACE), WORKSPACE, "cuDNN: its workspace");
    if (!c.workspace)
        return refuse(BAD_PARAM, "no workspace");
    *(is_backward(all) ? &simt_dnn_calls.backward : &simt_dnn_calls.forward) += 1;
    simt::in_stream([=] { run(c); });
    return OK;
}

void last_error(char *text, size_t bytes) { snprintf(text, bytes, "%s", why.c_str()); }

} // namespace

extern "C" const struct dnn_api *cuda_dnn(void)
{
    static const struct dnn_api api = {version, create,       destroy, set_stream, desc_create, desc_destroy,
                                       set,     get,          finalize, execute,   last_error};

    return getenv("SIMT_DNN") ? &api : NULL;
}
