/* curate/xml/word_styles.h -- what a word processor's document (DOCX) says of paragraphs beside them: which styles are
 * headings, whatever they are called in the author's language, and how lists are numbered.
 *
 * Sources: ECMA-376 part 1, 17.7 (styles: basedOn, outlineLvl) and 17.9 (numbering: num, abstractNum, lvl).
 */
#ifndef CURATE_WORD_STYLES_H
#define CURATE_WORD_STYLES_H

#include "base/err.h"
#include "base/mem.h"

enum {
    WORD_LEVELS = 9,
    WORD_NO_LEVEL = -1,
    WORD_PARTS_MAX = 1 << 16, /* styles, numberings and lists that are kept of a document, each */
    WORD_BASES_MAX = 16       /* styles that one is based on, one on the other */
};

/* A style, with what it has from those it is based on. */
struct word_style {
    struct span id, base; /* in word_styles.text */
    int outline;          /* level of a heading, from 0; WORD_LEVELS and beyond: it is none; WORD_NO_LEVEL: not said */
    int list, level;      /* its numbering and level there; WORD_NO_LEVEL: not said */
    bool title;
};

/* One document's.  Zero to start. */
struct word_styles {
    struct word_style *style; /* by id */
    size_t n_styles, cap_styles;
    struct word_numbering *numbering; /* abstractNum */
    size_t n_numberings, cap_numberings;
    struct word_list *list; /* num */
    size_t n_lists, cap_lists;
    struct arena text;
};

/* Forgets the document before. */
void word_styles_reset(struct word_styles *w);
void word_styles_free(struct word_styles *w);
/* Reads word/styles.xml and word/numbering.xml (UTF-8), each once, in this order; either may be left out.  What is not
 * well-formed is passed over.  ERR_NOMEM. */
int word_styles_read(struct word_styles *w, struct span xml);
int word_styles_read_lists(struct word_styles *w, struct span xml);

/* The style of an id; NULL: there is none. */
const struct word_style *word_style(const struct word_styles *w, struct span id);
/* Counts an item of a list at a level (0 to 8), and puts what stands before it ("2.1." or "iv)") into label: nothing for a
 * bullet, or a list that is not known.  ERR_NOMEM. */
int word_list_item(struct word_styles *w, int list, int level, struct buf *label);
#endif
