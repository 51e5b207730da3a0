/* curate/stream/where_range.h -- whether any of many values can meet a condition, by what is known of them together: so parts of
 * an index are passed over without being read. */
#ifndef CURATE_WHERE_RANGE_H
#define CURATE_WHERE_RANGE_H

#include "curate/stream/where.h"

/* What some of them may do, as bits.  What has no such field fails a test of it. */
enum { WHERE_MAY_MEET = 1, WHERE_MAY_FAIL = 2, WHERE_MAY_BOTH = 3 };

/* Values that lie between two: of texts by bytes. */
struct where_range {
    enum where_type type; /* TEXT or NUMBER */
    struct span least, most;
    double least_number, most_number;
};
/* What values of a range may do at a test. */
int where_range_may(const struct where_node *test, const struct where_range *r);
/* What entries may do at a condition, when may tells what their fields may do at a test. */
int where_may(const struct where_node *n, int (*may)(void *arg, const struct where_node *test), void *arg);
#endif
