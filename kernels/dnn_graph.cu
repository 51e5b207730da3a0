#include "kernels/attention_cudnn.cuh"

/* Attention as graphs of small operations, which cuDNN recognises and runs as one kernel: causal, 14 operations forward and 22
 * backward (24 where heads share keys), with dropout 17 and 27, of documents 20 and 28.
 *
 * Its engines take graphs that they then run wrongly, and read where nothing is, where one differs from what NVIDIA's own
 * frontend builds.  So operations, their order, types and what is virtual are the frontend's, to which tests/unit/cudnn_test.c
 * holds them; but for simple ones (dnn_simple), whose graphs have their own order. */

/* Tensors inside of a graph count on from INNER. */
enum { INNER = 100, KEPT = 320, OPS = 40, PROPOSALS = 8 };

/* A graph under construction.  Every descriptor is kept until the plan is made; after a failure nothing more is done. */
struct graph {
    const struct dnn_api *api;
    const struct dnn_shape *s;
    void *kept[KEPT], *op[OPS];
    int n, ops, rc;
    int64_t next;
    int math;                              /* of pointwise operations */
    void *queries, *keys, *at[DNN_PLACES]; /* of documents: how long they are, where they begin; NULL: whole sequences */
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

/* ---- tensors of four dimensions: sequence or document, head, row, column ---- */

struct form {
    int type;
    int64_t id; /* 0: inside of the graph, one more */
    int64_t dim[4], stride[4];
    bool by_value;
    int order;
    void *ragged; /* where each document begins, in elements; NULL: as the first stride says */
};

static void *tensor(struct graph *g, const struct form *f)
{
    void *d = make(g, DNN_TENSOR);
    int64_t align = 16, uid = f->id ? f->id : INNER + g->next++;
    bool inner = f->id == 0;

    set(g, d, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &f->type);
    set(g, d, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, f->dim);
    set(g, d, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, 4, f->stride);
    set(g, d, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &align);
    set(g, d, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &uid);
    set(g, d, DNN_ATTR_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &inner);
    set(g, d, DNN_ATTR_TENSOR_IS_BY_VALUE, DNN_TYPE_BOOLEAN, 1, &f->by_value);
    if (f->order)
        set(g, d, DNN_ATTR_TENSOR_REORDERING_MODE, DNN_TYPE_TENSOR_REORDERING_MODE, 1, &f->order);
    set_desc(g, d, DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, f->ragged);
    finalize(g, d);
    return d;
}

static int64_t heads_of(const struct dnn_shape *s, int at)
{
    return at == DNN_VIEW_K || at == DNN_VIEW_V || at == DNN_VIEW_DK || at == DNN_VIEW_DV ? s->kv_heads : s->heads;
}

/* A view of the call: (b, heads, t, d) as it lies, or with its rows as columns. */
static struct form form_of(struct graph *g, int type, int64_t id, int at, bool turned)
{
    const struct dnn_shape *s = g->s;
    int64_t row = s->stride[at][1], batch = s->documents ? s->t * row : s->stride[at][0];
    struct form f = {type, id, {s->b, heads_of(s, at), turned ? s->d : s->t, turned ? s->t : s->d},
                     {batch, s->d, turned ? 1 : row, turned ? row : 1}, false, 0, g->at[dnn_place_of(at)]};

    return f;
}

static void *view(struct graph *g, int64_t id, int at, bool turned)
{
    const struct form f = form_of(g, DNN_DATA_BFLOAT16, id, at, turned);

    return tensor(g, &f);
}

/* (b, heads, t, columns), dense. */
static void *dense(struct graph *g, int type, int64_t id, int64_t columns, int order)
{
    const struct dnn_shape *s = g->s;
    const struct form f = {type, id, {s->b, s->heads, s->t, columns}, {s->heads * s->t * columns, s->t * columns, columns, 1},
                           false, order, NULL};

    return tensor(g, &f);
}

/* The same turned inside the graph: (b, heads, t keys, t queries) of a (queries, keys). */
static void *turned(struct graph *g)
{
    const struct dnn_shape *s = g->s;
    const struct form f = {DNN_DATA_BFLOAT16, 0, {s->b, s->heads, s->t, s->t}, {s->heads * s->t * s->t, s->t * s->t, 1, s->t},
                           false, 0, NULL};

    return tensor(g, &f);
}

/* A number a query and head; of documents the heads of a token lie together. */
static void *numbers(struct graph *g, int64_t id)
{
    const struct dnn_shape *s = g->s;
    const struct form f = {DNN_DATA_FLOAT, id, {s->b, s->heads, s->t, 1}, {s->heads * s->t, 1, s->heads, 1}, false, 0,
                           g->at[DNN_AT_STATS]};

    return s->documents ? tensor(g, &f) : dense(g, DNN_DATA_FLOAT, id, 1, 0);
}

/* n numbers in a row; by value: one that comes with the call. */
static void *list(struct graph *g, int type, int64_t id, int64_t n, bool by_value)
{
    const struct form f = {type, id, {n, 1, 1, 1}, {1, 1, 1, 1}, by_value, 0, NULL};

    return tensor(g, &f);
}
static void *scalar(struct graph *g, int64_t id) { return list(g, DNN_DATA_FLOAT, id, 1, true); }

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

