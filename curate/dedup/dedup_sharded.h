/* curate/dedup/dedup_sharded.h -- inside deduplication by ranks (curate/dedup/dedup_ranks.h) only: its state, and
 * what its two files share. */
#ifndef CURATE_DEDUP_SHARDED_H
#define CURATE_DEDUP_SHARDED_H

#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/rank_group.h"
#include "curate/dedup/rank_links.h"

/* Bytes read at a time, and by how much of the memory files' buffers are. */
enum { SHARDED_READ = 1 << 18, SHARDED_BUFFERS = 16 };

struct sharded {
    struct stage inner; /* decides what came to this rank */
    struct comm *c;
    bool fuzzy;
    const char *dir, *clusters, *index, *pairs, *report, *cluster_size;
    struct opt_list against;
    double threshold; /* fuzzy */
    bool places;      /* fuzzy: documents are named with them */
    int64_t memory;
    bool bounded;          /* by the user */
    bool begun;            /* exact: --against has been read, whose documents come first */
    uint64_t n;            /* documents of this rank, those of --against among them, */
    struct rank_docs docs; /*   and of the others */
    struct own { uint64_t first, end; } own, *owns; /* of this rank and of each: which of these are not of --against */
    struct dedup_against *others; /* fuzzy: --against, whose documents come last */
    struct spill notes;    /* fuzzy, and for an index: of all of them */
    struct spill ids;      /* for clusters */
    struct spill route;    /* to which rank each goes, 32 bits */
    struct spill numbers;  /* fuzzy: over all ranks, of what came here for the stage */
    struct rank_group *group; /* decides what is of large groups, with all ranks; NULL: the stage does that too */
    struct spill in_group; /* of each rank's own that came here: a byte, whether it is in group */
    struct rank_lines *pair_lines, *report_lines; /* of what was decided here */
    struct rank_files out; /* exact: notes; fuzzy: keys */
    struct rank_files answers;
    struct rank_files hits; /* fuzzy: in indexes */
    struct spill_reader route_in, *answer_in;
    uint64_t *came; /* how many from each rank */
    uint64_t sent, shingle_bytes, stay;
    struct dedup_fuzzy_counts counts; /* of all ranks */
    char *largest_id;
    struct file_group files; /* rank 0: what it has written beside the documents */
};

struct answer {
    double value, threshold; /* of one that stays the first is what --cluster-size says; 0: 1 */
    float similarity;
    uint32_t dropped;
    uint64_t id_n; /* of the survivor, behind this */
};

/* Of the next document of this rank that is not outside; survivor in a. */
int sharded_next_answer(struct sharded *s, struct answer *x, struct span *survivor, struct arena *a, struct err *e);

/* Lines that ranks decide become the file of that name, which rank 0 writes, by their documents over all ranks. */
struct rank_lines;
/* NULL: no file. */
int rank_lines_open(struct rank_lines **l, const struct sharded *s, const char *path, struct err *e);
/* As a taker's function, arg being the struct rank_lines; after s->numbers is flushed. */
int rank_lines_take(void *arg, uint64_t doc, struct span line, struct err *e);
/* By all ranks. */
int rank_lines_write(struct rank_lines *l, struct sharded *s, struct err *e);
void rank_lines_close(struct rank_lines *l);

/* After all answers are here; by all ranks.  counts, stay. */
int sharded_count(struct sharded *s, struct err *e);
/* Needs the answers open. */
int sharded_write_clusters(struct sharded *s, struct err *e);
int sharded_write_index(struct sharded *s, struct err *e);
#endif
