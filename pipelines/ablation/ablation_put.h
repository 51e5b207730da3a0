/* pipelines/ablation/ablation_put.h -- says what an ablation found: a table, JSON, a page. */
#ifndef PIPELINES_ABLATION_PUT_H
#define PIPELINES_ABLATION_PUT_H

#include "pipelines/ablation/ablation_run.h"

/* What a variant's stages did, by the statistics of its group. */
struct ablation_account {
    const struct node **stage; /* (n) entries of the statistics, in the order of the plan */
    int n;
    uint64_t docs_in, bytes_in, docs_out, bytes_out;
};

struct ablation_finding {
    const struct ablation *a;
    const struct ablation_result *r;
    bool halving;
    struct ranking ranking;
    struct ablation_account account[ABLATION_VARIANTS]; /* empty where nothing is curated yet */
    struct arena arena;
};

/* Ranks what there is.  *f is to be freed whatever comes back.  Errors of the files of statistics; ERR_NOMEM. */
int ablation_find(struct ablation_finding *f, const struct ablation *a, const struct ablation_result *r, bool halving,
                  struct err *e);
void ablation_finding_free(struct ablation_finding *f);
/* How often a run goes over a variant's tokens; processor seconds of its runs; in words, how b of a pair is beside a. */
double ablation_epochs(const struct ablation_finding *f, int v);
double ablation_seconds(const struct ablation_finding *f, int v);
const char *ablation_verdict(const struct ranked_pair *p);
/* Appends it.  Errors of buf_put. */
int ablation_put_table(const struct ablation_finding *f, struct buf *b);
int ablation_put_json(const struct ablation_finding *f, struct buf *b);
int ablation_put_page(const struct ablation_finding *f, struct buf *b);
#endif
