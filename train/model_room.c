/* Where a model's activations lie. */
#include "train/model_room.h"

#include <string.h>

#include "train/model_pass.h"

/* Elements of what a layer has: of act and fc1, and of the larger of both gradients at once. */
static int64_t mlp_size(const struct model *m, int64_t layer)
{
    return m->b * m->t * model_layer_ffn(&m->config, pass_moe(m, layer)); /* experts have rooms of their own */
}
static int64_t act_size(const struct model *m, int64_t layer)
{
    return model_fp8_made(m, layer, FP8_ACT) ? 0 : mlp_size(m, layer);
}
static int64_t fc1_size(const struct model *m, int64_t layer)
{
    return mlp_size(m, layer) * model_halves(&m->config);
}
static int64_t dmlp_size(const struct model *m, int64_t layer)
{
    return model_fp8_made(m, layer, FP8_ACT) ? mlp_size(m, layer) : fc1_size(m, layer);
}
static int64_t ln1_size(const struct model *m, int64_t layer)
{
    return !model_pre_norm(&m->config) || model_fp8_made(m, layer, FP8_LN1) ? 0 : m->own * m->config.hidden;
}
static int64_t ln2_size(const struct model *m, int64_t layer)
{
    bool own = model_pre_norm(&m->config) && m->config.parallel != PARALLEL_NORM;

    return !own || model_fp8_made(m, layer, FP8_LN2) ? 0 : m->own * m->config.hidden;
}

typedef int64_t size_fn(const struct model *m, int64_t layer);
/* The largest of all layers. */
static int64_t largest(const struct model *m, size_fn *size)
{
    int64_t most = 0;

    for (int64_t i = 0; i < pass_layers(m); i++)
        if (size(m, i) > most)
            most = size(m, i);
    return most;
}
/* That of a layer, or of all if they share it. */
static int64_t room_of(const struct model *m, int64_t layer, bool shared, size_fn *size)
{
    return shared ? largest(m, size) : size(m, layer);
}

/* An input of a layer in FP8. */
static void plan_kept(struct model *m, int64_t layer, struct layer_acts *a, enum fp8_input input, bool shared, struct carve *c)
{
    size_t most = model_fp8_kept(m, layer, input);

    for (int64_t i = 0; i < pass_layers(m) && shared; i++)
        most = model_fp8_kept(m, i, input) > most ? model_fp8_kept(m, i, input) : most;
    if (most)
        a->fp8[input] = (struct fp8_kept){carve(c, (int64_t)most, 1), carve(c, 1, sizeof(float))};
}

/* ln1, ln2 and act, which RECOMPUTE_SELECTIVE has once for all layers. */
static void plan_light(struct model *m, int64_t layer, struct layer_acts *a, bool shared, struct carve *c)
{
    size_t w = dtype_size(m->dt);

    a->norm[0].y = carve(c, room_of(m, layer, shared, ln1_size), w);
    a->norm[1].y = carve(c, room_of(m, layer, shared, ln2_size), w);
    a->mlp.act = carve(c, room_of(m, layer, shared, act_size), w);
    plan_kept(m, layer, a, FP8_LN1, shared, c);
    plan_kept(m, layer, a, FP8_LN2, shared, c);
    plan_kept(m, layer, a, FP8_ACT, shared, c);
}

/* slot: whose they are; < 0: shared. */
static void plan_experts(struct model *m, struct experts_acts *a, int slot, struct carves *k)
{
    const struct model_pool_size *s = &m->memory.pool;
    int room = slot < 0 ? k->work_rooms++ : s->work_rooms + slot * s->slot_rooms + k->slot_rooms++;
    struct carve *c = slot < 0 ? &k->work : &k->slot;
    int64_t n = m->b * m->t, choices = pass_choices(m);

    a->prob = carve(c, n * m->config.experts, sizeof(float));
    a->route_lse = carve(c, n, sizeof(float));
    a->choice = carve(c, choices, sizeof(int32_t));
    a->place = carve(c, choices, sizeof(int32_t));
    a->chosen = carve(c, m->config.experts, sizeof(int32_t));
    a->share = carve(c, choices, sizeof(float));
    a->answer = carve(c, pass_moe_rows(m) * m->config.hidden, dtype_size(m->dt));
    if (m->config.shared_gate) {
        a->gate = carve(c, n, sizeof(float));
        a->gated = carve(c, n * m->config.hidden, dtype_size(m->dt));
    }
    a->room = m->pool ? &m->pool->rooms[room] : NULL;
}

