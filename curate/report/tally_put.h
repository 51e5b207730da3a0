/* curate/report/tally_put.h -- counts by name (name_tally.h) as JSON and as tables. */
#ifndef CURATE_TALLY_PUT_H
#define CURATE_TALLY_PUT_H

#include "curate/report/name_tally.h"
#include "curate/report/text_table.h"

/* How many of n are shown; top 0: all. */
size_t tally_shown(int64_t top, size_t n);
/* {"KEY":name,"documents":...}: the counts of name number k. */
int tally_put_row(const struct name_tally *t, size_t k, const char *key, struct buf *b);
/* "NAME":{"different":...,"missed":...,"top":[rows]}, the most frequent first.  ERR_NOMEM. */
int tally_put_json(const struct name_tally *t, const char *name, const char *key, int64_t top, struct buf *b);
/* The same as a table under the name; docs: in all. */
int tally_put_text(const struct name_tally *t, const char *name, uint64_t docs, int64_t top, struct text_table *table,
                   struct buf *b);
#endif
