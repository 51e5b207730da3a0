/* Small models against values recorded from PyTorch and transformers (tests/record/gpt2_parity.py,
 * llama_parity.py, moe_parity.py, router_parity.py, head_parity.py, mtp_parity.py, attention_parity.py, value_parity.py,
 * documents.py): logits, loss, gradients, and ten steps of clipping and AdamW. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/recorded.h"
#include "train/documents.h"
#include "train/expert_bias.h"
#include "train/model.h"
#include "train/mtp.h"

enum { B = 2, T = 32, V = 211, STEPS = 10, EOD = 7 };

/* What is recorded; some models have losses and gradient norms only. */
struct recording {
    const char *prefix;
    bool all;
    struct model_config config;
    const char *file;
};
#define SHAPE .layers = 2, .hidden = 48, .heads = 4, .seq = T, .vocab = V
#define LLAMA SHAPE, .groups = 2, .ffn = 64, .norm = NORM_RMS, .norm_eps = 1e-6, .position = POSITION_ROPE, \
    .mlp = MLP_SWIGLU, .no_bias = true
#define EXPERTS_OF(n, k) .experts = n, .topk = k, .moe_ffn = 16, .aux_loss = 0.05, .z_loss = 0.01
#define EXPERTS EXPERTS_OF(4, 2)
#define SHARED LLAMA, .head_dim = 16, .qkv_bias = true, .untie = true, EXPERTS, .pre_softmax = true, .moe_shared = 24
#define ROUTERS "tests/data/train/router_parity.safetensors"
#define V3 EXPERTS_OF(12, 4), .router_score = ROUTER_SIGMOID, .router_scale = 2.5, .router_groups = 4, .router_group_topk = 2, \
    .moe_freq = 2
#define ATTENTION "tests/data/train/attention_parity.safetensors"
#define GEMMA SHAPE, .groups = 2, .ffn = 64, .norm = NORM_RMS, .norm_eps = 1e-6, .position = POSITION_ROPE, .no_bias = true, \
    .head_dim = 16, .mlp = MLP_GEGLU, .norm_place = NORM_BOTH, .norm_1p = true, .window = 5, .window_freq = 2, \
    .softmax_scale = 1 / 3.0, .embedding_scale = 6.928203230275509 /* sqrt 48 */
