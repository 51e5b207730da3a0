/* curate/filter/filter.h -- drops documents of low quality by rules.
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
#include "curate/stream/stage.h"

struct filter_conf {
    const char *presets; /* names separated by commas, in the order to run */
    const char *config;  /* YAML file that changes thresholds and actions; NULL: none */
    bool annotate;       /* write all signals into the document, drop nothing */
    const char *lang;    /* code of ISO 639; "auto": the document's field lang; NULL: English */
    /* Files of lists, NULL: none (curate/text/word_set.h). */
    const char *url_domains, *url_blocklist, *banned_words, *soft_words, *banned_subwords, *licenses;
    struct opt_list bad_words; /* FILE or LANG:FILE */
};
/* No preset, which is an error. */
void filter_conf_init(struct filter_conf *c);
#define FILTER_OPTS(c)                                                                                 \
    OPT_STR('p', "preset", &(c).presets, "NAMES", "presets, in the order to run; --list-rules shows them"),   \
    OPT_IN('c', "config", &(c).config, "FILE", "YAML that changes thresholds and actions of rules"),   \
    OPT_FLAG(0, "annotate", &(c).annotate, "add all signals to each document, drop and change nothing"), \
    OPT_STR(0, "lang", &(c).lang, "CODE", "language of words and stop words; auto: the field lang"),    \
    OPT_IN(0, "url-domains", &(c).url_domains, "FILE", "url: registered domains and hosts to drop"),   \
    OPT_IN(0, "url-blocklist", &(c).url_blocklist, "FILE", "url: whole URLs to drop"),                 \
    OPT_IN(0, "banned-words", &(c).banned_words, "FILE", "url: words that drop"),                      \
    OPT_IN(0, "soft-words", &(c).soft_words, "FILE", "url: words of which two drop"),                  \
    OPT_IN(0, "banned-subwords", &(c).banned_subwords, "FILE", "url: parts of words that drop"),       \
    OPT_IN(0, "licenses", &(c).licenses, "FILE", "rights: licences to keep, as cc-by-4.0, cc0 or a URL"), \
    OPT_FILES(0, "bad-words", &(c).bad_words, "[LANG:]FILE", "words that make a text bad, a file a language", \
              OPT_NAMES_TAGGED)

/* Opens the stage "filter".  ERR_ARG: no such preset; ERR_FORMAT: the configuration
 * names a rule that does not exist or gives it a wrong value (file and line are
 * named); ERR_IO, ERR_NOMEM.  The stage keeps copies: conf may go. */
int filter_stage_open(struct stage *s, const struct filter_conf *conf, struct err *e);

/* Prints every rule with its threshold, source and meaning, tab-separated with a heading. */
void filter_list_rules(FILE *out);

/* What the table says of a rule that drops documents. */
struct filter_rule {
    const char *preset, *name, *source;
    const char *words; /* what its signal is, such as "share of words with a letter" */
    const char *drops; /* where: "above", "below", "from" the threshold */
    double threshold;  /* where none is configured; NAN: it is off, or follows the document */
};
/* The next rule of this name (several presets may have one); *at is 0 at first.  False: there
 * is no more. */
bool filter_rule_next(int *at, struct span name, struct filter_rule *r);
#endif
