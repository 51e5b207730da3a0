/* curate/html/main_content_parts.h -- what the parts of the search for main content share;
 * nobody else includes it.
 */
#ifndef CURATE_MAIN_CONTENT_PARTS_H
#define CURATE_MAIN_CONTENT_PARTS_H

#include "curate/html/main_content.h"

/* In columns.  docs/extract.md says how much the results depend on them. */
enum {
    PARA_MIN = 30,   /* a shorter run of text is no paragraph */
    PARA_WORDS = 40, /* a paragraph that is mostly links needs so much that is none */
    LEAD_MIN = 110,  /* between the headline and the root: a shorter paragraph is no lead */
    CAPTION_MIN = 220, /* a longer caption says something of its own */
    FOLD_MIN = 60,   /* what a reader opens has so much in paragraphs */
    LINE_SHORT = 150, /* a longer line is content whatever it says */
    DATE_SLACK = 30, /* a line of a date has so much else at most */
    ENOUGH = 250     /* less text than this: try again with fewer hints */
};

enum { CONTENT_KEY_MAX = 256 };

/* What is known of a node.  Sums are over its subtree, without what is skipped.  Lengths
 * are in columns: bytes of ASCII, one for other letters, two for CJK. */
struct content_info {
    uint32_t hints;
    uint32_t text, link; /* all text; text in links */
    uint32_t para;       /* text of paragraphs */
    uint32_t own, own_para; /* of itself: a text's length; a block's paragraphs */
    uint32_t block;      /* the block that it stands in, or is */
};

struct content_marker {
    const struct html_tree *t;
    const struct content_words *words;
    struct content_info *info;
    uint8_t *skip;
    char title[CONTENT_KEY_MAX]; /* content_key of the title */
    size_t n_title;
    uint32_t para_min; /* a shorter run of text is no paragraph */
};

/* Whether an attribute's words say what its element is. */
static inline bool content_names(unsigned attr)
{
    return attr == ATTR_class || attr == ATTR_id || attr == ATTR_role || attr == ATTR_itemprop || attr == ATTR_data_testid ||
           attr == ATTR_data_component;
}
/* The hints of a value of such an attribute. */
uint32_t content_value_hints(const struct content_words *w, unsigned attr, struct span value);
/* Whether an id is the heading of its section, as it often is: "similar-drivers" is no list of other pages. */
bool content_is_slug(const struct html_tree *t, uint32_t i, const struct html_attr *id);
/* Skips what is no text for any reader: scripts, styles, pictures, frames ... */
void content_skip_silent(const struct html_tree *t, uint8_t *skip);
/* True if element i's own attributes hide it. */
bool content_is_hidden(const struct html_tree *t, uint32_t i);
/* Part of content_words_init. */
void content_phrases_init(struct content_words *w);
/* The letters and digits of s, in lower case as far as Latin-1 and Russian go, without references:
 * what two ways to write a title have in common.  Appends to the n bytes in key; returns
 * how many there are now. */
size_t content_key(struct span s, char key[CONTENT_KEY_MAX], size_t n);
/* True if heading i stands above links to other pages, or comments ("Related articles"). */
bool content_heads_related(const struct content_marker *m, uint32_t i);
/* Skips all but root, the lead in front of it, and what they stand in; the headline and
 * what stands above it too. */
void content_keep_root(struct content_marker *m, uint32_t root);
/* Drops lines of the root that are labels, credits or dates, and headings that nothing
 * follows. */
void content_drop_lines(struct content_marker *m, uint32_t root);
#endif
