// Prints a graph of attention that NVIDIA's frontend of cuDNN builds, as tests/simt_dnn_text.cpp prints ours: an operation a
// line, its kind and attributes by their numbers, tensors counted as they first come.  The backend's functions are here, and
// note what they are given; neither the library nor a GPU is needed.
// Arguments: VERSION B T HEADS KV_HEADS D BACKWARD DROP DOCUMENTS.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include <cudnn_frontend.h>

namespace {

struct value {
    int type;
    std::vector<unsigned char> bytes;
};
struct desc {
    int kind;
    std::map<int, value> has;
};

size_t version;
std::map<const desc *, int> counted;

size_t size_of(int type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;
    }
}

/* Numbers of tensors are anybody's; factors of 1 and sums without an order are as without them. */
bool says_nothing(int what, const value &v)
{
    return what == CUDNN_ATTR_TENSOR_UNIQUE_ID || what == CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1 ||
           what == CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2 || what == CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC ||
           (v.type == CUDNN_TYPE_BOOLEAN && v.bytes[0] == 0);
}

void print(const desc *d);

void print(const value &v)
{
    for (size_t i = 0; i < v.bytes.size(); i += size_of(v.type)) {
        const void *p = &v.bytes[i];
        printf("%s", i ? "," : "");
        if (v.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
            print(*(desc *const *)p);
        else if (v.type == CUDNN_TYPE_DOUBLE)
            printf("%g", *(const double *)p);
        else
            printf("%lld", size_of(v.type) == 1   ? (long long)*(const unsigned char *)p
                           : size_of(v.type) == 8 ? (long long)*(const int64_t *)p
                                                  : (long long)*(const int *)p);
    }
}

void print(const desc *d)
{
    bool tensor = d->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR, known = counted.count(d) != 0;
    const char *between = "";
    int count = (int)counted.size();

    if (tensor && !known)
        counted[d] = count;
    if (tensor)
        printf("t%d", counted[d]);
    if (known)
        return;
    printf(tensor ? "{" : "(");
    for (const auto &a : d->has)
        if (!says_nothing(a.first, a.second)) {
            printf("%s%d=", between, a.first);
            print(a.second);
            between = " ";
        }
    printf(tensor ? "}" : ")");
}

void print_graph(const desc *graph)
{
    const value &ops = graph->has.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);

    for (size_t i = 0; i < ops.bytes.size(); i += 8) {
        const desc *op = *(desc *const *)&ops.bytes[i];
        printf("%d", op->kind);
        print(op);
        printf("\n");
    }
}

} // namespace

extern "C" {
size_t cudnnGetVersion(void) { return version; }
size_t cudnnGetCudartVersion(void) { return 13000; }
const char *cudnnGetErrorString(cudnnStatus_t) { return ""; }
void cudnnGetLastErrorString(char *text, size_t n) { snprintf(text, n, "%s", ""); }
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *d)
{
    *d = new desc{kind, {}};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t what,
                                       cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    const unsigned char *p = (const unsigned char *)values;

    ((desc *)d)->has[what] = {type, std::vector<unsigned char>(p, p + (size_t)n * size_of(type))};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
                                       int64_t, int64_t *n, void *)
{
    *n = 0;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    if (((desc *)d)->kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        print_graph((desc *)d);
        exit(0);
    }
    return CUDNN_STATUS_SUCCESS;
}
/* Never called: the program ends with the graph. */
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) { abort(); }
cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t *) { abort(); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *) { abort(); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t) { abort(); }
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t, cudnnTensorFormat_t, int, const int *)
{
    abort();
}
cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t, const cudnnFilterDescriptor_t, cudnnReorderType_t, const void *, void *,
                                        int, const void *, void *)
{
    abort();
}
}

namespace fe = cudnn_frontend;
typedef std::shared_ptr<fe::graph::Tensor_attributes> tensor;

struct asked {
    int64_t b, t, heads, kv, d;
    bool backward, documents;
    float drop;
};

struct tensors {
    tensor q, k, v, o, dout, stats, seed, offset, queries, keys, at_q, at_k, at_v, at_o, at_stats;
};

static tensor given(fe::graph::Graph &g, fe::DataType_t type, std::vector<int64_t> dim, std::vector<int64_t> stride)
{
    return g.tensor(fe::graph::Tensor_attributes().set_dim(dim).set_stride(stride).set_data_type(type));
}
static tensor list(fe::graph::Graph &g, fe::DataType_t type, int64_t n) { return given(g, type, {n, 1, 1, 1}, {1, 1, 1, 1}); }
static tensor rows(fe::graph::Graph &g, const asked &a, int64_t heads, int64_t row)
{
    return given(g, fe::DataType_t::BFLOAT16, {a.b, heads, a.t, a.d}, {a.t * row, a.d, row, 1});
}

