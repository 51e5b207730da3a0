#include "kernels/attention_cudnn.cuh"

#include <math.h>
#include <stdlib.h>

#include "kernels/attention_mma.cuh"
#include "kernels/attention_plain.cuh"

enum { PLANS = 128 };

/* ---- plans, kept by shape ---- */

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
    char what[200];

    snprintf(what, sizeof what, "attention%s of %lld x %lld%s%s, %lld heads of %lld, %lld of keys",
             s->backward ? " backward" : "", (long long)s->b, (long long)s->t, s->documents ? ", documents" : "",
             s->drop > 0 ? ", dropout" : "", (long long)s->heads, (long long)s->d, (long long)s->kv_heads);
    if (must)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s", what, why);
    cuda_note("%s: %s; by kernels of our own", what, why);
    return 0;
}

/* Why a version is not asked for a shape. */
static const char *distrusted(const struct dnn *d, const struct dnn_shape *s)
{
    const struct dnn_asked asked = {s->t, s->d, s->backward != 0, s->drop > 0, s->documents != 0};

    return dnn_distrusted(d->api->version(), &asked);
}

/* Makes p, whose shape is set, into a plan; without one, says why there is none. */
static int plan_make(const struct dnn *d, struct dnn_plan *p, bool must, struct err *e)
{
    const char *why = distrusted(d, &p->shape);
    struct err none = {};

    if (why)
        return declined(&p->shape, false, why, e);
    if (dnn_plan_make(d->api, d->handle, NULL, p, &none) == 0 && p->plan)
        return 0;
    return declined(&p->shape, must, none.msg[0] ? none.msg : p->engines ? "no engine of cuDNN's can be made ready" :
                    "cuDNN has no engine", e);
}

/* The plan for a shape; *out NULL: there is none. */
static int plan_of(struct device *dev, const struct dnn_shape *s, bool must, struct dnn_plan **out, struct err *e)
{
    struct dnn *d = dnn_of(dev);
    struct dnn_plan *p;

    *out = NULL;
    if (!must && !dnn_proven(s))
        return 0;
    if (!d)
        return must ? declined(s, must, "no cuDNN", e) : 0;
    for (int i = 0; i < d->plans; i++)
        if (memcmp(&d->plan[i].shape, s, sizeof *s) == 0) {
            *out = d->plan[i].plan ? &d->plan[i] : NULL;
            return *out || !must || distrusted(d, s) ? 0 : declined(s, must, "cuDNN has failed at it before", e);
        }
    if (d->plans == PLANS)
        return 0;
    p = &d->plan[d->plans++];
    p->shape = *s;
    TRY(plan_make(d, p, must, e));
    *out = p->plan ? p : NULL;
    return 0;
}

/* ---- what a call asks for ---- */

static bool drops(const struct attention *p) { return p->drop && p->drop->p > 0; }

static bool fits(enum dtype dt, const struct attention *p)
{
    bool plain = !p->block && !p->full && p->t == p->t_kv && !attention_masked(p) && !attention_sinks(p) && !(p->cap > 0);
    bool counted = !p->start || (p->documents > 0 && p->b * p->t * p->heads <= INT32_MAX);

    return dt == DTYPE_BF16 && plain && counted && !(drops(p) && p->drop->cut) && p->lse && (uintptr_t)p->lse % 16 == 0 &&
           p->d % 8 == 0 && p->d <= 256 && p->t >= 64 && attention_mma_view_fits(&p->q) && attention_mma_view_fits(&p->k) &&
           attention_mma_view_fits(&p->v) && attention_mma_view_fits(&p->o);
}

/* Of documents, gradients must lie as what they are of does: cuDNN 9.19 gave wrong ones in wider rows. */
static bool fits_backward(const struct attention *p, const struct attention_view more[4])
{
    bool alike = more[0].row == p->o.row && more[1].row == p->q.row && more[2].row == p->k.row && more[3].row == p->v.row;

    return (alike || !p->start) && attention_mma_view_fits(&more[0]) && attention_mma_view_fits(&more[1]) &&
           attention_mma_view_fits(&more[2]) && attention_mma_view_fits(&more[3]);
}

