/* curate/mix/mix_out.h -- where mixed documents go: splits, shards and their names. */
#ifndef CURATE_MIX_OUT_H
#define CURATE_MIX_OUT_H

#include "base/err.h"
#include "base/mem.h"
#include "base/run_files.h"

enum { MIX_MAX_SPLITS = 16 };

struct mix_splits {
    char name[MIX_MAX_SPLITS][64];
    double until[MIX_MAX_SPLITS]; /* of [0, 1) */
    int n;                        /* 1 without splits */
};
/* "train=0.98,valid=0.01,test=0.01"; NULL: one split without a name.  ERR_ARG unless the
 * fractions are above 0 and add up to 1. */
int mix_splits_parse(struct mix_splits *s, const char *text, struct err *e);
/* The split of a number in [0, 1). */
int mix_splits_at(const struct mix_splits *s, double at);

struct mix_out_conf {
    const char *pattern; /* %s: split, %05d: shard, %%; NULL or "-": standard output */
    const struct mix_splits *splits;
    int64_t shards;      /* so many, of equal numbers of documents; 0: by size */
    int64_t shard_size;  /* bytes before compression; 0: one shard */
};
struct mix_out;
/* Checks the pattern.  ERR_ARG. */
int mix_out_open(struct mix_out **o, const struct mix_out_conf *c, struct err *e);
/* Adds all names that splits and shards make of the pattern (of shards by size, whose number is not known, those that are
 * there already). */
int mix_out_names(const struct mix_out_conf *c, struct run_files *files, struct err *e);
/* Before the first document: how many each split will get. */
void mix_out_expect(struct mix_out *o, const uint64_t docs[MIX_MAX_SPLITS]);
/* The next document of a split, a line with its newline. */
int mix_out_put(struct mix_out *o, int split, struct span line, struct err *e);
/* Makes all files whole, and those that are empty. */
int mix_out_finish(struct mix_out *o, struct err *e);
/* Appends the list of files as JSON: name, split, documents, bytes. */
int mix_out_list(const struct mix_out *o, struct buf *json);
/* Removes what is not whole. */
void mix_out_close(struct mix_out *o);
#endif
