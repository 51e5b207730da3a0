/* curate/html/content_model.h -- the models that say of what kind a page is and which of its blocks are content.
 *
 * Gradient-boosted trees over the features of curate/html/content_features.h, all of one depth with one test a level
 * ("oblivious"), so that a tree is a few comparisons of bytes for many blocks at once and a look into a table.  Sums are
 * of integers: the result is the same for every instruction set.  bench/content trains them and writes
 * curate/html/content_weights.inc.
 */
#ifndef CURATE_CONTENT_MODEL_H
#define CURATE_CONTENT_MODEL_H

#include "curate/html/content_features.h"

enum {
    CONTENT_ONE = 1024,      /* one unit of log odds */
    CONTENT_DEPTH = 6,       /* tests of a block's tree */
    CONTENT_KIND_DEPTH = 4,  /* of a page's */
    CONTENT_NODES_MAX = 500000 /* a page of more nodes is left to the rules: features take some 200 bytes a block */
};

/* Trees of one depth: test k of tree i asks whether feature[i * depth + k] > threshold[i * depth + k] and is bit k of
 * the number of the leaf in leaf[i << depth ..]. */
struct content_forest {
    int depth, n_trees;
    int32_t bias;
    const uint16_t *feature;
    const uint8_t *threshold;
    const int16_t *leaf;
};

struct content_model {
    struct content_lexicon lexicon;
    struct content_forest kind[CONTENT_KINDS], first, second;
};
/* The trained one: its trees are constant tables, its lexicon is filled. */
void content_model_init(struct content_model *m);
/* "main-" and its hash, 16 hexadecimal digits. */
extern const char content_model_name[];
/* XXH3 of trees and lexicon. */
uint64_t content_model_hash(const struct content_model *m);

extern const char *const content_kind_names[CONTENT_KINDS];

/* Of n columns of features, rows of stride bytes: the sum of the leaves of each in score. */
void content_forest_score(const struct content_forest *f, const uint8_t *feature, size_t stride, uint32_t n, int32_t *score);

/* What kind of page p is, with its features; fills CF_KIND.  *share: of 1000, how sure that is. */
enum content_kind content_model_kind(const struct content_model *m, struct content_page *p, int *share);

/* Fills CF_FIRST from p->score of stage 1. */
void content_first_features(struct content_page *p, const struct html_tree *t);

/* Scores blocks by both stages into p->score. */
void content_model_score(const struct content_model *m, struct content_page *p, const struct html_tree *t);

/* The lowest score that belongs to the content: the one for which the expected F1 of words is greatest. */
int32_t content_cut(const struct content_page *p);

/* Skips the blocks below cut, and the elements that have no other text.  CONTENT_NONE: all of them, for none is
 * likely, with a chance of .4.  CONTENT_UNKNOWN: no block is left of a page with hardly any text.  Spoils
 * p->node[].own. */
enum content_found { CONTENT_FOUND, CONTENT_NONE, CONTENT_UNKNOWN };
enum content_found content_keep_blocks(struct content_page *p, const struct html_tree *t, int32_t cut, uint8_t *skip);

/* Probability of a score, in 65536ths. */
uint32_t content_probability(int32_t score);
#endif
