/* curate/stream/pass.h -- one pass of documents through some stages: the engine of the driver
 * (a pipe's command) and of a plan.
 *
 * Threads take blocks from a feed, make documents, take them through the stages, and pass
 * the write gate, where everything comes out in input order.  A pass can stop between two
 * blocks and go on: at such a place nothing is in flight, so what was written and counted
 * is exactly what the items so far gave.
 */
#ifndef CURATE_PASS_H
#define CURATE_PASS_H

#include "base/file.h"
#include "curate/stream/feed.h"
#include "curate/stream/flow.h"

/* Where bytes go, in order, one call at a time. */
struct sink {
    int (*put)(void *to, struct span s, struct err *e);
    void *to;
};
/* The put of a sink into a struct file_out. */
int sink_file(void *file_out, struct span s, struct err *e);

/* Where a pass stands, a block further each time. */
struct pass_now {
    struct source_where where; /* in its feed */
    uint64_t items;            /* that its feed has given */
    const struct flows *flows;
};

/* A tell (below) for what is one pass and no more: shows it. */
void pass_show(void *unused, const struct pass_now *now);

struct pass_conf {
    struct stage *stages;
    int n_stages, first, last; /* stages [first, last) run */
    /* The answer of the last stage comes later: the documents that it has seen are kept
     * as frames (curate/stream/feed.h), to be judged when they are read again.  It is asked to
     * commit, or where there is a sink for notes they go there instead. */
    bool later;
    const struct source *source; /* of the whole chain: names who rejects; NULL: JSON lines */
    struct feed *feed;
    int jobs;
    struct sink docs, rejects, notes; /* put NULL: not wanted */
    bool full; /* rejects have the documents too */
    /* Documents come out compressed, a frame or member a block; not when they are kept. */
    enum file_codec codec;
    struct flows *flows;
    /* Told where the pass stands; one call at a time.  NULL: nobody wants to know. */
    void (*tell)(void *of, const struct pass_now *now);
    void *tell_of;
};

struct pass;
/* Starts the threads' state.  conf and what it points to must outlive the pass. */
int pass_open(struct pass **p, const struct pass_conf *c, struct err *e);
/* Runs until `bytes` of input have been taken (0: no bound), a whole block at a time.
 * 1: there may be more; 0: the feed has ended. */
int pass_run(struct pass *p, uint64_t bytes, struct err *e);
void pass_close(struct pass *p);
#endif
