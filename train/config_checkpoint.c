/* What a run takes of a checkpoint: the model, when it is told to, and an evaluation the data. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint.h"
#include "train/config.h"

/* The checkpoint that the run will begin with, as the trainer looks for it; *ck NULL: there is none. */
static int peek(const struct train_config *c, struct checkpoint **ck, struct err *e)
{
    *ck = NULL;
    if (c->save && c->ckpt_step < 0)
        TRY(checkpoint_peek(ck, c->save, CHECKPOINT_LAST, e));
    return *ck || !c->load ? 0 : checkpoint_peek(ck, c->load, c->ckpt_step, e);
}

static bool given(const struct opt *opts, const void *value)
{
    for (const struct opt *o = opts; o->name; o++)
        if (o->value == value && o->given && *o->given)
            return true;
    return false;
}

static size_t size_of(const struct model_field *f)
{
    static const size_t size[] = {sizeof(int64_t), sizeof(double), sizeof(bool), sizeof(int),
                                  sizeof((struct model_config *)0)->moe_list};

    return size[f->type];
}

/* Fields of m that no flag gives; adapters are one matter, by --lora-rank. */
static void take_fields(struct train_config *c, const struct opt *opts, const struct model_config *m)
{
    bool lora = given(opts, &c->model.lora_rank);

    for (int i = 0; i < model_fields_n; i++) {
        const struct model_field *f = &model_fields[i];
        char *to = (char *)&c->model + f->at;

        if (!given(opts, to) && !(lora && strncmp(f->key, "lora_", 5) == 0))
            memcpy(to, (const char *)m + f->at, size_of(f));
    }
    c->group_query = c->group_query || c->model.groups != c->model.heads;
    if (!given(opts, &c->vocab_divisor))
        c->vocab_divisor = m->padded_vocab;
}

int train_config_take_model(struct train_config *c, struct err *e)
{
    const struct opt none[] = {OPT_END};
    struct checkpoint *ck;
    struct opt *opts;

    if (!c->use_checkpoint_args)
        return 0;
    if (c->preset)
        return err_set(e, ERR_ARG, "--preset and --use-checkpoint-args: give one of them");
    TRY(peek(c, &ck, e));
    if (!ck)
        return err_set(e, ERR_ARG, "--use-checkpoint-args: there is no checkpoint in --load or --save");
    opts = train_config_options(c, none);
    if (opts)
        take_fields(c, opts, &checkpoint_info(ck)->model);
    checkpoint_close(ck);
    free(opts);
    return opts ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int train_config_take_data(struct train_config *c, const struct checkpoint_arg *args, int n, struct arena *a, struct err *e)
{
    const struct opt none[] = {OPT_END};
    bool named = c->data_path.n || c->part_path[0].n || c->part_path[1].n || c->part_path[2].n || c->mock_data;
    struct opt *opts = train_config_data_options(c, none);
    int rc = opts ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int i = 0; rc == 0 && i < n; i++) {
        const struct opt *o = opt_find(opts, args[i].name);
        bool names = o && (o->type == OPT_TYPE_LIST || o->value == &c->mock_data || o->value == &c->valid_sets);
        bool tells = o && (o->value == &c->documents.positions || o->value == &c->documents.attention);

        if (strcmp(args[i].name, "seed") == 0)
            c->seed = strtoll(args[i].text, NULL, 10);
        else if (o && !*o->given && !(names && named) && !(tells && given(opts, &c->sft)) && o->value != &c->cache_path)
            rc = opt_set_text(o, args[i].text, a, e);
    }
    free(opts);
    return rc;
}
