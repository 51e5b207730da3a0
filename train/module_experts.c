/* Layers whose MLP is a mixture of experts: a router (module_router.c) sends each token to the topk of them that it likes best,
 * and what they answer is added up by its weights (arXiv:1701.06538, 2101.03961).
 *
 * Tensor ranks hold a slice of each expert, as of a dense MLP: all route all rows, and what comes out
 * are summands.
 *
 * Ranks may share the experts (arXiv:2006.16668): each has some of them whole, gets the rows of all ranks that are for these,
 * and sends the answers back.  Of a row each tensor rank sends a piece, some columns, and they are joined where the experts
 * are; what these give for a piece is summed there before it goes back.  Rows come by rank and expert, and are put in the
 * order of experts.  How many come is known only then: they lie in rooms that grow, unless experts have a capacity.  That is
 * of a micro-batch (of its tokens that the rank has), the same for all tensor ranks, which all choose for all of its tokens:
 * so what is dropped depends neither on tensor nor on expert nor on data parallelism.
 */
#include <stdlib.h>
#include <string.h>

#include "train/exchange.h"
#include "train/lora.h"
#include "train/module.h"

/* ---- rooms ---- */

static int64_t width(const struct model *m)
{
    return model_moe_fc1_width(&m->config);
}

static bool act_kept(const struct model *m)
{
    return m->run.use != MODEL_TRAIN || m->run.recompute != RECOMPUTE_SELECTIVE;
}

/* What lies in a layer's room and in the one of all layers, for rows that have come; what there is not is NULL. */
struct places {
    void *in, *fc1, *act;    /* (rows, h), (rows, fc1 width), (rows, ffn) */
    void *come, *sorted;     /* (rows, h) as they come and go, and by expert; with ranks that share */
    void *pieces;            /* (pieces, rows, h / pieces) of these, where tensor ranks share what travels */
    void *dfc1;              /* in backward */
    struct lora_work lora;   /* of adapters; NULL without */
    uint8_t *fp8[3];         /* (rows, model_fp8_row) bytes, of one expert at a time */
    int32_t *order, *back;   /* (rows) where the i-th by expert came, where the i-th that came stands; with such ranks */
};

/* rows: of both rooms; bytes of a row in each, returned if not wanted (mem NULL). */
static int64_t kept_places(const struct model *m, char *mem, int64_t rows, struct places *p)
{
    const struct {
        void **to;
        int64_t n;
    } each[] = {{&p->in, m->config.hidden}, {&p->fc1, width(m)}, {&p->act, act_kept(m) ? m->config.moe_ffn : 0}};
    int64_t row = 0, w = (int64_t)dtype_size(m->dt);

    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        if (mem && each[i].n)
            *each[i].to = mem + rows * row;
        row += each[i].n * w;
    }
    return row;
}

static int64_t scratch_places(const struct model *m, char *mem, int64_t rows, struct places *p)
{
    bool spread = pass_spread(m);
    int64_t w = (int64_t)dtype_size(m->dt), h = spread ? m->config.hidden * w : 0, cut = pass_pieces(m) > 1 ? h : 0;
    int64_t id = spread ? (int64_t)sizeof(int32_t) : 0, fp8 = m->fp8 ? model_fp8_row(m, m->fp8->expert_wide) : 0;
    int64_t lora = m->config.lora_targets & LORA_TARGET_EXPERTS ? m->config.lora_rank * w : 0;
    int64_t more = m->config.lora_rank ? 0 : fp8; /* for gradients of weights */
    const struct {
        void **to;
        int64_t bytes;
    } each[] = {{&p->come, h}, {&p->sorted, h}, {&p->pieces, cut}, {&p->act, act_kept(m) ? 0 : m->config.moe_ffn * w},
                {&p->dfc1, m->run.use == MODEL_TRAIN ? width(m) * w : 0}, {(void **)&p->order, 2 * id},
                {&p->lora.down, lora}, {&p->lora.up, m->run.use == MODEL_TRAIN ? lora : 0},
                {(void **)&p->fp8[0], fp8}, {(void **)&p->fp8[1], more}, {(void **)&p->fp8[2], more}};
    int64_t row = 0;

    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        if (mem && each[i].bytes)
            *each[i].to = mem + rows * row;
        row += each[i].bytes;
    }
    return row;
}

