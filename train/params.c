#include "train/params.h"

#include <fnmatch.h>
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
    int64_t part[PARAM_PARTS]; /* rows; all 0: one part */
};

/* Who takes which share of a cut tensor. */
struct share {
    int rank, ranks;
};

/* What of s a rank has.  repeated: of a part of the model that another one has too. */
static int add(struct params *p, const char *before, const struct shape *s, struct share share, bool repeated)
{
    struct param *q = &p->v[p->n];
    int64_t cols = s->cols, row = 0;

    snprintf(q->name, sizeof q->name, "%s%s", before, s->name);
    q->dims = s->cols ? 2 : 1;
    q->whole[0] = s->rows;
    q->whole[1] = s->cols;
    q->split = s->split;
    for (; q->parts < PARAM_PARTS && s->part[q->parts]; q->parts++)
        q->part[q->parts] = s->part[q->parts];
    if (!q->parts) {
        q->parts = 1;
        q->part[0] = s->rows;
    }
    for (int i = 0; i < q->parts; i++) {
        q->first[i] = row;
        row += q->part[i];
        if (s->split == 0) {
            q->part[i] /= share.ranks;
            q->first[i] += share.rank * q->part[i];
        }
        q->shape[0] += q->part[i];
    }
    if (s->split == 1) {
        cols /= share.ranks;
        q->column = share.rank * cols;
    }
    q->shape[1] = cols;
    q->unit = p->units;
    q->at = p->elements;
    q->n = (size_t)q->shape[0] * (size_t)(cols ? cols : 1);
    q->repeated = repeated || (s->split < 0 && share.rank > 0);
    q->std = s->std;
    q->fill = s->fill;
    p->elements += (q->n + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    return p->n++;
}

/* What weights of norms begin with. */
static float norm_fill(const struct model_config *m)
{
    return m->norm_1p ? 0 : 1;
}

/* Whether a parameter is of a norm as wide as the stream. */
static bool of_stream(int i)
{
    return i <= LN1_B || i == POST1_W || i == POST1_B || i == LN2_W || i == LN2_B || i == POST2_W || i == POST2_B;
}

enum layer_param lora_weight(int k)
{
    static const enum layer_param of[LORA_TARGETS] = {QKV_W, PROJ_W, FC1_W, FC2_W, Q_DOWN_W, Q_UP_W, KV_DOWN_W, KV_UP_W,
                                                    EXPERT_FC1_W, EXPERT_FC2_W};

    return of[k];
}

enum layer_param lora_param(enum layer_param w)
{
    for (int k = 0; k < LORA_TARGETS; k++)
        if (lora_weight(k) == w)
            return (enum layer_param)(LORA_A + 2 * k);
    return LAYER_PARAMS;
}

/* Those of adapters, with shapes by their weights and the names of these: A with the bounds of kaiming_uniform_(a=sqrt(5)), as
 * PEFT's, B 0. */
static void adapter_shapes(const struct model_config *m, struct shape t[LAYER_PARAMS])
{
    for (int k = 0; k < LORA_TARGETS; k++) {
        const struct shape *w = &t[lora_weight(k)];
        struct shape *a = &t[LORA_A + 2 * k], *b = a + 1;

        if (!m->lora_rank || !w->rows || !(m->lora_targets >> k & 1))
            continue;
        *a = (struct shape){w->name, m->lora_rank, w->cols, w->split == 1 ? 1 : -1, -1 / sqrt((double)w->cols), 0, {0}};
        *b = *w;
        b->cols = m->lora_rank;
        b->split = w->split == 0 ? 0 : -1;
        b->std = 0;
    }
}

/* Rows 0: the model has no such parameter. */
static void layer_shapes(const struct model_config *m, bool moe_layer, bool value, enum part_of of, struct shape t[LAYER_PARAMS])
{
    int64_t h = m->hidden, q = model_q_width(m), kv = model_kv_width(m), qkv = model_qkv_width(m);
    int64_t looked_up = value ? m->padded_vocab : 0, value_gate = value && m->value_gate ? m->groups : 0;
    int64_t gated = m->output_gate ? q : 0, sinks = m->softmax == SOFTMAX_LEARNABLE ? m->heads : 0;
    int64_t ffn = model_layer_ffn(m, moe_layer), gate = (model_halves(m) - 1) * ffn, fc1 = ffn + gate;
    int64_t moe = model_moe_fc1_width(m), moe_gate = (model_halves(m) - 1) * m->moe_ffn;
    int64_t beta = m->norm == NORM_LAYER, gamma = !m->norm_bare, bias = model_mlp_bias(m), proj_bias = model_proj_bias(m);
    int64_t qn = m->qk_norm && gamma ? m->latent ? m->q_rank : m->qk_norm_wide ? q : m->head_dim : 0;
    int64_t kn = m->qk_norm && gamma ? m->latent ? m->kv_rank : m->qk_norm_wide ? kv : m->head_dim : 0;
    int64_t ln1 = model_pre_norm(m) ? gamma * h : 0, ln2 = m->parallel == PARALLEL_NORM ? 0 : ln1;
    int64_t post = model_post_norm(m) ? gamma * h : 0;
    float one = norm_fill(m);
    int64_t packed = m->latent ? 0 : qkv, q_down = m->latent ? m->q_rank : 0, q_up = m->latent ? q : 0;
    int64_t kv_down = m->latent ? model_latent_width(m) : 0, kv_up = m->latent ? model_kv_up_width(m) : 0;
    double std = m->init_std / sqrt(model_width(m)), out = std / sqrt(2.0 * (double)m->layers);
    const struct shape all[LAYER_PARAMS] = {
        [LN1_W] = {"input_layernorm.weight", ln1, 0, -1, 0, one, {0}},
        [LN1_B] = {"input_layernorm.bias", beta * ln1, 0, -1, 0, 0, {0}},
        [QKV_W] = {"self_attention.linear_qkv.weight", packed, h, 0, std, 0, {q, kv, kv, gated}},
        [QKV_B] = {"self_attention.linear_qkv.bias", model_qkv_bias(m) * packed, 0, 0, 0, 0, {q, kv, kv, gated}},
        [Q_DOWN_W] = {"self_attention.linear_q_down_proj.weight", q_down, h, -1, std, 0, {0}},
        [Q_UP_W] = {q_down ? "self_attention.linear_q_up_proj.weight" : "self_attention.linear_q_proj.weight", q_up,
                    q_down ? q_down : h, 0, std, 0, {0}},
        [KV_DOWN_W] = {"self_attention.linear_kv_down_proj.weight", kv_down, h, -1, std, 0, {0}},
        [KV_UP_W] = {"self_attention.linear_kv_up_proj.weight", kv_up, m->kv_rank, 0, std, 0, {0}},
        [Q_NORM_W] = {"self_attention.q_layernorm.weight", qn, 0, -1, 0, one, {0}},
        [Q_NORM_B] = {"self_attention.q_layernorm.bias", beta * qn, 0, -1, 0, 0, {0}},
        [K_NORM_W] = {m->latent ? "self_attention.kv_layernorm.weight" : "self_attention.k_layernorm.weight",
                      kn, 0, -1, 0, one, {0}},
        [K_NORM_B] = {m->latent ? "self_attention.kv_layernorm.bias" : "self_attention.k_layernorm.bias",
                      beta * kn, 0, -1, 0, 0, {0}},
        [SOFTMAX_OFFSET] = {"self_attention.core_attention.softmax_offset", sinks, 0, 0, m->init_std, 0, {0}},
        [VALUE_EMBED] = {"self_attention.value_embedding.weight", looked_up, kv, 1, m->init_std, 0, {0}},
        [VALUE_GATE] = {"self_attention.value_gate.weight", value_gate, m->value_gate, 0, std, 0, {0}},
        [PROJ_W] = {"self_attention.linear_proj.weight", h, model_proj_width(m), 1, out, 0, {0}},
        [PROJ_B] = {"self_attention.linear_proj.bias", proj_bias * h, 0, -1, 0, 0, {0}},
        [POST1_W] = {"self_attention.linear_proj.post_layernorm.weight", post, 0, -1, 0, one, {0}},
        [POST1_B] = {"self_attention.linear_proj.post_layernorm.bias", beta * post, 0, -1, 0, 0, {0}},
        [LN2_W] = {"pre_mlp_layernorm.weight", ln2, 0, -1, 0, one, {0}},
        [LN2_B] = {"pre_mlp_layernorm.bias", beta * ln2, 0, -1, 0, 0, {0}},
        [FC1_W] = {moe_layer ? "mlp.shared_experts.linear_fc1.weight" : "mlp.linear_fc1.weight", fc1, h, 0, std, 0,
                   {gate, gate, 0}},
        [FC1_B] = {"mlp.linear_fc1.bias", bias * fc1, 0, 0, 0, 0, {gate, gate, 0}},
        [FC2_W] = {moe_layer ? "mlp.shared_experts.linear_fc2.weight" : "mlp.linear_fc2.weight", h, ffn, 1, out, 0, {0}},
        [FC2_B] = {"mlp.linear_fc2.bias", bias * h, 0, -1, 0, 0, {0}},
        [POST2_W] = {"mlp.linear_fc2.post_layernorm.weight", post, 0, -1, 0, one, {0}},
        [POST2_B] = {"mlp.linear_fc2.post_layernorm.bias", beta * post, 0, -1, 0, 0, {0}},
        [ROUTER_W] = {"mlp.router.weight", m->experts, h, -1, std, 0, {0}},
        [ROUTER_B] = {"mlp.router.bias", m->router_bias ? m->experts : 0, 0, -1, 0, 0, {0}},
        [SHARED_GATE_W] = {"mlp.shared_experts.gate_weight", m->shared_gate, h, -1, std, 0, {0}},
        [EXPERT_FC1_W] = {"linear_fc1.weight", moe, h, 0, std, 0, {moe_gate, moe_gate, 0}},
        [EXPERT_FC1_B] = {"linear_fc1.bias", bias * moe, 0, 0, 0, 0, {moe_gate, moe_gate, 0}},
        [EXPERT_FC2_W] = {"linear_fc2.weight", h, m->moe_ffn, 1, out, 0, {0}},
        [EXPERT_FC2_B] = {"linear_fc2.bias", bias * h, 0, -1, 0, 0, {0}},
    };

    memcpy(t, all, sizeof all);
    for (int i = 0; i < LORA_A; i++)
        if (moe_layer ? !ffn && i >= FC1_W && i <= FC2_B : i >= ROUTER_W && i <= EXPERT_FC2_B)
            t[i].rows = 0;
    adapter_shapes(m, t);
    for (int i = 0; i < LAYER_PARAMS; i++) {
        enum part_of is = i >= LORA_EXPERT_A ? PART_EXPERT_ADAPTERS : i >= LORA_A ? PART_ADAPTERS :
                          i >= EXPERT_FC1_W ? PART_EXPERTS : PART_DENSE;

        if (of != PART_ALL && of != is)
            t[i].rows = 0;
    }
}

/* What the names of a layer's parameters begin with. */
static void name_layer(const struct model_part *part, int64_t layer, char *before, size_t size)
{
    if (layer < part->layers)
        snprintf(before, size, "decoder.layers.%" PRId64 ".", part->first + layer);
    else
        snprintf(before, size, "mtp.layers.%" PRId64 ".transformer_layer.", layer - part->layers);
}

static bool is_experts(int which)
{
    return (which >= EXPERT_FC1_W && which <= EXPERT_FC2_B) || which >= LORA_EXPERT_A;
}

/* Shape which of t; of an adapter with a name of its own, which lies in room. */
static struct shape named(const struct shape t[LAYER_PARAMS], int which, char room[96])
{
    struct shape s = t[which];

    if (which < LORA_A)
        return s;
    snprintf(room, 96, "%.*s.lora_%c.weight", (int)(strlen(s.name) - strlen(".weight")), s.name,
             (which - LORA_A) % 2 ? 'B' : 'A');
    s.name = room;
    return s;
}

static void add_experts(struct params *p, const char *layer, const struct shape t[LAYER_PARAMS], struct share share)
{
    char before[96], name[96];

    for (int64_t i = p->first_expert; i < p->first_expert + p->experts; i++) {
        snprintf(before, sizeof before, "%smlp.experts.local_experts.%" PRId64 ".", layer, i);
        for (int k = EXPERT_FC1_W; k < LAYER_PARAMS; k++)
            if (t[k].rows && is_experts(k)) {
                const struct shape s = named(t, k, name);
                struct param *q = &p->v[add(p, before, &s, share, false)];

                q->summed = share.ranks > 1 && k >= LORA_A && q->split < 0; /* tensor ranks have slices of what it is beside */
            }
    }
}

static void add_layer(struct params *p, const struct model_part *part, int64_t layer, const struct shape t[LAYER_PARAMS],
                      struct share share)
{
    char before[64], name[96];

    name_layer(part, layer, before, sizeof before);
    for (int i = 0; i < LAYER_PARAMS; i++)
        if (t[i].rows && !is_experts(i)) {
            const struct shape s = named(t, i, name);
            struct param *q = &p->v[add(p, before, &s, share, false)];

            q->table = i == VALUE_EMBED;
            /* Norms of heads and of latents, and what makes latents, see the heads of a rank alone, the router and the gate what
             * slices of experts answer, what of an adapter is not divided slices too; the other norms, with sequence parallelism,
             * some of the rows. */
            q->summed = share.ranks > 1 && ((i >= Q_NORM_W && i <= K_NORM_B) || i == Q_DOWN_W || i == KV_DOWN_W ||
                                            i == ROUTER_W || i == ROUTER_B || i == SHARED_GATE_W ||
                                            (i >= LORA_A && q->split < 0) ||
                                            (part->sequence && of_stream(i)));
        }
    add_experts(p, before, t, share);
}

/* A norm as wide as the stream; *w and *b are -1 if it has none. */
static void add_norm(struct params *p, const struct model_config *m, const struct model_part *part, const char *before,
                     struct share share, int *w, int *b)
{
    const struct shape weight = {"weight", m->hidden, 0, -1, 0, norm_fill(m), {0}}, bias = {"bias", m->hidden, 0, -1, 0, 0, {0}};

    *w = *b = -1;
    if (m->norm_bare)
        return;
    *w = add(p, before, &weight, share, false);
    *b = m->norm == NORM_LAYER ? add(p, before, &bias, share, false) : -1;
    for (int i = *w; i < p->n; i++)
        p->v[i].summed = part->sequence && share.ranks > 1;
}

/* What predicts a token further on, but for its layer: each tensor rank multiplies the rows of the stream that it has. */
static void add_mtp(struct params *p, const struct model_config *m, const struct model_part *part, int64_t i, struct share share)
{
    const struct shape proj = {"eh_proj.weight", m->hidden, 2 * m->hidden, -1, m->init_std / sqrt(model_width(m)), 0, {0}};
    struct params_mtp *q = &p->mtp[i];
    char of[64], name[96];
    const struct {
        const char *name;
        int *w, *b;
    } norm[] = {{"enorm.", &q->enorm_w, &q->enorm_b}, {"hnorm.", &q->hnorm_w, &q->hnorm_b},
                {"final_layernorm.", &q->final_w, &q->final_b}};

    snprintf(of, sizeof of, "mtp.layers.%" PRId64 ".", i);
    for (size_t k = 0; k < sizeof norm / sizeof *norm; k++) {
        snprintf(name, sizeof name, "%s%s", of, norm[k].name);
        add_norm(p, m, part, name, share, norm[k].w, norm[k].b);
    }
    q->proj = add(p, of, &proj, share, false);
    p->v[q->proj].summed = part->sequence && share.ranks > 1;
}

static void add_layers(struct params *p, const struct model_config *m, const struct model_part *part, struct share share)
{
    struct shape t[2][2][LAYER_PARAMS];
    int64_t i;

    for (int kind = 0; kind < 4; kind++) {
        bool moe = kind / 2, value = kind % 2;
        int n = 0, *place = p->place[moe][value];
        const struct shape *s = t[moe][value];

        layer_shapes(m, moe, value, part->of, t[moe][value]);
        for (int k = 0; k < LAYER_PARAMS; k++)
            place[k] = s[k].rows && !is_experts(k) ? n++ : -1;
        for (int k = EXPERT_FC1_W; k < LAYER_PARAMS; k++) /* they stand behind all others */
            if (is_experts(k)) {
                place[k] = s[k].rows ? n++ : -1;
                p->per_expert += s[k].rows > 0 && moe && !value;
            }
    }
    for (i = 0; i < part->layers + p->n_mtp; i++) {
        bool further = i >= part->layers, value = !further && model_layer_value(m, part->first + i);
        bool moe = further ? model_mtp_moe(m) : model_layer_moe(m, part->first + i);

        p->units = 1 + (int)(further ? part->layers : i);
        if (further && (part->of == PART_ALL || part->of == PART_DENSE))
            add_mtp(p, m, part, i - part->layers, share);
        p->layer[i] = (struct params_layer){p->n, moe, value};
        add_layer(p, part, i, t[moe][value], share);
    }
    p->layer[i].at = p->n;
}

struct model_part model_part_whole(const struct model_config *m)
{
    return (struct model_part){.layers = m->layers, .embeds = true, .heads = true};
}

static int check_share(const struct model_config *m, int ranks, struct err *e)
{
    const struct {
        const char *what;
        int64_t n;
    } cut[] = {
        {"attention heads", m->heads}, {"query groups", m->groups}, {"elements of the MLP", m->ffn},
        {"elements of an expert", m->moe_ffn}, {"elements of the shared expert", m->moe_shared},
        {"rows of the padded vocabulary", m->padded_vocab},
    };

    if (m->qk_norm_wide && ranks > 1)
        return err_set(e, ERR_ARG, "--qk-layernorm-full-width: tensor ranks cannot share such a norm");
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        if (cut[i].n % ranks)
            return err_set(e, ERR_ARG, "--tensor-model-parallel-size: %d ranks cannot share %" PRId64 " %s", ranks, cut[i].n,
                           cut[i].what);
    return 0;
}

/* The experts that are here, of each layer that has some. */
static int share_experts(struct params *p, const struct model_config *m, const struct model_part *part, struct err *e)
{
    int ranks = part->expert ? part->expert->size : 1;

    if (m->experts % ranks)
        return err_set(e, ERR_ARG, "--expert-model-parallel-size: %d ranks cannot share %" PRId64 " experts", ranks, m->experts);
    if (part->of == PART_DENSE || part->of == PART_ADAPTERS)
        return 0;
    p->experts = m->experts / ranks;
    p->first_expert = part->expert ? part->expert->rank * p->experts : 0;
    return 0;
}

static struct shape word_shape(const struct model_config *m)
{
    return (struct shape){"embedding.word_embeddings.weight", m->padded_vocab, m->hidden, 0, m->init_std, 0, {0}};
}

static void add_head(struct params *p, const struct model_config *m, const struct model_part *part, struct share share)
{
    const struct shape word = word_shape(m);
    const struct shape output = {"output_layer.weight", m->padded_vocab, m->hidden, 0, m->init_std, 0, {0}};

    add_norm(p, m, part, "decoder.final_layernorm.", share, &p->final_w, &p->final_b);
    if (m->untie)
        p->output = add(p, "", &output, share, false);
    else
        p->output = p->tied_apart ? add(p, "", &word, share, true) : p->word;
}

int params_init(struct params *p, const struct model_config *m, const struct model_part *given, struct err *e)
{
    const struct shape word = word_shape(m);
    const struct shape position = {"embedding.position_embeddings.weight", m->positions, m->hidden, -1, m->init_std, 0, {0}};
    struct model_part part = given ? *given : model_part_whole(m);
    struct share share = {part.tensor ? part.tensor->rank : 0, part.tensor ? part.tensor->size : 1};
    bool adapters = part.of == PART_ADAPTERS || part.of == PART_EXPERT_ADAPTERS;
    size_t layers;

    memset(p, 0, sizeof *p);
    p->n_mtp = part.heads ? (int)m->mtp_layers : 0;
    p->word = p->position = p->embed_w = p->embed_b = p->final_w = p->final_b = p->output = -1;
    if (part.of == PART_EXPERTS || adapters)
        part.embeds = part.heads = false;
    p->width = adapters ? 1 : model_width(m); /* theirs is the rank */
    p->tied_apart = !m->untie && (part.embeds != part.heads || (part.heads && part.apart));
    TRY(check_share(m, share.ranks, e));
    TRY(share_experts(p, m, &part, e));
    layers = (size_t)(part.layers + p->n_mtp);
    p->v = calloc(layers * (LAYER_PARAMS + 8 * (size_t)p->experts) + 7 * (size_t)p->n_mtp + 7, sizeof *p->v);
    p->layer = calloc(layers + 1, sizeof *p->layer);
    if (!p->v || !p->layer)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (part.embeds) {
        p->word = add(p, "", &word, share, false);
        p->v[p->word].table = m->untie || p->tied_apart;
        if (m->position == POSITION_LEARNED) {
            p->position = add(p, "", &position, share, false);
            p->v[p->position].table = true;
        }
        if (m->embedding_norm)
            add_norm(p, m, &part, "embedding.layernorm.", share, &p->embed_w, &p->embed_b);
    }
    add_layers(p, m, &part, share);
    p->units = (int)part.layers + 1;
    if (part.heads)
        add_head(p, m, &part, share);
    p->units++;
    return 0;
}

int params_freeze(struct params *p, const char *pattern)
{
    int n = 0;

    for (int i = 0; i < p->n; i++)
        if (fnmatch(pattern, p->v[i].name, 0) == 0) {
            p->v[i].frozen = true;
            n++;
        }
    return n;
}

int64_t param_matrix(const struct param *p, int i)
{
    if (!p->rule.apart)
        return i == 0 ? p->whole[0] : 0;
    return i < p->parts ? p->part[i] * (p->whole[0] / p->shape[0]) : 0;
}

struct matrix_size params_matrices(const struct params *p)
{
    struct matrix_size most = {0};

    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->v[i];
        int64_t rows, cols = param_columns(q);

        for (int k = 0; q->rule.whole && !q->frozen && (rows = param_matrix(q, k)); k++)
            matrix_size_fit(&most, &(struct matrix_size){
                .elements = rows * cols, .side = rows < cols ? rows : cols, .lines = rows + (q->dims > 1 ? cols : 0),
            });
    }
    return most;
}

