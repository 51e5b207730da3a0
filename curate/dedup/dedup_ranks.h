/* curate/dedup/dedup_ranks.h -- exact and fuzzy deduplication by ranks that share the documents.
 *
 * Each rank makes notes of its own documents.  The notes of documents that may be alike come together on
 * one rank, in the order of the documents over all ranks, and there the stage decides as it would alone:
 * exact by the hash of the text; fuzzy by the least document that a document is linked with
 * (curate/dedup/rank_links.h), and what is linked with none stays where it is; a large group all ranks decide
 * together (curate/dedup/rank_group.h).  The answers go back.  So the output is that of one process.
 */
#ifndef CURATE_DEDUP_RANKS_H
#define CURATE_DEDUP_RANKS_H

#include "comm/comm.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"

/* Make the stage with its settings, for this rank of c.  Its resolve is called by all ranks.
 * ERR_UNSUPPORTED: a setting that several ranks do not do; ERR_IO, ERR_NOMEM. */
int dedup_exact_ranks_open(struct stage *st, struct comm *c, const struct dedup_exact_conf *conf, struct err *e);
int dedup_fuzzy_ranks_open(struct stage *st, struct comm *c, const struct dedup_fuzzy_conf *conf, struct err *e);
#endif
