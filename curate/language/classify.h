/* curate/language/classify.h -- the quality of documents, or any other class, by a fastText model.
 *
 * The conventions of four systems for what is shown to the model and what is made of its
 * answer; docs/classify.md compares them.
 */
#ifndef CURATE_CLASSIFY_H
#define CURATE_CLASSIFY_H

#include "base/opt.h"
#include "curate/stream/stage.h"

enum classify_dialect {
    CLASSIFY_FASTTEXT,  /* newlines are spaces; the label's own score */
    CLASSIFY_DATATROVE, /* stripped, newlines removed; the label's own score */
    CLASSIFY_NEMO,      /* "__label__" removed; 1 - the best score if another label is best */
    CLASSIFY_DCLM       /* stripped, lines joined by spaces; the same */
};
enum classify_draw {
    CLASSIFY_BY_ID,   /* a function of seed and id */
    CLASSIFY_BY_TEXT, /* of seed and text */
    CLASSIFY_NUMPY    /* the next number of numpy.random.seed(seed), in input order */
};

struct classify_conf {
    const char *model, *label, *field;
    int dialect;      /* enum classify_dialect */
    double threshold; /* documents below are dropped */
    double pareto;    /* alpha of the sampling; 0: none */
    int64_t seed;
    int draw;         /* enum classify_draw */
    bool histogram;   /* of the scores, in the statistics */
};
/* "hq", "quality_score", everything kept, seed 42, no histogram. */
void classify_conf_init(struct classify_conf *c);
#define CLASSIFY_OPTS(c)                                                                                    \
    OPT_IN('m', "model", &(c).model, "FILE", "fastText model, .bin or .ftz"),                              \
    OPT_STR('l', "label", &(c).label, "L", "label whose score counts, with __label__ or without"),          \
    OPT_STR('f', "field", &(c).field, "NAME", "field to set"),                                              \
    OPT_ENUM(0, "dialect", &(c).dialect, "fasttext|datatrove|nemo|dclm", "how text goes in and a score comes out"), \
    OPT_NUM('t', "threshold", &(c).threshold, 0, 1, "drop lower scores"),                                   \
    OPT_NUM(0, "pareto", &(c).pareto, 0, 1e6, "sample: keep if pareto(X) > 1 - score; 0: all"),             \
    OPT_INT(0, "seed", &(c).seed, 0, UINT32_MAX, "of the sampling"),                                        \
    OPT_ENUM(0, "draw", &(c).draw, "id|text|numpy", "what the sampling's number depends on, with the seed"), \
    OPT_FLAG(0, "histogram", &(c).histogram, "count the scores in --stats (in a plan: costs a pass)")

/* Text as a dialect shows it to the model: text itself or bytes in b. */
int classify_prepare(int dialect, struct span text, struct buf *b, struct span *out);

/* Why it drops documents. */
extern const struct stage_rule classify_rules[];
/* Opens the stage "classify": sets the field to the score of the label; 0 if the model
 * knows nothing in the text.  Drops documents below the threshold (rule score), and by
 * sampling (rule pareto, threshold the score that would have stayed).  Looks at documents
 * one by one, but for a histogram or numpy's numbers: then in order.
 * ERR_ARG: no model, a label that it lacks, an empty field name; errors of fasttext_open. */
int classify_stage_open(struct stage *s, const struct classify_conf *conf, struct err *e);
#endif