#define VALUES "tests/data/train/value_parity.safetensors"
#define HEADS "tests/data/train/head_parity.safetensors"
#define MTP "tests/data/train/mtp_parity.safetensors"
#define DOCUMENTS "tests/data/train/documents.safetensors"
static struct recording models[] = {
    {"", true, {SHAPE}, "tests/data/train/gpt2_parity.safetensors"},
    {"llama.", true, {LLAMA, .head_dim = 16, .untie = true, .rotary_base = 500, .rope_scaling = true, .rope_original = 8},
     "tests/data/train/llama_parity.safetensors"},
    {"qwen2.", false, {LLAMA, .qkv_bias = true, .rotary_base = 1e6}, "tests/data/train/llama_parity.safetensors"},
    {"qwen3.", false, {LLAMA, .head_dim = 16, .qk_norm = true}, "tests/data/train/llama_parity.safetensors"},
    {"neox.", false, {SHAPE, .position = POSITION_ROPE, .rotary_percent = 0.5, .untie = true},
     "tests/data/train/llama_parity.safetensors"},
    {"mixtral.", true, {SHAPE, .groups = 2, .head_dim = 16, .ffn = 16, .norm = NORM_RMS, .norm_eps = 1e-6, .mlp = MLP_SWIGLU,
                        .position = POSITION_ROPE, .no_bias = true, .untie = true, EXPERTS},
     "tests/data/train/moe_parity.safetensors"},
    {"gpt.", false, {SHAPE, EXPERTS, .pre_softmax = true, .moe_freq = 2}, "tests/data/train/moe_parity.safetensors"},
    {"probs.", false, {SHAPE, EXPERTS, .pre_softmax = true, .moe_freq = 2, .capacity = 0.7},
     "tests/data/train/moe_parity.safetensors"},
    {"position.", false, {SHAPE, EXPERTS, .moe_freq = 2, .capacity = 0.7, .drop_policy = DROP_POSITION, .pad_experts = true},
     "tests/data/train/moe_parity.safetensors"},
    {"qwen2_moe.", false, {SHARED, .shared_gate = true}, "tests/data/train/moe_parity.safetensors"},
    {"shared.", false, {SHARED}, "tests/data/train/moe_parity.safetensors"},
    {"gpt2.", true, {SHAPE}, DOCUMENTS},
    {"llama.", true, {LLAMA, .head_dim = 16, .untie = true, .rotary_base = 500, .rope_scaling = true, .rope_original = 8},
     DOCUMENTS},
    {"sigmoid.", false, {SHAPE, EXPERTS, .router_score = ROUTER_SIGMOID, .router_scale = 2.5, .moe_freq = 2}, ROUTERS},
    {"cap.", false, {SHAPE, .logit_cap = 3}, HEADS},
    {"z.", false, {SHAPE, .head_z_loss = 0.1}, HEADS},
    {"both.", false, {SHAPE, .logit_cap = 3, .head_z_loss = 0.1}, HEADS},
    {"groups.", false, {SHAPE, V3}, ROUTERS},
    {"v3.", false, {SHAPE, V3, .expert_bias = true, .bias_rate = 0.02, .balancing = BALANCE_SEQUENCE}, ROUTERS},
    {"global.", false, {SHAPE, EXPERTS, .pre_softmax = true, .balancing = BALANCE_GLOBAL, .moe_freq = 2}, ROUTERS},
    {"sequences.", false, {SHAPE, EXPERTS, .pre_softmax = true, .balancing = BALANCE_SEQUENCE, .moe_freq = 2}, ROUTERS},
    {"gpt.", false, {SHAPE, .mtp_layers = 2, .mtp_scale = 0.3}, MTP},
    {"llama.", false, {LLAMA, .head_dim = 16, .untie = true, .mtp_layers = 1, .mtp_scale = 0.3}, MTP},
    {"smollm3.", true, {LLAMA, .window = 5, .window_freq = 2, .no_rope_freq = 2}, ATTENTION},
    {"gemma2.", true, {GEMMA, .softcap = 1.5}, ATTENTION},
    {"gemma3.", true, {GEMMA, .qk_norm = true, .rope_scaling = true, .rope_kind = ROPE_LINEAR, .rope_factor = 8,
                       .rotary_base_local = 100}, ATTENTION},
    {"sinks.", true, {LLAMA, .head_dim = 16, .window = 5, .softmax = SOFTMAX_LEARNABLE}, ATTENTION},
    {"gate.", true, {LLAMA, .head_dim = 16, .qk_norm = true, .norm_1p = true, .rotary_percent = 0.25, .output_gate = true},
     ATTENTION},
    {"values.", true, {LLAMA, .head_dim = 16, .value_freq = 1, .value_scale = 0.5}, VALUES},
    {"nanochat.", true, {SHAPE, .groups = 2, .ffn = 64, .head_dim = 16, .norm = NORM_RMS, .norm_eps = 1e-6, .norm_bare = true,
                         .embedding_norm = true, .qk_norm = true, .position = POSITION_ROPE, .mlp = MLP_RELU2, .no_bias = true,
                         .untie = true, .logit_cap = 15, .value_freq = 2, .value_gate = 12, .value_scale = 3}, VALUES},
};
enum { GPT2, LLAMA_3, MIXTRAL = 5, GPT2_DOCUMENTS = 11, LLAMA_DOCUMENTS, MODELS = sizeof models / sizeof *models };
static const struct recording *model;
/* The first of those with other attention, which are the last. */
enum { OTHERS = 7, OTHER = MODELS - OTHERS };
/* Whether its sequences are packed with documents; then some of the gradients are recorded. */
static bool packed(void)
{
    return strcmp(model->file, DOCUMENTS) == 0;
}
static struct recorded want;
static struct device *dev;
static struct err e;

static int start(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        if (model_config_check(&models[i].config, 128, &e) < 0)
            return fprintf(stderr, "%s\n", e.msg), -1;
    return device_open(&dev, "cpu", 2, &e) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    device_close(dev);
    recorded_close(&want);
    return 0;
}

/* What is recorded for the model at hand. */
static void map_recording(void)
{
    recorded_close(&want);
    if (recorded_open(&want, model->file, &e) < 0)
        fail_msg("%s", e.msg);
}

/* Makes models[i] the one that is compared. */
static void take(int i)
{
    model = &models[i];
    map_recording();
}

/* A micro-batch. */
struct room {
    int32_t tokens[B * T], targets[B * T], starts[B * T], here[2 * B * T];
};

