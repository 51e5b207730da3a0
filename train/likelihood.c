#include "train/likelihood.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "train/model_pass.h"

/* Requests order[first .. first + n) are asked of the same tokens, which stand in a sequence from `at` on. */
struct group {
    int64_t first, n, row, at;
};

struct packed {
    struct likelihood *r;
    int64_t n, t;        /* t: tokens of a sequence */
    bool greedy;
    bool packs, merges;  /* several requests stand in a sequence; those of the same tokens are asked once */
    int64_t *order;      /* of requests: the longest first, those of the same tokens together */
    struct group *group; /* in the order of their rows */
    int64_t groups, rows;
    double *sum;         /* (2 n) of losses; how many tokens were not the likeliest */
    int64_t *where;      /* (b * t) which of the losses here is that of a token of the micro-batch; -1: it is elsewhere */
    float *loss, *under; /* (b * t) losses; how far targets are under the likeliest, where tensor ranks share the vocabulary */
    void *raw;           /* (padded vocabulary) a row of logits as the device has it, */
    float *logits;       /* and as numbers */
};

/* ---- what is asked once, and where it stands ---- */

static int by_length(const void *x, const void *y, void *arg)
{
    const struct likelihood *r = arg, *a = &r[*(const int64_t *)x], *b = &r[*(const int64_t *)y];
    int order;

    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    order = memcmp(a->ids, b->ids, (size_t)(a->n - 1) * sizeof *a->ids);
    return order ? order : a < b ? -1 : a > b;
}

static void make_groups(struct packed *p)
{
    for (int64_t i = 0; i < p->n; i++)
        p->order[i] = i;
    qsort_r(p->order, (size_t)p->n, sizeof *p->order, by_length, p->r);
    for (int64_t i = 0; i < p->n; i++) {
        const struct likelihood *a = &p->r[p->order[i]], *b = i ? &p->r[p->order[i - 1]] : NULL;

        if (b && p->merges && a->n == b->n && memcmp(a->ids, b->ids, (size_t)(a->n - 1) * sizeof *a->ids) == 0)
            p->group[p->groups - 1].n++;
        else
            p->group[p->groups++] = (struct group){.first = i, .n = 1};
    }
}

