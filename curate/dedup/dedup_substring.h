/* curate/dedup/dedup_substring.h -- the stage that strikes passages which the corpus has elsewhere,
 * wherever they stand (curate/dedup/dedup_repeats.h has the method).
 */
#ifndef CURATE_DEDUP_SUBSTRING_H
#define CURATE_DEDUP_SUBSTRING_H

#include "base/opt.h"
#include "curate/stream/stage.h"

struct dedup_substring_conf {
    int64_t length, tokens;           /* of a passage: bytes; or tokens, if not 0 */
    const char *tokenizer;            /* whose tokens; NULL: words and other characters */
    int keep;                         /* 0: the first copy; 1: none */
    int snap;                         /* what is struck is whole: 0 characters, 1 words, 2 lines */
    int64_t min_words, min_sentences; /* that must be left of a document that was shortened */
    int64_t memory;                   /* bytes */
    const char *dir;                  /* for temporary files; NULL: $TMPDIR or /tmp */
};
/* 100 bytes, the first stays, whole characters, 1 GiB. */
void dedup_substring_conf_init(struct dedup_substring_conf *c);
#define DEDUP_SUBSTRING_OPTS(c)                                                                           \
    OPT_INT(0, "length", &(c).length, 16, 1 << 20, "bytes of a passage that comes again"),                \
    OPT_INT(0, "tokens", &(c).tokens, 0, 1 << 18, "tokens of it instead; 0: bytes"), \
    OPT_IN(0, "tokenizer", &(c).tokenizer, "FILE",                                                        \
           "whose tokens they are; without it words, whatever white space is between"), \
    OPT_ENUM(0, "keep", &(c).keep, "first|none", "of a passage that comes again"),                        \
    OPT_ENUM(0, "snap", &(c).snap, "char|word|line", "strike only what is whole"),                        \
    OPT_INT(0, "min-words", &(c).min_words, 0, INT64_MAX, "drop a shortened document with fewer words left"), \
    OPT_INT(0, "min-sentences", &(c).min_sentences, 0, INT64_MAX,                                         \
            "drop a shortened document with fewer sentences left"),                                       \
    OPT_SIZE(0, "memory", &(c).memory, 64 << 20, INT64_MAX, "memory for comparing; the rest is on disk"), \
    OPT_FOLDER(0, "tmp", &(c).dir, "DIR", "for temporary files, 2 to 7 times the text")

/* Makes the stage; its state is freed by ops->close.  dir must outlive it.  ERR_NOMEM, ERR_IO,
 * ERR_ARG. */
int dedup_substring_stage_open(struct stage *st, const struct dedup_substring_conf *conf, struct err *e);
#endif
