/* curate/dedup/rank_sets.h -- documents dealt to ranks, and the similarity of two that lie on different ranks.
 *
 * Each rank has the notes of its own documents on disk, and answers what others ask of them.
 */
#ifndef CURATE_RANK_SETS_H
#define CURATE_RANK_SETS_H

#include "curate/dedup/dedup_bands.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/dedup_sets.h"
#include "curate/stream/rank_exchange.h"

struct rank_sets {
    struct comm *c;
    const char *dir;
    int64_t memory; /* of buffers while ranks exchange something */
    double threshold;
    struct dedup_bands shape; /* for notes; holds none */
    int least;                /* places in which sketches must agree */
    struct spill notes, *note_file; /* each padded to 8 bytes */
    struct set_files files;   /* the notes */
    struct set_ref *set;      /* of each note, in notes */
    size_t n, cap;
    struct dedup_compare *compare;
    uint64_t candidates, compared; /* pairs looked at; of them, those whose shingles were */
    uint64_t sent;                 /* bytes to other ranks */
};
/* c, dir, memory, threshold and shape are set.  Close it in any case. */
int rank_sets_open(struct rank_sets *s, struct err *e);
void rank_sets_close(struct rank_sets *s);
/* The next document of this rank; *rank becomes its note's.  ERR_IO: the note has no shingles, or is none. */
int rank_sets_add(struct rank_sets *s, struct span note, uint64_t *rank, struct err *e);
/* After the last, before the first that is read. */
int rank_sets_flush(struct rank_sets *s, struct err *e);
/* The note of document n, of this rank, in b, which is cleared first. */
int rank_sets_note(const struct rank_sets *s, uint64_t n, struct buf *b, struct err *e);

/* A document of any rank. */
static inline uint64_t rank_ref(int home, uint64_t n) { return (uint64_t)home << 32 | n; }
static inline int rank_ref_home(uint64_t ref) { return (int)(ref >> 32); }

/* This rank's document number doc[slot] and another one. */
struct rank_pair {
    uint64_t ref, place; /* the other; place is the caller's */
    uint32_t slot, zero[3];
};
/* Told of a pair with the similarity; id: of the other, valid during the call. */
typedef int rank_similar(void *arg, const struct rank_pair *p, float similarity, struct span id, struct err *e);
/* By all ranks: compares the pairs of a spill that are candidates (they share a band), some of them more than once if they are
 * there more than once. */
int rank_sets_verify(struct rank_sets *s, const uint32_t *doc, size_t docs, struct spill *pairs, rank_similar *take, void *arg,
                     struct err *e);
#endif
