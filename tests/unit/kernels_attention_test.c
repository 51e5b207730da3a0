/* Attention: forward against the definition in double, gradients against its slopes. */
#include "tests/kernels.h"

struct shape {
    int64_t b, t, heads, kv, d, t_kv;
};

/* The definition, one query at a time; all tensors dense (B, rows, heads, d). */
struct problem {
    struct shape s;
    const struct dropout *drop;
    const int32_t *start;
    int64_t window;
    const double *sink; /* (heads) or NULL */
    double cap;
    double scale, *q, *k, *v, *o, *lse, *dout;
    double *most; /* (heads) or NULL: the largest logits, 0 at least */
};

static void query_ref(struct problem *p, int64_t b, int64_t h, int64_t i)
{
    struct shape s = p->s;
    int64_t kh = h / (s.heads / s.kv), bh = b * s.heads + h, seen = i + 1 + s.t_kv - s.t;
    int64_t first = p->start ? p->start[b * s.t + i] : 0, far = p->window ? seen - p->window : 0;
    const double *q = p->q + ((b * s.t + i) * s.heads + h) * s.d;
    double *o = p->o + ((b * s.t + i) * s.heads + h) * s.d, *w = malloc((size_t)seen * sizeof *w);
    double max = -INFINITY, sum = 0;

    first = first < far ? far : first;
    for (int64_t j = first; j < seen; j++) {
        w[j] = 0;
        for (int64_t c = 0; c < s.d; c++)
            w[j] += p->scale * q[c] * p->k[((b * s.t_kv + j) * s.kv + kh) * s.d + c];
        w[j] = p->cap > 0 ? p->cap * tanh(w[j] / p->cap) : w[j];
        max = fmax(max, w[j]);
        if (p->most)
            p->most[h] = fmax(p->most[h], w[j]);
    }
    if (p->sink) {
        max = fmax(max, p->sink[h]);
        sum = exp(p->sink[h] - max);
    }
    for (int64_t j = first; j < seen; j++)
        sum += exp(w[j] - max);
    for (int64_t c = 0; c < s.d; c++)
        o[c] = 0;
    for (int64_t j = first; j < seen; j++) {
        double pr = exp(w[j] - max) / sum * tn_drop_factor(p->drop, bh * s.t_kv + j, i, s.t);

        for (int64_t c = 0; c < s.d; c++)
            o[c] += pr * p->v[((b * s.t_kv + j) * s.kv + kh) * s.d + c];
    }
    p->lse[bh * s.t + i] = max + log(sum);
    free(w);
}

static void forward_ref(struct problem *p)
{
    for (int64_t b = 0; b < p->s.b; b++)
        for (int64_t h = 0; h < p->s.heads; h++)
            for (int64_t i = 0; i < p->s.t; i++)
                query_ref(p, b, h, i);
}

static double loss_ref(void *ctx)
{
    struct problem *p = ctx;
    double sum = 0;

    forward_ref(p);
    for (int64_t i = 0; i < p->s.b * p->s.t * p->s.heads * p->s.d; i++)
        sum += p->o[i] * p->dout[i];
    return sum;
}

static struct attention_view view(struct tn *t, int64_t at, int64_t batch, int64_t row)
{
    struct attention_view v = {(char *)t->p + (size_t)at * dtype_size(t->dt), batch, row};
    return v;
}

/* Dense tensors as an op's argument. */
static struct attention args(const struct shape *s, struct tn *q, struct tn *k, struct tn *v,
                             struct tn *o, struct tn *lse, const struct dropout *drop)
{
    int64_t row = s->heads * s->d, kv = s->kv * s->d;
    struct attention p = {.b = s->b, .t = s->t, .heads = s->heads, .kv_heads = s->kv, .d = s->d,
                          .t_kv = s->t_kv, .scale = (float)(1 / sqrt((double)s->d)), .drop = drop};

    p.q = view(q, 0, s->t * row, row);
    p.k = view(k, 0, s->t_kv * kv, kv);
    p.v = view(v, 0, s->t_kv * kv, kv);
    p.o = view(o, 0, s->t * row, row);
    p.lse = lse ? lse->p : NULL;
    return p;
}