/* Whether parameter i is the first of an expert, in a buffer of experts alone. */
static bool begins_expert(const struct params *p, int i)
{
    const struct param *q = &p->v[i];

    return p->experts_apart && p->experts && q->unit > 0 && q->unit < p->units &&
           p->layer[q->unit - 1].moe && (i - p->layer[q->unit - 1].at) % p->per_expert == 0;
}

static size_t round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

void params_round(struct params *p, size_t each, size_t align, size_t unit, size_t flat)
{
    size_t more = 0;

    for (int i = 0; i < p->n; i++) {
        struct param *q = &p->v[i];
        bool begins = i > 0 && q->unit != q[-1].unit;
        size_t multiple = params_apart(p, i) || params_apart(p, i - 1) ? flat :
                          begins ? unit : begins_expert(p, i) ? align : each, at = q->at + more;

        more += round_up(at, multiple) - at;
        q->at += more;
    }
    p->elements = round_up(p->elements + more, flat);
}

size_t params_unit_at(const struct params *p, int unit)
{
    int lo = 0, hi = p->n;

    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if (p->v[mid].unit < unit)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->n ? p->v[lo].at : p->elements;
}

void params_free(struct params *p)
{
    free(p->v);
    free(p->layer);
    memset(p, 0, sizeof *p);
}

