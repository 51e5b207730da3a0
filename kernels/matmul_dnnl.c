#include "kernels/matmul_dnnl.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

/* fp32 goes through sgemm, which needs no plan.  bf16 goes through matmul primitives: making
 * one takes a millisecond and holds generated code, so they are kept by shape. */
/* More plans than a product of groups can want at once: 43 numbers of rows (matmul_dnnl_rows of an int32_t), overwriting and
 * adding, of pieces that are cut short by one end, the other, both or none. */
enum { MAX_PLANS = 384, SCRATCH_ALIGN = 64 };

struct key {
    int64_t m, n, k, lda, ldb, ldc;
    int32_t trans, dt_c, beta, bias, alone, pack;
};
struct plan {
    struct key key;
    dnnl_primitive_t primitive; /* NULL: oneDNN cannot; through fp32 */
    dnnl_primitive_t pack; /* brings B into the order of `packed`, packed_at bytes into the scratch; NULL: B stays as it is */
    dnnl_memory_desc_t a, b, packed, c, bias, scratch;
    size_t packed_at, scratch_bytes;
    uint64_t wanted; /* in which prepared work it was last */
};
struct matmul_plans {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct plan plan[MAX_PLANS];
    int n, next; /* next: the one that gives way when all are taken */
    uint64_t work;  /* 1 and on */
};

static int check(dnnl_status_t st, const char *what, struct err *e)
{
    if (st == dnnl_success)
        return 0;
    return err_set(e, st == dnnl_out_of_memory ? ERR_NOMEM : ERR_DEVICE, "oneDNN: %s: status %d",
                   what, (int)st);
}

static void plan_clear(struct plan *p)
{
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->pack)
        dnnl_primitive_destroy(p->pack);
    memset(p, 0, sizeof *p);
}

int matmul_plans_new(struct matmul_plans **plans, struct err *e)
{
    struct matmul_plans *s = calloc(1, sizeof *s);

    *plans = s;
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->work = 1;
    TRY(check(dnnl_engine_create(&s->engine, dnnl_cpu, 0), "no engine", e));
    return check(dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags),
                 "no stream", e);
}

void matmul_plans_free(struct matmul_plans *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        plan_clear(&s->plan[i]);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    if (s->engine)
        dnnl_engine_destroy(s->engine);
    free(s);
}

size_t matmul_plans_bytes(const struct matmul_plans *s)
{
    return s ? sizeof *s : 0;
}

