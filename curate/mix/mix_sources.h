/* curate/mix/mix_sources.h -- the sources of a mix, and how much of each is taken. */
#ifndef CURATE_MIX_SOURCES_H
#define CURATE_MIX_SOURCES_H

#include "base/spill.h"
#include "curate/mix/mix.h"

struct mix_source {
    struct span name;
    double weight;
    char **files;
    int n_files;
    size_t room; /* for files */
    int line; /* of the plan; 0: of the command line */
    /* Counted: documents of the first split, those of others, and what they hold. */
    uint64_t docs, held, size, bytes;
    uint64_t lines, held_lines; /* bytes of their lines */
    uint64_t begin, end; /* of its picks in the spill */
    /* Decided: all documents so many times, and once more those whose pick is below. */
    uint64_t epochs, below;
    double target;
    uint64_t taken_docs, taken_size, taken_bytes;
};

/* A document's chance to be in the part that is not whole, and its size. */
struct mix_pick {
    uint64_t pick, size;
};

struct mix_sources {
    struct mix_source *v;
    int n;
    struct arena bytes;
};
/* From the plan, the options and the operands.  ERR_ARG, ERR_FORMAT with the plan's line. */
int mix_sources_read(struct mix_sources *s, const struct mix_conf *c, struct err *e);
/* Decides epochs and below of every source from the picks of all documents.  Never more
 * than the target; less by less than the document that comes next. */
int mix_sources_decide(struct mix_sources *s, const struct mix_conf *c, const struct spill *picks, struct err *e);
void mix_sources_free(struct mix_sources *s);
#endif
