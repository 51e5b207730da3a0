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
    double forward, ends; /* passes; and of what ends a layer, which nothing needs of the last one that is run again */
    double converts;      /* of a weight to FP8 */
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

/* Whether adapters alone are trained. */
static bool frozen(const struct plan_share *s)
{
    return s->model->lora_rank > 0;
}

/* ---- conversions to FP8 ---- */

/* One way or both, by the run's recipe. */
static void convert(const struct micro *p, double times, int64_t rows, int64_t cols, bool one_way)
{
    op(p, by_blocks(p->s) ? PLAN_FP8_BLOCKS : PLAN_FP8, times, rows, cols, one_way);
}

/* What looks for a tensor's own largest value before it is converted. */
static void largest(const struct micro *p, double times, int64_t rows, int64_t cols)
{
    op(p, PLAN_AMAX, p->s->recipe == FP8_TENSORWISE ? times : 0, rows, cols, 0);
}

/* The gradient of a linear layer's output, to FP8 for both products; for that of its input alone, where the weight is frozen. */
static void convert_gradient(const struct micro *p, double layers, int64_t rows, int64_t out)
{
    largest(p, layers, rows, out);
    convert(p, layers, rows, out, frozen(p->s));
}

/* What becomes of an input (train/model_fp8.c); that of a frozen weight is of no use transposed. */
static enum fp8_way way_of(const struct plan_share *s, enum fp8_way trained)
{
    return frozen(s) ? FP8_AGAIN : trained;
}

/* Whether the op that makes an input, or a gradient, makes it in FP8. */
static bool made_at_once(const struct micro *p, enum fp8_way way)
{
    return p->s->fp8 && way == FP8_MADE && p->s->recipe == FP8_DELAYED;
}

/* A linear layer's input, to FP8 in so many forward passes; of the last it is kept transposed, or backward converts it again, by
 * the scale of before (of its own, where several micro-batches are under way: not counted), if it needs it. */
static void convert_input(const struct micro *p, double layers, double passes, int64_t rows, int64_t in, enum fp8_way way)
{
    bool kept = way != FP8_AGAIN;

    if (made_at_once(p, way))
        return;
    largest(p, layers * passes, rows, in);
    convert(p, layers * (kept ? passes - 1 : frozen(p->s) ? passes : passes + 1), rows, in, true);
    convert(p, kept ? layers : 0, rows, in, false);
}

/* What becomes of a norm's output that is an input in FP8, where it is that of one weight alone. */
static enum fp8_way way_of_norm(const struct plan_share *s)
{
    bool alone = model_pre_norm(s->model) && s->model->parallel != PARALLEL_NORM;

    return way_of(s, s->sequence ? FP8_AGAIN : alone ? FP8_MADE : FP8_KEPT);
}

/* Forward passes of the ops that make an input; selective recomputation has one more. */
static double passes_of(const struct micro *p, enum fp8_way way)
{
    return p->s->selective && way == FP8_MADE ? p->forward + 1 : p->forward;
}

/* ---- linear layers ---- */

/* Of so many rows; in FP8, if the layers are and it is not one that never is. */
struct weight {
    int64_t rows, out, in;
    bool bias, never;
    int64_t target; /* what an adapter of it is called, enum lora_target; 0: it has none */
    bool ends;      /* its layer */
};

static void product(const struct micro *p, enum plan_op which, double times, struct plan_dims d)
{
    if (times > 0)
        p->visit(p->arg, which, &d, times);
}

/* The low-rank products beside it (train/lora.c): A and B forward; A again, their gradients, B's input and A's backward.  What is
 * added to is read too. */
static void adapter(const struct micro *p, double layers, double forward, const struct weight *w)
{
    int64_t r = p->s->model->lora_rank, size = p->s->bf16 ? 2 : 4;

    product(p, PLAN_PRODUCT, layers * (forward + 1), (struct plan_dims){.m = w->rows, .n = r, .k = w->in});
    product(p, PLAN_PRODUCT, layers * forward, (struct plan_dims){.m = w->rows, .n = w->out, .k = r, .d = 2 * size});
    product(p, PLAN_PRODUCT, layers, (struct plan_dims){.m = w->out, .n = r, .k = w->rows, .d = 8});
    product(p, PLAN_PRODUCT, layers, (struct plan_dims){.m = w->rows, .n = r, .k = w->out});
    product(p, PLAN_PRODUCT, layers, (struct plan_dims){.m = r, .n = w->in, .k = w->rows, .d = 8});
    product(p, PLAN_PRODUCT, layers, (struct plan_dims){.m = w->rows, .n = w->in, .k = r, .d = 2 * size});
    op(p, PLAN_COPY, layers * (forward + 2), 1, w->rows * r * size, 0); /* scales of both */
}