/* Documents and their tokens are counted in powers of two, lest every micro-batch makes a plan of its own. */
static int64_t power_of_two(int64_t n, int64_t least)
{
    while (least < n)
        least *= 2;
    return least;
}

static struct dnn_shape shape_of(const struct attention *p, const struct attention_view *more)
{
    const struct attention_view *v[DNN_VIEWS] = {&p->q, &p->k, &p->v, &p->o, more, more ? more + 1 : NULL, more ? more + 2 : NULL,
                                         more ? more + 3 : NULL};
    int64_t longest = power_of_two(p->longest > 0 && p->longest < p->t ? p->longest : p->t, 64);
    struct dnn_shape s = {};

    s.b = p->b, s.t = p->t, s.heads = p->heads, s.kv_heads = p->kv_heads, s.d = p->d, s.backward = more != NULL;
    s.drop = drops(p) ? p->drop->p : 0;
    if (p->start) {
        s.documents = 1;
        s.b = power_of_two(p->documents, 1);
        s.t = longest < p->t ? longest : p->t;
    }
    for (int i = 0; i < DNN_VIEWS; i++)
        if (v[i]) {
            s.stride[i][0] = p->start ? 0 : v[i]->batch;
            s.stride[i][1] = v[i]->row;
        }
    return s;
}

/* ---- dropout and documents: what the library reads of them ---- */

/* Seed and offset of a call, by the same words that tell masks of our own apart: the place, the step and the first row.  The
 * offset is small and a multiple of 4, as those who count Philox's words have it. */
static __global__ void __launch_bounds__(32) seed_kernel(int64_t *seed, int64_t *offset, struct drop d)
{
    uint32_t c[4];

    drop_begin(&d);
    c[0] = (uint32_t)d.row0, c[1] = (uint32_t)(d.row0 >> 32), c[2] = d.stream[0], c[3] = d.stream[1];
    philox(d.key[0], d.key[1], c);
    if (threadIdx.x)
        return;
    *seed = (int64_t)((uint64_t)(c[1] >> 1) << 32 | c[0]);
    *offset = (int64_t)(c[2] >> 3 << 2);
}

/* Documents as the library has them: how many tokens each has, and where it begins in rows of each kind. */
struct documents {
    const int32_t *start;
    int64_t n, t, most;          /* tokens, those of a sequence; documents there is room for */
    int32_t *queries, *keys;     /* (most) */
    int64_t *at[DNN_PLACES];     /* (most + 1) */
    int64_t row[DNN_PLACES];     /* elements a token */
};

enum { DOCUMENT_WARPS = 16 };

static __device__ __forceinline__ bool begins(const struct documents &p, int64_t i, int64_t end)
{
    return i < end && p.start[i] == (int32_t)((uint32_t)i % (uint32_t)p.t);
}

/* The first of the documents that begin in a warp's share of the tokens is number `slot`. */
static __device__ __forceinline__ void put_beginnings(const struct documents &p, int64_t from, int64_t end, int64_t slot)
{
    int lane = (int)threadIdx.x % 32;

    for (int64_t i = from; i < end; i += 32) {
        bool here = begins(p, i + lane, end);
        unsigned those = __ballot_sync(~0u, here);
        int64_t at = slot + __popc(those & ((1u << lane) - 1));
        if (here && at <= p.most)
            p.at[DNN_AT_STATS][at] = i + lane;
        slot += __popc(those);
    }
}

/* One block: each warp counts the beginnings in its share of the tokens, then places them.  Documents that there are not have no
 * tokens and begin at the end. */
