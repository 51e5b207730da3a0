/* curate/langid.h -- the language of a text, by CLD2. */
#ifndef CURATE_LANGID_H
#define CURATE_LANGID_H

#include "base/opt.h"
#include "curate/stage.h"

struct langid {
    const char *code; /* ISO 639-1 where there is one, else 639-3; "und": not known */
    double score;     /* 0..1, see below */
};

/* The main language of valid UTF-8.  score is the share of the text's letters that CLD2
 * gives to that language, halved when it calls its own answer unreliable (texts that
 * are short, mixed, or between close relatives); 0 for "und".  ERR_NOMEM. */
int langid_detect(struct span text, struct langid *l, struct err *e);

/* CLD2's code in ISO 639. */
const char *langid_iso(const char *cld2_code);

struct langid_conf {
    const char *keep; /* "en,de:0.8": only these, from a score on; NULL: keep all */
    double threshold; /* for the languages of keep that have none of their own */
};
/* Keep all; 0.65. */
void langid_conf_init(struct langid_conf *c);
#define LANGID_OPTS(c)                                                                                  \
    OPT_STR('k', "keep", &(c).keep, "LANG[:X],...", "drop all other languages, and scores below X"),    \
    OPT_NUM(0, "threshold", &(c).threshold, 0, 1, "score for the languages of --keep that name none")

/* Opens the stage "langid": sets "lang" and "lang_score".  With keep it drops the other
 * languages (rule lang, value the score) and low scores (rule lang_score).
 * ERR_ARG: keep names a language that CLD2 never answers, or a threshold outside 0..1. */
int langid_stage_open(struct stage *s, const struct langid_conf *conf, struct err *e);
#endif