/* Packed qkv, dense o and dout. */
static tensors tensors_of(fe::graph::Graph &g, const asked &a)
{
    int64_t row = (a.heads + 2 * a.kv) * a.d, out = a.heads * a.d;
    tensors x;

    x.q = rows(g, a, a.heads, row), x.k = rows(g, a, a.kv, row), x.v = rows(g, a, a.kv, row);
    if (a.drop > 0)
        x.seed = list(g, fe::DataType_t::INT64, 1), x.offset = list(g, fe::DataType_t::INT64, 1);
    if (a.documents) {
        x.queries = list(g, fe::DataType_t::INT32, a.b), x.keys = list(g, fe::DataType_t::INT32, a.b);
        for (tensor *at : {&x.at_q, &x.at_k, &x.at_v, &x.at_o, &x.at_stats})
            *at = list(g, fe::DataType_t::INT64, a.b + 1);
        x.q->set_ragged_offset(x.at_q), x.k->set_ragged_offset(x.at_k), x.v->set_ragged_offset(x.at_v);
    }
    if (!a.backward)
        return x;
    x.o = rows(g, a, a.heads, out), x.dout = rows(g, a, a.heads, out);
    x.stats = given(g, fe::DataType_t::FLOAT, {a.b, a.heads, a.t, 1}, {a.heads * a.t, a.t, 1, 1});
    if (a.documents)
        x.o->set_ragged_offset(x.at_o), x.dout->set_ragged_offset(x.at_o);
    return x;
}

static void as_rows(const tensor &y, const asked &a, int64_t heads, int64_t row, const tensor &at)
{
    y->set_output(true).set_dim({a.b, heads, a.t, a.d}).set_stride({a.t * row, a.d, row, 1});
    if (at)
        y->set_ragged_offset(at);
}
static void as_stats(const tensor &y, const asked &a, const tensor &at)
{
    y->set_dim({a.b, a.heads, a.t, 1}).set_data_type(fe::DataType_t::FLOAT);
    if (at)
        y->set_stride({a.heads * a.t, 1, a.heads, 1}).set_ragged_offset(at);
    else
        y->set_stride({a.heads * a.t, a.t, 1, 1});
}

template <class A> static A attributes(const asked &a, const tensors &x)
{
    A of;

    of.set_name("attention").set_attn_scale(0.125f);
    of.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    if (a.drop > 0)
        of.set_dropout(a.drop, x.seed, x.offset);
    if (a.documents)
        of.set_padding_mask(true).set_seq_len_q(x.queries).set_seq_len_kv(x.keys);
    return of;
}

static void forward(fe::graph::Graph &g, const asked &a, const tensors &x)
{
    auto y = g.sdpa(x.q, x.k, x.v, attributes<fe::graph::SDPA_attributes>(a, x).set_generate_stats(true));

    as_rows(y[0], a, a.heads, a.heads * a.d, x.at_o);
    y[1]->set_output(true);
    as_stats(y[1], a, x.at_stats);
}

static void backward(fe::graph::Graph &g, const asked &a, const tensors &x)
{
    int64_t row = (a.heads + 2 * a.kv) * a.d, all = 4 * a.t; /* tokens; no part of the graph */
    auto of = attributes<fe::graph::SDPA_backward_attributes>(a, x);

    if (a.documents)
        of.set_max_total_seq_len_q(all).set_max_total_seq_len_kv(all);
    as_stats(x.stats, a, x.at_stats);
    auto y = g.sdpa_backward(x.q, x.k, x.v, x.o, x.dout, x.stats, of);
    as_rows(y[0], a, a.heads, row, x.at_q);
    as_rows(y[1], a, a.kv, row, x.at_k);
    as_rows(y[2], a, a.kv, row, x.at_v);
}

int main(int argc, char **argv)
{
    fe::graph::Graph g;

    if (argc != 10)
        return 2;
    version = (size_t)atol(argv[1]);
    const asked a = {atol(argv[2]), atol(argv[3]), atol(argv[4]), atol(argv[5]), atol(argv[6]), atoi(argv[7]) != 0,
                     atoi(argv[9]) != 0, (float)atof(argv[8])};
    g.set_sm_version(90);
    g.set_io_data_type(fe::DataType_t::BFLOAT16).set_intermediate_data_type(fe::DataType_t::FLOAT);
    g.set_compute_data_type(fe::DataType_t::FLOAT);
    if (a.backward)
        backward(g, a, tensors_of(g, a));
    else
        forward(g, a, tensors_of(g, a));
    auto bad = g.validate();
    bad = bad.is_bad() ? bad : g.build_operation_graph((cudnnHandle_t)1);
    fprintf(stderr, "no graph: %s\n", bad.get_message().c_str());
    return 1;
}