static __global__ void __launch_bounds__(32 * DOCUMENT_WARPS) documents_kernel(struct documents p)
{
    __shared__ int count[DOCUMENT_WARPS];
    int warp = (int)threadIdx.x / 32, mine = 0, before = 0, all = 0;
    int64_t each = (p.n + DOCUMENT_WARPS - 1) / DOCUMENT_WARPS, from = warp * each, end = from + each < p.n ? from + each : p.n;
    int64_t *first = p.at[DNN_AT_STATS];

    for (int64_t i = from; i < end; i += 32)
        mine += __popc(__ballot_sync(~0u, begins(p, i + threadIdx.x % 32, end)));
    if (threadIdx.x % 32 == 0)
        count[warp] = mine;
    __syncthreads();
    for (int w = 0; w < DOCUMENT_WARPS; w++) {
        before += w < warp ? count[w] : 0;
        all += count[w];
    }
    put_beginnings(p, from, end, before);
    for (int64_t slot = all + threadIdx.x; slot <= p.most; slot += 32 * DOCUMENT_WARPS)
        first[slot] = p.n;
    __syncthreads();
    for (int64_t slot = threadIdx.x; slot <= p.most; slot += 32 * DOCUMENT_WARPS) {
        for (int k = 0; k < DNN_PLACES; k++)
            if (k != DNN_AT_STATS)
                p.at[k][slot] = first[slot] * p.row[k];
        if (slot < p.most)
            p.queries[slot] = p.keys[slot] = (int32_t)(first[slot + 1] - first[slot]);
    }
    __syncthreads();
    for (int64_t slot = threadIdx.x; slot <= p.most; slot += 32 * DOCUMENT_WARPS)
        first[slot] *= p.row[DNN_AT_STATS];
}

/* Between (b, heads, t), as log-sum-exps are kept, and (b, t, heads), as the library has them of documents. */
static __global__ void __launch_bounds__(CUDA_BLOCK) turn_kernel(float *to, const float *from, uint32_t n, uint32_t inner,
                                                                 uint32_t outer)
{
    uint32_t step = gridDim.x * CUDA_BLOCK, all = inner * outer;

    for (uint32_t i = blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n; i += step) {
        uint32_t r = i % all;
        to[i] = from[i - r + r % inner * outer + r / inner];
    }
}

/* to (b, outer, inner) of from (b, inner, outer). */
static int turn(struct device *dev, float *to, const float *from, int64_t b, int64_t outer, int64_t inner, struct err *e)
{
    int64_t n = b * outer * inner;

    LAUNCH(turn_kernel, dim3(cuda_blocks(dev, n, CUDA_BLOCK)), CUDA_BLOCK, dev, to, from, (uint32_t)n, (uint32_t)inner,
           (uint32_t)outer);
    return cuda_launched(dev, "attention's log-sum-exps", e);
}

/* ---- a call ---- */

/* Where each tensor lies, and the numbers that some are. */
struct job {
    const struct attention *p;
    const struct dnn_plan *plan;
    void *at[DNN_IDS], *workspace;
    float scale, masked, padded, keep, drop_scale;
    size_t sum; /* bytes of dq's */
};

/* Pieces of the device's one scratch block, or with base NULL only how large it must be. */
struct room {
    char *base;
    size_t used;
};
static void *carve(struct room *r, int64_t bytes)
{
    void *p = r->base ? r->base + r->used : NULL;

    r->used += ((size_t)bytes + 255) / 256 * 256;
    return p;
}

/* Backward's: dq's sum lies first, in rows of dq itself where there are documents.  Gradients by heads are bf16, but have the
 * room of fp32 that NVIDIA's frontend gives them. */
static void place_sums(struct job *j, struct room *r)
{
    const struct attention *p = j->p;
    const struct dnn_shape *s = &j->plan->shape;
    int64_t tokens = p->b * p->t, share = p->heads / p->kv_heads, before = (int64_t)r->used;

    j->at[DNN_ID_DQ_SUM] = carve(r, tokens * (s->documents ? s->stride[DNN_VIEW_DQ][1] : p->heads * p->d) * 4);
    j->sum = r->used - (size_t)before;
    j->at[DNN_ID_DELTA] = carve(r, tokens * p->heads * 4);
    if (s->documents && share > 1) {
        j->at[DNN_ID_DK_HEADS] = carve(r, tokens * s->stride[DNN_VIEW_DK][1] * share * 4);
        j->at[DNN_ID_DV_HEADS] = carve(r, tokens * s->stride[DNN_VIEW_DV][1] * share * 4);
    }
}

