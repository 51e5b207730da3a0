#include "train/fp8.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "train/exchange.h"

/* Whether a part has scales of more than the tensor at hand. */
static bool delayed(const struct train_part *p)
{
    const struct model *m = p->model;

    return m->fp8 && m->fp8->n && m->run.fp8.recipe == FP8_DELAYED;
}

/* Of weights first .. end - 1. */
static int largest(struct model *m, struct comm *ranks, int64_t first, int64_t end, struct err *e)
{
    float *amax = m->fp8->amax + first * FP8_TENSORS;
    struct comm_call call = {
        .kind = COMM_ALL_REDUCE, .send = amax, .recv = amax, .n = (size_t)((end - first) * FP8_TENSORS), .type = COMM_F32,
        .op = COMM_MAX,
    };

    return ranks && ranks->size > 1 && first < end ? exchange(m->dev, ranks, &call, e) : 0;
}

int fp8_end_step(const struct layout *l, struct train_part *parts, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        struct model *m = parts[i].model;

        if (!delayed(&parts[i]))
            continue;
        TRY(model_fp8_amax(m, e));
        TRY(largest(m, l->replicas, 0, m->fp8->dense, e));
        TRY(largest(m, l->expert_replicas, m->fp8->dense, m->fp8->n, e));
        TRY(largest(m, l->tensor, 0, m->fp8->n, e));
        TRY(model_fp8_end(m, e));
    }
    return 0;
}

/* ---- checkpoints ---- */

static int piece_count(const struct train_part *parts, int n)
{
    int64_t k = 0;

    for (int i = 0; i < n; i++)
        k += delayed(&parts[i]) ? parts[i].model->fp8->n : 0;
    return (int)k;
}

static int put_pieces(const struct train_part *p, struct piece *v)
{
    const struct model_fp8 *f = p->model->fp8;
    int64_t cells = FP8_HISTORY - FP8_SCALE + p->model->run.fp8.history;

    for (int64_t i = 0; delayed(p) && i < f->n; i++)
        v[i] = (struct piece){
            .part = CHECKPOINT_FP8, .name = model_fp8_param(p->model, i)->name, .dims = 2,
            .shape = {FP8_TENSORS, cells}, .rows = FP8_TENSORS, .cols = cells,
            .data = f->rows + i * FP8_TENSORS * f->ld + FP8_SCALE, .ld = f->ld,
        };
    return delayed(p) ? (int)f->n : 0;
}

int fp8_pieces(const struct train_part *parts, int n_parts, struct piece **v, int *n, struct err *e)
{
    size_t all = (size_t)(*n + piece_count(parts, n_parts));
    struct piece *more = realloc(*v, (all + 1) * sizeof *more);

    if (!more)
        return err_set(e, ERR_NOMEM, "out of memory");
    *v = more;
    for (int i = 0; i < n_parts; i++)
        *n += put_pieces(&parts[i], *v + *n);
    return 0;
}

/* Whether ck has a piece in just that shape. */
static bool has(const struct checkpoint *ck, const struct piece *p)
{
    const struct slices *s = checkpoint_slices(ck);

    for (int i = 0; i < s->n; i++)
        if (s->v[i].at.part == p->part && strcmp(s->v[i].at.name, p->name) == 0)
            return s->v[i].at.dims == p->dims && s->v[i].at.shape[0] == p->shape[0] && s->v[i].at.shape[1] == p->shape[1];
    return false;
}

int fp8_load(struct train_part *parts, int n, const struct checkpoint *ck, const char *format, struct err *e)
{
    const struct checkpoint_info *info = checkpoint_info(ck);
    struct piece *v = NULL;
    bool usable = true;
    int k = 0, rc;

    if (!piece_count(parts, n))
        return 0;
    TRY(fp8_pieces(parts, n, &v, &k, e));
    for (int i = 0; i < info->n_args; i++)
        usable &= strcmp(info->args[i].name, "fp8-format") != 0 || strcmp(info->args[i].text, format) == 0;
    for (int i = 0; usable && i < k; i++)
        usable = has(ck, &v[i]);
    rc = usable ? checkpoint_load(ck, parts->model->dev, v, k, e) : 0;
    free(v);
    if (!usable && info->iteration)
        log_msg(LOG_WARN, "%s has no scales of FP8 for these settings: the next step makes them anew", checkpoint_path(ck));
    for (int i = 0; rc == 0 && i < n; i++)
        if (delayed(&parts[i]) && !usable)
            rc = model_fp8_reset(parts[i].model, e);
        else if (delayed(&parts[i]))
            parts[i].model->fp8->warm = true;
    return rc;
}
