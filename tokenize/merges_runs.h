/* tokenize/merges_runs.h -- the inside of merges.c: what a round takes from a file of words (merges.h).
 */
#ifndef TOKENIZE_MERGES_RUNS_H
#define TOKENIZE_MERGES_RUNS_H

#include "tokenize/merges_round.h"

/* Reads the file for the different runs that the first pairs of the heap make, whose ranks are in the table, and
 * puts them into t->words in the order in which they first come.  Takes so many pairs off the heap that they
 * fit; none is left if the runs of the first alone do not. */
int merges_take_runs(struct merges_state *t, struct err *e);
/* A word_file_renew: puts what the runs have become into a word of the file. */
uint64_t merges_put_runs(void *trainer, uint32_t *tokens, uint64_t n);

#endif
