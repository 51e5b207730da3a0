/* curate/dedup/dedup_against.h -- what a run is held against: files of documents, and indexes of near-duplicates, of which
 * only the documents are read that share a band with one of the run's.
 *
 * First the keys of the run's documents are looked up in all indexes; every key that is there is a hit.  Then hits are
 * sorted, which puts those of a document together, and for each document a note is made as the stage makes them
 * (curate/dedup/dedup_fuzzy_note.h): of its keys those that were hit, and its shingles, unless nothing is verified, made
 * again from its text or read from a set file.
 */
#ifndef CURATE_DEDUP_AGAINST_H
#define CURATE_DEDUP_AGAINST_H

#include "base/opt.h"
#include "curate/dedup/dedup_index.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/dedup_store.h"
#include "curate/dedup/minhash_preset.h"

struct dedup_against;
struct dedup_against_conf {
    const char *kind;                  /* of indexes */
    const struct dedup_bands *shape;   /* of records */
    const struct minhash_preset *preset;
    uint32_t shingle_seed;             /* as shingler_new has it */
    bool verify;                       /* shingles are wanted */
};
/* Tells the files in order.  A name of the list that is none may be a pattern of several (glob). */
typedef int against_name(void *to, const char *path, struct err *e);
int dedup_against_names(const struct opt_list *files, against_name *tell, void *to, struct err *e);

/* Opens the files, told by dedup_against_names.  c's pointers outlive it.  ERR_IO: one
 * cannot be opened, or what an index needs to have the shingles again is not there; ERR_FORMAT: an index is damaged or of
 * another kind. */
int dedup_against_open(struct dedup_against **a, const struct opt_list *files, const struct dedup_against_conf *c, struct err *e);
void dedup_against_close(struct dedup_against *a); /* NULL is fine */
/* There is something to be looked up. */
bool dedup_against_has_index(const struct dedup_against *a);

/* A key of the run's that an index has: which index, document and band; and the key. */
struct against_hit {
    uint64_t place, key;
};
typedef int against_taker(void *to, const struct against_hit *x, struct err *e);
/* Looks up the keys of parts, files of struct store_key that are flushed.  A hit may be given more than once, in any order,
 * by one thread at a time. */
int dedup_against_find(struct dedup_against *a, const struct spill *parts, int n, int64_t memory, int jobs,
                       against_taker *take, void *to, struct err *e);
/* Which of so many ranks is to have the hit: the ranks' documents are, one rank after the other, in the order of one. */
int dedup_against_owner(const struct dedup_against *a, const struct against_hit *x, int ranks);
/* Gives the notes of all documents that were hit and, of files of documents, all notes: those that are this rank's of so
 * many, in the order of the files.  hits: pairs of place and key, sorted.  st makes notes of documents. */
int dedup_against_give(struct dedup_against *a, const struct members *hits, const struct stage *st, int rank, int ranks,
                       note_taker *take, void *to, struct err *e);
#endif
