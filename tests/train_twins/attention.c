/* Attention: whole, by the blocks of context ranks, within documents. */
#include "tests/train_twins/train_twins.h"

struct heads {
    int64_t b, t, t_kv, heads, kv, d;
    float p;
    bool documents;
    int64_t window;
    bool sinks;
    float cap;
    bool most; /* the largest logits are asked for */
    int64_t apart; /* elements that rows of gradients have besides */
};

static struct attention_view view(void *p, int64_t t, int64_t row)
{
    return (struct attention_view){p, t * row, row};
}

/* Where the document of each of (b, t) tokens at `at` and on begins: in front of them, then among them. */
struct starts {
    int block;
    int64_t documents, longest;
};
static struct starts documents(struct made *m, int64_t b, int64_t t, int64_t at)
{
    int32_t *v = host_of(m, (size_t)(b * t) * 4);
    struct starts s = {0, 0, 0};

    for (int64_t i = 0; i < b * t; i++) {
        v[i] = i % t == 0 ? (int32_t)(at / 4) : number(92, i) % 12 == 0 ? (int32_t)(at + i % t) : v[i - 1];
        s.documents += i % t == 0 || v[i] != v[i - 1];
        s.longest = i % t - v[i] + 1 > s.longest ? i % t - v[i] + 1 : s.longest;
    }
    s.block = give(m, v, (size_t)(b * t) * 4);
    return s;
}

enum { TITLE = 200 };
/* A comparison of attention in words. */
static const char *title(char *buf, const char *what, enum dtype dt, const struct heads *h)
{
    snprintf(buf, TITLE, "%s %s, %lld x %lld on %lld, %lld on %lld heads of %lld%s%s%s%s%s", what, dtype_name(dt),
             (long long)h->b, (long long)h->t, (long long)h->t_kv, (long long)h->heads, (long long)h->kv, (long long)h->d,
             h->p > 0 ? ", dropout" : "", h->documents ? ", documents" : "", h->window ? ", a window" : "",
             h->sinks ? ", sinks" : "", h->cap > 0 ? ", capped" : "");
    return buf;
}

