/* tokenize/split_pcre.h -- any other pattern, by PCRE2's just-in-time compiler.
 *
 * \s and \S mean Unicode's White_Space as in Rust's and Oniguruma's expressions (PCRE2's
 * own differ); letters and numbers are those of the PCRE2 library.  Text that is matched by
 * nothing, and bytes that are not UTF-8, are pieces too.
 */
#ifndef TOKENIZE_SPLIT_PCRE_H
#define TOKENIZE_SPLIT_PCRE_H

#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>

#include "base/err.h"

struct split_pcre;

/* oniguruma: split_expression's.  ERR_ARG: not an expression, with PCRE2's reason; ERR_UNSUPPORTED: no PCRE2 here, or
 * split_expression's. */
int split_pcre_new(struct split_pcre **x, const char *pattern, bool oniguruma, struct err *e);
void split_pcre_free(struct split_pcre *x);
/* The pattern as it was given. */
const char *split_pcre_pattern(const struct split_pcre *x);
/* The next match at or behind text[at]: its bounds; empty ones too if `empty`.  1, 0 (none), ERR_NOMEM, ERR_LIMIT. */
int split_pcre_match(const struct split_pcre *x, const uint8_t *text, size_t n, size_t at, bool empty, size_t bounds[2],
                     struct err *e);
/* True if matches may be empty. */
bool split_pcre_may_be_empty(const struct split_pcre *x);

#endif
