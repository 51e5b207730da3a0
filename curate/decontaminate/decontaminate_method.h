/* curate/decontaminate/decontaminate_method.h -- ways to find questions in a document.
 *
 * Inside the stage only.  A method that judges one document by itself gives its hits;
 * what becomes of them (drop, strip, annotate, report) is the stage's.  The method
 * curator needs the whole collection and is a stage of its own.
 */
#ifndef CURATE_DECONTAMINATE_METHOD_H
#define CURATE_DECONTAMINATE_METHOD_H

#include "curate/decontaminate/decontaminate.h"
#include "curate/decontaminate/decontaminate_evals.h"

/* Why documents are dropped: rows of decontaminate_rules (decontaminate.h). */
enum decontaminate_rule { DECON_WORDS, DECON_SHARE, DECON_NGRAM, DECON_SCORE, DECON_PIECES, DECON_SPLITS };

/* A question found in a document. */
struct eval_hit {
    uint32_t item;
    enum decontaminate_rule rule;
    double value, threshold;
    struct span text;    /* what was found: bytes of the document, or the method's own */
    bool placed;         /* text and part are bytes of the document and of the item's text */
    struct span part;    /* what of the item was found; empty if not placed */
    struct span around;  /* what is to be taken out: text, and what else of the item is by it */
};

/* Start with zeroes; the strongest hit is number 0. */
struct eval_hits {
    struct eval_hit *v;
    size_t n, cap;
};
/* ERR_NOMEM. */
int eval_hits_add(struct eval_hits *h, const struct eval_hit *hit);

struct eval_method {
    const char *name;
    /* evals and conf outlive the method. */
    int (*open)(void **m, const struct decontaminate_conf *c, const struct eval_set *evals, struct err *e);
    void (*close)(void *m);
    int (*thread_open)(void *m, void **thread, struct err *e);
    void (*thread_close)(void *m, void *thread);
    /* Appends what is found in text; the bytes that hits point to live in text, in the
     * evals or in a.  Any thread. */
    int (*find)(void *m, void *thread, struct span text, struct arena *a, struct eval_hits *hits, struct err *e);
    /* Items that are too short to be found, and bytes of the index. */
    void (*describe)(void *m, size_t *skipped, size_t *bytes);
};
extern const struct eval_method eval_method_quern, eval_method_datatrove, eval_method_decon;

/* The stage of the method curator; takes over the evals. */
int decontaminate_curator_open(struct stage *s, const struct decontaminate_conf *c, struct eval_set *evals,
                               struct err *e);
#endif
