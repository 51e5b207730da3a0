/* curate/plan/part.h -- one input's way through one pass of a plan, which can be killed and goes on.
 *
 * A part has its files in the work folder, PASS.INPUT.docs, .notes and .rejects, which only
 * grow, and PASS.INPUT.state: how long each was, and what was counted, when the part last
 * came to rest.  Going on cuts the files to those lengths and reads the input again up to
 * there.  Once the part is through, its state is called PASS.INPUT.done.
 *
 * What the last stage of a pass answers lies in PASS.INPUT.answers, made when all parts of
 * the pass are done (part_decide); the next pass reads it beside the documents.
 */
#ifndef CURATE_PART_H
#define CURATE_PART_H

#include "curate/stream/flow.h"
#include "curate/stream/pass.h"
#include "curate/plan/plan.h"
#include "curate/plan/plan_progress.h"

/* What a process runs parts with. */
struct part_conf {
    struct plan *plan;
    struct stage *stage;
    int jobs;
    uint64_t checkpoint; /* bytes of input after which a part comes to rest */
    struct plan_progress *progress;
};

/* The passes of a plan: pass k runs stages [first, last), and the answer of the last of them
 * comes later unless it is the last pass. */
struct part_pass {
    int number, first, last;
    bool later;
};

enum part_file { PART_DOCS, PART_NOTES, PART_REJECTS, PART_STATE, PART_DONE, PART_ANSWERS };
/* The name of a part's file, into path. */
void part_path(const struct plan *p, int pass, int input, enum part_file f, char path[4096]);
bool part_is_done(const struct plan *p, int pass, int input);
/* The bytes that a part reads: of its input as it is stored, or of what the pass before kept of it, 0 once it is done. */
double part_bytes(const struct plan *p, int pass, int input);

/* What a part counted: its flows, and what each stage says of itself (own[k] as stats_put
 * takes it). */
struct part_counts {
    struct flows flows;
    struct buf *own;
};
/* Nothing counted yet.  ERR_NOMEM. */
int part_counts_init(struct part_counts *c, const struct plan *p);
void part_counts_free(struct part_counts *c);
/* Adds what a part that is done counted. */
int part_counts_read(struct part_counts *c, const struct plan *p, int pass, int input, struct err *e);

/* Runs these inputs (numbers, ascending) through a pass, those that are not done. */
int part_run(const struct part_conf *c, const struct part_pass *pass, const int *input, int n, struct err *e);
/* Once all parts of a pass are done: has its last stage commit, resolve and judge, and
 * writes the answers.  Does nothing if that is done. */
int part_decide(const struct part_conf *c, const struct part_pass *pass, struct err *e);
/* Whether part_decide is through. */
bool part_decided(const struct plan *p, int pass);
/* Adds what the stage said of itself when it had decided. */
int part_decided_counts(struct part_counts *c, const struct plan *p, const struct part_pass *pass, struct err *e);
#endif
