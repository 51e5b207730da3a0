#include "train/model_fp8.h"

#include <stdlib.h>
#include <string.h>

#include "train/model.h"
#include "train/model_pass.h"

static const enum layer_param linear[FP8_INPUTS] = {QKV_W, PROJ_W, FC1_W, FC2_W}, expert_linear[] = {EXPERT_FC1_W, EXPERT_FC2_W};
enum { EXPERT_LINEARS = sizeof expert_linear / sizeof *expert_linear };

static bool by_blocks(const struct model *m)
{
    return m->run.fp8.recipe == FP8_BLOCKWISE;
}

static enum fp8 gradient_format(const struct model *m)
{
    return m->run.fp8.format == MODEL_FP8_HYBRID ? FP8_E5M2 : FP8_E4M3;
}

static float *row_of(const struct model_fp8 *f, int64_t weight, int which)
{
    return f->rows + (weight * FP8_TENSORS + which) * f->ld;
}

static const struct param_buffer *buffer_of(const struct model *m, int64_t i)
{
    return i < m->fp8->dense ? &m->dense : &m->experts;
}

/* Whether weight copies come and go with their layers. */
static bool passes(const struct param_buffer *s)
{
    return param_buffer_shares(&s->conf, SHARD_OPTIM_GRADS_PARAMS);
}

const struct param *model_fp8_param(const struct model *m, int64_t i)
{
    return &buffer_of(m, i)->params.v[m->fp8->param[i]];
}

/* What becomes of an input that a weight is there for. */
static enum fp8_way way_of(const struct model *m, int64_t layer, enum fp8_input input)
{
    bool shared = input == FP8_LN1 ? pass_param(m, layer, VALUE_GATE) >= 0 : pass_moe(m, layer);
    bool gathered = m->part.sequence && input != FP8_ACT;
    bool normed = model_pre_norm(&m->config) && m->config.parallel != PARALLEL_NORM; /* by a norm that makes it for one weight */

    if (m->config.lora_rank) /* no gradient takes it transposed, and adapters take it in bf16 */
        return FP8_AGAIN;
    if (input == FP8_ATT)
        return FP8_KEPT;
    if (shared || gathered)
        return FP8_AGAIN;
    return normed || input == FP8_ACT ? FP8_MADE : FP8_KEPT;
}

/* -1 is none.  wide: the widest of its kind so far. */
static int add_weight(struct model *m, const struct params *all, int w, int64_t *wide, struct err *e)
{
    const struct param *p = w < 0 ? NULL : &all->v[w];
    struct model_fp8 *f = m->fp8;
    bool blocks = by_blocks(m);
    int each = blocks ? FP8_BLOCK : FP8_WHOLE;

    if (!p)
        return 0;
    for (int k = 0; k < 2; k++) {
        if (p->shape[k] % each)
            return err_set(e, ERR_ARG, "--fp8-format: '%s' of %lld x %lld on this rank; matrix products in FP8%s need"
                           " multiples of %d", p->name, (long long)p->shape[0], (long long)p->shape[1],
                           blocks ? " by blocks" : "", each);
        *wide = p->shape[k] > *wide ? p->shape[k] : *wide;
    }
    f->param[f->n] = w;
    f->scale[f->n] = f->floats;
    if (blocks)
        f->floats += fp8_scales_floats(FP8_OF_SQUARES, p->shape[0], p->shape[1]) +
                     fp8_scales_floats(FP8_OF_SQUARES, p->shape[1], p->shape[0]);
    f->at[f->n++] = 2 * f->elements;
    f->elements += ((int64_t)p->n + 255) / 256 * 256;
    return 0;
}

