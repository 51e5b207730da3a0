/* tokenize/split_expression.h -- regular expressions of tokenizers, in PCRE2's words.
 *
 * Hugging Face's files have Oniguruma's expressions, tiktoken's patterns are Rust's.  Both go by the Unicode of ucd.h, where
 * PCRE2 goes by its own; both have sets within sets and sets that are cut.
 */
#ifndef TOKENIZE_SPLIT_EXPRESSION_H
#define TOKENIZE_SPLIT_EXPRESSION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

/* Appends what PCRE2 (with PCRE2_UTF and PCRE2_UCP) is to be given.  oniguruma: ^ and $ are at every line, and (?m) lets the dot
 * match line ends.  ERR_ARG: a bracket is not closed; ERR_UNSUPPORTED: it has a class that may not be the same
 * here; ERR_NOMEM. */
int split_expression(const char *pattern, bool oniguruma, struct buf *out, struct err *e);

#endif
