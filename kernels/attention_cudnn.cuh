/* kernels/attention_cudnn.cuh -- attention by cuDNN, for attention.cu and the test of its graphs; arguments are checked. */
#ifndef KERNELS_ATTENTION_CUDNN_CUH
#define KERNELS_ATTENTION_CUDNN_CUH

#include "kernels/dnn_api.h"
#include "kernels/lanes.cuh"

/* What a plan is made for. */
struct dnn_shape {
    int64_t b, t, heads, kv_heads, d, backward;
    int64_t stride[8][2]; /* batch and row of q, k, v, o, dout, dq, dk, dv */
};
struct dnn_plan {
    struct dnn_shape shape;
    void *plan;    /* NULL: the library has no engine for it */
    int64_t workspace;
    int engines;   /* that its heuristics gave, all of which it can run */
};

/* Builds the graph of the shape and asks for an engine; with handle the plan is made too, with prop (a device's properties)
 * alone the graph is only put to the library's checks. */
int dnn_plan_make(const struct dnn_api *api, void *handle, void *prop, struct dnn_plan *p, struct err *e);

/* *done: it was done, or rather queued.  What the library has no plan for, or fails at, is said (cuda_note) and left undone; with
 * `must` it is an error, as no library is; but what no plan is asked for (fits, in kernels/attention_cudnn.cu) is not, nor is
 * what is not left to a version of the library (dnn_distrusted), which is said.
 * Backward's sums have no order of their own there. */
int attention_cudnn_fwd(struct device *dev, enum dtype dt, const struct attention *p, bool must, bool *done, struct err *e);
int attention_cudnn_bwd(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                        struct attention_view dq, struct attention_view dk, struct attention_view dv, bool must, bool *done,
                        struct err *e);

#endif
