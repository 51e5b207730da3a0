#include "train/mtp.h"

#include "train/branch.h"

/* ---- which tokens ---- */

/* Whether token i of whole sequences has one k further on, of the same document where these are told apart. */
static bool reaches(const struct model *m, const int32_t *starts, int64_t i, int64_t k)
{
    bool apart = m->run.reset_positions || m->run.reset_attention;

    return i % m->run.t + k < m->run.t && (!apart || starts[i] == starts[i + k]);
}

/* Those of depth k, counted from 1; how many tokens have a loss. */
static int64_t shift(const struct model *m, const struct model_batch *batch, int64_t k, const struct mtp_rows *to)
{
    int64_t count = 0;

    for (int64_t i = 0; i < m->b * m->run.t; i++) {
        bool in = reaches(m, batch->starts, i, k);
        int64_t at = i % m->run.t + k, from = m->run.reset_positions ? batch->starts[i] : 0;

        to->tokens[i] = in ? batch->tokens[i + k] : 0;
        to->positions[i] = in ? (int32_t)(at - from) : 0;
        to->targets[i] = in ? batch->targets[i + k] : -1;
        count += to->targets[i] >= 0;
    }
    model_ids_here(m, to->tokens);
    model_ids_here(m, to->positions);
    model_ids_here(m, to->targets);
    return count;
}

void mtp_rows(const struct model *m, const struct model_batch *batch, int32_t *room, struct mtp_rows *rows, double *weight)
{
    int64_t n = m->b * m->run.t, all = 0;

    for (int64_t i = 0; i < n; i++)
        all += batch->targets[i] >= 0;
    for (int64_t k = 0; k < m->mtp.n; k++) {
        int32_t *at = room + k * MTP_ROWS * n;
        int64_t count;

        rows[k] = (struct mtp_rows){at, at + n, at + 2 * n, (float *)(void *)(at + 3 * n)};
        count = shift(m, batch, k + 1, &rows[k]);
        weight[k] = count ? (double)batch->grad_scale * (double)all / (double)count : 0;
        for (int64_t i = 0; i < m->b * m->t; i++)
            rows[k].scale[i] = (float)(weight[k] * m->config.mtp_scale / (double)m->mtp.n);
    }
}

int mtp_take(struct model *m, const struct mtp_depth *d, const struct mtp_rows *rows, struct err *e)
{
    size_t bytes = (size_t)(m->b * m->t) * sizeof *rows->tokens;

    TRY(device_put_later(m->dev, d->tokens, rows->tokens, bytes, e));
    TRY(device_put_later(m->dev, d->positions, rows->positions, bytes, e));
    TRY(device_put_later(m->dev, d->targets, rows->targets, bytes, e));
    return device_put_later(m->dev, d->scale, rows->scale, bytes, e);
}

/* ---- forward ---- */

/* Depths are counted from 0 from here on. */
static int64_t layer_of(const struct model *m, int64_t k)
{
    return m->config.layers + k;
}

static struct embedding look_up(const struct model *m, int64_t k)
{
    struct embedding emb = pass_embedding(m, m->b * m->t);

    emb.token = m->mtp.depth[k].tokens;
    emb.pos = m->mtp.depth[k].positions;
    return emb;
}

/* What the depth goes on from: h^(k-1). */
static void *taken(const struct model *m, int64_t k)
{
    return k ? m->mtp.depth[k - 1].final.y : m->acts->final.y;
}

/* The stream of its layer, of the rows that are here: each rank multiplies its own. */
static int combine(struct model *m, int64_t k, struct err *e)
{
    const struct params_mtp *w = &m->dense.params.mtp[k];
    const struct mtp_depth *d = &m->mtp.depth[k];
    int64_t h = m->config.hidden;
    const struct linear proj = {.buffer = &m->dense, .w = w->proj, .b = -1, .rows = m->own};
    struct norm_fwd enorm = {.t = m->own, .c = h, .y_heads = {1, 2 * h}, .x = d->embedded, .y = d->both, .mean = d->mean_e,
                             .rstd = d->rstd_e};
    struct norm_fwd hnorm = {.t = m->own, .c = h, .y_heads = {1, 2 * h}, .x = taken(m, k), .y = pass_at(m, d->both, h),
                             .mean = d->mean_h, .rstd = d->rstd_h};

    TRY(pass_norm(m, &enorm, w->enorm_w, w->enorm_b, e));
    TRY(pass_norm(m, &hnorm, w->hnorm_w, w->hnorm_b, e));
    return linear_forward(m, &proj, m->acts->layers[layer_of(m, k)].norm[0].s, d->both, e);
}

