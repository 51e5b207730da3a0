/* Attention by cuDNN and by kernels of our own, whole and within documents. */
#include "bench/gpu_train/gpu_train.h"

/* n: b, t, heads, kv heads, d, whether there are documents, backward */
static int run_attention(const int64_t *n)
{
    int64_t q = n[2] * n[4], kv = n[3] * n[4], row = q + 2 * kv, t = n[1];
    struct attention p = {.b = n[0], .t = t, .t_kv = t, .heads = n[2], .kv_heads = n[3], .d = n[4], .scale = 0.1f,
                          .start = n[5] ? place[7] : NULL, .lse = place[2]};
    uint16_t *qkv = place[0], *g = place[4];

    p.q = (struct attention_view){qkv, t * row, row};
    p.k = (struct attention_view){qkv + q, t * row, row};
    p.v = (struct attention_view){qkv + q + kv, t * row, row};
    p.o = (struct attention_view){place[1], t * q, q};
    if (!n[6])
        return dev->ops->attention_fwd(dev, DTYPE_BF16, &p, &err);
    return dev->ops->attention_bwd(dev, DTYPE_BF16, &p, (struct attention_view){place[3], t * q, q},
                                   (struct attention_view){g, t * row, row},
                                   (struct attention_view){g + q, t * row, row},
                                   (struct attention_view){g + q + kv, t * row, row}, &err);
}

/* What a training step takes is the op of plans: cuDNN's, whole sequences. */
static void planned(enum plan_op op, const char *way, int64_t documents, const struct plan_dims *d)
{
    if (strcmp(way, "cudnn") == 0 && !documents)
        stands_for(op, *d);
}

/* Documents of so many tokens; 0: none.  FLOPs are those of the keys that are seen, by halves: documents of n tokens are n / 2 a
 * query. */
static void bench_attention(const char *way, int64_t b, int64_t t, int64_t heads, int64_t kv, int64_t d, int64_t documents)
{
    double flops = 2.0 * (double)(b * heads * t) * (double)((documents ? documents : t) * d);
    double bytes = 2.0 * (double)(b * t * d * (2 * heads + 2 * kv));
    const struct plan_dims dims = {.m = b, .n = t, .k = heads, .d = d, .kv = kv};
    char shape[120], name[80];

    snprintf(shape, sizeof shape, "%lld x %lld, %lld on %lld heads of %lld%s", (long long)b, (long long)t, (long long)heads,
             (long long)kv, (long long)d, documents ? ", documents" : "");
    setenv("QUERN_ATTENTION", way, 1);
    snprintf(name, sizeof name, "attention, %s", way);
    planned(PLAN_ATTENTION, way, documents, &dims);
    job(name, shape, run_attention, (const int64_t[]){b, t, heads, kv, d, documents, 0}, bytes, flops);
    snprintf(name, sizeof name, "attention backward, %s", way);
    planned(PLAN_ATTENTION_BACK, way, documents, &dims);
    job(name, shape, run_attention, (const int64_t[]){b, t, heads, kv, d, documents, 1}, 2 * bytes, 2.5 * flops);
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

void bench_attentions(int64_t none)
{
    static const int64_t shape[][4] = {{1024, 25, 25, 64}, {4096, 32, 32, 128}, {2048, 32, 8, 64}};

    (void)none;
    for (int i = 0; i < 3; i++) {
        const int64_t *s = shape[i], t = tokens < s[0] ? tokens : s[0], b = tokens / t;
        bench_attention("own", b, t, s[1], s[2], s[3], 0);
        bench_attention("cudnn", b, t, s[1], s[2], s[3], 0);
        if (i == 1) {
            put_documents(b, t, t / 8);
            bench_attention("own", b, t, s[1], s[2], s[3], t / 8);
        }
    }
}
