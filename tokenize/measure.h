/* tokenize/measure.h -- how short a tokenizer makes texts, by language: bytes and characters a token, tokens a word (fertility).
 *
 * Words are what stands between white space, as `quern stats` counts them.  Sums are the same for any number of threads.
 */
#ifndef TOKENIZE_MEASURE_H
#define TOKENIZE_MEASURE_H

#include "base/err.h"
#include "base/mem.h"
#include "tokenize/line_text.h"
#include "tokenize/tokenizer.h"

struct measure_options {
    const char *key, *by; /* fields of the text and of the group */
    const char *columns;  /* of Parquet; NULL: all */
    const char *stats;    /* where counts go as JSON; NULL: nowhere */
    int threads;
    void (*bad)(const struct line *line, const struct err *e); /* told of each bad line, one at a time */
};

/* Encodes all texts of the files (none: standard input).  A table for people is appended to `table`: a row for each group, those
 * of most bytes first, and one for all.  Documents without the field are "none"; groups after the first 1,000, and those of
 * names of more than 31 bytes, "other".  *bad: lines without a text.  ERR_ARG: key and by are the same. */
int measure_report(const struct tokenizer *t, const char *const *paths, int n_paths, const struct measure_options *x,
                   struct buf *table, uint64_t *bad, struct err *e);

#endif
