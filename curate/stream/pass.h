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
#include "base/laps.h"
#include "curate/stream/feed.h"
#include "curate/stream/flow.h"

/* Where bytes go, in order, one call at a time. */
struct sink {
    int (*put)(void *to, struct span s, struct err *e);
    void *to;
};
/* The put of a sink into a struct file_out. */
int sink_file(void *file_out, struct span s, struct err *e);

/* Where documents go that the stages kept. */
struct pass_out {
    struct sink to;
    struct spool *spool;   /* or there, each block a piece */
    bool frames;           /* as frames (curate/stream/feed.h), which another pass reads; else as lines */
    enum file_codec codec; /* of lines: compressed, a frame or member a block */
    int route;             /* 0: all go there; K: those whose note of the last stage has a byte K that is not 0, from 1 */
};

/* Where a pass stands, a block further each time. */
struct pass_now {
    struct source_where where; /* in its feed */
    uint64_t items;            /* that its feed has given */
    const struct flows *flows;
};

/* A tell (below) for what is one pass and no more: shows it. */
void pass_show(void *unused, const struct pass_now *now);

/* What is done one block after the other: reading and writing; and what threads wait for their turn, all together. */
enum pass_lap { PASS_READING, PASS_WRITING, PASS_WAITING, PASS_LAPS };

struct pass_conf {
    struct stage *stages;
    int n_stages, first, last; /* stages [first, last) run */
    /* The answer of the last stage comes later: the documents that it has seen go out as
     * frames, to be judged when they are read again. */
    bool later;
    const struct source *source; /* of the whole chain: names who rejects; NULL: JSON lines */
    struct feed *feed;
    int jobs;
    const struct pass_out *out;
    int n_out;
    struct sink rejects; /* put NULL: not wanted */
    enum file_codec rejects_codec;
    struct sink notes;   /* put not NULL: the last stage's go here, and it is not asked to commit */
    bool full; /* rejects have the documents too */
    const char *branch; /* of a plan, for rejects; NULL: none */
    struct flows *flows;
    /* Told where the pass stands; one call at a time.  NULL: nobody wants to know. */
    void (*tell)(void *of, const struct pass_now *now);
    void *tell_of;
    struct laps *laps; /* by enum pass_lap, or NULL */
};

struct pass;
/* Starts the threads' state.  conf and what it points to must outlive the pass. */
int pass_open(struct pass **p, const struct pass_conf *c, struct err *e);
/* Of its threads the next runs use so many, at least 1, or all there are: none has to be started for an input of a few lines. */
void pass_use(struct pass *p, double threads);
/* Runs until `bytes` of input have been taken (0: no bound), a whole block at a time.
 * 1: there may be more; 0: the feed has ended. */
int pass_run(struct pass *p, uint64_t bytes, struct err *e);
void pass_close(struct pass *p);
#endif
