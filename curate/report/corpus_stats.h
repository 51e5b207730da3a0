/* curate/report/corpus_stats.h -- the numbers of a corpus of documents.
 *
 * Counted in input order (a stage's commit), so everything is the same for any number of
 * threads.  Memory: the distributions (curate/report/sketch.h) of at most CORPUS_NAMES fields and
 * CORPUS_GROUPS groups, CORPUS_SKETCHES in all, and the names of hosts up to a bound.
 *
 * bytes: of the text's UTF-8.  characters: code points.  words: what stands between white
 * space (Python's str.split()).  lines: pieces between newlines; nothing behind the last
 * newline is no line.
 */
#ifndef CURATE_CORPUS_STATS_H
#define CURATE_CORPUS_STATS_H

#include "base/lines.h"
#include "base/opt.h"
#include "curate/report/sketch.h"
#include "curate/report/source_stats.h"
#include "curate/stream/feed.h"
#include "curate/stream/stage.h"

enum { CORPUS_NAMES = 1000, CORPUS_GROUPS = 1000, CORPUS_SKETCHES = 8192, CORPUS_NAME_BYTES = 256 };

enum corpus_size { CORPUS_BYTES, CORPUS_CHARS, CORPUS_WORDS, CORPUS_LINES, CORPUS_SIZES };
extern const char *const corpus_size_names[CORPUS_SIZES];

struct corpus_conf {
    char *const *inputs; /* none: standard input */
    int n_inputs, jobs;
    const char *columns; /* of Parquet; NULL: all */
    const char *text_key; /* NULL: "text" */
    const char *by;    /* field to break down by; NULL: none.  "host": of the URL, if there is no such field */
    int64_t max_hosts; /* different hosts that are counted exactly */
    int64_t top;       /* hosts and groups that are shown; 0: all */
    bool sources;      /* where documents came from, in place of the numbers of texts (source_stats.h) */
    bool json;         /* written as JSON, not as tables for a person */
    const char *output; /* NULL: standard output */
};
void corpus_conf_init(struct corpus_conf *c);
#define CORPUS_OPTS(c)                                                                              \
    OPT_STR(0, "by", &(c).by, "FIELD", "numbers for each value of this field too; host: of the URL"),        \
    OPT_INT(0, "top", &(c).top, 0, INT64_MAX, "hosts, languages and groups to show; 0: all"),                  \
    OPT_FLAG(0, "sources", &(c).sources, "where they came from: languages, domains, days, crawls, files, licences, rights"), \
    OPT_INT(0, "max-hosts", &(c).max_hosts, 2, 1 << 30, "different hosts, and domains, to count exactly")

#define CORPUS_OUT_OPTS(c)                                                                          \
    CORPUS_OPTS(c),                                                                                 \
    FEED_OPTS(c),                                                                                   \
    OPT_FLAG(0, "json", &(c).json, "print JSON"),                                                   \
    OPT_OUT('o', "output", &(c).output, "FILE", "write here")

/* Numbers of some documents. */
struct corpus_part {
    uint64_t docs, sum[CORPUS_SIZES];
    struct sketch size[CORPUS_SIZES];
    struct sketch **number; /* by the number of the field's name; NULL: none yet */
    size_t n_numbers;
};

struct corpus_stats {
    uint64_t bad;
    struct corpus_part all;
    struct name_table fields; /* names of fields; of numbers in an object OBJECT.NAME */
    uint64_t *field_docs;     /* documents that have it */
    uint64_t left_out;        /* fields of documents that were one too many, or had too long a name */
    struct name_tally langs, hosts;
    struct source_stats sources; /* where they are asked for */
    struct name_table groups; /* values of the field `by`; the last may be one for all others */
    struct corpus_part *group; /* NULL without it */
    size_t sketches;
};

/* A stage that counts the documents that it commits and finishes with the file conf->output.  ERR_NOMEM. */
int corpus_stage_open(struct stage *s, const struct corpus_conf *conf, struct err *e);
/* Reads all documents.  Bad ones are logged and counted.  *c is to be freed whatever comes back. */
int corpus_read(struct corpus_stats *c, const struct corpus_conf *conf, struct err *e);
void corpus_free(struct corpus_stats *c);

/* Appends what conf->sources asks for, as JSON or as tables. */
int source_stats_put(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b);
/* Appends everything as JSON, or as tables for a person; or as conf says.  ERR_NOMEM. */
int corpus_put_json(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b);
int corpus_put_text(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b);
int corpus_put(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b, struct err *e);
#endif
