/* curate/dedup/dedup_ranks.h -- exact and fuzzy deduplication by ranks that share the documents.
 *
 * Each rank makes notes of its own documents.  The notes of documents that may be alike come together on
 * one rank, in the order of the documents over all ranks, and there the stage decides as it would alone:
 * exact by the hash of the text; fuzzy by the least document that a document is linked with
 * (curate/dedup/rank_links.h), and what is linked with none stays where it is.  The answers go back.  So
 * the output is that of one process.
 */
#ifndef CURATE_DEDUP_RANKS_H
#define CURATE_DEDUP_RANKS_H

#include "comm/comm.h"
#include "curate/plan/stages.h"

/* Makes the stage k with its settings conf, for this rank of c.  Its resolve is called by all ranks.
 * ERR_ARG, ERR_UNSUPPORTED: a kind or setting that several ranks do not do. */
int dedup_ranks_stage_open(struct stage *st, struct comm *c, const struct stage_kind *k, const void *conf,
                           struct err *e);
#endif
