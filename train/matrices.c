#include "train/matrices.h"

#include <stdlib.h>

#include "train/squares.h"

/* ---- memory ---- */

size_t matrices_lines(const struct optim_conf *c, const struct matrix_size *most)
{
    return optim_of(c->kind)->lines[0] ? (size_t)most->lines * sizeof(float) : 0;
}

size_t matrices_bytes(const struct optim_conf *c, const struct matrix_size *most, int tensor, int replicas)
{
    size_t whole = (size_t)most->elements * sizeof(float);

    if (!most->elements)
        return 0;
    return optim_of(c->kind)->direct_bytes(c, most) + matrices_lines(c, most) + (tensor * replicas > 1 ? whole : 0) +
           (tensor > 1 ? whole : 0);
}

int matrices_open(struct matrices *m, struct device *dev, const struct optim_conf *c, const struct layout *l,
                  const struct matrix_size *most, struct err *e)
{
    size_t whole = (size_t)most->elements * sizeof(float), lines = matrices_lines(c, most);

    *m = (struct matrices){.dev = dev, .optim = c, .layout = l};
    if (!whole)
        return 0;
    if (lines)
        TRY(device_alloc_as(dev, MEMORY_OPTIMIZER, (void **)&m->lines, lines, e));
    TRY(device_alloc_as(dev, MEMORY_OPTIMIZER, &m->work, optim_of(c->kind)->direct_bytes(c, most), e));
    if (l->tensor->size * l->replicas->size > 1)
        TRY(device_alloc_as(dev, MEMORY_OPTIMIZER, (void **)&m->whole, whole, e));
    return l->tensor->size > 1 ? device_alloc_as(dev, MEMORY_OPTIMIZER, (void **)&m->slices, whole, e) : 0;
}

void matrices_close(struct matrices *m)
{
    if (m->dev) {
        device_free(m->dev, m->work);
        device_free(m->dev, m->lines);
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
        size_t n = (size_t)((here ? here : p->part[i]) * (p->dims > 1 ? p->shape[1] : 1));
        struct whole_matrix *w = another(m);

        if (!w)
            return err_set(e, ERR_NOMEM, "out of memory");
        *w = (struct whole_matrix){z, p, experts, rows, param_columns(p), at, n, m->n, NULL};
        at += n;
    }
    return 0;
}