/* Where the document of each of (b, t) tokens begins, made up. */
static int32_t *documents(int64_t b, int64_t t)
{
    int32_t *start = malloc((size_t)(b * t) * sizeof *start);
    uint32_t x = 12345;

    for (int64_t i = 0; i < b * t; i++) {
        x = x * 1664525 + 1013904223;
        start[i] = i % t == 0 ? 0 : x >> 24 < 20 || (x >> 24 < 90 && i % 100 < 20) ? (int32_t)(i % t) : start[i - 1];
    }
    return start;
}

/* With each kind of element, with dropout and documents or without, and these. */
enum { MORE = 7, KINDS = 8 * MORE };
static const struct more {
    int64_t window;
    int sinks; /* 1: of 0; 2: learned */
    float cap;
} more[MORE] = {{0, 0, 0}, {1, 0, 0}, {43, 0, 0}, {0, 1, 0}, {17, 2, 0}, {0, 0, 1.25f}, {43, 2, 20}};

/* Heads' sinks, on either side of the logits. */
static struct tn sinks_of(enum dtype dt, int64_t heads)
{
    return tn_random(dt, heads, 74, 2, 0);
}

/* Gives both what kind k has. */
static void more_of(struct problem *p, struct attention *a, const struct more *m, struct tn *sink)
{
    static const double zero[8];

    p->window = a->window = m->window;
    p->sink = m->sinks == 2 ? sink->v : m->sinks ? zero : NULL;
    a->sink = m->sinks == 2 ? sink->p : NULL;
    a->sink_zero = m->sinks == 1;
    p->cap = (double)(a->cap = m->cap);
}

static const struct dropout drop = {.p = 0.25f, .key = 99, .stream = 3, .row0 = 0};

static void forward_equals_the_definition(void **st)
{
    const struct shape shapes[] = {
        {1, 1, 1, 1, 1, 1},      {2, 5, 3, 1, 8, 5},      {1, 9, 2, 2, 16, 9},
        {1, 64, 2, 2, 64, 64},   {2, 65, 4, 2, 20, 65},   {1, 130, 1, 1, 64, 130},
        {1, 200, 2, 1, 80, 200}, {1, 1, 4, 2, 64, 77},    {2, 3, 4, 4, 10, 70},
        {1, 20, 2, 1, 33, 150},  {1, 70, 1, 1, 256, 100}, {1, 8, 1, 1, 128, 8}};

    (void)st;
    for (size_t k = 0; k < KINDS * sizeof shapes / sizeof *shapes; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        const struct dropout *d = k / 2 % 2 ? &drop : NULL;
        struct shape s = shapes[k / KINDS];
        int32_t *start = k / 4 % 2 && s.t == s.t_kv ? documents(s.b, s.t) : NULL;
        const struct more *kind = &more[k / 8 % MORE];
        int64_t nq = s.b * s.t * s.heads * s.d, nk = s.b * s.t_kv * s.kv * s.d;
        struct tn q = tn_random(dt, nq, 70, 1.5, 0), key = tn_random(dt, nk, 71, 1.5, 0);
        struct tn v = tn_random(dt, nk, 72, 1, 0), o[3], lse[3];
        struct problem p = {.s = s, .drop = d, .start = start, .scale = (double)(float)(1 / sqrt((double)s.d)),
                            .q = q.v, .k = key.v, .v = v.v, .o = tn_doubles(nq),
                            .lse = tn_doubles(s.b * s.heads * s.t), .most = tn_doubles(s.heads)};
        struct tn sink = sinks_of(dt, s.heads), most;
        struct attention a = {0};

        more_of(&p, &a, kind, &sink);
        forward_ref(&p);
        for (int i = 0; i < 3; i++) {

            o[i] = tn_poison(dt, nq);
            lse[i] = tn_poison(DTYPE_F32, s.b * s.heads * s.t);
            a = args(&s, &q, &key, &v, &o[i], &lse[i], d);
            a.start = start;
            more_of(&p, &a, kind, &sink);
            most = tn_random(DTYPE_F32, s.heads, 1, 0, 0);
            a.most = kind->cap > 0 ? NULL : most.p;
            OK(attention_fwd_cpu(tn_devices[i], dt, &a, &tn_err));
            if (a.most)
                tn_near("the largest logits", &most, p.most, 1e-6, 1);
            tn_near("o", &o[i], p.o, 1e-5, 1);
            tn_near("lse", &lse[i], p.lse, 1e-6, 2);
            tn_same("o", &o[0], &o[i]);
            tn_same("lse", &lse[0], &lse[i]);
        }
        struct tn alone = tn_poison(dt, nq);
        a = args(&s, &q, &key, &v, &alone, NULL, d);
        a.start = start;
        more_of(&p, &a, kind, &sink);
        OK(attention_fwd_cpu(tn_devices[1], dt, &a, &tn_err));
        tn_same("o without lse", &o[0], &alone);
        free(start);
    }
}

