/* curate/report/why.h -- why documents were dropped: their lines in the accounts, and where the kept
 * ones are. */
#ifndef CURATE_WHY_H
#define CURATE_WHY_H

#include "base/name_table.h"

/* An id may have several lines (several runs, or documents of one id); so many are kept, the
 * others counted.  So many survivors are followed one after another. */
enum { WHY_HITS = 16, WHY_CHAIN = 64 };

/* A line about a document.  Strings live as long as the search. */
struct why_hit {
    bool kept; /* it is a document; otherwise a line of an account: */
    struct span stage, rule, survivor; /* survivor.p NULL: none */
    double value, threshold;
    const char *file;
    uint64_t offset; /* in the decompressed file */
    struct why_hit *next;
};

struct why_id {
    struct why_hit *first, *last;
    size_t hits; /* those beyond WHY_HITS too */
    bool cut;          /* its survivors were not looked for: too many, or a pipe */
};

struct why {
    struct name_table ids; /* those asked for, then survivors */
    struct why_id **of;    /* for each id */
    size_t asked, cap;
    uint64_t bad; /* lines that could not be read */
    struct arena bytes;
};

struct why_conf {
    char *const *rejects, *const *docs;
    int n_rejects, n_docs;
    bool follow; /* survivors too: reads the accounts again for each link that stands before */
};

/* Asks for an id, before the search. */
int why_ask(struct why *w, struct span id, struct err *e);
/* Reads the accounts and documents.  Bad lines are logged and counted. */
int why_search(struct why *w, const struct why_conf *c, struct err *e);
/* The document that stayed in place of the one that this line is about, if it was looked for. */
bool why_survivor(const struct why *w, const struct why_hit *h, size_t *id);

/* Appends what was found of the number'th id: lines for a person, or a line of JSON. */
int why_put_text(const struct why *w, size_t id, struct buf *b);
int why_put_json(const struct why *w, size_t id, struct buf *b);
void why_free(struct why *w);
#endif
