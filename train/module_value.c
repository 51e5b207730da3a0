/* Embeddings of values: a layer may have a table of its own, whose row of a token is added to the token's values (value
 * embeddings of modded-nanogpt and nanochat; after value residuals, arXiv:2410.17897).
 *
 *     v += multiplier gate E[token]         gate: 1, or of each head the sigmoid of a product of the input's first channels
 * Tensor ranks share the heads and with them the columns of a table, so each has all rows and nothing goes between them.  Stages
 * behind the first look tokens up too.
 */
#include "train/module.h"

/* What predicts tokens further on has none. */
static bool has_table(const struct model *m, int64_t layer)
{
    return pass_param(m, layer, VALUE_EMBED) >= 0;
}

/* Values of rows, from where they stand among queries and keys to rows of them alone, or back. */
static int move_values(struct model *m, void *wide, int64_t rows, bool back, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct heads_at alone = {model_kv_width(c), 0}, packed = {model_qkv_width(c), 0};
    const struct heads_part p = {rows, 1, model_kv_width(c), back ? packed : alone, back ? alone : packed};
    void *v = pass_at(m, wide, model_q_width(c) + model_kv_width(c));

    return m->dev->ops->heads_move(m->dev, m->dt, back ? v : m->value.v, back ? m->value.v : v, &p, e);
}

static struct embedding table_of(const struct model *m, int64_t layer, int64_t rows)
{
    const struct param *p = &m->dense.params.v[pass_param(m, layer, VALUE_EMBED)];

    return (struct embedding){.t = rows, .c = p->shape[1], .token = m->acts->tokens, .n_vocab = p->shape[0]};
}

/* The rows of the tokens, times the multiplier, to m->value.embedded. */
static int look_up(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct embedding table = table_of(m, layer, rows);

    TRY(m->dev->ops->embedding_fwd(m->dev, m->dt, m->value.embedded, &table, pass_weight(m, pass_param(m, layer, VALUE_EMBED)),
                                   NULL, e));
    return pass_scale(m, m->value.embedded, m->config.value_scale, rows * table.c, e);
}

int value_add(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    const struct model_config *c = &m->config;
    const struct attention_acts *a = &m->acts->layers[layer].attention;
    const struct matmul gate = {
        .m = rows, .n = c->groups, .k = c->value_gate, .trans_b = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = x, .lda = c->hidden,
        .b = pass_weight(m, pass_param(m, layer, VALUE_GATE)), .c = a->value_gate,
    };

    if (!has_table(m, layer))
        return 0;
    TRY(look_up(m, layer, rows, e));
    TRY(move_values(m, a->qkv, rows, false, e));
    if (c->value_gate) {
        TRY(ops->matmul(m->dev, &gate, e));
        TRY(ops->gate_add(m->dev, m->dt, m->value.v, m->value.embedded, a->value_gate, rows * c->groups, c->head_dim, e));
    } else {
        TRY(ops->vec_add(m->dev, m->dt, m->value.v, m->value.v, m->value.embedded, rows * model_kv_width(c), e));
    }
    return move_values(m, a->qkv, rows, true, e);
}

int value_back(struct model *m, int64_t layer, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    const struct model_config *c = &m->config;
    int64_t rows = m->b * m->t;
    struct embedding table;

    if (!has_table(m, layer))
        return 0;
    table = table_of(m, layer, rows);
    TRY(move_values(m, m->back.dwide, rows, false, e));
    if (c->value_gate) {
        TRY(look_up(m, layer, rows, e));
        TRY(ops->gate_back(m->dev, m->dt, m->value.v, m->value.dgate, m->value.v, m->value.embedded,
                           m->acts->layers[layer].attention.value_gate, rows * c->groups, c->head_dim, e));
    }
    if (!m->dense.trained)
        return 0;
    TRY(pass_scale(m, m->value.v, c->value_scale, rows * table.c, e));
    return ops->embedding_bwd(m->dev, m->dt, pass_grad(m, pass_param(m, layer, VALUE_EMBED)), NULL, &table, m->value.v, e);
}

int value_gate_back(struct model *m, int64_t layer, const void *x, struct err *e)
{
    const struct model_config *c = &m->config;
    int w = pass_param(m, layer, VALUE_GATE);
    const struct matmul weights = {
        .m = c->groups, .n = c->value_gate, .k = m->b * m->t, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32,
        .a = m->value.dgate, .b = x, .ldb = c->hidden, .c = pass_grad(m, w), .beta = m->dense.overwrite ? 0 : 1,
    };
    const struct matmul inputs = {
        .m = m->b * m->t, .n = c->value_gate, .k = c->groups, .dt = m->dt, .dt_c = m->dt, .a = m->value.dgate,
        .b = pass_weight(m, w), .c = m->back.dln, .ldc = c->hidden, .beta = 1,
    };

    if (w < 0)
        return 0;
    if (weights.c)
        TRY(m->dev->ops->matmul(m->dev, &weights, e));
    return m->dev->ops->matmul(m->dev, &inputs, e);
}
