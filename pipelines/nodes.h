/* pipelines/nodes.h -- what may stand in the stages of a plan: the table of nodes.
 *
 * A node has its settings and its work in a struct stage_kind (curate/stages/stages.h).  By what it reads and gives there are
 * three kinds: a source, first in a plan, makes documents of the inputs; a stage reads documents and gives documents; an
 * end, last in a branch, reads documents and gives files of its own.  Whether a node needs to know all documents, its
 * functions say (curate/stream/stage.h): one with `commit` gets the notes of all inputs, in order, when they are through.
 * Every stage of curation is a node; the others have a row here.
 */
#ifndef PIPELINES_NODES_H
#define PIPELINES_NODES_H

#include "base/run_files.h"
#include "curate/stages/stages.h"
#include "curate/stream/source.h"

/* Makes documents of inputs, which may be folders. */
struct node_source {
    int (*open)(struct source *s, const void *conf, char *const *paths, int n, struct err *e);
    /* Goes on with other inputs. */
    int (*restart)(struct source *s, char *const *paths, int n, struct err *e);
    void (*close)(struct source *s);
};

/* Makes files of documents: what its stage commits, and finishes.  Its stage neither drops nor replies. */
struct node_end {
    /* It may divide the inputs into groups, each a range of them and with files of its own, which different tasks make at the
     * same time: how many of so many inputs, at least 1.  NULL: one group. */
    int (*groups)(const void *conf, int inputs);
    /* Group `group` is committed next.  NULL: there is one. */
    int (*begin)(void *stage, int group, int groups, struct err *e);
    /* Names the files that the options do not name; before: as of run_names_opts.  NULL: there are none. */
    int (*files)(const void *conf, int inputs, const char *before, struct run_files *files, struct err *e);
    /* What the names of its files begin with.  NULL: the settings lack it, which e says; nothing else is called then. */
    const char *(*name)(const void *conf, struct err *e);
};

struct node_kind {
    const struct stage_kind *stage;
    const struct node_source *source; /* NULL: it is none */
    const struct node_end *end;       /* NULL: it is none */
};

/* Number i of all.  false: there are not so many. */
bool node_kind_at(int i, struct node_kind *k);
/* false: there is none of that name. */
bool node_kind_find(struct span name, struct node_kind *k);
/* What sends documents to branches, by a struct doc_route_conf (curate/stages/doc_route.h): plans put it in themselves. */
extern const struct stage_kind node_router;
#endif
