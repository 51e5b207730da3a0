/* curate/stages/doc_route.h -- to which branches of a plan a document goes, by its fields.
 *
 * The tests are those of curate/stream/where.h.  FIELD may be one within an object (OBJECT.NAME).  Strings, true and false are
 * texts.  A document that lacks the field, or has null, a list or an object there, meets no test of it, not even !=.
 */
#ifndef CURATE_DOC_ROUTE_H
#define CURATE_DOC_ROUTE_H

#include "curate/stream/stage.h"
#include "curate/stream/where.h"

struct doc_route {
    const char *name;        /* of the branch */
    struct where **test;     /* all must be met; none: every document goes there */
    int n_tests;
    bool otherwise;          /* those that no other branch takes that has tests */
};
struct doc_route_conf {
    struct doc_route *route;
    int n;
    bool kept; /* what no branch takes is not lost: it is written where the branches fork */
};
/* Why it drops documents. */
extern const struct stage_rule doc_route_rules[];
/* A stage whose note of a document has a byte for each route, 1 if it goes there.  It drops what no branch takes unless that
 * is kept.  conf must outlive it. */
int doc_route_stage_open(struct stage *s, const struct doc_route_conf *conf, struct err *e);
#endif
