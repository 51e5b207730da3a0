#include "pipelines/nodes.h"

#include "curate/extract/extract.h"
#include "curate/report/corpus_stats.h"
#include "curate/stages/doc_route.h"
#include "pipelines/node_model.h"
#include "pipelines/node_perplexity.h"
#include "pipelines/node_tokenize.h"

/* ---- extract ---- */

STAGE_SETTINGS(extract, EXTRACT_OPTS)

static int extract_source_open(struct source *s, const void *conf, char *const *paths, int n, struct err *e)
{
    return extract_open(s, conf, paths, n, e);
}

static const struct stage_kind extract_kind = {"extract", sizeof(struct extract_conf), extract_init, extract_rules,
                                               extract_options, NULL, NULL, NULL};
static const struct node_source extract_source = {extract_source_open, extract_restart, extract_close};

/* ---- stages that need more than curation ---- */

STAGE_FORM(lm, LM_OPTS)

STAGE_FORM(by_model, BY_MODEL_OPTS)

static const struct stage_kind perplexity_kind = STAGE_KIND("perplexity", lm, perplexity_rules, NULL);
static const struct stage_kind by_model_kind = STAGE_KIND("perplexity model", by_model, perplexity_rules, NULL);

/* ---- ends ---- */

STAGE_FORM(tokens, TOKENS_OPTS)
STAGE_FORM(corpus, CORPUS_OUT_OPTS)

static const struct stage_kind tokens_kind = STAGE_KIND("tokenize", tokens, NULL, NULL);
static const struct stage_kind stats_kind = STAGE_KIND("stats", corpus, NULL, NULL);
static const struct node_end tokens_end = {tokens_groups, tokens_begin, tokens_files, tokens_name};

static const char *stats_name(const void *conf, struct err *e)
{
    const struct corpus_conf *c = conf;

    if (!c->output)
        err_set(e, ERR_FORMAT, "stats needs an output");
    return c->output;
}

static const struct node_end stats_end = {NULL, NULL, NULL, stats_name};

/* ---- what sends documents to branches: no settings ---- */

static void router_init(void *conf) { (void)conf; }
static void router_options(void *conf, struct opt out[STAGE_MAX_OPTS])
{
    (void)conf;
    out[0] = (struct opt)OPT_END;
}
static int router_open(struct stage *s, const void *conf, struct err *e) { return doc_route_stage_open(s, conf, e); }

const struct stage_kind node_router = {"branches", sizeof(struct doc_route_conf), router_init, doc_route_rules, router_options,
                                       router_open, NULL, NULL};

/* ---- the table ---- */

static const struct node_kind kinds[] = {
    {&extract_kind, &extract_source, NULL},
    {&perplexity_kind, NULL, NULL},
    {&by_model_kind, NULL, NULL},
    {&tokens_kind, NULL, &tokens_end},
    {&stats_kind, NULL, &stats_end},
};

bool node_kind_at(int i, struct node_kind *k)
{
    int own = (int)(sizeof kinds / sizeof *kinds);

    *k = i < own ? kinds[i] : (struct node_kind){.stage = stage_kind_at(i - own)};
    return k->stage != NULL;
}

bool node_kind_find(struct span name, struct node_kind *k)
{
    for (int i = 0; node_kind_at(i, k); i++)
        if (span_is(name, k->stage->name))
            return true;
    return false;
}
