#include "train/store.h"

#include <stdlib.h>
#include <string.h>

int store_passage(const struct store *s, int section)
{
    const struct params *p = &s->params;

    if (section > 0 && section < p->sections - 1)
        return section % 2;
    return section > 0 && p->output == p->word ? 3 : 2;
}

int store_plan(struct store *s, const struct store_conf *conf, enum dtype dt, bool backward, struct err *e)
{
    struct params *p = &s->params;
    int ranks = store_ranks(conf);
    size_t unit = conf->unit ? conf->unit : 1, slab = unit * (size_t)ranks;

    s->conf = *conf;
    s->dt = dt;
    params_round(p, store_shares(conf, SHARD_OPTIM_GRADS) ? slab : unit, slab);
    s->section = calloc((size_t)p->sections + 1, sizeof *s->section);
    if (!s->section)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i <= p->sections; i++)
        s->section[i].at = params_section(p, i);
    TRY(shards_open(&s->shards, p, conf->unit ? unit : p->elements, ranks, ranks > 1 ? conf->replicas->rank : 0,
                    store_shares(conf, SHARD_OPTIM_GRADS) ? 0 : conf->bucket ? conf->bucket : p->elements, e));
    s->memory = (struct store_memory){.elements = p->elements};
    for (int i = 0; i < s->shards.n; i++) {
        size_t n = s->shards.at[i + 1] - s->shards.at[i];

        s->memory.bucket = n > s->memory.bucket ? n : s->memory.bucket;
    }
    for (int i = 0; i < p->sections; i++) {
        size_t n = s->section[i + 1].at - s->section[i].at, *most = &s->memory.passage[store_passage(s, i)];

        *most = n > *most ? n : *most;
    }
    /* In bf16 the fp32 weights are the optimizer's, when it has them by shares or elsewhere. */
    if (!store_shares(conf, dt == DTYPE_BF16 ? SHARD_OPTIM : SHARD_OPTIM_GRADS_PARAMS) &&
        !(conf->offload && dt == DTYPE_BF16) && !conf->bf16_alone)
        s->memory.weights = p->elements * sizeof(float);
    if (dt == DTYPE_BF16 && !store_shares(conf, SHARD_OPTIM_GRADS_PARAMS))
        s->memory.low = p->elements * sizeof(uint16_t);
    if (backward && !store_shares(conf, SHARD_OPTIM_GRADS))
        s->memory.grads = p->elements * sizeof(float);
    return 0;
}

int store_open(struct store *s, struct device *dev, struct err *e)
{
    const struct {
        void **p;
        size_t bytes;
        const char *what;
        enum memory_kind kind;
    } slabs[] = {
        {(void **)&s->weights, s->memory.weights, "weights", MEMORY_WEIGHTS},
        {(void **)&s->low, s->memory.low, "bf16 weights", MEMORY_WEIGHTS},
        {(void **)&s->grads, s->memory.grads, "gradients", MEMORY_GRADIENTS},
    };
    char *used;

    s->dev = dev;
    for (size_t i = 0; i < sizeof slabs / sizeof *slabs; i++)
        if (slabs[i].bytes && device_alloc_as(dev, slabs[i].kind, slabs[i].p, slabs[i].bytes, e) < 0)
            return err_wrap(e, "%s: %zu MiB", slabs[i].what, slabs[i].bytes >> 20);
    used = s->low ? (char *)s->low : s->dt == DTYPE_BF16 ? NULL : (char *)s->weights;
    for (int i = 0; i < s->params.sections; i++) {
        struct store_section *c = &s->section[i];

        c->weights = used ? used + c->at * dtype_size(s->dt) : NULL;
        c->grads = s->grads ? s->grads + c->at : NULL;
    }
    /* Padding between tensors is never written, but added up over ranks. */
    return s->grads ? device_zero(dev, s->grads, s->memory.grads, e) : 0;
}

void store_close(struct store *s)
{
    if (s->dev) {
        device_free(s->dev, s->weights);
        device_free(s->dev, s->low);
        device_free(s->dev, s->grads);
    }
    params_free(&s->params);
    shards_close(&s->shards);
    free(s->section);
    memset(s, 0, sizeof *s);
}

int store_weights_changed(struct store *s, struct err *e)
{
    if (!s->low)
        return 0;
    return s->dev->ops->vec_cast(s->dev, s->low, DTYPE_BF16, s->weights, DTYPE_F32, (int64_t)s->params.elements, e);
}
