/* curate/crawl/crawl_zipnum.h -- members of a ZipNum index that can hold keys, by its cluster.idx; they are not read here.
 *
 * A line of cluster.idx is "KEY TIMESTAMP \t FILE \t OFFSET \t LENGTH ...", in the order of keys, FILE being in its folder.
 */
#ifndef CURATE_CRAWL_ZIPNUM_H
#define CURATE_CRAWL_ZIPNUM_H

#include "base/range_in.h"
#include "curate/crawl/crawl_key.h"

/* Members that stand one behind the other, as many as are read together.  Zeroed to start. */
struct crawl_run {
    char *file; /* its path or address */
    uint64_t offset, bytes; /* where they are; all of them */
    uint64_t *length; /* as stored, a member each */
    size_t n, cap;
};

struct crawl_zipnum;
/* Whether a file begins as a cluster.idx does. */
bool crawl_is_zipnum(struct span start);
/* name: of cluster.idx.  keys and pace outlive it.  Errors of range_in_turn and range_in_size. */
int crawl_zipnum_open(struct crawl_zipnum **z, const char *name, const struct crawl_keys *keys, struct range_in_pace *pace,
                      struct err *e);
void crawl_zipnum_close(struct crawl_zipnum *z);
/* The next members: 1, or 0 at the end.  ERR_FORMAT: a line of cluster.idx is damaged; the next call goes on behind it.  Others
 * end reading. */
int crawl_zipnum_next(struct crawl_zipnum *z, struct crawl_run *run, struct err *e);
void crawl_run_free(struct crawl_run *run);
uint64_t crawl_zipnum_bytes(const struct crawl_zipnum *z);
uint64_t crawl_zipnum_requests(const struct crawl_zipnum *z);
#endif
