/* curate/filter.h -- drops documents of low quality by rules.
 *
 * A preset is a list of rules in the order in which its origin applies them.  A rule
 * computes one number, its signal, and drops the document if the number is above (or
 * below) a threshold.  Each preset is a dialect: its rules mean what they mean in the
 * system that it is named after; docs/filters.md says exactly what.
 */
#ifndef CURATE_FILTER_H
#define CURATE_FILTER_H

#include <stdio.h>

#include "base/opt.h"
#include "curate/stage.h"

struct filter_conf {
    const char *presets; /* names separated by commas, in the order to run */
    const char *config;  /* YAML file that changes thresholds and actions; NULL: none */
    bool annotate;       /* write all signals into the document, drop nothing */
};
/* No preset, which is an error. */
void filter_conf_init(struct filter_conf *c);
#define FILTER_OPTS(c)                                                                                 \
    OPT_STR('p', "preset", &(c).presets, "NAMES", "gopher-quality, gopher-repetition, c4, fineweb, nemo, dolma"), \
    OPT_STR('c', "config", &(c).config, "FILE", "YAML that changes thresholds and actions of rules"),   \
    OPT_FLAG(0, "annotate", &(c).annotate, "add all signals to each document, drop and change nothing")

/* Opens the stage "filter".  ERR_ARG: no such preset; ERR_FORMAT: the configuration
 * names a rule that does not exist or gives it a wrong value (file and line are
 * named); ERR_IO, ERR_NOMEM.  The stage keeps copies: conf may go. */
int filter_stage_open(struct stage *s, const struct filter_conf *conf, struct err *e);

/* Prints every rule with its threshold and source, tab-separated with a heading. */
void filter_list_rules(FILE *out);
#endif
