/* curate/html/html_text.h -- a tree's text, plain or as Markdown.
 *
 * Paragraphs, headings, lists and tables are set apart by an empty line; list items, rows
 * and <br> begin a line.  White space is folded except in <pre>.  Items begin with "- ",
 * two spaces deeper for each list around them; the cells of a row stand between " | ",
 * unless the table only arranges the page (rows of one cell, or with lists, headings,
 * several paragraphs or tables in them).  Mathematics is TeX between dollars where the
 * page has it.  Markdown is GitHub's: # before headings, numbers in ordered lists, fences
 * with the language around <pre>, `code`, **strong**, *em*, [text](URL), > before quotations,
 * | tables; what would be read as a mark is escaped (curate/html/html_markdown.h).
 */
#ifndef CURATE_HTML_TEXT_H
#define CURATE_HTML_TEXT_H

#include "curate/html/html_tree.h"

struct html_text_conf {
    bool markdown;
    bool images;      /* Markdown: images too, ![alt](URL) */
    struct span base; /* what links are relative to; may be empty */
};

/* Appends the text of node 0 but for the subtrees of nodes with skip[i] set.
 * ERR_NOMEM. */
int html_text_write(const struct html_tree *t, const uint8_t *skip, const struct html_text_conf *c,
                    struct buf *out);

/* Appends s with white space (ASCII and no-break) folded to single spaces and trimmed. */
int html_fold(struct span s, struct buf *out);
#endif
