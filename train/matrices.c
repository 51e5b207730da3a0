#include "train/matrices.h"

#include <stdlib.h>

/* ---- memory ---- */

size_t matrices_bytes(const struct optim_conf *c, const struct matrix_size *most, int tensor, int replicas)
{
    size_t whole = (size_t)most->elements * sizeof(float);

    if (!most->elements)
        return 0;
    return optim_of(c->kind)->direct_bytes(c, most) + (tensor * replicas > 1 ? whole : 0) + (tensor > 1 ? whole : 0);
}

int matrices_open(struct matrices *m, struct device *dev, const struct optim_conf *c, const struct layout *l,
                  const struct matrix_size *most, struct err *e)
{
    size_t whole = (size_t)most->elements * sizeof(float);

    *m = (struct matrices){.dev = dev, .optim = c, .layout = l};
    if (!whole)
        return 0;
    TRY(device_alloc_as(dev, MEMORY_OPTIMIZER, &m->work, optim_of(c->kind)->direct_bytes(c, most), e));
    if (l->tensor->size * l->replicas->size > 1)
        TRY(device_alloc_as(dev, MEMORY_OPTIMIZER, (void **)&m->whole, whole, e));
    return l->tensor->size > 1 ? device_alloc_as(dev, MEMORY_OPTIMIZER, (void **)&m->slices, whole, e) : 0;
}

void matrices_close(struct matrices *m)
{
    if (m->dev) {
        device_free(m->dev, m->work);
        device_free(m->dev, m->whole);
        device_free(m->dev, m->slices);
    }
    free(m->calls);
    free(m->v);
    *m = (struct matrices){0};
}

/* One more, in its place; NULL: out of memory. */
static struct whole_matrix *another(struct matrices *m)
{
    if (m->n == m->room) {
        int room = m->room ? 2 * m->room : 64;
        struct whole_matrix *v = realloc(m->v, (size_t)room * sizeof *v);

        if (!v)
            return NULL;
        m->v = v;
        m->room = room;
    }
    return &m->v[m->n++];
}

/* The matrices of a parameter, which stand one after another. */
static int add_param(struct matrices *m, const struct zero_shard *z, const struct param *p, bool experts, struct err *e)
{
    int64_t here = p->rule.apart ? 0 : p->shape[0], rows;
    size_t at = p->at;

    for (int i = 0; (rows = param_matrix(p, i)); i++) {
        size_t n = (size_t)((here ? here : p->part[i]) * p->shape[1]);
        struct whole_matrix *w = another(m);

        if (!w)
            return err_set(e, ERR_NOMEM, "out of memory");
        *w = (struct whole_matrix){z, experts, rows, p->whole[1], at, n, p->split, m->n};
        at += n;
    }
    return 0;
}

int matrices_add(struct matrices *m, const struct zero_shard *z, bool experts, struct err *e)
{
    const struct params *p = &z->buffer->params;

    for (int i = 0; i < p->n; i++)
        if (p->v[i].rule.whole && !p->v[i].frozen)
            TRY(add_param(m, z, &p->v[i], experts, e));
    return 0;
}

/* ---- who has what ---- */

/* The ranks that share a matrix; the one of number i is tensor rank i % tensor of replica i / tensor. */
struct sharers {
    int tensor, replicas;
    int n, me;
};

static struct sharers sharers_of(const struct matrices *m, const struct whole_matrix *w)
{
    const struct layout *l = m->layout;
    const struct comm *replicas = w->experts ? l->expert_replicas : l->replicas;
    int tensor = l->tensor->size;

    return (struct sharers){tensor, replicas->size, tensor * replicas->size, l->tensor->rank + tensor * replicas->rank};
}

/* A range of a matrix that a rank keeps; zeroed is before the first. */
struct kept {
    int bucket;
    size_t from, n; /* elements, of what a tensor rank has */
    size_t at;      /* in the flat buffer */
};

static bool next_kept(const struct whole_matrix *w, int replica, struct kept *k)
{
    const struct bucketing *s = &w->shard->buffer->buckets;

    while (k->bucket < s->n) {
        int i = k->bucket++;
        size_t share = bucketing_share(s, i), lo = s->at[i] + (s->ranks > 1 ? (size_t)replica * share : 0), end = lo + share;

        lo = lo > w->at ? lo : w->at;
        end = end < w->at + w->n ? end : w->at + w->n;
        if (lo < end) {
            k->at = lo;
            k->from = lo - w->at;
            k->n = end - lo;
            return true;
        }
    }
    return false;
}

/* Where this rank has what it keeps. */
static float *kept_here(const struct whole_matrix *w, const struct kept *k)
{
    const struct param_buffer *b = w->shard->buffer;
    const struct bucketing *s = &b->buckets;
    int i = k->bucket - 1;

    return b->shard_grads ? b->shard_grads + bucketing_here(s, i) + (k->at - bucketing_from(s, i)) : b->grads + k->at;
}

/* Whether its owner takes what a rank has: of those that have the same, the one beside it. */
static bool gives(const struct sharers *s, const struct whole_matrix *w, int rank, int owner)
{
    return (w->shard->buffer->buckets.ranks > 1 || rank / s->tensor == owner / s->tensor) &&
           (w->split >= 0 || rank % s->tensor == owner % s->tensor);
}

/* Where the owner has what a tensor rank has: rows, all of it, or columns, which stand apart. */
static float *slice_of(const struct matrices *m, const struct sharers *s, const struct whole_matrix *w, int rank)
{
    if (w->split < 0 || s->tensor == 1)
        return m->whole;
    return (w->split == 0 ? m->whole : m->slices) + (size_t)(rank % s->tensor) * w->n;
}

