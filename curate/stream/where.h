/* curate/stream/where.h -- conditions on named fields, of documents (a plan's `if`) and of entries of an index (`crawl
 * --where`).
 *
 *     lang = deu and mime in (text/html, "application/xhtml+xml") and not url ~ "^https?://[^/]*\.gov\."
 *
 * A test is FIELD OP VALUE.  OP is = (or ==), !=, <, <=, >, >=, ~ (a regular expression, PCRE2's, found anywhere) or in (any
 * of several values, in parentheses or up to the next word of the language); FIELD may be OBJECT.NAME.  Tests are joined by
 * `not`, `and`, `or`, which bind in that order, and parentheses.  A value is a word without blanks, commas and parentheses,
 * or stands in quotes ('...' or "...", in which \ before the quote makes it a part of the value, and is itself before
 * anything else).
 *
 * Text is compared byte by byte, numbers as doubles.  Where a field may be either, = and != hold a text against the value as
 * it is written and a number against the number that it is; <, <=, > and >= want a number if the value is one, else a text.
 * What has no such field meets no test of it, not even !=.
 */
#ifndef CURATE_WHERE_H
#define CURATE_WHERE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

enum { WHERE_TEXT_MAX = 64 << 10, WHERE_DEPTH_MAX = 100 /* of parentheses, and of `not` */ };

enum where_op { WHERE_AND, WHERE_OR, WHERE_NOT, WHERE_IS, WHERE_IS_NOT, WHERE_LESS, WHERE_AT_MOST, WHERE_MORE, WHERE_AT_LEAST,
                WHERE_MATCHES };
enum where_type { WHERE_ABSENT, WHERE_TEXT, WHERE_NUMBER, WHERE_ANY };

struct where_value {
    enum where_type type; /* ABSENT, TEXT or NUMBER */
    struct span text;
    double number;
};

struct where_node {
    enum where_op op;
    const struct where_node *left, *right; /* of AND and OR; of NOT left */
    /* Of a test: */
    const char *field;  /* as written */
    int which;          /* its number among those that are known; -1: any may be */
    enum where_type type;
    struct span *word;  /* is met by any of these */
    double *number;     /* the same as numbers; NAN: it is none */
    int n;
    struct regex *regex;
};

/* The fields that there are; NULL: any name is one. */
struct where_field {
    const char *name; /* NULL: the end of the table */
    enum where_type type; /* TEXT or NUMBER */
};

struct where;
/* Reads an expression.  ERR_FORMAT with the column, 1 being the first, counted in bytes; ERR_NOMEM, ERR_UNSUPPORTED (no
 * PCRE2 for ~). */
int where_read(struct where **w, const char *text, const struct where_field *fields, struct err *e);
void where_free(struct where *w);
const struct where_node *where_root(const struct where *w);
/* As it was written. */
const char *where_text(const struct where *w);
/* Whether what get tells of meets it: 1, 0; errors of get and of regular expressions that take too long (ERR_LIMIT).
 * Any thread, several at a time. */
int where_meets(const struct where *w, int (*get)(void *arg, const struct where_node *test, struct where_value *v, struct err *e),
                void *arg, struct err *e);
#endif
