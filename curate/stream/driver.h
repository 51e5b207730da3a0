/* curate/stream/driver.h -- runs stages over a stream of documents.
 *
 * Reads JSON lines (or what a source of its own gives), runs the stages with `jobs`
 * threads, writes the kept documents in input order.  Output, rejects and statistics
 * (but for the times) are the same bytes for any number of threads.  Memory is bounded
 * by jobs times the block, the longest line and what the stages keep.
 */
#ifndef CURATE_DRIVER_H
#define CURATE_DRIVER_H

#include "base/lines.h"
#include "base/opt.h"
#include "base/parquet_write.h"
#include "base/tool.h"
#include "comm/comm.h"
#include "curate/stream/feed.h"
#include "curate/stream/source.h"
#include "curate/stream/stage.h"

struct driver_conf {
    char *const *inputs; /* file names; n_inputs 0 means standard input */
    int n_inputs;
    const char *columns; /* of inputs in Parquet that are read, commas between; NULL: all */
    const char *text_key; /* of JSON lines; NULL: "text" */
    const struct source *source; /* NULL: JSON lines from the inputs */
    struct stage *stages;
    int n_stages;
    int jobs;
    const char *output;  /* NULL or "-": standard output */
    const char *rejects; /* NULL: no account */
    bool rejects_full;   /* with the documents, as they came */
    const char *stats;   /* NULL: none; JSON, written at the end */
    int64_t row_group;   /* rows of one in Parquet that is written; 0: as ever */
    int64_t max_line;    /* longest line accepted, bytes; 0: 256 MiB */
    struct comm *ranks;  /* that share the inputs, which are files then; the last stage is one for ranks, the
                            only one that drops.  Rank 0 writes, or where output or rejects have a *, each
                            rank its own with its number there.  NULL: this process is alone */
};

/* What came of it. */
struct driver_result {
    uint64_t docs_in, docs_out, dropped, bad;
    uint64_t bytes_in, bytes_out; /* of text, as decoded UTF-8 */
    double seconds;
};

/* Runs everything.  Bad records are logged (file, offset, reason), counted and
 * skipped.  On failure nothing stands under the names of output, rejects and stats.
 * The stages stay open: the caller closes them. */
int driver_run(const struct driver_conf *c, struct driver_result *r, struct err *e);

#define REJECTS_HELP "write a JSON line for each dropped document: id, reason, url, file and offset"
#define REJECTS_FULL_HELP "with --rejects: the whole document too, as it came"
/* The options that every stage has: those for what is read and for what is written. */
#define DRIVER_OPTS(c)                                                         \
    FEED_OPTS(c),                                                              \
    DRIVER_OUT_OPTS(c)
/* -o, --rejects, --rejects-full, --stats. */
#define DRIVER_OUT_OPTS(c)                                                         \
    OPT_FILE('o', "output", &(c).output, "FILE", "write documents here, as .gz, .zst or .parquet by the name",               \
             OPT_NAMES_DOCUMENTS), \
    OPT_OUT(0, "rejects", &(c).rejects, "FILE", REJECTS_HELP), \
    OPT_FLAG(0, "rejects-full", &(c).rejects_full, REJECTS_FULL_HELP), \
    OPT_INT(0, "row-group-size", &(c).row_group, 0, PARQUET_GROUP_ROWS_MAX, ROW_GROUP_HELP), \
    OPT_OUT(0, "stats", &(c).stats, "FILE", "write counts as JSON")

/* What a stage's main does once its options are parsed: runs it over the operands and
 * returns the exit status. */
int driver_main(const struct tool *t, struct driver_conf *c, int n_operands, char **argv);
/* The same for n stages that are open, which it closes.  opened: what opening them returned, and said in e. */
int driver_some(const struct tool *t, struct driver_conf *c, struct stage *stage, int n, int opened, const struct err *e,
                int n_operands, char **argv);
/* The same for one stage, which is not open where that failed. */
int driver_one(const struct tool *t, struct driver_conf *c, struct stage *stage, int opened, const struct err *e, int n_operands,
               char **argv);
#endif
