#include "train/qk_clip.h"

#include <math.h>
#include <stdlib.h>

#include "train/model_pass.h"

int qk_clip_begin(struct train_part *parts, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        struct model *m = parts[i].model;

        if (m->most)
            TRY(device_zero(m->dev, m->most, (size_t)(pass_layers(m) * m->config.heads) * sizeof *m->most, e));
    }
    return 0;
}

/* Heads first .. first + n - 1 of a layer, which have one key, by eta. */
static int scale(const struct optim_conf *c, struct train_part *p, int64_t layer, int64_t first, int64_t n, double eta,
                 struct err *e)
{
    static const enum layer_param packed[] = {QKV_W, QKV_B};
    const struct model_config *mc = &p->model->config;
    struct zero_shard *z = &p->shards[0];
    int64_t d = mc->head_dim, up = mc->qk_flat + mc->v_dim, key = model_q_width(mc) + first / n * d;
    double by_q = pow(eta, c->qk_clip.alpha), by_k = pow(eta, 1 - c->qk_clip.alpha);

    if (mc->latent) {
        int q = pass_param(p->model, layer, Q_UP_W);

        TRY(zero_scale_rows(z, q, first * d, mc->qk_flat, by_q, e));
        TRY(zero_scale_rows(z, q, first * d + mc->qk_flat, mc->qk_turn, eta, e));
        return zero_scale_rows(z, pass_param(p->model, layer, KV_UP_W), first * up, mc->qk_flat, by_k, e);
    }
    for (int i = 0; i < 2; i++) {
        TRY(zero_scale_rows(z, pass_param(p->model, layer, packed[i]), first * d, n * d, by_q, e));
        TRY(zero_scale_rows(z, pass_param(p->model, layer, packed[i]), key, d, by_k, e));
    }
    return 0;
}

/* A part, by its logits (layers, heads), the same on all ranks that hold it. */
static int clip(const struct optim_conf *c, struct train_part *p, const float *logit, double *most, struct err *e)
{
    struct model *m = p->model;
    int64_t group = m->config.heads / m->config.groups;
    bool changed = false;

    for (int64_t i = 0; i < pass_layers(m) * m->config.heads; i += group) {
        float s = 0;

        for (int64_t h = i; h < i + group; h++)
            s = fmaxf(s, logit[h]);
        *most = fmax(*most, s);
        if (!(s > c->qk_clip.threshold))
            continue;
        if (!changed)
            TRY(param_gather_settle(&m->dense, e));
        changed = true;
        TRY(scale(c, p, i / m->config.heads, i % m->config.heads, group, c->qk_clip.threshold / s, e));
    }
    return changed ? zero_weights_changed(&p->shards[0], e) : 0;
}

int qk_clip_end(const struct optim_conf *c, const struct layout *l, struct train_part *parts, int n, double *most, struct err *e)
{
    *most = NAN;
    if (!c->qk_clip.on)
        return 0;
    *most = 0;
    for (int i = 0; i < n; i++) {
        struct model *m = parts[i].model;
        size_t heads = (size_t)(pass_layers(m) * m->config.heads);
        float *logit = malloc((heads + 1) * sizeof *logit);
        int rc = logit ? device_get(m->dev, logit, m->most, heads * sizeof *logit, e) : err_set(e, ERR_NOMEM, "out of memory");

        if (rc == 0)
            rc = comm_all_reduce(l->replicas, logit, heads, COMM_F32, COMM_MAX, e);
        if (rc == 0)
            rc = clip(c, &parts[i], logit, most, e);
        free(logit);
        TRY(rc);
    }
    return comm_all_reduce(l->model, most, 1, COMM_F64, COMM_MAX, e);
}