static void forward(struct model *m, const struct model_batch *b, double *sum)
{
    assert_int_equal(model_take(m, b, &e), 0);
    assert_int_equal(model_forward(m, b, sum, &e), 0);
}

static const float *recorded(const char *prefix, const char *name, size_t n)
{
    char before[96];

    snprintf(before, sizeof before, "%s%s", model->prefix, prefix);
    return recorded_find(&want, before, name, n);
}

/* Elements that are no padding of the vocabulary. */
static size_t real(const struct params *p, int k)
{
    bool vocabulary = k == p->word || k == p->output || strstr(p->v[k].name, "value_embedding");

    return vocabulary ? (size_t)V * (size_t)p->v[k].shape[1] : p->v[k].n;
}

/* The number of a parameter among all of the model. */
static size_t number_of(const struct params *all, const char *name)
{
    int k = 0;

    while (k < all->n && strcmp(all->v[k].name, name) != 0)
        k++;
    assert_true(k < all->n);
    return (size_t)k;
}

static void make_up_store(const struct params *all, const struct params *p, float *w)
{
    memset(w, 0, p->elements * sizeof *w);
    for (int k = 0; k < p->n; k++) {
        const char *name = p->v[k].name;

        recorded_made_up(number_of(all, name), strstr(name, "layernorm.weight"), real(p, k), w + p->v[k].at);
    }
}

static void make_up(struct model *m)
{
    struct params all;

    assert_int_equal(params_init(&all, &m->whole, NULL, &e), 0);
    for (int i = 0; i < m->n_buffers; i++)
        make_up_store(&all, &m->buffers[i]->params, m->buffers[i]->weights);
    params_free(&all);
    assert_int_equal(model_weights_changed(m, &e), 0);
}

/* Tokens, targets and documents of n samples; the result: what of a loss that is the mean over all B each token counts. */
static float batch(int64_t step, int64_t first, int64_t n, struct room *r)
{
    const struct safetensor *t = safetensors_find(&want.tensors, "ids");
    const int32_t *ids = (const int32_t *)(const void *)t->data.p + step * B * (T + 1);
    int count = 0;

    for (int64_t i = 0; i < n * T; i++) {
        int64_t at = (first + i / T) * (T + 1) + i % T;

        r->tokens[i] = ids[at];
        r->targets[i] = ids[at + 1];
    }
    if (!packed())
        return 1.0f / (B * T);
    documents_starts(r->tokens, n, T, EOD, r->starts);
    documents_mask(r->tokens, n * T, EOD, r->targets);
    for (int i = 0; i < B * (T + 1); i++)
        count += i % (T + 1) < T && ids[i] != EOD;
    return (float)(1.0 / count);
}

/* NaN fails. */
static void close_to(const char *what, const char *name, const float *got, const float *ref, size_t n, double tol)
{
    double scale = 0, worst = 0;

    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(ref[i]));
    for (size_t i = 0; i < n; i++) {
        double err = fabs((double)got[i] - ref[i]);

        if (!(err <= tol * fmax(scale, 1e-2)))
            fail_msg("%s %s[%zu]: %.8g, not %.8g (largest of the tensor %.3g)", what, name, i, got[i], ref[i], scale);
        worst = fmax(worst, err / fmax(scale, 1e-2));
    }
    if (getenv("VERBOSE"))
        printf("%s %s: worst %.2g of the largest\n", what, name, worst);
}

static void check_logits(const struct model *m, double tol)
{
    const float *ref = recorded("logits", "", (size_t)B * T * V);

    for (int64_t i = 0; i < (int64_t)B * T; i++) {
        float row[V];

        for (int64_t v = 0; v < V; v++)
            row[v] = m->dt == DTYPE_BF16 ? bf16_to(((uint16_t *)m->head.logits)[i * 256 + v])
                                         : ((float *)m->head.logits)[i * 256 + v];
        close_to("logits", "", row, ref + i * V, V, tol);
    }
}

static void check_gradients(const struct param_buffer *s, double tol)
{
    for (int k = 0; k < s->params.n; k++) {
        const struct param *p = &s->params.v[k];
        size_t n = real(&s->params, k);
        char full[160];

        snprintf(full, sizeof full, "%sgrad.%s", model->prefix, p->name);
        if ((packed() || model >= &models[OTHER]) && !safetensors_find(&want.tensors, full))
            continue;
        close_to("gradient", p->name, s->grads + p->at, recorded("grad.", p->name, n), n, tol);
        for (size_t i = n; i < p->n; i++)
            assert_true(s->grads[p->at + i] == 0); /* of padding rows */
    }
}