/* Those of one kind; in the order of its buffer, by which they are found. */
static int add_weights(struct model *m, bool experts, struct err *e)
{
    const struct model_fp8_run *r = &m->run.fp8;
    struct model_fp8 *f = m->fp8;
    int64_t start = f->elements, most = start;

    for (int64_t i = 0; i < m->config.layers; i++) {
        int64_t layer = m->part.first + i, here = pass_moe(m, i) ? m->experts.params.experts : 0;

        if (r->ends_bf16 && (layer < r->start_bf16 || layer >= m->whole.layers - r->end_bf16))
            continue;
        if (passes(experts ? &m->experts : &m->dense))
            f->elements = start;
        for (enum fp8_input k = 0; k < FP8_INPUTS && !experts; k++) {
            f->input[f->n] = (int)i * FP8_INPUTS + k;
            f->way[f->n] = (uint8_t)way_of(m, i, k);
            TRY(add_weight(m, &m->dense.params, pass_param(m, i, linear[k]), &f->wide, e));
        }
        for (int64_t k = 0; k < here * EXPERT_LINEARS && experts; k++) {
            f->way[f->n] = FP8_AGAIN;
            TRY(add_weight(m, &m->experts.params, params_expert(&m->experts.params, i, k / EXPERT_LINEARS,
                                                                expert_linear[k % EXPERT_LINEARS]), &f->expert_wide, e));
        }
        most = f->elements > most ? f->elements : most;
    }
    f->elements = most;
    return 0;
}

int model_fp8_plan(struct model *m, struct err *e)
{
    const struct model_fp8_run *r = &m->run.fp8;
    struct model_fp8 *f = calloc(1, sizeof *f);
    int64_t most = m->config.layers * (FP8_INPUTS + EXPERT_LINEARS * m->experts.params.experts), n = m->b * m->t;

    m->fp8 = f;
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->ld = fp8_row_floats(r->history);
    f->param = calloc((size_t)most + 1, sizeof *f->param);
    f->at = calloc((size_t)most + 1, sizeof *f->at);
    f->scale = calloc((size_t)most + 1, sizeof *f->scale);
    f->fresh = calloc((size_t)most + 1, sizeof *f->fresh);
    f->input = calloc((size_t)most + 1, sizeof *f->input);
    f->way = calloc((size_t)most + 1, sizeof *f->way);
    if (!f->param || !f->at || !f->scale || !f->fresh || !f->input || !f->way)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (n % FP8_WHOLE)
        return err_set(e, ERR_ARG, "--fp8-format: a micro-batch of %lld tokens on this rank; matrix products in FP8 need"
                       " a multiple of %d", (long long)n, FP8_WHOLE);
    TRY(add_weights(m, false, e));
    f->dense = f->n;
    return add_weights(m, true, e);
}

size_t model_fp8_bytes(const struct model_fp8 *f)
{
    return (size_t)(2 * f->elements) + (size_t)(f->floats + f->n * FP8_TENSORS * (f->ld + 1)) * sizeof(float);
}

/* What never changes of the rows, and no scales. */
int model_fp8_reset(struct model *m, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    float max[FP8_TENSORS] = {fp8_max(FP8_E4M3), fp8_max(FP8_E4M3), fp8_max(gradient_format(m))};
    size_t bytes = (size_t)(f->n * FP8_TENSORS * f->ld) * sizeof(float);
    float *host = calloc(1, bytes + 1);
    int rc = host ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t i = 0; rc == 0 && i < f->n * FP8_TENSORS; i++)
        host[i * f->ld + FP8_MAX] = max[i % FP8_TENSORS];
    if (rc == 0)
        rc = device_put(m->dev, f->rows, host, bytes, e);
    free(host);
    f->warm = false;
    return rc;
}

int model_fp8_open(struct model *m, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    size_t rows = (size_t)(f->n * FP8_TENSORS);

    if (f->n == 0)
        return 0;
    m->dev->use = MEMORY_WEIGHTS;
    TRY(device_alloc(m->dev, (void **)&f->weights, (size_t)(2 * f->elements), e));
    if (f->floats)
        TRY(device_alloc(m->dev, (void **)&f->scales, (size_t)f->floats * sizeof(float), e));
    TRY(device_alloc(m->dev, (void **)&f->rows, rows * (size_t)f->ld * sizeof(float), e));
    TRY(device_alloc(m->dev, (void **)&f->amax, rows * sizeof(float), e));
    m->dev->use = MEMORY_OTHER;
    return model_fp8_reset(m, e);
}

