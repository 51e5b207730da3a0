/* curate/dedup/rank_group.h -- near-duplicates among documents of large linked groups, decided by all ranks together.
 *
 * The documents are dealt to the ranks, whatever group they are of, and each rank is home to those that it was given.
 * They are decided in order, a batch at a time.  The rare shingles by which documents can be alike
 * (curate/dedup/dedup_prefix.h) each have an owner among the ranks, which keeps the lists of the documents that have
 * them and stay.  For each document of a batch the owners tell its home whom it can be like; the home asks the others'
 * homes for what it needs to compare them: first keys and sketches, then shingles.  What is like none of those that
 * stayed before is held against the rest of its batch in the same way, and which of these stay all ranks work out alike.
 * Once an owner's lists have the memory that they may take, all documents yet to come are held against them, and
 * they begin again.
 *
 * What comes out is what one document after the other would give, by falling rank, then by number: that of
 * curate/dedup/dedup_blocks.h.
 */
#ifndef CURATE_RANK_GROUP_H
#define CURATE_RANK_GROUP_H

#include "curate/stream/rank_exchange.h"

struct rank_group_conf {
    struct comm *c;
    const char *dir;     /* for temporary files */
    int bands, rows;
    size_t hash_bytes;   /* of shingles in notes */
    double threshold;
    bool last;           /* the last of those alike stays, not the one of the highest rank */
    int64_t memory;      /* bytes */
    int64_t report_over; /* clusters of more documents are warned of; 0: none */
};
struct rank_group;
int rank_group_open(struct rank_group **g, const struct rank_group_conf *conf, struct err *e);
void rank_group_close(struct rank_group *g);
/* The next document of which this rank is home, by its note (curate/dedup/dedup_fuzzy_note.h); its number no other
 * document of any rank has.  outside: it stays in any case, and comes first. */
int rank_group_add(struct rank_group *g, struct span note, bool outside, uint64_t number, struct err *e);
/* By all ranks, after the last.  *sent grows by the bytes that went to others. */
int rank_group_decide(struct rank_group *g, uint64_t *sent, struct err *e);

/* What became of the nth document that was added. */
struct rank_fate {
    bool stays;
    uint64_t size;    /* of one that stays: the documents of its cluster */
    float similarity; /* of one that does not, with its survivor */
    struct span survivor;
};
int rank_group_fate(const struct rank_group *g, uint64_t n, struct rank_fate *f, struct arena *a, struct err *e);

/* Of this rank's documents. */
struct rank_group_counts {
    uint64_t documents, candidates, compared, clusters;
    uint64_t largest, largest_number; /* documents of the largest cluster; the number of its survivor */
    uint64_t largest_of;              /* as it was added */
};
void rank_group_counts(const struct rank_group *g, struct rank_group_counts *to);
int rank_group_id(const struct rank_group *g, uint64_t n, struct arena *a, struct span *id, struct err *e);
#endif
