/* curate/report/sketch.h -- the distribution of numbers in bounded memory.
 *
 * Up to SKETCH_EXACT numbers are kept as they are.  Beyond that they are counted in bins:
 * each power of two is cut into 128 equal parts, so a quantile is off by at most 1/256 of
 * itself, and integers below 256 are exact.  Magnitudes below 2^-32 count as 0, those from
 * 2^64 on as 2^64.  At most 24,577 bins.
 */
#ifndef CURATE_SKETCH_H
#define CURATE_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SKETCH_EXACT = 4096 };

/* Start with zeroes.  Numbers are added in an order that does not depend on threads; then
 * everything is the same for any number of them. */
struct sketch {
    uint64_t n;
    double min, max;
    double sum, sum_low; /* sum + sum_low: compensated (Neumaier) */
    bool broken;         /* a number that is no integer was added */
    double *exact;       /* the first numbers, while they are all */
    size_t cap;
    struct sketch_slot *slot; /* then the bins, hashed */
    size_t slots, used;
};

/* x must be finite.  ERR_NOMEM. */
int sketch_add(struct sketch *s, double x);
double sketch_mean(const struct sketch *s); /* NAN if there is none */
/* Are the quantiles exact? */
static inline bool sketch_is_exact(const struct sketch *s) { return s->n <= SKETCH_EXACT; }

/* Numbers in ascending order with how often they occur: those of a bin stand for one in its
 * middle (of integers: an integer). */
struct sketch_point {
    double x;
    uint64_t n;
};
/* *points is malloc'd; NULL if there are none.  ERR_NOMEM. */
int sketch_points(const struct sketch *s, struct sketch_point **points, size_t *n);
/* The smallest number that at least q of all are not above (nearest rank); NAN if there is none. */
double sketch_quantile(const struct sketch_point *points, size_t n, double q);
void sketch_free(struct sketch *s);
#endif
