/* curate/report/report.h -- one page about what a run kept and dropped.
 *
 * The page is a function of the files alone: the same bytes for any number of threads, no
 * clock, no script, nothing from elsewhere.
 */
#ifndef CURATE_REPORT_H
#define CURATE_REPORT_H

#include "curate/report/corpus_stats.h"

enum {
    REPORT_RULES = 1000,     /* different rules that are told apart; the others are counted as one */
    REPORT_NAME_BYTES = 200, /* of a stage's or a rule's name */
    REPORT_ID_BYTES = 4096,  /* documents with longer ids are no examples */
    REPORT_TEXT_BYTES = 400  /* of an example's text */
};

/* Where nobody says otherwise. */
enum { REPORT_EXAMPLES = 3 };
#define REPORT_TITLE "What was kept, what was dropped"

struct report_conf {
    char *const *stats, *const *rejects, *const *input, *const *docs;
    int n_stats, n_rejects, n_input, n_docs, jobs;
    char *const *other; /* statistics of another run */
    int n_other;
    int64_t examples; /* a rule */
    const char *title;
};

/* What passed a stage, as its statistics say. */
struct report_stage {
    struct span name, branch; /* branch: of a plan; p NULL: none */
    const char *file;
    uint64_t docs_in, docs_out, bytes_in, bytes_out;
};

/* What came out of a run: as its last file of statistics says, which for a plan is what all outputs have together. */
struct report_out {
    uint64_t docs, bytes;
};

struct report_example {
    uint64_t hash; /* of the id: the smallest are taken */
    struct span id, survivor, text; /* text.p NULL: not found */
    double value, threshold;
    bool cut; /* the text goes on */
};

struct report_rule {
    struct span stage, rule;
    uint64_t said;    /* drops by the statistics */
    uint64_t other;   /* by those of the other run */
    uint64_t found;   /* lines of the accounts */
    uint64_t near;    /* of these, values within a tenth of their threshold */
    uint64_t against; /* of these, with a value and a threshold */
    struct sketch value, threshold;
    struct report_example *example;
    int n_examples;
};

struct report {
    struct report_stage *stage; /* in the order of the files */
    int n_stages;
    struct report_stage *other; /* of the other run */
    int n_others;
    struct report_out out, other_out;
    uint64_t bad;        /* by the statistics */
    uint64_t bad_lines;  /* of the accounts and documents, logged */
    struct report_rule *rule; /* in the order in which they were met */
    struct name_table rules;  /* STAGE NUL RULE */
    bool have_input, have_docs;
    struct corpus_stats input, docs;
    struct arena bytes;
};

/* Reads everything.  *r is to be freed whatever comes back.  ERR_FORMAT: a file of statistics
 * is none (the file is named); errors of the files. */
int report_read(struct report *r, const struct report_conf *conf, struct err *e);
void report_free(struct report *r);
/* Drops of a rule: as the statistics say, else as there are lines. */
static inline uint64_t report_drops(const struct report_rule *r) { return r->said ? r->said : r->found; }

/* Appends the page. */
int report_put(const struct report *r, const struct report_conf *conf, struct buf *b);
#endif
