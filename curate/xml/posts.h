/* curate/xml/posts.h -- the posts of a Stack Exchange dump, put together: a question with its answers.
 *
 * In Posts.xml posts stand in the order in which they were written, an answer anywhere behind its question.  They
 * go to a nameless temporary file of about the size of Posts.xml, in $TMPDIR or /tmp; what is known of each (40 bytes)
 * is sorted in runs in a second one, and then merged.  Memory: POSTS_RUN entries, and a reader of
 * POSTS_READ bytes for each run (for the 60 million posts of Stack Overflow about 60 runs: 44 MiB).
 */
#ifndef CURATE_POSTS_H
#define CURATE_POSTS_H

#include "base/err.h"
#include "base/mem.h"

enum { POSTS_RUN = 1 << 20, POSTS_READ = 64 << 10 };

/* A post, as far as order goes. */
struct post {
    uint64_t group;  /* the question's id, or its own */
    uint64_t id;
    uint64_t offset; /* of its row in the dump */
    uint64_t at;     /* of its bytes in the spill */
    uint32_t n;
    int32_t rank;    /* INT32_MIN for what is no answer, then -score */
};

struct posts;
/* An empty set.  ERR_NOMEM, ERR_IO. */
int posts_new(struct posts **p, struct err *e);
void posts_free(struct posts *p);
/* Adds a row; its place in the spill is set here. */
int posts_add(struct posts *p, struct post post, struct span row, struct err *e);
/* After the last was added: the next post of all in order of group, rank, id, offset, without its bytes: 1; 0 at the end. */
int posts_peek(struct posts *p, struct post *post, struct err *e);
/* Reads that post's n bytes, unless to is NULL, and moves behind it. */
int posts_take(struct posts *p, char *to, struct err *e);
#endif