static void gradients_are_slopes(void **st)
{
    const struct shape shapes[] = {{1, 3, 1, 1, 4, 3},   {2, 5, 2, 1, 6, 5}, {1, 17, 2, 2, 16, 17},
                                   {1, 66, 1, 1, 3, 66}, {1, 4, 4, 2, 20, 9}, {1, 70, 2, 1, 5, 140}, {1, 150, 1, 1, 3, 150},
                                   {1, 66, 1, 1, 1, 69}};

    (void)st;
    for (size_t k = 0; k < KINDS * sizeof shapes / sizeof *shapes; k++) {
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        const struct dropout *d = k / 2 % 2 ? &drop : NULL;
        struct shape s = shapes[k / KINDS];
        int32_t *start = k / 4 % 2 && s.t == s.t_kv ? documents(s.b, s.t) : NULL;
        const struct more *kind = &more[k / 8 % MORE];
        int64_t nq = s.b * s.t * s.heads * s.d, nk = s.b * s.t_kv * s.kv * s.d;
        int64_t row = s.heads * s.d, kv = s.kv * s.d;
        struct tn q = tn_random(dt, nq, 70, 1, 0), key = tn_random(dt, nk, 71, 1, 0);
        struct tn v = tn_random(dt, nk, 72, 1, 0), dout = tn_random(dt, nq, 73, 1, 0);
        struct tn o = tn_poison(dt, nq), lse = tn_poison(DTYPE_F32, s.b * s.heads * s.t);
        struct tn g[3][4];
        struct problem p = {.s = s, .drop = d, .start = start, .scale = (double)(float)(1 / sqrt((double)s.d)),
                            .q = q.v, .k = key.v, .v = v.v, .dout = dout.v, .o = tn_doubles(nq),
                            .lse = tn_doubles(s.b * s.heads * s.t)};
        struct attention a = args(&s, &q, &key, &v, &o, &lse, d);
        struct tn sink = sinks_of(dt, s.heads);
        double *in[4] = {q.v, key.v, v.v, sink.v};
        int64_t n[4] = {nq, nk, nk, kind->sinks == 2 ? s.heads : 0}, step = nq > 200 ? 37 : 1;

        a.start = start;
        more_of(&p, &a, kind, &sink);
        OK(attention_fwd_cpu(tn_devices[0], dt, &a, &tn_err));
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++)
                g[i][j] = tn_poison(dt, n[j]);
            g[i][3] = tn_poison(DTYPE_F32, s.heads);
            memset(g[i][3].p, 0, (size_t)s.heads * sizeof(float)); /* added to */
            a.dsink = n[3] ? g[i][3].p : NULL;
            OK(attention_bwd_cpu(tn_devices[i], dt, &a, view(&dout, 0, s.t * row, row),
                                 view(&g[i][0], 0, s.t * row, row),
                                 view(&g[i][1], 0, s.t_kv * kv, kv),
                                 view(&g[i][2], 0, s.t_kv * kv, kv), &tn_err));
            for (int j = 0; j < 4; j++)
                tn_same("gradient", &g[0][j], &g[i][j]);
        }
        for (int j = 0; j < 4; j++)
            for (int64_t i = 0; i < n[j]; i += step) {
                double want = tn_slope(loss_ref, &p, &in[j][i], 1e-4), got = tn_at(&g[0][j], i);
                /* bf16: o is rounded, and delta with it */
                double tol = dt == DTYPE_BF16 ? 1.5e-2 : 5e-6;

                if (!(fabs(got - want) <= tol * (fabs(want) + 2)))
                    fail_msg("shape %zu d%c[%lld]: %g, should be %g", k, "qkvs"[j], (long long)i,
                             got, want);
            }
        free(start);
    }
}

