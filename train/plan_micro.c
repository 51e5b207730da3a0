/* Which ops a micro-batch and an update are, with their sizes: train/model_forward.c, model_back.c and their like as a list. */
#include "train/layer_attention.h"
#include "train/model_fp8.h"
#include "train/plan_ops.h"

/* A micro-batch under way: its rows, those of norms, how often layers run forward. */
struct micro {
    const struct plan_share *s;
    plan_visit_fn *visit;
    void *arg;
    int64_t rows, own;
    double forward;
};

static void op(const struct micro *p, enum plan_op which, double times, int64_t m, int64_t n, int64_t k)
{
    if (times > 0 && m > 0 && n > 0)
        p->visit(p->arg, which, &(struct plan_dims){.m = m, .n = n, .k = k}, times);
}

static bool by_blocks(const struct plan_share *s)
{
    return s->recipe == FP8_BLOCKWISE;
}

/* A linear layer of that many layers: forward, and backward to its weight, added to in fp32, and to its input. */
static void linear(const struct micro *p, double layers, int64_t rows, int64_t out, int64_t in, bool fp8, bool bias)
{
    bool blocks = fp8 && by_blocks(p->s);
    enum plan_op product = blocks ? PLAN_PRODUCT_BLOCKS : fp8 ? PLAN_PRODUCT_FP8 : PLAN_PRODUCT;

    op(p, product, layers * p->forward, rows, out, in);
    if (layers > 0)
        p->visit(p->arg, blocks ? PLAN_WEIGHT_BLOCKS : product,
                 &(struct plan_dims){.m = out, .n = in, .k = rows, .d = 8}, layers);
    op(p, product, layers, rows, in, out);
    if (bias && !fp8) /* FP8 adds columns up as it converts */
        op(p, PLAN_BIAS_SUMS, layers, rows, out, 0);
}

/* A conversion to FP8, one way or both, by the run's recipe. */
static void convert(const struct micro *p, double times, int64_t rows, int64_t cols, bool one_way)
{
    op(p, by_blocks(p->s) ? PLAN_FP8_BLOCKS : PLAN_FP8, times, rows, cols, one_way);
}

/* What looks for a tensor's own largest value before it is converted. */
static void largest(const struct micro *p, double times, int64_t rows, int64_t cols)
{
    op(p, PLAN_AMAX, p->s->recipe == FP8_TENSORWISE ? times : 0, rows, cols, 0);
}

/* The gradient of a linear layer's output, to FP8 for both products. */
static void convert_gradient(const struct micro *p, double layers, int64_t rows, int64_t out)
{
    largest(p, layers, rows, out);
    convert(p, layers, rows, out, false);
}

/* Whether the op that makes an input, or a gradient, makes it in FP8. */
static bool made_at_once(const struct micro *p, enum fp8_way way)
{
    return p->s->fp8 && way == FP8_MADE && p->s->recipe == FP8_DELAYED;
}

/* A linear layer's input, to FP8 in so many forward passes; of the last it is kept transposed, or backward converts it again, by
 * the scale of before (of its own, where several micro-batches are under way: not counted). */
static void convert_input(const struct micro *p, double layers, double passes, int64_t rows, int64_t in, enum fp8_way way)
{
    bool kept = way != FP8_AGAIN;

    if (made_at_once(p, way))
        return;
    largest(p, layers * passes, rows, in);
    convert(p, layers * (kept ? passes - 1 : passes + 1), rows, in, true);
    convert(p, kept ? layers : 0, rows, in, false);
}

/* What becomes of a norm's output that is an input in FP8, where it is that of one weight alone (train/model_fp8.c). */
static enum fp8_way way_of_norm(const struct plan_share *s)
{
    return s->sequence ? FP8_AGAIN : model_pre_norm(s->model) && s->model->parallel != PARALLEL_NORM ? FP8_MADE : FP8_KEPT;
}

/* Forward passes of the ops that make an input; selective recomputation has one more. */
static double passes_of(const struct micro *p, enum fp8_way way)
{
    return p->s->selective && way == FP8_MADE ? p->forward + 1 : p->forward;
}

/* A norm with the residual before it, of so many layers; fp8: its output is the input of products in FP8, and made so. */
static void norm(const struct micro *p, double layers, double forward, bool fp8)
{
    int64_t h = p->s->model->hidden;
    bool rms = p->s->model->norm == NORM_RMS;

    op(p, fp8 ? rms ? PLAN_RMS_FP8 : PLAN_NORM_FP8 : rms ? PLAN_RMS : PLAN_NORM, layers * forward, p->own, h, 0);
    op(p, rms ? PLAN_RMS_BACK : PLAN_NORM_BACK, layers, p->own, h, 0);
}

