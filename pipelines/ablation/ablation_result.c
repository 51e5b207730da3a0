/* What an ablation's work folder has: read back by every process that shares it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "indexed_dataset/idx_read.h"
#include "pipelines/ablation/ablation_rank.h"
#include "pipelines/ablation/ablation_run.h"

bool ablation_is_loss(const char *metric)
{
    return strstr(metric, "perplexity") || strstr(metric, "bits");
}

int ablation_result_open(struct ablation_result *r, const struct ablation *a, struct err *e)
{
    size_t runs = (size_t)a->n_variants * (size_t)a->seeds;

    *r = (struct ablation_result){.seeds = (int)a->seeds};
    r->score = calloc(runs * (size_t)a->n_evals, sizeof *r->score);
    r->seconds = calloc(runs, sizeof *r->seconds);
    if (!r->score || !r->seconds)
        return err_set(e, ERR_NOMEM, "out of memory for the results");
    for (size_t i = 0; i < runs * (size_t)a->n_evals; i++)
        r->score[i] = NAN;
    for (int i = 0; i < a->n_evals; i++)
        snprintf(r->metric[i], sizeof r->metric[i], a->eval[i].task ? "" : "bits_per_byte");
    return 0;
}

void ablation_result_free(struct ablation_result *r, const struct ablation *a)
{
    for (int v = 0; v < a->n_variants; v++)
        free(r->data[v].file_tokens);
    free(r->score);
    free(r->seconds);
    *r = (struct ablation_result){0};
}

/* The tokens of a dataset. */
static int count_tokens(const char *prefix, uint64_t *tokens, struct err *e)
{
    struct idx *x;

    TRY(idx_open(&x, prefix, e));
    *tokens = 0;
    for (uint64_t i = 0; i < idx_n_sequences(x); i++)
        *tokens += idx_length(x, i) > 0 ? (uint64_t)idx_length(x, i) : 0;
    idx_close(x);
    return 0;
}

static int read_data(struct ablation_data *d, const struct ablation *a, int v, struct err *e)
{
    const struct ablation_variant *x = &a->variant[v];
    int n = x->weights ? x->n_files : 1;
    char path[4096], prefix[4200];

    ablation_data_path(a, v, path);
    if (!d->file_tokens)
        d->file_tokens = calloc((size_t)n + 1, sizeof *d->file_tokens);
    if (!d->file_tokens)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->tokens = 0;
    for (int i = 0; i < n; i++) {
        if (x->weights)
            snprintf(prefix, sizeof prefix, "%s%06d_text_document", path, i);
        else
            snprintf(prefix, sizeof prefix, "%s_text_document", path);
        TRY(count_tokens(prefix, &d->file_tokens[i], e));
        d->tokens += d->file_tokens[i];
    }
    if (!d->tokens)
        return err_set(e, ERR_FORMAT, "variant '%s' has no tokens: no document was left", x->name);
    d->done = true;
    return 0;
}

/* A group that has been curated, for each of its variants. */
static int read_group(struct ablation_result *r, const struct ablation *a, int g, struct err *e)
{
    struct arena mem = {0};
    char folder[4096], path[4200];
    struct node *root;
    int rc;

    ablation_group_path(a, g, folder);
    snprintf(path, sizeof path, "%s/done.json", folder);
    if (r->data[a->group[g].first].done || access(path, F_OK) < 0)
        return 0;
    rc = node_load_json(&mem, path, &root, e);
    for (int v = 0; v < a->n_variants && rc == 0; v++)
        if (a->variant[v].group == g) {
            rc = read_data(&r->data[v], a, v, e);
            r->data[v].bad = (uint64_t)node_int(root, "bad", 0);
        }
    if (rc == 0)
        r->curated[g] = node_num(root, "cpu_seconds", 0);
    arena_free(&mem);
    return rc;
}