/* Logits, loss and gradients of the first batch, cut into micro-batches of run.b. */
static void first_batch(int which, struct model_run run, double tol)
{
    struct model *m;
    struct room r;
    struct model_batch mb = {.tokens = r.tokens, .targets = r.targets, .starts = r.starts, .here = r.here}, scaled = mb;
    double sum, total = 0;
    int64_t b = run.b;

    take(which);
    run.t = T;
    run.reset_positions = run.reset_attention = packed();
    assert_int_equal(model_open(&m, dev, &model->config, NULL, &run, &e), 0);
    make_up(m);
    for (int i = 0; i < m->n_buffers; i++)
        memset(m->buffers[i]->grads, 0, m->buffers[i]->memory.grads);
    for (int64_t i = 0; i < B; i += b) {
        scaled.grad_scale = batch(0, i, b, &r);
        forward(m, &mb, &sum);
        if (b == B)
            check_logits(m, tol);
        forward(m, &scaled, &sum);
        model_backward_begin(m, i, i + 1);
        assert_int_equal(model_backward(m, &scaled, &e), 0);
        total += sum;
    }
    float loss = (float)total * scaled.grad_scale;
    close_to("loss", "", &loss, recorded("losses", "", STEPS), 1, tol);
    for (int i = 0; i < m->n_buffers; i++)
        check_gradients(m->buffers[i], tol);
    model_close(m);
}

static void fp32_equals_pytorch(void **state)
{
    (void)state;
    first_batch(GPT2, (struct model_run){.b = B}, 1e-4);
    first_batch(LLAMA_3, (struct model_run){.b = B}, 1e-4);
    first_batch(MIXTRAL, (struct model_run){.b = B}, 1e-4);
    first_batch(GPT2_DOCUMENTS, (struct model_run){.b = B}, 1e-4);
    first_batch(LLAMA_DOCUMENTS, (struct model_run){.b = B}, 1e-4);
}

static void other_attention_equals_recordings(void **state)
{
    (void)state;
    for (int i = OTHER; i < MODELS; i++) {
        first_batch(i, (struct model_run){.b = B}, 1e-5);
        first_batch(i, (struct model_run){.b = B, .recompute = RECOMPUTE_FULL}, 1e-5);
        first_batch(i, (struct model_run){.b = B, .recompute = RECOMPUTE_SELECTIVE}, 1e-5);
    }
}

static void recomputation_equals_pytorch(void **state)
{
    (void)state;
    static const int which[] = {GPT2, LLAMA_3, MIXTRAL, GPT2_DOCUMENTS, LLAMA_DOCUMENTS};

    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        for (int layers = 1; layers <= 2; layers++) {
            first_batch(which[i], (struct model_run){.b = B, .recompute = RECOMPUTE_FULL, .layers = layers}, 1e-4);
            first_batch(which[i], (struct model_run){.b = B, .recompute = RECOMPUTE_FULL, .layers = layers, .block = true},
                        1e-4);
            first_batch(which[i], (struct model_run){.b = B, .recompute = RECOMPUTE_SELECTIVE}, 1e-4);
        }
}

static void accumulation_equals_pytorch(void **state)
{
    (void)state;
    first_batch(GPT2, (struct model_run){.b = 1}, 1e-4);
    first_batch(LLAMA_3, (struct model_run){.b = 1}, 1e-4);
    first_batch(GPT2_DOCUMENTS, (struct model_run){.b = 1}, 1e-4);
    first_batch(LLAMA_DOCUMENTS, (struct model_run){.b = 1}, 1e-4);
}

/* Eight bits of mantissa in weights and activations: 3 % of a tensor's largest value. */
static void bf16_is_near_pytorch(void **state)
{
    (void)state;
    first_batch(GPT2, (struct model_run){.b = B, .dt = DTYPE_BF16}, 3e-2);
    first_batch(LLAMA_3, (struct model_run){.b = B, .dt = DTYPE_BF16}, 3e-2);
    first_batch(MIXTRAL, (struct model_run){.b = B, .dt = DTYPE_BF16}, 0.12); /* one token goes to another expert */
    first_batch(GPT2_DOCUMENTS, (struct model_run){.b = B, .dt = DTYPE_BF16}, 3e-2);
    first_batch(LLAMA_DOCUMENTS, (struct model_run){.b = B, .dt = DTYPE_BF16}, 3e-2);
}