/* Where bf16 is not multiplied, tensors of it give what the same numbers in fp32 do, rounded. */
static void without_products_of_bf16_all_is_fp32(void **st)
{
    const struct shape s = {2, 131, 4, 2, 20, 131};
    int64_t row = s.heads * s.d, kv = s.kv * s.d, nq = s.b * s.t * row, nk = s.b * s.t * kv;
    struct tn in[2][4], o[2], lse[2], g[2][3];

    (void)st;
    for (int i = 0; i < 2; i++) {
        enum dtype dt = i ? DTYPE_BF16 : DTYPE_F32;
        struct device *dev = tn_devices[i];
        bool fast = dev->fast_bf16;

        for (int j = 0; j < 4; j++)
            in[i][j] = tn_random(DTYPE_BF16, j % 3 ? nk : nq, (uint64_t)(60 + j), 1, 0);
        o[i] = tn_poison(dt, nq);
        lse[i] = tn_poison(DTYPE_F32, s.b * s.heads * s.t);
        for (int j = 0; j < 4 && dt == DTYPE_F32; j++) {
            struct tn wide = tn_poison(dt, in[i][j].n);

            for (int64_t n = 0; n < wide.n; n++)
                tn_set(&wide, n, tn_at(&in[i][j], n));
            in[i][j] = wide;
        }
        struct attention a = args(&s, &in[i][0], &in[i][1], &in[i][2], &o[i], &lse[i], &drop);

        a.window = 70;
        a.cap = 3;
        a.sink_zero = true;
        dev->fast_bf16 = false;
        OK(attention_fwd_cpu(dev, dt, &a, &tn_err));
        for (int64_t n = 0; n < nq && dt == DTYPE_F32; n++) /* as backward sees it in bf16 */
            tn_set(&o[i], n, (double)bf16_to(bf16_of((float)tn_at(&o[i], n))));
        for (int j = 0; j < 3; j++)
            g[i][j] = tn_poison(dt, j ? nk : nq);
        OK(attention_bwd_cpu(dev, dt, &a, view(&in[i][3], 0, s.t * row, row), view(&g[i][0], 0, s.t * row, row),
                             view(&g[i][1], 0, s.t * kv, kv), view(&g[i][2], 0, s.t * kv, kv), &tn_err));
        dev->fast_bf16 = fast;
    }
    tn_same("lse", &lse[0], &lse[1]);
    for (int j = 0; j < 4; j++) {
        struct tn *wide = j ? &g[0][j - 1] : &o[0], *got = j ? &g[1][j - 1] : &o[1];

        tn_whole("in bf16", got);
        for (int64_t n = 0; n < got->n; n++)
            assert_true(((uint16_t *)got->p)[n] == bf16_of(((float *)wide->p)[n]));
    }
}

static void packed_views_work_in_place(void **st)
{
    const struct shape s = {2, 70, 4, 2, 24, 70};
    int64_t row = (s.heads + 2 * s.kv) * s.d, at_k = s.heads * s.d, at_v = at_k + s.kv * s.d;
    struct tn qkv = tn_random(DTYPE_F32, s.b * s.t * row, 80, 1, 0);
    struct tn grad = tn_poison(DTYPE_F32, s.b * s.t * row), part[6];
    struct tn o = tn_poison(DTYPE_F32, s.b * s.t * s.heads * s.d), o2 = tn_copy(&o);
    struct tn lse = tn_poison(DTYPE_F32, s.b * s.t * s.heads);
    struct tn dout = tn_random(DTYPE_F32, o.n, 81, 1, 0);
    int64_t at[3] = {0, at_k, at_v}, wide[3] = {at_k, s.kv * s.d, s.kv * s.d};
    struct attention a, b;

    (void)st;
    for (int j = 0; j < 6; j++) {
        part[j] = tn_poison(DTYPE_F32, s.b * s.t * wide[j % 3]);
        for (int64_t i = 0; i < part[j].n && j < 3; i++)
            tn_set(&part[j], i, qkv.v[i / wide[j] * row + at[j] + i % wide[j]]);
    }
    a = args(&s, &part[0], &part[1], &part[2], &o, &lse, NULL);
    OK(attention_fwd_cpu(tn_devices[1], DTYPE_F32, &a, &tn_err));
    OK(attention_bwd_cpu(tn_devices[1], DTYPE_F32, &a, view(&dout, 0, s.t * at_k, at_k),
                         view(&part[3], 0, s.t * wide[0], wide[0]),
                         view(&part[4], 0, s.t * wide[1], wide[1]),
                         view(&part[5], 0, s.t * wide[2], wide[2]), &tn_err));
    b = a;
    b.q = view(&qkv, 0, s.t * row, row);
    b.k = view(&qkv, at_k, s.t * row, row);
    b.v = view(&qkv, at_v, s.t * row, row);
    b.o = view(&o2, 0, s.t * at_k, at_k);
    OK(attention_fwd_cpu(tn_devices[2], DTYPE_F32, &b, &tn_err));
    tn_same("o", &o, &o2);
    OK(attention_bwd_cpu(tn_devices[2], DTYPE_F32, &b, view(&dout, 0, s.t * at_k, at_k),
                         view(&grad, 0, s.t * row, row), view(&grad, at_k, s.t * row, row),
                         view(&grad, at_v, s.t * row, row), &tn_err));
    tn_whole("packed", &grad);
    for (int j = 0; j < 3; j++)
        for (int64_t i = 0; i < part[j].n; i++)
            assert_true(tn_at(&part[3 + j], i) ==
                        tn_at(&grad, i / wide[j] * row + at[j] + i % wide[j]));
}

