/* curate/mix/mix_repeat.h -- how often a document is taken by a number in it, such as the size of the cluster that it
 * stands for. */
#ifndef CURATE_MIX_REPEAT_H
#define CURATE_MIX_REPEAT_H

#include "curate/stream/doc.h"

enum { MIX_STEPS = 64, MIX_TIMES = 1000 };

struct mix_repeat {
    const char *field; /* NULL: every document once */
    double from[MIX_STEPS];
    uint64_t times[MIX_STEPS];
    int n;
};

/* list: "1:1,2:2,100:8": from a number on so many times (0 to MIX_TIMES), the numbers rising; NULL: FineWeb-2's.  ERR_ARG. */
int mix_repeat_parse(struct mix_repeat *r, const char *field, const char *list, struct err *e);
/* *times of a document: once below the first step, and without the field (*known is false then).  ERR_FORMAT: the field is no
 * number. */
int mix_repeat_times(const struct mix_repeat *r, struct doc *d, uint64_t *times, bool *known, struct err *e);

/* A JSON number of at most 1e15 that is not negative. */
bool mix_number(struct span raw, double *value);
#endif
