/* curate/dedup/rank_exchange.h -- moving records between ranks that share a collection, from disk to
 * disk, in bounded memory.
 *
 * Every function here is called by all ranks of the group.
 */
#ifndef CURATE_RANK_EXCHANGE_H
#define CURATE_RANK_EXCHANGE_H

#include "base/mem.h"
#include "base/spill.h"
#include "comm/comm.h"

/* Files for each rank; none: all closed. */
struct rank_files {
    struct spill *file;
    int n;
};
/* memory: of buffers, for all files.  Close it in any case. */
int rank_files_open(struct rank_files *f, const struct comm *c, const char *dir, int64_t memory, struct err *e);
int rank_files_flush(struct rank_files *f, struct err *e);
void rank_files_close(struct rank_files *f);

/* Takes bytes that rank `from` sent; whole records of RANK_RECORD bytes if all that it sends are. */
enum { RANK_RECORD = 16 };
typedef int rank_taker(void *to, int from, struct span bytes, struct err *e);
/* What is in file r of out, flushed, goes to rank r, in its order; out is closed.  *sent grows by the bytes
 * that went to others. */
int rank_exchange(struct comm *c, struct rank_files *out, int64_t memory, rank_taker *take, void *to, uint64_t *sent,
                  struct err *e);
/* Into file r of in what rank r sent. */
int rank_exchange_files(struct comm *c, struct rank_files *out, struct rank_files *in, int64_t memory, uint64_t *sent,
                        struct err *e);

/* Waits until all are here, however long that takes: before an exchange, after work that takes one
 * longer than another. */
int rank_meet(struct comm *c, struct err *e);
/* *any: true for a rank. */
int rank_any(struct comm *c, bool *any, struct err *e);
#endif
