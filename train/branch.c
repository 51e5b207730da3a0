#include "train/branch.h"

const struct module *branch_module(const struct model *m, int64_t i)
{
    const struct module *attention = m->config.latent ? &module_latent : &module_attention;

    return i % 2 == 0 ? attention : pass_moe(m, i / 2) ? &module_experts : &module_mlp;
}

void branch_norm_params(const struct model *m, int64_t i, int *w, int *b)
{
    const struct params *p = &m->dense.params;
    bool second = i % 2 && m->config.parallel != PARALLEL_NORM;

    if (branch_is_end(m, i)) {
        const struct params_mtp *further = i == branch_end(m, 0) ? NULL : &p->mtp[(i - branch_end(m, 1)) / 2];

        *w = further ? further->final_w : p->final_w;
        *b = further ? further->final_b : p->final_b;
        return;
    }
    *w = pass_param(m, i / 2, second ? LN2_W : LN1_W);
    *b = pass_param(m, i / 2, second ? LN2_B : LN1_B);
}

void branch_post_params(const struct model *m, int64_t i, int *w, int *b)
{
    *w = pass_param(m, i / 2, i % 2 ? POST2_W : POST1_W);
    *b = pass_param(m, i / 2, i % 2 ? POST2_B : POST1_B);
}

const void *branch_input(const struct model *m, int64_t i)
{
    const struct norm_acts *a = branch_norm(m, i);

    return model_pre_norm(&m->config) ? a->y : a->s;
}

/* Whether a norm is its alone that stands before its module; behind the last branch, whether the final norm is here. */
static bool has_norm(const struct model *m, int64_t i)
{
    bool shares = m->config.parallel == PARALLEL_NORM && i % 2;

    return branch_is_end(m, i) ? m->part.heads : model_pre_norm(&m->config) && !shares;
}

/* Whether it is the second of two that stand side by side. */
static bool is_beside(const struct model *m, int64_t i)
{
    return m->config.parallel && i % 2;
}

/* The stream that it adds to. */
static void *stream_of(const struct model *m, int64_t i)
{
    return is_beside(m, i) ? m->middle : branch_norm(m, i)->s;
}

const struct dropout *branch_dropout(const struct model *m, const struct model_dropout *md, int64_t i, struct dropout *d)
{
    return pass_dropout(m, md, i / 2, i % 2 ? DROP_MLP : DROP_PROJ, d);
}

const struct dropout *branch_dropout_before(const struct model *m, const struct model_dropout *md, int64_t i, struct dropout *d)
{
    bool first = i == 0 || (i % 2 == 0 && i / 2 >= m->config.layers); /* of a stream that begins there */

    return first ? NULL : branch_dropout(m, md, i - 1, d);
}

/* p with the weights of branch i's norm and its output, which may be in FP8. */
static int norm(struct model *m, int64_t i, struct norm_fwd *p, struct err *e)
{
    struct norm_acts *a = branch_norm(m, i);
    enum fp8_input as = i % 2 ? FP8_LN2 : FP8_LN1;
    int w, b;

    p->y = a->y;
    p->mean = a->mean;
    p->rstd = a->rstd;
    branch_norm_params(m, i, &w, &b);
    if (branch_is_end(m, i) || !model_fp8_made(m, i / 2, as))
        return pass_norm(m, p, w, b, e);
    return pass_fp8_norm(m, i / 2, as, p, w, b, e);
}

int branch_start(struct model *m, int64_t i, const struct pass *p, struct err *e)
{
    struct norm_fwd alone = {.t = pass_own(m, pass_rows(p)), .c = m->config.hidden, .x = branch_norm(m, i)->s};

    return has_norm(m, i) ? norm(m, i, &alone, e) : 0;
}

int branch_begin(struct model *m, int64_t i, const struct pass *p, struct err *e)
{
    if (is_beside(m, i))
        TRY(branch_start(m, i, p, e));
    return branch_module(m, i)->begin(m, i / 2, branch_input(m, i), p, e);
}

/* The norm after its module, of x, the rows that are here, in its place. */
static int post_norm(struct model *m, int64_t i, void *x, int64_t own, struct err *e)
{
    const struct norm_acts *a = branch_post(m, i);
    struct norm_fwd p = {.t = own, .c = m->config.hidden, .x = x, .y = x};
    int w, b;

    if (m->run.use == MODEL_TRAIN) {
        TRY(device_copy(m->dev, a->s, x, (size_t)(own * p.c) * dtype_size(m->dt), e));
        p.x = a->s;
        p.mean = a->mean;
        p.rstd = a->rstd;
    }
    branch_post_params(m, i, &w, &b);
    return pass_norm(m, &p, w, b, e);
}

