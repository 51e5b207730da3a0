/* curate/dedup/dedup_templates.h -- the stage before near-duplicates that finds the lines of templates: those that so many
 * documents have, each line counted once a document, with all documents there before one is answered.
 *
 * A document with such lines is told which of them they are, and has without them what near-duplicates compare
 * (doc.h, compared); the document itself stays whole.  Where nothing else is left, all of it is compared.  Lines are those of
 * `dedup lines`, without white space alone, compared by their simplified text, counted on disk
 * (curate/dedup/dedup_units.h).
 */
#ifndef CURATE_DEDUP_TEMPLATES_H
#define CURATE_DEDUP_TEMPLATES_H

#include "comm/comm.h"
#include "curate/dedup/dedup_fuzzy.h"

/* Makes the stage, by conf's strip_template, templates, memory and dir; its state is freed by ops->close.  Strings in conf must
 * outlive it.  ERR_ARG: with an index, or against others, whose lines are not counted; ERR_NOMEM, ERR_IO. */
int dedup_templates_stage_open(struct stage *st, const struct dedup_fuzzy_conf *conf, struct err *e);
/* For this rank of c; its resolve is called by all ranks. */
int dedup_templates_ranks_open(struct stage *st, struct comm *c, const struct dedup_fuzzy_conf *conf, struct err *e);
#endif
