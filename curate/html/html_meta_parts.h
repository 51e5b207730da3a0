/* curate/html/html_meta_parts.h -- pieces of curate/html/html_meta.c; nobody else includes it. */
#ifndef CURATE_HTML_META_PARTS_H
#define CURATE_HTML_META_PARTS_H

#include "curate/html/html_meta.h"

enum meta_field {
    META_TITLE, META_AUTHOR, META_DATE, META_SITE, META_LANG, META_CANONICAL, META_LICENSE, META_ROBOTS, META_TDM,
    META_TDM_POLICY, META_FIELDS
};

/* How far a source is believed: the lowest rank wins, of equal ones the first.  Of the date these are named, as several
 * files give it: what is said of a change counts only where nothing is said of publication. */
enum { META_RANK_DATED = 10, META_RANK_NEAR = 9, META_RANK_CHANGED = 20, META_RANK_BYLINE = 8, META_RANK_SITE = 15 };

enum { META_AUTHOR_MAX = 120, META_TITLE_MAX = 600, META_LICENSE_MAX = 300, META_HEADINGS = 16 };

/* Stands between the texts of different blocks in meta_text. */
#define META_BREAK '\x1F'

/* A page that is being read. */
struct meta_reader {
    struct html_meta *m;
    const struct html_tree *t;
    struct span url;
    int rank[META_FIELDS]; /* of what is in the buffer; 0: nothing */
    uint32_t title, headings[META_HEADINGS];
    int n_headings;
    bool card_by[2]; /* a card's label says that its text is an author */
    int values, references; /* of JSON-LD that were looked at, and looked for */
    int dates;              /* texts in which one was looked for */
};

/* Takes value (UTF-8, decoded) for a field if nothing better is there. */
int meta_offer(struct meta_reader *r, enum meta_field f, int rank, struct span value);
/* The folded text of a subtree, at most some max bytes of it, into out; META_BREAK between blocks. */
int meta_text(struct meta_reader *r, uint32_t i, size_t max, struct buf *out);
/* An attribute's decoded value, in r->m->tmp. */
int meta_attr(struct meta_reader *r, uint32_t i, enum html_attr_name name);
/* Whether one of the words of an attribute is this one. */
bool meta_has_word(struct span value, const char *word);

/* ---- html_meta_title.c ---- */

/* Makes the title of what the page's head says and its headings; *heading: the node that repeats it, 0: none. */
int meta_choose_title(struct meta_reader *r, uint32_t *heading);

/* ---- html_meta_byline.c ---- */

/* An author and a date of an element that nothing but its class speaks for. */
int meta_read_class(struct meta_reader *r, uint32_t i);
/* The same of short texts near the headline, where nothing else said them. */
int meta_read_near(struct meta_reader *r, uint32_t heading);
/* An element that is said to name the author. */
int meta_read_author(struct meta_reader *r, uint32_t i, int rank);

/* ---- html_meta_json.c ---- */

int meta_read_json(struct meta_reader *r, struct span script, bool linked_data);

/* ---- html_meta_rights.c ---- */

/* A <meta> by its name: robots, tdm-reservation, tdm-policy.  A link to a licence: rel=license, or Creative Commons. */
int meta_read_robots(struct meta_reader *r, uint32_t i, struct span name);
int meta_read_license(struct meta_reader *r, uint32_t i);
#endif
