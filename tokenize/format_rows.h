/* tokenize/format_rows.h -- the long lists of a tokenizer's JSON, item by item: from the text as it stands (NODE_ROWS), or from
 * a tree, which takes many times as long and is there for whatever is unusual.
 */
#ifndef TOKENIZE_FORMAT_ROWS_H
#define TOKENIZE_FORMAT_ROWS_H

#include "base/json.h"
#include "base/node.h"

struct row {
    enum { HF_ROW_OTHER, HF_ROW_STRING, HF_ROW_STRINGS, HF_ROW_NUMBER } kind; /* "a"; ["a", "b"]; "a": 0, ["a", 0] or a rank */
    struct span text, second; /* its strings, or its string and the number as written */
    int64_t integer;          /* the number, if it is an integer that may be an id; else -1 */
};

struct row_reader {
    size_t n;
    struct json_rows rows;
    const struct node **items; /* instead of rows; NULL: they are rows */
    bool map;
    struct buf text, second; /* without escapes */
};

/* list: a MAP, LIST or ROWS.  ERR_NOMEM.  row_reader_free in either case. */
int row_reader_begin(struct row_reader *r, const struct node *list, struct err *e);
/* The i-th item, valid until the next call.  ERR_FORMAT: it is to be read from a tree; ERR_NOMEM. */
int row_reader_get(struct row_reader *r, size_t i, struct row *row, struct err *e);
void row_reader_free(struct row_reader *r);

/* What may be such a list; n may be NULL. */
bool hf_is_map(const struct node *n);
bool hf_is_list(const struct node *n);

#endif
