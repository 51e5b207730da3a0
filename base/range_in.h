/* base/range_in.h -- bytes by their place, of one file or object after another: what indexes and lists of records ask for.
 *
 * A reader has one file or address in hand and keeps its connection when it turns to another of the same host.  Nothing is read
 * ahead.  A pace, shared by readers of any threads, bounds how much they ask for in a second.  What was read is counted.
 */
#ifndef BASE_RANGE_IN_H
#define BASE_RANGE_IN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct range_in_pace {
    pthread_mutex_t lock;
    double bytes, requests;         /* a second, of all readers; 0: no bound */
    double bytes_free, request_free; /* when the next may be asked for */
};
void range_in_pace_start(struct range_in_pace *p, double bytes, double requests);

/* One thread at a time uses it. */
struct range_in;
/* Without a file in hand.  pace is the caller's, or NULL.  ERR_NOMEM. */
int range_in_new(struct range_in **r, struct range_in_pace *pace, struct err *e);
void range_in_free(struct range_in *r);

/* Takes a file or address in hand, which the user named.  An address is not asked for anything yet.  ERR_IO, ERR_NOMEM. */
int range_in_turn(struct range_in *r, const char *name, struct err *e);
/* The same of the file `name` in folder ("": the working one) or below, as file_open_beneath. */
int range_in_turn_beneath(struct range_in *r, const char *folder, const char *name, struct err *e);
/* What messages call it: of an address what stands before its query. */
const char *range_in_name(const struct range_in *r);
/* Its bytes; of an address a byte is asked for if it has not answered yet.  ERR_IO, ERR_UNSUPPORTED (the server does not say). */
int range_in_size(struct range_in *r, uint64_t *size, struct err *e);

/* The n bytes from `at` on are about to be read, in order: one request to a server. */
int range_in_ask(struct range_in *r, uint64_t at, uint64_t n, struct err *e);
/* The next of those, at most n; 0: the file ends, or all that was asked for is read.  ERR_IO. */
int64_t range_in_next(struct range_in *r, void *p, size_t n, struct err *e);
/* The n bytes from `at` on, all of them: asked for and read.  ERR_FORMAT: the file ends before. */
int range_in_read(struct range_in *r, uint64_t at, void *p, size_t n, struct err *e);

/* What was read and asked for so far, of all files. */
uint64_t range_in_bytes(const struct range_in *r);
uint64_t range_in_requests(const struct range_in *r);

#ifdef __cplusplus
}
#endif
#endif