/* Rows that come to this rank: as many as go out; or, most, when all ranks send it what they can. */
static int64_t most_come(const struct model *m, bool most)
{
    const struct route r = router_route(m, m->b * m->t);
    int64_t out = route_rows(&r), here = m->experts.params.experts * route_capacity(&r);

    if (!most || !pass_spread(m))
        return out;
    return m->part.expert->size * (here < out ? here : out);
}

void pass_rooms(const struct model *m, struct model_pool_size *s)
{
    struct places none = {0};

    s->rows = most_come(m, m->config.capacity > 0);
    s->most = most_come(m, true);
    s->row = kept_places(m, NULL, 0, &none);
    s->scratch_row = scratch_places(m, NULL, 0, &none);
}

static struct places places_of(const struct model *m, const struct experts_acts *a)
{
    struct places p = {0};

    kept_places(m, a->room->mem, a->room->rows, &p);
    scratch_places(m, m->pool->scratch.mem, m->pool->scratch.rows, &p);
    p.back = p.order ? p.order + a->come : NULL;
    return p;
}

/* ---- rows between ranks ---- */

/* Rows that have come for expert i of those here; for all of them. */
static int64_t rows_of(const struct model *m, const struct experts_acts *a, int64_t i)
{
    int64_t here = m->experts.params.experts, n = 0;

    for (int64_t from = 0; from < m->config.experts / here; from++)
        n += a->heard[from * here + i];
    return n;
}
/* From how many ranks rows stay apart, by rank and of a rank by expert: each has products of its own, as where it has all
 * experts, and gradients of its own.  1: they stand by expert. */
static int sources(const struct model *m)
{
    return param_buffer_copies(&m->experts.conf);
}
static int64_t source_rows(const struct model *m, const struct experts_acts *a, int source)
{
    int64_t here = m->experts.params.experts, n = 0;

    for (int64_t i = 0; i < here && sources(m) > 1; i++)
        n += a->heard[source * here + i];
    return sources(m) > 1 ? n : a->come;
}

/* Whether the host knows how many rows an expert gets, and waits for that unless it is the same always: where that says how many
 * come or go at all, and where it is what the products are called with. */
static bool counted(const struct model *m)
{
    const struct model_config *c = &m->config;
    int64_t shape[][2] = {{width(m), c->hidden}, {c->hidden, c->moe_ffn}, {c->lora_rank, c->hidden}};
    int shapes = c->lora_targets & LORA_TARGET_EXPERTS ? 3 : 2;
    bool apart = false;

    for (int i = 0; i < shapes && m->dev->kind == DEVICE_CUDA; i++) {
        const struct matmul_grouped q = {
            .of = {.m = pass_moe_rows(m), .n = shape[i][0], .k = shape[i][1], .dt = m->dt}, .groups = c->experts,
        };

        apart |= matmul_grouped_apart(&q);
    }
    return pass_spread(m) || c->capacity > 0 || (m->fp8 && m->fp8->n > m->fp8->dense) || apart;
}

/* Room for the rows that come. */
static int make_room(struct model *m, int64_t layer, struct err *e)
{
    const struct experts_acts *a = &m->acts->layers[layer].experts;
    int64_t n = a->come, most = 0;
    int rc = model_pool_room(m->pool, a->room, n, e);

    if (rc == 0)
        rc = model_pool_room(m->pool, &m->pool->scratch, n, e);
    if (rc == 0)
        return 0;
    for (int64_t i = 1; i < m->experts.params.experts; i++)
        most = rows_of(m, a, i) > rows_of(m, a, most) ? i : most;
    return err_wrap(e, "layer %lld: %lld tokens came to its %lld experts on this rank, %lld of them to expert %lld"
                    " (--moe-expert-capacity-factor bounds them)", (long long)(m->part.first + layer), (long long)n,
                    (long long)m->experts.params.experts, (long long)rows_of(m, a, most),
                    (long long)(m->experts.params.first_expert + most));
}

