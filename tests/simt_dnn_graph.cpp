// What a graph of cuDNN's computes, each operation after the other.
#include "tests/simt_dnn.h"

#include <algorithm>
#include <cmath>

using namespace simt_dnn;

namespace {

enum { TILE = 8 };

/* f(index, its number) for each element, in the order of the dimensions. */
template <class F> void each(const dnn_tensor &t, const F &f)
{
    int64_t at[DIMS], n = 0;

    for (at[0] = 0; at[0] < t.dim[0]; at[0]++)
        for (at[1] = 0; at[1] < t.dim[1]; at[1]++)
            for (at[2] = 0; at[2] < t.dim[2]; at[2]++)
                for (at[3] = 0; at[3] < t.dim[3]; at[3]++)
                    f(at, (size_t)n++);
}

/* The number of the element that the index of y means: of a dimension of 1 the only one. */
struct spread {
    int64_t step[DIMS];

    spread(const dnn_tensor &t, const dnn_tensor &y)
    {
        int64_t n = 1;
        for (int d = DIMS - 1; d >= 0; d--) {
            step[d] = t.dim[d] == 1 && y.dim[d] > 1 ? 0 : n;
            n *= t.dim[d];
        }
    }
    size_t at(const int64_t i[DIMS]) const
    {
        return (size_t)(i[0] * step[0] + i[1] * step[1] + i[2] * step[2] + i[3] * step[3]);
    }
};

/* Whether t's elements are y's, or where it has a dimension of 1 the same for all of y's. */
bool spreads_over(const dnn_tensor &t, const dnn_tensor &y)
{
    bool r = true;

    for (int d = 0; d < DIMS; d++)
        r = r && (t.dim[d] == y.dim[d] || t.dim[d] == 1);
    return r;
}

/* ---- operations ---- */

typedef std::vector<float> numbers;

const desc *checked(const desc *op, int what, int kind)
{
    const desc *d = op->at(what);
    return d && d->kind == kind ? d : NULL;
}

bool operands(const desc *op, std::vector<int> what, std::vector<const desc *> &in)
{
    for (int w : what)
        if (op->has(w)) {
            in.push_back(checked(op, w, DNN_TENSOR));
            if (!in.back())
                return false;
        }
    return true;
}

/* How many operands a pointwise operation has; 0: it is not known. */
int operands_of(int mode)
{
    switch (mode) {
    case DNN_POINTWISE_ADD:
    case DNN_POINTWISE_DIV:
    case DNN_POINTWISE_MUL:
    case DNN_POINTWISE_SUB:
    case DNN_POINTWISE_CMP_GE:
    case DNN_POINTWISE_CMP_LT:
    case DNN_POINTWISE_LOGICAL_AND: return 2;
    case DNN_POINTWISE_EXP:
    case DNN_POINTWISE_LOG:
    case DNN_POINTWISE_GEN_INDEX:
    case DNN_POINTWISE_IDENTITY: return 1;
    case DNN_POINTWISE_BINARY_SELECT: return 3;
    default: return 0;
    }
}

bool is_truth(int mode)
{
    return mode == DNN_POINTWISE_CMP_GE || mode == DNN_POINTWISE_CMP_LT || mode == DNN_POINTWISE_LOGICAL_AND;
}

bool pointwise_fits(const operation &o)
{
    const desc *how = checked(o.d, DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, DNN_POINTWISE);
    int mode = how ? how->one<int>(DNN_ATTR_POINTWISE_MODE) : -1;

    for (const dnn_tensor &t : o.in)
        if (!spreads_over(t, o.out))
            return false;
    return how && (int)o.in.size() == operands_of(mode) &&
           (mode != DNN_POINTWISE_GEN_INDEX || how->has(DNN_ATTR_POINTWISE_AXIS)) &&
           (mode != DNN_POINTWISE_BINARY_SELECT || o.in[2].type == DNN_DATA_BOOLEAN) &&
           is_truth(mode) == (o.out.type == DNN_DATA_BOOLEAN);
}

/* Heads of a and b may be fewer than those of c. */
bool matmul_fits(const operation &o)
{
    const dnn_tensor &a = o.in[0], &b = o.in[1], &c = o.out;

    return checked(o.d, DNN_ATTR_OPERATION_MATMUL_DESC, DNN_MATMUL) && a.dim[0] == c.dim[0] && b.dim[0] == c.dim[0] &&
           c.dim[1] % a.dim[1] == 0 && c.dim[1] % b.dim[1] == 0 && a.dim[2] == c.dim[2] && b.dim[3] == c.dim[3] &&
           a.dim[3] == b.dim[2];
}

/* Columns into one, or heads into those that they share. */
bool reduction_fits(const operation &o)
{
    const dnn_tensor &x = o.in[0], &y = o.out;

    return checked(o.d, DNN_ATTR_OPERATION_REDUCTION_DESC, DNN_REDUCTION) && x.dim[0] == y.dim[0] && x.dim[1] % y.dim[1] == 0 &&
           x.dim[2] == y.dim[2] && (x.dim[3] == y.dim[3] || y.dim[3] == 1);
}

/* A mask from two integers in memory, as likely as is said. */
bool random_fits(const operation &o)
{
    const desc *how = checked(o.d, DNN_ATTR_OPERATION_RNG_DESC, DNN_RNG);
    double keep = how ? how->one<double>(DNN_ATTR_RNG_BERNOULLI_PROBABILITY) : 0;

    for (const dnn_tensor &t : o.in)
        if (t.type != DNN_DATA_INT64 || t.n() != 1 || t.inner || t.by_value)
            return false;
    return how && how->one<int>(DNN_ATTR_RNG_DISTRIBUTION) == DNN_RNG_BERNOULLI && keep > 0 && keep < 1;
}

/* Takes the operation apart; false: it makes no sense. */
bool apart(const desc *d, std::vector<operation> &all)
{
    std::vector<const desc *> in, out;
    bool ok = false;

    if (d->kind == DNN_OPERATION_POINTWISE)
        ok = operands(d, {DNN_ATTR_OPERATION_POINTWISE_XDESC, DNN_ATTR_OPERATION_POINTWISE_BDESC,
                          DNN_ATTR_OPERATION_POINTWISE_TDESC}, in) &&
             operands(d, {DNN_ATTR_OPERATION_POINTWISE_YDESC}, out);
    else if (d->kind == DNN_OPERATION_MATMUL)
        ok = operands(d, {DNN_ATTR_OPERATION_MATMUL_ADESC, DNN_ATTR_OPERATION_MATMUL_BDESC}, in) &&
             operands(d, {DNN_ATTR_OPERATION_MATMUL_CDESC}, out);
    else if (d->kind == DNN_OPERATION_REDUCTION)
        ok = operands(d, {DNN_ATTR_OPERATION_REDUCTION_XDESC}, in) && operands(d, {DNN_ATTR_OPERATION_REDUCTION_YDESC}, out);
    else if (d->kind == DNN_OPERATION_RNG)
        ok = operands(d, {DNN_ATTR_OPERATION_RNG_SEED, DNN_ATTR_OPERATION_RNG_OFFSET}, in) &&
             operands(d, {DNN_ATTR_OPERATION_RNG_YDESC}, out);
    else if (d->kind == DNN_OPERATION_RESHAPE)
        ok = operands(d, {DNN_ATTR_OPERATION_RESHAPE_XDESC}, in) && operands(d, {DNN_ATTR_OPERATION_RESHAPE_YDESC}, out);
    if (!ok || out.size() != 1)
        return false;
    operation o = {d, {}, dnn_tensor(out[0]), {d->at(DNN_ATTR_OPERATION_MATMUL_M_OVERRIDE),
                   d->at(DNN_ATTR_OPERATION_MATMUL_N_OVERRIDE), d->at(DNN_ATTR_OPERATION_MATMUL_K_OVERRIDE)}};
    for (const desc *t : in)
        o.in.push_back(dnn_tensor(t));
    all.push_back(o);
    return d->kind == DNN_OPERATION_POINTWISE   ? pointwise_fits(o)
           : d->kind == DNN_OPERATION_MATMUL    ? matmul_fits(o)
           : d->kind == DNN_OPERATION_REDUCTION ? reduction_fits(o)
           : d->kind == DNN_OPERATION_RNG       ? random_fits(o)
                                                : o.in[0].n() == o.out.n();
}

float point(int mode, float x, float b, float t)
{
    switch (mode) {
    case DNN_POINTWISE_ADD: return x + b;
    case DNN_POINTWISE_DIV: return x / b;
    case DNN_POINTWISE_MUL: return x * b;
    case DNN_POINTWISE_SUB: return x - b;
    case DNN_POINTWISE_CMP_GE: return x >= b;
    case DNN_POINTWISE_CMP_LT: return x < b;
    case DNN_POINTWISE_LOGICAL_AND: return x != 0 && b != 0;
    case DNN_POINTWISE_EXP: return expf(x);
    case DNN_POINTWISE_LOG: return logf(x);
    case DNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
    default: return x;
    }
}

void pointwise(const operation &o, const numbers *const in[3], numbers &y)
{
    const desc *how = o.d->at(DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    int mode = how->one<int>(DNN_ATTR_POINTWISE_MODE);
    int64_t axis = how->one<int64_t>(DNN_ATTR_POINTWISE_AXIS);
    std::vector<spread> of;

    for (const dnn_tensor &t : o.in)
        of.push_back(spread(t, o.out));
    each(o.out, [&](const int64_t *at, size_t n) {
        float v[3] = {0, 0, 0};
        for (size_t k = 0; k < of.size(); k++)
            v[k] = (*in[k])[of[k].at(at)];
        y[n] = mode == DNN_POINTWISE_GEN_INDEX ? (float)at[axis] : point(mode, v[0], v[1], v[2]);
    });
}

/* One element of a product: the inner dimension in tiles, the first of which is `from`. */
float dot(const float *a, const float *b, int64_t b_step, int64_t n, int64_t from)
{
    int64_t tiles = (n + TILE - 1) / TILE;
    float sum = 0;

    for (int64_t t = 0; t < tiles; t++) {
        int64_t begin = (t + from) % tiles * TILE, end = begin + TILE < n ? begin + TILE : n;
        float part = 0;
        for (int64_t k = begin; k < end; k++)
            part += a[k] * b[k * b_step];
        sum += part;
    }
    return sum;
}

/* As tensor cores take them. */
numbers in_bf16(const numbers &x)
{
    numbers r = x;

    for (float &v : r)
        v = bf16_to(bf16_of(v));
    return r;
}

/* How much of m, n and k a document has. */
struct extents {
    std::vector<int64_t> of[3]; /* empty: all */

    int64_t at(int which, int64_t b, int64_t all) const { return of[which].empty() ? all : of[which][(size_t)b]; }
};

/* The sum of dq, in fp32 outside of the graph. */
bool is_sum(const operation &o) { return o.d->kind == DNN_OPERATION_MATMUL && !o.out.inner && o.out.type == DNN_DATA_FLOAT; }

/* add: to what y held. */
void matmul(const operation &o, const extents &has, const numbers *const in[3], numbers &y, bool add)
{
    static int64_t calls;
    const numbers a = in_bf16(*in[0]), b = in_bf16(*in[1]);
    const dnn_tensor &ta = o.in[0], &tb = o.in[1], &tc = o.out;
    int64_t inner = ta.dim[3], from = is_sum(o) ? calls++ : 0;

    for (int64_t head = 0; head < tc.dim[0] * tc.dim[1]; head++) {
        int64_t in_a = head / (tc.dim[1] / ta.dim[1]), in_b = head / (tc.dim[1] / tb.dim[1]), batch = head / tc.dim[1];
        int64_t m = has.at(0, batch, tc.dim[2]), n = has.at(1, batch, tc.dim[3]), k = has.at(2, batch, inner);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float &to = y[(size_t)((head * tc.dim[2] + i) * tc.dim[3] + j)];
                float s = dot(&a[(size_t)((in_a * ta.dim[2] + i) * inner)], &b[(size_t)(in_b * inner * tb.dim[3] + j)],
                              tb.dim[3], k, from);
                to = add ? to + s : s;
            }
    }
}

void reduce(const operation &o, const numbers &x, numbers &y)
{
    const desc *how = o.d->at(DNN_ATTR_OPERATION_REDUCTION_DESC);
    bool max = how->one<int>(DNN_ATTR_REDUCTION_OPERATOR) == DNN_REDUCE_MAX;
    int64_t share = o.in[0].dim[1] / o.out.dim[1];

    for (float &v : y)
        v = max ? -INFINITY : 0;
    each(o.in[0], [&](const int64_t *at, size_t n) {
        const dnn_tensor &t = o.out;
        int64_t row = (at[0] * t.dim[1] + at[1] / share) * t.dim[2] + at[2];
        float &to = y[(size_t)(row * t.dim[3] + (t.dim[3] == 1 ? 0 : at[3]))];
        to = !max ? to + x[n] : x[n] > to ? x[n] : to;
    });
}

/* The same memory in the shape and with the strides of the result. */
void reshape(const operation &o, const numbers &x, numbers &y)
{
    numbers memory(std::max(o.in[0].span(), o.out.span()), NAN);

    each(o.in[0], [&](const int64_t *at, size_t n) { memory[(size_t)o.in[0].place(at)] = x[n]; });
    each(o.out, [&](const int64_t *at, size_t n) { y[n] = memory[(size_t)o.out.place(at)]; });
}

void draw(const operation &o, const call &c, numbers &y)
{
    int64_t seed = *(const int64_t *)c.at.at(o.in[0].id), offset = *(const int64_t *)c.at.at(o.in[1].id);
    double keep = o.d->at(DNN_ATTR_OPERATION_RNG_DESC)->one<double>(DNN_ATTR_RNG_BERNOULLI_PROBABILITY);

    for (size_t i = 0; i < y.size(); i++)
        y[i] = drawn(seed, offset, (int64_t)i) < keep;
}

/* ---- a call ---- */

std::vector<int64_t> lengths(const call &c, const desc *d)
{
    const int32_t *p = d ? (const int32_t *)c.at.at(dnn_tensor(d).id) : NULL;

    return p ? std::vector<int64_t>(p, p + dnn_tensor(d).dim[0]) : std::vector<int64_t>();
}

/* Where the tensors of a graph lie of which documents begin anywhere: how many tokens each has, and of a tensor that is summed
 * over heads how many times wider it is than what its beginnings are said of. */
struct layout {
    std::vector<int64_t> tokens;
    std::map<int64_t, int64_t> wider;