static int forward(struct model *m, int64_t k, const struct pass *p, struct err *e)
{
    struct embedding emb = look_up(m, k);
    int64_t layer = layer_of(m, k);
    struct dropout d;

    TRY(pass_embed(m, &emb, m->mtp.depth[k].embedded, pass_dropout(m, p->drop, layer, DROP_EMBEDDING, &d), e));
    TRY(combine(m, k, e));
    TRY(branch_start(m, 2 * layer, p, e));
    TRY(branch_begin(m, 2 * layer, p, e));
    TRY(branch_join(m, 2 * layer, p, e));
    TRY(branch_begin(m, 2 * layer + 1, p, e));
    return branch_join(m, 2 * layer + 1, p, e);
}

/* ---- backward ---- */

/* From the losses to *dx and m->back.ds, what branches_back() takes. */
static int head_back(struct model *m, int64_t k, const struct pass *p, const void **dx, struct err *e)
{
    const struct mtp_depth *at = &m->mtp.depth[k];
    struct dropout d;
    const struct dropout *drop = branch_dropout(m, p->drop, 2 * layer_of(m, k) + 1, &d);
    void *dy;

    TRY(pass_logits(m, at->final.y, e));
    TRY(pass_losses(m, at->targets, at->scale, e));
    TRY(m->dev->ops->vec_total(m->dev, &m->mtp.loss[k], m->head.loss, m->b * m->t, e));
    TRY(pass_logits_back(m, at->final.y, true, e));
    TRY(pass_sum(m, &dy, m->back.dln, m->b * m->t, e));
    if (k + 1 < m->mtp.n)
        TRY(m->dev->ops->vec_add(m->dev, m->dt, dy, dy, m->mtp.carried, m->own * m->config.hidden, e));
    *dx = drop ? m->back.dx : m->back.ds;
    return branch_norm_back(m, branch_end(m, k + 1), dy, &(struct joint){NULL, m->back.ds, drop}, e);
}

/* From m->back.ds, the gradient of the layer's stream, to those of the norms' outputs: m->back.dx of the embedding's, if it
 * is trained, and m->back.dln of the other. */
static int project_back(struct model *m, int64_t k, struct err *e)
{
    int w = m->dense.params.mtp[k].proj;
    int64_t h = m->config.hidden;
    const char *weight = pass_weight(m, w);
    const struct matmul weights = {
        .m = h, .n = 2 * h, .k = m->own, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = m->back.ds,
        .b = m->mtp.depth[k].both, .c = pass_grad(m, w), .beta = m->dense.overwrite ? 0 : 1,
    };
    struct matmul input = {
        .m = m->own, .n = h, .k = h, .ldb = 2 * h, .dt = m->dt, .dt_c = m->dt, .a = m->back.ds, .b = weight, .c = m->back.dx,
    };

    if (m->dense.trained) {
        TRY(m->dev->ops->matmul(m->dev, &weights, e));
        TRY(m->dev->ops->matmul(m->dev, &input, e));
    }
    input.b = weight + (size_t)h * dtype_size(m->dt);
    input.c = m->back.dln;
    return m->dev->ops->matmul(m->dev, &input, e);
}

/* To m->mtp.carried, the gradient of what the depth goes on from, and, where it is trained, the embedding's. */
static int back(struct model *m, int64_t k, const struct pass *p, struct err *e)
{
    const struct params_mtp *w = &m->dense.params.mtp[k];
    const struct mtp_depth *d = &m->mtp.depth[k];
    int64_t h = m->config.hidden;
    struct norm_bwd hnorm = {.t = m->own, .c = h, .dy = m->back.dln, .s = taken(m, k), .mean = d->mean_h, .rstd = d->rstd_h,
                             .ds = m->mtp.carried};
    struct norm_bwd enorm = {.t = m->own, .c = h, .dy = m->back.dx, .s = d->embedded, .mean = d->mean_e, .rstd = d->rstd_e,
                             .ds = m->back.ds};
    struct embedding emb = look_up(m, k);
    struct dropout drop;
    const void *dx;

    TRY(head_back(m, k, p, &dx, e));
    TRY(branches_back(m, layer_of(m, k), &dx, p, e));
    TRY(project_back(m, k, e));
    TRY(pass_norm_back(m, &hnorm, w->hnorm_w, w->hnorm_b, e));
    if (!m->dense.trained)
        return 0;
    TRY(pass_norm_back(m, &enorm, w->enorm_w, w->enorm_b, e));
    return pass_embed_back(m, &emb, m->back.ds, pass_dropout(m, p->drop, layer_of(m, k), DROP_EMBEDDING, &drop), e);
}

int mtp_back(struct model *m, const struct pass *p, void **dy, struct err *e)
{
    int64_t n = m->own * m->config.hidden;

    if (!m->mtp.n)
        return 0;
    TRY(device_copy(m->dev, m->mtp.first, *dy, (size_t)n * dtype_size(m->dt), e));
    for (int64_t k = 0; k < m->mtp.n; k++)
        TRY(forward(m, k, p, e));
    for (int64_t k = m->mtp.n - 1; k >= 0; k--)
        TRY(back(m, k, p, e));
    *dy = m->mtp.first;
    return m->dev->ops->vec_add(m->dev, m->dt, *dy, *dy, m->mtp.carried, n, e);
}
