/* Memory of the model, and the forward pass. */
#include "train/model.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "train/model_pass.h"

static const float norm_eps = NORM_EPS_MILLIONTHS * 1e-6f;

/* ---- memory ---- */

/* Cuts pieces off a slab; without a slab it only measures. */
struct carve {
    char *base;
    size_t used;
};

static void *carve(struct carve *c, int64_t n, size_t size)
{
    void *p = c->base ? c->base + c->used : NULL;

    c->used += ((size_t)n * size + 63) / 64 * 64;
    return p;
}

static void plan_layer(struct model *m, struct layer_acts *a, struct carve *c)
{
    int64_t n = m->b * m->t, h = m->config.hidden, f = m->config.ffn;
    size_t w = dtype_size(m->dt);

    a->ln1 = carve(c, n * h, w);
    a->ln2 = carve(c, n * h, w);
    a->qkv = carve(c, n * 3 * h, w);
    a->att = carve(c, n * h, w);
    a->s2 = carve(c, n * h, w);
    a->fc1 = carve(c, n * f, w);
    a->act = carve(c, n * f, w);
    a->mean1 = carve(c, n, sizeof(float));
    a->rstd1 = carve(c, n, sizeof(float));
    a->mean2 = carve(c, n, sizeof(float));
    a->rstd2 = carve(c, n, sizeof(float));
    a->lse = carve(c, n * m->config.heads, sizeof(float));
}

/* Each layer has buffers of its own, or all share one set and keep only s1; without
 * backward all share s1 too. */
static void plan_layers(struct model *m, struct carve *c)
{
    int64_t n = m->b * m->t, h = m->config.hidden;
    bool backward = m->use == MODEL_TRAIN || m->use == MODEL_RECOMPUTE;

    for (int64_t i = 0; i < m->config.layers; i++) {
        struct layer_acts *a = &m->layers[i];

        if (i == 0 || m->use == MODEL_TRAIN)
            plan_layer(m, a, c);
        else
            *a = m->layers[0];
        if (i == 0 || backward)
            a->s1 = carve(c, n * h, dtype_size(m->dt));
    }
}

static void plan(struct model *m, struct carve *c)
{
    int64_t n = m->b * m->t, h = m->config.hidden, f = m->config.ffn;
    int64_t rows = m->use == MODEL_GENERATE ? m->b : n;
    size_t w = dtype_size(m->dt);

    plan_layers(m, c);
    m->out = carve(c, n * h, w);
    m->s_final = carve(c, n * h, w);
    m->ln_final = carve(c, n * h, w);
    m->logits = carve(c, rows * m->config.padded_vocab, w);
    m->mean_final = carve(c, n, sizeof(float));
    m->rstd_final = carve(c, n, sizeof(float));
    m->loss = carve(c, n, sizeof(float));
    m->scale = carve(c, n, sizeof(float));
    m->tokens = carve(c, n, sizeof(int32_t));
    m->targets = carve(c, n, sizeof(int32_t));
    m->positions = carve(c, n, sizeof(int32_t));
    if (m->use != MODEL_TRAIN && m->use != MODEL_RECOMPUTE)
        return;
    m->ds = carve(c, n * h, w);
    m->dx = carve(c, n * h, w);
    m->dln = carve(c, n * h, w);
    m->dwide = carve(c, n * (f > 3 * h ? f : 3 * h), w);
}

/* Sets up the table of parameters and measures; no slab is allocated. */
static int measure(struct model *m, const struct model_config *config, enum dtype dt, enum model_use use,
                   int64_t b, int64_t t, struct err *e)
{
    struct carve c = {NULL, 0};

    m->config = *config;
    m->dt = dt;
    m->use = use;
    m->b = b;
    m->t = t;
    TRY(params_init(&m->params, config, e));
    m->layers = calloc((size_t)config->layers, sizeof *m->layers);
    if (!m->layers)
        return err_set(e, ERR_NOMEM, "out of memory");
    plan(m, &c);
    m->memory.weights = m->params.elements * sizeof(float);
    m->memory.low = dt == DTYPE_BF16 ? m->params.elements * 2 : 0;
    m->memory.grads = use <= MODEL_RECOMPUTE ? m->memory.weights : 0;
    m->memory.activations = c.used;
    if (use == MODEL_GENERATE)
        m->memory.cache = (size_t)(2 * config->layers * b * t * config->hidden) * dtype_size(dt);
    return 0;
}

int model_plan(struct model_memory *memory, const struct model_config *config, enum dtype dt,
               enum model_use use, int64_t b, int64_t t, struct err *e)
{
    struct model m = {0};
    int rc = measure(&m, config, dt, use, b, t, e);

