/* curate/report/rules.h -- what the rules that drop documents mean, in words. */
#ifndef CURATE_RULES_H
#define CURATE_RULES_H

#include "base/mem.h"

struct rule_words {
    const char *value; /* what is counted or measured, such as "words with a letter / words"; NULL: not known */
    const char *why;   /* a sentence on why it drops, where the value does not say it; NULL: none */
    const char *drops; /* "above", "below", "from" the threshold; NULL: not known */
    bool question;     /* the survivor is a question of an evaluation set, no document */
};

/* Never fails: what is not known is NULL. */
struct rule_words rule_words(struct span stage, struct span rule);
/* Appends the presets of filter that have the rule, separated by commas; nothing if it is not
 * filter's.  Errors of buf_put. */
int rule_put_presets(struct buf *b, struct span stage, struct span rule);
#endif