int matrices_add(struct matrices *m, const struct zero_shard *z, struct err *e)
{
    const struct params *p = &z->buffer->params;

    for (int i = 0; i < p->n; i++)
        if (p->v[i].rule.whole && !p->v[i].frozen)
            TRY(add_param(m, z, &p->v[i], p->experts > 0, e));
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

/* What of matrices goes to their owners, and what comes back from there. */
enum move { GRADIENTS_IN, GRADIENTS_BACK, WEIGHTS_IN };

static enum dtype type_of(const struct whole_matrix *w, enum move what)
{
    return what == WEIGHTS_IN ? zero_weights_type(w->shard) : DTYPE_F32;
}

/* Where this rank has what it keeps. */
static void *kept_here(const struct whole_matrix *w, const struct kept *k, enum move what)
{
    const struct param_buffer *b = w->shard->buffer;
    const struct bucketing *s = &b->buckets;
    size_t here = bucketing_here(s, k->bucket - 1) + (k->at - bucketing_from(s, k->bucket - 1));

    if (what == WEIGHTS_IN)
        return zero_weights(w->shard, here, k->at);
    return b->shard_grads ? b->shard_grads + here : b->grads + k->at;
}

/* Whether its owner takes what a rank has: of those that have the same, the one beside it. */
static bool gives(const struct sharers *s, const struct whole_matrix *w, int rank, int owner)
{
    return (w->shard->buffer->buckets.ranks > 1 || rank / s->tensor == owner / s->tensor) &&
           (w->param->split >= 0 || rank % s->tensor == owner % s->tensor);
}

/* Where the owner has what a tensor rank has: rows, all of it, or columns, which stand apart. */
static char *slice_of(const struct matrices *m, const struct sharers *s, const struct whole_matrix *w, int rank, size_t size)
{
    if (w->param->split < 0 || s->tensor == 1)
        return (char *)m->whole;
    return (char *)(w->param->split == 0 ? m->whole : m->slices) + (size_t)(rank % s->tensor) * w->n * size;
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

/* How many there are in the round that begins with the i-th. */
static int round_of(const struct matrices *m, int i)
{
    int n = sharers_of(m, &m->v[i]).n;

    while (n > 1 && (i + n > m->n || m->v[i + n - 1].experts != m->v[i].experts))
        n--;
    return n;
}

static int64_t lines_of(const struct whole_matrix *w)
{
    return w->rows + (w->param->dims > 1 ? w->cols : 0);
}

/* Each rank has room for all, and uses that of those that it owns. */
static void place_lines(struct matrices *m)
{
    float *at = m->lines;

    for (int i = 0, n; at && i < m->n; i += n) {
        n = round_of(m, i);
        for (int k = 0; k < n; at += lines_of(&m->v[i + k]), k++)
            if (k == sharers_of(m, &m->v[i]).me)
                m->v[i + k].lines = at;
    }
}

int matrices_forget(struct matrices *m, struct err *e)
{
    for (int i = 0; i < m->n; i++)
        if (m->v[i].lines)
            TRY(device_zero(m->dev, m->v[i].lines, (size_t)lines_of(&m->v[i]) * sizeof *m->lines, e));
    return 0;
}

int matrices_ready(struct matrices *m, struct err *e)
{
    int most = 0;

    if (m->n)
        qsort(m->v, (size_t)m->n, sizeof *m->v, by_size);
    place_lines(m);
    TRY(matrices_forget(m, e));
    if (!m->whole)
        return 0;
    for (int i = 0; i < m->n; i++) { /* no more ranges than buckets that it lies in */
        const struct sharers s = sharers_of(m, &m->v[i]);
        int ranges = 0;

        for (int k = 0; k < m->v[i].shard->buffer->buckets.n; k++) {
            const size_t *at = m->v[i].shard->buffer->buckets.at + k;

            ranges += at[0] < m->v[i].at + m->v[i].n && at[1] > m->v[i].at;
        }
        most = 2 * s.n * ranges > most ? 2 * s.n * ranges : most;
    }
    m->calls = calloc((size_t)most + 1, sizeof *m->calls);
    return m->calls ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* ---- rounds ---- */

/* Elements on their way between this rank and another one. */
static int move(struct matrices *m, enum comm_kind kind, void *p, size_t n, enum dtype dt, int peer, struct err *e)
{
    struct comm_call call = {.kind = kind, .n = n, .type = exchange_type(dt), .peer = peer};

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
static int move_kept(struct matrices *m, const struct whole_matrix *w, int rank, int owner, enum move what, struct err *e)
{
    const struct sharers s = sharers_of(m, w);
    int other = s.me == owner ? rank : owner, peer = layout_rank(m->layout, w->experts, other % s.tensor, other / s.tensor);
    bool back = what == GRADIENTS_BACK, send = (s.me == owner) == back;
    enum dtype dt = type_of(w, what);
    size_t size = dtype_size(dt);
    struct kept k = {0};

    while (next_kept(w, rank / s.tensor, &k)) {
        void *mine = s.me == rank ? kept_here(w, &k, what) : NULL;
        void *whole = s.me == owner ? slice_of(m, &s, w, rank, size) + k.from * size : NULL;

        if (rank == owner)
            TRY(device_copy(m->dev, back ? mine : whole, back ? whole : mine, k.n * size, e));
        else
            TRY(move(m, send ? COMM_SEND : COMM_RECV, mine ? mine : whole, k.n, dt, peer, e));
    }
    return 0;
}

/* The same of n matrices from w on, that of number i being rank i's, and of all ranks. */
static int move_round(struct matrices *m, const struct whole_matrix *w, int n, enum move what, struct err *e)
{
    const struct sharers s = sharers_of(m, w);

    for (int owner = 0; owner < n; owner++)
        for (int rank = 0; rank < s.n; rank++)
            if ((rank == s.me || owner == s.me) && (what == GRADIENTS_BACK || gives(&s, &w[owner], rank, owner)))
                TRY(move_kept(m, &w[owner], rank, owner, what, e));
    return arrive(m, e);
}

/* Columns of tensor ranks side by side or, back, apart. */
static int join_columns(struct matrices *m, const struct whole_matrix *w, enum move what, struct err *e)
{
    const struct sharers s = sharers_of(m, w);
    size_t size = dtype_size(type_of(w, what)), row = (size_t)w->cols * size, part = row / (size_t)s.tensor;
    bool back = what == GRADIENTS_BACK;

    for (int t = 0; w->param->split == 1 && s.tensor > 1 && t < s.tensor; t++) {
        char *slice = slice_of(m, &s, w, t, size), *whole = (char *)m->whole + (size_t)t * part;

        TRY(device_copy_rows(m->dev, back ? slice : whole, back ? part : row, back ? whole : slice, back ? row : part, part,
                             (size_t)w->rows, e));
    }
    return 0;
}

/* The update of a matrix in place of w; weights: the sum of their squares. */
static int direct(struct matrices *m, const struct whole_matrix *at, float *w, double weights, const struct optim_step *s,
                  double clip, struct err *e)
{
    const struct optim_whole x = {
        .w = w, .rows = at->rows, .cols = at->cols, .vector = at->param->dims == 1, .weights = weights, .row = at->lines,
        .col = at->lines ? at->lines + at->rows : NULL, .step = s->step, .lr = optim_update(s, at->param).lr, .clip = clip,
        .work = m->work,
    };

    return optim_of(m->optim->kind)->direct(m->dev, m->optim, &x, e);
}

/* *sum: the squares of a matrix's weights, if the kind asks for them. */
static int weigh(struct matrices *m, const struct whole_matrix *w, const void *weights, double *sum, struct err *e)
{
    *sum = 0;
    if (!optim_of(m->optim->kind)->weights)
        return 0;
    return squares_sum(m->dev, zero_weights_type(w->shard), weights, w->rows * w->cols, m->work, sum, e);
}

static int take_round(struct matrices *m, const struct whole_matrix *w, int n, const struct optim_step *s, double clip,
                      struct err *e)
{
    int me = sharers_of(m, w).me;
    double weights = 0;

    if (optim_of(m->optim->kind)->weights) {
        TRY(move_round(m, w, n, WEIGHTS_IN, e));
        if (me < n) {
            TRY(join_columns(m, &w[me], WEIGHTS_IN, e));
            TRY(weigh(m, &w[me], m->whole, &weights, e));
        }
    }
    TRY(move_round(m, w, n, GRADIENTS_IN, e));
    if (me < n) {
        TRY(join_columns(m, &w[me], GRADIENTS_IN, e));
        TRY(direct(m, &w[me], m->whole, weights, s, clip, e));
        TRY(join_columns(m, &w[me], GRADIENTS_BACK, e));
    }
    return move_round(m, w, n, GRADIENTS_BACK, e);
}

int matrices_direct(struct matrices *m, const struct optim_step *s, double clip, struct err *e)
{
    for (int i = 0, n; i < m->n; i += n) {
        const struct whole_matrix *w = &m->v[i];
        double weights;

        n = round_of(m, i);
        if (sharers_of(m, w).n > 1) {
            TRY(take_round(m, w, n, s, clip, e));
            continue;
        }
        TRY(weigh(m, w, zero_weights(w->shard, w->at, w->at), &weights, e));
        TRY(direct(m, w, w->shard->buffer->grads + w->at, weights, s, clip, e));
    }
    return 0;
}

/* ---- checkpoints ---- */

int matrices_pieces_max(const struct matrices *m)
{
    return m->lines ? m->n * m->layout->tensor->size * PARAM_PARTS : 0;
}

/* A line of n numbers: where tensor ranks have rows of each part of a parameter, these stand rank by rank, as in the matrix. */
static int line_pieces(const struct matrices *m, const struct whole_matrix *w, struct piece all, int64_t n, bool rows,
                       struct piece *v)
{
    const struct param *p = w->param;
    int ranks = rows && p->split == 0 ? m->layout->tensor->size : 1, k = 0;

    all.shape[0] = all.rows = n;
    if (ranks == 1) {
        v[k++] = all;
        return k;
    }
    for (int t = 0; t < ranks; t++)
        for (int i = 0; i < p->parts; i++) {
            v[k] = all;
            v[k].rows = p->part[i];
            v[k++].row = p->first[i] + (t - m->layout->tensor->rank) * p->part[i];
            all.data = piece_at(&all, p->part[i]);
        }
    return k;
}

int matrices_pieces(const struct matrices *m, enum checkpoint_part part, struct piece *v)
{
    const enum checkpoint_part *lines = optim_of(m->optim->kind)->lines;
    int n = 0;

    for (int i = 0; m->lines && i < m->n; i++) {
        const struct whole_matrix *w = &m->v[i];
        struct piece one = {.part = part, .name = w->param->name, .dims = 1, .cols = 1, .ld = 1, .data = w->lines};
        bool vector = w->param->dims == 1;

        if (w->lines && part == lines[vector ? 2 : 0])
            n += line_pieces(m, w, one, w->rows, true, v + n);
        one.data = w->lines ? w->lines + w->rows : NULL;
        if (w->lines && part == lines[1] && !vector)
            n += line_pieces(m, w, one, w->cols, false, v + n);
    }
    return n;
}
