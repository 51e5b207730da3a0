/* curate/stream/rank_exchange.h -- moving records between ranks that share a collection, from disk to
 * disk, in bounded memory.
 *
 * Every function that takes a group is called by all its ranks.
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

/* A record of such a file: bytes, before them a number and how many. */
struct parcel {
    uint64_t number, n;
};
int parcel_put(struct spill *to, uint64_t number, struct span bytes, struct err *e);
/* Of a note; rest: what follows it in a file, NULL if nothing does. */
int parcel_put_note(struct spill *to, uint64_t number, struct span note, const struct spill_part *rest, struct err *e);
/* Reads parcels one after the other, their bytes into note, aligned as a stage wants them. */
struct parcels {
    struct spill_reader in;
    struct buf note;
};
int parcel_note(struct parcels *p, const struct parcel *h, struct err *e); /* its header has been read */
int parcel_next(struct parcels *p, struct parcel *h, struct err *e);
/* As parcel_note, but of a long one (curate/stream/stage.h) only the head is read, and the rest stays where it is, in the file
 * that is read: *rest, which else is empty. */
int parcel_head(struct parcels *p, struct spill *file, const struct parcel *h, struct spill_part *rest, struct err *e);
void parcels_close(struct parcels *p);

/* Takes bytes that rank `from` sent; whole records if all that it sends have one size, a power of two up to RANK_RECORD. */
enum { RANK_RECORD = 64 };
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