    layout(const call &c, const std::vector<operation> &all)
    {
        for (const operation &o : all) {
            if (o.extent[0] && tokens.empty())
                tokens = lengths(c, o.extent[0]);
            if (o.d->kind == DNN_OPERATION_REDUCTION && !o.in[0].inner)
                wider[o.in[0].id] = o.in[0].dim[1] / o.out.dim[1];
        }
    }
    /* Where element i is, in elements; less than 0: nowhere, beyond its document. */
    int64_t place(const call &c, const dnn_tensor &t, const int64_t i[DIMS]) const
    {
        if (!t.ragged)
            return t.place(i);
        if (i[t.tokens()] >= tokens[(size_t)i[0]])
            return -1;
        int64_t begin = ((const int64_t *)c.at.at(dnn_tensor(t.ragged).id))[i[0]];
        return begin * (wider.count(t.id) ? wider.at(t.id) : 1) + t.place(i) - i[0] * t.stride[0];
    }
    /* The caller's memory is as long as its documents are. */
    void check(const call &c, const dnn_tensor &t) const
    {
        int64_t most = -1;
        if (!t.ragged)
            return;
        each(t, [&](const int64_t *at, size_t) { most = std::max(most, place(c, t, at)); });
        simt_place(c.given.at(t.id), (size_t)(most + 1) * t.each(), "cuDNN: rows of documents");
    }
};

numbers fetch(const call &c, const layout &l, const dnn_tensor &t)
{
    numbers v((size_t)t.n());
    const void *p = c.at.at(t.id);

    l.check(c, t);
    each(t, [&](const int64_t *at, size_t n) {
        int64_t i = l.place(c, t, at);
        v[n] = i < 0                           ? 0
               : t.type == DNN_DATA_BFLOAT16   ? bf16_to(((const uint16_t *)p)[i])
               : t.type == DNN_DATA_INT32      ? (float)((const int32_t *)p)[i]
                                               : ((const float *)p)[i];
    });
    return v;
}

void store(const call &c, const layout &l, const dnn_tensor &t, const numbers &v)
{
    void *p = c.at.at(t.id);

    l.check(c, t);
    each(t, [&](const int64_t *at, size_t n) {
        int64_t i = l.place(c, t, at);
        if (i < 0)
            return;
        if (t.type == DNN_DATA_BFLOAT16)
            ((uint16_t *)p)[i] = bf16_of(v[n]);
        else
            ((float *)p)[i] = v[n];
    });
}

/* What is known to be wrong with a version: the last rows of what leaves the graph. */
bool has_fault(const call &c, const dnn_tensor &t, bool backward)
{
    return c.version == 91000 || c.version == 91001 || (backward && c.version <= 91500 && t.dim[2] % 128 != 0);
}

/* What an operation reads, from memory where it is first read there. */
const numbers *operand(const call &c, const layout &l, const dnn_tensor &t, std::map<int64_t, numbers> &made)
{
    if (!made.count(t.id))
        made[t.id] = t.by_value ? numbers(1, c.number.at(t.id)) : fetch(c, l, t);
    return &made[t.id];
}

/* y of what it held, where it goes on from that. */
void compute(const call &c, const operation &o, const numbers *const in[3], numbers &y, bool goes_on)
{
    if (o.d->kind == DNN_OPERATION_POINTWISE)
        pointwise(o, in, y);
    else if (o.d->kind == DNN_OPERATION_MATMUL)
        matmul(o, {{lengths(c, o.extent[0]), lengths(c, o.extent[1]), lengths(c, o.extent[2])}}, in, y, goes_on);
    else if (o.d->kind == DNN_OPERATION_REDUCTION)
        reduce(o, *in[0], y);
    else if (o.d->kind == DNN_OPERATION_RNG)
        draw(o, c, y);
    else
        reshape(o, *in[0], y);
}

void run_one(const call &c, const layout &l, const operation &o, bool backward, std::map<int64_t, numbers> &made)
{
    const numbers *in[3] = {NULL, NULL, NULL};
    bool goes_on = is_sum(o) && c.version < 90600;
    numbers y = goes_on ? fetch(c, l, o.out) : numbers((size_t)o.out.n());

    for (size_t k = 0; k < o.in.size() && o.d->kind != DNN_OPERATION_RNG; k++)
        in[k] = operand(c, l, o.in[k], made);
    compute(c, o, in, y, goes_on);
    for (float &v : y)
        v = o.out.rounded(v);
    if (!o.out.inner && has_fault(c, o.out, backward))
        y.back() += 1;
    if (!o.out.inner)
        store(c, l, o.out, y);
    made[o.out.id] = y;
}

} // namespace

