#include "train/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/node.h"
#include "base/rng.h"

struct data {
    const struct train_config *config;
    struct gpt_dataset **sets; /* GPT_SPLITS, then the validation sets behind the first */
    int n_sets;
    int32_t *ids; /* seq + 1 */
};

static const char *split_name(int split)
{
    static const char *const names[GPT_SPLITS] = {"train", "valid", "test"};

    return split < GPT_SPLITS ? names[split] : "valid";
}

/* The tokenizer's size beside one word of a --data-path, which may be a weight; 0: it does not say. */
static int vocabulary_of(const char *word, int64_t *ids, struct err *e)
{
    const struct node *tokenizer;
    struct arena a = {0};
    struct node *root;
    char path[4096];
    int rc = 0;

    *ids = 0;
    if (snprintf(path, sizeof path, "%s.sum.json", word) >= (int)sizeof path || access(path, F_OK) != 0)
        return 0;
    rc = node_load_json(&a, path, &root, e);
    tokenizer = rc == 0 ? node_get(root, "tokenizer") : NULL;
    if (tokenizer)
        *ids = node_int(tokenizer, "vocab_size", 0);
    if (*ids < 0 || *ids > INT32_MAX)
        rc = err_set(e, ERR_FORMAT, "'%s': its vocab_size is no number of ids", path);
    arena_free(&a);
    return rc;
}

int data_vocabulary(const struct train_config *c, int64_t *ids, const char **of, struct err *e)
{
    const struct opt_list *lists[] = {&c->data_path, &c->part_path[0], &c->part_path[1], &c->part_path[2]};
    int64_t n;

    *ids = 0;
    *of = NULL;
    for (size_t l = 0; l < sizeof lists / sizeof *lists && !c->mock_data; l++)
        for (int i = 0; i < lists[l]->n; i++) {
            TRY(vocabulary_of(lists[l]->v[i], &n, e));
            if (n > *ids) {
                *ids = n;
                *of = lists[l]->v[i];
            }
        }
    return 0;
}

void data_wanted(const struct train_config *c, int64_t samples[GPT_SPLITS])
{
    int64_t evaluation = c->eval_iters * c->global_batch;

    samples[GPT_TRAIN] = c->samples;
    samples[GPT_VALID] = c->eval_interval ? (c->iters / c->eval_interval + 1) * evaluation : 0;
    samples[GPT_TEST] = evaluation;
}

int data_valid_sets(const struct data *d)
{
    return d->n_sets - GPT_SPLITS + 1;
}

const char *data_valid_name(const struct data *d, int i)
{
    return d->config->valid_sets ? d->config->part_path[GPT_VALID].v[i] : "";
}

/* Opens the splits, and set after set what else there is to validate with. */
static int open_sets(struct data *d, const int64_t samples[GPT_SPLITS], struct err *e)
{
    const struct train_config *c = d->config;
    struct gpt_dataset *three[GPT_SPLITS];
    struct gpt_conf conf = {
        .paths = {c->data_path.v, c->data_path.n}, .split = c->split,
        .seq_length = c->model.seq, .seed = (uint32_t)c->seed, .cache = c->cache_path,
        .jobs = limits_cpus(),
    };

    memcpy(conf.samples, samples, sizeof conf.samples);
    for (int s = 0; s < GPT_SPLITS && c->part_path[GPT_TRAIN].n; s++) {
        conf.split = NULL;
        conf.split_paths[s] = (struct gpt_paths){c->part_path[s].v, c->part_path[s].n};
    }
    if (c->valid_sets)
        conf.split_paths[GPT_VALID].n = 1;
    TRY(gpt_dataset_open(d->sets, &conf, e));
    conf.samples[GPT_TRAIN] = conf.samples[GPT_TEST] = 0;
    for (int i = 1; i < data_valid_sets(d); i++) {
        conf.split_paths[GPT_VALID].word = c->part_path[GPT_VALID].v + i;
        TRY(gpt_dataset_open(three, &conf, e));
        d->sets[data_valid(i)] = three[GPT_VALID];
        gpt_dataset_close(three[GPT_TRAIN]);
        gpt_dataset_close(three[GPT_TEST]);
    }
    return 0;
}

int data_open(struct data **out, const struct train_config *c, const int64_t samples[GPT_SPLITS], struct err *e)
{
    struct data *d = calloc(1, sizeof *d);
    int rc = 0;

    if (!d)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->config = c;
    d->n_sets = GPT_SPLITS + (c->valid_sets && !c->mock_data ? c->part_path[GPT_VALID].n - 1 : 0);
    d->sets = calloc((size_t)d->n_sets, sizeof *d->sets);
    d->ids = malloc((size_t)(c->model.seq + 1) * sizeof *d->ids);
    if (!d->ids || !d->sets)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0 && !c->mock_data)
        rc = open_sets(d, samples, e);
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
    for (int s = 0; d->sets && s < d->n_sets; s++)
        gpt_dataset_close(d->sets[s]);
    free(d->sets);
    free(d->ids);
    free(d);
}

int64_t data_size(const struct data *d, int split)
{
    if (d->config->mock_data)
        return INT64_MAX;
    return d->sets[split] ? gpt_dataset_samples(d->sets[split]) : 0;
}

const struct documents *data_documents(const struct data *d)
{
    return &d->config->documents;
}

static void mock_sample(const struct data *d, int split, int64_t s, int32_t *ids)
{
    uint64_t key = (uint64_t)d->config->seed << 2 | (uint64_t)split;
    uint32_t w[4];

    for (int64_t i = 0; i <= d->config->model.seq; i++) {
        if (i % 4 == 0)
            rng_philox(key, (uint64_t)i / 4, (uint64_t)s, w);
        ids[i] = (int32_t)((uint64_t)w[i % 4] * (uint64_t)d->config->model.vocab >> 32);
    }
}

int data_batch(const struct data *d, int split, int64_t first, int64_t n, int32_t *tokens,
               int32_t *targets, struct err *e)
{
    int64_t seq = d->config->model.seq, size = data_size(d, split);

    if (size == 0)
        return err_set(e, ERR_ARG, "there is no data for %s (--split %s)", split_name(split), d->config->split);
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
                               " (--vocab-size)", split_name(split), s, d->ids[j], d->config->model.vocab);
        memcpy(tokens + i * seq, d->ids, (size_t)seq * sizeof *tokens);
        memcpy(targets + i * seq, d->ids + 1, (size_t)seq * sizeof *targets);
    }
    if (d->config->documents.mask_loss)
        documents_mask(tokens, n * seq, d->config->documents.eod, targets);
    return 0;
}
