/* curate/stream/spool.h -- documents put aside while a stage that must see them all makes up its mind.
 *
 * A piece is what one block left, as frames (curate/stream/feed.h).  Pieces are in order, and lie in several nameless files, so
 * that threads write them beside one another: a file takes one writer at a time.
 */
#ifndef CURATE_SPOOL_H
#define CURATE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct spool;
struct spool_piece {
    size_t file, n;
    uint64_t at;
};

/* In dir. */
int spool_open(struct spool **s, const char *dir, struct err *e);
void spool_close(struct spool *s); /* NULL is fine */
/* The next piece, of n bytes; one caller at a time. */
int spool_reserve(struct spool *s, size_t n, struct spool_piece *p, struct err *e);
/* Its bytes; any thread. */
int spool_write(const struct spool *s, const struct spool_piece *p, const void *bytes, struct err *e);
/* Bytes of all pieces. */
uint64_t spool_size(const struct spool *s);
/* Then, from the first piece on: false at the end. */
bool spool_next(struct spool *s, struct spool_piece *p);
int spool_read(const struct spool *s, const struct spool_piece *p, void *bytes, struct err *e);
#endif
