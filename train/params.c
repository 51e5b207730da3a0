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

static int add(struct params *p, const char *name, int64_t rows, int64_t cols, double std, float fill)
{
    struct param *q = &p->v[p->n];

    snprintf(q->name, sizeof q->name, "%s", name);
    q->dims = cols ? 2 : 1;
    q->shape[0] = rows;
    q->shape[1] = cols;
    q->at = p->elements;
    q->n = (size_t)rows * (size_t)(cols ? cols : 1);
    q->std = std;
    q->fill = fill;
    p->elements += (q->n + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    return p->n++;
}

static void add_layer(struct params *p, const struct model_config *m, int64_t layer)
{
    int64_t h = m->hidden, f = m->ffn;
    double std = m->init_std, out = std / sqrt(2.0 * (double)m->layers);
    const struct {
        const char *name;
        int64_t rows, cols;
        double std;
        float fill;
    } t[LAYER_PARAMS] = {
        [LN1_W] = {"input_layernorm.weight", h, 0, 0, 1},
        [LN1_B] = {"input_layernorm.bias", h, 0, 0, 0},
        [QKV_W] = {"self_attention.linear_qkv.weight", 3 * h, h, std, 0},
        [QKV_B] = {"self_attention.linear_qkv.bias", 3 * h, 0, 0, 0},
        [PROJ_W] = {"self_attention.linear_proj.weight", h, h, out, 0},
        [PROJ_B] = {"self_attention.linear_proj.bias", h, 0, 0, 0},
        [LN2_W] = {"pre_mlp_layernorm.weight", h, 0, 0, 1},
        [LN2_B] = {"pre_mlp_layernorm.bias", h, 0, 0, 0},
        [FC1_W] = {"mlp.linear_fc1.weight", f, h, std, 0},
        [FC1_B] = {"mlp.linear_fc1.bias", f, 0, 0, 0},
        [FC2_W] = {"mlp.linear_fc2.weight", h, f, out, 0},
        [FC2_B] = {"mlp.linear_fc2.bias", h, 0, 0, 0},
    };
    char name[64];

    for (int i = 0; i < LAYER_PARAMS; i++) {
        snprintf(name, sizeof name, "decoder.layers.%" PRId64 ".%s", layer, t[i].name);
        add(p, name, t[i].rows, t[i].cols, t[i].std, t[i].fill);
    }
}

int params_init(struct params *p, const struct model_config *m, struct err *e)
{
    memset(p, 0, sizeof *p);
    p->v = calloc((size_t)m->layers * LAYER_PARAMS + 5, sizeof *p->v);
    if (!p->v)
        return err_set(e, ERR_NOMEM, "out of memory");
    p->word = add(p, "embedding.word_embeddings.weight", m->padded_vocab, m->hidden, m->init_std, 0);
    p->position = add(p, "embedding.position_embeddings.weight", m->positions, m->hidden, m->init_std, 0);
    p->first_layer = p->n;
    for (int64_t i = 0; i < m->layers; i++)
        add_layer(p, m, i);
    p->final_w = add(p, "decoder.final_layernorm.weight", m->hidden, 0, 0, 1);
    p->final_b = add(p, "decoder.final_layernorm.bias", m->hidden, 0, 0, 0);
    p->output = p->word;
    if (m->untie)
        p->output = add(p, "output_layer.weight", m->padded_vocab, m->hidden, m->init_std, 0);
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
