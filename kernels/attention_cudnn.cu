#include "kernels/attention_cudnn.cuh"

#include <stdlib.h>

#include "kernels/attention_mma.cuh"

/* Attention as graphs of small operations, which cuDNN recognises and runs as one kernel: 14 operations forward, 22 backward (24
 * where heads share keys), causal, without dropout, as many keys as queries.  Plans are kept by shape. */

/* What a tensor outside of the graph is called; those inside count on from INNER. */
enum { ID_Q = 1, ID_K, ID_V, ID_O, ID_STATS, ID_SCALE, ID_MASKED, ID_DOUT, ID_DQ, ID_DK, ID_DV, ID_DQ_SUM, ID_DELTA, ID_ONE, IDS,
        INNER = 100 };
enum { PLANS = 64, KEPT = 256, OPS = 24, PROPOSALS = 8 };
enum { AT_Q, AT_K, AT_V, AT_O, AT_DOUT, AT_DQ, AT_DK, AT_DV };

/* A graph under construction.  Every descriptor is kept until the plan is made; after a failure nothing more is done. */
struct graph {
    const struct dnn_api *api;
    const struct dnn_shape *s;
    void *kept[KEPT], *op[OPS];
    int n, ops, rc;
    int64_t next;
};

static void *make(struct graph *g, int kind)
{
    void *d = NULL;

    if (g->rc == 0)
        g->rc = g->n == KEPT ? -1 : g->api->desc_create(kind, &d);
    if (g->rc == 0)
        g->kept[g->n++] = d;
    return d;
}

static void set(struct graph *g, void *d, int what, int type, int64_t n, const void *values)
{
    if (g->rc == 0)
        g->rc = g->api->set(d, what, type, n, values);
}