static void plan_statistics(const struct model *m, struct norm_acts *a, struct carve *c)
{
    a->mean = carve(c, m->own, sizeof(float));
    a->rstd = carve(c, m->own, sizeof(float));
}

/* What a layer keeps of its latents. */
static void plan_latent(const struct model *m, struct attention_acts *a, struct carve *c)
{
    const struct model_config *mc = &m->config;
    int64_t n = m->b * m->t;
    size_t w = dtype_size(m->dt);

    a->q_down = a->q_latent = carve(c, n * mc->q_rank, w);
    a->kv_down = carve(c, n * model_latent_width(mc), w);
    a->kv_latent = carve(c, n * mc->kv_rank, w);
    if (!mc->qk_norm)
        return;
    a->q_latent = carve(c, n * mc->q_rank, w);
    a->mean_q = carve(c, n, sizeof(float));
    a->rstd_q = carve(c, n, sizeof(float));
    a->mean_k = carve(c, n, sizeof(float));
    a->rstd_k = carve(c, n, sizeof(float));
}

static void plan_attention(const struct model *m, struct attention_acts *a, struct carve *c)
{
    const struct model_config *mc = &m->config;
    int64_t n = m->b * m->t;
    size_t w = dtype_size(m->dt);

    a->qkv = carve(c, n * model_qkv_width(mc), w);
    a->out = carve(c, n * model_q_width(mc), w);
    if (mc->output_gate)
        a->gated = carve(c, n * model_q_width(mc), w);
    if (mc->value_gate)
        a->value_gate = carve(c, n * mc->groups, sizeof(float));
    a->lse = carve(c, n * mc->heads, sizeof(float));
    if (mc->latent)
        plan_latent(m, a, c);
    if (!mc->qk_norm || mc->latent)
        return;
    a->qk = carve(c, n * (model_q_width(mc) + model_kv_width(mc)), w);
    a->mean_q = carve(c, n * mc->heads, sizeof(float));
    a->rstd_q = carve(c, n * mc->heads, sizeof(float));
    a->mean_k = carve(c, n * mc->groups, sizeof(float));
    a->rstd_k = carve(c, n * mc->groups, sizeof(float));
}

/* shared: other layers, of either kind, take the same after it. */
static void plan_layer(struct model *m, int64_t layer, struct layer_acts *a, int slot, bool shared, struct carves *k)
{
    struct carve *c = shared ? &k->work : &k->slot;
    const struct model_config *mc = &m->config;
    size_t w = dtype_size(m->dt);
    bool moe = pass_moe(m, layer), light = m->run.recompute == RECOMPUTE_SELECTIVE;

    if (!light || a == m->slot->layers)
        plan_light(m, layer, a, light || shared, light ? &k->work : c);
    else {
        const struct layer_acts *one = m->slot->layers;

        a->norm[0].y = one->norm[0].y;
        a->norm[1].y = one->norm[1].y;
        a->mlp.act = one->mlp.act;
        memcpy(a->fp8, one->fp8, sizeof a->fp8);
    }
    plan_kept(m, layer, a, FP8_ATT, shared, c);
    plan_attention(m, &a->attention, c);
    if (!mc->parallel)
        a->norm[1].s = carve(c, m->own * mc->hidden, w);
    a->mlp.fc1 = carve(c, room_of(m, layer, shared, fc1_size), w);
    if (moe || (shared && mc->experts))
        plan_experts(m, &a->experts, shared ? -1 : slot, k);
    for (int i = 0; i < 2; i++) {
        plan_statistics(m, &a->norm[i], c);
        if (model_post_norm(mc)) {
            a->post[i].s = carve(c, m->own * mc->hidden, w);
            plan_statistics(m, &a->post[i], c);
        }
    }
}

