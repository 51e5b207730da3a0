/* curate/language/langid.h -- the language of a text and of its lines, by CLD2 or a fastText model. */
#ifndef CURATE_LANGID_H
#define CURATE_LANGID_H

#include "base/opt.h"
#include "curate/stream/stage.h"

struct langid {
    struct span code;   /* ISO 639-1 where there is one, else 639-3; "und": not known */
    struct span script; /* ISO 15924 as a model says it; empty: it says none */
    double score;       /* 0..1, see below */
    int label;          /* of a model; -1: none */
};

/* The main language of valid UTF-8, by CLD2.  score is the share of the text's letters that
 * it gives to that language, halved when it calls its own answer unreliable (texts that
 * are short, mixed, or between close relatives); 0 for "und".  ERR_NOMEM. */
int langid_detect(struct span text, struct langid *l, struct err *e);

/* CLD2's code in ISO 639. */
const char *langid_iso(const char *cld2_code);

struct langid_conf {
    const char *model;     /* fastText model (curate/language/langid_model.h); NULL: CLD2 */
    const char *keep;      /* "en,de:0.8": only these, from a score on; NULL: keep all */
    double threshold;      /* for the languages of keep that have none of their own */
    bool per_line;         /* set "lang_lines" */
    bool strip_lines;      /* remove lines of other languages */
    double line_threshold; /* a line's score from which on its language is believed */
};
/* CLD2; keep all; 0.65; no lines; 0.8. */
void langid_conf_init(struct langid_conf *c);
#define LANGID_OPTS(c)                                                                                  \
    OPT_IN('m', "model", &(c).model, "FILE", "fastText model (lid.176.bin, GlotLID) instead of CLD2"),  \
    OPT_STR('k', "keep", &(c).keep, "LANG[:X],...", "drop all other languages, and scores below X"),    \
    OPT_NUM(0, "threshold", &(c).threshold, 0, 1, "score for the languages of --keep that name none"),   \
    OPT_FLAG(0, "per-line", &(c).per_line, "add lang_lines: language and score of each line"),           \
    OPT_FLAG(0, "strip-lines", &(c).strip_lines, "remove lines that are surely of other languages"),     \
    OPT_NUM(0, "line-threshold", &(c).line_threshold, 0, 1, "score from which on a line is surely so")

/* Why it drops documents. */
extern const struct stage_rule langid_rules[];
/* Opens the stage "langid": sets "lang" and "lang_score", and "lang_script" if the model's
 * label has one.  With keep it drops the other languages (rule lang, value the score) and
 * low scores (rule lang_score); with a model a document stays if any kept language has
 * its score.  With per_line it sets "lang_lines", for each line {"lang","score"}, or null
 * where there is no language to see.  With strip_lines it removes the lines that have a
 * score of line_threshold or more in a language that is not kept (without keep: not the
 * document's); the rest stay, blank and unsure ones too.  A document of which
 * only white space is left is dropped (rule lang_lines, value the lines removed).
 * ERR_ARG: keep names a language that is never answered, or a threshold outside 0..1;
 * errors of fasttext_open. */
int langid_stage_open(struct stage *s, const struct langid_conf *conf, struct err *e);
#endif
