/* pipelines/ablation/ablation_run.h -- does the work of an ablation: curates, trains, evaluates, each by a process of its own.
 *
 * A process is one of quern's commands, with a thread, and ends with this one; several run side by side.  What is done lies in
 * the work folder as a whole file: data/KEY/done.json of a group that is curated, runs/NAME-KEY/SEED.json of a run.  Who works
 * on one holds a lock in its folder (pipelines/work_lock.h).  So several ablations of one file on any machines that share the
 * folder share the work, and one that was killed goes on: a training from its last checkpoint.
 */
#ifndef PIPELINES_ABLATION_RUN_H
#define PIPELINES_ABLATION_RUN_H

#include "base/file.h"
#include "pipelines/ablation/ablation.h"

struct ablation_conf {
    const struct ablation *a;
    int jobs;     /* processes at once */
    bool halving; /* stops the worse half in rounds */
    bool wait;    /* for what other ablations of this file work on */
    bool keep;    /* models too */
};

/* What is known of a variant's data. */
struct ablation_data {
    bool done;
    uint64_t bad;            /* records that its group passed over */
    uint64_t tokens;
    uint64_t *file_tokens;   /* with weights: of each input */
};

struct ablation_result {
    double *score;   /* (evals, variants, seeds); NAN: not there */
    double *seconds; /* (variants, seeds): of processors, training and evaluation */
    struct ablation_data data[ABLATION_VARIANTS];
    double curated[ABLATION_VARIANTS]; /* seconds of processors of each group */
    char metric[ABLATION_EVALS][64];
    int seeds;       /* that are given, by the budget */
    int upto[ABLATION_VARIANTS]; /* seeds that each variant was to have */
    bool finished;   /* all runs that were to be done are */
    bool spent;      /* the budget left some undone */
};

/* Whether less of a metric is better. */
bool ablation_is_loss(const char *metric);
/* Room for results, none read yet.  *r is to be freed whatever comes back.  ERR_NOMEM. */
int ablation_result_open(struct ablation_result *r, const struct ablation *a, struct err *e);
void ablation_result_free(struct ablation_result *r, const struct ablation *a);
/* Reads what has been done since.  Errors of the files; ERR_FORMAT names one that is damaged. */
int ablation_result_read(struct ablation_result *r, const struct ablation *a, struct err *e);
/* Whether a run has been done. */
bool ablation_has(const struct ablation_result *r, const struct ablation *a, int variant, int seed);
/* All scores of an evaluation. */
struct rank_scores ablation_scores(const struct ablation_result *r, const struct ablation *a, int eval);
/* Sets r->upto by the results there are: rank_schedule. */
bool ablation_schedule(struct ablation_result *r, const struct ablation *a, bool halving);
/* How many seeds the budget leaves, by what runs have cost: *mean seconds each (0: none is known); at least 1. */
int ablation_seeds(const struct ablation_result *r, const struct ablation *a, bool halving, double *mean);
/* Processor seconds on record: of curation, and in all. */
double ablation_curated(const struct ablation_result *r, const struct ablation *a);
double ablation_spent(const struct ablation_result *r, const struct ablation *a);
/* Does all of it.  An error of a command names the file that has its messages. */
int ablation_run(const struct ablation_conf *c, struct ablation_result *r, struct err *e);
#endif