/* Each layer has buffers of its own, or those of a chunk share one set, also among slots, and keep
 * the first stream; without backward all layers share one set with its stream. */
static void plan_layers(struct model *m, struct model_acts *acts, struct carves *c)
{
    bool backward = m->run.use == MODEL_TRAIN;

    for (int64_t i = 0; i < m->config.layers; i++) {
        struct layer_acts *a = &acts->layers[i];
        int64_t chunk = pass_chunk(m, i), same = chunk < 0 ? i : i - chunk;

        if (!backward)
            same = 0;
        if (backward && chunk >= 0 && acts != m->slot)
            *a = m->slot->layers[i];
        else if (same < i)
            *a = acts->layers[same];
        else
            plan_layer(m, i, a, (int)(acts - m->slot), !backward || chunk >= 0, c);
        if ((same == i && (chunk < 0 || acts == m->slot)) || (backward && chunk == i))
            a->norm[0].s = carve(&c->slot, m->own * m->config.hidden, dtype_size(m->dt));
        if (m->config.parallel)
            a->norm[1].s = a->norm[0].s;
    }
}

/* What predicts tokens further on, of all slots. */
static void plan_mtp(struct model *m, struct carves *k)
{
    struct carve *c = &k->work;
    int64_t n = m->b * m->t, h = m->config.hidden;
    size_t w = dtype_size(m->dt);

    for (int64_t i = 0; i < m->mtp.n; i++) {
        struct mtp_depth *d = &m->mtp.depth[i];
        struct layer_acts *a = &m->slot->layers[m->config.layers + i];

        d->tokens = carve(c, n, sizeof(int32_t));
        d->positions = carve(c, n, sizeof(int32_t));
        d->targets = carve(c, n, sizeof(int32_t));
        d->scale = carve(c, n, sizeof(float));
        d->embedded = carve(c, m->own * h, w);
        d->both = carve(c, 2 * m->own * h, w);
        d->mean_e = carve(c, m->own, sizeof(float));
        d->rstd_e = carve(c, m->own, sizeof(float));
        d->mean_h = carve(c, m->own, sizeof(float));
        d->rstd_h = carve(c, m->own, sizeof(float));
        plan_layer(m, m->config.layers + i, a, -1, true, k);
        a->norm[0].s = carve(c, m->own * h, w);
        if (m->config.parallel)
            a->norm[1].s = a->norm[0].s;
        d->final.s = carve(c, m->own * h, w);
        d->final.y = carve(c, m->own * h, w);
        plan_statistics(m, &d->final, c);
        for (int j = 1; j < m->run.slots; j++)
            m->slot[j].layers[m->config.layers + i] = *a;
    }
    m->mtp.first = carve(c, m->own * h, w);
    m->mtp.carried = carve(c, m->own * h, w);
    m->mtp.loss = carve(&k->alone, m->mtp.n, sizeof *m->mtp.loss);
}

/* The last stream is taken up at once, by the next part or by backward. */
static void plan_slot(struct model *m, struct model_acts *acts, struct carves *k)
{
    struct carve *c = &k->work;
    int64_t h = m->config.hidden;
    size_t w = dtype_size(m->dt);

    plan_layers(m, acts, k);
    if (model_looks_up(m))
        acts->tokens = carve(&k->slot, m->b * m->t, sizeof(int32_t));
    if (m->part.embeds && m->config.embedding_norm && m->run.use == MODEL_TRAIN) {
        acts->embedding.s = carve(&k->slot, m->own * h, w);
        plan_statistics(m, &acts->embedding, &k->slot);
    }
    if (m->run.reset_positions)
        acts->positions = carve(&k->slot, m->b * m->t, sizeof(int32_t));
    if (m->run.reset_attention)
        acts->starts = carve(&k->slot, m->b * m->t, sizeof(int32_t));
    if (m->run.use == MODEL_TRAIN && (m->config.hidden_dropout > 0 || m->config.attention_dropout > 0))
        acts->drop = carve(&k->slot, 1, sizeof *acts->drop);
    if (acts != m->slot) {
        acts->final = m->slot->final;
        return;
    }
    acts->final.s = carve(c, m->own * h, w);
    if (!m->part.heads)
        return;
    acts->final.y = carve(c, m->own * h, w);
    plan_statistics(m, &acts->final, c);
}

