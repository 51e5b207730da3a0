/* curate/dedup/rank_links.h -- which documents are linked by shared bands, when ranks share them.
 *
 * Each key has an owner among the ranks; there documents that share it become edges
 * (curate/dedup/dedup_links.h, join).  Then each document learns the least one that it is linked with:
 * parents are pointers between documents on any ranks; in turn, trees are made flat (every document
 * asks the parent of its parent) and of each edge between two roots the greater is put below the smaller
 * (Shiloach and Vishkin 1982), until no edge joins two trees.
 *
 * Documents are numbered over all ranks: those of rank 0, then those of rank 1, ...
 */
#ifndef CURATE_RANK_LINKS_H
#define CURATE_RANK_LINKS_H

#include "curate/stream/rank_exchange.h"

/* Where the documents are: those of rank r have numbers first[r] .. first[r + 1] - 1. */
struct rank_docs {
    uint64_t *first; /* size + 1 */
    uint64_t n;      /* of this rank */
};
int rank_docs_open(struct rank_docs *d, struct comm *c, uint64_t n, struct err *e);
void rank_docs_close(struct rank_docs *d);

/* key is spread evenly, and equal only where a band of one number is; doc is this rank's own number. */
struct rank_key {
    uint64_t key, doc;
};
int rank_key_owner(const struct comm *c, uint64_t key);

/* In root[document of this rank]: linked with others; and these are many. */
#define RANK_LINKED (UINT64_C(1) << 63)
#define RANK_LARGE (UINT64_C(1) << 62)

struct rank_link_plan {
    struct comm *c;
    const struct rank_docs *docs;
    const char *dir;
    int64_t memory; /* beside root */
    int jobs;
    uint64_t large; /* a group of more documents is */
};
/* keys: files of struct rank_key for their owners, flushed; closed by this.  root[n] becomes the least document
 * that each is linked with, and RANK_LINKED if there is one other, and RANK_LARGE.  *sent: bytes to other ranks. */
int rank_links_find(const struct rank_link_plan *p, struct rank_files *keys, uint64_t *root, uint64_t *sent,
                    struct err *e);
#endif