/* a->heard: how many rows each rank has for each expert here; a->come: of all. */
static int hear(struct model *m, struct experts_acts *a, struct err *e)
{
    struct comm_call call = {
        .kind = COMM_ALL_TO_ALL, .send = a->counts, .recv = a->heard, .n = (size_t)m->experts.params.experts, .type = COMM_I32,
    };

    a->come = a->go;
    if (!pass_spread(m)) {
        memcpy(a->heard, a->counts, (size_t)m->config.experts * sizeof *a->heard);
        return 0;
    }
    if (m->config.pad_experts)
        memcpy(a->heard, a->counts, (size_t)m->config.experts * sizeof *a->heard);
    else
        TRY(comm_run(m->part.expert, &call, e));
    a->come = 0;
    for (int64_t i = 0; i < m->config.experts; i++)
        a->come += a->heard[i];
    return 0;
}

/* Rows by expert from this rank to those that have the experts, or the other way; of each this rank's piece. */
static int move(struct model *m, const struct experts_acts *a, bool home, const void *from, void *to, struct err *e)
{
    int64_t here = m->experts.params.experts;
    int ranks = m->part.expert->size;
    size_t *out = m->moe.moved, *in = m->moe.moved + ranks, h = (size_t)(m->config.hidden / pass_pieces(m));
    struct comm_call call = {
        .kind = COMM_ALL_TO_ALL_V, .send = from, .recv = to, .type = exchange_type(m->dt),
        .send_counts = home ? in : out, .recv_counts = home ? out : in,
    };

    memset(m->moe.moved, 0, 2 * (size_t)ranks * sizeof *m->moe.moved);
    for (int64_t i = 0; i < m->config.experts; i++) {
        out[i / here] += (size_t)a->counts[i] * h;
        in[i / here] += (size_t)a->heard[i] * h;
    }
    return exchange(m->dev, m->part.expert, &call, e);
}

/* The order of rows that have come, which stand by rank, and of a rank by expert; and how many there are for each. */
static int sort_rows(struct model *m, const struct experts_acts *a, const struct places *p, struct err *e)
{
    int64_t here = m->experts.params.experts, all = a->come, sorted = 0;
    int32_t *order, *back;

    if (!m->moe.order_host || all > m->moe.order_rows) {
        free(m->moe.order_host);
        m->moe.order_host = malloc((2 * (size_t)all + 1) * sizeof *m->moe.order_host);
        m->moe.order_rows = m->moe.order_host ? all : 0;
        if (!m->moe.order_host)
            return err_set(e, ERR_NOMEM, "out of memory");
    }
    order = m->moe.order_host;
    back = order + all;
    for (int64_t i = 0; i < all && sources(m) > 1; i++)
        order[i] = back[i] = (int32_t)i;
    for (int64_t i = 0; i < here && sources(m) == 1; i++)
        for (int64_t k = 0, row = 0; k < m->config.experts; row += a->heard[k++])
            for (int64_t j = 0; k % here == i && j < a->heard[k]; j++, sorted++) {
                order[sorted] = (int32_t)(row + j);
                back[row + j] = (int32_t)sorted;
            }
    for (int64_t i = 0; i < here * sources(m); i++)
        m->moe.rows_here[i] = sources(m) > 1 ? a->heard[i] : (int32_t)rows_of(m, a, i);
    TRY(device_put(m->dev, m->moe.rows_each, m->moe.rows_here, (size_t)(here * sources(m)) * sizeof *m->moe.rows_here, e));
    return all ? device_put(m->dev, p->order, order, 2 * (size_t)all * sizeof *order, e) : 0;
}