/* q, k and v packed in rows when as many keys as queries are there, else apart; the gradients likewise. */
static void attention_with(struct made *m, enum dtype dt, const struct heads *h)
{
    int64_t qw = h->heads * h->d, kw = h->kv * h->d, row = qw + 2 * kw, n = h->b * h->t_kv * row, no = h->b * h->t * qw;
    int64_t own = row + h->apart;
    size_t es = dtype_size(dt);
    struct tensor qkv = normal(m, dt, n, 0, 80, 1, 0), o = result(m, dt, no, 0);
    struct tensor lse = result(m, DTYPE_F32, h->b * h->heads * h->t, 0);
    struct tensor dout = normal(m, dt, no, 0, 81, 1, 0), dqkv = normal(m, dt, h->b * h->t_kv * own, 0, 82, 0, 0);
    struct tensor sink = normal(m, dt, h->heads, 0, 93, 1, 0), dsink = normal(m, DTYPE_F32, h->heads, 0, 94, 1, 0);
    struct tensor most = normal(m, DTYPE_F32, h->heads, 0, 95, 0, 0.5f);
    struct dropout d = {.p = h->p, .key = 99, .stream = 3, .row0 = 40, .every = h->t};
    struct starts start = documents(m, h->b, h->t, 0);
    int now = dropout_now(m);
    char name[TITLE];
    bool own_mask;

    DEV(m, 1)->how = m->t->how;

    BOTH {
        d.now = m->on[w][now];
        char *base = on(m, w, &qkv), *g = on(m, w, &dqkv);
        struct attention p = {.b = h->b, .t = h->t, .heads = h->heads, .kv_heads = h->kv, .d = h->d, .t_kv = h->t_kv,
                              .scale = 1 / sqrtf((float)h->d), .q = view(base, h->t_kv, row),
                              .k = view(base + (size_t)qw * es, h->t_kv, row),
                              .v = view(base + (size_t)(qw + kw) * es, h->t_kv, row), .o = view(on(m, w, &o), h->t, qw),
                              .lse = on(m, w, &lse), .drop = h->p > 0 ? &d : NULL,
                              .start = h->documents ? m->on[w][start.block] : NULL,
                              .documents = start.documents, .longest = start.longest, .window = h->window, .cap = h->cap,
                              .sink = h->sinks ? on(m, w, &sink) : NULL, .dsink = h->sinks ? on(m, w, &dsink) : NULL,
                              .most = h->most ? on(m, w, &most) : NULL};
        CHECK(m, OPS(m, w)->attention_fwd(DEV(m, w), dt, &p, &m->e));
        CHECK(m, OPS(m, w)->attention_bwd(DEV(m, w), dt, &p, view(on(m, w, &dout), h->t, qw), view(g, h->t_kv, own),
                                          view(g + (size_t)qw * es, h->t_kv, own),
                                          view(g + (size_t)(qw + kw) * es, h->t_kv, own), &m->e));
    }
    own_mask = h->p > 0 && strstr(m->t->how, "cuDNN"); /* twins_attention_dropout holds what that is */
    if (!own_mask)
        near(m, title(name, "attention", dt, h), &o, dt == DTYPE_BF16 ? 0x1p-7 : 1e-5, 1);
    near(m, title(name, "log-sum-exp", dt, h), &lse, dt == DTYPE_BF16 ? 2e-5 : 2e-6, 1);
    near(m, title(name, "the largest logits", dt, h), &most, dt == DTYPE_BF16 ? 2e-5 : 2e-6, 1);
    if (!own_mask)
        near(m, title(name, "attention's gradients", dt, h), &dqkv, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
    near(m, title(name, "gradients of sinks", dt, h), &dsink, dt == DTYPE_BF16 ? 3e-2 : 1e-5,
         dt == DTYPE_BF16 ? 1 + sqrt((double)(h->b * h->t)) / 10 : 1); /* a sum of all rows', each of outputs in bf16 */
}

/* Queries of a half with keys of both, as blocks: the first half fully seen, the other one as far as it is, which comes first
 * with documents. */
static void attention_blocks(struct made *m, enum dtype dt, const struct heads *h)
{
    int64_t qw = h->heads * h->d, kw = h->kv * h->d, n = h->b * h->t * kw, no = h->b * h->t * qw;
    struct tensor q = normal(m, dt, no, 0, 83, 1, 0), k[2] = {normal(m, dt, n, 0, 84, 1, 0), normal(m, dt, n, 0, 85, 1, 0)};
    struct tensor v[2] = {normal(m, dt, n, 0, 86, 1, 0), normal(m, dt, n, 0, 87, 1, 0)}, sum = result(m, DTYPE_F32, no, 0);
    struct tensor o = result(m, dt, no, 0), lse = result(m, DTYPE_F32, h->b * h->heads * h->t, 0);
    struct tensor dout = normal(m, dt, no, 0, 88, 1, 0), dq = normal(m, DTYPE_F32, no, 0, 89, 1, 0);
    struct tensor dk = normal(m, DTYPE_F32, n, 0, 90, 1, 0), dv = normal(m, DTYPE_F32, n, 0, 91, 1, 0);
    struct tensor most = normal(m, DTYPE_F32, h->heads, 0, 95, 0, 0.5f);
    struct dropout d = {.p = h->p, .key = 99, .stream = 3, .row0 = 40};
    int start = documents(m, h->b, h->t, 2 * h->t).block;
    char name[TITLE];

    BOTH {
        struct attention p = {.b = h->b, .t = h->t, .heads = h->heads, .kv_heads = h->kv, .d = h->d, .t_kv = h->t,
                              .scale = 1 / sqrtf((float)h->d), .q = view(on(m, w, &q), h->t, qw),
                              .o = view(on(m, w, &sum), h->t, qw),
                              .lse = on(m, w, &lse), .drop = h->p > 0 ? &d : NULL, .all_heads = h->heads + 2, .first_head = 1,
                              .all_t = 3 * h->t, .first_query = 2 * h->t,
                              .start = h->documents ? m->on[w][start] : NULL, .window = h->window, .cap = h->cap,
                              .sink_zero = h->sinks, .most = h->most ? on(m, w, &most) : NULL};
        for (int j = 0; j < 2; j++) {
            int i = attention_hides(&p) ? 1 - j : j;
            p.k = view(on(m, w, &k[i]), h->t, kw);
            p.v = view(on(m, w, &v[i]), h->t, kw);
            p.first_key = i ? 2 * h->t : 0;
            p.full = i == 0;
            p.block = j ? ATTENTION_FURTHER : ATTENTION_FIRST;
            CHECK(m, OPS(m, w)->attention_fwd(DEV(m, w), dt, &p, &m->e));
        }
        CHECK(m, OPS(m, w)->vec_cast(DEV(m, w), on(m, w, &o), dt, on(m, w, &sum), DTYPE_F32, no, &m->e));
        p.o.p = on(m, w, &o);
        for (int i = 0; i < 2; i++) {
            p.k = view(on(m, w, &k[i]), h->t, kw);
            p.v = view(on(m, w, &v[i]), h->t, kw);
            p.first_key = i ? 2 * h->t : 0;
            p.full = i == 0;
            CHECK(m, OPS(m, w)->attention_bwd(DEV(m, w), dt, &p, view(on(m, w, &dout), h->t, qw), view(on(m, w, &dq), h->t, qw),
                                              view(on(m, w, &dk), h->t, kw), view(on(m, w, &dv), h->t, kw), &m->e));
        }
    }
    near(m, title(name, "attention by blocks", dt, h), &sum, dt == DTYPE_BF16 ? 0x1p-7 : 1e-5, 1);
    near(m, title(name, "their log-sum-exp", dt, h), &lse, 2e-6, 1);
    near(m, title(name, "their largest logits", dt, h), &most, dt == DTYPE_BF16 ? 2e-5 : 2e-6, 1);
    near(m, title(name, "gradients of queries", dt, h), &dq, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
    near(m, title(name, "gradients of keys", dt, h), &dk, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
    near(m, title(name, "gradients of values", dt, h), &dv, dt == DTYPE_BF16 ? 3e-2 : 1e-5, 1);
}

void twins_attention(struct twins *t)
{
    static const struct heads shape[] = {
        {2, 5, 5, 2, 1, 5, 0, false, 0, false, 0, false, 0}, {1, 1, 40, 3, 3, 64, 0, false, 0, false, 0, false, 0},
        {1, 70, 70, 2, 2, 64, 0, false, 0, false, 0, false, 0}, {1, 66, 66, 4, 2, 32, 0.3f, false, 0, false, 0, false, 0},
        {1, 33, 70, 2, 1, 128, 0, false, 0, false, 0, false, 0}, {1, 20, 20, 1, 1, 200, 0.1f, false, 0, false, 0, false, 0},
        {2, 130, 130, 2, 1, 64, 0, false, 0, false, 0, false, 0}, {2, 64, 64, 2, 2, 64, 0.2f, false, 0, true, 0, false, 0},
        {1, 80, 80, 1, 1, 96, 0, false, 0, false, 0, false, 0},
    };

    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int d = 0; d < 4; d++) {
            struct made m = {.t = t};
            struct heads h = shape[i];
            if (t->scale > 1)
                h.b *= 3, h.t *= 5, h.t_kv *= 5;
            h.documents = d > 1 && h.t == h.t_kv;
            h.most = h.documents && i % 3 == 2;
            if (d > 1 && !h.documents)
                break;
            attention_with(&m, both_types[d % 2], &h);
            forget(&m);
            m = (struct made){.t = t};
            attention_blocks(&m, both_types[d % 2], &h);
            forget(&m);
        }
    twins_attention_more(t);
    twins_attention_dropout(t);
}

/* n shapes as one of bf16, as many keys as queries. */
static void attention_of(struct twins *t, const struct heads *shape, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct made m = {.t = t};
        struct heads h = shape[i];

        if (t->scale > 1)
            h.b *= 3, h.t *= 5, h.t_kv *= 5;
        attention_with(&m, DTYPE_BF16, &h);
        forget(&m);
    }
}

void twins_attention_whole(struct twins *t)
{
    static const struct heads shape[TWINS_WHOLE] = {
        {1, 70, 70, 1, 1, 64, 0, false, 0, false, 0, false, 0}, {2, 66, 66, 4, 2, 32, 0, false, 0, false, 0, false, 0},
        {1, 128, 128, 2, 1, 64, 0, false, 0, false, 0, false, 0}, {1, 80, 80, 1, 1, 96, 0, false, 0, false, 0, false, 0},
    };

    attention_of(t, shape, TWINS_WHOLE);
}

void twins_attention_more(struct twins *t)
{
    static const struct heads shape[TWINS_MORE] = {
        {2, 70, 70, 2, 2, 64, 0, true, 0, false, 0, false, 0}, {1, 130, 130, 4, 2, 32, 0, true, 0, false, 0, false, 64},
        {1, 128, 128, 2, 1, 128, 0, true, 0, false, 0, false, 0}, {1, 128, 128, 1, 1, 192, 0, false, 0, false, 0, false, 0},
        {1, 128, 128, 2, 1, 256, 0, false, 0, false, 0, false, 0}, {1, 130, 130, 4, 2, 32, 0, true, 0, false, 0, false, 0},
        {1, 80, 80, 2, 1, 256, 0, true, 0, false, 0, false, 0},
    };

    attention_of(t, shape, TWINS_MORE);
}
