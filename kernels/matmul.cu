#include <stdio.h>
#include <stdlib.h>

#include "kernels/lt_api.h"
#include "kernels/lt_cache.h"
#include "kernels/matmul_plain.cuh"

/* Matrix products by cuBLASLt.  It thinks in columns: what lies in rows as (r, c) is to it (c, r), so it is asked for
 * C^T = op(B)^T op(A)^T, and B comes first.  A call makes a plan for its shape once: which parts of the epilogue the library
 * has for these types, and the fastest of the algorithms that it proposes, which is also kept on disk (lt_cache.h).
 * What it does not do is done by kernels of our own (matmul_plain.cu). */

enum { PLANS = 1024, PROPOSALS = 32, TIMED = 3, WORKSPACE = 32 << 20 };

struct lt_key {
    int64_t m, n, k, lda, ldb, ldc;
    int32_t trans_a, trans_b, dt, dt_c, bias, act, dact, beta, align, fp8_a, fp8_b, fast, timed, sums, by_a, by_b;
};

struct lt_plan {
    struct lt_key key;
    void *desc, *a, *b, *c; /* desc NULL: the library has no algorithm */
    struct lt_algo algo;
    double seconds; /* of TIMED calls, where it was timed */
    unsigned did; /* what of the call it does, MATMUL_DID_ */
};

struct lt {
    const struct lt_api *api;
    void *handle, *pref;
    struct lt_cache cache;
    bool tune;
    float *sums; /* scratch of the call under way: what its epilogue sums up */
    int plans;
    struct lt_plan *plan[PLANS]; /* open addressing */
};

static void plan_free(const struct lt_api *api, struct lt_plan *p)
{
    if (p->desc)
        api->desc_destroy(p->desc);
    if (p->a)
        api->layout_destroy(p->a);
    if (p->b)
        api->layout_destroy(p->b);
    if (p->c)
        api->layout_destroy(p->c);
    free(p);
}

static void lt_free(void *state)
{
    struct lt *lt = (struct lt *)state;

    for (int i = 0; i < PLANS; i++)
        if (lt->plan[i])
            plan_free(lt->api, lt->plan[i]);
    if (lt->pref)
        lt->api->pref_destroy(lt->pref);
    if (lt->handle)
        lt->api->destroy(lt->handle);
    lt_cache_close(&lt->cache);
    free(lt);
}

/* The device's; NULL, with nothing said, where the library is not to be had. */
static struct lt *lt_of(struct device *dev)
{
    struct cuda_state *s = cuda_kept(dev, CUDA_STATE_MATMUL);
    const char *tune = getenv("QUERN_CUDA_TUNE");
    struct lt *lt = (struct lt *)s->p;

    if (s->tried)
        return lt;
    s->tried = true;
    if (!cuda_lt())
        return NULL;
    lt = (struct lt *)calloc(1, sizeof *lt);
    if (!lt)
        return NULL;
    lt->api = cuda_lt();
    lt->tune = !tune || strcmp(tune, "0") != 0;
    if (lt->api->create(&lt->handle) || lt->api->pref_create(&lt->pref)) {
        lt_free(lt);
        return NULL;
    }
    if (lt->tune)
        lt_cache_open(&lt->cache, lt->api->version(), dev->name);
    s->p = lt;
    s->free = lt_free;
    return lt;
}

/* ---- plans ---- */

/* The largest power of two up to 256 that divides all addresses of the call. */
static int32_t alignment(const struct matmul *p)
{
    uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->bias | (uintptr_t)p->aux |
                    (uintptr_t)p->dact_aux | (p->ragged ? 16 : 256); /* experts' rows begin anywhere */

    return (int32_t)(all & (0 - all));
}

/* Proposals are timed, but not for a shape that does not come again, nor where every run must take the same. */
static struct lt_key key_of(const struct device *dev, const struct lt *lt, const struct matmul *p)
{
    struct lt_key k = {};

