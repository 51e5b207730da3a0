/* curate/stream/flow.h -- how much passed each stage, and why documents were dropped. */
#ifndef CURATE_FLOW_H
#define CURATE_FLOW_H

#include <stdint.h>

#include "base/err.h"
#include "base/laps.h"
#include "base/mem.h"
#include "base/node.h"
#include "curate/stream/source.h"

/* What passed one stage.  Bytes are of text. */
struct flow {
    uint64_t docs_in, docs_out, bytes_in, bytes_out;
    struct rule_count {
        const char *rule; /* owned */
        uint64_t n;
    } *rule; /* how often each rule dropped, in the order of their first drop */
    int n_rules;
};

/* Of a chain.  flow[0] is the making of documents (parsing, a source), flow[k + 1] stage k. */
struct flows {
    struct flow *flow;
    int n; /* stages + 1 */
    uint64_t dropped, bad;
};

/* ERR_NOMEM. */
int flows_init(struct flows *t, int n_stages);
void flows_free(struct flows *t);
int flow_count_rule(struct flow *f, const char *rule, uint64_t n);
/* Adds the counts of b to a (as many stages); b's rules come behind those that a has. */
int flows_add(struct flows *a, const struct flows *b);

/* ERR_FORMAT when there were lines and none of them was a document: that is no run with nothing in it, and is
 * not to be published.  A source may have other records, which are counted elsewhere: of one all is well. */
int flows_check(const struct flows *t, const struct source *source, struct err *e);

/* As JSON, and back (ERR_FORMAT if it is not what was written for as many stages). */
int flows_put(const struct flows *t, struct buf *json);
int flows_get(struct flows *t, const struct node *n, struct err *e);

/* What the statistics of a run are made of. */
struct stats {
    const struct flows *flows;
    uint64_t docs_out, bytes_out;
    const struct source *source;  /* NULL: JSON lines */
    const struct stage *stages;
    const char *const *branch;    /* of a plan, for each stage; NULL: none */
    const struct buf *own;        /* own[k]: the pairs that the source (k = 0) or stage k - 1 adds, as JSON without the braces */
    double seconds;
    const struct laps *laps;      /* where they went; NULL: not told */
};
/* Appends them: what --stats writes. */
int stats_put(struct buf *json, const struct stats *s);
#endif
