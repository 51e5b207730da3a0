#include "train/expert_bias.h"

#include <stdlib.h>
#include "train/model_pass.h"

/* The biases of all layers of a part, those without experts too; 0: it has none. */
static size_t biases(const struct model *m)
{
    return m->moe.bias.now ? (size_t)(pass_layers(m) * m->config.experts) : 0;
}

/* Of one layer, whose experts were chosen so often; exact below 2^53. */
static void move(float *bias, const double *load, int64_t experts, float rate)
{
    double all = 0;

    for (int64_t i = 0; i < experts; i++)
        all += load[i];
    for (int64_t i = 0; i < experts; i++) {
        double more = load[i] * (double)experts;

        bias[i] += more < all ? rate : more > all ? -rate : 0;
    }
}

/* What was counted here, and forgets it. */
static int take_load(struct model *m, double *load, struct err *e)
{
    size_t n = biases(m);
    int32_t *count = malloc(n * sizeof *count);
    int rc = count ? device_get(m->dev, count, m->moe.bias.load, n * sizeof *count, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (size_t i = 0; i < n && rc == 0; i++)
        load[i] = count[i];
    free(count);
    return rc < 0 ? rc : device_zero(m->dev, m->moe.bias.load, n * sizeof *count, e);
}

static int move_all(const struct layout *l, struct model *m, float rate, double *load, struct err *e)
{
    int64_t experts = m->config.experts;

    TRY(take_load(m, load, e));
    TRY(comm_all_reduce(l->replicas, load, biases(m), COMM_F64, COMM_SUM, e));
    for (int64_t i = 0; i < pass_layers(m); i++)
        if (pass_moe(m, i))
            move(m->moe.bias.host + i * experts, load + i * experts, experts, rate);
    return device_put(m->dev, m->moe.bias.now, m->moe.bias.host, biases(m) * sizeof(float), e);
}

int expert_bias_end_step(const struct layout *l, struct train_part *parts, int n, double rate, struct err *e)
{
    for (int i = 0; i < n; i++) {
        struct model *m = parts[i].model;
        double *load;
        int rc;

        if (!biases(m))
            continue;
        if (rate == 0) {
            TRY(device_zero(m->dev, m->moe.bias.load, biases(m) * sizeof *m->moe.bias.load, e));
            continue;
        }
        load = malloc(biases(m) * sizeof *load);
        rc = load ? move_all(l, m, (float)rate, load, e) : err_set(e, ERR_NOMEM, "out of memory");
        free(load);
        TRY(rc);
    }
    return 0;
}

/* ---- checkpoints ---- */

static int put_pieces(const struct model *m, bool host, struct piece *v)
{
    int64_t experts = m->config.experts;
    int n = 0;

    for (int64_t i = 0; i < pass_layers(m) && biases(m); i++)
        if (pass_moe(m, i))
            v[n++] = (struct piece){
                .part = CHECKPOINT_WEIGHTS, .name = m->moe.bias.name[i], .dims = 1, .shape = {experts}, .rows = experts,
                .cols = 1, .data = (host ? m->moe.bias.host : m->moe.bias.now) + i * experts, .ld = 1,
            };
    return n;
}

int expert_bias_pieces(const struct train_part *parts, int n_parts, bool host, struct piece **v, int *n, struct err *e)
{
    size_t all = (size_t)*n + 1;
    struct piece *more;

    for (int i = 0; i < n_parts; i++)
        all += (size_t)pass_layers(parts[i].model);
    more = realloc(*v, all * sizeof *more);
    if (!more)
        return err_set(e, ERR_NOMEM, "out of memory");
    *v = more;
    for (int i = 0; i < n_parts; i++)
        *n += put_pieces(parts[i].model, host, *v + *n);
    return 0;
}

int expert_bias_load(struct model *m, const struct checkpoint *ck, struct err *e)
{
    struct piece *v;
    int rc;

    if (!biases(m))
        return 0;
    v = malloc((size_t)pass_layers(m) * sizeof *v);
    rc = v ? checkpoint_load(ck, m->dev, v, put_pieces(m, false, v), e) : err_set(e, ERR_NOMEM, "out of memory");
    free(v);
    return rc < 0 ? rc : device_get(m->dev, m->moe.bias.host, m->moe.bias.now, biases(m) * sizeof(float), e);
}