/* What makes queries, keys and values of so many layers, with latents; products alone: what else there is moves less. */
static void latents(const struct micro *p, double layers)
{
    const struct model_config *m = p->s->model;
    int64_t t = p->s->tensor, norms = m->q_rank + m->kv_rank, q = model_q_width(m) / t;
    bool rms = m->norm == NORM_RMS;

    if (m->q_rank)
        linear(p, layers, p->rows, m->q_rank, m->hidden, false, false);
    linear(p, layers, p->rows, q, m->q_rank ? m->q_rank : m->hidden, false, false);
    linear(p, layers, p->rows, model_latent_width(m), m->hidden, false, false);
    linear(p, layers, p->rows, model_kv_up_width(m) / t, m->kv_rank, false, false);
    if (m->qk_norm) {
        op(p, rms ? PLAN_RMS : PLAN_NORM, layers * p->forward / 2, p->rows, norms, 0); /* no residual */
        op(p, rms ? PLAN_RMS_BACK : PLAN_NORM_BACK, layers * 3 / 4, p->rows, norms, 0);
    }
    op(p, PLAN_ROPE, layers * (p->forward + 1), p->rows, (m->heads / t + 1) * m->qk_turn, 0);
    op(p, PLAN_COPY, layers * (p->forward + 1), p->rows, 3 * q + model_proj_width(m) / t, 0); /* heads put together */
}

/* Of so many layers those that have gates of values, which take the input of queries, keys and values too. */
static double gated(const struct model_config *m, double layers)
{
    return m->value_gate ? layers * (double)model_value_layers(m) / (double)m->layers : 0;
}

/* The same without. */
static void qkv(const struct micro *p, double layers)
{
    const struct model_config *m = p->s->model;
    int64_t t = p->s->tensor, wide = (model_q_width(m) + model_kv_width(m)) / t, out = model_qkv_width(m) / t;
    bool rms = m->norm == NORM_RMS;

    linear(p, layers, p->rows, out, m->hidden, p->s->fp8, model_qkv_bias(m));
    if (p->s->fp8) {
        enum fp8_way way = way_of_norm(p->s);

        convert_input(p, layers - gated(m, layers), passes_of(p, way), p->rows, m->hidden, way);
        convert_input(p, gated(m, layers), p->forward, p->rows, m->hidden, FP8_AGAIN);
        convert_gradient(p, layers, p->rows, out);
    }
    if (m->qk_norm) {
        op(p, rms ? PLAN_RMS : PLAN_NORM, layers * p->forward / 2, p->rows, wide, 0); /* no residual */
        op(p, rms ? PLAN_RMS_BACK : PLAN_NORM_BACK, layers * 3 / 4, p->rows, wide, 0);
    }
    if (m->position == POSITION_ROPE)
        op(p, PLAN_ROPE, layers * (p->forward + 1), p->rows, wide, 0);
}

static void attention(const struct micro *p)
{
    const struct model_config *m = p->s->model;
    int64_t t = p->s->tensor, q = model_proj_width(m) / t;
    const struct plan_dims d = {.m = p->s->b, .n = p->s->t, .k = m->heads / t, .d = m->head_dim, .kv = m->groups / t,
                                .keys = layer_attention_keys(m, p->s->t)};
    double layers = (double)p->s->layers, whole = layers / (double)p->s->context;
    bool fp8 = p->s->fp8;

    if (m->value_freq) {
        double n = layers * (double)model_value_layers(m) / (double)m->layers;

        op(p, PLAN_EMBEDDING, n * (p->forward + 1), p->rows, model_kv_width(m) / t, 0);
        op(p, PLAN_EMBEDDING_BACK, n, p->rows, model_kv_width(m) / t, 0);
    }
    if (m->latent)
        latents(p, layers);
    else
        qkv(p, layers);
    p->visit(p->arg, PLAN_ATTENTION, &d, whole * p->forward);
    p->visit(p->arg, PLAN_ATTENTION_BACK, &d, whole);
    linear(p, layers, p->rows, m->hidden, q, fp8, model_proj_bias(m));
    if (fp8) {
        convert_input(p, layers, p->forward, p->rows, q, FP8_KEPT);
        convert_gradient(p, layers, p->rows, m->hidden);
    }
}

