/* curate/stages/doc_route.h -- to which branches of a plan a document goes, by its fields.
 *
 * A test is written FIELD OP VALUE: lang == de, lang_score >= 0.65, signals.words < 100, lang in de at ch.  FIELD may be one
 * within an object (OBJECT.NAME).  OP is ==, !=, <, <=, >, >= or in (any of several values); the four that compare want a
 * number.  Strings are compared byte by byte, numbers as doubles, true and false as these words.  A document that lacks the
 * field, or has null, a list or an object there, meets no test, not even !=.
 */
#ifndef CURATE_DOC_ROUTE_H
#define CURATE_DOC_ROUTE_H

#include "curate/stream/stage.h"

enum doc_test_op { DOC_IS, DOC_IS_NOT, DOC_LESS, DOC_AT_MOST, DOC_MORE, DOC_AT_LEAST };
struct doc_test {
    const char *text; /* as written */
    const char *field, *within; /* within: a field of the object; NULL: the field itself */
    enum doc_test_op op;
    const char **word; /* any of these */
    double *number;    /* the same as numbers; NAN: it is none */
    int n;
};
/* Reads a test; its strings live in a.  ERR_FORMAT says what is wrong with it. */
int doc_test_read(struct doc_test *t, const char *text, struct arena *a, struct err *e);

struct doc_route {
    const char *name;        /* of the branch */
    struct doc_test *test; /* all must be met; none: every document goes there */
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
