#include "train/evaluate.h"

#include "train/expert_bias.h"
#include "train/passes.h"

int model_restore(struct model **out, const struct checkpoint *ck, struct device *dev,
                  const struct model_run *run, struct err *e)
{
    struct model *m;
    int rc = 0;

    TRY(model_open(&m, dev, &checkpoint_info(ck)->model, NULL, run, e));
    for (int i = 0; rc == 0 && i < m->n_buffers; i++)
        rc = checkpoint_load_slab(ck, dev, CHECKPOINT_WEIGHTS, &m->buffers[i]->params, m->buffers[i]->weights, e);
    if (rc == 0)
        rc = expert_bias_load(m, ck, e);
    if (rc == 0)
        rc = model_weights_changed(m, e);
    if (rc < 0) {
        model_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

int evaluate(struct model *m, const struct layout *layout, struct data *d, int split, int64_t first, int64_t n, double *loss,
             double *tokens, struct err *e)
{
    struct train_part whole = {.model = m};
    struct passes p;
    int rc = passes_open(&p, layout, &whole, 1, d, e);

    if (rc == 0)
        rc = passes_evaluate(&p, split, first, n, loss, tokens, e);
    passes_close(&p);
    return rc;
}