static void place(struct job *j, struct room *r)
{
    const struct dnn_shape *s = &j->plan->shape;

    if (s->backward)
        place_sums(j, r);
    if (s->drop > 0) {
        j->at[DNN_ID_SEED] = carve(r, sizeof(int64_t));
        j->at[DNN_ID_OFFSET] = carve(r, sizeof(int64_t));
    }
    if (s->documents) {
        j->at[DNN_ID_QUERIES] = carve(r, s->b * 4);
        j->at[DNN_ID_KEYS] = carve(r, s->b * 4);
        for (int i = 0; i < DNN_PLACES; i++)
            j->at[DNN_ID_AT_Q + i] = carve(r, (s->b + 1) * 8);
        j->at[DNN_ID_STATS] = carve(r, j->p->b * j->p->t * j->p->heads * 4);
    }
    j->workspace = carve(r, j->plan->workspace + 1);
}

static int put_documents(struct device *dev, const struct job *j, struct err *e)
{
    const struct attention *p = j->p;
    const struct dnn_shape *s = &j->plan->shape;
    struct documents d = {p->start, p->b * p->t, p->t, s->b, (int32_t *)j->at[DNN_ID_QUERIES], (int32_t *)j->at[DNN_ID_KEYS],
                          {}, {}};

    for (int i = 0; i < DNN_PLACES; i++) {
        d.at[i] = (int64_t *)j->at[DNN_ID_AT_Q + i];
        d.row[i] = i == DNN_AT_STATS ? p->heads : s->stride[i][1];
    }
    LAUNCH(documents_kernel, dim3(1), 32 * DOCUMENT_WARPS, dev, d);
    return cuda_launched(dev, "attention's documents", e);
}

/* Everything that the graph reads but the gradients of a backward call. */
static int prepare(struct device *dev, struct job *j, struct err *e)
{
    const struct attention *p = j->p;
    const struct dnn_shape *s = &j->plan->shape;
    bool old = dnn_of(dev)->api->version() < dnn_version(10, 0);
    struct room r = {};
    void *mem;

    place(j, &r);
    TRY(cuda_scratch(dev, &mem, r.used, e));
    r = (struct room){(char *)mem, 0};
    place(j, &r);
    j->at[DNN_ID_Q] = p->q.p, j->at[DNN_ID_K] = p->k.p, j->at[DNN_ID_V] = p->v.p, j->at[DNN_ID_O] = p->o.p;
    j->scale = p->scale, j->keep = (float)(1 - s->drop), j->drop_scale = (float)(1 / (1 - s->drop));
    j->masked = j->padded = dnn_simple(s) ? -1e30f : old ? -3.402823466e38f : -INFINITY;
    j->at[DNN_ID_SCALE] = &j->scale, j->at[DNN_ID_MASKED] = &j->masked;
    if (s->backward)
        j->at[DNN_ID_KEEP] = &j->keep;
    if (s->drop > 0) {
        j->at[DNN_ID_DROP_SCALE] = &j->drop_scale;
        LAUNCH(seed_kernel, dim3(1), 32, dev, (int64_t *)j->at[DNN_ID_SEED], (int64_t *)j->at[DNN_ID_OFFSET], attention_drop(p));
        TRY(cuda_launched(dev, "attention's seed", e));
    }
    if (!s->documents) {
        j->at[DNN_ID_STATS] = p->lse;
        return 0;
    }
    j->at[DNN_ID_PADDED] = &j->padded;
    return put_documents(dev, j, e);
}

