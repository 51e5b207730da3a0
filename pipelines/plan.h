/* pipelines/plan.h -- a plan: a graph of nodes over many inputs, from a YAML file.
 *
 * The nodes stand in branches, chains of them.  The first branch is the plan's own `stages`, which reads the inputs; each other
 * one reads what branches before it gave, all of it or what meets its tests.  So branches fork and join, and stand in an
 * order in which they can run.  docs/curate.md has the keys.  Everything is checked before any work: unknown keys, wrong
 * types and impossible values are errors with file and line.
 *
 * A plan runs in passes (plan_cut): a pass takes each input through a stretch of a branch, by itself.
 */
#ifndef PIPELINES_PLAN_H
#define PIPELINES_PLAN_H

#include "base/file.h"
#include "base/node.h"
#include "comm/comm.h"
#include "curate/filter/forget.h"
#include "curate/stages/doc_route.h"
#include "pipelines/nodes.h"

struct plan_node {
    struct node_kind kind;
    void *conf;
    int line;
};

struct plan_branch {
    const char *name; /* NULL: the plan's own stages */
    int line;
    /* What it reads: of each branch from[k] what that gives as its file out[k].  None: the inputs. */
    int *from, *out, n_from;
    struct doc_route route;       /* which of those documents */
    struct plan_node *node;   /* as the plan has them; */
    int n_nodes;
    int first, last;          /*   of all stages of the plan */
    const char *output;       /* a file, or a folder if it ends in a slash; NULL: none */
    int compress;             /* of a folder's files: enum file_codec */
    struct doc_route_conf routes; /* to the branches that read it, in order */
    int last_pass;
    /* Of a plan that keeps documents (pipelines/plan_keep.h): whether it reads documents that none was compared with, and in
     * front of which stage it is cut then; -1: nowhere, what it gives is read by such branches only. */
    bool alone;
    int cut;
};

/* A pass runs stages [first, last) of its branch over each input. */
struct plan_pass {
    int number, branch, first, last;
    bool kept;    /* its files are kept when the plan is done */
    bool follows; /* it reads what the pass before gave, */
    bool judged;  /*   with what that one's last stage has decided */
    bool later;   /* its last stage decides later, when it can know all documents */
    bool ends;    /* that stage is an end: no document is kept */
    bool goes_on; /* another pass of the branch reads what it gives */
    int groups;   /* in which the notes of the last stage are committed, each of a range of inputs */
};

/* Strings live as long as the plan. */
struct plan {
    struct arena arena;
    const char *file;
    char **input; /* in order: files, addresses, or folders where there is a source */
    char **name;  /* of each, as it is told and noted: of an address what stands before its query */
    int n_inputs;
    int64_t row_group;   /* rows of one in Parquet that is written; 0: as ever */
    const char *columns; /* of inputs in Parquet that are read, commas between; NULL: all */
    const char *text_key; /* of JSON lines; NULL: "text" */
    struct plan_node source; /* kind.source NULL: the inputs are JSON lines */
    struct plan_branch *branch; /* branch 0 is the plan's own */
    int n_branches;
    struct plan_node *stage; /* of all branches, one after the other, with those that send documents to branches */
    int n_stages;
    struct plan_pass *pass;
    int n_passes;
    const char *rejects; /* NULL: none */
    bool rejects_full;   /* with the documents, as they came into a pass */
    const char *stats;   /* NULL: none */
    const char *report;  /* a page about both; NULL: none */
    const char *work;    /* folder for what a killed run goes on from */
    const char *keep;    /* folder for the documents that stand before the first stage that compares them; NULL: none */
    struct forget_conf forget; /* pages that are taken out; with keep: of these documents */
};

/* Reads the plan.  If n > 0, its inputs are these n names, as the shell gave them, and its own are not looked for.
 * ERR_FORMAT names file and line; ERR_IO, ERR_NOMEM. */
int plan_load(struct plan *p, const char *path, char *const *inputs, int n, struct err *e);
/* The same of a tree that is one already and outlives the plan: lines in messages are those of its nodes, in `file`. */
int plan_load_tree(struct plan *p, const char *file, const struct node *root, struct err *e);
/* Puts a stage `forget` of these files (curate/filter/forget.h) in front of all others, or, if the plan keeps documents, has
 * plan_open_stages put it where these stand; without files nothing.  Before plan_settle. */
int plan_forget(struct plan *p, const struct forget_conf *pages, struct err *e);
void plan_free(struct plan *p);

/* Once outputs and inputs are final: fills in what follows from others, checks that every branch gives something, that each
 * input is there and is no pipe, and plan_check_places.  ERR_FORMAT, ERR_ARG, ERR_IO. */
int plan_settle(struct plan *p, struct err *e);
/* Checks that all that is made has a folder to stand in, and that no file is to stand where a folder is; once more when the
 * folders of the plan are made.  ERR_IO, ERR_ARG, ERR_FORMAT. */
int plan_check_places(const struct plan *p, struct err *e);
/* Adds all files of a settled plan, and checks that none is written that is read, or twice.  ERR_ARG. */
int plan_files(struct plan *p, struct run_files *files, struct err *e);
/* Makes the stages of a settled plan, which checks their settings; once, since a plan that keeps documents gets its cuts there.
 * Those that ranks can share are made for this rank of c, unless that is NULL.  On failure none is open. */
int plan_open_stages(struct plan *p, struct comm *c, struct stage **stage, struct err *e);
void plan_close_stages(const struct plan *p, struct stage *stage);
/* Cuts it into passes, in an order in which they can run.  ERR_NOMEM. */
int plan_cut(struct plan *p, const struct stage *stage, struct err *e);
/* The inputs [*first, *last) of a group of a pass. */
void plan_group(const struct plan *p, const struct plan_pass *pass, int group, int *first, int *last);
/* Whether a branch's output is a folder; the name of its file of an input, or of the one file. */
bool plan_to_folder(const struct plan_branch *b);
void plan_output_name(const struct plan_branch *b, int input, char name[4096]);
/* How the parts of a file of this name are compressed: as it is, those of a Parquet file as .zst. */
enum file_codec plan_codec_of(const char *name);
/* The same of the output, by its name or by compress. */
enum file_codec plan_codec(const struct plan_branch *b);
/* All that decides what the run gives, as text: settings, and inputs with size and time. */
int plan_describe(struct plan *p, struct buf *out, struct err *e);
/* The same of what decides which documents are kept. */
int plan_describe_kept(struct plan *p, struct buf *out, struct err *e);
#endif
