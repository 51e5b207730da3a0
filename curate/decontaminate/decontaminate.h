/* curate/decontaminate/decontaminate.h -- keeps the questions of evaluation sets out of a corpus.
 *
 * Methods, each with the defaults of its origin; docs/decontaminate.md says what they
 * find:
 * - quern: 13 words in a row that a question or its answer has too (a shorter question:
 *   all of it, 8 words at least), or four fifths of a question's words in place with
 *   others between them;
 * - datatrove: 12 words of simplified text (NGramsDecontFilter, datatrove 0.10);
 * - curator: grams of 8 to 13 words, cut out with what is around them (NeMo Curator 0.9,
 *   TaskDecontamination);
 * - decon: grams of 5 words, weighed by how rare they are (allenai/decon).
 */
#ifndef CURATE_DECONTAMINATE_H
#define CURATE_DECONTAMINATE_H

#include "base/opt.h"
#include "curate/stream/stage.h"

enum decontaminate_method { DECON_QUERN, DECON_DATATROVE, DECON_CURATOR, DECON_DECON };
enum decontaminate_action { DECON_OWN, DECON_DROP, DECON_STRIP, DECON_ANNOTATE };

struct decontaminate_conf {
    struct opt_list against;
    int method, action;
    const char *report;
    const char *id, *task, *question, *answer, *passage; /* names of fields */
    int64_t words;       /* in a gram; 0: the method's own */
    double threshold;    /* quern, decon: share of a question; 0: the method's own */
    bool query_grams, overlap_grams; /* datatrove */
    int64_t min_words, max_matches, cut, min_piece, max_splits; /* curator */
    const char *separator;
    int64_t sample_every, max_misses, perfect_until, perfect_end; /* decon */
};
void decontaminate_conf_init(struct decontaminate_conf *c);
#define DECONTAMINATE_OPTS(c)                                                                                  \
    OPT_IN_LIST('a', "against", &(c).against, "FILE", "evaluation questions as JSON lines; give it for each file"), \
    OPT_ENUM('m', "method", &(c).method, "quern|datatrove|curator|decon", "what counts as contaminated"),      \
    OPT_ENUM(0, "action", &(c).action, "own|drop|strip|annotate",                        \
             "drop the document, strip the passage, or add a field; own: curator strips, others drop"),          \
    OPT_OUT(0, "report", &(c).report, "FILE", "write a JSON line for each question found"),                    \
    OPT_STR(0, "id-field", &(c).id, "NAME", "of a question: its id"),                                          \
    OPT_STR(0, "task-field", &(c).task, "NAME", "the evaluation it belongs to; else the file's name"),         \
    OPT_STR(0, "question-field", &(c).question, "NAME", "its text"),                                           \
    OPT_STR(0, "answer-field", &(c).answer, "NAME", "its answer, a text or a list of texts"),                  \
    OPT_STR(0, "passage-field", &(c).passage, "NAME", "the passage that it is about (decon)"),                 \
    OPT_INT('n', "words", &(c).words, 0, 100, "words in a row; 0: quern 13, datatrove 12, curator 13, decon 5"), \
    OPT_NUM('t', "threshold", &(c).threshold, 0, 1, "share of a question; 0: quern 0.8, decon 0.8"),           \
    OPT_FLAG(0, "query-grams", &(c).query_grams, "datatrove: grams within the question too"),                  \
    OPT_FLAG(0, "overlap-grams", &(c).overlap_grams, "datatrove: grams across question and answer"),           \
    OPT_INT(0, "min-words", &(c).min_words, 1, 100, "curator: a shorter question is not looked for"),          \
    OPT_INT(0, "max-matches", &(c).max_matches, 0, INT64_MAX, "curator: a gram found more often is left alone"), \
    OPT_INT(0, "cut", &(c).cut, 0, 1 << 30, "curator: characters to cut on either side"),                      \
    OPT_INT(0, "min-piece", &(c).min_piece, 0, 1 << 30, "curator: drop pieces of at most so many characters"), \
    OPT_INT(0, "max-splits", &(c).max_splits, 0, 1 << 30, "curator: drop a document in more pieces"),          \
    OPT_STR(0, "separator", &(c).separator, "TEXT", "curator: what joins the pieces"),                         \
    OPT_INT(0, "sample-every", &(c).sample_every, 1, 1 << 20, "decon: of so many words look at one"),         \
    OPT_INT(0, "max-misses", &(c).max_misses, 1, 1 << 20, "decon: words without a match that end a cluster"),  \
    OPT_INT(0, "perfect-until", &(c).perfect_until, 0, 1 << 20, "decon: words up to which all must match"),    \
    OPT_INT(0, "perfect-end", &(c).perfect_end, 0, 1 << 20, "decon: words from which the threshold holds")

/* Why it drops documents. */
extern const struct stage_rule decontaminate_rules[];
/* Opens the stage "decontaminate" and reads the evaluation sets.  ERR_ARG: no set, or
 * settings that do not go together; ERR_FORMAT: a line of a set is no question (file and
 * line are named); ERR_IO, ERR_NOMEM. */
int decontaminate_stage_open(struct stage *s, const struct decontaminate_conf *c, struct err *e);
#endif