static void plan_head(struct model *m, struct carves *k)
{
    struct carve *c = &k->work;
    int64_t n = m->b * m->t, rows = m->run.use == MODEL_GENERATE ? m->b : n;

    m->head.logits = carve(c, rows * m->config.padded_vocab, dtype_size(m->dt));
    m->head.loss = carve(c, n, sizeof(float));
    m->head.scale = carve(&k->alone, n, sizeof(float));
    m->head.targets = carve(c, n, sizeof(int32_t));
    if (!pass_shared(m))
        return;
    m->head.max = carve(c, n, sizeof(float));
    m->head.sum = carve(c, n, sizeof(float));
    m->head.at = carve(c, n, sizeof(float));
}

static void plan_ring(struct model *m, struct carve *c)
{
    int64_t n = m->b * m->t, kv = 2 * model_kv_width(&m->config);

    if (!pass_ring(m))
        return;
    for (int i = 0; i < 2; i++)
        m->ring.kv[i] = carve(c, n * kv, dtype_size(m->dt));
    for (int i = 0; i < 3 && m->run.use == MODEL_TRAIN; i++)
        m->ring.grad[i] = carve(c, n * kv, sizeof(float));
    if (m->dt != DTYPE_F32)
        m->ring.sum = carve(c, n * model_qkv_width(&m->config), sizeof(float));
}

static void plan_latents(struct model *m, struct carve *c)
{
    const struct model_config *mc = &m->config;
    int64_t n = m->b * m->t;
    size_t w = dtype_size(m->dt);

    m->latent.q = carve(c, n * model_q_width(mc), w);
    m->latent.kv = carve(c, n * model_kv_up_width(mc), w);
    if (m->run.use == MODEL_GENERATE)
        m->latent.cached = carve(c, n * 2 * model_kv_width(mc), w);
    if (m->run.use != MODEL_TRAIN)
        return;
    m->latent.down = carve(c, n * (mc->q_rank > mc->kv_rank ? mc->q_rank : mc->kv_rank), w);
    m->latent.dkv = carve(c, n * model_latent_width(mc), w);
}

static void plan_values(struct model *m, struct carve *c)
{
    int64_t n = m->b * m->t, kv = model_kv_width(&m->config);

    m->value.embedded = carve(c, n * kv, dtype_size(m->dt));
    m->value.v = carve(c, n * kv, dtype_size(m->dt));
    if (m->run.use == MODEL_TRAIN && m->config.value_gate)
        m->value.dgate = carve(c, n * m->config.groups, dtype_size(m->dt));
}

static void plan_bias(struct model *m, struct carve *c)
{
    int64_t n = pass_layers(m) * m->config.experts;

    m->moe.bias.now = carve(c, n, sizeof *m->moe.bias.now);
    if (m->run.use == MODEL_TRAIN)
        m->moe.bias.load = carve(c, n, sizeof *m->moe.bias.load);
}

static void plan_experts_back(struct model *m, struct carves *k)
{
    struct carve *c = &k->work;

    if (m->config.shared_gate)
        m->moe.dgate = carve(c, m->b * m->t, dtype_size(m->dt));
    m->moe.dlogits = carve(c, m->b * m->t * m->config.experts, dtype_size(m->dt));
    m->moe.dshare = carve(c, pass_choices(m), sizeof(float));
    m->moe.balance = carve(c, pass_aux_parts(m) * m->config.experts, sizeof(float));
    if (model_aux_apart(&m->config) && m->config.router_score == ROUTER_SIGMOID)
        m->moe.likely_prob = carve(c, m->b * m->t * m->config.experts, sizeof(float));
    if (model_aux_apart(&m->config))
        m->moe.likely = carve(c, pass_aux_parts(m) * m->config.experts, sizeof(int32_t));
    if (model_aux_global(&m->config))
        m->moe.so_far = carve(&k->alone, pass_layers(m) * m->config.experts, sizeof *m->moe.so_far);
    m->moe.unevenness = carve(&k->alone, 1, sizeof *m->moe.unevenness);
}

