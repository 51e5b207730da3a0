#include "train/matrices.h"

#include <stdlib.h>

size_t matrices_bytes(const struct optim_conf *c, const struct matrix_size *most)
{
    return most->elements ? optim_of(c->kind)->direct_bytes(c, most) : 0;
}

int matrices_open(struct matrices *m, struct device *dev, const struct optim_conf *c, const struct matrix_size *most,
                  struct err *e)
{
    size_t bytes = matrices_bytes(c, most);

    *m = (struct matrices){.dev = dev, .optim = c};
    return bytes ? device_alloc_as(dev, MEMORY_OPTIMIZER, &m->work, bytes, e) : 0;
}

void matrices_close(struct matrices *m)
{
    if (m->dev)
        device_free(m->dev, m->work);
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
static int add_param(struct matrices *m, struct zero_shard *z, const struct param *p, struct err *e)
{
    int64_t here = p->rule.apart ? 0 : p->shape[0], rows;
    size_t at = p->at;

    for (int i = 0; (rows = param_matrix(p, i)); i++) {
        size_t n = (size_t)((here ? here : p->part[i]) * p->shape[1]);
        struct whole_matrix *w = another(m);

        if (!w)
            return err_set(e, ERR_NOMEM, "out of memory");
        *w = (struct whole_matrix){z, rows, p->whole[1], at, n};
        at += n;
    }
    return 0;
}

int matrices_add(struct matrices *m, struct zero_shard *z, struct err *e)
{
    const struct params *p = &z->buffer->params;

    for (int i = 0; i < p->n; i++)
        if (p->v[i].rule.whole && !p->v[i].frozen)
            TRY(add_param(m, z, &p->v[i], e));
    return 0;
}

int matrices_direct(struct matrices *m, struct err *e)
{
    for (int i = 0; i < m->n; i++) {
        const struct whole_matrix *w = &m->v[i];

        TRY(optim_of(m->optim->kind)->direct(m->dev, m->optim, w->shard->buffer->grads + w->at, w->rows, w->cols, m->work, e));
    }
    return 0;
}
