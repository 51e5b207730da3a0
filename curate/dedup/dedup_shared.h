/* curate/dedup/dedup_shared.h -- the passages that texts of a cluster share: is it one text, or a template? */
#ifndef CURATE_DEDUP_SHARED_H
#define CURATE_DEDUP_SHARED_H

#include "base/mem.h"
#include "base/err.h"

/* Texts are looked at to that byte; passages have at least so many bytes; so many are told. */
enum { SHARED_LOOK = 1 << 18, SHARED_LEAST = 32, SHARED_MOST = 5 };

struct shared {
    struct span passage[SHARED_MOST]; /* in the first text, longest first */
    int n;
    double share; /* bytes of the first text that all others have in such passages, of all its bytes */
};

/* What of text stands in each of other[0 .. n) as well.  Texts are valid UTF-8.  ERR_NOMEM. */
int shared_find(struct span text, const struct span *other, int n, struct shared *s, struct err *e);
#endif
