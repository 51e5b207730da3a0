/* curate/mix/mix.h -- samples, blends, shuffles, splits and shards collections of documents.
 *
 * The sources are read once or, if their sizes must be known first (weights, a budget,
 * input order), twice.  What a document gets is a function of seed and of its place or id,
 * never of the order in which threads meet it: the output is the same bytes for any number of
 * threads and any memory limit.
 */
#ifndef CURATE_MIX_H
#define CURATE_MIX_H

#include "base/lines.h"
#include "base/opt.h"
#include "base/parquet_write.h"
#include "base/run_files.h"
#include "curate/stream/feed.h"

enum mix_unit { MIX_BYTES, MIX_TOKENS, MIX_DOCUMENTS };
enum mix_by { MIX_SHARE, MIX_EPOCHS };

struct mix_conf {
    struct opt_list sources; /* WEIGHT:FILE */
    const char *plan;        /* YAML with sources */
    char *const *inputs;     /* all one source of weight 1 */
    int n_inputs;
    const char *columns;     /* of Parquet; NULL: all */
    const char *text_key;    /* NULL: "text" */
    int64_t row_group;       /* rows of one in Parquet that is written; 0: as ever */
    int by, unit, key, order;
    double budget;           /* in units; 0: none */
    double max_epochs;       /* a budget that repeats a source more often is refused */
    const char *tokens;      /* field with the number of tokens; NULL: estimate */
    double bytes_per_token;
    const char *repeat_by, *repeat; /* a field, NULL: none; and its steps (curate/mix/mix_repeat.h) */
    int64_t seed, split_seed;
    const char *split, *output;
    int64_t shards, shard_size, memory;
    const char *tmp;
    bool compress_tmp;
    const char *stats;
    int jobs;
    struct run_files *files; /* sources and shards are added and checked; NULL: not */
};
/* The defaults. */
void mix_conf_init(struct mix_conf *c);
#define MIX_OPTS(c)                                                                                              \
    OPT_FILES('s', "source", &(c).sources, "WEIGHT:FILE", "a file and its weight; give it for each file", \
              OPT_NAMES_TAGGED), \
    OPT_IN(0, "plan", &(c).plan, "FILE", "YAML with a list of sources: name, weight, files"),                   \
    FEED_OPTS(c),                                                                                                \
    OPT_ENUM(0, "by", &(c).by, "share|epochs", "weights are shares of the output, or times to take a source"),   \
    OPT_NUM('b', "budget", &(c).budget, 0, 1e18, "how much to write; 0: as much as there is without repeating"), \
    OPT_NUM(0, "max-epochs", &(c).max_epochs, 1, 1e6, "refuse a budget that repeats a source more often"),       \
    OPT_ENUM('u', "unit", &(c).unit, "bytes|tokens|documents", "what the budget and shares count (bytes of text)"), \
    OPT_STR(0, "tokens-field", &(c).tokens, "NAME", "field with a document's number of tokens; else estimated"), \
    OPT_NUM(0, "bytes-per-token", &(c).bytes_per_token, 0.01, 1e6, "for the estimate"),                          \
    OPT_STR(0, "repeat-by", &(c).repeat_by, "FIELD", "repeat a document by this number in it, as --repeat says"),           \
    OPT_STR(0, "repeat", &(c).repeat, "LIST", "so: FROM:TIMES,...; by default 1:1,2:2,3:3,5:5,100:8,1000:1"),       \
    OPT_ENUM(0, "order", &(c).order, "shuffle|input", "order of the output"),                                    \
    OPT_ENUM(0, "key", &(c).key, "position|id", "what chance goes by: place in the source, or id"),              \
    OPT_INT(0, "seed", &(c).seed, 0, INT64_MAX, "of sampling and shuffling"),                                    \
    OPT_STR(0, "split", &(c).split, "LIST", "as train=0.98,valid=0.01,test=0.01: by id, the first is blended"),  \
    OPT_INT(0, "split-seed", &(c).split_seed, 0, INT64_MAX, "of splitting"),                                     \
    OPT_FILE('o', "output", &(c).output, "PATTERN", "file; %s is the split, %05d the shard; by the name .gz, .zst, .parquet", \
             OPT_NAMES_DOCUMENTS), \
    OPT_INT(0, "shards", &(c).shards, 0, 1000000, "so many files of equal numbers of documents"),                \
    OPT_INT(0, "row-group-size", &(c).row_group, 0, PARQUET_GROUP_ROWS_MAX, ROW_GROUP_HELP),                     \
    OPT_SIZE(0, "shard-size", &(c).shard_size, 0, INT64_MAX, "a new file after so many bytes of lines"),         \
    OPT_SIZE(0, "memory", &(c).memory, 16 << 20, INT64_MAX, "memory for documents; the rest is on disk"),        \
    OPT_FOLDER(0, "tmp", &(c).tmp, "DIR", "folder of the temporary file; TMPDIR or /tmp otherwise"),                \
    OPT_FLAG(0, "compress-tmp", &(c).compress_tmp, "compress the temporary file (zstd)"),                        \
    OPT_OUT(0, "stats", &(c).stats, "FILE", "write counts as JSON")

struct mix_result {
    uint64_t docs_in, docs_out, bad, bytes_in, spilled;
    double seconds;
};
/* Bad records are logged, counted and skipped.  Nothing incomplete stands under a final
 * name.  ERR_ARG: settings that do not go together; ERR_IO, ERR_FORMAT, ERR_NOMEM. */
int mix_run(const struct mix_conf *c, struct mix_result *r, struct err *e);
#endif
