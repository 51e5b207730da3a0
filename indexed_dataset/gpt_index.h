/* indexed_dataset/gpt_index.h -- the three indices of one GPTDataset: one split of one
 * indexed dataset.  See gpt_dataset.h. */
#ifndef INDEXED_DATASET_GPT_INDEX_H
#define INDEXED_DATASET_GPT_INDEX_H

#include "base/mem.h"
#include "indexed_dataset/gpt_dataset.h"
#include "indexed_dataset/idx_read.h"
#include "indexed_dataset/npy.h"

enum { GPT_NAME_MAX = 80 };

struct gpt_index_conf {
    const struct gpt_conf *c;
    enum gpt_split split;
    const char *path;   /* as given: it is part of the name in the cache */
    double lo[GPT_SPLITS], hi[GPT_SPLITS]; /* of c->split; unused when that is NULL */
    int64_t samples;    /* at least; -1: as many as one epoch has */
};

struct gpt_index {
    struct idx *x;
    struct idx *mask;    /* which tokens have a loss (loss_mask.h); NULL: all */
    struct npy document; /* sequence numbers, in the order they are laid end to end */
    struct npy sample;   /* n + 1 rows: (place in document, token in it) where it begins */
    struct npy shuffle;  /* n: the sample drawn at each turn */
    int64_t n;
    struct buf description; /* of the dataset, as Megatron writes it */
};

/* Opens the dataset and takes its indices from the cache, or builds them and puts them
 * there.  *none becomes true, and nothing is open, when the split has no sequence. */
int gpt_index_open(struct gpt_index *g, const struct gpt_index_conf *c, bool *none, struct err *e);
void gpt_index_close(struct gpt_index *g);
/* The tokens of sample i, in the order drawn. */
int gpt_index_get(const struct gpt_index *g, int64_t seq_length, int64_t i, int32_t *tokens,
                  struct err *e);
/* Likewise of each 1 where it has a loss, else 0. */
int gpt_index_get_mask(const struct gpt_index *g, int64_t seq_length, int64_t i, int32_t *mask, struct err *e);

/* The documents of sample i; part: what the pieces say of theirs. */
int gpt_index_pieces(const struct gpt_index *g, int part, int64_t seq_length, int64_t i, sample_piece_fn *fn, void *arg,
                     struct err *e);

/* ---- gpt_build.c ---- */

/* What follows from the sizes alone. */
struct gpt_plan {
    int64_t first, docs;  /* the sequences of the split */
    int64_t tokens;       /* in one epoch */
    int64_t epochs;
    int64_t n;            /* samples in all */
    int64_t head;         /* samples shuffled apart from those of the last epoch, or n */
    bool separate;        /* the last epoch is shuffled by itself */
    enum npy_type sample_type, shuffle_type;
};
/* Builds the three arrays, with two threads if c->jobs > 1: holds them, and meanwhile 4 bytes more for
 * each document and epoch. */
int gpt_build(struct gpt_index *g, const struct gpt_plan *p, const struct gpt_conf *c, struct err *e);

/* ---- gpt_describe.c: Megatron's descriptions, the text that Python's json.dumps(indent=4)
 * gives; their MD5 names the files in the cache ---- */

/* Appends the description of one dataset, its lines after the first indented by indent. */
int gpt_describe(struct buf *b, const struct gpt_index_conf *c, int indent, struct err *e);
/* Of a blend: the weights are doubles, or, with size < 0, whole numbers. */
int gpt_describe_blend(struct buf *b, const struct gpt_index_conf *parts, int n,
                       const double *weights, int64_t size, struct err *e);

/* ---- the cache: a folder of NAME-description.txt and NAME-KIND.npy ---- */

/* NAME: MD5 of the description, class and split. */
void gpt_cache_name(char name[GPT_NAME_MAX], struct span description, const char *class,
                    enum gpt_split split);
/* True if NAME-description.txt is there and no file of the n given ones is newer. */
bool gpt_cache_has(const char *dir, const char *name, const char *const *prefix, int n);
int gpt_cache_load(const char *dir, const char *name, const char *kind, struct npy *a,
                   enum npy_type type, int64_t rows, int64_t cols, struct err *e);
int gpt_cache_save(const char *dir, const char *name, const char *kind, const struct npy *a,
                   struct err *e);
/* Last, when the arrays are there. */
int gpt_cache_describe(const char *dir, const char *name, struct span description, struct err *e);
/* Waits until no other process builds NAME, and keeps the others waiting: for gpt_cache_unlock().  -1
 * where it cannot be done (no folder, no locks in this file system): then each builds for itself. */
int gpt_cache_lock(const char *dir, const char *name);
void gpt_cache_unlock(const char *dir, const char *name, int lock);
/* Makes the folder and those above it. */
int gpt_cache_make(const char *dir, struct err *e);
#endif