/* *did: it was queued.  A plan that cannot be is not tried again. */
static int execute(struct device *dev, struct job *j, struct dnn_plan *p, bool must, bool *did, struct err *e)
{
    const struct dnn *d = dnn_of(dev);
    const struct dnn_api *api = d->api;
    int64_t id[DNN_IDS];
    void *place[DNN_IDS], *pack = NULL;
    int n = 0, rc;
    char why[300];

    for (int i = 1; i < DNN_IDS; i++)
        if (j->at[i]) {
            id[n] = i;
            place[n++] = j->at[i];
        }
    rc = api->set_stream(d->handle, dev->stream);
    rc = rc ? rc : api->desc_create(DNN_VARIANT_PACK, &pack);
    rc = rc ? rc : api->set(pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64, n, id);
    rc = rc ? rc : api->set(pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR, n, place);
    rc = rc ? rc : api->set(pack, DNN_ATTR_VARIANT_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &j->workspace);
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

/* The plan forward; with dropout one that has a plan backward beside it, which is to draw the same mask. */
static int forward_plan(struct device *dev, const struct attention *p, bool must, struct dnn_plan **plan, struct err *e)
{
    const struct attention_view more[4] = {p->o, p->q, p->k, p->v};
    const struct dnn_shape s = shape_of(p, NULL), back = shape_of(p, more);

    if (drops(p)) {
        TRY(plan_of(dev, &back, must, plan, e));
        if (!*plan)
            return 0;
    }
    return plan_of(dev, &s, must, plan, e);
}

int attention_cudnn_fwd(struct device *dev, enum dtype dt, const struct attention *p, bool must, bool *did, struct err *e)
{
    struct dnn_plan *plan = NULL;
    struct job j = {};

    *did = false;
    if (fits(dt, p))
        TRY(forward_plan(dev, p, must, &plan, e));
    if (!plan)
        return 0;
    j.p = p, j.plan = plan;
    TRY(prepare(dev, &j, e));
    TRY(execute(dev, &j, plan, must || drops(p), did, e));
    return *did && p->start ? turn(dev, p->lse, (float *)j.at[DNN_ID_STATS], p->b, p->heads, p->t, e) : 0;
}

/* The plan backward; with dropout there must be one where forward has drawn the mask. */
static int backward_plan(struct device *dev, const struct attention *p, const struct attention_view more[4], bool must,
                         struct dnn_plan **plan, struct err *e)
{
    const struct dnn_shape s = shape_of(p, more);
    struct dnn_plan *forward = NULL;

    if (drops(p)) {
        TRY(forward_plan(dev, p, must, &forward, e));
        if (!forward)
            return 0;
    }
    if (fits_backward(p, more))
        TRY(plan_of(dev, &s, must || forward, plan, e));
    return !*plan && forward ? declined(&s, true, "cuDNN has drawn forward's mask, and cannot go backward", e) : 0;
}

int attention_cudnn_bwd(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                        struct attention_view dq, struct attention_view dk, struct attention_view dv, bool must, bool *did,
                        struct err *e)
{
    const struct attention_view more[4] = {dout, dq, dk, dv};
    struct dnn_plan *plan = NULL;
    struct job j = {};

    *did = false;
    if (fits(dt, p))
        TRY(backward_plan(dev, p, more, must, &plan, e));
    if (!plan)
        return 0;
    j.p = p, j.plan = plan;
    j.at[DNN_ID_DOUT] = dout.p, j.at[DNN_ID_DQ] = dq.p, j.at[DNN_ID_DK] = dk.p, j.at[DNN_ID_DV] = dv.p;
    TRY(prepare(dev, &j, e));
    if (p->start)
        TRY(turn(dev, (float *)j.at[DNN_ID_STATS], p->lse, p->b, p->t, p->heads, e));
    if (dnn_wants_zeros(dnn_of(dev)->api->version()))
        TRY(cuda_fill(dev, j.at[DNN_ID_DQ_SUM], 0, j.sum, e));
    return execute(dev, &j, plan, must || drops(p), did, e);
}