static void update(const struct param_buffer *s, float *mom, float *var, int64_t step, const float *clip)
{
    for (int k = 0; k < s->params.n; k++) {
        const struct param *p = &s->params.v[k];
        struct update a = {
            .step = step, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-5, .weight_decay = param_decays(p) ? 0.1 : 0,
            .grad_scale = clip, .kind = UPDATE_ADAMW,
        };

        assert_int_equal(dev->ops->update(dev, &a, s->weights + p->at, mom + p->at, var + p->at, s->grads + p->at,
                                         s->low ? s->low + p->at : NULL, (int64_t)p->n, &e), 0);
    }
}

/* As the trainer after a step; the biases of the only layer with experts are then the recorded ones. */
static void move_biases(struct model *m, int step)
{
    struct train_part part = {.model = m};
    struct layout l = {0};
    struct comm *self;

    if (!m->config.expert_bias)
        return;
    assert_int_equal(comm_open_self(&self, &e), 0);
    l.replicas = self;
    assert_int_equal(expert_bias_end_step(&l, &part, 1, m->config.bias_rate, &e), 0);
    if (m->dt != DTYPE_F32)
        return comm_close(self);
    close_to("biases", "", m->moe.bias.now, recorded("biases", "", STEPS * 12) + step * 12, 12, 1e-6);
    assert_memory_equal(m->moe.bias.now, m->moe.bias.host, 12 * sizeof(float));
    comm_close(self);
}

/* Tokens further on of a batch; room: what they lie in. */
static void look_further(const struct model *m, struct model_batch *b, int32_t *room, struct mtp_rows *rows, double *weight)
{
    if (!m->mtp.n)
        return;
    mtp_rows(m, b, room, rows, weight);
    b->further = rows;
}

/* Ten steps; m, v: moments, by store. */
static void steps(struct model *m, float *mom[], float *var[], double tol)
{
    float *clip, loss[STEPS], norm[STEPS], further[STEPS * MODEL_MTP_MOST];
    double *sumsq, sum, weight[MODEL_MTP_MOST];
    int32_t more[MODEL_MTP_MOST * MTP_ROWS * B * T];
    struct mtp_rows rows[MODEL_MTP_MOST];
    size_t more_n;
    struct room r;
    struct model_batch scaled = {.tokens = r.tokens, .targets = r.targets, .starts = r.starts, .here = r.here};
    double all;

    assert_int_equal(device_alloc(dev, (void **)&clip, sizeof *clip, &e), 0);
    assert_int_equal(device_alloc(dev, (void **)&sumsq, sizeof *sumsq, &e), 0);
    for (int s = 0; s < STEPS; s++) {
        all = 0;
        for (int64_t i = 0; i < B; i += m->b, all += sum) {
            scaled.grad_scale = batch(s, i, m->b, &r);
            look_further(m, &scaled, more, rows, weight);
            forward(m, &scaled, &sum);
            model_backward_begin(m, i / m->b, B / m->b);
            assert_int_equal(model_backward(m, &scaled, &e), 0);
        }
        for (int64_t k = 0; k < m->mtp.n; k++)
            further[s * m->mtp.n + k] = (float)(m->mtp.loss[k] * weight[k]);
        *sumsq = 0;
        for (int i = 0; i < m->n_buffers; i++) {
            int64_t n = (int64_t)m->buffers[i]->params.elements;

            assert_int_equal(dev->ops->vec_sumsq(dev, DTYPE_F32, sumsq, n, m->buffers[i]->grads, n, &e), 0);
        }
        assert_int_equal(dev->ops->clip_scale(dev, clip, sumsq, 1, 0.5f, &e), 0);
        loss[s] = (float)all * scaled.grad_scale;
        norm[s] = (float)sqrt(*sumsq);
        for (int i = 0; i < m->n_buffers; i++)
            update(m->buffers[i], mom[i], var[i], s + 1, clip);
        move_biases(m, s);
    }
    close_to("losses", "", loss, recorded("losses", "", STEPS), STEPS, tol);
    close_to("norms", "", norm, recorded("norms", "", STEPS), STEPS, tol);
    more_n = STEPS * (size_t)m->mtp.n;
    if (more_n)
        close_to("losses further on", "", further, recorded("further", "", more_n), more_n, tol);
    device_free(dev, clip);
    device_free(dev, sumsq);
}

