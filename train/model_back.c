/* The backward pass. */
#include <stdbool.h>

#include "train/branch.h"
#include "train/mtp.h"

int pass_norm_back(struct model *m, struct norm_bwd *p, int w, int b, struct err *e)
{
    p->gamma = pass_weight(m, w);
    p->dgamma = m->back.unused ? m->back.unused : pass_grad(m, w);
    p->dbeta = m->back.unused && b >= 0 ? m->back.unused + p->c : pass_grad(m, b);
    p->plus = m->config.norm_1p || w < 0;
    return (m->config.norm == NORM_RMS ? m->dev->ops->rmsnorm_bwd : m->dev->ops->layernorm_bwd)(m->dev, m->dt, p, e);
}

int branch_norm_back(struct model *m, int64_t i, const void *dy, const struct joint *j, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    const struct norm_acts *a = branch_norm(m, i);
    int64_t h = m->config.hidden;
    struct norm_bwd p = {
        .t = m->own, .c = h, .dy = dy, .dres = j->from, .s = a->s, .mean = a->mean, .rstd = a->rstd, .drop = j->drop, .ds = j->to,
        .dx = j->drop ? m->back.dx : NULL,
    };
    int w, b;

    branch_norm_params(m, i, &w, &b);
    if (model_pre_norm(&m->config) || branch_is_end(m, i))
        return pass_norm_back(m, &p, w, b, e);
    TRY(ops->vec_add(m->dev, m->dt, j->to, j->from, dy, m->own * h, e));
    return j->drop ? ops->vec_dropout(m->dev, m->dt, m->back.dx, j->to, m->own, h, j->drop, e) : 0;
}

/* The same from m->back.dln, the gradient of what its module takes, of which tensor ranks have summands. */
static int norm_back(struct model *m, int64_t i, const struct joint *j, struct err *e)
{
    void *dy;

    TRY(pass_sum(m, &dy, m->back.dln, m->b * m->t, e));
    return branch_norm_back(m, i, dy, j, e);
}

/* From *dx, the gradient of what branch i adds, to that of what its module gives; what is changed goes to m->back.dx. */
static int added_back(struct model *m, int64_t i, const void **dx, struct err *e)
{
    const struct norm_acts *a = branch_post(m, i);
    int64_t h = m->config.hidden;
    struct norm_bwd p = {.t = m->own, .c = h, .s = a->s, .mean = a->mean, .rstd = a->rstd, .ds = m->back.dx};
    int w, b;

    if (m->config.residual_scale != 1 && *dx != m->back.dx) {
        TRY(device_copy(m->dev, m->back.dx, *dx, (size_t)(m->own * h) * dtype_size(m->dt), e));
        *dx = m->back.dx;
    }
    TRY(pass_scale(m, m->back.dx, m->config.residual_scale, m->own * h, e));
    if (!model_post_norm(&m->config))
        return 0;
    p.dy = *dx;
    *dx = m->back.dx;
    branch_post_params(m, i, &w, &b);
    return pass_norm_back(m, &p, w, b, e);
}

/* A branch: from *dx, the gradient of what it adds, to that of the stream that it takes, as j says. */
static int branch_back(struct model *m, int64_t i, const void *dx, const struct pass *p, const struct joint *j, struct err *e)
{
    TRY(added_back(m, i, &dx, e));
    TRY(branch_module(m, i)->backward(m, i / 2, dx, branch_input(m, i), p, e));
    return norm_back(m, i, j, e);
}

/* A layer's modules side by side: m->back.ds, the gradient of what comes out, is that of both parts. */
static int side_by_side_back(struct model *m, int64_t layer, const void **dx, const struct pass *p, struct err *e)
{
    struct dropout d;
    const struct dropout *drop = branch_dropout(m, p->drop, 2 * layer, &d);
    const struct dropout *before;

    TRY(branch_back(m, 2 * layer + 1, *dx, p, &(struct joint){m->back.ds, m->back.side, NULL}, e));
    *dx = drop ? m->back.dx : m->back.ds;
    if (drop)
        TRY(m->dev->ops->vec_dropout(m->dev, m->dt, m->back.dx, m->back.ds, m->own, m->config.hidden, drop, e));
    before = branch_dropout_before(m, p->drop, 2 * layer, &d);
    TRY(branch_back(m, 2 * layer, *dx, p, &(struct joint){m->back.side, m->back.ds, before}, e));
    *dx = before ? m->back.dx : m->back.ds;
    return 0;
}

int branches_back(struct model *m, int64_t layer, const void **dx, const struct pass *p, struct err *e)
{
    TRY(branches_again(m, layer, p, e));
    if (m->config.parallel)
        return side_by_side_back(m, layer, dx, p, e);
    for (int64_t i = 2 * layer + 1; i >= 2 * layer; i--) {
        struct dropout d;
        const struct dropout *drop = branch_dropout_before(m, p->drop, i, &d);

        TRY(branch_back(m, i, *dx, p, &(struct joint){m->back.ds, m->back.ds, drop}, e));
        *dx = drop ? m->back.dx : m->back.ds;
    }
    return 0;
}

/* Gradients of a unit are about to be written; they were, and with them those of all units behind it. */
static int open_grads(struct model *m, int unit, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_reduce_open(m->buffers[i], unit, e));
    return pass_progress(m, e);
}
static int grads_done(struct model *m, int unit, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_reduce_done(m->buffers[i], unit, e));
    return pass_progress(m, e);
}

void *model_stream_grad(struct model *m)
{
    return m->back.ds;
}

