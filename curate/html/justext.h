/* curate/html/justext.h -- jusText's rules: which paragraphs of a page are content.
 *
 * A paragraph is a run of text without the border of a block or a double <br>.  It is
 * judged by its length, the share of stop words and the share of text in links (good,
 * near good, short, bad), then by its neighbours: short and near good ones follow them.
 * Decisions are those of jusText 3.0.2, paragraph for paragraph, where its parser (libxml2)
 * finds the same paragraphs; also in this: its first look at headings, meant to save short
 * ones before a good paragraph, has no effect, as later paragraphs have no class by then.
 * Linear in the page.
 * Method: Pomikalek, "Removing Boilerplate and Duplicate Content from Web Corpora" (2011);
 * justext/core.py (BSD-2-Clause).
 */
#ifndef CURATE_JUSTEXT_H
#define CURATE_JUSTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct html_tree;

/* Lengths are in characters. */
struct justext_conf {
    int64_t length_low;   /* shorter paragraphs are short, or bad if they hold a link */
    int64_t length_high;  /* longer ones may be good without neighbours */
    double stopwords_low; /* of all words: fewer are bad */
    double stopwords_high; /* fewer are near good at best */
    double max_link_density; /* of the length: more is bad */
    int64_t max_heading_distance; /* from a short heading to the good paragraph that saves it */
    bool headings;        /* headings are so saved */
    const char *lang;     /* the stop list's language, ISO 639-1; "auto": the page's, else English */
    const char *stop_words; /* a file of stop words, one a line, for all pages; NULL: none */
};

/* 70, 200, .30, .32, .2, 200, true; auto. */
void justext_conf_init(struct justext_conf *c);

enum justext_class { JUSTEXT_SHORT, JUSTEXT_BAD, JUSTEXT_NEAR_GOOD, JUSTEXT_GOOD };

struct justext_paragraph {
    uint32_t length, links, words, stop_words; /* characters in all and in links; words */
    bool heading, copyright;
    uint8_t first, class; /* without context, with it: enum justext_class */
};

struct justext;

/* One a thread.  c is copied, its strings are not.  ERR_ARG: no list of that language, or
 * bounds that cross; ERR_IO, ERR_FORMAT: the file; ERR_NOMEM. */
int justext_new(struct justext **j, const struct justext_conf *c, struct err *e);
void justext_free(struct justext *j);

/* Fills skip[0 .. n_nodes): 1 for each node whose subtree is no content.  page_lang: as
 * the page declares it, may be empty.  ERR_NOMEM. */
int justext_mark(struct justext *j, const struct html_tree *t, struct span page_lang, uint8_t *skip);

/* The paragraphs of the last page marked, *n of them; of[i]: whose text node i is,
 * JUSTEXT_NONE if it is of none. */
const struct justext_paragraph *justext_paragraphs(const struct justext *j, uint32_t *n, const uint32_t **of);
#define JUSTEXT_NONE UINT32_MAX
#endif
