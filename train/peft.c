#include "train/peft_inner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool peft_is(const char *dir)
{
    char path[4352];

    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    return access(path, F_OK) == 0;
}

/* ---- merged ---- */

struct merge {
    const struct checkpoint *ck;
    struct params params, own; /* without adapters; with them */
    double scale;
    float *room, *a, *b;
};

/* m->room += scale B A, of A and B of those of own from i on. */
static int add_adapter(struct merge *m, int i, struct err *e)
{
    const struct param *a = &m->own.v[i], *b = a + 1;
    int64_t out = b->shape[0], in = a->shape[1], rank = a->shape[0];

    TRY(peft_load(m->ck, a, m->a, e));
    TRY(peft_load(m->ck, b, m->b, e));
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < out; r++)
        for (int64_t c = 0; c < in; c++) {
            double sum = 0;

            for (int64_t k = 0; k < rank; k++)
                sum += (double)m->b[r * rank + k] * (double)m->a[k * in + c];
            m->room[r * in + c] = (float)((double)m->room[r * in + c] + m->scale * sum);
        }
    return 0;
}

/* The adapter of q, by its A in own; -1: it has none. */
static int adapter_of(const struct merge *m, const struct param *q)
{
    const struct params *p = &m->own;
    int end = q->unit < p->units - 1 ? p->layer[q->unit].at : p->n; /* those that predict tokens further on share a unit */
    char name[96];

    if (q->dims < 2 || q->unit == 0)
        return -1;
    snprintf(name, sizeof name, "%.*s.lora_A.weight", (int)(strlen(q->name) - strlen(".weight")), q->name);
    for (int i = p->layer[q->unit - 1].at; i < end; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return i;
    return -1;
}

static int give_merged(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct merge *m = arg;
    const struct param *q = &m->params.v[i];
    int adapter = adapter_of(m, q);

    (void)at;
    TRY(peft_load(m->ck, q, m->room, e));
    if (adapter >= 0)
        TRY(add_adapter(m, adapter, e));
    *data = (struct span){(const char *)m->room, q->n * sizeof *m->room};
    return 0;
}

int peft_merge(const struct checkpoint *ck, const char *dir, struct err *e)
{
    struct checkpoint_info info = *checkpoint_info(ck);
    struct merge m = {.ck = ck};
    int rc = info.model.lora_rank ? params_init(&m.own, &info.model, NULL, e)
                                  : err_set(e, ERR_ARG, "%s has no adapters", checkpoint_path(ck));

    m.scale = rc == 0 ? lora_scale(&info.model) : 0;
    info.model.lora_rank = info.model.lora_targets = 0;
    info.model.lora_alpha = 0;
    info.model.lora_rslora = false;
    peft_keep_type(&info, checkpoint_info(ck));
    if (rc == 0)
        rc = hf_params_init(&m.params, &info.model, e);
    if (rc == 0) {
        m.room = malloc(3 * peft_largest(&m.own) * sizeof *m.room);
        m.a = m.room ? m.room + peft_largest(&m.own) : NULL;
        m.b = m.room ? m.a + peft_largest(&m.own) : NULL;
        rc = m.room ? peft_save(&m.params, &info, dir, give_merged, &m, e) : err_set(e, ERR_NOMEM, "out of memory for a tensor");
    }
    free(m.room);
    params_free(&m.params);
    params_free(&m.own);
    return rc;
}
