/* pipelines/fit/fit_report_put.h -- inside reports of fits only: what was found, and how it is said. */
#ifndef PIPELINES_FIT_REPORT_PUT_H
#define PIPELINES_FIT_REPORT_PUT_H

#include "curate/report/text_table.h"
#include "pipelines/fit/fit_report.h"

/* A number, and between which ones a fit's and a further run's are in so many of 100 draws. */
struct fit_range {
    double value, low, high, run_low, run_high;
};

/* A mixture whose losses are predicted. */
struct mix_row {
    const char *name; /* "best", or as given */
    double w[FIT_SOURCES];
    struct fit_range goal, loss[FIT_TARGETS];
};

/* Points that were not fitted, of one target. */
struct mix_test {
    int inside;         /* are within what a run is predicted to give */
    double correlation; /* of ranks, predicted and measured */
    double error;       /* root mean square of the log of the loss */
};

struct mix_finding {
    const struct mix_report_conf *c;
    struct mix_points points, tests;
    struct mix_analysis a;
    struct mix_goal goal;
    struct mix_row *row;                  /* (rows) the best first */
    int rows;
    double low[FIT_SOURCES], high[FIT_SOURCES]; /* of the best weights, by draws */
    struct mix_test test[FIT_TARGETS], goal_test; /* of points that were not fitted */
    double *proposal;                     /* (propose, sources) */
};

/* The first row of a table, "a|b|c", which sets the columns; the end: appends the table, unless rc says that it is not whole, and
 * frees it.  Errors of buf_put. */
int fit_heads(struct text_table *t, const char *names);
int fit_end_table(struct text_table *t, int rc, struct buf *b);
/* The keys of a range, of an object in JSON. */
int fit_put_range(struct buf *b, const struct fit_range *r);
/* Append: errors of buf_put; mix_put_proposal: those of the ablation's file too. */
int mix_put_table(const struct mix_finding *f, struct buf *b);
int mix_put_json(const struct mix_finding *f, struct buf *b);
int mix_put_proposal(const struct mix_finding *f, struct buf *b, struct err *e);
#endif
