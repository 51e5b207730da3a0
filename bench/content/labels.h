/* bench/content/labels.h -- pages with known answers, and which of their blocks the answers hold. */
#ifndef BENCH_CONTENT_LABELS_H
#define BENCH_CONTENT_LABELS_H

#include "curate/html/content_features.h"

enum { FOLDS = 5 };
enum set { WCXB, SEGMENT, ARTICLE };

struct sample {
    char *id;
    enum set set;
    int kind;          /* enum content_kind; -1: not known */
    int fold;
    uint32_t domain;   /* hash */
    struct span html;  /* UTF-8 */
    char *gold;        /* WCXB, ARTICLE: the main text */
    char **with, **without; /* SEGMENT */
    int n_with, n_without;
    /* Of its blocks: */
    uint32_t n_blocks, first_row;
    float *y, *w;      /* the share that is content; how much that counts */
    uint32_t *words, *hits; /* as the scorer counts; of them in gold */
    uint32_t gold_words;
};

/* All pages of the three sets below folder (extraction), WCXB's unpacked below wcxb (wcxb-dev).  Exits when that fails. */
struct sample *samples_read(const char *folder, const char *wcxb, uint32_t *n);
/* Fills what is known of the blocks.  rules: by node, what the rules leave out, for pages of which only some strings are
 * known: where the rules keep all that must appear and nothing else that is known, they are believed. */
void sample_label(struct sample *s, const struct content_page *p, const struct html_tree *t, const uint8_t *skip,
                  const uint8_t *rules);
#endif
