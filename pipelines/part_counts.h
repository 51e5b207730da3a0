/* pipelines/part_counts.h -- what a part of a plan counted, and the sum of many. */
#ifndef PIPELINES_PART_COUNTS_H
#define PIPELINES_PART_COUNTS_H

#include "curate/stream/flow.h"
#include "pipelines/plan.h"

/* Flows, and what each stage says of itself (own[k] as in struct stats). */
struct part_counts {
    struct flows flows;
    struct buf *own;
};
/* Nothing counted yet.  ERR_NOMEM. */
int part_counts_init(struct part_counts *c, const struct plan *p);
void part_counts_free(struct part_counts *c);
/* own[k] += sign * own, the inside of a JSON object. */
int part_counts_add(struct part_counts *c, int k, int sign, struct span own, struct err *e);
/* What the source (k = 0) or stage k - 1 says of itself now, in place of what is in out.  ERR_NOMEM. */
int part_counts_ask(const struct source *source, const struct stage *stage, int k, struct buf *out, struct err *e);
/* Appends the counts of a pass to the object that b holds without its end, with own in place of theirs; ERR_NOMEM.  And adds
 * them from such an object in the file `path`.  They are those of the stages of the pass, and of what is before these: the
 * source, or what judges; what else the plan has makes no difference. */
int part_counts_put(const struct part_counts *c, const struct plan_pass *pass, const struct buf *own, struct buf *b);
int part_counts_get(struct part_counts *c, const struct plan_pass *pass, const struct node *n, const char *path, struct err *e);
/* Adds what a part that is done counted, and what the last stage of a pass said of itself when it had decided. */
int part_counts_read(struct part_counts *c, const struct plan *p, int pass, int input, struct err *e);
int part_counts_decided(struct part_counts *c, const struct plan *p, const struct plan_pass *pass, struct err *e);
#endif