/* Activations of width f of so many rows and layers; way: what becomes of them in FP8. */
static void activation(const struct micro *p, double layers, int64_t rows, int64_t f, enum fp8_way way)
{
    bool fp8 = p->s->fp8, glu = model_halves(p->s->model) == 2, at_once = made_at_once(p, way);
    bool fused = !glu && !(fp8 && way == FP8_MADE); /* the products' epilogues have GELU and its derivative */
    double again = p->s->selective ? p->forward + 1 : p->forward;

    if (at_once) {
        op(p, glu ? PLAN_SWIGLU_FP8 : PLAN_GELU_FP8, layers * again, rows, f, 0);
        op(p, glu ? PLAN_SWIGLU_BACK_FP8 : PLAN_GELU_BACK_FP8, layers, rows, glu ? 2 * f : f, 0);
    } else {
        op(p, glu ? PLAN_SWIGLU : PLAN_GELU, layers * (fused ? again - p->forward : again), rows, f, 0);
        op(p, glu ? PLAN_SWIGLU_BACK : PLAN_GELU_BACK, fused ? 0 : layers, rows, f, 0);
    }
}

/* MLPs of width f over so many rows, each of so many layers; experts: they are some, or shared, whose inputs stay in bf16. */
static void mlp(const struct micro *p, double layers, int64_t rows, int64_t f, bool experts)
{
    const struct model_config *m = p->s->model;
    int64_t wide = model_halves(m) * f;
    enum fp8_way in = experts ? FP8_AGAIN : way_of_norm(p->s), act = experts ? FP8_AGAIN : FP8_MADE;

    linear(p, layers, rows, wide, m->hidden, p->s->fp8, model_mlp_bias(m));
    activation(p, layers, rows, f, act);
    linear(p, layers, rows, m->hidden, f, p->s->fp8, model_mlp_bias(m));
    if (!p->s->fp8)
        return;
    convert_input(p, layers, passes_of(p, in), rows, m->hidden, in);
    convert_input(p, layers, passes_of(p, act), rows, f, act);
    if (!made_at_once(p, act))
        convert_gradient(p, layers, rows, wide);
    convert_gradient(p, layers, rows, m->hidden);
}

/* Experts are taken to be used evenly. */
static void experts(const struct micro *p, double layers)
{
    const struct model_config *m = p->s->model;
    int64_t ranks = p->s->expert > 1 ? p->s->expert : 1, all = p->rows * m->topk;
    int64_t here = m->experts > ranks ? m->experts / ranks : 1;

    linear(p, layers, p->rows, m->experts, m->hidden, false, false);
    op(p, PLAN_TAKE, layers * p->forward, p->rows, m->hidden, m->topk);
    mlp(p, layers * (double)here, all / here, m->moe_ffn / p->s->tensor, true);
    op(p, PLAN_JOIN, layers * p->forward, p->rows, m->hidden, m->topk);
    op(p, PLAN_JOIN_BACK, layers, p->rows, m->hidden, m->topk);
    op(p, PLAN_TAKE, layers, p->rows, m->hidden, m->topk);
    if (m->moe_shared)
        mlp(p, layers, p->rows, m->moe_shared / p->s->tensor, true);
}

/* The norms of all layers, of which so many have experts; those that are for one linear layer alone may be made in FP8. */
static void norms(const struct micro *p, double moe)
{
    const struct model_config *m = p->s->model;
    double layers = (double)p->s->layers, again = p->s->selective ? p->forward + 1 : p->forward;
    double all = model_layer_norms(m) * layers;
    double made = made_at_once(p, way_of_norm(p->s)) ? 2 * layers - gated(m, layers) - moe : 0;

    norm(p, made, again, true);
    norm(p, all - made, again, false);
}

