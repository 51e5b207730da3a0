#include "train/evaluate.h"

#include <stdlib.h>

#include "train/data_parallel.h"

int model_restore(struct model **out, const struct checkpoint *ck, struct device *dev,
                  const struct model_run *run, struct err *e)
{
    struct model *m;
    int rc;

    TRY(model_open(&m, dev, &checkpoint_info(ck)->model, NULL, run, e));
    rc = checkpoint_load_slab(ck, dev, CHECKPOINT_WEIGHTS, &m->params, m->weights, e);
    if (rc == 0)
        rc = model_weights_changed(m, e);
    if (rc < 0) {
        model_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

int evaluate(struct model *m, struct data *d, struct comm *group, int split, int64_t first, int64_t n, double *loss,
             struct err *e)
{
    int64_t rows = m->b * m->t;
    int64_t batches = (n + m->b - 1) / m->b, ranks = group ? group->size : 1;
    int32_t *tokens = calloc((size_t)rows, sizeof *tokens), *targets = malloc((size_t)rows * sizeof *targets);
    double *part = calloc((size_t)batches, sizeof *part), sum = 0;
    int rc = tokens && targets && part ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t k = group ? group->rank : 0; rc == 0 && k < batches; k += ranks) {
        int64_t i = k * m->b, take = n - i < m->b ? n - i : m->b;

        for (int64_t j = take * m->t; j < rows; j++) /* a last batch that is not full */
            targets[j] = -1;
        rc = data_batch(d, split, first + i, take, tokens, targets, e);
        if (rc == 0)
            rc = model_forward(m, &(struct model_batch){.tokens = tokens, .targets = targets}, &part[k], e);
    }
    if (rc == 0 && group)
        rc = data_parallel_gather(group, part, batches, e);
    for (int64_t k = 0; rc == 0 && k < batches; k++)
        sum += part[k];
    free(tokens);
    free(targets);
    free(part);
    *loss = sum / (double)(n * m->t);
    return rc;
}
