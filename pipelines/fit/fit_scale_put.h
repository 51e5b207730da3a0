/* pipelines/fit/fit_scale_put.h -- quern scale fit: what losses of small models say of large ones, as a table and as JSON. */
#ifndef PIPELINES_FIT_SCALE_PUT_H
#define PIPELINES_FIT_SCALE_PUT_H

#include "base/opt.h"
#include "pipelines/fit/fit_scale.h"

enum { SCALE_BUDGETS = 64 };

struct scale_report_conf {
    struct opt_list flops;
    double params, tokens, delta, interval;
    int64_t seed, draws, vocab, seq, batch;
    const char *stats;
    int threads;
    bool lowest;
};
#define SCALE_REPORT_CONF                                                                                                       \
    {.delta = 1e-3, .interval = .95, .seed = 1, .draws = 200, .vocab = 50257, .seq = 2048, .batch = 512, .threads = 1}

#define SCALE_REPORT_OPTS(c)                                                                                                    \
    OPT_HEAD("Predict"),                                                                                                        \
    OPT_LIST(0, "flops", &(c).flops, "C", "the best model for a budget of so many FLOPs (1e21); may be repeated"),              \
    OPT_NUM(0, "params", &(c).params, 0, 1e30, "the loss of a model of so many parameters, after"),                             \
    OPT_NUM(0, "tokens", &(c).tokens, 0, 1e30, "so many tokens"),                                                               \
    OPT_HEAD("Fit"),                                                                                                            \
    OPT_FLAG(0, "lowest", &(c).lowest, "of points of one size and tokens only the lowest counts: of rates that were tried"), \
    OPT_NUM(0, "huber", &(c).delta, 1e-9, 1e9, "errors of log L count squared up to this, beyond it by length"),     \
    OPT_INT(0, "draws", &(c).draws, 20, 100000, "bootstrap fits for intervals"),                                                \
    OPT_INT(0, "seed", &(c).seed, 0, INT64_MAX, "of these"),                                                                    \
    OPT_NUM(0, "interval", &(c).interval, .01, .9999, "share of the draws that is within an interval"),                         \
    OPT_HEAD("Say"),                                                                                                            \
    OPT_OUT(0, "stats", &(c).stats, "FILE", "write the result as JSON"),                                                        \
    OPT_INT(0, "vocab-size", &(c).vocab, 1, INT32_MAX, "of the model whose plan is proposed"),                                  \
    OPT_INT(0, "seq-length", &(c).seq, 1, INT32_MAX, "of its samples"),                                                         \
    OPT_INT(0, "global-batch-size", &(c).batch, 1, INT32_MAX, "of its steps, in samples")

/* What came out; buf_free each. */
struct scale_report_text {
    struct buf table, json;
};
/* Does all of it.  Errors of points and fits; ERR_ARG names the option. */
int scale_report(const struct scale_report_conf *c, const char *const *files, int n, struct scale_report_text *t, struct err *e);
#endif