void plan_micro_batch(const struct plan_share *s, plan_visit_fn *visit, void *arg)
{
    struct plan_share more = *s;
    const struct model_config *m = s->model;
    int64_t mtp = s->head ? m->mtp_layers : 0; /* layers as the others, but each with an output layer */
    struct micro p = {&more, visit, arg, .rows = s->b * s->t / s->context, .forward = s->full ? 2 : 1};
    double moe = (double)s->layers * (double)model_moe_layers(m) / (double)m->layers;

    more.layers += mtp;
    moe += model_mtp_moe(m) ? (double)mtp : 0;
    p.own = s->sequence ? p.rows / s->tensor : p.rows;
    norms(&p, moe);
    attention(&p);
    mlp(&p, (double)more.layers - moe, p.rows, m->ffn / s->tensor, false);
    if (moe > 0)
        experts(&p, moe);
    p.forward = 1;
    if (s->embeds || mtp) {
        double times = (double)(s->embeds + mtp);

        op(&p, PLAN_EMBEDDING, times, p.rows, m->hidden, 0);
        op(&p, PLAN_EMBEDDING_BACK, times, p.rows, m->hidden, 0);
        norm(&p, s->embeds && m->embedding_norm, 1, false);
    }
    if (s->head) {
        norm(&p, (double)(1 + 3 * mtp), 1, false);
        linear(&p, (double)mtp, p.own, m->hidden, 2 * m->hidden, false, false);
        linear(&p, (double)(1 + mtp), p.rows, m->padded_vocab / s->tensor, m->hidden, false, false);
        op(&p, PLAN_XENT, (double)(1 + mtp), p.rows, m->padded_vocab / s->tensor, 0);
    }
}

/* Iterations of so many matrices (train/orthogonal.c): three products each, casts and scales. */
static void iterate(const struct micro *p, double matrices, int64_t rows, int64_t cols)
{
    const struct plan_whole *o = &p->s->whole;
    int64_t r = rows < cols ? rows : cols, long_side = rows < cols ? cols : rows, size = o->fp32 ? 4 : 2;
    double times = matrices / (double)o->ranks * (double)o->steps;

    if (times <= 0 || r < 1)
        return;
    p->visit(p->arg, PLAN_ORTHOGONAL, &(struct plan_dims){.m = r, .n = r, .k = long_side, .d = size, .kv = size}, times);
    p->visit(p->arg, PLAN_ORTHOGONAL, &(struct plan_dims){.m = r, .n = r, .k = r, .d = size, .kv = 8}, times);
    p->visit(p->arg, PLAN_ORTHOGONAL, &(struct plan_dims){.m = rows, .n = cols, .k = r, .d = size, .kv = 8}, times);
    op(p, PLAN_COPY, 2 * times, 1, r * r * (4 + size), 0); /* a byte is read and written */
    op(p, PLAN_COPY, 2 * times, 1, r * long_side * (4 + size), 0);
}

/* Those of attention, of so many layers. */
static void whole_attention(const struct micro *p, double n)
{
    const struct model_config *m = p->s->model;
    int64_t h = m->hidden, q = model_q_width(m);

    if (m->latent) {
        iterate(p, n, m->q_rank, h);
        iterate(p, n, q, m->q_rank ? m->q_rank : h);
        iterate(p, n, model_latent_width(m), h);
        iterate(p, n, model_kv_up_width(m), m->kv_rank);
    } else if (p->s->whole.qkv || m->output_gate) {
        iterate(p, n, model_qkv_width(m), h);
    } else {
        iterate(p, n, q, h);
        iterate(p, 2 * n, model_kv_width(m), h);
    }
    iterate(p, n, h, model_proj_width(m));
}

/* Of all layers of a stage. */
static void whole_matrices(const struct micro *p)
{
    const struct model_config *m = p->s->model;
    int64_t h = m->hidden, halves = model_halves(m);
    double n = (double)p->s->layers, moe = n * (double)model_moe_layers(m) / (double)m->layers;

    whole_attention(p, n);
    iterate(p, n - moe, halves * m->ffn, h);
    iterate(p, n - moe, h, m->ffn);
    iterate(p, moe, m->experts, h);
    iterate(p, moe * (double)m->experts, halves * m->moe_ffn, h);
    iterate(p, moe * (double)m->experts, h, m->moe_ffn);
    iterate(p, moe, halves * m->moe_shared, h);
    iterate(p, moe, h, m->moe_shared);
}

void plan_update(const struct plan_share *s, double gradients, double updated, plan_visit_fn *visit, void *arg)
{
    const struct micro p = {s, visit, arg, 0, 0, 0};

    if (s->fp8) { /* each weight, as it is and transposed; a little more than the layers' */
        largest(&p, 1, 1, (int64_t)gradients);
        convert(&p, 1, 1, (int64_t)gradients, false);
    }
    op(&p, PLAN_SUMSQ, 1, 1, (int64_t)gradients, 0);
    op(&p, PLAN_ADAMW, 1, 1, (int64_t)updated, 0);
    if (s->whole.steps)
        whole_matrices(&p);
}
