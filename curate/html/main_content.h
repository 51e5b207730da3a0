/* curate/html/main_content.h -- which part of a page is its content. */
#ifndef CURATE_MAIN_CONTENT_H
#define CURATE_MAIN_CONTENT_H

#include "curate/html/html_tree.h"

/* What class, id and role words say of an element. */
enum {
    HINT_ARTICLE = 1 << 0,  /* article, story, post */
    HINT_BODY = 1 << 1,     /* body, content, text */
    HINT_ROOT = 1 << 2,     /* both in one word, or itemprop=articleBody */
    HINT_NAV = 1 << 3,
    HINT_SIDE = 1 << 4,
    HINT_FOOT = 1 << 5,
    HINT_COMMENT = 1 << 6,
    HINT_SHARE = 1 << 7,
    HINT_RELATED = 1 << 8,
    HINT_AD = 1 << 9,
    HINT_FORM = 1 << 10,    /* newsletter, login */
    HINT_META = 1 << 11,    /* byline, date, tags */
    HINT_CAPTION = 1 << 12,
    HINT_HIDDEN = 1 << 13,
    HINT_TEASER = 1 << 14,  /* a lead, or what stands for another page */
    HINT_CONSENT = 1 << 15, /* what asks for cookies */
    HINT_NOTICE = 1 << 16,  /* of the site, or of an article */
    HINT_FOLD = 1 << 17     /* a reader opens it: an answer, a tab */
};

enum { CONTENT_PHRASES_MAX = 512 };

/* Phrases, in chains by their first byte: 1 + the number of one, 0 at the end. */
struct content_phrases {
    uint16_t head[256], next[CONTENT_PHRASES_MAX];
};

/* The words behind the hints, found by hash, and phrases.  Fill once, then read from any thread. */
struct content_words {
    uint32_t slot[1024];
    struct content_phrases whole, first;
};
void content_words_init(struct content_words *w);
/* The hints of node i's class, id, role and itemprop. */
uint32_t content_hints(const struct content_words *w, const struct html_tree *t, uint32_t i);

/* True if a line says that it is not content ("Read more", "Photo: ...").  key: its letters
 * and digits in lower case (n > 0); labelled: its first word or words end in a colon. */
bool content_phrase(const struct content_words *w, const char *key, size_t n, bool labelled);
/* True if a heading says that what follows is not content ("Related articles"). */
bool content_phrase_head(const struct content_words *w, const char *key, size_t n);

/* Memory of content_mark, kept from page to page.  Zero to start. */
struct content_scratch {
    void *p;
    size_t size;
};

/* Fills skip[0 .. n_nodes): 1 for each node whose subtree is no text for readers
 * (scripts, hidden elements ...) and, with main_only, is not content; the heading that
 * repeats title (which may be empty) is not.  Linear in the nodes.  ERR_NOMEM. */
int content_mark(const struct content_words *w, const struct html_tree *t, bool main_only,
                 struct span title, struct content_scratch *scratch, uint8_t *skip);
void content_scratch_free(struct content_scratch *s);
#endif
