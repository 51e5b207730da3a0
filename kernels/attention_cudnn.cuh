/* kernels/attention_cudnn.cuh -- attention by cuDNN, for attention.cu and the tests of its graphs; arguments are checked. */
#ifndef KERNELS_ATTENTION_CUDNN_CUH
#define KERNELS_ATTENTION_CUDNN_CUH

#include "kernels/dnn_api.h"
#include "kernels/lanes.cuh"

/* What a plan is made for. */
struct dnn_shape {
    int64_t b, t, heads, kv_heads, d, backward;
    int64_t documents;     /* 1: b documents of up to t tokens, which lie anywhere among the rows; the batches' strides are 0 */
    double drop;           /* how likely a probability is dropped; 0: none is */
    int64_t stride[8][2];  /* (DNN_VIEWS) batch and row of q, k, v, o, dout, dq, dk, dv */
};
struct dnn_plan {
    struct dnn_shape shape;
    void *plan;    /* NULL: the library has no engine for it */
    int64_t workspace;
    int engines;   /* that its heuristics gave, all of which it can run */
};

/* Whether the graph is the simple one, of whole sequences without dropout and heads that are not wide (kernels/dnn_graph.cu). */
static inline bool dnn_simple(const struct dnn_shape *s)
{
    return !s->documents && !(s->drop > 0) && s->d <= 128;
}
/* Whether graphs of this kind have run on a GPU and were right there; the others are for QUERN_ATTENTION=cudnn alone. */
static inline bool dnn_proven(const struct dnn_shape *s)
{
    return s->d <= 128 || !s->documents || !(s->drop > 0);
}

/* What the tensors outside of a graph are called. */
enum { DNN_ID_Q = 1, DNN_ID_K, DNN_ID_V, DNN_ID_O, DNN_ID_STATS, DNN_ID_SCALE, DNN_ID_MASKED, DNN_ID_DOUT, DNN_ID_DQ, DNN_ID_DK,
       DNN_ID_DV, DNN_ID_DQ_SUM, DNN_ID_DELTA, DNN_ID_KEEP, DNN_ID_SEED, DNN_ID_OFFSET, DNN_ID_DROP_SCALE, DNN_ID_PADDED,
       DNN_ID_QUERIES, DNN_ID_KEYS, DNN_ID_AT_Q, DNN_ID_AT_K, DNN_ID_AT_V, DNN_ID_AT_O, DNN_ID_AT_STATS, DNN_ID_DK_HEADS,
       DNN_ID_DV_HEADS, DNN_IDS };
/* Where documents begin, in elements of rows of each kind: as DNN_ID_AT_Q and on. */
enum { DNN_AT_Q, DNN_AT_K, DNN_AT_V, DNN_AT_O, DNN_AT_STATS, DNN_PLACES };
/* The views of a call, as strides of a shape are counted. */
enum { DNN_VIEW_Q, DNN_VIEW_K, DNN_VIEW_V, DNN_VIEW_O, DNN_VIEW_DOUT, DNN_VIEW_DQ, DNN_VIEW_DK, DNN_VIEW_DV, DNN_VIEWS };
/* The place of a view: a gradient lies as what it is of does. */
static inline int dnn_place_of(int view)
{
    static const int of[DNN_VIEWS] = {DNN_AT_Q, DNN_AT_K, DNN_AT_V, DNN_AT_O, DNN_AT_O, DNN_AT_Q, DNN_AT_K, DNN_AT_V};

    return of[view];
}

/* Builds the graph of the shape and asks for an engine; with handle the plan is made too, with prop (a device's properties)
 * alone the graph is only put to the library's checks. */
int dnn_plan_make(const struct dnn_api *api, void *handle, void *prop, struct dnn_plan *p, struct err *e);

/* *done: it was done, or rather queued.  What the library has no plan for, or fails at, is said (cuda_note) and left undone; with
 * `must` it is an error, as no library is; but what no plan is asked for (fits, in kernels/attention_cudnn.cu) is not, nor is
 * what is not left to a version of the library (dnn_distrusted), which is said.
 * Backward's sums have no order of their own there.
 * Masks of dropout are cuDNN's own.  Forward draws one only where there is a plan for backward too; backward then is done, or is
 * an error. */
int attention_cudnn_fwd(struct device *dev, enum dtype dt, const struct attention *p, bool must, bool *done, struct err *e);
int attention_cudnn_bwd(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                        struct attention_view dq, struct attention_view dk, struct attention_view dv, bool must, bool *done,
                        struct err *e);

#endif