bool simt_dnn::understood(const desc *graph, std::vector<operation> &all)
{
    for (const shared &op : graph->of.at(DNN_ATTR_OPERATIONGRAPH_OPS))
        if (!apart(op.get(), all))
            return false;
    return true;
}

/* Only attention forward looks for the largest score. */
bool simt_dnn::is_backward(const std::vector<operation> &all)
{
    bool max = false;

    for (const operation &o : all)
        max = max || (o.d->kind == DNN_OPERATION_REDUCTION &&
                      o.d->at(DNN_ATTR_OPERATION_REDUCTION_DESC)->one<int>(DNN_ATTR_REDUCTION_OPERATOR) == DNN_REDUCE_MAX);
    return !max;
}

bool simt_dnn::scales_rows(const std::vector<operation> &all)
{
    bool does = false;

    for (const operation &o : all)
        does = does || (o.d->kind == DNN_OPERATION_POINTWISE && o.out.dim[3] == 1 && o.in.size() == 2 && o.in[1].by_value);
    return does;
}

bool simt_dnn::in_order(const std::vector<operation> &all)
{
    std::map<int64_t, int> made;
    bool ok = true;

    for (const operation &o : all) {
        for (const dnn_tensor &t : o.in)
            ok = ok && (!t.inner || made.count(t.id));
        ok = ok && made[o.out.id]++ == 0;
    }
    return ok;
}

