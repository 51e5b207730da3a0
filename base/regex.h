/* base/regex.h -- regular expressions as Python's re reads them, by PCRE2. */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/err.h"
#include "base/mem.h"

struct regex;

/* ERR_FORMAT: not an expression, with PCRE2's reason; ERR_UNSUPPORTED: no PCRE2 here. */
int regex_new(struct regex **x, struct span pattern, struct err *e);
void regex_free(struct regex *x); /* NULL is fine */

/* One of re.findall(x, text): the k-th, or, k < 0, the k-th from the end; of several groups the first that is not empty.  1, and
 * *found lies in text; 0: there is no such match, or all its groups are empty; ERR_LIMIT: the expression takes too long. */
int regex_find(const struct regex *x, struct span text, int64_t k, struct span *found, struct err *e);
/* Whether the expression is found anywhere in text: 1, 0, ERR_LIMIT.  Any thread, several at a time. */
int regex_has(const struct regex *x, struct span text, struct err *e);
/* re.sub(x, "", text), to out. */
int regex_remove(const struct regex *x, struct span text, struct buf *out, struct err *e);

#endif
