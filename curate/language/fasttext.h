/* curate/language/fasttext.h -- classifies text by a fastText model: .bin or .ftz (quantised).
 *
 * A reader and predictor of our own for supervised models (Joulin et al. 2016, 2017; the
 * format of fastText 0.9, versions 11 and 12).  A model is mapped, not copied, and never
 * written: any number of threads and processes share it.  What a file says is checked
 * before it is believed.  Scores are those of fastText to the last bits of a float.
 */
#ifndef CURATE_FASTTEXT_H
#define CURATE_FASTTEXT_H

#include "base/err.h"
#include "base/mem.h"

struct fasttext;

/* Opens a model.  ERR_IO; ERR_FORMAT: damaged, cut, or no model, with file and reason;
 * ERR_UNSUPPORTED: a model without labels (word vectors), or of a newer version;
 * ERR_LIMIT: its labels need more than 1 GiB. */
int fasttext_open(struct fasttext **m, const char *path, struct err *e);
/* As fasttext_open, over bytes that outlive m; name is for messages. */
int fasttext_open_mem(struct fasttext **m, const char *name, struct span bytes, struct err *e);
void fasttext_close(struct fasttext *m);

/* How many labels the model has: they are numbered from 0. */
int fasttext_n_labels(const struct fasttext *m);
/* A label as it stands in the model, prefix and all: "__label__en". */
struct span fasttext_label(const struct fasttext *m, int i);
/* The same without "__label__". */
struct span fasttext_label_name(const struct fasttext *m, int i);
/* The number of a label, written with the prefix or without; -1: there is none. */
int fasttext_label_find(const struct fasttext *m, struct span name);

/* Memory for one thread; start with zeroes.  A scratch serves one model. */
struct fasttext_scratch {
    float *hidden;    /* dim */
    float *out;       /* for each label: probability, or its logarithm (hierarchical) */
    float *node;      /* logarithms by node of the tree */
    int64_t n_rows;   /* of the input matrix, summed */
    struct buf token; /* one, between < and > */
    uint32_t *hash;   /* of each token, for word n-grams */
    size_t n_hash, cap_hash;
    uint32_t row[64]; /* fetched, not yet summed */
    int n_row;
    struct fasttext_token *seen, *seeing; /* rows by token; the one that is being filled */
};
void fasttext_scratch_free(struct fasttext_scratch *s);

/* Classifies text as one line: a newline is white space like any other, and the end of
 * the line is a token, as in fastText.  The best label comes back (the later of equals),
 * or -1 when the model knows nothing in the text at all: then there are no scores.
 * -2 with e: ERR_NOMEM, or ERR_UNSUPPORTED when the model's numbers are not finite. */
int fasttext_predict(const struct fasttext *m, struct fasttext_scratch *s, struct span text, struct err *e);
/* The score of a label after fasttext_predict, as fastText gives it: the probability plus
 * 0.00001, so up to 1.00001. */
double fasttext_score(const struct fasttext *m, const struct fasttext_scratch *s, int label);
#endif