    k.m = p->m, k.n = p->n, k.k = p->k, k.lda = p->lda, k.ldb = p->ldb, k.ldc = p->ldc;
    k.trans_a = p->trans_a, k.trans_b = p->trans_b, k.dt = p->dt, k.dt_c = p->dt_c;
    k.bias = p->bias != NULL, k.act = p->act, k.dact = p->dact, k.beta = p->beta == 1, k.align = alignment(p);
    k.fp8_a = p->fp8_a, k.fp8_b = p->fp8_b, k.fast = p->fast, k.by_a = p->by_a, k.by_b = p->by_b;
    k.timed = lt->tune && !p->ragged && !dev->deterministic;
    k.sums = p->sums && k.timed && p->dt == DTYPE_BF16;
    return k;
}

static int type_of(int32_t dt) { return dt == DTYPE_BF16 ? LT_BF16 : LT_F32; }
static int operand_type(int32_t fp8, int32_t dt) { return fp8 == FP8_E4M3 ? LT_E4M3 : fp8 == FP8_E5M2 ? LT_E5M2 : type_of(dt); }

static int32_t scale_mode(int32_t by)
{
    return by == FP8_OF_ROWS ? LT_SCALE_ROWS : by == FP8_OF_SQUARES ? LT_SCALE_SQUARES : LT_SCALE_TENSOR;
}

