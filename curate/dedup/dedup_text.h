/* curate/dedup/dedup_text.h -- a text's units (lines, paragraphs, sentences) and what makes two of
 * them the same.
 */
#ifndef CURATE_DEDUP_TEXT_H
#define CURATE_DEDUP_TEXT_H

#include "base/hash.h"
#include "curate/dedup/minhash_text.h"
#include "curate/stream/stage.h"
#include "curate/text/words.h"

enum dedup_unit { DEDUP_LINE, DEDUP_PARAGRAPH, DEDUP_SENTENCE };
/* RAW: the bytes.  CCNET: without white space at the ends, lower case, each digit a 0, without
 * control characters and CCNet's list of punctuation.  SIMPLE: datatrove's simplified text
 * (docs/dedup.md, presets). */
enum dedup_form { DEDUP_RAW, DEDUP_CCNET, DEDUP_SIMPLE };

/* text[from, to) is the unit; text[gap, from) parts it from the one before, and goes with it. */
struct text_unit {
    uint32_t gap, from, to;
};

/* Cuts and normalises; one a thread. */
struct dedup_text {
    struct words words;
    struct shingler *simple;
    struct buf ccnet, form;       /* of a unit; of several, joined */
    struct span text;             /* in hand, */
    size_t at, gap;               /*   where its next unit is looked for, and the one before ended */
    bool ended;
    uint32_t *ends;               /*   where its sentences end */
    size_t ends_cap, n_ends, end; /*   of these the next */
};
int dedup_text_open(struct dedup_text *t, struct err *e);
/* What a thread has: `size` bytes, a struct dedup_text first (opened) and zeros. */
int dedup_text_thread(void **thread, size_t size, struct err *e);
void dedup_text_close(struct dedup_text *t);

/* Cuts text into units, from its beginning on.  Lines end at each \n; paragraphs at blank lines; sentences are spaCy's
 * (curate/text/words.h), and are all looked for at once.  ERR_LIMIT from 2^28 bytes on. */
int dedup_text_begin(struct dedup_text *t, struct span text, enum dedup_unit unit, struct err *e);
/* The next one; false: there is none. */
bool dedup_text_next(struct dedup_text *t, enum dedup_unit unit, struct text_unit *u);

/* Told of each key in turn; form is what it is of, where all forms are wanted, and valid for this call. */
typedef int dedup_key_taker(void *to, const struct hash128 *key, struct span form, struct err *e);
enum { DEDUP_SPAN_MOST = 3 };
struct dedup_keys {
    enum dedup_unit unit;
    enum dedup_form form;
    int span;        /* consecutive units that a key is of, their normal forms joined by single spaces; 1 but of sentences */
    int64_t min;     /* a key whose normal form has fewer characters is {0, 0}; of all others hi is not 0 */
    bool forms;      /* all forms are wanted; else long ones are never in memory whole */
    dedup_key_taker *take;
    void *to;
};
/* The keys of a text's units, or of all runs of so many.  Sentences of white space at the end do not count when span > 1. */
int dedup_text_keys(struct dedup_text *t, struct span text, const struct dedup_keys *k, struct err *e);
/* The text without units: unit i and `span` - 1 behind it go where mark.p[i], if it is there, is set.  Goes to `to`, which has
 * room for text.n bytes and may be the text's own; its length and how many were struck come back.  What white space is before
 * the first sentence left goes too, and behind the last. */
struct dedup_strike {
    enum dedup_unit unit;
    int span;
    struct span mark;
};
int dedup_text_strike(struct dedup_text *t, struct span text, const struct dedup_strike *s, char *to, size_t *n,
                      uint64_t *struck, struct err *e);

/* Why the stages that take repeated text out of documents drop some. */
enum dedup_text_rule { NOTHING_LEFT, WORDS_LEFT, SENTENCES_LEFT };
extern const struct stage_rule dedup_text_rules[];

/* What must be left of a text that was shortened. */
struct dedup_left {
    int64_t words, sentences; /* 0: no bound */
};
/* Drops by the rules "nothing-left", "words-left", "sentences-left". */
int dedup_text_left(struct dedup_text *t, struct span text, const struct dedup_left *least, struct verdict *v,
                    struct err *e);
/* What all threads struck. */
struct dedup_struck {
    uint64_t docs, pieces, bytes;
};
/* The document's text becomes this one, of which so many pieces were struck, unless too little is left.  It may be in the place
 * of that text (doc_text_bytes). */
int dedup_text_replace(struct dedup_text *t, struct doc *d, struct span text, uint64_t pieces,
                       const struct dedup_left *least, struct dedup_struck *all, struct verdict *v, struct err *e);
/* Their counts for a stage's statistics. */
int dedup_struck_stats(const struct dedup_struck *all, const char *pieces, struct buf *json);
#endif