/* Of that many layers: forward, and backward to its weight, added to in fp32, and to its input. */
static void linear(const struct micro *p, double layers, const struct weight *w)
{
    bool fp8 = p->s->fp8 && !w->never, blocks = fp8 && by_blocks(p->s), trained = !frozen(p->s);
    enum plan_op which = blocks ? PLAN_PRODUCT_BLOCKS : fp8 ? PLAN_PRODUCT_FP8 : PLAN_PRODUCT;
    double forward = w->ends ? p->ends : p->forward;

    product(p, which, layers * forward, (struct plan_dims){.m = w->rows, .n = w->out, .k = w->in});
    product(p, blocks ? PLAN_WEIGHT_BLOCKS : which, trained ? layers : 0,
            (struct plan_dims){.m = w->out, .n = w->in, .k = w->rows, .d = 8});
    product(p, which, layers, (struct plan_dims){.m = w->rows, .n = w->in, .k = w->out});
    if (w->bias && !fp8 && trained) /* FP8 adds columns up as it converts */
        op(p, PLAN_BIAS_SUMS, layers, w->rows, w->out, 0);
    if (fp8) {
        largest(p, layers * p->converts, w->out, w->in);
        convert(p, layers * p->converts, w->out, w->in, false);
    }
    if (p->s->model->lora_targets & w->target)
        adapter(p, layers, forward, w);
}

/* ---- layers ---- */

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
    int64_t n = p->rows, t = p->s->tensor, norms = m->q_rank + m->kv_rank, q = model_q_width(m) / t;
    bool rms = m->norm == NORM_RMS;

    if (m->q_rank)
        linear(p, layers, &(struct weight){n, m->q_rank, m->hidden, .never = true, .target = LORA_TARGET_Q_DOWN});
    linear(p, layers, &(struct weight){n, q, m->q_rank ? m->q_rank : m->hidden, .never = true, .target = LORA_TARGET_Q_UP});
    linear(p, layers, &(struct weight){n, model_latent_width(m), m->hidden, .never = true, .target = LORA_TARGET_KV_DOWN});
    linear(p, layers, &(struct weight){n, model_kv_up_width(m) / t, m->kv_rank, .never = true, .target = LORA_TARGET_KV_UP});
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

    linear(p, layers, &(struct weight){p->rows, out, m->hidden, .bias = model_qkv_bias(m), .target = LORA_TARGET_QKV});
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

    if (m->value_freq) {
        double n = layers * (double)model_value_layers(m) / (double)m->layers;

        op(p, PLAN_EMBEDDING, n * (p->forward + 1), p->rows, model_kv_width(m) / t, 0);
        op(p, PLAN_EMBEDDING_BACK, frozen(p->s) ? 0 : n, p->rows, model_kv_width(m) / t, 0);
    }
    if (m->latent)
        latents(p, layers);
    else
        qkv(p, layers);
    product(p, PLAN_ATTENTION, whole * p->forward, d);
    product(p, PLAN_ATTENTION_BACK, whole, d);
    linear(p, layers, &(struct weight){p->rows, m->hidden, q, .bias = model_proj_bias(m), .target = LORA_TARGET_PROJ});
    if (p->s->fp8) {
        convert_input(p, layers, p->forward, p->rows, q, way_of(p->s, FP8_KEPT));
        convert_gradient(p, layers, p->rows, m->hidden);
    }
}

/* Activations of width f of so many rows and layers; way: what becomes of them in FP8; apart: no product's epilogue has them. */
static void activation(const struct micro *p, double layers, int64_t rows, int64_t f, enum fp8_way way, bool apart)
{
    bool fp8 = p->s->fp8, glu = model_halves(p->s->model) == 2;
    bool fused = !glu && !apart && !(fp8 && way == FP8_MADE); /* and its derivative */
    double again = p->s->selective ? p->forward + 1 : p->forward;

    if (made_at_once(p, way)) {
        op(p, glu ? PLAN_SWIGLU_FP8 : PLAN_GELU_FP8, layers * again, rows, f, 0);
        op(p, glu ? PLAN_SWIGLU_BACK_FP8 : PLAN_GELU_BACK_FP8, layers, rows, glu ? 2 * f : f, 0);
    } else {
        op(p, glu ? PLAN_SWIGLU : PLAN_GELU, layers * (fused ? again - p->forward : again), rows, f, 0);
        op(p, glu ? PLAN_SWIGLU_BACK : PLAN_GELU_BACK, fused ? 0 : layers, rows, f, 0);
    }
}