static void a_cache_gives_the_same_answers(void **st)
{
    const struct shape all = {1, 150, 4, 2, 64, 150};
    int64_t row = all.heads * all.d, kv = all.kv * all.d;
    struct tn q = tn_random(DTYPE_F32, all.t * row, 90, 1, 0);
    struct tn k = tn_random(DTYPE_F32, all.t * kv, 91, 1, 0), v = tn_random(DTYPE_F32, k.n, 92, 1, 0);
    struct tn o = tn_poison(DTYPE_F32, q.n), one = tn_poison(DTYPE_F32, row);
    struct attention a = args(&all, &q, &k, &v, &o, NULL, NULL);

    (void)st;
    for (int64_t n = 0; n < 2 * all.t; n += 7) {
        int64_t i = n % all.t;
        struct shape s = {1, 1, 4, 2, 64, i + 1};
        struct attention c = args(&s, &q, &k, &v, &one, NULL, NULL);

        c.window = a.window = n < all.t ? 0 : 37;
        OK(attention_fwd_cpu(tn_devices[1], DTYPE_F32, &a, &tn_err));
        c.q = view(&q, i * row, 0, row);
        OK(attention_fwd_cpu(tn_devices[2], DTYPE_F32, &c, &tn_err));
        tn_whole("one query", &one);
        for (int64_t j = 0; j < row; j++)
            assert_true(fabs(tn_at(&one, j) - tn_at(&o, i * row + j)) <= 2e-6);
    }
}

/* v from a row on, in elements of size w. */
static struct attention_view rows(struct attention_view v, int64_t row, size_t w)
{
    v.p = (char *)v.p + (size_t)(row * v.row) * w;
    return v;
}

/* A sequence in two stretches: the first one's queries in one call, those of the second in two, of the keys of either first. */
struct cut {
    struct attention whole;
    enum dtype dt;
    int64_t from[2], len[2];
    int first; /* stretch of the keys that the second one's queries see first: with documents their own */
    int32_t *start[2]; /* of documents */
    struct tn dout, sum, lse[2], grad[3];
};

static void cut_call(struct cut *c, struct device *dev, int call, bool back)
{
    int query = call > 0, keys = call == 1 ? c->first : call == 2 ? 1 - c->first : 0;
    int64_t t = c->whole.t, row = c->whole.heads * c->whole.d, kv = c->whole.kv_heads * c->whole.d;
    size_t w = dtype_size(c->dt), f = sizeof(float);
    struct attention a = c->whole;
    struct attention_view dout = rows(view(&c->dout, 0, t * row, row), c->from[query], w);

    a.t = c->len[query];
    a.t_kv = c->len[keys];
    a.full = keys < query;
    a.block = call < 2 ? ATTENTION_FIRST : ATTENTION_FURTHER;
    a.q = rows(a.q, c->from[query], w);
    a.k = rows(a.k, c->from[keys], w);
    a.v = rows(a.v, c->from[keys], w);
    a.o = back ? rows(a.o, c->from[query], w) : rows(view(&c->sum, 0, t * row, row), c->from[query], f);
    a.lse = c->lse[query].p;
    a.start = c->start[query];
    a.all_t = t;
    a.first_query = c->from[query];
    a.first_key = c->from[keys];
    if (!back)
        OK(attention_fwd_cpu(dev, c->dt, &a, &tn_err));
    else
        OK(attention_bwd_cpu(dev, c->dt, &a, dout, rows(view(&c->grad[0], 0, t * row, row), c->from[query], f),
                             rows(view(&c->grad[1], 0, t * kv, kv), c->from[keys], f),
                             rows(view(&c->grad[2], 0, t * kv, kv), c->from[keys], f), &tn_err));
}

