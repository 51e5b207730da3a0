/* pipelines/ablation/ablation.h -- an ablation: variants of a plan of curation that are held against each other by small models.
 *
 * The file is a plan with `input` and `stages` (docs/curate.md) and the keys that docs/ablation.md has.  Each variant is the plan
 * with a few changes.  Variants with the same inputs become one plan with branches, so what they have in common is curated
 * once.  A run is a variant and a seed: a model is trained on so many tokens of the variant and evaluated.
 *
 * What is done is told apart by what it was done with: a variant has a key, a hash of all that bears on its runs.
 */
#ifndef PIPELINES_ABLATION_H
#define PIPELINES_ABLATION_H

#include "base/node.h"
#include "base/opt.h"
#include "pipelines/ablation/ablation_rank.h"

enum {
    ABLATION_VARIANTS = RANK_VARIANTS,
    ABLATION_SEEDS = RANK_SEEDS,
    ABLATION_EVALS = 64,
    ABLATION_KEY = 17 /* of a hash as text, and its NUL */
};

/* What runs are evaluated on: a text by bits a byte, or a task by its first metric. */
struct ablation_eval {
    const char *name;
    bool task;
    const char **from; /* the files that decide on its scores: the text, or first the task, then what it includes and its data */
    int n_from;
};

struct ablation_variant {
    const char *name;
    int line;
    const struct node *input;  /* of it, or of all */
    const struct node *source; /* the stage that makes documents of the inputs, the first; NULL: they are documents */
    const struct node *stages; /* LIST: the others, as changed, and what keeps the texts of evaluations out */
    const struct node *weights; /* MAP of patterns of inputs to shares; NULL: as much as there is */
    const char *tokenizer;
    int group;                 /* of those that are curated by one plan */
    char **file;               /* the inputs, in order */
    const struct node **share; /* of each: the entry of weights that it has a part of; NULL without weights */
    int n_files;
    char data[ABLATION_KEY];   /* a hash of what decides on its tokens */
    char key[ABLATION_KEY];
    const char **branch;       /* of the group's plan, which it goes through; "": the plan's own stages */
    int n_branches;
};

/* Variants that one plan curates. */
struct ablation_group {
    int first; /* a variant of it: its inputs */
    char key[ABLATION_KEY];
    struct buf plan; /* the text of its plan */
};

/* Strings live as long as the ablation. */
struct ablation {
    struct arena arena;
    const char *file;
    const struct node *model;
    const char *tokenizer, *work, *stats, *report, *rank_by;
    int64_t tokens, seeds, steps, step_tokens; /* tokens of a run as asked for; steps, and tokens of one */
    double budget;          /* seconds of processors; 0: none */
    double false_decisions; /* probability that any pair is decided wrongly */
    struct ablation_eval eval[ABLATION_EVALS];
    int n_evals, ranked; /* ranked: the evaluation that ranks */
    struct ablation_variant variant[ABLATION_VARIANTS];
    int n_variants;
    struct ablation_group group[ABLATION_VARIANTS];
    int n_groups;
};

/* Reads and checks everything but what takes a folder: stages with their settings, models' sizes, files.  *a is to be freed
 * whatever comes back.  ERR_FORMAT names file and line; ERR_ARG, ERR_IO, ERR_NOMEM. */
int ablation_load(struct ablation *a, const char *path, struct err *e);
void ablation_free(struct ablation *a);
/* A duration: a number and s, m, h or d.  Negative: it is none. */
double ablation_duration(const char *text);

/* Makes keys and texts of the plans of all groups, and finds the branches that variants go through.  ERR_NOMEM. */
int ablation_plans(struct ablation *a, struct err *e);
/* Where things are in the work folder: the folder of a group, or a variant's dataset (its prefix, or with weights the folder of
 * a dataset for each input), or its runs. */
void ablation_group_path(const struct ablation *a, int group, char path[4096]);
void ablation_data_path(const struct ablation *a, int variant, char path[4096]);
void ablation_runs_path(const struct ablation *a, int variant, char path[4096]);
#endif