void model_fp8_close(struct model *m)
{
    struct model_fp8 *f = m->fp8;

    if (!f)
        return;
    if (m->dev) {
        device_free(m->dev, f->weights);
        device_free(m->dev, f->scales);
        device_free(m->dev, f->rows);
        device_free(m->dev, f->amax);
    }
    free(f->param);
    free(f->at);
    free(f->scale);
    free(f->fresh);
    free(f->input);
    free(f->way);
    free(f);
    m->fp8 = NULL;
}

void model_fp8_begin(struct model *m, bool again)
{
    for (int64_t i = 0; m->fp8 && i < m->fp8->n; i++)
        m->fp8->fresh[i] = again && (m->fp8->fresh[i] || !passes(buffer_of(m, i)));
}

int model_fp8_amax(struct model *m, struct err *e)
{
    struct model_fp8 *f = m->fp8;

    return device_copy_rows(m->dev, f->amax, sizeof(float), f->rows + FP8_HISTORY, (size_t)f->ld * sizeof(float), sizeof(float),
                            (size_t)(f->n * FP8_TENSORS), e);
}

int model_fp8_end(struct model *m, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    const struct model_fp8_run *r = &m->run.fp8;
    struct fp8_update u = {f->rows, f->n * FP8_TENSORS, f->ld, r->history, (int)r->margin,
                           r->algo == FP8_MOST_RECENT, false};

    TRY(device_copy_rows(m->dev, f->rows + FP8_HISTORY, (size_t)f->ld * sizeof(float), f->amax, sizeof(float), sizeof(float),
                         (size_t)u.n, e));
    f->warm = true;
    return m->dev->ops->fp8_update(m->dev, &u, e);
}

/* ---- products ---- */