static int64_t params_count(const struct params *p)
{
    int64_t n = 0;

    for (int i = 0; i < p->n; i++)
        n += (int64_t)p->v[i].n;
    return n;
}

static void ten_steps(int which, enum dtype dt, double tol)
{
    struct model_run run = {.dt = dt, .b = B, .t = T};
    struct model *m;
    float *mom[MODEL_BUFFERS], *var[MODEL_BUFFERS];
    int64_t count = 0;

    take(which);
    run.reset_positions = run.reset_attention = packed();
    run.b = model->config.balancing == BALANCE_GLOBAL ? 1 : B; /* whose micro-batches count */
    assert_int_equal(model_open(&m, dev, &model->config, NULL, &run, &e), 0);
    make_up(m);
    for (int i = 0; i < m->n_buffers; i++) {
        count += params_count(&m->buffers[i]->params);
        mom[i] = calloc(m->buffers[i]->params.elements, sizeof **mom);
        var[i] = calloc(m->buffers[i]->params.elements, sizeof **var);
    }
    assert_int_equal(model_config_params(&model->config), count);
    steps(m, mom, var, tol);
    for (int k = 0; which == GPT2 && dt == DTYPE_F32 && k < m->dense.params.n; k++) {
        const struct param *p = &m->dense.params.v[k];
        size_t n = real(&m->dense.params, k);

        close_to("weights after ten steps", p->name, m->dense.weights + p->at, recorded("after.", p->name, n), n, tol);
    }
    for (int i = 0; i < m->n_buffers; i++) {
        free(mom[i]);
        free(var[i]);
    }
    model_close(m);
}

static void ten_steps_equal_pytorch(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        ten_steps(i, DTYPE_F32, 1e-4);
}

static void ten_bf16_steps_are_near_pytorch(void **state)
{
    (void)state;
    for (int i = 0; i < OTHER; i++) /* the others' weights make probabilities that bf16 has only roughly */
        ten_steps(i, DTYPE_BF16, 2e-2);
}

/* The choice and weights of DeepSeek-V3's router with a bias. */
static void choices_are_transformers(void **state)
{
    enum { ROWS = 100, E = 12, K = 4 };
    static float logits[ROWS * E], lse[ROWS], weight[ROWS * K];
    static int32_t choice[ROWS * K];
    struct route r = {.t = ROWS, .experts = E, .k = K, .groups = 4, .of = 2, .score = ROUTE_SIGMOID, .scale = 2.5f};

    (void)state;
    model = &(struct recording){.prefix = "", .file = ROUTERS};
    map_recording();
    memcpy(logits, recorded("logits", "", ROWS * E), sizeof logits);
    r.bias = recorded("bias", "", E);
    assert_int_equal(dev->ops->route_fwd(dev, &r, logits, lse, choice, weight, &e), 0);
    assert_memory_equal(choice, recorded("choice", "", ROWS * K), sizeof choice);
    close_to("weights", "", weight, recorded("weights", "", ROWS * K), ROWS * K, 1e-6);
}

static const int32_t *masks(const char *what, size_t *n)
{
    char name[64];
    const struct safetensor *t;

    snprintf(name, sizeof name, "masks.%s", what);
    t = safetensors_find(&want.tensors, name);
    *n = t->data.n / sizeof(int32_t);
    return (const int32_t *)(const void *)t->data.p;
}

static void documents_are_megatrons(void **state)
{
    const int32_t *tokens, *position, *start, *loss;
    int32_t *starts, *targets;
    size_t n;

    (void)state;
    take(GPT2_DOCUMENTS);
    position = masks("positions", &n);
    start = masks("starts", &n);
    loss = masks("loss", &n);
    tokens = masks("tokens", &n);
    assert_true(n > 10 * T);
    starts = calloc(n, sizeof *starts);
    targets = calloc(n, sizeof *targets);
    documents_starts(tokens, (int64_t)n / T, T, EOD, starts);
    documents_mask(tokens, (int64_t)n, EOD, targets);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(starts[i], start[i]);
        assert_int_equal((int32_t)(i % T) - starts[i], position[i]);
        assert_int_equal(targets[i] >= 0, loss[i]);
    }
    free(starts);
    free(targets);
}

