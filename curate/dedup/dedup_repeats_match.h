/* curate/dedup/dedup_repeats_match.h -- which of the candidates of curate/dedup/dedup_repeats.c are repeats: pieces of the
 * corpus, on disk in parts by their keys, and each part looked through in memory.
 */
#ifndef CURATE_DEDUP_REPEATS_MATCH_H
#define CURATE_DEDUP_REPEATS_MATCH_H

#include <pthread.h>

#include "base/spill.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/dedup_repeats.h"

/* Passages that begin one after the other; behind it stand their elements, so many and length - 1 more.  Equal passages
 * are in pieces of equal keys. */
struct repeats_piece {
    uint64_t at, key, passages; /* at: where in the corpus, in elements */
};

struct repeats_match {
    struct repeats_conf c;
    int jobs, bits;    /* parts are by the first bits of keys */
    size_t most;       /* passages of a piece */
    size_t room;       /* bytes for a thread */
    struct spill *part;
    uint64_t *passages; /* of each part */
    struct members marks; /* pairs: passages that are struck, where they begin and how many there are behind one another */
    uint64_t candidates, parts, slices; /* parts: that have any; slices: of all of them */
    /* while parts are looked through */
    int next_part;
    pthread_mutex_t lock; /* of marks */
};
/* Start with zeroes.  pieces, passages: at most so many.  Close it in any case.  ERR_NOMEM, ERR_IO. */
int repeats_match_open(struct repeats_match *m, const struct repeats_conf *c, uint64_t pieces, uint64_t passages, int jobs,
                       struct err *e);
void repeats_match_close(struct repeats_match *m);
/* Passages at `at` in the corpus, at most m->most, and their elements.  In the order of the corpus. */
int repeats_match_add(struct repeats_match *m, const struct repeats_piece *p, const void *elements, struct err *e);
/* Once, after the last: finds the marks and sorts them.  Some may be there twice. */
int repeats_match_find(struct repeats_match *m, struct err *e);
#endif