bool simt_dnn::has_documents(const std::vector<operation> &all)
{
    bool any = false;

    for (const operation &o : all)
        any = any || o.extent[0] || o.extent[1] || o.extent[2] || o.out.ragged;
    return any;
}

bool simt_dnn::says_documents(const std::vector<operation> &all)
{
    bool ok = true, padded = false;

    for (const operation &o : all) {
        const desc *how = o.d->at(DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        padded = padded || (how && how->one<int>(DNN_ATTR_POINTWISE_MODE) == DNN_POINTWISE_LOGICAL_AND);
        if (o.d->kind == DNN_OPERATION_MATMUL)
            ok = ok && o.extent[0] && (o.extent[1] != NULL) != (o.extent[2] != NULL);
        ok = ok && (o.out.inner || o.out.ragged);
        for (const dnn_tensor &t : o.in)
            ok = ok && (t.inner || t.ragged || t.dim[2] == 1);
    }
    return ok && padded;
}

std::vector<dnn_tensor> simt_dnn::outside(const std::vector<operation> &all)
{
    std::vector<dnn_tensor> found;

    for (const operation &o : all) {
        std::vector<dnn_tensor> of = o.in;
        of.push_back(o.out);
        for (const desc *d : o.extent)
            if (d)
                of.push_back(dnn_tensor(d));
        for (const dnn_tensor &t : of) {
            if (!t.inner)
                found.push_back(t);
            if (t.ragged)
                found.push_back(dnn_tensor(t.ragged));
        }
    }
    return found;
}

double simt_dnn::drawn(int64_t seed, int64_t offset, int64_t n)
{
    uint64_t x = (uint64_t)seed ^ ((uint64_t)offset << 32) ^ (uint64_t)n * 0x9e3779b97f4a7c15u;

    for (int i = 0; i < 3; i++) {
        x ^= x >> 32;
        x *= 0xd6e8feb86659fd93u;
    }
    return (double)(x >> 11) / 9007199254740992.0;
}

void simt_dnn::run(const call &c)
{
    std::vector<operation> all;
    std::map<int64_t, numbers> made;

    memset(c.workspace, 0xff, WORKSPACE);
    understood(c.graph.get(), all);
    const layout l(c, all);
    for (const operation &o : all)
        run_one(c, l, o, is_backward(all), made);
}
