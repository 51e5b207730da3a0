/* curate/filter/forget.h -- pages taken out of a corpus, by id or URL.
 *
 * A page that was dropped as the duplicate of a forgotten one stands again where this goes before the stages that compare
 * documents: what they give is then what they would give had the page never been there.
 */
#ifndef CURATE_FORGET_H
#define CURATE_FORGET_H

#include "base/opt.h"
#include "curate/stream/stage.h"

struct forget_conf {
    struct opt_list ids, urls; /* files, a name a line */
};
void forget_conf_init(struct forget_conf *c);
#define FORGET_OPTS(c)                                                                       \
    OPT_IN_LIST(0, "ids", &(c).ids, "FILE", "the documents whose id is a line of FILE"),     \
    OPT_IN_LIST(0, "urls", &(c).urls, "FILE", "those whose URL is")

/* Why it drops documents. */
extern const struct stage_rule forget_rules[];
/* Opens the stage "forget".  ERR_ARG: no file is named; the errors of page_list_read. */
int forget_stage_open(struct stage *s, const struct forget_conf *conf, struct err *e);
#endif