/* Columns of n rows (h) at wide, those of the i-th piece, to `piece` (h / pieces); or the other way. */
static int cut(struct model *m, void *wide, int i, void *piece, int64_t n, bool back, struct err *e)
{
    size_t row = (size_t)m->config.hidden * dtype_size(m->dt), part = row / (size_t)pass_pieces(m);
    char *at = (char *)wide + (size_t)i * part;

    if (back)
        return device_copy_rows(m->dev, at, row, piece, part, part, (size_t)n, e);
    return device_copy_rows(m->dev, piece, part, at, row, part, (size_t)n, e);
}

/* The pieces of rows that have come, of which each tensor rank has its own, to p->come on all of them; back: of p->come,
 * where each has a summand, the sum of this rank's piece to its place in p->pieces. */
static int join_pieces(struct model *m, const struct experts_acts *a, const struct places *p, bool back, struct err *e)
{
    int64_t rows = a->come, n = rows * m->config.hidden / pass_pieces(m);
    void *own = pass_at(m, p->pieces, m->part.tensor->rank * n);
    struct comm_call call = {
        .kind = back ? COMM_REDUCE_SCATTER : COMM_ALL_GATHER, .send = back ? p->pieces : own, .recv = back ? own : p->pieces,
        .n = (size_t)n, .type = exchange_type(m->dt), .op = COMM_SUM,
    };

    for (int i = 0; i < pass_pieces(m) && back; i++)
        TRY(cut(m, p->come, i, pass_at(m, p->pieces, i * n), rows, false, e));
    if (n)
        TRY(exchange(m->dev, m->part.tensor, &call, e));
    for (int i = 0; i < pass_pieces(m) && !back; i++)
        TRY(cut(m, p->come, i, pass_at(m, p->pieces, i * n), rows, true, e));
    return 0;
}

/* Rows of this rank, by expert, to p->come of those that have the experts.  Tensor ranks have all the same rows: each sends
 * its piece of them, and they are joined there. */
static int send(struct model *m, const struct experts_acts *a, const struct places *p, void *mine, struct err *e)
{
    int64_t n = a->come * m->config.hidden / pass_pieces(m);

    if (pass_pieces(m) == 1)
        return move(m, a, false, mine, p->come, e);
    TRY(cut(m, mine, m->part.tensor->rank, m->moe.piece, a->go, false, e));
    TRY(move(m, a, false, m->moe.piece, pass_at(m, p->pieces, m->part.tensor->rank * n), e));
    return join_pieces(m, a, p, false, e);
}

/* Summands of tensor ranks at p->come back to the ranks that the rows are from, to mine: summands too, of which each has its
 * piece, and 0 elsewhere. */
static int send_home(struct model *m, const struct experts_acts *a, const struct places *p, void *mine, struct err *e)
{
    int64_t n = a->come * m->config.hidden / pass_pieces(m);

    if (pass_pieces(m) == 1)
        return move(m, a, true, p->come, mine, e);
    TRY(join_pieces(m, a, p, true, e));
    TRY(move(m, a, true, pass_at(m, p->pieces, m->part.tensor->rank * n), m->moe.piece, e));
    TRY(device_zero(m->dev, mine, (size_t)(a->go * m->config.hidden) * dtype_size(m->dt), e));
    return cut(m, mine, m->part.tensor->rank, m->moe.piece, a->go, true, e);
}

/* Rows of this rank, by expert, at mine: all that are for the experts here, by expert, to `sorted`; and the way back. */
static int bring(struct model *m, const struct experts_acts *a, const struct places *p, void *mine, void *sorted, struct err *e)
{
    TRY(send(m, a, p, mine, e));
    return m->dev->ops->route_take(m->dev, m->dt, sorted, p->come, p->order, a->come, m->config.hidden, e);
}
static int bring_home(struct model *m, const struct experts_acts *a, const struct places *p, const void *sorted, void *mine,
                      struct err *e)
{
    TRY(m->dev->ops->route_take(m->dev, m->dt, p->come, sorted, p->back, a->come, m->config.hidden, e));
    return send_home(m, a, p, mine, e);
}

