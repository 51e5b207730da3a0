#include "train/params.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"

/* Tensors begin on cache lines, which vector code and direct writes like. */
enum { PARAM_ALIGN = 16 };

/* What a parameter is before it has its place. */
struct shape {
    const char *name;
    int64_t rows, cols; /* cols 0: a vector */
    int split;
    double std;
    float fill;
    int64_t part[3]; /* rows; all 0: one part */
};

static int add(struct params *p, const char *before, const struct shape *s)
{
    struct param *q = &p->v[p->n];

    snprintf(q->name, sizeof q->name, "%s%s", before, s->name);
    q->dims = s->cols ? 2 : 1;
    q->shape[0] = s->rows;
    q->shape[1] = s->cols;
    q->at = p->elements;
    q->n = (size_t)s->rows * (size_t)(s->cols ? s->cols : 1);
    q->split = s->split;
    for (; q->parts < 3 && s->part[q->parts]; q->parts++)
        q->part[q->parts] = s->part[q->parts];
    if (!q->parts) {
        q->parts = 1;
        q->part[0] = s->rows;
    }
    q->std = s->std;
    q->fill = s->fill;
    p->elements += (q->n + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    return p->n++;
}

/* Rows 0: the model has no such parameter. */
static void layer_shapes(const struct model_config *m, struct shape t[LAYER_PARAMS])
{
    int64_t h = m->hidden, q = model_q_width(m), kv = model_kv_width(m), qkv = model_qkv_width(m);
    int64_t fc1 = model_fc1_width(m), gate = m->swiglu ? m->ffn : 0;
    int64_t beta = m->norm == NORM_LAYER, bias = !m->no_bias, head = m->qk_norm ? m->head_dim : 0;
    double std = m->init_std, out = std / sqrt(2.0 * (double)m->layers);
    const struct shape all[LAYER_PARAMS] = {
        [LN1_W] = {"input_layernorm.weight", h, 0, -1, 0, 1, {0}},
        [LN1_B] = {"input_layernorm.bias", beta * h, 0, -1, 0, 0, {0}},
        [QKV_W] = {"self_attention.linear_qkv.weight", qkv, h, 0, std, 0, {q, kv, kv}},
        [QKV_B] = {"self_attention.linear_qkv.bias", (bias || m->qkv_bias) * qkv, 0, 0, 0, 0, {q, kv, kv}},
        [Q_NORM_W] = {"self_attention.q_layernorm.weight", head, 0, -1, 0, 1, {0}},
        [Q_NORM_B] = {"self_attention.q_layernorm.bias", beta * head, 0, -1, 0, 0, {0}},
        [K_NORM_W] = {"self_attention.k_layernorm.weight", head, 0, -1, 0, 1, {0}},
        [K_NORM_B] = {"self_attention.k_layernorm.bias", beta * head, 0, -1, 0, 0, {0}},
        [PROJ_W] = {"self_attention.linear_proj.weight", h, q, 1, out, 0, {0}},
        [PROJ_B] = {"self_attention.linear_proj.bias", bias * h, 0, -1, 0, 0, {0}},
        [LN2_W] = {"pre_mlp_layernorm.weight", h, 0, -1, 0, 1, {0}},
        [LN2_B] = {"pre_mlp_layernorm.bias", beta * h, 0, -1, 0, 0, {0}},
        [FC1_W] = {"mlp.linear_fc1.weight", fc1, h, 0, std, 0, {gate, gate, 0}},
        [FC1_B] = {"mlp.linear_fc1.bias", bias * fc1, 0, 0, 0, 0, {gate, gate, 0}},
        [FC2_W] = {"mlp.linear_fc2.weight", h, m->ffn, 1, out, 0, {0}},
        [FC2_B] = {"mlp.linear_fc2.bias", bias * h, 0, -1, 0, 0, {0}},
    };

    memcpy(t, all, sizeof all);
}

static void add_layers(struct params *p, const struct model_config *m)
{
    struct shape t[LAYER_PARAMS];
    char before[48];

    layer_shapes(m, t);
    p->first_layer = p->n;
    for (int i = 0; i < LAYER_PARAMS; i++)
        p->place[i] = t[i].rows ? p->per_layer++ : -1;
    for (int64_t layer = 0; layer < m->layers; layer++) {
        snprintf(before, sizeof before, "decoder.layers.%" PRId64 ".", layer);
        for (int i = 0; i < LAYER_PARAMS; i++)
            if (t[i].rows)
                add(p, before, &t[i]);
    }
}

int params_init(struct params *p, const struct model_config *m, struct err *e)
{
    int64_t h = m->hidden;
    const struct shape word = {"embedding.word_embeddings.weight", m->padded_vocab, h, 0, m->init_std, 0, {0}};
    const struct shape position = {"embedding.position_embeddings.weight", m->positions, h, -1, m->init_std, 0, {0}};
    const struct shape output = {"output_layer.weight", m->padded_vocab, h, 0, m->init_std, 0, {0}};

    memset(p, 0, sizeof *p);
    p->v = calloc((size_t)m->layers * LAYER_PARAMS + 5, sizeof *p->v);
    if (!p->v)
        return err_set(e, ERR_NOMEM, "out of memory");
    p->word = add(p, "", &word);
    p->position = m->position == POSITION_LEARNED ? add(p, "", &position) : -1;
    add_layers(p, m);
    p->final_w = add(p, "", &(struct shape){"decoder.final_layernorm.weight", h, 0, -1, 0, 1, {0}});
    p->final_b = -1;
    if (m->norm == NORM_LAYER)
        p->final_b = add(p, "", &(struct shape){"decoder.final_layernorm.bias", h, 0, -1, 0, 0, {0}});
    p->output = m->untie ? add(p, "", &output) : p->word;
    return 0;
}

void params_free(struct params *p)
{
    free(p->v);
    memset(p, 0, sizeof *p);
}

/* Elements 4i .. 4i+3 of a tensor come from one Philox block. */
static void fill_normal(const struct param *p, uint64_t seed, float *out)
{
    uint64_t key = hash_xxh3_64_seed(span_of(p->name), seed);

#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < p->n; i += 4) {
        uint32_t w[4];
        double z[4];

        rng_philox(key, i / 4, 0, w);
        rng_normal2(w[0], w[1], z);
        rng_normal2(w[2], w[3], z + 2);
        for (size_t j = 0; j < 4 && i + j < p->n; j++)
            out[i + j] = (float)(z[j] * p->std);
    }
}

void params_fill(const struct params *p, uint64_t seed, float *slab)
{
    memset(slab, 0, p->elements * sizeof *slab);
    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->v[i];

        if (q->std > 0)
            fill_normal(q, seed, slab + q->at);
        else
            for (size_t j = 0; j < q->n; j++)
                slab[q->at + j] = q->fill;
    }
}
