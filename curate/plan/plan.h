/* curate/plan/plan.h -- a curation plan: inputs, stages with their settings, outputs.
 *
 * A YAML file; docs/curate.md has its keys.  Everything in it is checked before any work:
 * unknown keys, wrong types and impossible values are errors with the line.
 */
#ifndef CURATE_PLAN_H
#define CURATE_PLAN_H

#include "base/file.h"
#include "base/run_files.h"
#include "curate/extract/extract.h"
#include "curate/plan/stages.h"

struct plan_stage {
    const struct stage_kind *kind;
    void *conf;
    int line;
};

/* Strings live as long as the plan. */
struct plan {
    struct arena arena;
    const char *file;
    char **input; /* in order: files, or folders when they are extracted from */
    int n_inputs;
    bool extract; /* the first stage is extract: inputs are archives and pages, not JSON lines */
    struct extract_conf extract_conf;
    struct plan_stage *stage; /* those behind it */
    int n_stages;
    const char *output;  /* a file, or a folder if it ends in a slash */
    const char *rejects; /* NULL: none */
    bool rejects_full;   /* with the documents, as they came into a pass */
    const char *stats;   /* NULL: none */
    const char *work;    /* folder for what a killed run goes on from */
    int compress;        /* of a folder's files: enum file_codec */
};

/* Reads the plan.  ERR_FORMAT names file and line; ERR_IO, ERR_NOMEM. */
int plan_load(struct plan *p, const char *path, struct err *e);
void plan_free(struct plan *p);

/* Sets the inputs from names as the shell gave them, instead of the plan's. */
int plan_set_inputs(struct plan *p, char *const *names, int n, struct err *e);
/* Once outputs and inputs are final: fills in what follows from others, checks that each
 * input is there and is no pipe.  ERR_ARG, ERR_IO. */
int plan_settle(struct plan *p, struct err *e);
/* Adds all files of a settled plan, and checks that none is written that is read, or twice.  ERR_ARG. */
int plan_files(struct plan *p, struct run_files *files, struct err *e);
/* Makes the stages, which checks their settings; stage[n_stages] is the caller's.  On failure
 * none is open. */
int plan_open_stages(const struct plan *p, struct stage *stage, struct err *e);
void plan_close_stages(const struct plan *p, struct stage *stage);
/* Whether the output is a folder. */
bool plan_to_folder(const struct plan *p);
/* How the output is compressed, by its name or by compress. */
enum file_codec plan_codec(const struct plan *p);
/* All that decides what the run gives, as text: settings, and inputs with size and time. */
int plan_describe(struct plan *p, struct buf *out, struct err *e);
#endif