static int read_run(struct ablation_result *r, const struct ablation *a, int v, int s, struct err *e)
{
    struct arena mem = {0};
    char folder[4096], path[4200];
    struct node *root;
    int rc;

    ablation_runs_path(a, v, folder);
    snprintf(path, sizeof path, "%s/%d.json", folder, s + 1);
    if (access(path, F_OK) < 0)
        return 0;
    rc = node_load_json(&mem, path, &root, e);
    for (int i = 0; i < a->n_evals && rc == 0; i++) {
        const struct node *score = node_get(node_get(root, "scores"), a->eval[i].name);
        const char *metric = node_str(score, "metric");

        if (!metric || !isfinite(node_num(score, "value", NAN)))
            rc = err_set(e, ERR_FORMAT, "'%s' has no score of '%s': remove it to run that again", path, a->eval[i].name);
        else
            snprintf(r->metric[i], sizeof r->metric[i], "%s", metric);
        r->score[(i * a->n_variants + v) * a->seeds + s] = node_num(score, "value", NAN);
    }
    if (rc == 0)
        r->seconds[v * a->seeds + s] = node_num(root, "train_seconds", 0) + node_num(root, "eval_seconds", 0);
    arena_free(&mem);
    return rc;
}

int ablation_result_read(struct ablation_result *r, const struct ablation *a, struct err *e)
{
    for (int g = 0; g < a->n_groups; g++)
        TRY(read_group(r, a, g, e));
    for (int v = 0; v < a->n_variants; v++)
        for (int s = 0; s < a->seeds; s++)
            if (isnan(r->score[v * a->seeds + s]))
                TRY(read_run(r, a, v, s, e));
    return 0;
}

double ablation_curated(const struct ablation_result *r, const struct ablation *a)
{
    double sum = 0;

    for (int g = 0; g < a->n_groups; g++)
        sum += r->curated[g];
    return sum;
}

double ablation_spent(const struct ablation_result *r, const struct ablation *a)
{
    double sum = ablation_curated(r, a);

    for (int i = 0; i < a->n_variants * a->seeds; i++)
        sum += r->seconds[i];
    return sum;
}

bool ablation_has(const struct ablation_result *r, const struct ablation *a, int variant, int seed)
{
    return !isnan(r->score[variant * a->seeds + seed]);
}

struct rank_scores ablation_scores(const struct ablation_result *r, const struct ablation *a, int eval)
{
    return (struct rank_scores){.score = r->score + (int64_t)eval * a->n_variants * a->seeds, .variants = a->n_variants,
                                .seeds = (int)a->seeds, .stride = (int)a->seeds, .higher = !ablation_is_loss(r->metric[eval])};
}

bool ablation_schedule(struct ablation_result *r, const struct ablation *a, bool halving)
{
    struct rank_scores x = ablation_scores(r, a, a->ranked);

    x.halving = halving;
    x.seeds = r->seeds;
    return rank_schedule(&x, r->upto);
}

/* The seeds by which all variants have been run, from the first. */
static int whole_seeds(const struct ablation_result *r, const struct ablation *a)
{
    for (int s = 0; s < a->seeds; s++)
        for (int v = 0; v < a->n_variants; v++)
            if (!ablation_has(r, a, v, s))
                return s;
    return (int)a->seeds;
}

int ablation_seeds(const struct ablation_result *r, const struct ablation *a, bool halving, double *mean)
{
    double left = a->budget - ablation_curated(r, a), sum = 0;
    int n = 0, runs = 0;

    for (int i = 0; i < a->n_variants * a->seeds; i++) {
        sum += r->seconds[i];
        runs += r->seconds[i] > 0;
    }
    *mean = runs ? sum / runs : 0;
    if (!a->budget)
        return (int)a->seeds;
    while (n < a->seeds && (left -= *mean * rank_active(a->n_variants, n, halving)) >= 0)
        n++;
    if (n < whole_seeds(r, a))
        n = whole_seeds(r, a);
    return n ? n : 1;
}