/* ---- products ---- */

/* A linear layer of the experts of a layer, for the rows of a source. */
static struct linear expert_linear(const struct model *m, int64_t layer, const struct places *places, bool second, int source)
{
    const struct params *p = &m->experts.params;
    const struct experts_acts *a = &m->acts->layers[layer].experts;
    int64_t at = source * p->experts;
    struct linear l = {
        .buffer = &m->experts, .w = params_expert(p, layer, 0, second ? EXPERT_FC2_W : EXPERT_FC1_W),
        .b = params_expert(p, layer, 0, second ? EXPERT_FC2_B : EXPERT_FC1_B), .rows = source_rows(m, a, source),
        .experts = true, .each = pass_spread(m) ? m->moe.rows_here + at : a->counts, .most = pass_spread(m) ? 0 : a->most,
        .copy = source, .room = places->fp8,
    };

    lora_attach(m, &l, layer, second ? EXPERT_FC2_W : EXPERT_FC1_W, &places->lora);
    if (m->config.pad_experts)
        return l;
    l.count = pass_spread(m) ? m->moe.rows_each + at : a->chosen;
    l.known = counted(m) ? l.each : NULL;
    return l;
}

/* ---- forward ---- */

/* Which rows of x go where: what router_choose() fills and, where the host is to know them, the layer's counts. */
static int choose(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    struct experts_acts *a = &m->acts->layers[layer].experts;
    const struct route r = router_route(m, rows);

    TRY(router_choose(m, layer, x, rows, e));
    a->go = route_rows(&r);
    a->most = r.capacity;
    if (!counted(m))
        return 0;
    if (!r.pad)
        TRY(device_get(m->dev, a->counts, a->chosen, (size_t)r.experts * sizeof *a->counts, e));
    a->go = 0;
    for (int64_t i = 0; i < r.experts; i++)
        a->go += a->counts[i] = (int32_t)route_kept(&r, a->counts[i]);
    return 0;
}

static int activate(struct model *m, int64_t layer, struct err *e)
{
    const struct experts_acts *a = &m->acts->layers[layer].experts;
    const struct places p = places_of(m, a);

    return pass_act(m, p.act, p.fc1, a->come, m->config.moe_ffn, e);
}

/* p->in through the experts to answers. */
static int experts(struct model *m, int64_t layer, const struct places *p, void *answers, struct err *e)
{
    int64_t h = m->config.hidden, ffn = m->config.moe_ffn, row = 0;

    for (int i = 0; i < sources(m); i++) {
        const struct linear fc1 = expert_linear(m, layer, p, false, i);

        TRY(linear_forward(m, &fc1, pass_at(m, p->fc1, row * width(m)), pass_at(m, p->in, row * h), e));
        row += fc1.rows;
    }
    TRY(activate(m, layer, e));
    row = 0;
    for (int i = 0; i < sources(m); i++) {
        const struct linear fc2 = expert_linear(m, layer, p, true, i);

        TRY(linear_forward(m, &fc2, pass_at(m, answers, row * h), pass_at(m, p->act, row * ffn), e));
        row += fc2.rows;
    }
    return 0;
}

/* From all rows to the answers of the experts. */
static int ask(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    struct experts_acts *a = &m->acts->layers[layer].experts;
    struct places p;

    TRY(choose(m, layer, x, rows, e));
    TRY(hear(m, a, e));
    TRY(make_room(m, layer, e));
    p = places_of(m, a);
    TRY(m->dev->ops->route_take(m->dev, m->dt, pass_spread(m) ? m->moe.drows : p.in, x, m->moe.route_from, a->go,
                                m->config.hidden, e));
    if (!pass_spread(m))
        return experts(m, layer, &p, a->answer, e);
    TRY(sort_rows(m, a, &p, e));
    TRY(bring(m, a, &p, m->moe.drows, p.in, e));
    TRY(experts(m, layer, &p, p.sorted, e));
    return bring_home(m, a, &p, p.sorted, a->answer, e);
}