/* Whose MLPs: of a layer, of experts, of one beside these. */
enum whose { LAYERS, EXPERTS, SHARED };

/* So many MLPs of width f, each over so many rows, of so many layers.  Inputs of experts stay in bf16, and of these nothing ends
 * a layer. */
static void mlp(const struct micro *p, double layers, int64_t mlps, int64_t rows, int64_t f, enum whose whose)
{
    const struct model_config *m = p->s->model;
    int64_t wide = model_halves(m) * f;
    double all = layers * (double)mlps;
    bool chosen = whose == EXPERTS, ends = !chosen && !(whose == SHARED && m->shared_gate);
    enum fp8_way in = whose == LAYERS ? way_of_norm(p->s) : FP8_AGAIN;
    enum fp8_way act = way_of(p->s, whose == LAYERS ? FP8_MADE : FP8_AGAIN);

    linear(p, all, &(struct weight){rows, wide, m->hidden, .bias = model_mlp_bias(m),
                                       .target = chosen ? LORA_TARGET_EXPERT_FC1 : LORA_TARGET_FC1});
    activation(p, layers, rows * mlps, f, act, chosen || frozen(p->s));
    linear(p, all, &(struct weight){rows, m->hidden, f, .bias = model_mlp_bias(m), .ends = ends,
                                       .target = chosen ? LORA_TARGET_EXPERT_FC2 : LORA_TARGET_FC2});
    if (!p->s->fp8)
        return;
    convert_input(p, all, passes_of(p, in), rows, m->hidden, in);
    convert_input(p, all, ends && act == FP8_AGAIN ? p->ends : passes_of(p, act), rows, f, act);
    if (!made_at_once(p, act))
        convert_gradient(p, all, rows, wide);
    convert_gradient(p, all, rows, m->hidden);
}