int pass_fp8(const struct model *m, const struct param_buffer *s, int w)
{
    const struct model_fp8 *f = m->fp8;
    bool experts = s == &m->experts;

    for (int64_t lo = f && experts ? f->dense : 0, hi = !f ? 0 : experts ? f->n : f->dense; lo < hi;) {
        int64_t mid = (lo + hi) / 2;

        if (f->param[mid] == w)
            return (int)mid;
        if (f->param[mid] < w)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

/* The weight of a layer that takes an input; -1: none in FP8. */
static int weight_of(const struct model *m, int64_t layer, enum fp8_input input)
{
    int w = pass_param(m, layer, linear[input]);

    return w < 0 ? -1 : pass_fp8(m, &m->dense, w);
}

size_t model_fp8_kept(const struct model *m, int64_t layer, enum fp8_input input)
{
    int weight = weight_of(m, layer, input);

    if (weight < 0 || m->fp8->way[weight] == FP8_AGAIN)
        return 0;
    return (size_t)(model_fp8_rows(m, m->b * m->t) * model_fp8_row(m, model_fp8_param(m, weight)->shape[1]));
}

bool model_fp8_made(const struct model *m, int64_t layer, enum fp8_input input)
{
    int weight = weight_of(m, layer, input);

    return weight >= 0 && m->fp8->way[weight] == FP8_MADE;
}

static struct fp8_kept *kept(const struct model *m, int weight)
{
    int i = m->fp8->input[weight];

    return &m->acts->layers[i / FP8_INPUTS].fp8[i % FP8_INPUTS];
}

/* Where an input is kept, by the forward pass that backward follows; else NULL. */
static uint8_t *keep_at(const struct model *m, int weight)
{
    const struct model_fp8 *f = m->fp8;
    bool later;

    if (f->way[weight] == FP8_AGAIN || !f->record)
        return NULL;
    later = pass_chunk(m, f->input[weight] / FP8_INPUTS) >= 0 ||
            (m->run.recompute == RECOMPUTE_SELECTIVE && f->way[weight] == FP8_MADE);
    return later && !f->again ? NULL : kept(m, weight)->yt;
}

int64_t model_fp8_rows(const struct model *m, int64_t n)
{
    int64_t each = by_blocks(m) ? FP8_BLOCK : FP8_WHOLE;

    return (n + each - 1) / each * each;
}

/* With blocks a float for FP8_BLOCK of them, whichever way these lie. */
int64_t model_fp8_row(const struct model *m, int64_t width)
{
    return by_blocks(m) ? width + width / FP8_BLOCK * (int64_t)sizeof(float) : width;
}

/* Whether scales are of the tensors at hand. */
static bool own_scales(const struct model *m)
{
    return m->run.fp8.recipe != FP8_DELAYED || !m->fp8->warm;
}

/* One of the matrices of a weight (rows, cols), to y and transposed to yt (either NULL), there model_fp8_rows apart.  again:
 * it was converted before in this step. */
static struct fp8_quantize conversion(const struct model *m, int weight, int which, const void *x, int64_t rows, int64_t cols,
                                      uint8_t *y, uint8_t *yt, bool again)
{
    const struct model_fp8 *f = m->fp8;
    float *row = row_of(f, weight, which);

    return (struct fp8_quantize){
        .rows = rows, .cols = cols, .dt = m->dt, .x = x, .y = y, .yt = yt, .scale = row + FP8_SCALE,
        .to = which == FP8_GRADIENT ? gradient_format(m) : FP8_E4M3,
        .amax = own_scales(m) || again || (which == FP8_INPUT && !f->record) ? NULL : row + FP8_HISTORY,
        .yt_ld = model_fp8_rows(m, rows),
    };
}

/* By blocks: the 1 / scale behind a matrix in buf, and of a weight. */
static float *scales_behind(uint8_t *y, int64_t rows, int64_t cols) { return y ? (float *)(void *)(y + rows * cols) : NULL; }
static float *weight_scales(const struct model *m, int weight, bool transposed)
{
    const struct param *p = model_fp8_param(m, weight);

    return m->fp8->scales + m->fp8->scale[weight] +
           (transposed ? fp8_scales_floats(FP8_OF_SQUARES, p->shape[0], p->shape[1]) : 0);
}

static int convert_blocks(struct model *m, int weight, int which, const struct fp8_quantize *q, struct err *e)
{
    bool squares = which == FP8_WEIGHT;
    const struct fp8_blocks b = {
        .rows = q->rows, .cols = q->cols, .to = q->to, .squares = squares, .fp32_scales = m->run.fp8.fp32_scales, .x = q->x,
        .y = q->y, .yt = q->yt,
        .inv = squares ? weight_scales(m, weight, false) : scales_behind(q->y, q->rows, q->cols),
        .inv_t = !squares ? scales_behind(q->yt, q->cols, q->yt_ld) : q->yt ? weight_scales(m, weight, true) : NULL,
        .yt_ld = q->yt_ld, .colsum = q->colsum,
    };

    return m->dev->ops->fp8_blocks(m->dev, &b, e);
}

static int convert(struct model *m, int weight, int which, const struct fp8_quantize *q, bool again, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    const struct device_ops *ops = m->dev->ops;
    float *row = row_of(f, weight, which);
    struct fp8_update u = {row, 1, f->ld, m->run.fp8.history, 0, false, true};

    if (by_blocks(m))
        return convert_blocks(m, weight, which, q, e);
    if (own_scales(m) && !(again && m->run.slots == 1)) { /* with several slots another micro-batch may have come between */
        TRY(ops->fp8_amax(m->dev, m->dt, row + FP8_NOW, q->x, q->rows * q->cols, e));
        TRY(ops->fp8_update(m->dev, &u, e));
    }
    return ops->fp8_quantize(m->dev, q, e);
}

/* Inputs of several micro-batches may wait for backward, each with a scale of its own. */
static bool scale_kept(const struct model *m)
{
    return own_scales(m) && !by_blocks(m) && m->run.slots > 1;
}

/* An input, bf16 at x, to buf[0] and to where it is kept. */
static int convert_input(struct model *m, int weight, const void *x, int64_t rows, int64_t cols, uint8_t *y, struct err *e)
{
    struct fp8_quantize q = conversion(m, weight, FP8_INPUT, x, rows, cols, y, keep_at(m, weight), false);

    TRY(convert(m, weight, FP8_INPUT, &q, false, e));
    if (!q.yt || !scale_kept(m))
        return 0;
    return device_copy(m->dev, kept(m, weight)->inverse, row_of(m->fp8, weight, FP8_INPUT) + FP8_INVERSE, sizeof(float), e);
}

/* Makes the room of copies that come and go one for the unit of a weight. */
static void hold(struct model *m, int weight)
{
    struct model_fp8 *f = m->fp8;
    bool experts = weight >= f->dense;
    int unit = model_fp8_param(m, weight)->unit;

    if (!passes(buffer_of(m, weight)) || f->held[experts] == unit)
        return;
    for (int64_t i = experts ? f->dense : 0; i < (experts ? f->n : f->dense); i++)
        f->fresh[i] = false;
    f->held[experts] = unit;
}

/* A matrix in FP8 as a product takes it. */
struct operand {
    const uint8_t *x;
    const float *inverse; /* 1 / scale */
    enum fp8_scales by;
};

/* What was converted to a buffer. */
static struct operand in_buffer(const struct model *m, int weight, int which, uint8_t *y, int64_t rows, int64_t cols)
{
    if (by_blocks(m))
        return (struct operand){y, scales_behind(y, rows, cols), FP8_OF_ROWS};
    return (struct operand){y, row_of(m->fp8, weight, which) + FP8_INVERSE, FP8_OF_TENSOR};
}

/* An input of `in` channels that was kept transposed, rows of ld. */
static struct operand kept_input(const struct model *m, int weight, int64_t in, int64_t ld)
{
    const struct fp8_kept *k = kept(m, weight);

    if (by_blocks(m))
        return in_buffer(m, weight, FP8_INPUT, k->yt, in, ld);
    return (struct operand){k->yt, scale_kept(m) ? k->inverse : row_of(m->fp8, weight, FP8_INPUT) + FP8_INVERSE, FP8_OF_TENSOR};
}

/* A weight's copy: as it is, or transposed. */
static int weight_copy(struct model *m, int weight, bool transposed, struct operand *copy, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    const struct param *p = model_fp8_param(m, weight);
    uint8_t *at = f->weights + f->at[weight], *yt = at + p->n;
    struct fp8_quantize q = conversion(m, weight, FP8_WEIGHT, param_weight(buffer_of(m, weight), f->param[weight]),
                                       p->shape[0], p->shape[1], at, m->run.use == MODEL_TRAIN ? yt : NULL, false);

    hold(m, weight);
    if (!f->fresh[weight])
        TRY(convert(m, weight, FP8_WEIGHT, &q, false, e));
    f->fresh[weight] = true;
    *copy = (struct operand){transposed ? yt : at, row_of(f, weight, FP8_WEIGHT) + FP8_INVERSE, FP8_OF_TENSOR};
    if (by_blocks(m))
        copy->inverse = weight_scales(m, weight, transposed), copy->by = FP8_OF_SQUARES;
    return 0;
}

/* mm becomes the product of a, of that format, and b. */
static void multiply(const struct model *m, struct matmul *mm, enum fp8 format, struct operand a, struct operand b)
{
    mm->trans_a = false;
    mm->trans_b = true;
    mm->a = a.x, mm->fp8_a = format, mm->inv_a = a.inverse, mm->by_a = a.by;
    mm->b = b.x, mm->fp8_b = FP8_E4M3, mm->inv_b = b.inverse, mm->by_b = b.by;
    mm->fp32_scales = m->run.fp8.fp32_scales;
}

int pass_fp8_forward(struct model *m, struct matmul *mm, int weight, uint8_t *const buf[3], struct err *e)
{
    struct operand w;

    TRY(weight_copy(m, weight, false, &w, e));
    if (mm->m == 0)
        return 0;
    if (m->fp8->way[weight] != FP8_MADE)
        TRY(convert_input(m, weight, mm->a, mm->m, mm->k, buf[0], e));
    multiply(m, mm, FP8_E4M3, in_buffer(m, weight, FP8_INPUT, buf[0], mm->m, mm->k), w);
    mm->fast = !mm->by_a;
    return 0;
}

int pass_fp8_backward(struct model *m, struct matmul *weight_mm, struct matmul *input_mm, int weight, uint8_t *const buf[3],
                      float *bias, struct err *e)
{
    int64_t rows = input_mm->m, in = input_mm->n, out = input_mm->k, sums = model_fp8_rows(m, rows);
    bool again = weight_mm && m->fp8->way[weight] == FP8_AGAIN;
    enum fp8 format = gradient_format(m);
    struct operand w;

    if (rows == 0)
        return 0;
    TRY(weight_copy(m, weight, true, &w, e));
    if (input_mm->a) {
        struct fp8_quantize q = conversion(m, weight, FP8_GRADIENT, input_mm->a, rows, out, buf[0],
                                           weight_mm ? buf[1] : NULL, false);

        q.colsum = bias;
        TRY(convert(m, weight, FP8_GRADIENT, &q, false, e));
    }
    if (again) {
        struct fp8_quantize q = conversion(m, weight, FP8_INPUT, weight_mm->b, rows, in, NULL, buf[2], true);

        TRY(convert(m, weight, FP8_INPUT, &q, true, e));
    }
    if (weight_mm) {
        weight_mm->k = sums;
        multiply(m, weight_mm, format, in_buffer(m, weight, FP8_GRADIENT, buf[1], out, sums),
                 again ? in_buffer(m, weight, FP8_INPUT, buf[2], in, sums) : kept_input(m, weight, in, sums));
    }
    multiply(m, input_mm, format, in_buffer(m, weight, FP8_GRADIENT, buf[0], rows, out), w);
    return 0;
}

/* ---- ops that convert what they make ---- */

static bool at_once(const struct model *m)
{
    return !own_scales(m) && !m->run.fp8.apart;
}

int pass_fp8_norm(struct model *m, int64_t layer, enum fp8_input as, const struct norm_fwd *p, int w, int b, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    int weight = weight_of(m, layer, as);
    struct norm_fwd own = *p; /* q lives no longer than this call */
    struct fp8_quantize q;

    own.y = m->back.dln;
    if (at_once(m)) {
        q = conversion(m, weight, FP8_INPUT, NULL, p->t, p->c, f->buf[0], keep_at(m, weight), false);
        own.fp8 = &q;
        own.y = NULL;
    }
    TRY(pass_norm(m, &own, w, b, e));
    return at_once(m) ? 0 : convert_input(m, weight, m->back.dln, p->t, p->c, f->buf[0], e);
}

int pass_fp8_activate(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    const void *x = m->acts->layers[layer].mlp.fc1;
    int64_t cols = m->config.ffn;
    int weight = weight_of(m, layer, FP8_ACT);
    struct fp8_quantize q = conversion(m, weight, FP8_INPUT, x, rows, cols, f->buf[0], keep_at(m, weight), false);

    q.act = model_act(&m->config);
    q.glu = model_halves(&m->config) == 2;
    if (at_once(m))
        return m->dev->ops->fp8_quantize(m->dev, &q, e);
    TRY(pass_act(m, m->back.dwide, x, rows, cols, e));
    return convert_input(m, weight, m->back.dwide, rows, cols, f->buf[0], e);
}

int pass_fp8_activate_back(struct model *m, int64_t layer, const void **dy, struct err *e)
{
    struct model_fp8 *f = m->fp8;
    void *x = m->acts->layers[layer].mlp.fc1, *dact = m->back.dwide;
    int64_t rows = m->b * m->t, ffn = m->config.ffn;
    int weight = weight_of(m, layer, FP8_LN2), bias = pass_param(m, layer, FC1_B);
    struct fp8_quantize q = conversion(m, weight, FP8_GRADIENT, x, rows, model_halves(&m->config) * ffn, f->buf[0],
                                       f->buf[1], false);

    *dy = at_once(m) ? NULL : x;
    q.act = model_act(&m->config);
    q.glu = model_halves(&m->config) == 2;
    q.dy = dact;
    q.colsum = bias >= 0 ? pass_grad(m, bias) : NULL;
    if (at_once(m))
        return m->dev->ops->fp8_quantize(m->dev, &q, e);
    return pass_act_back(m, x, dact, x, rows, ffn, e);
}