    set(g, how, DNN_ATTR_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(g, how, DNN_ATTR_POINTWISE_MATH_PREC, DNN_TYPE_DATA_TYPE, 1, &g->math);
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
static void *one(struct graph *g, int mode, void *x, void *y) { return pointwise(g, mode, x, NULL, NULL, y, -1); }

/* The number of each score's row (axis 2) or column (3). */
static void *numbered(struct graph *g, int math, void *s, int64_t axis)
{
    void *y = dense(g, DNN_DATA_INT32, 0, g->s->t, 0);

    g->math = math;
    pointwise(g, DNN_POINTWISE_GEN_INDEX, s, NULL, NULL, y, axis);
    g->math = DNN_DATA_FLOAT;
    return y;
}

static void *truth(struct graph *g, int mode, void *a, void *b)
{
    void *y = dense(g, DNN_DATA_BOOLEAN, 0, g->s->t, 0);

    g->math = dnn_simple(g->s) ? DNN_DATA_FLOAT : DNN_DATA_BOOLEAN;
    both(g, mode, a, b, y);
    g->math = DNN_DATA_FLOAT;
    return y;
}

/* c = a b, of which m, n and k are those of each document where it has lengths. */
static void *product_of(struct graph *g, void *a, void *b, void *c, void *m, void *n, void *k)
{
    void *how = make(g, DNN_MATMUL), *op;

    set(g, how, DNN_ATTR_MATMUL_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &g->math);
    finalize(g, how);
    op = make(g, DNN_OPERATION_MATMUL);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_DESC, how);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_M_OVERRIDE, m);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_N_OVERRIDE, n);
    set_desc(g, op, DNN_ATTR_OPERATION_MATMUL_K_OVERRIDE, k);
    return done(g, op, c);
}
/* (queries, keys) of two that have columns; what (queries, keys) weighs of keys; what (keys, queries) weighs of queries. */
static void *query_key(struct graph *g, void *a, void *b) { return product_of(g, a, b, scores(g), g->queries, g->keys, NULL); }
static void *query_row(struct graph *g, void *a, void *b, void *c) { return product_of(g, a, b, c, g->queries, NULL, g->keys); }
static void *key_row(struct graph *g, void *a, void *b, void *c) { return product_of(g, a, b, c, g->keys, NULL, g->queries); }

