// A graph of ours as text, as tests/record/cudnn_graphs.cpp prints those of NVIDIA's frontend.
#include "tests/simt_dnn.h"

#include <string>

using namespace simt_dnn;

namespace {

std::string text;
std::map<const desc *, int> counted;
int (*finalize_of)(void *);

__attribute__((format(printf, 1, 2))) void add(const char *fmt, ...)
{
    char part[100];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(part, sizeof part, fmt, ap);
    va_end(ap);
    text += part;
}

bool says_nothing(const desc *d, int what)
{
    bool flag = what == DNN_ATTR_TENSOR_IS_VIRTUAL || what == DNN_ATTR_TENSOR_IS_BY_VALUE;

    return what == DNN_ATTR_TENSOR_UNIQUE_ID || (flag && !d->yes(what));
}

template <class T> void add_all(const std::vector<T> &all, const char *fmt)
{
    for (size_t i = 0; i < all.size(); i++) {
        add("%s", i ? "," : "");
        add(fmt, all[i]);
    }
}

void add_numbers(const desc *d, int what)
{
    bool flag = what == DNN_ATTR_TENSOR_IS_VIRTUAL || what == DNN_ATTR_TENSOR_IS_BY_VALUE;
    bool wide = what == DNN_ATTR_TENSOR_DIMENSIONS || what == DNN_ATTR_TENSOR_STRIDES || what == DNN_ATTR_TENSOR_BYTE_ALIGNMENT ||
                what == DNN_ATTR_POINTWISE_AXIS;

    if (flag)
        add("1");
    else if (what == DNN_ATTR_RNG_BERNOULLI_PROBABILITY)
        add_all(d->all<double>(what), "%g");
    else if (wide)
        for (size_t i = 0; i < d->all<int64_t>(what).size(); i++)
            add("%s%lld", i ? "," : "", (long long)d->all<int64_t>(what)[i]);
    else
        add_all(d->all<int>(what), "%d");
}

void add_desc(const desc *d)
{
    bool tensor = d->kind == DNN_TENSOR, known = counted.count(d) != 0;
    int count = (int)counted.size();
    const char *between = "";
    std::map<int, bool> what;

    if (tensor && !known)
        counted[d] = count;
    if (tensor)
        add("t%d", counted[d]);
    if (known)
        return;
    for (const auto &a : d->bytes)
        what[a.first] = false;
    for (const auto &a : d->of)
        what[a.first] = true;
    add(tensor ? "{" : "(");
    for (const auto &a : what)
        if (!says_nothing(d, a.first)) {
            add("%s%d=", between, a.first);
            between = " ";
            if (a.second)
                add_desc(d->at(a.first));
            else
                add_numbers(d, a.first);
        }
    add(tensor ? "}" : ")");
}

int finalize_and_print(void *of)
{
    const desc &d = **(shared *)of;

    if (d.kind == DNN_OPERATIONGRAPH)
        for (const shared &op : d.of.at(DNN_ATTR_OPERATIONGRAPH_OPS)) {
            add("%d", op->kind);
            add_desc(op.get());
            add("\n");
        }
    return finalize_of(of);
}

} // namespace

extern "C" const char *simt_dnn_text(const struct simt_dnn_shape *of, struct err *e)
{
    struct dnn_api api = *cuda_dnn();
    struct dnn_plan p = {};
    void *handle;

    finalize_of = api.finalize;
    api.finalize = finalize_and_print;
    text.clear();
    counted.clear();
    api.create(&handle);
    p.shape = simt_dnn_shape_of(of);
    if (dnn_plan_make(&api, handle, NULL, &p, e) < 0)
        return NULL;
    api.desc_destroy(p.plan);
    api.destroy(handle);
    return text.c_str();
}