/* Experts are taken to be used evenly. */
static void experts(const struct micro *p, double layers)
{
    const struct model_config *m = p->s->model;
    int64_t ranks = p->s->expert > 1 ? p->s->expert : 1, all = p->rows * m->topk;
    int64_t here = m->experts > ranks ? m->experts / ranks : 1;
    struct micro chosen = *p;

    chosen.converts = p->s->expert_converts;
    linear(p, layers, &(struct weight){p->rows, m->experts, m->hidden, .never = true});
    op(p, PLAN_TAKE, layers * p->forward, p->rows, m->hidden, m->topk);
    mlp(&chosen, layers, here, all / here, m->moe_ffn / p->s->tensor, EXPERTS);
    op(p, PLAN_JOIN, layers * (p->ends + 1), p->rows, m->hidden, m->topk); /* answers, and gradients of inputs */
    op(p, PLAN_JOIN_BACK, layers, p->rows, m->hidden, m->topk);
    if (m->moe_shared)
        mlp(p, layers, 1, p->rows, m->moe_shared / p->s->tensor, SHARED);
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

/* So many layers, of which so many have experts. */
static void layers(const struct micro *of, int64_t n, double moe, bool fp8)
{
    struct plan_share s = *of->s;
    struct micro p = *of;

    s.layers = n;
    s.fp8 = fp8;
    p.s = &s;
    norms(&p, moe);
    attention(&p);
    mlp(&p, (double)n - moe, 1, p.rows, s.model->ffn / s.tensor, LAYERS);
    if (moe > 0)
        experts(&p, moe);
}

void plan_micro_batch(const struct plan_share *s, plan_visit_fn *visit, void *arg)
{
    const struct model_config *m = s->model;
    int64_t mtp = s->head ? m->mtp_layers : 0; /* layers as the others, but each with an output layer */
    struct micro p = {s, visit, arg, .rows = s->b * s->t / s->context, .forward = 1 + s->again, .converts = s->converts};
    double moe = (double)model_moe_layers(m) / (double)m->layers;

    p.own = s->sequence ? p.rows / s->tensor : p.rows;
    p.ends = model_post_norm(m) ? p.forward : p.forward - s->chunks / (double)s->layers;
    layers(&p, s->layers - s->low + mtp, moe * (double)(s->layers - s->low) + (model_mtp_moe(m) ? (double)mtp : 0), s->fp8);
    if (s->low)
        layers(&p, s->low, moe * (double)s->low, false);
    p.forward = p.ends = 1;
    if (s->embeds || mtp) {
        double times = (double)(s->embeds + mtp);

        op(&p, PLAN_EMBEDDING, times, p.rows, m->hidden, 0);
        op(&p, PLAN_EMBEDDING_BACK, frozen(s) ? 0 : times, p.rows, m->hidden, 0);
        norm(&p, s->embeds && m->embedding_norm, 1, false);
    }
    if (s->head) {
        norm(&p, (double)(1 + 3 * mtp), 1, false);
        linear(&p, (double)mtp, &(struct weight){p.own, m->hidden, 2 * m->hidden, .never = true});
        linear(&p, (double)(1 + mtp), &(struct weight){p.rows, m->padded_vocab / s->tensor, m->hidden, .never = true});
        op(&p, PLAN_XENT, (double)(1 + mtp), p.rows, m->padded_vocab / s->tensor, 0);
    }
    if (s->casts > 0) /* fp32 to bf16: six bytes an element, of which a copy has two for each */
        op(&p, PLAN_COPY, s->casts, 1, (int64_t)(3 * s->cast / s->casts), 0);
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

/* Columns of what is updated of n linear layers that have so many: with adapters those of B, behind A, if there are some. */
static int64_t trained_cols(const struct micro *p, double n, int64_t cols, int64_t target)
{
    const struct model_config *m = p->s->model;

    if (!frozen(p->s))
        return cols;
    if (!(m->lora_targets & target))
        return 0;
    iterate(p, n, m->lora_rank, cols);
    return m->lora_rank;
}

static void whole(const struct micro *p, double n, int64_t rows, int64_t cols, int64_t target)
{
    iterate(p, n, rows, trained_cols(p, n, cols, target));
}

/* Those of attention, of so many layers. */
static void whole_attention(const struct micro *p, double n)
{
    const struct model_config *m = p->s->model;
    int64_t h = m->hidden, q = model_q_width(m), cols;

    if (m->latent) {
        whole(p, n, m->q_rank, h, LORA_TARGET_Q_DOWN);
        whole(p, n, q, m->q_rank ? m->q_rank : h, LORA_TARGET_Q_UP);
        whole(p, n, model_latent_width(m), h, LORA_TARGET_KV_DOWN);
        whole(p, n, model_kv_up_width(m), m->kv_rank, LORA_TARGET_KV_UP);
    } else if (p->s->whole.qkv || m->output_gate) {
        whole(p, n, model_qkv_width(m), h, LORA_TARGET_QKV);
    } else {
        cols = trained_cols(p, n, h, LORA_TARGET_QKV);
        iterate(p, n, q, cols);
        iterate(p, 2 * n, model_kv_width(m), cols);
    }
    whole(p, n, h, model_proj_width(m), LORA_TARGET_PROJ);
}

/* Of all layers of a stage. */
static void whole_matrices(const struct micro *p)
{
    const struct model_config *m = p->s->model;
    int64_t h = m->hidden, halves = model_halves(m);
    double n = (double)p->s->layers, moe = n * (double)model_moe_layers(m) / (double)m->layers, all = moe * (double)m->experts;

    whole_attention(p, n);
    whole(p, n - moe, halves * m->ffn, h, LORA_TARGET_FC1);
    whole(p, n - moe, h, m->ffn, LORA_TARGET_FC2);
    whole(p, moe, m->experts, h, 0);
    whole(p, all, halves * m->moe_ffn, h, LORA_TARGET_EXPERT_FC1);
    whole(p, all, h, m->moe_ffn, LORA_TARGET_EXPERT_FC2);
    whole(p, moe, halves * m->moe_shared, h, LORA_TARGET_FC1);
    whole(p, moe, h, m->moe_shared, LORA_TARGET_FC2);
}

void plan_update(const struct plan_share *s, double tensors, double gradients, double updated, plan_visit_fn *visit, void *arg)
{
    const struct micro p = {.s = s, .visit = visit, .arg = arg};

    op(&p, PLAN_SUMSQ, tensors, 1, (int64_t)(gradients / tensors), 0);
    op(&p, PLAN_ADAMW, tensors, 1, (int64_t)(updated / tensors), 0);
    if (s->whole.steps)
        whole_matrices(&p);
}