/* The whole's documents, and those of the stretches. */
static void cut_documents(struct cut *c)
{
    int64_t b = c->whole.b, t = c->whole.t;
    int32_t *all = documents(b, t);

    c->whole.start = all;
    c->first = 1;
    for (int j = 0; j < 2; j++) {
        c->start[j] = malloc((size_t)(b * c->len[j]) * sizeof *all);
        for (int64_t i = 0; i < b * c->len[j]; i++)
            c->start[j][i] = all[i / c->len[j] * t + c->from[j] + i % c->len[j]];
    }
}

static void close_to(struct tn *got, struct tn *want, double tol)
{
    tn_whole("in blocks", got);
    for (int64_t i = 0; i < want->n; i++)
        assert_true(fabs(tn_at(got, i) - tn_at(want, i)) <= tol * (fabs(tn_at(want, i)) + 1));
}

static void blocks_make_the_whole(void **st)
{
    const struct shape shapes[] = {{2, 13, 2, 1, 8, 13}, {1, 150, 4, 2, 20, 150}, {1, 130, 1, 1, 64, 130}, {1, 9, 2, 2, 200, 9}};
    const int64_t cuts[] = {6, 67, 63, 1};

    (void)st;
    for (int k = 0; k < 64; k++) {
        struct shape s = shapes[k / 16];
        enum dtype dt = k % 2 ? DTYPE_BF16 : DTYPE_F32;
        double tol = dt == DTYPE_BF16 ? 0x1p-8 : 5e-6;
        int64_t row = s.heads * s.d, kv = s.kv * s.d;
        struct tn q = tn_random(dt, s.b * s.t * row, 50, 1, 0), key = tn_random(dt, s.b * s.t * kv, 51, 1, 0);
        struct tn v = tn_random(dt, key.n, 52, 1, 0), o = tn_poison(dt, q.n), lse = tn_poison(DTYPE_F32, s.b * s.heads * s.t);
        struct tn want[3] = {tn_poison(dt, q.n), tn_poison(dt, key.n), tn_poison(dt, key.n)}, one[3];
        struct cut c = {.dt = dt, .from = {0, cuts[k / 16]}, .len = {cuts[k / 16], s.t - cuts[k / 16]}, .first = k / 16 % 2,
                        .dout = tn_random(dt, q.n, 53, 1, 0)};

        c.whole = args(&s, &q, &key, &v, &o, &lse, k / 2 % 2 ? &drop : NULL);
        if (k / 4 % 2)
            cut_documents(&c);
        if (k / 8 % 2) { /* which hides the other half's keys from some */
            c.whole.window = 5;
            c.whole.sink_zero = true;
            c.whole.cap = 1.5f;
            c.first = 1;
        }
        OK(attention_fwd_cpu(tn_devices[0], dt, &c.whole, &tn_err));
        OK(attention_bwd_cpu(tn_devices[0], dt, &c.whole, view(&c.dout, 0, s.t * row, row), view(&want[0], 0, s.t * row, row),
                             view(&want[1], 0, s.t * kv, kv), view(&want[2], 0, s.t * kv, kv), &tn_err));
        for (int i = 0; i < 3; i++) {
            c.sum = tn_poison(DTYPE_F32, q.n);
            for (int j = 0; j < 2; j++)
                c.lse[j] = tn_poison(DTYPE_F32, s.b * s.heads * c.len[j]);
            for (int j = 0; j < 3; j++) {
                c.grad[j] = tn_poison(DTYPE_F32, want[j].n);
                memset(c.grad[j].p, 0, (size_t)want[j].n * sizeof(float));
            }
            for (int call = 0; call < 6; call++)
                cut_call(&c, tn_devices[i], call % 3, call >= 3);
            close_to(&c.sum, &o, tol);
            for (int j = 0; j < 3; j++) {
                close_to(&c.grad[j], &want[j], tol);
                one[j] = i ? one[j] : c.grad[j];
                tn_same("gradient", &one[j], &c.grad[j]);
            }
            for (int j = 0; j < 2; j++)
                for (int64_t n = 0; n < c.lse[j].n; n++)
                    assert_true(fabs(tn_at(&c.lse[j], n) - tn_at(&lse, n / c.len[j] * s.t + c.from[j] + n % c.len[j])) <= 2e-5);
        }
        free((void *)(uintptr_t)c.whole.start);
        free(c.start[0]);
        free(c.start[1]);
    }
}

