/* bench/content/trainer.h -- what the parts of training share. */
#ifndef BENCH_CONTENT_TRAINER_H
#define BENCH_CONTENT_TRAINER_H

#include "bench/content/labels.h"
#include "curate/html/content_model.h"
#include "curate/html/html_meta.h"

enum { NO_FOLD = -1 };

/* A token on a page: how much of the text that it stands for is content. */
struct seen {
    uint32_t hash;
    float yes, all;
};

struct page_tokens {
    struct seen *v;
    uint32_t n, cap;
};

/* All that reading a page takes. */
struct desk {
    struct html_names names;
    struct content_words words;
    struct html_tree tree;
    struct html_meta meta;
    struct content_page page;
    uint8_t *skip;
    size_t cap_skip;
    struct buf base;
    struct span title;
};

struct content_trainer {
    struct sample *sample;
    uint32_t n, rows;
    struct page_tokens *tokens;
    float *domain_weight; /* by sample */
    struct content_lexicon lexicon;
    float yes[CONTENT_LEXICON_SLOTS], no[CONTENT_LEXICON_SLOTS];
    uint8_t *x;      /* CONTENT_FEATURES columns of rows */
    uint8_t *pages;  /* CONTENT_PAGE_FEATURES columns of n */
    float *y, *w, *used;
    struct desk desk;
};

/* Reads page s into the desk, with what a lexicon knows.  Exits when memory is out. */
void desk_read(struct desk *d, const struct sample *s, const struct content_lexicon *l);
/* Labels the blocks of all pages and notes their tokens; makes room for features. */
void label_all(struct content_trainer *t);
/* Learns the lexicon from the pages of all folds but one (NO_FOLD: all). */
void learn_lexicon(struct content_trainer *t, int without);
/* Reads page i; the lexicon knows nothing from pages of its domain then. */
void read_unknown(struct content_trainer *t, uint32_t i, int without);
/* Writes the model as curate/html/content_model.c includes it. */
void write_model(const struct content_model *m, const char *path);
#endif