static void set_desc(struct graph *g, void *d, int what, void *other)
{
    if (other)
        set(g, d, what, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

static void finalize(struct graph *g, void *d)
{
    if (g->rc == 0)
        g->rc = g->api->finalize(d);
}

/* ---- tensors of four dimensions: sequence, head, row, column ---- */

static void *tensor(struct graph *g, int type, int64_t id, const int64_t dim[4], const int64_t stride[4], bool by_value,
                    int order)
{
    void *d = make(g, DNN_TENSOR);
    int64_t align = 16, uid = id ? id : INNER + g->next++;
    bool inner = id == 0;

    set(g, d, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    set(g, d, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, dim);
    set(g, d, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, 4, stride);
    set(g, d, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &align);
    set(g, d, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &uid);
    set(g, d, DNN_ATTR_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &inner);
    set(g, d, DNN_ATTR_TENSOR_IS_BY_VALUE, DNN_TYPE_BOOLEAN, 1, &by_value);
    if (order)
        set(g, d, DNN_ATTR_TENSOR_REORDERING_MODE, DNN_TYPE_TENSOR_REORDERING_MODE, 1, &order);
    finalize(g, d);
    return d;
}

/* A view of the call: (b, heads, t, d) as it lies, or with its rows as columns. */
static void *view(struct graph *g, int64_t id, int at, bool turned)
{
    const struct dnn_shape *s = g->s;
    int64_t heads = at == AT_K || at == AT_V || at == AT_DK || at == AT_DV ? s->kv_heads : s->heads, row = s->stride[at][1];
    int64_t dim[4] = {s->b, heads, turned ? s->d : s->t, turned ? s->t : s->d};
    int64_t stride[4] = {s->stride[at][0], s->d, turned ? 1 : row, turned ? row : 1};

    return tensor(g, DNN_DATA_BFLOAT16, id, dim, stride, false, 0);
}

/* (b, heads, t, columns), dense. */
static void *dense(struct graph *g, int type, int64_t id, int64_t columns, int order)
{
    const struct dnn_shape *s = g->s;
    int64_t dim[4] = {s->b, s->heads, s->t, columns};
    int64_t stride[4] = {s->heads * s->t * columns, s->t * columns, columns, 1};

    return tensor(g, type, id, dim, stride, false, order);
}

/* The same turned inside the graph: (b, heads, t keys, t queries) of a (queries, keys). */
static void *turned(struct graph *g)
{
    const struct dnn_shape *s = g->s;
    int64_t dim[4] = {s->b, s->heads, s->t, s->t}, stride[4] = {s->heads * s->t * s->t, s->t * s->t, 1, s->t};

    return tensor(g, DNN_DATA_BFLOAT16, 0, dim, stride, false, 0);
}

static void *scalar(struct graph *g, int64_t id)
{
    const int64_t one[4] = {1, 1, 1, 1};

    return tensor(g, DNN_DATA_FLOAT, id, one, one, true, 0);
}

static void *scores(struct graph *g) { return dense(g, DNN_DATA_FLOAT, 0, g->s->t, 0); }
static void *rows(struct graph *g) { return dense(g, DNN_DATA_FLOAT, 0, 1, 0); }

/* ---- operations; each returns its result ---- */

static void *done(struct graph *g, void *op, void *y)
{
    finalize(g, op);
    if (g->rc == 0)
        g->rc = g->ops == OPS ? -1 : 0;
    if (g->rc == 0)
        g->op[g->ops++] = op;
    return y;
}

/* y = mode(x, b, t); axis for an index. */
static void *pointwise(struct graph *g, int mode, void *x, void *b, void *t, void *y, int64_t axis)
{
    void *how = make(g, DNN_POINTWISE), *op;
    int type = DNN_DATA_FLOAT;

    set(g, how, DNN_ATTR_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(g, how, DNN_ATTR_POINTWISE_MATH_PREC, DNN_TYPE_DATA_TYPE, 1, &type);
    if (axis >= 0)
        set(g, how, DNN_ATTR_POINTWISE_AXIS, DNN_TYPE_INT64, 1, &axis);
    finalize(g, how);
    op = make(g, DNN_OPERATION_POINTWISE);
    set_desc(g, op, DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_desc(g, op, DNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_desc(g, op, DNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_desc(g, op, DNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    set_desc(g, op, DNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return done(g, op, y);
}
static void *both(struct graph *g, int mode, void *x, void *b, void *y) { return pointwise(g, mode, x, b, NULL, y, -1); }

static void *product(struct graph *g, void *a, void *b, void *c)
{
    void *how = make(g, DNN_MATMUL), *op;
    int type = DNN_DATA_FLOAT;

    set(g, how, DNN_ATTR_MATMUL_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    finalize(g, how);
    op = make(g, DNN_OPERATION_MATMUL);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_DESC, how);
    return done(g, op, c);
}

static void *reduce(struct graph *g, int mode, void *x, void *y)
{
    void *how = make(g, DNN_REDUCTION), *op;
    int type = DNN_DATA_FLOAT;

    set(g, how, DNN_ATTR_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    set(g, how, DNN_ATTR_REDUCTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    finalize(g, how);
    op = make(g, DNN_OPERATION_REDUCTION);
    set_desc(g, op, DNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_desc(g, op, DNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    set_desc(g, op, DNN_ATTR_OPERATION_REDUCTION_DESC, how);
    return done(g, op, y);
}

static void *reshape(struct graph *g, void *x, void *y)
{
    void *op = make(g, DNN_OPERATION_RESHAPE);

    set_desc(g, op, DNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_desc(g, op, DNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    return done(g, op, y);
}

/* scale q k^T, and what a query may not see far below everything. */
static void *masked_scores(struct graph *g, void *q, void *k, void *scale)
{
    void *s = both(g, DNN_POINTWISE_MUL, product(g, q, k, scores(g)), scale, scores(g));
    void *row = dense(g, DNN_DATA_INT32, 0, g->s->t, 0), *column = dense(g, DNN_DATA_INT32, 0, g->s->t, 0);
    void *seen = dense(g, DNN_DATA_BOOLEAN, 0, g->s->t, 0);

    pointwise(g, DNN_POINTWISE_GEN_INDEX, s, NULL, NULL, row, 2);
    pointwise(g, DNN_POINTWISE_GEN_INDEX, s, NULL, NULL, column, 3);
    both(g, DNN_POINTWISE_CMP_GE, row, column, seen);
    return pointwise(g, DNN_POINTWISE_BINARY_SELECT, s, scalar(g, ID_MASKED), seen, scores(g), -1);
}

static void forward_graph(struct graph *g)
{
    void *q = view(g, ID_Q, AT_Q, false), *k = view(g, ID_K, AT_K, true), *v = view(g, ID_V, AT_V, false);
    void *s = masked_scores(g, q, k, scalar(g, ID_SCALE)), *max = reduce(g, DNN_REDUCE_MAX, s, rows(g));
    void *power = pointwise(g, DNN_POINTWISE_EXP, both(g, DNN_POINTWISE_SUB, s, max, scores(g)), NULL, NULL, scores(g), -1);
    void *sum = reduce(g, DNN_REDUCE_ADD, power, rows(g)), *p = dense(g, DNN_DATA_BFLOAT16, 0, g->s->t, 0);

    both(g, DNN_POINTWISE_ADD, max, pointwise(g, DNN_POINTWISE_LOG, sum, NULL, NULL, rows(g), -1),
         dense(g, DNN_DATA_FLOAT, ID_STATS, 1, 0));
    both(g, DNN_POINTWISE_DIV, power, sum, p);
    product(g, p, v, view(g, ID_O, AT_O, false));
}

/* Of keys or values: by the heads that read them, then their sum where several read the same. */
static void gradient(struct graph *g, void *a, void *b, int64_t id, int at)
{
    const struct dnn_shape *s = g->s;

    if (s->heads == s->kv_heads)
        product(g, a, b, view(g, id, at, false));
    else
        reduce(g, DNN_REDUCE_ADD, product(g, a, b, dense(g, DNN_DATA_BFLOAT16, 0, s->d, 0)), view(g, id, at, false));
}

static void backward_graph(struct graph *g)
{
    void *q = view(g, ID_Q, AT_Q, false), *k = view(g, ID_K, AT_K, true), *v = view(g, ID_V, AT_V, true);
    void *dout = view(g, ID_DOUT, AT_DOUT, false), *scale = scalar(g, ID_SCALE);
    void *delta = dense(g, DNN_DATA_FLOAT, ID_DELTA, 1, 0), *stats = dense(g, DNN_DATA_FLOAT, ID_STATS, 1, 0);
    void *o = view(g, ID_O, AT_O, false), *s, *p, *ds, *sum;

    /* without the product, which scales by what dropout keeps, 9.19's engine takes a graph and reads where nothing is */
    sum = reduce(g, DNN_REDUCE_ADD, both(g, DNN_POINTWISE_MUL, dout, o, dense(g, DNN_DATA_FLOAT, 0, g->s->d, 0)), rows(g));
    both(g, DNN_POINTWISE_MUL, sum, scalar(g, ID_ONE), delta);
    s = masked_scores(g, q, k, scale);
    p = pointwise(g, DNN_POINTWISE_EXP, both(g, DNN_POINTWISE_SUB, s, stats, scores(g)), NULL, NULL, scores(g), -1);
    gradient(g, reshape(g, p, turned(g)), dout, ID_DV, AT_DV);
    ds = both(g, DNN_POINTWISE_SUB, product(g, dout, v, scores(g)), delta, scores(g));
    ds = both(g, DNN_POINTWISE_MUL, both(g, DNN_POINTWISE_MUL, ds, p, scores(g)), scale, scores(g));
    gradient(g, reshape(g, ds, turned(g)), q, ID_DK, AT_DK);
    sum = dense(g, DNN_DATA_FLOAT, ID_DQ_SUM, g->s->d, DNN_REORDERING_F16x16);
    product(g, ds, reshape(g, k, view(g, 0, AT_K, false)), sum);
    both(g, DNN_POINTWISE_IDENTITY, sum, NULL, view(g, ID_DQ, AT_DQ, false));
}

/* ---- plans ---- */

/* The first engine that can be made into a plan; without a handle only how many there are. */
static void choose(struct graph *g, void *handle, void *prop, struct dnn_plan *p)
{
    void *whole = make(g, DNN_OPERATIONGRAPH), *heuristic, *config[PROPOSALS];
    int mode = DNN_HEUR_A;
    int64_t count = 0;

    set(g, whole, DNN_ATTR_OPERATIONGRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR, g->ops, g->op);
    if (handle)
        set(g, whole, DNN_ATTR_OPERATIONGRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    finalize(g, whole);
    heuristic = make(g, DNN_ENGINEHEUR);
    set_desc(g, heuristic, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    set(g, heuristic, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1, &mode);
    if (!handle)
        set_desc(g, heuristic, DNN_ATTR_ENGINEHEUR_DEVICEPROP, prop);
    finalize(g, heuristic);
    for (int i = 0; i < PROPOSALS; i++)
        config[i] = make(g, DNN_ENGINECFG);
    if (g->rc == 0)
        g->rc = g->api->get(heuristic, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_TYPE_BACKEND_DESCRIPTOR, PROPOSALS, &count, config);
    p->engines = g->rc == 0 ? (int)count : 0;
    for (int i = 0; i < p->engines && handle && !p->plan; i++) {
        void *plan = NULL;
        int64_t n;
        if (g->api->desc_create(DNN_EXECUTION_PLAN, &plan))
            break;
        if (g->api->set(plan, DNN_ATTR_EXECUTION_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &handle) == 0 &&
            g->api->set(plan, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &config[i]) == 0 &&
            g->api->finalize(plan) == 0 &&
            g->api->get(plan, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, &n, &p->workspace) == 0)
            p->plan = plan;
        else
            g->api->desc_destroy(plan);
    }
}

int dnn_plan_make(const struct dnn_api *api, void *handle, void *prop, struct dnn_plan *p, struct err *e)
{
    struct graph g = {};
    char why[256] = "";

    g.api = api;
    g.s = &p->shape;
    p->plan = NULL;
    p->workspace = p->engines = 0;
    if (p->shape.backward)
        backward_graph(&g);
    else
        forward_graph(&g);
    choose(&g, handle, prop, p);
    if (g.rc)
        api->last_error(why, sizeof why);
    while (g.n)
        api->desc_destroy(g.kept[--g.n]);
    return g.rc ? err_set(e, ERR_UNSUPPORTED, "cuDNN: status %d: %s", g.rc, why) : 0;
}

/* ---- running ---- */

struct dnn {
    const struct dnn_api *api;
    void *handle;
    int plans;
    struct dnn_plan plan[PLANS];
};

static void dnn_free(void *state)
{
    struct dnn *d = (struct dnn *)state;

    for (int i = 0; i < d->plans; i++)
        if (d->plan[i].plan)
            d->api->desc_destroy(d->plan[i].plan);
    if (d->handle)
        d->api->destroy(d->handle);
    free(d);
}

static struct dnn *dnn_of(struct device *dev)
{
    struct cuda_state *s = cuda_kept(dev, CUDA_STATE_ATTENTION);
    struct dnn *d = (struct dnn *)s->p;

    if (s->tried)
        return d;
    s->tried = true;
    if (!cuda_dnn())
        return NULL;
    d = (struct dnn *)calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->api = cuda_dnn();
    if (d->api->create(&d->handle)) {
        dnn_free(d);
        return NULL;
    }
    s->p = d;
    s->free = dnn_free;
    return d;
}

/* What the library does not do: an error where it must, else it is said, and kernels of our own do it. */
static int declined(const struct dnn_shape *s, bool must, const char *why, struct err *e)
{
    char what[150];

    snprintf(what, sizeof what, "attention%s of %lld x %lld, %lld heads of %lld, %lld of keys", s->backward ? " backward" : "",
             (long long)s->b, (long long)s->t, (long long)s->heads, (long long)s->d, (long long)s->kv_heads);
    if (must)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s", what, why);
    cuda_note("%s: %s; by kernels of our own", what, why);
    return 0;
}

/* The plan for a shape; *out NULL: there is none. */
static int plan_of(struct device *dev, const struct dnn_shape *s, bool must, struct dnn_plan **out, struct err *e)
{
    struct dnn *d = dnn_of(dev);
    struct dnn_plan *p;
    struct err none = {};
    const char *why;

    *out = NULL;
    if (!d)
        return must ? declined(s, must, "no cuDNN", e) : 0;
    for (int i = 0; i < d->plans; i++)
        if (memcmp(&d->plan[i].shape, s, sizeof *s) == 0) {
            *out = d->plan[i].plan ? &d->plan[i] : NULL;
            must = must && !dnn_distrusted(d->api->version(), s->t, s->backward);
            return *out || !must ? 0 : declined(s, must, "cuDNN has failed at it before", e);
        }
    if (d->plans == PLANS)
        return 0;
    p = &d->plan[d->plans++];
    p->shape = *s;
    why = dnn_distrusted(d->api->version(), s->t, s->backward);
    if (why)
        return declined(s, false, why, e);
    if (dnn_plan_make(d->api, d->handle, NULL, p, &none) == 0 && p->plan) {
        *out = p;
        return 0;
    }
    return declined(s, must, none.msg[0] ? none.msg : p->engines ? "no engine of cuDNN's can be made ready" :
                    "cuDNN has no engine", e);
}

static bool fits(enum dtype dt, const struct attention *p)
{
    return dt == DTYPE_BF16 && attention_common(p) && p->lse && (uintptr_t)p->lse % 16 == 0 && p->d % 8 == 0 && p->d <= 128 &&
           p->t >= 64 &&
           attention_mma_view_fits(&p->q) && attention_mma_view_fits(&p->k) && attention_mma_view_fits(&p->v) &&
           attention_mma_view_fits(&p->o);
}

static struct dnn_shape shape_of(const struct attention *p, const struct attention_view *more)
{
    const struct attention_view *v[8] = {&p->q, &p->k, &p->v, &p->o, more, more ? more + 1 : NULL, more ? more + 2 : NULL,
                                         more ? more + 3 : NULL};
    struct dnn_shape s = {};

    s.b = p->b, s.t = p->t, s.heads = p->heads, s.kv_heads = p->kv_heads, s.d = p->d, s.backward = more != NULL;
    for (int i = 0; i < 8; i++)
        if (v[i]) {
            s.stride[i][0] = v[i]->batch;
            s.stride[i][1] = v[i]->row;
        }
    return s;
}

/* *did: it was queued.  A plan that cannot be is not tried again. */
static int execute(struct device *dev, struct dnn_plan *p, void *const *at, void *workspace, bool must, bool *did, struct err *e)
{
    const struct dnn *d = dnn_of(dev);
    const struct dnn_api *api = d->api;
    int64_t id[IDS];
    void *place[IDS], *pack = NULL;
    int n = 0, rc;
    char why[300];

    for (int i = 1; i < IDS; i++)
        if (at[i]) {
            id[n] = i;
            place[n++] = at[i];
        }
    rc = api->set_stream(d->handle, dev->stream);
    rc = rc ? rc : api->desc_create(DNN_VARIANT_PACK, &pack);
    rc = rc ? rc : api->set(pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64, n, id);
    rc = rc ? rc : api->set(pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR, n, place);
    rc = rc ? rc : api->set(pack, DNN_ATTR_VARIANT_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &workspace);
    rc = rc ? rc : api->finalize(pack);
    rc = rc ? rc : api->execute(d->handle, p->plan, pack);
    if (pack)
        api->desc_destroy(pack);
    *did = rc == 0;
    if (*did) {
        cuda_took(dev, "%s by cuDNN %zu, the first of %d engines", p->shape.backward ? "backward" : "forward", api->version(),
                  p->engines);
        return 0;
    }
    snprintf(why, sizeof why, "cuDNN's status %d: ", rc);
    api->last_error(why + strlen(why), sizeof why - strlen(why));
    api->desc_destroy(p->plan);
    p->plan = NULL;
    return declined(&p->shape, must, why, e);
}

static size_t round256(int64_t n) { return ((size_t)n + 255) / 256 * 256; }

int attention_cudnn_fwd(struct device *dev, enum dtype dt, const struct attention *p, bool must, bool *did, struct err *e)
{
    float scale = p->scale, masked = -1e30f;
    void *at[IDS] = {}, *workspace;
    struct dnn_shape s = shape_of(p, NULL);
    struct dnn_plan *plan = NULL;

    *did = false;
    if (fits(dt, p))
        TRY(plan_of(dev, &s, must, &plan, e));
    if (!plan)
        return 0;
    TRY(cuda_scratch(dev, &workspace, round256(plan->workspace + 1), e));
    at[ID_Q] = p->q.p, at[ID_K] = p->k.p, at[ID_V] = p->v.p, at[ID_O] = p->o.p;
    at[ID_STATS] = p->lse, at[ID_SCALE] = &scale, at[ID_MASKED] = &masked;
    return execute(dev, plan, at, workspace, must, did, e);
}

int attention_cudnn_bwd(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                        struct attention_view dq, struct attention_view dk, struct attention_view dv, bool must, bool *did,
                        struct err *e)
{
    const struct attention_view more[4] = {dout, dq, dk, dv};
    float scale = p->scale, masked = -1e30f, one = 1;
    struct dnn_shape s = shape_of(p, more);
    struct dnn_plan *plan = NULL;
    size_t sum = round256(p->b * p->heads * p->t * p->d * 4), delta = round256(p->b * p->heads * p->t * 4);
    void *at[IDS] = {}, *mem;
    bool all = fits(dt, p);

    *did = false;
    for (int i = 0; i < 4; i++)
        all = all && attention_mma_view_fits(&more[i]);
    if (all)
        TRY(plan_of(dev, &s, must, &plan, e));
    if (!plan)
        return 0;
    TRY(cuda_scratch(dev, &mem, sum + delta + round256(plan->workspace + 1), e));
    at[ID_Q] = p->q.p, at[ID_K] = p->k.p, at[ID_V] = p->v.p, at[ID_O] = p->o.p, at[ID_STATS] = p->lse;
    at[ID_DOUT] = dout.p, at[ID_DQ] = dq.p, at[ID_DK] = dk.p, at[ID_DV] = dv.p;
    at[ID_SCALE] = &scale, at[ID_MASKED] = &masked, at[ID_ONE] = &one;
    at[ID_DQ_SUM] = mem, at[ID_DELTA] = (char *)mem + sum;
    if (dnn_wants_zeros(dnn_of(dev)->api->version()))
        TRY(cuda_fill(dev, mem, 0, sum, e));
    return execute(dev, plan, at, (char *)mem + sum + delta, must, did, e);
}
