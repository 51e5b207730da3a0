/* Attention by cuDNN and by kernels of our own: whole, within documents, with dropout. */
#include "bench/gpu_train/gpu_train.h"

/* n: b, t, heads, kv heads, d, tokens of a document (0: none), percent dropped, backward */
static int run_attention(const int64_t *n)
{
    int64_t q = n[2] * n[4], kv = n[3] * n[4], row = q + 2 * kv, t = n[1];
    const struct dropout drop = {.p = (float)n[6] / 100, .key = 1, .stream = 1};
    struct attention p = {.b = n[0], .t = t, .t_kv = t, .heads = n[2], .kv_heads = n[3], .d = n[4], .scale = 0.1f,
                          .drop = n[6] ? &drop : NULL, .start = n[5] ? place[7] : NULL, .longest = n[5],
                          .documents = n[5] ? n[0] * t / n[5] : 0, .lse = place[2]};
    uint16_t *qkv = place[0], *g = place[4];

    p.q = (struct attention_view){qkv, t * row, row};
    p.k = (struct attention_view){qkv + q, t * row, row};
    p.v = (struct attention_view){qkv + q + kv, t * row, row};
    p.o = (struct attention_view){place[1], t * q, q};
    if (!n[7])
        return dev->ops->attention_fwd(dev, DTYPE_BF16, &p, &err);
    return dev->ops->attention_bwd(dev, DTYPE_BF16, &p, (struct attention_view){place[3], t * q, q},
                                   (struct attention_view){g, t * row, row},
                                   (struct attention_view){g + q, t * row, row},
                                   (struct attention_view){g + q + kv, t * row, row}, &err);
}

/* One shape, by one way. */
struct attended {
    const char *way;
    int64_t b, t, heads, kv, d, documents, drop; /* as run_attention has them */
};

/* What a training step takes is the op of plans: cuDNN's, whole sequences. */
static void planned(enum plan_op op, const struct attended *a)
{
    if (strcmp(a->way, "cudnn") == 0 && !a->documents && !a->drop)
        stands_for(op, (struct plan_dims){.m = a->b, .n = a->t, .k = a->heads, .d = a->d, .kv = a->kv});
}

/* FLOPs are those of the keys that are seen, by halves: documents of n tokens are n / 2 a query. */
static void bench_attention(const struct attended *a)
{
    double flops = 2.0 * (double)(a->b * a->heads * a->t) * (double)((a->documents ? a->documents : a->t) * a->d);
    double bytes = 2.0 * (double)(a->b * a->t * a->d * (2 * a->heads + 2 * a->kv));
    int64_t n[8] = {a->b, a->t, a->heads, a->kv, a->d, a->documents, a->drop, 0};
    char shape[120], name[80];

    snprintf(shape, sizeof shape, "%lld x %lld, %lld on %lld heads of %lld%s%s", (long long)a->b, (long long)a->t,
             (long long)a->heads, (long long)a->kv, (long long)a->d, a->documents ? ", documents" : "",
             a->drop ? ", dropout" : "");
    setenv("QUERN_ATTENTION", a->way, 1);
    snprintf(name, sizeof name, "attention, %s", a->way);
    planned(PLAN_ATTENTION, a);
    job(name, shape, run_attention, n, bytes, flops);
    snprintf(name, sizeof name, "attention backward, %s", a->way);
    planned(PLAN_ATTENTION_BACK, a);
    n[7] = 1;
    job(name, shape, run_attention, n, 2 * bytes, 2.5 * flops);
    unsetenv("QUERN_ATTENTION");
}

/* Where the document of each of b x t tokens begins, into place[7]. */
static void put_documents(int64_t b, int64_t t, int64_t each)
{
    int32_t *host = malloc((size_t)(b * t) * sizeof *host);

    for (int64_t i = 0; host && i < b * t; i++)
        host[i] = (int32_t)(i % t / each * each);
    put_integers(host, b * t);
    free(host);
}

/* The first with dropout, the second within documents of its eighth, the last of heads that our own tensor kernels lack. */
void bench_attentions(int64_t none)
{
    static const int64_t shape[][4] = {{1024, 25, 25, 64}, {4096, 32, 32, 128}, {2048, 32, 8, 64}, {2048, 16, 16, 256}};
    static const char *const ways[] = {"own", "cudnn"};

    (void)none;
    for (int i = 0; i < 4; i++)
        for (int w = i == 3; w < 2; w++) {
            const int64_t *s = shape[i], t = tokens < s[0] ? tokens : s[0];
            struct attended a = {ways[w], tokens / t, t, s[1], s[2], s[3], 0, 0};
            bench_attention(&a);
            a.drop = i == 0 ? 10 : 0;
            a.documents = i == 1 ? t / 8 : 0;
            if (a.documents)
                put_documents(a.b, t, a.documents);
            if (a.drop || a.documents)
                bench_attention(&a);
        }
}
