/* tests/simt_dnn.h -- inside cuDNN's stand-in: descriptors and graphs (tests/simt_dnn.cpp makes them), and what a graph computes
 * (tests/simt_dnn_graph.cpp). */
#ifndef TESTS_SIMT_DNN_H
#define TESTS_SIMT_DNN_H

#ifdef __cplusplus
#include <map>
#include <memory>
#include <vector>

#include "kernels/attention_cudnn.cuh"
#include "tests/simt_device.h"

struct dnn_shape simt_dnn_shape_of(const struct simt_dnn_shape *of);

namespace simt_dnn {

enum { DIMS = 4, WORKSPACE = 640 };

/* A descriptor.  What refers to one keeps it. */
struct desc {
    int kind = 0;
    bool final = false;
    std::map<int, std::vector<unsigned char>> bytes;
    std::map<int, std::vector<std::shared_ptr<desc>>> of;

    bool has(int what) const { return bytes.count(what) || of.count(what); }
    const desc *at(int what) const { return of.count(what) ? of.at(what)[0].get() : NULL; }
    template <class T> std::vector<T> all(int what) const
    {
        std::vector<T> v;
        if (bytes.count(what)) {
            v.resize(bytes.at(what).size() / sizeof(T));
            memcpy(v.data(), bytes.at(what).data(), v.size() * sizeof(T));
        }
        return v;
    }
    template <class T> T one(int what) const { return bytes.count(what) ? all<T>(what)[0] : T(); }
    bool yes(int what) const { return one<unsigned char>(what) != 0; }
};
typedef std::shared_ptr<desc> shared;

struct dnn_tensor {
    int64_t id, dim[DIMS], stride[DIMS], align;
    int type;
    bool inner, by_value;
    const desc *ragged; /* where its documents begin; NULL: as the first stride says */

    explicit dnn_tensor(const desc *d)
        : id(d->one<int64_t>(DNN_ATTR_TENSOR_UNIQUE_ID)), align(d->one<int64_t>(DNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
          type(d->one<int>(DNN_ATTR_TENSOR_DATA_TYPE)), inner(d->yes(DNN_ATTR_TENSOR_IS_VIRTUAL)),
          by_value(d->yes(DNN_ATTR_TENSOR_IS_BY_VALUE)), ragged(d->at(DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC))
    {
        memcpy(dim, d->all<int64_t>(DNN_ATTR_TENSOR_DIMENSIONS).data(), sizeof dim);
        memcpy(stride, d->all<int64_t>(DNN_ATTR_TENSOR_STRIDES).data(), sizeof stride);
    }
    int64_t n() const { return dim[0] * dim[1] * dim[2] * dim[3]; }
    int64_t place(const int64_t i[DIMS]) const
    {
        return i[0] * stride[0] + i[1] * stride[1] + i[2] * stride[2] + i[3] * stride[3];
    }
    /* Which dimension is that of tokens: the third, or the last of what is turned. */
    int tokens() const { return stride[2] == 1 && stride[3] > 1 ? 3 : 2; }
    /* How many elements of memory it spans. */
    size_t span() const
    {
        const int64_t last[DIMS] = {dim[0] - 1, dim[1] - 1, dim[2] - 1, dim[3] - 1};
        return (size_t)place(last) + 1;
    }
    size_t each() const { return type == DNN_DATA_BFLOAT16 ? 2 : type == DNN_DATA_INT64 ? 8 : 4; }
    size_t bytes() const { return (ragged ? 1 : span()) * each(); }
    float rounded(float x) const { return type == DNN_DATA_BFLOAT16 ? bf16_to(bf16_of(x)) : x; }
};

/* Of a graph: its operation, and what it reads and makes; of a product also how much of m, n and k each document has. */
struct operation {
    const desc *d;
    std::vector<dnn_tensor> in;
    dnn_tensor out;
    const desc *extent[3];
};

/* The operations of a graph taken apart; false: one makes no sense. */
bool understood(const desc *graph, std::vector<operation> &all);
/* Each tensor inside the graph is made once, before it is read. */
bool in_order(const std::vector<operation> &all);
/* Of the two graphs of attention. */
bool is_backward(const std::vector<operation> &all);
/* Whether the rows' sums of dout o are multiplied by a number, as the engine of 9.19 for Hopper takes for granted of every graph
 * of gradients that it accepts. */
bool scales_rows(const std::vector<operation> &all);
/* Whether documents lie anywhere, and what says so goes together: all of the tensors outside of the graph, each product with its
 * lengths, what lies beyond them masked. */
bool has_documents(const std::vector<operation> &all);
bool says_documents(const std::vector<operation> &all);
/* Every tensor that a call must give: those outside of the graph, lengths and beginnings. */
std::vector<dnn_tensor> outside(const std::vector<operation> &all);
/* The same hash of an element's number for the same seed and offset, from 0 up to 1. */
double drawn(int64_t seed, int64_t offset, int64_t n);

/* Where the tensors outside of a graph lie at a call, the numbers of those that are given by value. */
struct call {
    shared graph;
    std::map<int64_t, void *> at;      /* in the memory of this process */
    std::map<int64_t, const void *> given; /* as the caller said it */
    std::map<int64_t, float> number;
    size_t version;
    void *workspace;
};
/* When it is its turn. */
void run(const call &c);

} // namespace simt_dnn
#endif

#endif