/* Whether there is one expert beside them for all tokens. */
static bool has_shared(const struct model *m)
{
    return m->config.moe_shared > 0;
}

static int begin(struct model *m, int64_t layer, const void *y, const struct pass *p, struct err *e)
{
    const void *x;

    TRY(pass_gather(m, &x, y, pass_rows(p), e));
    TRY(ask(m, layer, x, pass_rows(p), e));
    return has_shared(m) ? shared_expert(m, layer, x, pass_rows(p), e) : 0;
}

static int end(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    struct experts_acts *a = &m->acts->layers[layer].experts;
    const struct route r = router_route(m, pass_rows(p));

    TRY(m->dev->ops->route_join(m->dev, m->dt, &r, m->out, a->answer, a->place, a->share, m->config.hidden, e));
    return has_shared(m) ? shared_expert_end(m, layer, pass_rows(p), e) : 0;
}

static int again(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    TRY(activate(m, layer, e));
    return has_shared(m) ? mlp_activate(m, layer, pass_rows(p), e) : 0;
}

/* ---- backward ---- */

/* Gradients of answers at rows, which become those of what came in. */
static int experts_back(struct model *m, int64_t layer, const struct places *p, void *rows, struct err *e)
{
    int64_t h = m->config.hidden, ffn = m->config.moe_ffn, row = 0;

    for (int i = 0; i < sources(m); i++) {
        const struct linear fc2 = expert_linear(m, layer, p, true, i);
        void *act = pass_at(m, p->act, row * ffn);

        TRY(linear_backward(m, &fc2, act, pass_at(m, rows, row * h), act, e)); /* what act was is needed no more */
        row += fc2.rows;
    }
    TRY(pass_act_back(m, p->dfc1, p->act, p->fc1, row, ffn, e));
    row = 0;
    for (int i = 0; i < sources(m); i++) {
        const struct linear fc1 = expert_linear(m, layer, p, false, i);

        TRY(linear_backward(m, &fc1, pass_at(m, rows, row * h), pass_at(m, p->dfc1, row * width(m)),
                            pass_at(m, p->in, row * h), e));
        row += fc1.rows;
    }
    return 0;
}

static int backward(struct model *m, int64_t layer, const void *dy, const void *y, const struct pass *pass, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct experts_acts *a = &m->acts->layers[layer].experts;
    int64_t rows = pass_rows(pass), h = m->config.hidden;
    const struct route r = router_route(m, rows);
    const struct places p = places_of(m, a);
    const void *dx;

    TRY(pass_gather(m, &dx, dy, rows, e));
    if (r.pad)
        TRY(device_zero(m->dev, m->moe.drows, (size_t)(route_rows(&r) * h) * dtype_size(m->dt), e));
    TRY(ops->route_join_bwd(m->dev, m->dt, &r, m->moe.drows, m->moe.dshare, dx, a->answer, a->place, a->share, h, e));
    if (pass_spread(m)) {
        TRY(sort_rows(m, a, &p, e));
        TRY(bring(m, a, &p, m->moe.drows, p.sorted, e));
        TRY(experts_back(m, layer, &p, p.sorted, e));
        TRY(bring_home(m, a, &p, p.sorted, m->moe.drows, e));
    } else {
        TRY(experts_back(m, layer, &p, m->moe.drows, e));
    }
    TRY(ops->route_join(m->dev, m->dt, &r, m->back.dln, m->moe.drows, a->place, NULL, h, e));
    TRY(router_backward(m, layer, y, rows, e));
    return has_shared(m) ? shared_expert_backward(m, layer, dy, y, e) : 0;
}

const struct module module_experts = {begin, end, again, backward};