static int by_place(const void *x, const void *y)
{
    const struct group *a = x, *b = y;

    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Each group, the longest first, goes to the sequence that it fills best (best fit decreasing): of those with as little room left
 * as it needs, the last one begun.  chain[room] is the newest sequence with that room, next[row] the one begun before it. */
static int place_groups(struct packed *p, struct err *e)
{
    int64_t t = p->t, *chain = malloc((size_t)(t + 1) * sizeof *chain),
            *next = malloc((size_t)(p->groups + 1) * sizeof *next);

    if (!chain || !next) {
        free(chain);
        free(next);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int64_t i = 0; i <= t; i++)
        chain[i] = -1;
    for (int64_t i = 0; i < p->groups; i++) {
        struct group *g = &p->group[i];
        int64_t need = p->packs ? p->r[p->order[g->first]].n - 1 : t, room = need;

        while (room <= t && chain[room] < 0)
            room++;
        if (room > t) {
            g->row = p->rows++;
            room = t;
        } else {
            g->row = chain[room];
            chain[room] = next[g->row];
        }
        g->at = t - room;
        next[g->row] = chain[room - need];
        chain[room - need] = g->row;
    }
    free(chain);
    free(next);
    qsort(p->group, (size_t)p->groups, sizeof *p->group, by_place);
    return 0;
}

/* ---- micro-batches ---- */

/* The first group at or behind a row. */
static int64_t group_from(const struct packed *p, int64_t row)
{
    int64_t low = 0, high = p->groups;

    while (low < high) {
        int64_t mid = (low + high) / 2;

        if (p->group[mid].row < row)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Sequences row .. row + n - 1; what requests leave of them is a document without losses. */
static int fill(void *arg, int64_t row, int64_t n, const struct data_rows *to, struct err *e)
{
    const struct packed *p = arg;

    (void)e;
    for (int64_t i = 0; i < n * p->t; i++) {
        to->tokens[i] = 0;
        to->targets[i] = -1;
        if (to->starts)
            to->starts[i] = (int32_t)(i % p->t);
    }
    for (int64_t k = group_from(p, row), end = group_from(p, row + n); k < end; k++) {
        const struct group *g = &p->group[k];
        const struct likelihood *r = &p->r[p->order[g->first]];
        int64_t at = (g->row - row) * p->t + g->at;

        for (int64_t i = 0; i < r->n - 1; i++) {
            to->tokens[at + i] = r->ids[i];
            to->targets[at + i] = r->ids[i + 1];
            if (to->starts)
                to->starts[at + i] = (int32_t)g->at;
        }
    }
    return 0;
}

/* Row i of the logits that are here, as they count. */
static int take_row(struct packed *p, const struct model *m, int64_t i, struct err *e)
{
    size_t bytes = (size_t)m->config.padded_vocab * dtype_size(m->dt);

    TRY(device_get(m->dev, p->raw, (const char *)m->head.logits + (size_t)i * bytes, bytes, e));
    for (int64_t v = 0; v < m->config.vocab; v++)
        p->logits[v] = xent_capped((float)m->config.logit_cap,
                                   m->dt == DTYPE_F32 ? ((float *)p->raw)[v] : bf16_to(((uint16_t *)p->raw)[v]));
    return 0;
}

static double log_sum(const float *x, int64_t n)
{
    double most = x[0], sum = 0;

    for (int64_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

static int64_t largest(const float *x, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* What a group's tokens that are here say, which stand at row `at` of the micro-batch and on.  The losses are those of its first
 * request; another differs in what is behind the last token.  What is likelier than all else together needs no look. */
static int answer(struct packed *p, const struct model *m, const struct group *g, int64_t at, struct err *e)
{
    for (int64_t k = g->first; k < g->first + g->n; k++) {
        const struct likelihood *r = &p->r[p->order[k]];
        double *sum = &p->sum[2 * p->order[k]];

        for (int64_t i = r->from - 1; i < r->n - 1; i++) {
            bool other = i == r->n - 2 && k > g->first;
            int64_t here = p->where[at + i];
            double loss = here < 0 ? 0 : p->loss[here];

            if (here < 0)
                continue;
            if (p->merges && (other || (p->greedy && sum[1] == 0 && loss > .69))) {
                TRY(take_row(p, m, here, e));
                sum[1] += largest(p->logits, m->config.vocab) != r->ids[i + 1];
            } else if (!p->merges) {
                sum[1] += p->under[here] < 0;
            }
            if (other)
                loss = log_sum(p->logits, m->config.vocab) - p->logits[r->ids[i + 1]];
            sum[0] += loss;
        }
    }
    return 0;
}

/* The losses of a micro-batch whose first sequence is `row`. */
static int headed(void *arg, const struct model *m, int64_t row, struct err *e)
{
    struct packed *p = arg;
    size_t here = (size_t)(m->b * m->t);

    TRY(device_get(m->dev, p->loss, m->head.loss, here * sizeof *p->loss, e));
    if (!p->merges)
        TRY(device_get(m->dev, p->under, m->head.at, here * sizeof *p->under, e));
    for (int64_t i = 0; i < m->b * p->t; i++)
        p->where[i] = -1;
    for (int64_t i = 0; i < (int64_t)here; i++)
        p->where[i / m->t * p->t + pass_position(m, i, m->t)] = i;
    for (int64_t k = group_from(p, row), end = group_from(p, row + m->b); k < end; k++)
        TRY(answer(p, m, &p->group[k], (p->group[k].row - row) * p->t + p->group[k].at, e));
    return 0;
}

/* ---- all ---- */

static int check(const struct packed *p, const struct model *m, struct err *e)
{
    for (int64_t i = 0; i < p->n; i++) {
        const struct likelihood *r = &p->r[i];

        if (r->from < 1 || r->from >= r->n || r->n - 1 > p->t)
            return err_set(e, ERR_ARG, "a request of %" PRId64 " tokens, %" PRId64 " to be scored; the model takes %" PRId64,
                           r->n, r->n - r->from, p->t);
        for (int64_t k = 0; k < r->n; k++)
            if (r->ids[k] < 0 || r->ids[k] >= m->whole.vocab)
                return err_set(e, ERR_ARG, "token %" PRId32 " is outside a vocabulary of %" PRId64, r->ids[k], m->whole.vocab);
    }
    return 0;
}

static int make_room(struct packed *p, const struct model *m, struct err *e)
{
    size_t n = (size_t)p->n + 1, all = (size_t)(m->b * p->t), v = (size_t)m->config.padded_vocab;

    p->order = malloc(n * sizeof *p->order);
    p->group = malloc(n * sizeof *p->group);
    p->sum = calloc(2 * n, sizeof *p->sum);
    p->where = malloc(all * sizeof *p->where);
    p->loss = malloc(all * sizeof *p->loss);
    p->under = malloc(all * sizeof *p->under);
    p->raw = malloc(v * sizeof(float));
    p->logits = malloc(v * sizeof *p->logits);
    return p->order && p->group && p->sum && p->where && p->loss && p->under && p->raw && p->logits
               ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int likelihoods(struct passes *passes, struct likelihood *r, int64_t n, bool greedy, struct err *e)
{
    const struct model *m = passes->parts->model;
    struct packed p = {.r = r, .n = n, .t = m->run.t, .greedy = greedy, .packs = m->run.reset_positions && m->run.reset_attention,
                       .merges = !pass_shared(m)};
    int rc = check(&p, m, e);

    if (rc == 0)
        rc = make_room(&p, m, e);
    if (rc == 0) {
        make_groups(&p);
        rc = place_groups(&p, e);
    }
    if (rc == 0 && n)
        rc = passes_look(passes, &(struct passes_rows){p.rows, fill, headed, &p}, e);
    if (rc == 0 && passes->layout)
        rc = data_parallel_gather(passes->layout->world, p.sum, 2 * n, e);
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        r[i].sum = -p.sum[2 * i];
        r[i].greedy = p.sum[2 * i + 1] == 0;
    }
    free(p.order);
    free(p.group);
    free(p.sum);
    free(p.where);
    free(p.loss);
    free(p.under);
    free(p.raw);
    free(p.logits);
    return rc;
}
