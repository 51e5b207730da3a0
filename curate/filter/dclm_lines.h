/* curate/filter/dclm_lines.h -- the steps of DCLM's RefinedWeb pipeline that change a text.
 *
 * Inside the filter only.  Source: baselines/mappers/modifiers.py of
 * github.com/mlfoundations/dclm and baselines_configs/dclm_baseline_refinedweb.yaml.
 */
#ifndef CURATE_DCLM_LINES_H
#define CURATE_DCLM_LINES_H

#include "base/mem.h"

/* One step: *left is what it leaves of text, a part of it or of out; *lines the lines that
 * it strikes or changes.  limit: its threshold.  keep: such lines stay as they are; the ends
 * are stripped all the same.  ERR_NOMEM. */
typedef int dclm_step(struct span text, double limit, bool keep, struct buf *out, size_t *lines, struct span *left);

dclm_step dclm_newlines;  /* runs of more newlines become `limit` of them */
dclm_step dclm_uppercase; /* strikes lines whose share of upper-case letters is above */
dclm_step dclm_numeric;   /* the same of digits */
dclm_step dclm_counter;   /* strikes "3 likes", "1.2k followers" */
dclm_step dclm_short;     /* strikes lines with fewer words, but empty ones */
dclm_step dclm_cart;      /* in lines of at most `limit` words takes out "items in cart"; */
dclm_step dclm_read_more; /* "Read more" and three characters, at the end; */
dclm_step dclm_sign_in;   /* "Sign-in", at the beginning; strikes lines that are then blank */
#endif
