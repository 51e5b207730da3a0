#include "train/evaluate.h"

#include <stdlib.h>

int model_restore(struct model **out, const struct checkpoint *ck, struct device *dev,
                  const struct model_run *run, struct err *e)
{
    struct model *m;
    int rc;

    TRY(model_open(&m, dev, &checkpoint_info(ck)->model, run, e));
    rc = checkpoint_load(ck, CHECKPOINT_WEIGHTS, &m->params, m->weights, e);
    if (rc == 0)
        rc = model_weights_changed(m, e);
    if (rc < 0) {
        model_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

int evaluate(struct model *m, struct data *d, enum gpt_split split, int64_t first, int64_t n, double *loss,
             struct err *e)
{
    int64_t rows = m->b * m->t;
    int32_t *tokens = calloc((size_t)rows, sizeof *tokens), *targets = malloc((size_t)rows * sizeof *targets);
    double sum = 0, part = 0;
    int rc = tokens && targets ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t i = 0; rc == 0 && i < n; i += m->b) {
        int64_t take = n - i < m->b ? n - i : m->b;

        for (int64_t j = take * m->t; j < rows; j++) /* a last batch that is not full */
            targets[j] = -1;
        rc = data_batch(d, split, first + i, take, tokens, targets, e);
        if (rc == 0)
            rc = model_forward(m, tokens, targets, NULL, 0, &part, e);
        sum += part;
    }
    free(tokens);
    free(targets);
    *loss = sum / (double)(n * m->t);
    return rc;
}