int pass_logits_back(struct model *m, const void *x, bool further, struct err *e)
{
    struct linear output = linear_output(m, m->b * m->t);
    const void *all;

    output.again = further;
    TRY(pass_gather(m, &all, x, output.rows, e));
    TRY(pass_scale(m, m->head.logits, m->config.logits_scale, output.rows * m->config.padded_vocab, e));
    return linear_backward(m, &output, m->back.dln, m->head.logits, all, e);
}

/* From the logits' gradient, or the stream's that the next part has left in m->back.ds, to the gradient of
 * what the last layer adds to the stream, at *dx. */
static int head_back(struct model *m, const struct pass *p, const void **dx, struct err *e)
{
    struct dropout d;
    const struct dropout *drop = branch_dropout(m, p->drop, 2 * m->config.layers - 1, &d);
    const struct joint joint = {NULL, m->back.ds, drop};
    void *dy;

    *dx = drop ? m->back.dx : m->back.ds;
    if (m->part.heads) {
        TRY(pass_logits_back(m, m->acts->final.y, false, e));
        TRY(pass_sum(m, &dy, m->back.dln, m->b * m->t, e));
        TRY(mtp_back(m, p, &dy, e));
        return branch_norm_back(m, branch_end(m, 0), dy, &joint, e);
    }
    return drop ? m->dev->ops->vec_dropout(m->dev, m->dt, m->back.dx, m->back.ds, m->own, m->config.hidden, drop, e) : 0;
}

int pass_embed_back(struct model *m, const struct embedding *emb, void *ds, const struct dropout *drop, struct err *e)
{
    const struct params *p = &m->dense.params;
    const void *all;

    if (drop)
        TRY(m->dev->ops->vec_dropout(m->dev, m->dt, ds, ds, m->own, m->config.hidden, drop, e));
    TRY(pass_scale(m, ds, m->config.embedding_scale, m->own * m->config.hidden, e));
    TRY(pass_gather(m, &all, ds, m->b * m->t, e));
    return m->dev->ops->embedding_bwd(m->dev, m->dt, pass_grad(m, p->word >= 0 ? p->word : p->output), pass_grad(m, p->position),
                                      emb, all, e);
}

/* From the gradient of the first s1 to that of the embeddings. */
static int embed_back(struct model *m, const struct model_dropout *md, struct err *e)
{
    const struct params *p = &m->dense.params;
    const struct norm_acts *a = &m->acts->embedding;
    struct embedding emb = pass_embedding(m, m->b * m->t);
    struct norm_bwd norm = {.t = m->own, .c = m->config.hidden, .dy = m->back.ds, .s = a->s, .mean = a->mean, .rstd = a->rstd,
                            .ds = m->back.ds};
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, 0, DROP_EMBEDDING, &d);

    if (!m->config.embedding_norm)
        return pass_embed_back(m, &emb, m->back.ds, drop, e);
    if (drop)
        TRY(m->dev->ops->vec_dropout(m->dev, m->dt, m->back.ds, m->back.ds, m->own, norm.c, drop, e));
    if (p->embed_w >= 0) /* the output layer may be where it was */
        TRY(pass_weights(m, 0, true, e));
    TRY(pass_norm_back(m, &norm, p->embed_w, p->embed_b, e));
    if (p->embed_w >= 0)
        TRY(pass_release(m, 0, e));
    return pass_embed_back(m, &emb, m->back.ds, NULL, e);
}

/* What comes before the layers in backward: the output layer, with what uses it and the embedding, which may be the same. */
static int head_section(struct model *m, const struct pass *p, const void **dx, struct err *e)
{
    int last = pass_unit(m->config.layers);

    TRY(pass_weights(m, last, true, e));
    TRY(open_grads(m, last, e));
    if (pass_first_unit(m)) {
        TRY(pass_weights(m, 0, true, e));
        TRY(open_grads(m, 0, e));
    }
    TRY(head_back(m, p, dx, e));
    if (pass_first_unit(m))
        TRY(pass_release(m, 0, e));
    TRY(pass_release(m, last, e));
    return grads_done(m, last, e);
}

void model_backward_begin(struct model *m, int64_t i, int64_t n)
{
    for (int k = 0; k < m->n_buffers; k++)
        param_reduce_begin(m->buffers[k], i, n);
}

int model_backward_end(struct model *m, struct err *e)
{
    for (int k = 0; k < m->n_buffers; k++)
        TRY(param_reduce_add(m->buffers[k], e));
    return 0;
}

int model_backward(struct model *m, const struct model_batch *batch, struct err *e)
{
    const struct pass p = {m->b, m->t, -1, batch->drop};
    const void *dx;

    m->acts = &m->slot[batch->slot];
    m->moe.aux_scale = batch->grad_scale * (float)(batch->counted ? batch->counted : m->b * m->run.t);
    TRY(head_section(m, &p, &dx, e));
    for (int64_t i = m->config.layers - 1; i >= 0; i--) {
        double start = trace_begin(m->trace, "backward", m->part.first + i);

        TRY(pass_weights(m, pass_unit(i), true, e));
        TRY(open_grads(m, pass_unit(i), e));
        TRY(branches_back(m, i, &dx, &p, e));
        TRY(pass_release(m, pass_unit(i), e));
        TRY(grads_done(m, pass_unit(i), e));
        trace_end(m->trace, TRACE_LAYERS, "backward", m->part.first + i, start);
    }
    if (!m->part.embeds)
        return 0;
    if (!pass_first_unit(m))
        TRY(open_grads(m, 0, e));
    if (m->dense.trained)
        TRY(embed_back(m, batch->drop, e));
    return grads_done(m, 0, e);
}
