#include "train/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/node.h"
#include "base/rng.h"
#include "indexed_dataset/ledger.h"
#include "indexed_dataset/sft_dataset.h"

/* A split: cut from documents laid end to end, or of whole documents; both NULL: not open. */
struct set {
    struct gpt_dataset *gpt;
    struct sft_dataset *sft;
};

struct data {
    const struct train_config *config;
    struct set *sets; /* GPT_SPLITS, then the validation sets behind the first */
    int n_sets;
    int32_t *ids, *mask; /* seq + 1 */
    int32_t *starts;     /* seq */
};

static const char *split_name(int split)
{
    static const char *const names[GPT_SPLITS] = {"train", "valid", "test"};

    return split < GPT_SPLITS ? names[split] : "valid";
}

static bool is_dataset(const char *word)
{
    char path[4096];

    return snprintf(path, sizeof path, "%.*s.idx", idx_prefix_length(word), word) < (int)sizeof path && access(path, F_OK) == 0;
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
    if (snprintf(path, sizeof path, "%.*s.sum.json", idx_prefix_length(word), word) >= (int)sizeof path ||
        access(path, F_OK) != 0)
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

/* Calls see with each word of the paths that c names; made-up data have none. */
static int each_word(const struct train_config *c, int (*see)(void *arg, const char *word, struct err *e), void *arg,
                     struct err *e)
{
    const struct opt_list *lists[] = {&c->data_path, &c->part_path[0], &c->part_path[1], &c->part_path[2]};

    for (size_t l = 0; l < sizeof lists / sizeof *lists && !c->mock_data; l++)
        for (int i = 0; i < lists[l]->n; i++)
            TRY(see(arg, lists[l]->v[i], e));
    return 0;
}

struct largest {
    int64_t ids;
    const char *of;
};

static int see_vocabulary(void *arg, const char *word, struct err *e)
{
    struct largest *most = arg;
    int64_t n;

    TRY(vocabulary_of(word, &n, e));
    if (n > most->ids)
        *most = (struct largest){n, word};
    return 0;
}

int data_vocabulary(const struct train_config *c, int64_t *ids, const char **of, struct err *e)
{
    struct largest most = {0, NULL};
    int rc = each_word(c, see_vocabulary, &most, e);

    *ids = most.ids;
    *of = most.of;
    return rc;
}

static int see_present(void *arg, const char *word, struct err *e)
{
    char *end;

    (void)arg;
    if (is_dataset(word) || (strtod(word, &end), !*end)) /* or a weight */
        return 0;
    return err_set(e, ERR_IO, "there is no dataset '%s': no '%.*s.idx'", word, idx_prefix_length(word), word);
}

int data_present(const struct train_config *c, struct err *e)
{
    return each_word(c, see_present, NULL, e);
}

/* One word's root, "-" where the dataset has no ledger, "" where the word is no dataset but a weight. */
static int root_of(const char *word, char hex[2 * SHA256_SUM + 1], struct err *e)
{
    struct ledger *l;

    *hex = '\0';
    if (!is_dataset(word))
        return 0;
    TRY(ledger_open(&l, word, e));
    if (l)
        sha256_hex(ledger_root(l), hex);
    else
        memcpy(hex, "-", 2);
    ledger_close(l);
    return 0;
}

struct ledgers {
    struct buf *roots;
    bool some; /* a dataset has one */
};

/* Appends one word's root, if it is a dataset. */
static int see_ledger(void *arg, const char *word, struct err *e)
{
    struct ledgers *to = arg;
    char hex[2 * SHA256_SUM + 1];

    TRY(root_of(word, hex, e));
    if (!*hex)
        return 0;
    to->some = to->some || hex[1];
    return buf_printf(to->roots, "%s%s", to->roots->n ? " " : "", hex) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

int data_ledgers(const struct train_config *c, struct buf *roots, struct err *e)
{
    struct ledgers to = {roots, false};

    TRY(each_word(c, see_ledger, &to, e));
    if (!to.some)
        buf_clear(roots);
    return 0;
}

/* {"data-path":[word,...],"ledgers":[root,...]; whether memory was short the buffer says. */
static int put_paths(struct buf *b, const char *key, const struct opt_list *words, struct err *e)
{
    char hex[2 * SHA256_SUM + 1];

    buf_puts(b, "{");
    json_put_key(b, key);
    for (int i = 0; i < words->n; i++) {
        buf_puts(b, i ? "," : "[");
        json_put_name(b, words->v[i]);
    }
    buf_puts(b, "],\"ledgers\":");
    for (int i = 0; i < words->n; i++) {
        TRY(root_of(words->v[i], hex, e));
        buf_printf(b, "%s\"%s\"", i ? "," : "[", hex);
    }
    buf_putc(b, ']');
    return 0;
}

int data_describe(const struct train_config *c, struct buf *b, struct err *e)
{
    static const char *const packing[] = {"bfd", "wrapped", "none"};
    bool parts = c->part_path[GPT_TRAIN].n != 0;

    if (c->mock_data)
        return buf_puts(b, "{\"mock-data\":true}") < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
    TRY(put_paths(b, parts ? "train-data-path" : "data-path", parts ? &c->part_path[GPT_TRAIN] : &c->data_path, e));
    if (!parts) {
        json_put_key(b, "split");
        json_put_name(b, c->split);
    }
    if (c->sft)
        buf_printf(b, ",\"sft\":\"%s\"", packing[c->packing]);
    buf_printf(b, ",\"seq-length\":%" PRId64 ",\"samples\":%" PRId64 ",\"seed\":%" PRIu32 "}", c->model.seq, c->samples,
               (uint32_t)c->seed);
    return b->failed ? err_set(e, ERR_NOMEM, "out of memory") : 0;
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

static void close_set(struct set *s)
{
    gpt_dataset_close(s->gpt);
    sft_dataset_close(s->sft);
    *s = (struct set){0};
}

/* The three splits that conf says. */
static int open_splits(const struct train_config *c, const struct gpt_conf *conf, struct set three[GPT_SPLITS], struct err *e)
{
    const struct sft_conf packing = {(enum sft_packing)c->packing, c->documents.attention};
    struct gpt_dataset *gpt[GPT_SPLITS] = {NULL};
    struct sft_dataset *sft[GPT_SPLITS] = {NULL};

    TRY(c->sft ? sft_dataset_open(sft, conf, &packing, e) : gpt_dataset_open(gpt, conf, e));
    for (int i = 0; i < GPT_SPLITS; i++) {
        three[i] = (struct set){gpt[i], sft[i]};
        if (sft[i] && sft_dataset_cut(sft[i]))
            log_msg(LOG_WARN, "%s: %" PRId64 " of %" PRId64 " documents are longer than --seq-length %" PRId64
                    " and lose their end", split_name(i), sft_dataset_cut(sft[i]), sft_dataset_documents(sft[i]), c->model.seq);
    }
    return 0;
}

/* Opens the splits, and set after set what else there is to validate with. */
static int open_sets(struct data *d, const int64_t samples[GPT_SPLITS], struct err *e)
{
    const struct train_config *c = d->config;
    struct set three[GPT_SPLITS];
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
    TRY(open_splits(c, &conf, d->sets, e));
    conf.samples[GPT_TRAIN] = conf.samples[GPT_TEST] = 0;
    for (int i = 1; i < data_valid_sets(d); i++) {
        conf.split_paths[GPT_VALID].word = c->part_path[GPT_VALID].v + i;
        TRY(open_splits(c, &conf, three, e));
        d->sets[data_valid(i)] = three[GPT_VALID];
        close_set(&three[GPT_TRAIN]);
        close_set(&three[GPT_TEST]);
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
    d->ids = malloc((size_t)(c->model.seq + 1) * 3 * sizeof *d->ids);
    d->mask = d->ids ? d->ids + c->model.seq + 1 : NULL;
    d->starts = d->ids ? d->mask + c->model.seq + 1 : NULL;
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
        close_set(&d->sets[s]);
    free(d->sets);
    free(d->ids);
    free(d);
}

int64_t data_size(const struct data *d, int split)
{
    if (d->config->mock_data)
        return INT64_MAX;
    if (d->sets[split].sft)
        return sft_dataset_samples(d->sets[split].sft);
    return d->sets[split].gpt ? gpt_dataset_samples(d->sets[split].gpt) : 0;
}

bool data_masked(const struct data *d)
{
    bool masked = d->config->documents.mask_loss || d->config->sft;

    for (int s = 0; s < d->n_sets; s++)
        masked |= d->sets[s].gpt && gpt_dataset_masked(d->sets[s].gpt);
    return masked;
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

/* A sample that was cut from documents laid end to end, or is made up. */
static int cut_sample(const struct data *d, int split, int64_t i, const struct data_rows *to, struct err *e)
{
    const struct gpt_dataset *g = d->sets[split].gpt;
    const struct documents *documents = &d->config->documents;
    int64_t seq = d->config->model.seq;

    if (d->config->mock_data)
        mock_sample(d, split, i, d->ids);
    else
        TRY(gpt_dataset_get(g, i, d->ids, e));
    memcpy(to->tokens, d->ids, (size_t)seq * sizeof *d->ids);
    memcpy(to->targets, d->ids + 1, (size_t)seq * sizeof *d->ids);
    if (g && gpt_dataset_masked(g)) {
        TRY(gpt_dataset_get_mask(g, i, d->mask, e));
        for (int64_t j = 0; j < seq; j++)
            to->targets[j] = d->mask[j + 1] ? to->targets[j] : -1;
    }
    if (to->starts)
        documents_starts(to->tokens, 1, seq, documents->eod, to->starts);
    if (documents->mask_loss)
        documents_mask(to->tokens, seq, documents->eod, to->targets);
    return 0;
}

/* Whether all ids of a sample, the last target too, are of the vocabulary. */
static int check_ids(const struct data *d, int split, int64_t i, const struct data_rows *of, struct err *e)
{
    int64_t seq = d->config->model.seq, vocab = d->config->model.vocab;

    for (int64_t j = 0; j <= seq; j++) {
        int32_t id = j < seq ? of->tokens[j] : of->targets[seq - 1] < 0 ? 0 : of->targets[seq - 1];

        if (id < 0 || id >= vocab)
            return err_set(e, ERR_FORMAT, "%s sample %" PRId64 " has token %" PRId32 ", outside a vocabulary of %" PRId64
                           " (--vocab-size)", split_name(split), i, id, vocab);
    }
    return 0;
}

int data_batch(const struct data *d, int split, int64_t first, int64_t n, const struct data_rows *rows, struct err *e)
{
    int64_t seq = d->config->model.seq, size = data_size(d, split);

    if (size == 0)
        return err_set(e, ERR_ARG, "there is no data for %s (--split %s)", split_name(split), d->config->split);
    for (int64_t i = 0; i < n; i++) {
        struct data_rows to = {rows->tokens + i * seq, rows->targets + i * seq, rows->starts ? rows->starts + i * seq : NULL};
        struct sft_dataset *whole = d->config->mock_data ? NULL : d->sets[split].sft;

        if (whole) {
            const struct sft_sample sample = {to.tokens, to.targets, to.starts ? to.starts : d->starts};

            TRY(sft_dataset_get(whole, first + i, &sample, e));
        } else {
            TRY(cut_sample(d, split, (first + i) % size, &to, e));
        }
        TRY(check_ids(d, split, (first + i) % size, &to, e));
    }
    return 0;
}
