/* curate/stream/ranks.h -- ranks that share a stream of documents: who reads what, and how what they write
 * becomes one file.
 *
 * The documents of rank 0 come first, then those of rank 1, and so on; so inputs are shared in whole ranges,
 * and rank 0 writes what the others send it, one rank after the other.
 */
#ifndef CURATE_RANKS_H
#define CURATE_RANKS_H

#include "comm/comm.h"
#include "curate/stream/pass.h"

/* Inputs [*first, *first + *count) are this rank's: whole files, about as many bytes for each; none of them
 * may be a pipe.  ERR_ARG, ERR_IO. */
int ranks_share(const struct comm *c, char *const *inputs, int n, int *first, int *count, struct err *e);

/* The name of a rank's own file: its number in five digits for the first * in name, which has one.  ERR_ARG: too long. */
int ranks_own_name(char own[4096], const char *name, int rank, struct err *e);

/* A sink (ranks_put) of any rank but 0: sends bytes of one kind, 0 .. kinds - 1, to rank 0. */
struct rank_stream {
    struct comm *c;
    int kind;
};
int ranks_put(void *stream, struct span s, struct err *e);
/* This rank sends no more. */
int ranks_end(struct comm *c, struct err *e);
/* Rank 0: puts what each sends, one after the other, to the sink of its kind.  Waits as long as it takes. */
int ranks_collect(struct comm *c, const struct sink *to, int kinds, struct err *e);
#endif