/* What the call means for the library, with the epilogue of `did`. */
static int describe(const struct lt_api *api, struct lt_plan *p, unsigned did)
{
    const struct lt_key *k = &p->key;
    int32_t ta = k->trans_b ? LT_OP_T : LT_OP_N, tb = k->trans_a ? LT_OP_T : LT_OP_N, epilogue = LT_EPILOGUE_NONE;
    int32_t type = did & MATMUL_DID_SUMS ? LT_F32 : type_of(k->dt);
    int32_t mode_a = scale_mode(k->by_b), mode_b = scale_mode(k->by_a);
    int64_t ld = k->n;
    int8_t fast = (int8_t)k->fast;
    int rc = 0;

    if (did & MATMUL_DID_ACT)
        epilogue = k->dact ? LT_EPILOGUE_DGELU : LT_EPILOGUE_GELU_AUX;
    if (k->bias && did & MATMUL_DID_BIAS)
        epilogue = epilogue == LT_EPILOGUE_NONE ? LT_EPILOGUE_BIAS : epilogue | LT_EPILOGUE_BIAS;
    if (did & MATMUL_DID_SUMS)
        epilogue = LT_EPILOGUE_BGRADB;
    if (!p->desc)
        rc = api->desc_create(&p->desc, LT_COMPUTE_F32, LT_F32);
    rc = rc ? rc : api->desc_set(p->desc, LT_DESC_TRANSA, &ta, sizeof ta);
    rc = rc ? rc : api->desc_set(p->desc, LT_DESC_TRANSB, &tb, sizeof tb);
    rc = rc ? rc : api->desc_set(p->desc, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (rc == 0 && k->fp8_a)
        rc = api->desc_set(p->desc, LT_DESC_FAST, &fast, sizeof fast);
    if (rc == 0 && k->by_a)
        rc = api->desc_set(p->desc, LT_DESC_A_SCALE_MODE, &mode_a, sizeof mode_a);
    if (rc == 0 && k->by_a)
        rc = api->desc_set(p->desc, LT_DESC_B_SCALE_MODE, &mode_b, sizeof mode_b);
    if (rc == 0 && ((k->bias && did & MATMUL_DID_BIAS) || did & MATMUL_DID_SUMS))
        rc = api->desc_set(p->desc, LT_DESC_BIAS_TYPE, &type, sizeof type);
    if (rc == 0 && did & MATMUL_DID_ACT)
        rc = api->desc_set(p->desc, LT_DESC_AUX_LD, &ld, sizeof ld);
    p->did = did;
    return rc;
}

/* The addresses that do not belong to a matrix.  What is A here is B there. */
static int describe_call(const struct lt *lt, const struct lt_plan *p, const struct matmul *q)
{
    const struct lt_api *api = lt->api;
    const void *aux = q->dact ? q->dact_aux : q->aux, *bias = p->did & MATMUL_DID_SUMS ? lt->sums : q->bias;
    int rc = 0;

    if (bias && p->did & (MATMUL_DID_BIAS | MATMUL_DID_SUMS))
        rc = api->desc_set(p->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (rc == 0 && p->did & MATMUL_DID_ACT)
        rc = api->desc_set(p->desc, LT_DESC_AUX_POINTER, &aux, sizeof aux);
    if (rc == 0 && q->fp8_a)
        rc = api->desc_set(p->desc, LT_DESC_A_SCALE, &q->inv_b, sizeof q->inv_b);
    if (rc == 0 && q->fp8_a)
        rc = api->desc_set(p->desc, LT_DESC_B_SCALE, &q->inv_a, sizeof q->inv_a);
    return rc;
}

static int layouts(const struct lt_api *api, struct lt_plan *p)
{
    const struct lt_key *k = &p->key;
    uint64_t m = (uint64_t)k->m, n = (uint64_t)k->n, inner = (uint64_t)k->k;
    int rc = api->layout_create(&p->a, operand_type(k->fp8_b, k->dt), k->trans_b ? inner : n, k->trans_b ? n : inner, k->ldb);

    rc = rc ? rc : api->layout_create(&p->b, operand_type(k->fp8_a, k->dt), k->trans_a ? m : inner, k->trans_a ? inner : m,
                                      k->lda);
    return rc ? rc : api->layout_create(&p->c, type_of(k->dt_c), n, m, k->ldc);
}

static int run(struct device *dev, const struct lt *lt, const struct lt_plan *p, const struct lt_algo *algo,
               const struct matmul *q, void *d, void *workspace, size_t bytes)
{
    float one = 1, beta = q->beta;

    return lt->api->matmul(lt->handle, p->desc, &one, q->b, p->a, q->a, p->b, &beta, q->c, p->c, d, p->c, algo, workspace,
                           bytes,
                           dev->stream);
}

/* Seconds of TIMED calls after one; < 0: one fails.  call: a function of nothing, 0 when it has been queued. */
template <class F> static double seconds_of(struct device *dev, const F &call)
{
    struct device_event *ev[2] = {NULL, NULL};
    struct err none;
    double s = -1;
    int rc = dev->calls->event_new(dev, &ev[0], true, &none);

    rc = rc ? rc : dev->calls->event_new(dev, &ev[1], true, &none);
    for (int i = 0; i <= TIMED && rc == 0; i++) {
        rc = call();
        if (rc == 0 && i == 0)
            rc = dev->calls->event_record(dev, ev[0], &none);
    }
    rc = rc ? rc : dev->calls->event_record(dev, ev[1], &none);
    if (rc == 0 && dev->calls->event_seconds(dev, ev[0], ev[1], &s, &none) < 0)
        s = -1;
    for (int i = 0; i < 2; i++)
        if (ev[i])
            dev->calls->event_free(dev, ev[i]);
    return s;
}

/* The fastest of count proposals, whose seconds the plan gets; -1: none of them runs.  Everything that a call writes it may write
 * again, but for what it adds to: that goes to memory of its own, and if there is none the first proposal stands. */
static int fastest(struct device *dev, const struct lt *lt, struct lt_plan *p, const struct lt_result *r, int count,
                   const struct matmul *q, void *workspace)
{
    void *d = NULL;
    struct err none;
    int best = -1;

    p->seconds = -1;
    if (q->beta == 1 && dev->calls->alloc(dev, &d, (size_t)q->m * (size_t)q->ldc * dtype_size(q->dt_c), &none) < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        double s = r[i].state ? -1 : seconds_of(dev, [&] {
            return run(dev, lt, p, &r[i].algo, q, d ? d : q->c, workspace, WORKSPACE);
        });
        if (s >= 0 && (best < 0 || s < p->seconds)) {
            p->seconds = s;
            best = i;
        }
    }
    if (d) {
        dev->calls->sync(dev, &none);
        dev->calls->free(dev, d);
    }
    return best;
}

/* Where the result is bf16 the parts of a split k are added up in fp32, and rounded once; with an epilogue, before which the
 * library rounds their sum (13.1), k is not split. */
static uint32_t reductions(const struct lt_plan *p)
{
    if (p->key.dt_c == DTYPE_F32)
        return LT_REDUCTION_ANY;
    return (p->key.bias && p->did & MATMUL_DID_BIAS) || p->did & MATMUL_DID_ACT ? LT_REDUCTION_NONE : LT_REDUCTION_COMPUTE_TYPE;
}

/* What the library is to keep to when it proposes algorithms; its status. */
static int prefer(const struct lt *lt, const struct lt_plan *p)
{
    uint64_t bytes = WORKSPACE;
    uint32_t align = (uint32_t)p->key.align, mask = reductions(p);
    int rc = lt->api->pref_set(lt->pref, LT_PREF_WORKSPACE, &bytes, sizeof bytes);

    for (int what = LT_PREF_ALIGN_A; rc == 0 && what <= LT_PREF_ALIGN_D; what++)
        rc = lt->api->pref_set(lt->pref, what, &align, sizeof align);
    return rc ? rc : lt->api->pref_set(lt->pref, LT_PREF_REDUCTIONS, &mask, sizeof mask);
}

/* What the plan is kept on disk by. */
static void cache_key(const struct lt_plan *p, char key[LT_CACHE_KEY])
{
    const struct lt_key *k = &p->key;
    int n = snprintf(key, LT_CACHE_KEY, "%lld %lld %lld %lld %lld %lld %d %d %d %d %d %d %d %d %d %d %d %d %u %u %d%s",
                     (long long)k->m, (long long)k->n, (long long)k->k, (long long)k->lda, (long long)k->ldb, (long long)k->ldc,
                     k->trans_a, k->trans_b, k->dt, k->dt_c, k->bias, k->act, k->dact, k->beta, k->align, k->fp8_a, k->fp8_b,
                     k->fast, p->did, reductions(p), PROPOSALS, k->sums ? " sums" : "");

    if (k->by_a)
        snprintf(key + n, (size_t)(LT_CACHE_KEY - n), " blocks %d %d", k->by_a, k->by_b);
}

/* Whether the disk has an algorithm for the plan as it is described. */
static bool recalled(struct lt *lt, struct lt_plan *p)
{
    struct lt_result checked;
    char key[LT_CACHE_KEY];

    cache_key(p, key);
    return p->key.timed && lt_cache_find(&lt->cache, key, p->algo.data) &&
           lt->api->check(lt->handle, p->desc, p->a, p->b, p->c, p->c, &p->algo, &checked) == 0 && checked.workspace <= WORKSPACE;
}

static void remember(struct lt *lt, const struct lt_plan *p)
{
    char key[LT_CACHE_KEY];

    cache_key(p, key);
    if (p->key.timed)
        lt_cache_add(&lt->cache, key, p->algo.data);
}

/* An algorithm by trying those that the library proposes.  False: there is none. */
static bool tried(struct device *dev, struct lt *lt, struct lt_plan *p, const struct matmul *q, void *workspace)
{
    struct lt_result r[PROPOSALS];
    int count = 0, best = 0;

    if (prefer(lt, p) ||
        lt->api->heuristic(lt->handle, p->desc, p->a, p->b, p->c, p->c, lt->pref, p->key.timed ? PROPOSALS : 1, r, &count) ||
        count < 1 || r[0].state)
        return false;
    if (p->key.timed)
        best = fastest(dev, lt, p, r, count, q, workspace);
    if (best < 0)
        return false;
    p->algo = r[best].algo;
    return true;
}

/* Describes the plan anew, with the epilogue of `did`. */
static bool described(struct lt *lt, struct lt_plan *p, const struct matmul *q, unsigned did)
{
    if (p->desc)
        lt->api->desc_destroy(p->desc);
    p->desc = NULL;
    return describe(lt->api, p, did) == 0 && describe_call(lt, p, q) == 0;
}

/* With sums: by the library's epilogue, or by a kernel of our own beside the product, which of the two is faster. */
static bool plan_sums(struct device *dev, struct lt *lt, struct lt_plan *p, const struct matmul *q, void *workspace)
{
    const unsigned alone = MATMUL_DID_PRODUCT | MATMUL_DID_BIAS, summing = MATMUL_DID_PRODUCT | MATMUL_DID_SUMS;
    struct lt_algo with;
    double seconds = -1, beside;
    struct err none;

    if ((described(lt, p, q, summing) && recalled(lt, p)) || (described(lt, p, q, alone) && recalled(lt, p)))
        return true;
    if (described(lt, p, q, summing) && tried(dev, lt, p, q, workspace)) {
        with = p->algo;
        seconds = p->seconds;
    }
    beside = seconds_of(dev, [&] { return vec_colsum_cuda(dev, q->dt, lt->sums, q->a, q->k, q->m, q->lda, &none); });
    if (!described(lt, p, q, alone) || !tried(dev, lt, p, q, workspace))
        return false;
    if (seconds >= 0 && beside >= 0 && p->seconds >= 0 && seconds < p->seconds + beside && described(lt, p, q, summing))
        p->algo = with;
    remember(lt, p);
    return true;
}

/* As much of the epilogue as the library has for this: all, the bias alone, none of it.  Algorithms come from the disk, or by
 * trying. */
static bool plan_make(struct device *dev, struct lt *lt, struct lt_plan *p, const struct matmul *q, void *workspace)
{
    /* how exact its tangent is, the library does not say: enough for bf16.  Of rows that are not aligned it rounds first */
    bool gelu = q->dt == DTYPE_BF16 && q->n % 8 == 0 &&
                ((q->act == ACT_GELU_TANH && !q->dact) || (q->dact == ACT_GELU_TANH && !q->bias));
    const unsigned tries[] = {gelu ? MATMUL_DID_PRODUCT | MATMUL_DID_BIAS | MATMUL_DID_ACT : 0u,
                              MATMUL_DID_PRODUCT | MATMUL_DID_BIAS, q->bias ? (unsigned)MATMUL_DID_PRODUCT : 0u};

    if (layouts(lt->api, p))
        return false;
    if (p->key.sums)
        return plan_sums(dev, lt, p, q, workspace);
    for (int i = 0; i < 3; i++) {
        struct matmul to = *q;
        if (!tries[i])
            continue;
        if (to.act && !(tries[i] & MATMUL_DID_ACT))
            to.c = to.aux;
        if (!described(lt, p, &to, tries[i]))
            continue;
        if (recalled(lt, p))
            return true;
        if (tried(dev, lt, p, &to, workspace)) {
            remember(lt, p);
            return true;
        }
    }
    return false;
}

static uint64_t hash_of(const struct lt_key *k)
{
    const unsigned char *b = (const unsigned char *)k;
    uint64_t h = 14695981039346656037ull;

    for (size_t i = 0; i < sizeof *k; i++)
        h = (h ^ b[i]) * 1099511628211ull;
    return h;
}

/* NULL: the library is not to be used for this. */
static struct lt_plan *plan_of(struct device *dev, struct lt *lt, const struct matmul *q, void *workspace)
{
    struct lt_key key = key_of(dev, lt, q);
    uint64_t at = hash_of(&key) % PLANS;
    struct lt_plan *p;

    for (; lt->plan[at]; at = (at + 1) % PLANS)
        if (memcmp(&lt->plan[at]->key, &key, sizeof key) == 0)
            return lt->plan[at]->desc ? lt->plan[at] : NULL;
    if (lt->plans == PLANS / 2)
        return NULL; /* more shapes than a trainer has */
    p = (struct lt_plan *)calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->key = key;
    if (!plan_make(dev, lt, p, q, workspace)) {
        cuda_note("matmul %lld x %lld x %lld, strides %lld, %lld, %lld: no algorithm; by a kernel of our own", (long long)q->m,
                  (long long)q->n, (long long)q->k, (long long)q->lda, (long long)q->ldb, (long long)q->ldc);
        if (p->desc)
            lt->api->desc_destroy(p->desc);
        p->desc = NULL;
    }
    lt->plan[at] = p;
    lt->plans++;
    return p->desc ? p : NULL;
}

/* Rows, up to the next of 2^n and 3 x 2^n. */
static int64_t about(int64_t rows)
{
    int64_t n = 1;

    while (n < rows)
        n *= 2;
    return n >= 4 && n / 4 * 3 >= rows ? n / 4 * 3 : n;
}

/* For a shape that does not come again, which the caller frees: with the algorithm that the library proposes for about as many
 * rows.  That is kept, for asking takes longer than a small expert's product.  Where it does not do, with the first proposal for
 * this shape.  NULL as above. */
static struct lt_plan *plan_once(struct device *dev, struct lt *lt, const struct matmul *q, void *workspace)
{
    struct lt_plan *p = (struct lt_plan *)calloc(1, sizeof *p), *kept;
    struct lt_result checked;
    struct matmul like = *q;

    if (!p)
        return NULL;
    *(matmul_rows_inside(q) ? &like.k : &like.m) = about(matmul_rows_inside(q) ? q->k : q->m);
    if (q->by_a)
        like.k = fp8_blocks_of(like.k) * FP8_BLOCK;
    if (q->fp8_a)
        like.lda = like.ldb = like.k;
    p->key = key_of(dev, lt, q);
    kept = plan_of(dev, lt, &like, workspace);
    if (kept && layouts(lt->api, p) == 0 && describe(lt->api, p, kept->did) == 0 && describe_call(lt, p, q) == 0 &&
        lt->api->check(lt->handle, p->desc, p->a, p->b, p->c, p->c, &kept->algo, &checked) == 0 &&
        checked.workspace <= WORKSPACE) {
        p->algo = kept->algo;
        return p;
    }
    plan_free(lt->api, p);
    p = (struct lt_plan *)calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->key = key_of(dev, lt, q);
    if (plan_make(dev, lt, p, q, workspace))
        return p;
    plan_free(lt->api, p);
    return NULL;
}

/* Which algorithm it was, in the library's numbers (cublasLtMatmulTile_t, cublasLtReductionScheme_t). */
static void say_algorithm(const struct device *dev, const struct lt_api *api, const struct lt_plan *p)
{
    static const int what[] = {LT_ALGO_ID, LT_ALGO_TILE, LT_ALGO_STAGES, LT_ALGO_SPLIT_K, LT_ALGO_REDUCTION};
    int32_t is[5] = {-1, -1, -1, -1, -1};
    size_t wrote;

    if (!dev->how)
        return;
    for (int i = 0; i < 5; i++)
        api->algo_get(&p->algo, what[i], &is[i], sizeof is[i], &wrote);
    cuda_took(dev, "cuBLASLt algorithm %d, tile %d, stages %d, split-K %d, reduction %d%s%s", is[0], is[1], is[2], is[3], is[4],
              p->key.bias && p->did & MATMUL_DID_BIAS ? ", its bias" : "",
              p->did & MATMUL_DID_ACT ? ", its activation" : p->did & MATMUL_DID_SUMS ? ", its sums" : "");
}

static int by_library(struct device *dev, struct matmul *q, unsigned *did, struct err *e)
{
    struct lt *lt = lt_of(dev);
    size_t sums = q->sums ? (size_t)q->m * sizeof(float) : 0, parts = (size_t)column_parts(q->k) * sums, room = WORKSPACE;
    struct lt_plan *p;
    void *workspace;
    int rc = 0, status;

    if (!lt || q->k == 0 || alignment(q) < 16)
        return 0;
    room = parts > room ? parts : room; /* as our own sums need, so that scratch stays where it is */
    TRY(cuda_scratch(dev, &workspace, room + sums, e));
    lt->sums = (float *)((char *)workspace + room);
    p = q->ragged ? plan_once(dev, lt, q, workspace) : plan_of(dev, lt, q, workspace);
    if (!p)
        return 0;
    if (q->act && !(p->did & MATMUL_DID_ACT))
        q->c = q->aux;
    status = describe_call(lt, p, q);
    status = status ? status : run(dev, lt, p, &p->algo, q, q->c, workspace, WORKSPACE);
    if (status)
        rc = err_set(e, ERR_DEVICE, "matmul: cuBLASLt's status %d for %lld x %lld x %lld", status, (long long)q->m,
                     (long long)q->n, (long long)q->k);
    say_algorithm(dev, lt->api, p);
    *did = p->did;
    if (q->ragged)
        plan_free(lt->api, p);
    if (rc == 0 && *did & MATMUL_DID_SUMS)
        return vec_axpy_cuda(dev, DTYPE_F32, q->sums, 1, lt->sums, q->m, e);
    return rc;
}

extern "C" int matmul_cuda(struct device *dev, const struct matmul *p, struct err *e)
{
    return matmul_through(dev, p, by_library, e);
}