/* Each of the documents in a sequence by itself. */
static void a_document_is_as_if_alone(void **st)
{
    const int64_t begin[] = {0, 5, 6, 70, 134, 200};
    const struct shape all = {1, 200, 2, 1, 32, 200};
    int64_t row = all.heads * all.d, kv = all.kv * all.d;
    struct tn q = tn_random(DTYPE_F32, all.t * row, 90, 1, 0), k = tn_random(DTYPE_F32, all.t * kv, 91, 1, 0);
    struct tn v = tn_random(DTYPE_F32, k.n, 92, 1, 0), o = tn_poison(DTYPE_F32, q.n);
    struct attention a = args(&all, &q, &k, &v, &o, NULL, NULL);
    int32_t start[200];

    (void)st;
    for (int d = 0; d < 5; d++)
        for (int64_t i = begin[d]; i < begin[d + 1]; i++)
            start[i] = (int32_t)begin[d];
    a.start = start;
    OK(attention_fwd_cpu(tn_devices[1], DTYPE_F32, &a, &tn_err));
    for (int d = 0; d < 5; d++) {
        int64_t n = begin[d + 1] - begin[d];
        struct shape s = {1, n, 2, 1, 32, n};
        struct tn one = tn_poison(DTYPE_F32, n * row);
        struct attention c = args(&s, &q, &k, &v, &one, NULL, NULL);

        c.q = rows(c.q, begin[d], sizeof(float));
        c.k = rows(c.k, begin[d], sizeof(float));
        c.v = rows(c.v, begin[d], sizeof(float));
        OK(attention_fwd_cpu(tn_devices[2], DTYPE_F32, &c, &tn_err));
        for (int64_t j = 0; j < n * row; j++)
            assert_true(fabs(tn_at(&one, j) - tn_at(&o, begin[d] * row + j)) <= 1e-6);
    }
}

static void nonsense_is_refused(void **st)
{
    float x = 0;
    struct attention_view v = {&x, 1, 1};
    const struct attention good = {.b = 1, .t = 1, .t_kv = 1, .heads = 1, .kv_heads = 1, .d = 1,
                                   .scale = 1, .q = v, .k = v, .v = v, .o = v};
    const int32_t after = 1, before = -1;
    struct attention bad[9];

    (void)st;
    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].d = 257;
    bad[1].t_kv = 0;
    bad[2].heads = 3;
    bad[2].kv_heads = 2;
    bad[3].drop = &(struct dropout){.p = 1};
    bad[4].kv_heads = 0;
    bad[5].block = ATTENTION_FIRST; /* no lse */
    bad[6].start = &after;
    bad[7].start = &before;
    bad[8].start = &after;
    bad[8].t_kv = 2;
    for (int i = 0; i < 9; i++)
        assert_int_equal(attention_fwd_cpu(tn_devices[0], DTYPE_F32, &bad[i], &tn_err), ERR_ARG);
    assert_int_equal(attention_bwd_cpu(tn_devices[0], DTYPE_F32, &good, v, v, v, v, &tn_err),
                     ERR_ARG); /* no lse */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPS_TEST(forward_equals_the_definition),
        OPS_TEST(gradients_are_slopes),
        OPS_TEST(without_products_of_bf16_all_is_fp32),
        OPS_TEST(packed_views_work_in_place),
        OPS_TEST(a_cache_gives_the_same_answers),
        OPS_TEST(blocks_make_the_whole),
        OPS_TEST(a_document_is_as_if_alone),
        OPS_TEST(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("kernels_attention", tests, tn_open, tn_close);
}
