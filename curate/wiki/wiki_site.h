/* curate/wiki/wiki_site.h -- what an export says of the wiki it is from, and what is known of all. */
#ifndef CURATE_WIKI_SITE_H
#define CURATE_WIKI_SITE_H

#include "base/err.h"
#include "base/mem.h"

/* Numbers of namespaces that are the same everywhere. */
enum { WIKI_MEDIA = -2, WIKI_MAIN = 0, WIKI_FILE = 6, WIKI_TEMPLATE = 10, WIKI_CATEGORY = 14, WIKI_NONE = INT32_MAX };

struct wiki_namespace {
    int key;
    struct span name; /* in lower case as wiki_key makes it */
};

/* Spans lie in the arena; zero to start. */
struct wiki_site {
    struct arena arena;
    struct span name; /* "Wikipedia" */
    struct span lang; /* of the content, BCP 47; empty if unknown */
    struct span base; /* what titles are put behind: "https://en.wikipedia.org/wiki/" */
    struct wiki_namespace *ns;
    int n_ns;
};

/* Reads the <mediawiki> tag and <siteinfo>; replaces what s had.  An empty head is no fault, and damage is passed over.
 * ERR_NOMEM. */
int wiki_site_parse(struct wiki_site *s, struct span head, struct err *e);
void wiki_site_free(struct wiki_site *s);

/* The namespace that a link's or title's prefix (without the colon) names: those of the site,
 * the English ones, and the old and short names of files and categories in the largest
 * languages; WIKI_NONE if it is none. */
int wiki_site_namespace(const struct wiki_site *s, struct span prefix);
/* Whether a link with this prefix is to the same page in another language. */
bool wiki_is_language(struct span prefix);
/* Appends the address of a page: base, and the title as MediaWiki writes it.  ERR_NOMEM. */
int wiki_site_url(const struct wiki_site *s, struct span title, struct buf *out);

enum { WIKI_KEY_MAX = 96 };
/* A name without blanks at its ends, underscores as blanks, runs of them as one, letters in
 * lower case (Latin, Greek, Cyrillic, Armenian).  Its length, or 0 if it is empty or longer than
 * WIKI_KEY_MAX. */
size_t wiki_key(struct span name, char key[WIKI_KEY_MAX]);
#endif