    *memory = m.memory;
    params_free(&m.params);
    free(m.layers);
    return rc;
}

static int allocate(struct model *m, struct err *e)
{
    const struct {
        void **p;
        size_t bytes;
        const char *what;
    } slabs[] = {
        {(void **)&m->weights, m->memory.weights, "weights"},
        {(void **)&m->low, m->memory.low, "bf16 weights"},
        {(void **)&m->grads, m->memory.grads, "gradients"},
        {&m->slab, m->memory.activations, "activations"},
        {&m->cache_slab, m->memory.cache, "the key-value cache"},
    };

    for (size_t i = 0; i < sizeof slabs / sizeof *slabs; i++)
        if (slabs[i].bytes && device_alloc(m->dev, slabs[i].p, slabs[i].bytes, e) < 0)
            return err_wrap(e, "%s: %zu MiB", slabs[i].what, slabs[i].bytes >> 20);
    /* Padding between tensors is never written, and counts in the norm. */
    return m->grads ? device_zero(m->dev, m->grads, m->memory.grads, e) : 0;
}

int model_open(struct model **out, struct device *dev, const struct model_config *config, enum dtype dt,
               enum model_use use, int64_t b, int64_t t, struct err *e)
{
    struct model *m = calloc(1, sizeof *m);
    int rc;

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory");
    m->dev = dev;
    rc = measure(m, config, dt, use, b, t, e);
    if (rc == 0)
        rc = allocate(m, e);
    if (rc < 0) {
        model_close(m);
        return rc;
    }
    plan(m, &(struct carve){m->slab, 0});
    m->cache_k = m->cache_slab;
    m->cache_v = m->cache_slab ? (char *)m->cache_slab + m->memory.cache / 2 : NULL;
    *out = m;
    return 0;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    device_free(m->dev, m->weights);
    device_free(m->dev, m->low);
    device_free(m->dev, m->grads);
    device_free(m->dev, m->slab);
    device_free(m->dev, m->cache_slab);
    params_free(&m->params);
    free(m->layers);
    free(m);
}

int model_weights_changed(struct model *m, struct err *e)
{
    if (!m->low)
        return 0;
    return m->dev->ops->vec_cast(m->dev, m->low, DTYPE_BF16, m->weights, DTYPE_F32,
                                 (int64_t)m->params.elements, e);
}

/* ---- forward ---- */

const struct dropout *pass_dropout(const struct model *m, const struct model_dropout *md, int64_t layer,
                                   enum drop_place place, struct dropout *d)
{
    double p = place == DROP_ATTENTION ? m->config.attention_dropout : m->config.hidden_dropout;
    int64_t rows = place == DROP_ATTENTION ? m->t * m->config.heads : m->t;

    if (!md || p == 0)
        return NULL;
    d->p = (float)p;
    d->key = hash_xxh3_64_seed(span_of("dropout"), md->seed);
    d->stream = md->step << 20 | (uint64_t)layer << 2 | (uint64_t)place;
    d->row0 = md->first_sample * rows;
    return d;
}

/* y = act(x . W^T + b); aux keeps what goes into act. */
static int linear(struct model *m, void *y, const void *x, int w, int b, int64_t rows, enum act act, void *aux,
                  struct err *e)
{
    const struct param *p = &m->params.v[w];
    struct matmul mm = {
        .m = rows, .n = p->shape[0], .k = p->shape[1], .trans_b = true, .dt = m->dt, .dt_c = m->dt,
        .a = x, .b = pass_weight(m, w), .c = y, .bias = b < 0 ? NULL : pass_weight(m, b),
        .act = act, .aux = aux,
    };

    return m->dev->ops->matmul(m->dev, &mm, e);
}

/* s = residual + dropout(x); y = norm(s).  residual NULL: y = norm(x). */
static int norm(struct model *m, int64_t rows, const void *x, const void *residual, const struct dropout *drop,
                int w, void *s, void *y, float *mean, float *rstd, struct err *e)
{
    struct norm_fwd p = {
        .t = rows, .c = m->config.hidden, .eps = norm_eps, .x = x, .residual = residual, .drop = drop,
        .gamma = pass_weight(m, w), .beta = pass_weight(m, w + 1), .s = s, .y = y, .mean = mean, .rstd = rstd,
    };

    return m->dev->ops->layernorm_fwd(m->dev, m->dt, &p, e);
}