/* The logits of a sequence; its documents are in r after it. */
static void logits_of(struct model *m, struct room *r, float *out)
{
    double sum;

    memset(r->targets, 0, sizeof r->targets);
    documents_starts(r->tokens, 1, T, EOD, r->starts);
    forward(m, &(struct model_batch){.tokens = r->tokens, .targets = r->targets, .starts = r->starts, .here = r->here}, &sum);
    for (int64_t i = 0; i < T; i++)
        memcpy(out + i * V, (float *)m->head.logits + i * 256, V * sizeof *out);
}

/* Of documents in a sequence, each has the logits that it has where the sequence begins with it. */
static void a_document_is_as_if_alone(void **state)
{
    const struct model_run run = {.b = 1, .t = T, .reset_positions = true, .reset_attention = true};
    static float all[T * V], one[T * V];
    struct room whole, alone;
    struct model *m;

    (void)state;
    for (int which = GPT2_DOCUMENTS; which <= LLAMA_DOCUMENTS; which++) {
        take(which);
        assert_int_equal(model_open(&m, dev, &model->config, NULL, &run, &e), 0);
        make_up(m);
        batch(0, 0, 1, &whole);
        logits_of(m, &whole, all);
        for (int64_t i = 0, n; i < T; i += n) {
            for (n = 1; i + n < T && whole.starts[i + n] == i; n++)
                ;
            for (int64_t j = 0; j < T; j++)
                alone.tokens[j] = j < n ? whole.tokens[i + j] : 1;
            logits_of(m, &alone, one);
            close_to("logits of a document", "", one, all + i * V, (size_t)(n * V), 1e-6);
        }
        model_close(m);
    }
}

/* The loss of b, its weights changed. */
static double loss_of(struct model *m, const struct model_batch *b)
{
    double sum;

    assert_int_equal(model_weights_changed(m, &e), 0);
    forward(m, b, &sum);
    return sum / (B * T);
}

/* The loss rises along the gradient of parameter k of s, g, by its norm, as central differences say: of steps so small, because
 * ReLU's derivative jumps and each jump between their ends is an error. */
static void rises_as_its_gradient(struct model *m, const struct model_batch *b, struct param_buffer *s, int k, const char *kind)
{
    const struct param *p = &s->params.v[k];
    float *w = s->weights + p->at, *was = malloc(p->n * sizeof *was);
    const float *g = s->grads + p->at;
    double norm = 0, loss[2], slope, rise = 2e-4;

    assert_non_null(was);
    memcpy(was, w, p->n * sizeof *was);
    for (size_t i = 0; i < p->n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < p->n; i++)
            w[i] = was[i] + (float)((side ? 1 : -1) * rise / (norm * norm) * g[i]);
        loss[side] = loss_of(m, b);
    }
    slope = (loss[1] - loss[0]) / (2 * rise) * norm;
    memcpy(w, was, p->n * sizeof *was);
    free(was);
    if (!(fabs(slope - norm) <= 2e-3 * norm))
        fail_msg("%s, %s: along its gradient of %.6g the loss rises by %.6g", kind, p->name, norm, slope);
}

/* Gradients of the batch that is taken. */
static void gradients(struct model *m, const struct model_batch *b)
{
    double sum;

    make_up(m);
    for (int i = 0; i < m->n_buffers; i++)
        memset(m->buffers[i]->grads, 0, m->buffers[i]->memory.grads);
    forward(m, b, &sum);
    model_backward_begin(m, 0, 1);
    assert_int_equal(model_backward(m, b, &e), 0);
}

static void slopes_of(const struct model_config *c, const struct model_batch *b, float grad_scale, const char *what)
{
    const struct model_run run = {.b = B, .t = T};
    struct model_batch scaled = *b;
    struct model *m;

    scaled.grad_scale = grad_scale;
    assert_int_equal(model_open(&m, dev, c, NULL, &run, &e), 0);
    gradients(m, &scaled);
    for (int k = 0; k < m->dense.params.n; k++)
        rises_as_its_gradient(m, b, &m->dense, k, what);
    model_close(m);
}

/* Of each kind of MLP, those of no recording too. */
static void gradients_are_those_of_the_loss(void **state)
{
    struct room r;
    const struct model_batch b = {.tokens = r.tokens, .targets = r.targets, .starts = r.starts, .here = r.here};
    float scale;

    (void)state;
    take(GPT2);
    scale = batch(0, 0, B, &r);
    for (int kind = 0; kind < MLP_KINDS_N; kind++) {
        struct model_config c = model->config;
        char what[16];

        c.mlp = kind;
        c.ffn = 64;
        snprintf(what, sizeof what, "MLP %d", kind);
        slopes_of(&c, &b, scale, what);
    }
}