static void *reduce(struct graph *g, int mode, void *x, void *y)
{
    void *how = make(g, DNN_REDUCTION), *op;

    set(g, how, DNN_ATTR_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    set(g, how, DNN_ATTR_REDUCTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &g->math);
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

/* 1 for each probability that dropout keeps, else 0, by Philox from a seed and an offset in the device's memory. */
static void *random_mask(struct graph *g)
{
    void *how = make(g, DNN_RNG), *op, *y = scores(g);
    double keep = 1.0 - g->s->drop;
    int bernoulli = DNN_RNG_BERNOULLI;

    set(g, how, DNN_ATTR_RNG_DISTRIBUTION, DNN_TYPE_RNG_DISTRIBUTION, 1, &bernoulli);
    set(g, how, DNN_ATTR_RNG_BERNOULLI_PROBABILITY, DNN_TYPE_DOUBLE, 1, &keep);
    finalize(g, how);
    op = make(g, DNN_OPERATION_RNG);
    set_desc(g, op, DNN_ATTR_OPERATION_RNG_YDESC, y);
    set_desc(g, op, DNN_ATTR_OPERATION_RNG_DESC, how);
    set_desc(g, op, DNN_ATTR_OPERATION_RNG_SEED, list(g, DNN_DATA_INT64, DNN_ID_SEED, 1, false));
    set_desc(g, op, DNN_ATTR_OPERATION_RNG_OFFSET, list(g, DNN_DATA_INT64, DNN_ID_OFFSET, 1, false));
    return done(g, op, y);
}

/* ---- attention ---- */

/* The tensors that several operations of a graph read. */
static void begin(struct graph *g)
{
    g->math = DNN_DATA_FLOAT;
    if (!g->s->documents)
        return;
    g->queries = list(g, DNN_DATA_INT32, DNN_ID_QUERIES, g->s->b, false);
    g->keys = list(g, DNN_DATA_INT32, DNN_ID_KEYS, g->s->b, false);
    for (int i = 0; i < DNN_PLACES; i++)
        g->at[i] = list(g, DNN_DATA_INT64, DNN_ID_AT_Q + i, g->s->b + 1, false);
}

/* What lies beyond a document far below everything. */
static void *padded(struct graph *g, void *s)
{
    void *row, *column, *seen;

    if (!g->s->documents)
        return s;
    row = numbered(g, DNN_DATA_INT32, s, 2);
    column = numbered(g, DNN_DATA_INT32, s, 3);
    row = truth(g, DNN_POINTWISE_CMP_LT, row, g->queries);
    column = truth(g, DNN_POINTWISE_CMP_LT, column, g->keys);
    seen = truth(g, DNN_POINTWISE_LOGICAL_AND, row, column);
    return pointwise(g, DNN_POINTWISE_BINARY_SELECT, s, scalar(g, DNN_ID_PADDED), seen, scores(g), -1);
}

/* What a query may not see far below everything. */
static void *masked(struct graph *g, void *s)
{
    void *row = numbered(g, DNN_DATA_FLOAT, s, 2), *column = numbered(g, DNN_DATA_FLOAT, s, 3);
    void *seen = truth(g, DNN_POINTWISE_CMP_GE, row, column);

    return pointwise(g, DNN_POINTWISE_BINARY_SELECT, s, scalar(g, DNN_ID_MASKED), seen, scores(g), -1);
}

static void forward_graph(struct graph *g)
{
    void *q = view(g, DNN_ID_Q, DNN_VIEW_Q, false), *k = view(g, DNN_ID_K, DNN_VIEW_K, true);
    void *v = view(g, DNN_ID_V, DNN_VIEW_V, false);
    void *s = both(g, DNN_POINTWISE_MUL, query_key(g, q, k), scalar(g, DNN_ID_SCALE), scores(g)), *max, *power, *sum, *p;
    bool drops = g->s->drop > 0;

    s = masked(g, padded(g, s));
    max = reduce(g, DNN_REDUCE_MAX, s, rows(g));
    power = one(g, DNN_POINTWISE_EXP, both(g, DNN_POINTWISE_SUB, s, max, scores(g)), scores(g));
    sum = reduce(g, DNN_REDUCE_ADD, power, rows(g));
    both(g, DNN_POINTWISE_ADD, max, one(g, DNN_POINTWISE_LOG, sum, rows(g)), numbers(g, DNN_ID_STATS));
    p = both(g, DNN_POINTWISE_DIV, power, sum, drops ? scores(g) : dense(g, DNN_DATA_BFLOAT16, 0, g->s->t, 0));
    if (drops) {
        p = both(g, DNN_POINTWISE_MUL, p, random_mask(g), scores(g));
        p = both(g, DNN_POINTWISE_MUL, p, scalar(g, DNN_ID_DROP_SCALE), dense(g, DNN_DATA_BFLOAT16, 0, g->s->t, 0));
    }
    query_row(g, p, v, view(g, DNN_ID_O, DNN_VIEW_O, false));
}

/* Of keys or values by the heads that read them, several the same: inside of the graph, but of documents in memory, in rows as
 * they lie at the call, as many times wider as there are heads to one. */
static void *by_heads(struct graph *g, int64_t id, int at)
{
    const struct dnn_shape *s = g->s;
    int64_t share = s->heads / s->kv_heads;
    struct form f = form_of(g, DNN_DATA_BFLOAT16, id, at, false);

    if (!s->documents)
        return dense(g, DNN_DATA_BFLOAT16, 0, s->d, 0);
    f.dim[1] = s->heads;
    f.stride[0] *= share;
    f.stride[2] *= share;
    return tensor(g, &f);
}

static void gradient(struct graph *g, void *a, void *b, int at)
{
    int64_t id = at == DNN_VIEW_DK ? DNN_ID_DK : DNN_ID_DV;

    if (g->s->heads == g->s->kv_heads)
        key_row(g, a, b, view(g, id, at, false));
    else
        reduce(g, DNN_REDUCE_ADD, key_row(g, a, b, by_heads(g, at == DNN_VIEW_DK ? DNN_ID_DK_HEADS : DNN_ID_DV_HEADS, at)),
               view(g, id, at, false));
}

/* The sum of dout o over each row, times what dropout keeps (1 without): with no product by a number, 9.19's engine takes a graph
 * and reads where nothing is. */
static void *delta_of(struct graph *g, void *dout)
{
    const struct dnn_shape *s = g->s;
    const struct form f = {DNN_DATA_FLOAT, 0, {s->b, s->heads, s->t, s->d},
                           {s->heads * s->t * s->d, s->t * s->d, dnn_simple(s) ? s->d : s->heads * s->d, 1}, false, 0, NULL};
    void *x = both(g, DNN_POINTWISE_MUL, dout, view(g, DNN_ID_O, DNN_VIEW_O, false), tensor(g, &f));

    return both(g, DNN_POINTWISE_MUL, reduce(g, DNN_REDUCE_ADD, x, rows(g)), scalar(g, DNN_ID_KEEP), numbers(g, DNN_ID_DELTA));
}

/* The probabilities before dropout. */
static void *probabilities(struct graph *g, void *q, void *k, void *scale)
{
    void *s = both(g, DNN_POINTWISE_MUL, query_key(g, q, k), scale, scores(g)), *stats = numbers(g, DNN_ID_STATS);

    if (dnn_simple(g->s))
        s = both(g, DNN_POINTWISE_SUB, masked(g, s), stats, scores(g));
    else
        s = masked(g, padded(g, both(g, DNN_POINTWISE_SUB, s, stats, scores(g))));
    return one(g, DNN_POINTWISE_EXP, s, scores(g));
}

/* dq by way of a sum in fp32. */
static void query_gradient(struct graph *g, void *ds, void *k)
{
    const struct dnn_shape *s = g->s;
    const struct form as_k = form_of(g, dnn_simple(s) ? DNN_DATA_BFLOAT16 : DNN_DATA_FLOAT, 0, DNN_VIEW_K, false);
    const struct form as_dq = form_of(g, DNN_DATA_FLOAT, DNN_ID_DQ_SUM, DNN_VIEW_DQ, false);
    void *sum, *rows_of_k = reshape(g, k, tensor(g, &as_k));

    sum = s->documents ? tensor(g, &as_dq)
                       : dense(g, DNN_DATA_FLOAT, DNN_ID_DQ_SUM, s->d, dnn_simple(s) ? DNN_REORDERING_F16x16 : 0);
    query_row(g, ds, rows_of_k, sum);
    one(g, DNN_POINTWISE_IDENTITY, sum, view(g, DNN_ID_DQ, DNN_VIEW_DQ, false));
}

static void backward_graph(struct graph *g)
{
    bool drops = g->s->drop > 0;
    void *mask = drops ? random_mask(g) : NULL, *drop_scale = drops ? scalar(g, DNN_ID_DROP_SCALE) : NULL;
    void *q = view(g, DNN_ID_Q, DNN_VIEW_Q, false), *k = view(g, DNN_ID_K, DNN_VIEW_K, true);
    void *v = view(g, DNN_ID_V, DNN_VIEW_V, true);
    void *dout = view(g, DNN_ID_DOUT, DNN_VIEW_DOUT, false), *scale = scalar(g, DNN_ID_SCALE), *delta = delta_of(g, dout);
    void *p = probabilities(g, q, k, scale), *left = p, *ds;

    if (drops)
        left = both(g, DNN_POINTWISE_MUL, both(g, DNN_POINTWISE_MUL, p, mask, scores(g)), drop_scale, scores(g));
    gradient(g, reshape(g, left, turned(g)), dout, DNN_VIEW_DV);
    ds = query_key(g, dout, v);
    if (drops)
        ds = both(g, DNN_POINTWISE_MUL, ds, mask, scores(g));
    ds = both(g, DNN_POINTWISE_MUL, both(g, DNN_POINTWISE_SUB, ds, delta, scores(g)), p, scores(g));
    if (drops)
        ds = both(g, DNN_POINTWISE_MUL, ds, drop_scale, scores(g));
    ds = both(g, DNN_POINTWISE_MUL, ds, scale, scores(g));
    gradient(g, reshape(g, ds, turned(g)), q, DNN_VIEW_DK);
    query_gradient(g, ds, k);
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
    begin(&g);
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