static int by_size(const void *x, const void *y)
{
    const struct whole_matrix *a = x, *b = y;
    int64_t u = a->rows * a->cols, v = b->rows * b->cols;

    if (a->experts != b->experts)
        return a->experts - b->experts;
    if (u != v)
        return u > v ? -1 : 1;
    if (a->rows != b->rows)
        return a->rows < b->rows ? -1 : 1;
    return a->number - b->number;
}

int matrices_ready(struct matrices *m, struct err *e)
{
    int most = 0;

    if (m->n)
        qsort(m->v, (size_t)m->n, sizeof *m->v, by_size);
    if (!m->whole)
        return 0;
    for (int i = 0; i < m->n; i++) { /* no more ranges than buckets that it lies in */
        const struct sharers s = sharers_of(m, &m->v[i]);
        int ranges = 0;

        for (int k = 0; k < m->v[i].shard->buffer->buckets.n; k++) {
            const size_t *at = &m->v[i].shard->buffer->buckets.at[k];

            ranges += at[0] < m->v[i].at + m->v[i].n && at[1] > m->v[i].at;
        }
        most = 2 * s.n * ranges > most ? 2 * s.n * ranges : most;
    }
    m->calls = calloc((size_t)most + 1, sizeof *m->calls);
    return m->calls ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* ---- rounds ---- */

/* Elements on their way between this rank and another one. */
static int move(struct matrices *m, enum comm_kind kind, float *p, size_t n, int peer, struct err *e)
{
    struct comm_call call = {.kind = kind, .n = n, .type = COMM_F32, .peer = peer};

    if (kind == COMM_SEND)
        call.send = p;
    else
        call.recv = p;
    return exchange_start(&m->calls[m->n_calls++], m->dev, m->layout->world, &call, e);
}

static int arrive(struct matrices *m, struct err *e)
{
    for (int i = 0; i < m->n_calls; i++)
        TRY(exchange_wait(&m->calls[i], e));
    m->n_calls = 0;
    return 0;
}

/* What `rank` keeps of a matrix goes to its owner or, back, comes from there; called by both. */
static int move_kept(struct matrices *m, const struct whole_matrix *w, int rank, int owner, bool back, struct err *e)
{
    const struct sharers s = sharers_of(m, w);
    int other = s.me == owner ? rank : owner, peer = layout_rank(m->layout, w->experts, other % s.tensor, other / s.tensor);
    bool send = (s.me == owner) == back;
    struct kept k = {0};

    while (next_kept(w, rank / s.tensor, &k)) {
        float *mine = s.me == rank ? kept_here(w, &k) : NULL, *whole = s.me == owner ? slice_of(m, &s, w, rank) + k.from : NULL;

        if (rank == owner)
            TRY(device_copy(m->dev, back ? mine : whole, back ? whole : mine, k.n * sizeof *mine, e));
        else
            TRY(move(m, send ? COMM_SEND : COMM_RECV, mine ? mine : whole, k.n, peer, e));
    }
    return 0;
}

/* The same of n matrices from w on, that of number i being rank i's, and of all ranks. */
static int move_round(struct matrices *m, const struct whole_matrix *w, int n, bool back, struct err *e)
{
    const struct sharers s = sharers_of(m, w);

    for (int owner = 0; owner < n; owner++)
        for (int rank = 0; rank < s.n; rank++)
            if ((rank == s.me || owner == s.me) && (back || gives(&s, &w[owner], rank, owner)))
                TRY(move_kept(m, &w[owner], rank, owner, back, e));
    return arrive(m, e);
}

/* Columns of tensor ranks side by side or, back, apart. */
static int join_columns(struct matrices *m, const struct whole_matrix *w, bool back, struct err *e)
{
    const struct sharers s = sharers_of(m, w);
    size_t row = (size_t)w->cols * sizeof(float), part = row / (size_t)s.tensor;

    for (int t = 0; w->split == 1 && s.tensor > 1 && t < s.tensor; t++) {
        char *slice = (char *)slice_of(m, &s, w, t), *whole = (char *)m->whole + (size_t)t * part;

        TRY(device_copy_rows(m->dev, back ? slice : whole, back ? part : row, back ? whole : slice, back ? row : part, part,
                             (size_t)w->rows, e));
    }
    return 0;
}

static int direct(struct matrices *m, const struct whole_matrix *w, float *p, struct err *e)
{
    return optim_of(m->optim->kind)->direct(m->dev, m->optim, p, w->rows, w->cols, m->work, e);
}

static int take_round(struct matrices *m, const struct whole_matrix *w, int n, struct err *e)
{
    int me = sharers_of(m, w).me;

    TRY(move_round(m, w, n, false, e));
    if (me < n) {
        TRY(join_columns(m, &w[me], false, e));
        TRY(direct(m, &w[me], m->whole, e));
        TRY(join_columns(m, &w[me], true, e));
    }
    return move_round(m, w, n, true, e);
}

int matrices_direct(struct matrices *m, struct err *e)
{
    for (int i = 0, n; i < m->n; i += n) {
        struct whole_matrix *w = &m->v[i];

        n = sharers_of(m, w).n;
        while (n > 1 && (i + n > m->n || w[n - 1].experts != w->experts))
            n--;
        if (sharers_of(m, w).n == 1)
            TRY(direct(m, w, w->shard->buffer->grads + w->at, e));
        else
            TRY(take_round(m, w, n, e));
    }
    return 0;
}
