/* curate/html/html_markdown.h -- text as GitHub's Markdown (0.29) has it: what would be read as a
 * mark is escaped.  For curate/html/html_text.c. */
#ifndef CURATE_HTML_MARKDOWN_H
#define CURATE_HTML_MARKDOWN_H

#include "curate/html/html_tree.h"

/* Where a word stands. */
struct markdown_place {
    bool line_start; /* it is the first of its line */
    bool row;        /* in a table */
    bool link;       /* in the text of a link */
    bool code;       /* between backticks */
};

/* TeX in a text.  Zero for a new one. */
struct markdown_tex {
    const char *end;      /* what lies before it is not escaped */
    const char *clear[3]; /* up to here there is no end for what \(, \[, $$ begins */
};

/* Appends word, which has no white space.  end: of the text that it is part of, in which
 * TeX may end that begins here: \(..\), \[..\], $$..$$, and $..$ if it looks like TeX.
 * ERR_NOMEM. */
int markdown_put(struct span word, const char *end, const struct markdown_place *at, struct markdown_tex *tex,
                 struct buf *out);

/* Appends a link's target: what would end it or begin something else is %-encoded. */
int markdown_put_url(struct span url, struct buf *out);

/* Appends what an image shows. */
int markdown_put_alt(struct span alt, struct buf *out);

/* Puts as many backticks around out's bytes from `from` on, which begin with n of them, as
 * what lies behind these needs; n stand at the end too then.  block: a fence, which
 * needs three, and out ends where its last line begins; else a span of code.  ERR_NOMEM. */
int markdown_close_code(struct buf *out, size_t from, bool block);

/* The language that classes say the code of pre is in ("language-c", "brush: c",
 * "highlight-c"), or p == NULL. */
struct span markdown_language(const struct html_tree *t, uint32_t pre);
#endif
