/* curate/report/reject.h -- reading accounts of dropped documents (--rejects), and documents, by id.
 *
 * A line that begins with {"id":"..." is looked at no further unless its id is asked for: that
 * is how the tools write it, and it makes a search as fast as finding the lines.
 */
#ifndef CURATE_REJECT_H
#define CURATE_REJECT_H

#include "curate/stream/feed.h"
#include "base/name_table.h"

/* A line of an account.  Strings are decoded, in the reader's memory or the line. */
struct reject {
    struct span id, stage, rule;
    double value, threshold; /* NAN: none */
    struct span survivor;    /* p NULL: none */
};

struct reject_reader {
    struct json_reader *json;
    struct arena arena; /* of the line that was read last */
};
/* ERR_NOMEM. */
int reject_reader_open(struct reject_reader *r, struct err *e);
void reject_reader_close(struct reject_reader *r);
/* Parses a line (JSON_PADDING readable bytes behind it).  ERR_FORMAT: no object with strings id,
 * stage and rule. */
int reject_parse(struct reject_reader *r, struct span line, struct reject *out, struct err *e);

/* What is called for each line. */
typedef int line_seen(void *to, const struct item *it, struct err *e);
/* Goes through all lines of the files, in order.  What is wrong with a file's bytes is logged
 * and counted in *bad; bad NULL: passed over.  Errors of the files and of `seen`; ERR_FORMAT from it is logged and
 * counted too. */
int lines_read(char *const *files, int n, line_seen *seen, void *to, uint64_t *bad, struct err *e);

/* Could this line have one of these ids?  False only if its id is known at a glance and is none
 * of them. */
bool line_may_be(struct span line, const struct name_table *ids);

/* Appends s as one line for a terminal: what controls it, or turns the writing around, as
 * \uXXXX; at most `most` bytes of it (0: all), then how many there are. */
int put_visible(struct buf *b, struct span s, size_t most);
#endif