#define ROTARY SHAPE, .position = POSITION_ROPE, .norm = NORM_RMS, .no_bias = true
static struct model_config blocks[] = {
    {SHAPE, .norm_place = NORM_POST},
    {SHAPE, .norm_place = NORM_BOTH, .norm_1p = true},
    {ROTARY, .norm_place = NORM_POST, .qk_norm = true, .qk_norm_wide = true, .groups = 2},
    {ROTARY, .norm_place = NORM_BOTH, .norm_1p = true, .qk_norm = true, .embedding_scale = 6.9282, .proj_bias = true},
    {SHAPE, .parallel = PARALLEL_NORMS},
    {SHAPE, .parallel = PARALLEL_NORM},
    {ROTARY, .parallel = PARALLEL_NORMS, .norm_place = NORM_BOTH, .residual_scale = 0.7, .logits_scale = 0.3, .qkv_bias = true},
    {ROTARY, .parallel = PARALLEL_NORM, .norm_place = NORM_POST, .residual_scale = 1.5, .mlp_bias = true, .mlp = MLP_SWIGLU},
    {SHAPE, .norm_place = NORM_BOTH, .experts = 4, .topk = 4, .moe_ffn = 16, .moe_freq = 2, .residual_scale = 0.9},
};

/* Of each way in which a layer's modules and norms stand; and backward has the same bits whatever it makes again. */
static void blocks_have_the_gradients_of_the_loss(void **state)
{
    static const struct model_run again[] = {
        {.recompute = RECOMPUTE_SELECTIVE}, {.recompute = RECOMPUTE_FULL, .layers = 1},
        {.recompute = RECOMPUTE_FULL, .layers = 2},
        {.recompute = RECOMPUTE_FULL, .layers = 1, .block = true},
    };
    const struct model_dropout drop = {.seed = 5, .now = {.step = 3}};
    struct room r;
    struct model_batch b = {.tokens = r.tokens, .targets = r.targets, .starts = r.starts, .here = r.here};
    float scale;

    (void)state;
    take(GPT2);
    scale = batch(0, 0, B, &r);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct model_config *c = &blocks[i];
        struct model *m, *n;
        char what[16];

        assert_int_equal(model_config_check(c, 128, &e), 0);
        snprintf(what, sizeof what, "block %d", (int)i);
        slopes_of(c, &b, scale, what);
        c->hidden_dropout = 0.3;
        b.drop = &drop;
        b.grad_scale = scale;
        assert_int_equal(model_open(&m, dev, c, NULL, &(struct model_run){.b = B, .t = T}, &e), 0);
        assert_int_equal(model_config_params(c), params_count(&m->dense.params) + params_count(&m->experts.params));
        gradients(m, &b);
        for (size_t k = 0; k < sizeof again / sizeof *again; k++) {
            struct model_run run = again[k];

            run.b = B;
            run.t = T;
            assert_int_equal(model_open(&n, dev, c, NULL, &run, &e), 0);
            gradients(n, &b);
            for (int s = 0; s < m->n_buffers; s++)
                if (memcmp(m->buffers[s]->grads, n->buffers[s]->grads, m->buffers[s]->memory.grads) != 0)
                    fail_msg("%s, made again in way %d: other gradients", what, (int)k);
            model_close(n);
        }
        model_close(m);
        b.drop = NULL;
        b.grad_scale = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_transformers),
        cmocka_unit_test(documents_are_megatrons),
        cmocka_unit_test(a_document_is_as_if_alone),
        cmocka_unit_test(gradients_are_those_of_the_loss),
        cmocka_unit_test(blocks_have_the_gradients_of_the_loss),
        cmocka_unit_test(fp32_equals_pytorch),
        cmocka_unit_test(other_attention_equals_recordings),
        cmocka_unit_test(recomputation_equals_pytorch),
        cmocka_unit_test(accumulation_equals_pytorch),
        cmocka_unit_test(bf16_is_near_pytorch),
        cmocka_unit_test(ten_steps_equal_pytorch),
        cmocka_unit_test(ten_bf16_steps_are_near_pytorch),
    };

    return cmocka_run_group_tests_name("parity", tests, start, end);
}
