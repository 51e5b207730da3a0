/* curate/wiki/wikitext.h -- MediaWiki's markup in, text or Markdown out.
 *
 * Three passes, each linear in the page whatever it holds.  The brackets, braces, comments and
 * tags that belong together are found first (wikitext_nodes.c).  Then the page is written as
 * HTML, as MediaWiki would but for templates, of which a table says which carry text
 * (wikitext_template.c).  The HTML is made text by curate/html/html.h, so that lists, tables,
 * mathematics and code look the same wherever a document came from.
 *
 * Left out: files with their captions, categories, links to other languages, references,
 * infoboxes and all templates that the table does not know; headings that nothing follows;
 * sections of references and links (docs/wikipedia.md).  Parentheses from which something was
 * left out are tidied, or go if nothing is left in them.
 *
 * Source: mediawiki.org, Help:Formatting, Help:Links, Help:Tables, Preprocessor ABNF.
 */
#ifndef CURATE_WIKITEXT_H
#define CURATE_WIKITEXT_H

#include "base/err.h"
#include "base/mem.h"
#include "curate/html/html.h"
#include "curate/wiki/wiki_site.h"

struct wikitext;

/* A worker belongs to one thread; it keeps its memory from page to page.  Of c (copied) format
 * and bounds are used.  ERR_NOMEM. */
int wikitext_new(struct wikitext **w, const struct html_conf *c, struct err *e);
void wikitext_free(struct wikitext *w);

/* The text of one page, below 1 GiB of UTF-8, in *out: no line ends in white space; ends with
 * a newline unless empty; lasts until the next page.  *truncated: c's max_nodes cut it.
 * ERR_NOMEM; ERR_LIMIT: max_seconds passed, or the page is too long. */
int wikitext_extract(struct wikitext *w, const struct wiki_site *site, struct span title, struct span text,
                     struct span *out, bool *truncated, struct err *e);
#endif
