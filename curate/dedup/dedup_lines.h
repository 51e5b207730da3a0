/* curate/dedup/dedup_lines.h -- the stage that strikes lines, paragraphs or sentences which the
 * corpus has elsewhere.
 *
 * Units are compared by XXH3-128 of their normal form (two different ones among 10^10 collide
 * with probability 10^-19).  All are looked at on disk (curate/dedup/dedup_units.h), so the bound on
 * memory holds for any corpus.  docs/dedup.md has the presets and what of the originals they
 * reproduce.
 */
#ifndef CURATE_DEDUP_LINES_H
#define CURATE_DEDUP_LINES_H

#include "base/opt.h"
#include "curate/stream/stage.h"

/* Of unit, keep and match, 0 is the preset's own; of the numbers, -1. */
struct dedup_lines_conf {
    int preset, unit, keep, match;
    int64_t over;                     /* what comes more often is struck; 1 or more */
    int64_t min_length;               /* characters of the normal form; what is shorter stays */
    int64_t min_words, min_sentences; /* that must be left of a document that was shortened */
    int64_t memory;                   /* bytes */
    const char *dir;                  /* for temporary files; NULL: $TMPDIR or /tmp */
};
/* Preset quern, 1 GiB. */
void dedup_lines_conf_init(struct dedup_lines_conf *c);
#define DEDUP_LINES_OPTS(c)                                                                              \
    OPT_ENUM(0, "preset", &(c).preset, "quern|ccnet|dolma|datatrove", "what the options below are if not given"), \
    OPT_ENUM(0, "unit", &(c).unit, "preset|line|paragraph|sentence|sentences3",                          \
             "what is struck; sentences3: three in a row that come again"),                              \
    OPT_ENUM(0, "keep", &(c).keep, "preset|first|none",                                                  \
             "of a unit that comes again; none: not even one, if two documents have it"),                \
    OPT_INT(0, "over", &(c).over, 1, UINT32_MAX - 1,                                                     \
            "strike units that come more than so many times; of these --keep says what stays"),          \
    OPT_ENUM(0, "match", &(c).match, "preset|raw|ccnet|simple", "how units are normalised to be compared"), \
    OPT_INT(0, "min-length", &(c).min_length, -1, INT64_MAX,                                             \
            "normalised characters of a unit that may be struck; -1: the preset's"),                     \
    OPT_INT(0, "min-words", &(c).min_words, -1, INT64_MAX,                                               \
            "drop a shortened document with fewer words left; -1: the preset's"),                        \
    OPT_INT(0, "min-sentences", &(c).min_sentences, -1, INT64_MAX,                                       \
            "drop a shortened document with fewer sentences left; -1: the preset's"),                    \
    OPT_SIZE(0, "memory", &(c).memory, 16 << 20, INT64_MAX, "memory for comparing; the rest is on disk"), \
    OPT_FOLDER(0, "tmp", &(c).dir, "DIR", "for temporary files, 24 bytes a unit")

/* Makes the stage; its state is freed by ops->close.  dir must outlive it.  ERR_NOMEM, ERR_IO. */
int dedup_lines_stage_open(struct stage *st, const struct dedup_lines_conf *conf, struct err *e);
#endif
