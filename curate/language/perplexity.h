/* curate/language/perplexity.h -- how unlikely an n-gram language model finds a document: stage, buckets, thresholds.
 *
 * As CCNet: of all sentences of a document the logarithms of probability and the words are added up, an end a sentence
 * included; perplexity is 10 to minus the mean.  What a sentence's words are is for whoever opens the stage to say: pieces of
 * a tokenizer (pipelines/node_perplexity.h), or what white space divides.
 */
#ifndef CURATE_PERPLEXITY_H
#define CURATE_PERPLEXITY_H

#include "base/opt.h"
#include "curate/language/ngram.h"
#include "curate/stream/stage.h"

/* How text becomes words of the model. */
struct perplexity_words {
    /* Called once, before all others. */
    int (*begin)(void *arg, const struct ngram_model *m, struct err *e);
    int (*thread_open)(void *arg, void **thread, struct err *e);
    void (*thread_close)(void *arg, void *thread);
    /* The words' numbers (uint32_t) to words. */
    int (*cut)(void *arg, void *thread, struct span sentence, struct buf *words, struct err *e);
    /* Called when the stage closes, or could not open. */
    void (*close)(void *arg);
};

struct perplexity_conf {
    const char *lm, *field;
    int normalize; /* 0: none, 1: curate/text/ccnet.h */
    int sentences; /* 0: lines, 1: the document is one */
    double least, most;       /* documents below or above are dropped; 0: none */
    const char *cutoffs;      /* HEAD,TAIL: perplexities below which are the head and the middle; NULL: no buckets */
    const char *percentiles;  /* the same, in percent of the documents */
    const char *keep;         /* buckets; NULL: all */
    const struct perplexity_words *words; /* NULL: white space divides them */
    void *arg;
};
/* "perplexity", lines, everything kept. */
void perplexity_conf_init(struct perplexity_conf *c);
#define PERPLEXITY_OPTS(c)                                                                                          \
    OPT_IN('m', "lm", &(c).lm, "FILE", "n-gram model: KenLM's binary file or an ARPA file"),                         \
    OPT_ENUM(0, "normalize", &(c).normalize, "none|ccnet", "what is done to the text before"),                       \
    OPT_ENUM(0, "sentences", &(c).sentences, "lines|document", "what has a beginning and an end for the model"),     \
    OPT_STR('f', "field", &(c).field, "NAME", "field to set, beside NAME_log10, NAME_tokens and NAME_bucket"),       \
    OPT_NUM(0, "min-perplexity", &(c).least, 0, 1e300, "drop what is below; 0: nothing"),                            \
    OPT_NUM(0, "max-perplexity", &(c).most, 0, 1e300, "drop what is above; 0: nothing"),                             \
    OPT_STR(0, "cutoffs", &(c).cutoffs, "HEAD,TAIL", "perplexities: below the first is head, from the second on tail"), \
    OPT_STR(0, "percentiles", &(c).percentiles, "HEAD,TAIL", "the same as percentiles of all these documents"), \
    OPT_STR(0, "keep", &(c).keep, "BUCKET[,BUCKET]", "of head, middle, tail and all (without text); drop the others")

/* Why it drops documents. */
extern const struct stage_rule perplexity_rules[];

/* The fields of a document, whose names begin alike. */
struct perplexity_fields {
    const char *perplexity;
    char *log10, *tokens, *bucket, *bits;
};
/* name must outlive it.  ERR_ARG: a perplexity cannot stand there; ERR_NOMEM. */
int perplexity_fields_open(struct perplexity_fields *f, const char *name, struct err *e);
void perplexity_fields_close(struct perplexity_fields *f);
/* Sets perplexity, which it returns in *x too, log10 and tokens; no tokens: null, null and 0.  ERR_NOMEM. */
int perplexity_fields_set(const struct perplexity_fields *f, struct doc *d, double log10, uint64_t tokens, double *x);
/* Drops what is below least or above most; 0: no such bound.  Both must make sense together: ERR_ARG. */
void perplexity_bound(double least, double most, double x, struct verdict *v);
int perplexity_check_bounds(double least, double most, struct err *e);
/* Opens the stage "perplexity".  Looks at documents one by one, but for percentiles: then at all before the first goes on,
 * with 8 bytes of memory a document.  A document without text gets no perplexity (null), and the bucket all.
 * ERR_ARG: no model, cutoffs that make no sense, an unknown bucket; errors of ngram_open and of conf->words. */
int perplexity_stage_open(struct stage *s, const struct perplexity_conf *conf, struct err *e);
#endif
