/* bench/content/boost.h -- gradient boosting of oblivious trees over features of a byte. */
#ifndef BENCH_CONTENT_BOOST_H
#define BENCH_CONTENT_BOOST_H

#include "curate/html/content_model.h"

/* Columns of features, `rows` bytes each, with the share of each row that is true (y) and its weight; weight 0: not
 * learned from. */
struct boost_data {
    uint32_t rows;
    const uint8_t *x;
    const float *y, *w;
};

struct boost_conf {
    int depth, trees;
    float rate, lambda;          /* of a leaf's value; added to its second derivative */
    float row_share, feature_share; /* that a tree sees */
    uint32_t features;
    uint64_t seed;
};

/* Trains a forest, malloced.  The same data, conf and seed give the same trees, for any number of threads. */
struct content_forest boost_train(const struct boost_data *d, const struct boost_conf *c);
void boost_free(struct content_forest *f);
#endif