int pass_norm1(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->layers[layer];

    return norm(m, rows, a->s1, NULL, NULL, params_layer(&m->params, layer, LN1_W), NULL, a->ln1, a->mean1,
                a->rstd1, e);
}

struct attention pass_attention(const struct model *m, int64_t layer, int64_t b, int64_t t)
{
    const struct layer_acts *a = &m->layers[layer];
    int64_t h = m->config.hidden;
    size_t w = dtype_size(m->dt);
    struct attention at = {
        .b = b, .t = t, .t_kv = t, .heads = m->config.heads, .kv_heads = m->config.heads,
        .d = h / m->config.heads, .scale = 1 / sqrtf((float)(h / m->config.heads)),
        .q = {a->qkv, t * 3 * h, 3 * h},
        .k = {(char *)a->qkv + (size_t)h * w, t * 3 * h, 3 * h},
        .v = {(char *)a->qkv + (size_t)(2 * h) * w, t * 3 * h, 3 * h},
        .o = {a->att, t * h, h},
        .lse = a->lse,
    };

    return at;
}

/* Appends the new keys and values to the cache and lets at read them there. */
static int through_cache(struct model *m, int64_t layer, struct attention *at, int64_t past, struct err *e)
{
    int64_t h = m->config.hidden;
    size_t w = dtype_size(m->dt), row = (size_t)h * w;
    char *base[2] = {m->cache_k, m->cache_v};
    struct attention_view *view[2] = {&at->k, &at->v};

    for (int kv = 0; kv < 2; kv++) {
        char *cache = base[kv] + (size_t)(layer * m->b * m->t) * row;

        for (int64_t i = 0; i < at->b * at->t; i++) {
            int64_t s = i / at->t, j = i % at->t;
            const char *from = (const char *)view[kv]->p + (size_t)(s * view[kv]->batch + j * view[kv]->row) * w;

            TRY(device_copy(m->dev, cache + (size_t)(s * m->t + past + j) * row, from, row, e));
        }
        *view[kv] = (struct attention_view){cache, m->t * h, h};
    }
    at->t_kv = past + at->t;
    at->lse = NULL;
    return 0;
}

int pass_layer(struct model *m, int64_t layer, int64_t b, int64_t t, int64_t past,
               const struct model_dropout *md, struct err *e)
{
    struct layer_acts *a = &m->layers[layer];
    const struct params *p = &m->params;
    struct attention at = pass_attention(m, layer, b, t);
    struct dropout d;
    int64_t n = b * t;

    TRY(linear(m, a->qkv, a->ln1, params_layer(p, layer, QKV_W), params_layer(p, layer, QKV_B), n, ACT_NONE,
               NULL, e));
    if (past >= 0)
        TRY(through_cache(m, layer, &at, past, e));
    at.drop = pass_dropout(m, md, layer, DROP_ATTENTION, &d);
    TRY(m->dev->ops->attention_fwd(m->dev, m->dt, &at, e));
    TRY(linear(m, m->out, a->att, params_layer(p, layer, PROJ_W), params_layer(p, layer, PROJ_B), n, ACT_NONE,
               NULL, e));
    TRY(norm(m, n, m->out, a->s1, pass_dropout(m, md, layer, DROP_PROJ, &d), params_layer(p, layer, LN2_W),
             a->s2, a->ln2, a->mean2, a->rstd2, e));
    return linear(m, a->act, a->ln2, params_layer(p, layer, FC1_W), params_layer(p, layer, FC1_B), n,
                  ACT_GELU_TANH, a->fc1, e);
}

/* Embeddings, all layers, final norm: tokens to m->ln_final. */
static int pass_trunk(struct model *m, const int32_t *tokens, int64_t b, int64_t t, int64_t past,
                      const struct model_dropout *md, struct err *e)
{
    const struct params *p = &m->params;
    struct embedding emb = {
        .t = b * t, .c = m->config.hidden, .token = m->tokens, .pos = m->positions,
        .n_vocab = m->config.padded_vocab, .n_pos = m->config.positions,
    };
    struct layer_acts *a = m->layers;
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, 0, DROP_EMBEDDING, &d);

    TRY(device_put(m->dev, m->tokens, tokens, (size_t)(b * t) * sizeof *tokens, e));
    TRY(m->dev->ops->embedding_fwd(m->dev, m->dt, a->s1, &emb, pass_weight(m, p->word),
                                   pass_weight(m, p->position), e));
    if (drop)
        TRY(m->dev->ops->vec_dropout(m->dev, m->dt, a->s1, a->s1, b * t, m->config.hidden, drop, e));
    TRY(pass_norm1(m, 0, b * t, e));
    for (int64_t i = 0; i < m->config.layers; i++) {
        bool last = i + 1 == m->config.layers;
        struct layer_acts *next = last ? NULL : &m->layers[i + 1];

        a = &m->layers[i];
        TRY(pass_layer(m, i, b, t, past < 0 ? -1 : past, md, e));
        TRY(linear(m, m->out, a->act, params_layer(p, i, FC2_W), params_layer(p, i, FC2_B), b * t, ACT_NONE,
                   NULL, e));
        TRY(norm(m, b * t, m->out, a->s2, pass_dropout(m, md, i, DROP_MLP, &d),
                 last ? p->final_w : params_layer(p, i + 1, LN1_W), last ? m->s_final : next->s1,
                 last ? m->ln_final : next->ln1, last ? m->mean_final : next->mean1,
                 last ? m->rstd_final : next->rstd1, e));
    }
    return 0;
}