void model_room(struct model *m, struct carves *k)
{
    struct model_pool_size *s = &m->memory.pool;
    char *slots = k->slot.base;
    struct carve *c = &k->work;
    const struct model_config *mc = &m->config;
    int64_t n = m->b * m->t, h = mc->hidden, q = model_q_width(mc), wide = largest(m, dmlp_size);
    size_t w = dtype_size(m->dt), shared = 0;
    int copies;

    for (int i = 0; i < m->run.slots; i++) {
        k->slot = (struct carve){slots ? slots + (size_t)i * s->slot : NULL, 0};
        k->slot_rooms = 0;
        plan_slot(m, &m->slot[i], k);
    }
    m->acts = m->slot;
    if (m->mtp.n)
        plan_mtp(m, k);
    m->out = carve(c, n * h, w);
    if (mc->parallel)
        m->middle = carve(c, m->own * h, w);
    m->positions = carve(&k->alone, n, sizeof(int32_t));
    if (m->run.use == MODEL_TRAIN && m->run.optim && m->run.optim->qk_clip.on)
        m->most = carve(&k->alone, pass_layers(m) * mc->heads, sizeof *m->most);
    if (m->part.sequence)
        m->full = carve(c, n * h, w);
    plan_ring(m, c);
    if (mc->latent)
        plan_latents(m, c);
    if (mc->value_freq)
        plan_values(m, c);
    if (mc->lora_rank) {
        m->lora.down = carve(c, n * mc->lora_rank, w);
        m->lora.up = carve(c, n * mc->lora_rank, w);
    }
    if (mc->experts) {
        if (m->config.moe_shared)
            m->moe.beside = carve(c, n * h, w);
        m->moe.route_from = carve(c, pass_moe_rows(m), sizeof(int32_t));
        m->moe.rows_each = carve(c, m->experts.params.experts * param_buffer_copies(&m->experts.conf), sizeof(int32_t));
        if (m->run.use == MODEL_TRAIN || pass_spread(m))
            m->moe.drows = carve(c, pass_moe_rows(m) * h, w);
        if (pass_pieces(m) > 1)
            m->moe.piece = carve(c, pass_moe_rows(m) * h / pass_pieces(m), w);
    }
    if (mc->expert_bias)
        plan_bias(m, &k->alone);
    if (m->part.heads)
        plan_head(m, k);
    if (m->run.use != MODEL_TRAIN)
        return;
    if (wide < n * model_qkv_width(mc))
        wide = n * model_qkv_width(mc);
    if (mc->experts)
        plan_experts_back(m, k);
    m->back.ds = carve(c, m->own * h, w);
    m->back.dx = carve(c, m->own * h, w);
    if (mc->parallel)
        m->back.side = carve(c, m->own * h, w);
    m->back.dln = carve(c, n * (h > q ? h : q), w);
    m->back.dwide = carve(c, wide, w);
    for (int i = 0; i < m->n_buffers; i++) {
        size_t summed = m->buffers[i]->trained ? params_summed(&m->buffers[i]->params) : 0;

        shared = summed > shared ? summed : shared;
    }
    m->shared = shared ? carve(c, (int64_t)shared, sizeof(float)) : NULL;
    if (!m->dense.trained)
        m->back.unused = carve(c, 2 * (h > mc->head_dim ? h : mc->head_dim), sizeof(float));
    /* The first for inputs and gradients; gradients transposed; inputs that are converted again. */
    copies = mc->lora_rank ? 1 : 2 + (m->part.sequence || mc->experts || mc->value_gate);
    for (int i = 0; m->fp8 && i < copies; i++)
        m->fp8->buf[i] = carve(c, model_fp8_rows(m, n) * model_fp8_row(m, m->fp8->wide), 1);
}
