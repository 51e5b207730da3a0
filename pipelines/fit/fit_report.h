/* pipelines/fit/fit_report.h -- quern ablate fit: what losses of mixtures say of others, as a table, JSON, an ablation. */
#ifndef PIPELINES_FIT_REPORT_H
#define PIPELINES_FIT_REPORT_H

#include "base/opt.h"
#include "pipelines/fit/fit_mixture.h"

enum { MIX_PROPOSALS = 64 /* variants of an ablation */ };

struct mix_report_conf {
    struct opt_list target, at, test, least, most, have;
    double tokens, epochs, interval;
    int64_t propose, seed, draws;
    const char *of, *output, *stats;
    int form; /* 0: the best; else 1 and an enum mix_form */
    int threads;
};
#define MIX_REPORT_CONF {.epochs = 4, .interval = .95, .seed = 1, .draws = 200, .threads = 1}

#define MIX_REPORT_OPTS(c)                                                                                                      \
    OPT_HEAD("What is to be least"),                                                                                            \
    OPT_LIST(0, "target", &(c).target, "NAME[=X]", "a target's loss, times X; without: the mean of all; may be repeated"),      \
    OPT_LIST(0, "least", &(c).least, "SOURCE=X", "a source's weight is at least X; may be repeated"),                           \
    OPT_LIST(0, "most", &(c).most, "SOURCE=X", "a source's weight is at most X; may be repeated"),                              \
    OPT_NUM(0, "tokens", &(c).tokens, 0, 1e30, "tokens of the run to come, for:"),                                              \
    OPT_LIST(0, "have", &(c).have, "SOURCE=TOKENS", "so many tokens are there; may be repeated"),                               \
    OPT_NUM(0, "epochs", &(c).epochs, 1e-6, 1e6, "a source that --have names is gone over so often at most"),                   \
    OPT_HEAD("Fit"),                                                                                                            \
    OPT_ENUM(0, "form", &(c).form, "best|linear|exponential|power", "of the loss; best: each target's by left-out mixtures"),   \
    OPT_INT(0, "draws", &(c).draws, 20, 100000, "bootstrap fits for intervals"),                                                \
    OPT_INT(0, "seed", &(c).seed, 0, INT64_MAX, "of these, and of proposals"),                                                  \
    OPT_NUM(0, "interval", &(c).interval, .01, .9999, "share of the draws that is within an interval"),                         \
    OPT_HEAD("Say"),                                                                                                            \
    OPT_LIST(0, "at", &(c).at, "SOURCE=X,...", "predict the losses of these weights; may be repeated"),                         \
    OPT_IN_LIST(0, "test", &(c).test, "FILE", "hold the fit against points that are not fitted; may be repeated"),              \
    OPT_OUT(0, "stats", &(c).stats, "FILE", "write the result as JSON"),                                                        \
    OPT_INT(0, "propose", &(c).propose, 0, MIX_PROPOSALS, "write so many mixtures to measure next as variants"),             \
    OPT_IN(0, "of", &(c).of, "ABLATION", "the file that they are variants of: all else is as there"),                           \
    OPT_OUT('o', "output", &(c).output, "FILE", "where to; without it to standard output")

/* What came out; buf_free each. */
struct mix_report_text {
    struct buf table, json, proposal;
};
/* Does all of it.  Errors of points and fits; ERR_ARG names the option. */
int mix_report(const struct mix_report_conf *c, const char *const *files, int n, struct mix_report_text *t, struct err *e);
#endif