/* Positions first .. first + t - 1 for each of b sequences. */
static int put_positions(struct model *m, int64_t b, int64_t t, int64_t first, struct err *e)
{
    int32_t *pos = malloc((size_t)(b * t) * sizeof *pos);
    int rc;

    if (!pos)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; i < b * t; i++)
        pos[i] = (int32_t)(first + i % t);
    rc = device_put(m->dev, m->positions, pos, (size_t)(b * t) * sizeof *pos, e);
    free(pos);
    return rc;
}

int model_forward(struct model *m, const int32_t *tokens, const int32_t *targets,
                  const struct model_dropout *drop, float grad_scale, double *loss_sum, struct err *e)
{
    int64_t n = m->b * m->t;
    struct xent x = {
        .t = n, .v = m->config.vocab, .ld = m->config.padded_vocab, .logits = m->logits,
        .target = m->targets, .scale = grad_scale > 0 ? m->scale : NULL,
    };
    float *host = malloc((size_t)n * sizeof *host);
    int rc;

    if (!host)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; i < n; i++)
        host[i] = grad_scale;
    rc = put_positions(m, m->b, m->t, 0, e);
    if (rc == 0)
        rc = device_put(m->dev, m->scale, host, (size_t)n * sizeof *host, e);
    if (rc == 0)
        rc = device_put(m->dev, m->targets, targets, (size_t)n * sizeof *targets, e);
    if (rc == 0)
        rc = pass_trunk(m, tokens, m->b, m->t, -1, drop, e);
    if (rc == 0)
        rc = linear(m, m->logits, m->ln_final, m->params.output, -1, n, ACT_NONE, NULL, e);
    if (rc == 0)
        rc = m->dev->ops->xent(m->dev, m->dt, &x, m->loss, e);
    if (rc == 0)
        rc = device_get(m->dev, host, m->loss, (size_t)n * sizeof *host, e);
    *loss_sum = 0;
    for (int64_t i = 0; rc == 0 && i < n; i++)
        *loss_sum += host[i];
    free(host);
    return rc;
}

int model_extend(struct model *m, const int32_t *tokens, int64_t b, int64_t t, int64_t past, float *logits,
                 struct err *e)
{
    int64_t v = m->config.padded_vocab;
    size_t row = (size_t)m->config.hidden * dtype_size(m->dt);

    if (m->use != MODEL_GENERATE || b < 1 || b > m->b || t < 1 || past < 0 || past + t > m->t)
        return err_set(e, ERR_ARG, "%lld tokens behind %lld do not fit a cache of %lld", (long long)t,
                       (long long)past, (long long)m->t);
    TRY(put_positions(m, b, t, past, e));
    TRY(pass_trunk(m, tokens, b, t, past, NULL, e));
    for (int64_t i = 0; i < b; i++) /* the last row of each sequence, packed into s_final */
        TRY(device_copy(m->dev, (char *)m->s_final + (size_t)i * row,
                        (const char *)m->ln_final + (size_t)((i + 1) * t - 1) * row, row, e));
    TRY(linear(m, m->logits, m->s_final, m->params.output, -1, b, ACT_NONE, NULL, e));
    if (m->dt == DTYPE_F32)
        return device_get(m->dev, logits, m->logits, (size_t)(b * v) * sizeof *logits, e);
    uint16_t *low = malloc((size_t)(b * v) * sizeof *low);
    if (!low)
        return err_set(e, ERR_NOMEM, "out of memory");
    int rc = device_get(m->dev, low, m->logits, (size_t)(b * v) * sizeof *low, e);
    for (int64_t i = 0; rc == 0 && i < b * v; i++)
        logits[i] = bf16_to(low[i]);
    free(low);
    return rc;
}
