/* curate/crawl/crawl_entry.h -- what an index says of a record: the same fields, whichever kind of index it is.
 *
 * CDXJ has a line "KEY TIMESTAMP {JSON}", the columnar index a row; docs/crawl.md says which key and which column is which field.
 */
#ifndef CURATE_CRAWL_ENTRY_H
#define CURATE_CRAWL_ENTRY_H

#include <stdint.h>

#include "base/json.h"
#include "curate/stream/where.h"
#include "curate/text/url_host.h"

enum crawl_field { CRAWL_URL, CRAWL_HOST, CRAWL_DOMAIN, CRAWL_TLD, CRAWL_KEY, CRAWL_DATE, CRAWL_STATUS, CRAWL_MIME,
                   CRAWL_MIME_TYPE, CRAWL_LANG, CRAWL_LANGS, CRAWL_CHARSET, CRAWL_LENGTH, CRAWL_OFFSET, CRAWL_FILE,
                   CRAWL_DIGEST, CRAWL_TRUNCATED, CRAWL_REDIRECT, CRAWL_DUMP, CRAWL_FIELDS };
/* The same as --where names them. */
extern const struct where_field crawl_fields[];

/* One a thread; zeroed to start. */
struct crawl_entry {
    struct span text[CRAWL_FIELDS]; /* p NULL: it has none; valid until the next one is read */
    uint64_t offset, length;
    struct json_reader *json;
    struct buf own;                 /* texts that are not as they stand */
    bool hosted, registered;        /* HOST; DOMAIN and TLD have been looked for */
    char host[URL_HOST_MAX + 1], date[24];
    struct url_host parts;
};

/* Reads a line of CDXJ (line has JSON_PADDING bytes behind it): 1; 0: it is none (empty, or begins with ! or a blank, as
 * heads do).  ERR_FORMAT with the reason alone: it is damaged, or lacks file, offset or length.  ERR_NOMEM. */
int crawl_entry_cdxj(struct crawl_entry *c, struct span line, struct err *e);
/* The same of a JSON object by itself: a row of the columnar index, a line of a list. */
int crawl_entry_json(struct crawl_entry *c, struct span object, struct err *e);
void crawl_entry_free(struct crawl_entry *c);
/* The fields that a condition (or NULL) and a list of records need, a bit each; and whether a column has one of these. */
uint32_t crawl_fields_needed(const struct where *w);
bool crawl_column_needed(void *fields, struct span column);
/* What indexes and lists call a field, the i-th that counts where it is there, before the next; NULL: there are no more. */
const char *crawl_field_called(enum crawl_field f, int i);
/* A count in digits; false: it is none, or more than 2^63 - 1. */
bool crawl_read_count(struct span s, uint64_t *v);
/* Whether it meets a condition: 1, 0; errors of where_meets. */
int crawl_entry_meets(struct crawl_entry *c, const struct where *w, struct err *e);
/* Appends it as a line of a list of records.  ERR_NOMEM. */
int crawl_entry_put(struct crawl_entry *c, struct buf *b);
#endif