bool matmul_has_bf16(const char **how)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    bool bf16 = (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
    bool amx = (isa & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;

    *how = amx ? "bf16 by AMX" : bf16 ? "bf16 by AVX-512" : "bf16 through fp32";
    return bf16;
}

static dnnl_status_t describe(dnnl_memory_desc_t *md, int64_t rows, int64_t cols, int64_t ld,
                              bool trans, dnnl_data_type_t type)
{
    dnnl_dims_t dims = {rows, cols}, strides = {trans ? 1 : ld, trans ? ld : 1};

    return dnnl_memory_desc_init_by_strides(md, 2, dims, type, strides);
}

/* Whether B is brought into oneDNN's own order first, which gives the same bits and pays from so many rows on; of a B that is
 * read transposed it takes longer. */
static bool packs(const struct matmul *p, bool alone)
{
    return !alone && !p->ragged && p->m >= (p->trans_b ? 4096 : 1024);
}

/* Fills plan->pack and what belongs to it, if the product wants B in another order than it has. */
static dnnl_status_t plan_pack(struct matmul_plans *s, struct plan *plan)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    if (dnnl_memory_desc_equal(&plan->packed, &plan->b))
        return dnnl_success;
    if ((st = dnnl_reorder_primitive_desc_create(&pd, &plan->b, s->engine, &plan->packed, s->engine, NULL)))
        return st;
    st = dnnl_primitive_create(&plan->pack, pd);
    dnnl_primitive_desc_destroy(pd);
    plan->packed_at = (plan->scratch_bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    plan->scratch_bytes = plan->packed_at + dnnl_memory_desc_get_size(&plan->packed);
    return st;
}

/* Fills plan->primitive and the rest; status dnnl_unimplemented leaves it NULL. */
static dnnl_status_t plan_make(struct matmul_plans *s, struct plan *plan, const struct matmul *p, bool pack)
{
    dnnl_dims_t dims_b = {p->k, p->n};
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_data_type_t type_c = p->dt_c == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_status_t st;

    if ((st = describe(&plan->a, p->m, p->k, p->lda, p->trans_a, dnnl_bf16)) ||
        (st = describe(&plan->b, p->k, p->n, p->ldb, p->trans_b, dnnl_bf16)) ||
        (st = pack ? dnnl_memory_desc_init_by_tag(&plan->packed, 2, dims_b, dnnl_bf16, dnnl_format_tag_any)
                   : describe(&plan->packed, p->k, p->n, p->ldb, p->trans_b, dnnl_bf16)) ||
        (st = describe(&plan->c, p->m, p->n, p->ldc, false, type_c)) ||
        (st = describe(&plan->bias, 1, p->n, p->n, false, dnnl_bf16)) ||
        (st = dnnl_matmul_desc_init(&desc, &plan->a, &plan->packed, p->bias ? &plan->bias : NULL, &plan->c)) ||
        (st = dnnl_primitive_attr_create(&attr)))
        return st;
    st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!st && p->beta == 1 && !(st = dnnl_post_ops_create(&post)) &&
        !(st = dnnl_post_ops_append_sum(post, 1.0f)))
        st = dnnl_primitive_attr_set_post_ops(attr, post);
    if (!st)
        st = dnnl_primitive_desc_create(&pd, &desc, attr, s->engine, NULL);
    if (!st && !(st = dnnl_primitive_create(&plan->primitive, pd))) {
        plan->scratch = *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        plan->scratch_bytes = dnnl_memory_desc_get_size(&plan->scratch);
        plan->packed = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
        st = plan_pack(s, plan);
    }
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (post)
        dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

/* alone: for one thread, whatever the team. */
static int plan_get(struct matmul_plans *s, const struct matmul *p, bool alone, struct plan **out, struct err *e)
{
    struct key key;
    struct plan *plan = NULL;
    dnnl_status_t st;

    memset(&key, 0, sizeof key); /* compared as bytes */
    key.m = p->m;
    key.n = p->n;
    key.k = p->k;
    key.lda = p->lda;
    key.ldb = p->ldb;
    key.ldc = p->ldc;
    key.trans = p->trans_a | p->trans_b << 1;
    key.dt_c = p->dt_c;
    key.beta = p->beta == 1;
    key.bias = p->bias != NULL;
    key.alone = alone;
    key.pack = packs(p, alone);
    for (int i = 0; i < s->n; i++)
        if (memcmp(&s->plan[i].key, &key, sizeof key) == 0) {
            *out = &s->plan[i];
            return 0;
        }
    if (s->n < MAX_PLANS) {
        plan = &s->plan[s->n++];
    } else {
        while (s->plan[s->next].wanted == s->work)
            s->next = (s->next + 1) % MAX_PLANS;
        plan = &s->plan[s->next];
        s->next = (s->next + 1) % MAX_PLANS;
        plan_clear(plan);
    }
    st = plan_make(s, plan, p, key.pack);
    if (st != dnnl_success) {
        plan_clear(plan);
        if (st != dnnl_unimplemented)
            return check(st, "cannot plan a product", e);
    }
    plan->key = key;
    *out = plan;
    return 0;
}

/* What a primitive reads or writes. */
struct argument {
    int arg;
    const dnnl_memory_desc_t *md;
    const void *p;
};

static int run_primitive(struct matmul_plans *s, dnnl_primitive_t primitive, const struct argument *all, int n_all, struct err *e)
{
    dnnl_exec_arg_t args[5];
    dnnl_status_t st = dnnl_success;
    int n = 0;

    for (int i = 0; i < n_all && !st; i++) {
        args[n].arg = all[i].arg;
        st = dnnl_memory_create(&args[n].memory, all[i].md, s->engine, (void *)(uintptr_t)all[i].p);
        n += !st;
    }
    st = st ? st : dnnl_primitive_execute(primitive, s->stream, n, args);
    st = st ? st : dnnl_stream_wait(s->stream);
    for (int i = 0; i < n; i++)
        dnnl_memory_destroy(args[i].memory);
    return check(st, "product failed", e);
}

/* By any thread; scratch: what the plan asks for. */
static int execute(struct matmul_plans *s, const struct plan *plan, const struct matmul *p, void *scratch, struct err *e)
{
    void *packed = (char *)scratch + plan->packed_at;
    const struct argument pack[] = {{DNNL_ARG_FROM, &plan->b, p->b}, {DNNL_ARG_TO, &plan->packed, packed}};
    const struct argument product[] = {
        {DNNL_ARG_SRC, &plan->a, p->a}, {DNNL_ARG_WEIGHTS, &plan->packed, plan->pack ? packed : p->b},
        {DNNL_ARG_DST, &plan->c, p->c}, {DNNL_ARG_SCRATCHPAD, &plan->scratch, scratch}, {DNNL_ARG_BIAS, &plan->bias, p->bias}};

    if (plan->pack)
        TRY(run_primitive(s, plan->pack, pack, 2, e));
    return run_primitive(s, plan->primitive, product, p->bias ? 5 : 4, e);
}

/* fp32; a bias is put into C first and accumulated upon. */
static int sgemm(struct device *dev, const struct matmul *p, struct err *e)
{
    float *c = p->c;

    if (p->bias) {
#pragma omp parallel for num_threads(cpu_team(dev, p->m * p->n)) schedule(static)
        for (int64_t i = 0; i < p->m; i++)
            memcpy(c + i * p->ldc, p->bias, (size_t)p->n * sizeof *c);
    }
    return check(dnnl_sgemm(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m, p->n, p->k, 1.0f,
                            p->a, p->lda, p->b, p->ldb, p->bias ? 1.0f : p->beta, c, p->ldc),
                 "product failed", e);
}

/* rows x cols, rows ld apart, to a dense fp32 copy. */
static void widen(struct device *dev, float *out, const void *x, int64_t rows, int64_t cols,
                  int64_t ld)
{
    const uint16_t *h = x;

#pragma omp parallel for num_threads(cpu_team(dev, rows * cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            out[i * cols + j] = bf16_to(h[i * ld + j]);
}

/* bf16 operands on a processor that cannot multiply them. */
static int through_fp32(struct device *dev, const struct matmul *p, struct err *e)
{
    struct matmul q = *p;
    int64_t na = p->m * p->k, nb = p->k * p->n, nc = p->dt_c == DTYPE_BF16 ? p->m * p->n : 0;
    uint16_t *c16 = p->c;
    void *mem;
    float *a, *b, *c, *bias;

    TRY(cpu_scratch(dev, &mem, (size_t)(na + nb + nc + p->n) * sizeof(float), e));
    a = mem;
    b = a + na;
    c = b + nb;
    bias = c + nc;
    q.lda = p->trans_a ? p->m : p->k;
    q.ldb = p->trans_b ? p->k : p->n;
    widen(dev, a, p->a, p->trans_a ? p->k : p->m, q.lda, p->lda);
    widen(dev, b, p->b, p->trans_b ? p->n : p->k, q.ldb, p->ldb);
    q.a = a;
    q.b = b;
    if (p->bias) {
        widen(dev, bias, p->bias, 1, p->n, p->n);
        q.bias = bias;
    }
    if (nc) {
        q.c = c;
        q.ldc = p->n;
        if (p->beta == 1)
            widen(dev, c, c16, p->m, p->n, p->ldc);
    }
    TRY(sgemm(dev, &q, e));
    if (nc) {
#pragma omp parallel for num_threads(cpu_team(dev, p->m * p->n)) schedule(static)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                c16[i * p->ldc + j] = bf16_of(c[i * p->n + j]);
    }
    return 0;
}

static int planned(struct device *dev, const struct matmul *p, struct err *e)
{
    struct matmul_plans *s = dev->impl->plans;
    struct plan *plan = NULL;
    void *scratch;

    TRY(plan_get(s, p, false, &plan, e));
    if (!plan->primitive)
        return through_fp32(dev, p, e);
    TRY(cpu_scratch(dev, &scratch, plan->scratch_bytes + SCRATCH_ALIGN, e));
    return execute(s, plan, p, scratch, e);
}

/* The product without its first n rows, of those that are cut. */
static void without(struct matmul *q, int64_t n)
{
    q->a = (const uint16_t *)q->a + n * q->lda; /* stored row by row, transposed or not */
    if (q->trans_a) {
        q->b = (const uint16_t *)q->b + n * q->ldb;
        q->beta = 1;
    } else {
        q->c = (char *)q->c + (size_t)(n * q->ldc) * dtype_size(q->dt_c);
    }
}

static int in_pieces(struct device *dev, const struct matmul *p, struct err *e)
{
    struct matmul q = *p;

    for (int64_t rows = p->trans_a ? p->k : p->m, n; rows; rows -= n) {
        *(p->trans_a ? &q.k : &q.m) = n = matmul_dnnl_rows(rows);
        TRY(planned(dev, &q, e));
        without(&q, n);
    }
    return 0;
}

int matmul_dnnl(struct device *dev, const struct matmul *p, struct err *e)
{
    if (p->dt == DTYPE_F32)
        return sgemm(dev, p, e);
    if (!dev->fast_bf16)
        return through_fp32(dev, p, e);
    /* A sum over rows may be cut where it is kept in fp32. */
    if (p->ragged && !(p->trans_a && (p->trans_b || p->dt_c == DTYPE_BF16 || p->bias)))
        return in_pieces(dev, p, e);
    return planned(dev, p, e);
}

/* ---- products side by side, a thread each ---- */

void matmul_dnnl_begin(struct device *dev)
{
    dev->impl->plans->work++;
}

int matmul_dnnl_prepare(struct device *dev, const struct matmul *p, size_t *scratch, struct err *e)
{
    struct matmul_plans *s = dev->impl->plans;
    struct plan *plan = NULL;
    int rc;

    omp_set_num_threads(1); /* what oneDNN goes by */
    rc = plan_get(s, p, true, &plan, e);
    omp_set_num_threads(dev->threads);
    if (rc < 0)
        return rc;
    if (!plan->primitive)
        return err_set(e, ERR_UNSUPPORTED, "oneDNN has no such product");
    plan->wanted = s->work;
    *scratch = plan->scratch_bytes > *scratch ? plan->scratch_bytes : *scratch;
    return 0;
}

int matmul_dnnl_alone(struct device *dev, const struct matmul *p, void *scratch, struct err *e)
{
    struct matmul q = *p;

    if (p->dt == DTYPE_F32)
        return sgemm(dev, p, e);
    for (int64_t rows = p->trans_a ? p->k : p->m, n; rows; rows -= n) {
        struct plan *plan = NULL;

        *(p->trans_a ? &q.k : &q.m) = n = matmul_dnnl_rows(rows);
        TRY(plan_get(dev->impl->plans, &q, true, &plan, e)); /* which is there */
        TRY(execute(dev->impl->plans, plan, &q, scratch, e));
        without(&q, n);
    }
    return 0;
}