/* Elements first .. first + n - 1 of a logical tensor; 4i .. 4i+3 come from one Philox block. */
static void fill_row(uint64_t key, const struct param *p, int64_t first, int64_t n, float *out)
{
    uint32_t w[4];
    double z[4];

    for (int64_t i = 0; i < n; i++) {
        int64_t at = first + i;

        if (i == 0 || at % 4 == 0) {
            rng_philox(key, (uint64_t)(at / 4), 0, w);
            rng_normal2(w[0], w[1], z);
            rng_normal2(w[2], w[3], z + 2);
        }
        out[i] = (float)(p->std < 0 ? (1 - 2 * (double)rng_unit_f32(w[at % 4])) * p->std : z[at % 4] * p->std);
    }
}

/* Elements first .. first + n - 1 of what is here of p. */
static void fill_random(const struct param *p, uint64_t seed, int64_t first, int64_t n, float *out)
{
    uint64_t key = hash_xxh3_64_seed(span_of(p->name), seed);
    int64_t cols = p->shape[1] ? p->shape[1] : 1, width = p->whole[1] ? p->whole[1] : 1, row = 0;

    for (int i = 0; i < p->parts; i++) {
#pragma omp parallel for schedule(static)
        for (int64_t r = 0; r < p->part[i]; r++) {
            int64_t at = (row + r) * cols - first, lo = at < 0 ? -at : 0, hi = at + cols > n ? n - at : cols;

            if (lo < hi)
                fill_row(key, p, (p->first[i] + r) * width + p->column + lo, hi - lo, out + at + lo);
        }
        row += p->part[i];
    }
}

void params_fill_range(const struct params *p, uint64_t seed, size_t first, size_t n, float *out)
{
    memset(out, 0, n * sizeof *out);
    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->v[i];
        size_t lo = q->at > first ? q->at : first, hi = q->at + q->n < first + n ? q->at + q->n : first + n;

        if (lo >= hi)
            continue;
        if (q->std != 0)
            fill_random(q, seed, (int64_t)(lo - q->at), (int64_t)(hi - lo), out + (lo - first));
        else
            for (size_t j = lo; j < hi; j++)
                out[j - first] = q->fill;
    }
}

void params_fill(const struct params *p, uint64_t seed, float *flat)
{
    params_fill_range(p, seed, 0, p->elements, flat);
}
