/* curate/report/rules.h -- what the rules that drop documents say of themselves. */
#ifndef CURATE_RULES_H
#define CURATE_RULES_H

#include "curate/stream/stage.h"

/* The rule of that name in the account of drops of a stage of that name; of filter that of the first preset that has
 * it.  What is not known, such as a rule of a stage that this build lacks, is NULL. */
struct stage_rule rule_words(struct span stage, struct span rule);
/* Appends the presets of filter that have the rule, separated by commas; nothing if it is not
 * filter's.  Errors of buf_put. */
int rule_put_presets(struct buf *b, struct span stage, struct span rule);
#endif
