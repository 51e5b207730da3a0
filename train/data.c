#include "train/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"

struct data {
    const struct train_config *config;
    struct gpt_dataset *sets[GPT_SPLITS];
    int32_t *ids; /* seq + 1 */
};

static const char *const split_name[GPT_SPLITS] = {"train", "valid", "test"};

void data_wanted(const struct train_config *c, int64_t samples[GPT_SPLITS])
{
    int64_t evaluation = c->eval_iters * c->global_batch;

    samples[GPT_TRAIN] = c->iters * c->global_batch;
    samples[GPT_VALID] = c->eval_interval ? (c->iters / c->eval_interval + 1) * evaluation : 0;
    samples[GPT_TEST] = evaluation;
}

int data_open(struct data **out, const struct train_config *c, const int64_t samples[GPT_SPLITS], struct err *e)
{
    struct data *d = calloc(1, sizeof *d);
    int rc = 0;

    if (!d)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->config = c;
    d->ids = malloc((size_t)(c->model.seq + 1) * sizeof *d->ids);
    if (!d->ids)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0 && !c->mock_data) {
        struct gpt_conf conf = {
            .paths = {c->data_path.v, c->data_path.n}, .split = c->split,
            .seq_length = c->model.seq, .seed = (uint32_t)c->seed, .cache = c->cache_path,
            .jobs = pool_cpus(),
        };

        memcpy(conf.samples, samples, sizeof conf.samples);
        for (int s = 0; s < GPT_SPLITS && c->part_path[GPT_TRAIN].n; s++) {
            conf.split = NULL;
            conf.split_paths[s] = (struct gpt_paths){c->part_path[s].v, c->part_path[s].n};
        }
        rc = gpt_dataset_open(d->sets, &conf, e);
    }
    if (rc < 0) {
        data_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

void data_close(struct data *d)
{
    if (!d)
        return;
    for (int s = 0; s < GPT_SPLITS; s++)
        gpt_dataset_close(d->sets[s]);
    free(d->ids);
    free(d);
}

int64_t data_size(const struct data *d, enum gpt_split split)
{
    if (d->config->mock_data)
        return INT64_MAX;
    return d->sets[split] ? gpt_dataset_samples(d->sets[split]) : 0;
}

static void mock_sample(const struct data *d, enum gpt_split split, int64_t s, int32_t *ids)
{
    uint64_t key = (uint64_t)d->config->seed << 2 | (uint64_t)split;
    uint32_t w[4];

    for (int64_t i = 0; i <= d->config->model.seq; i++) {
        if (i % 4 == 0)
            rng_philox(key, (uint64_t)i / 4, (uint64_t)s, w);
        ids[i] = (int32_t)((uint64_t)w[i % 4] * (uint64_t)d->config->model.vocab >> 32);
    }
}

int data_batch(const struct data *d, enum gpt_split split, int64_t first, int64_t n, int32_t *tokens,
               int32_t *targets, struct err *e)
{
    int64_t seq = d->config->model.seq, size = data_size(d, split);

    if (size == 0)
        return err_set(e, ERR_ARG, "there is no data for %s (--split %s)", split_name[split], d->config->split);
    for (int64_t i = 0; i < n; i++) {
        int64_t s = (first + i) % size;

        if (d->config->mock_data)
            mock_sample(d, split, s, d->ids);
        else
            TRY(gpt_dataset_get(d->sets[split], s, d->ids, e));
        for (int64_t j = 0; j <= seq; j++)
            if (d->ids[j] < 0 || d->ids[j] >= d->config->model.vocab)
                return err_set(e, ERR_FORMAT,
                               "%s sample %" PRId64 " has token %" PRId32 ", outside a vocabulary of %" PRId64
                               " (--vocab-size)", split_name[split], s, d->ids[j], d->config->model.vocab);
        memcpy(tokens + i * seq, d->ids, (size_t)seq * sizeof *tokens);
        memcpy(targets + i * seq, d->ids + 1, (size_t)seq * sizeof *targets);
    }
    return 0;
}
