#include "train/likelihood.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"

/* Requests order[first .. first + n) are asked of the same tokens, which stand in a sequence from `at` on. */
struct group {
    int64_t first, n, row, at;
};

struct packed {
    struct model *m;
    struct likelihood *r;
    int64_t *order;      /* of requests: the longest first, those of the same tokens together */
    struct group *group; /* in the order of their rows */
    int64_t groups, rows;
    bool greedy;
    int32_t *ids, *here; /* (3, b * t): tokens, targets, starts; (2, b * t) as struct model_batch wants it; pinned */
    float *loss;         /* (b * t) */
    double *sum;         /* the device's */
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

static void make_groups(struct packed *p, int64_t n)
{
    qsort_r(p->order, (size_t)n, sizeof *p->order, by_length, p->r);
    for (int64_t i = 0; i < n; i++) {
        const struct likelihood *a = &p->r[p->order[i]], *b = i ? &p->r[p->order[i - 1]] : NULL;

        if (b && a->n == b->n && memcmp(a->ids, b->ids, (size_t)(a->n - 1) * sizeof *a->ids) == 0)
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
    int64_t t = p->m->run.t, *chain = malloc((size_t)(t + 1) * sizeof *chain),
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
        int64_t need = p->r[p->order[g->first]].n - 1, room = need;

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

/* Fills the sequences row .. row + b - 1 with group[from .. to); what they leave is a document without losses. */
static void fill(struct packed *p, int64_t row, int64_t from, int64_t to)
{
    int64_t t = p->m->run.t, all = p->m->b * t;
    int32_t *tokens = p->ids, *targets = tokens + all, *starts = targets + all;

    for (int64_t i = 0; i < all; i++) {
        tokens[i] = 0;
        targets[i] = -1;
        starts[i] = (int32_t)(i % t);
    }
    for (int64_t k = from; k < to; k++) {
        const struct group *g = &p->group[k];
        const struct likelihood *r = &p->r[p->order[g->first]];
        int64_t at = (g->row - row) * t + g->at;

        for (int64_t i = 0; i < r->n - 1; i++) {
            tokens[at + i] = r->ids[i];
            targets[at + i] = r->ids[i + 1];
            starts[at + i] = (int32_t)g->at;
        }
    }
}

/* The logits of row i of the micro-batch, as they count. */
static int take_row(struct packed *p, int64_t i, struct err *e)
{
    const struct model *m = p->m;
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

/* The answers of a group, whose tokens stand at row `at` of the micro-batch and on.  Its first request is the one whose losses
 * there are; another differs in what is behind the last token.  What is likelier than all else together needs no look. */
static int answer(struct packed *p, const struct group *g, int64_t at, struct err *e)
{
    for (int64_t k = g->first; k < g->first + g->n; k++) {
        struct likelihood *r = &p->r[p->order[k]];
        int64_t last = r->n - 2;

        r->sum = 0;
        r->greedy = true;
        for (int64_t i = r->from - 1; i <= last; i++) {
            bool other = i == last && k > g->first;
            double loss = p->loss[at + i];

            if (other || (p->greedy && r->greedy && loss > .69)) {
                TRY(take_row(p, at + i, e));
                r->greedy &= largest(p->logits, p->m->config.vocab) == r->ids[i + 1];
            }
            if (other)
                loss = log_sum(p->logits, p->m->config.vocab) - p->logits[r->ids[i + 1]];
            r->sum -= loss;
        }
    }
    return 0;
}

static int micro_batch(struct packed *p, int64_t row, int64_t from, int64_t to, struct err *e)
{
    struct model *m = p->m;
    int64_t t = m->run.t, all = m->b * t;
    struct model_batch batch = {.tokens = p->ids, .targets = p->ids + all, .starts = p->ids + 2 * all, .here = p->here};

    fill(p, row, from, to);
    TRY(model_take(m, &batch, e));
    TRY(model_forward(m, &batch, p->sum, e));
    TRY(device_get(m->dev, p->loss, m->head.loss, (size_t)all * sizeof *p->loss, e));
    for (int64_t k = from; k < to; k++)
        TRY(answer(p, &p->group[k], (p->group[k].row - row) * t + p->group[k].at, e));
    return 0;
}

/* ---- all ---- */

static int check(const struct model *m, const struct likelihood *r, int64_t n, struct err *e)
{
    if (!m->run.reset_positions || !m->run.reset_attention)
        return err_set(e, ERR_ARG, "likelihoods want a model that tells documents apart");
    for (int64_t i = 0; i < n; i++) {
        if (r[i].from < 1 || r[i].from >= r[i].n || r[i].n - 1 > m->run.t)
            return err_set(e, ERR_ARG, "a request of %" PRId64 " tokens, %" PRId64 " to be scored; the model takes %" PRId64,
                           r[i].n, r[i].n - r[i].from, m->run.t);
        for (int64_t k = 0; k < r[i].n; k++)
            if (r[i].ids[k] < 0 || r[i].ids[k] >= m->config.vocab)
                return err_set(e, ERR_ARG, "token %" PRId32 " is outside a vocabulary of %" PRId64, r[i].ids[k], m->config.vocab);
    }
    return 0;
}

static int make_room(struct packed *p, int64_t n, struct err *e)
{
    struct model *m = p->m;
    size_t all = (size_t)(m->b * m->run.t), v = (size_t)m->config.padded_vocab;
    void *ids, *here, *sum;

    p->order = malloc((size_t)(n + 1) * sizeof *p->order);
    p->group = malloc((size_t)(n + 1) * sizeof *p->group);
    p->loss = malloc(all * sizeof *p->loss);
    p->raw = malloc(v * sizeof(float));
    p->logits = malloc(v * sizeof *p->logits);
    if (!p->order || !p->group || !p->loss || !p->raw || !p->logits)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(device_alloc_host(m->dev, &ids, 3 * all * sizeof *p->ids, e));
    p->ids = ids;
    TRY(device_alloc_host(m->dev, &here, 2 * all * sizeof *p->here, e));
    p->here = here;
    TRY(device_alloc(m->dev, &sum, sizeof *p->sum, e));
    p->sum = sum;
    for (int64_t i = 0; i < n; i++)
        p->order[i] = i;
    return 0;
}

int likelihoods(struct model *m, struct likelihood *r, int64_t n, bool greedy, likelihood_told_fn *told, void *arg, struct err *e)
{
    struct packed p = {.m = m, .r = r, .greedy = greedy};
    int rc = check(m, r, n, e);

    if (rc == 0)
        rc = make_room(&p, n, e);
    if (rc == 0) {
        make_groups(&p, n);
        rc = place_groups(&p, e);
    }
    for (int64_t row = 0, from = 0, to; rc == 0 && row < p.rows; row += m->b, from = to) {
        for (to = from; to < p.groups && p.group[to].row < row + m->b; to++)
            ;
        rc = micro_batch(&p, row, from, to, e);
        if (told)
            told(arg, row / m->b + 1, (p.rows + m->b - 1) / m->b);
    }
    free(p.order);
    free(p.group);
    free(p.loss);
    free(p.raw);
    free(p.logits);
    device_free_host(m->dev, p.ids);
    device_free_host(m->dev, p.here);
    device_free(m->dev, p.sum);
    return rc;
}
