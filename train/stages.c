#include "train/stages.h"

#include <inttypes.h>

static int64_t layers_of(const struct stages *s, int64_t stage, int64_t chunk)
{
    int64_t last = s->stages - 1, others = s->stages - (s->first > 0) - (s->last > 0), n;

    if (stage == 0 && s->first)
        return s->first / s->chunks;
    if (stage == last && s->last)
        return s->last / s->chunks;
    n = (s->layers - s->first - s->last + s->embedding + s->head) / others / s->chunks;
    n -= s->embedding && stage == 0 && chunk == 0;
    return n - (s->head && stage == last && chunk == s->chunks - 1);
}

void stages_layers(const struct stages *s, int64_t stage, int64_t chunk, int64_t *first, int64_t *n)
{
    *first = 0;
    for (int64_t c = 0; c <= chunk; c++)
        for (int64_t k = 0; k < (c < chunk ? s->stages : stage); k++)
            *first += layers_of(s, k, c);
    *n = layers_of(s, stage, chunk);
}

/* What is said of single stages: that it can be, and what it leaves to the others. */
static int check_said(const struct stages *s, int64_t others, struct err *e)
{
    const struct {
        const char *flag;
        int64_t n;
    } said[] = {{"first", s->first}, {"last", s->last}};

    for (int i = 0; i < 2; i++)
        if (said[i].n % s->chunks)
            return err_set(e, ERR_ARG, "--decoder-%s-pipeline-num-layers: %" PRId64 " layers are no multiple of the %" PRId64
                           " chunks of a stage", said[i].flag, said[i].n, s->chunks);
    if ((s->first || s->last) && (s->embedding || s->head))
        return err_set(e, ERR_ARG, "--account-for-%s-in-pipeline-split: not beside --decoder-%s-pipeline-num-layers",
                       s->embedding ? "embedding" : "loss", s->first ? "first" : "last");
    if (s->stages == 1 && (s->first || s->last || s->embedding || s->head))
        return err_set(e, ERR_ARG, "layers are shared out, but there is one stage: --pipeline-model-parallel-size is 1");
    if (others == 0 && s->first + s->last != s->layers)
        return err_set(e, ERR_ARG, "--decoder-first-pipeline-num-layers: %" PRId64 " and %" PRId64 " in the last stage are not"
                       " %" PRId64 " layers", s->first, s->last, s->layers);
    return 0;
}

int stages_check(const struct stages *s, struct err *e)
{
    int64_t others = s->stages - (s->first > 0) - (s->last > 0), left = s->layers - s->first - s->last;
    int64_t counted = left + s->embedding + s->head;

    TRY(check_said(s, others, e));
    if (others == 0)
        return 0;
    if (left < 0 || counted % (others * s->chunks))
        return err_set(e, ERR_ARG, "--pipeline-model-parallel-size: %" PRId64 " layers%s cannot be shared evenly by %" PRId64
                       " stages of %" PRId64 " part%s (--decoder-first-pipeline-num-layers and -last- give those other numbers)",
                       left, counted > left ? ", with what counts as one," : "", others, s->chunks, s->chunks == 1 ? "" : "s");
    if (counted == 0 || layers_of(s, 0, 0) < 1 || layers_of(s, s->stages - 1, s->chunks - 1) < 1)
        return err_set(e, ERR_ARG, "--pipeline-model-parallel-size: %" PRId64 " layers in %" PRId64 " stages of %" PRId64
                       " part%s: one would be empty", s->layers, s->stages, s->chunks, s->chunks == 1 ? "" : "s");
    return 0;
}