/* What it adds to the stream, before dropout: *added, of the rows that are here. */
static int finish(struct model *m, int64_t i, const struct pass *p, void **added, struct err *e)
{
    int64_t own = pass_own(m, pass_rows(p));

    TRY(branch_module(m, i)->end(m, i / 2, p, e));
    TRY(pass_sum(m, added, m->out, pass_rows(p), e));
    if (model_post_norm(&m->config))
        TRY(post_norm(m, i, *added, own, e));
    return pass_scale(m, *added, m->config.residual_scale, own * m->config.hidden, e);
}

/* The next stream, without a norm of it. */
static int join_plain(struct model *m, const struct norm_fwd *p, void *added, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;

    if (p->drop)
        TRY(ops->vec_dropout(m->dev, m->dt, added, added, p->t, p->c, p->drop, e));
    return ops->vec_add(m->dev, m->dt, p->s, p->residual, added, p->t * p->c, e);
}

/* The last stream of a part, which another part goes on from with a norm: by the op that makes it within one, and with its bits.
 * The norm of it, where `added` was, is for nobody. */
static int leave(struct model *m, int64_t i, struct norm_fwd *p, void *added, struct err *e)
{
    int w, b;

    p->x = added;
    p->y = added;
    branch_norm_params(m, i, &w, &b);
    return pass_norm(m, p, w, b, e);
}

int branch_join(struct model *m, int64_t i, const struct pass *p, struct err *e)
{
    int64_t then = branch_next(m, i);
    struct dropout d;
    const struct dropout *drop = branch_dropout(m, p->drop, i, &d);
    struct norm_fwd next = {
        .t = pass_own(m, pass_rows(p)), .c = m->config.hidden, .residual = stream_of(m, i), .drop = drop,
        .s = stream_of(m, then),
    };
    void *added;

    TRY(finish(m, i, p, &added, e));
    if (branch_is_end(m, then) && !m->part.heads && model_pre_norm(&m->config))
        return leave(m, i, &next, added, e);
    if (is_beside(m, then) || !has_norm(m, then))
        return join_plain(m, &next, added, e);
    next.x = added;
    return norm(m, then, &next, e);
}

/* ---- recomputation ---- */

int64_t pass_chunk(const struct model *m, int64_t layer)
{
    const struct model_run *r = &m->run;

    if (r->use != MODEL_TRAIN || r->recompute != RECOMPUTE_FULL || layer >= m->config.layers)
        return -1;
    if (r->block)
        return layer < r->layers ? layer : -1;
    return layer - layer % r->layers;
}

/* Norms' outputs, and of each module what it has not kept. */
static int light_again(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    for (int64_t i = 2 * layer; i < 2 * layer + 2; i++)
        TRY(branch_start(m, i, p, e));
    for (int64_t i = 2 * layer; i < 2 * layer + 2; i++)
        if (branch_module(m, i)->again)
            TRY(branch_module(m, i)->again(m, layer, p, e));
    return 0;
}

/* Layers chunk to layer, but for what the last of them would add. */
static int chunk_again(struct model *m, int64_t chunk, int64_t layer, const struct pass *p, struct err *e)
{
    void *added;

    if (chunk < layer) /* first others are needed */
        TRY(pass_release(m, pass_unit(layer), e));
    TRY(pass_weights(m, pass_unit(chunk), false, e));
    TRY(branch_start(m, 2 * chunk, p, e));
    for (int64_t i = chunk; i <= layer; i++) {
        TRY(branch_begin(m, 2 * i, p, e));
        TRY(branch_join(m, 2 * i, p, e));
        TRY(branch_begin(m, 2 * i + 1, p, e));
        if (i == layer && model_post_norm(&m->config))
            TRY(finish(m, 2 * i + 1, p, &added, e)); /* the norm after it is of that */
        if (i == layer)
            break;
        TRY(pass_weights(m, pass_unit(i + 1), false, e));
        TRY(branch_join(m, 2 * i + 1, p, e));
        if (i + 1 < layer) /* the last two are needed next */
            TRY(pass_release(m, pass_unit(i), e));
    }
    return pass_weights(m, pass_unit(layer), true, e);
}

int branches_again(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    int64_t chunk = pass_chunk(m, layer);
    int rc = 0;

    if (m->fp8)
        m->fp8->again = true;
    if (m->run.recompute == RECOMPUTE_SELECTIVE)
        rc = light_again(m, layer, p, e);
    else if (chunk >= 0 && (layer + 1 == m->config.layers || pass_chunk(m, layer + 1) != chunk))
        rc = chunk_again(m, chunk, layer, p, e); /* else it was kept, or run again with its chunk already */
    if (m->fp8)
        m->fp8->again = false;
    return rc;
}
