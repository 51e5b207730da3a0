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
    struct text_unit *piece;
    size_t n, cap;
    size_t tail; /* behind the last piece: belongs to none and stays */
    uint32_t *ends;
    size_t ends_cap;
    struct buf form;
    bool apart;       /* keys of what a text has twice are both there */
    size_t *form_end; /* where each piece's normal form ends in `form` */
    size_t form_cap;
};
int dedup_text_open(struct dedup_text *t, struct err *e);
/* What a thread has: `size` bytes, a struct dedup_text first (opened) and zeros. */
int dedup_text_thread(void **thread, size_t size, struct err *e);
void dedup_text_close(struct dedup_text *t);

/* What a thread has of a stage that strikes pieces of texts; opened and closed as struct stage_ops has it. */
struct dedup_striker {
    struct dedup_text text; /* first */
    struct buf out;
    uint8_t *drop; /* a byte for each piece */
    size_t cap;
};
int dedup_striker_open(void *stage, void **thread, struct err *e);
void dedup_striker_close(void *stage, void *thread);

/* Cuts text into t->piece[0..t->n).  Lines end at each \n; paragraphs at blank lines; sentences
 * are spaCy's (curate/text/words.h), and what white space is behind the last is dropped when the
 * text is put together again.  ERR_LIMIT from 2^28 bytes on. */
int dedup_text_cut(struct dedup_text *t, struct span text, enum dedup_unit unit, struct err *e);
/* Keys of t's pieces, `span` consecutive ones together (their normal forms joined by single
 * spaces): key[i] of pieces i to i + span - 1.  Pieces of white space at the end do not count when
 * span > 1.  A key whose normal form has fewer than min characters is {0, 0}; one that the text
 * has before, as key k, is {k, 1}, but for t->apart; of all others hi is greater.  The number of keys, at most t->n; room for
 * them is the caller's.  Behind it t->form has the normal forms, of piece i up to t->form_end[i] and a space before it. */
int64_t dedup_text_keys(struct dedup_text *t, struct span text, enum dedup_form form, int span, int64_t min,
                        struct hash128 *key, struct err *e);
/* The text without the pieces whose drop[i] is set, into out; *kept is their number. */
int dedup_text_join(const struct dedup_text *t, struct span text, enum dedup_unit unit, const uint8_t *drop,
                    struct buf *out, size_t *kept);

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
/* dedup_text_cut; no piece is to be dropped yet. */
int dedup_striker_cut(struct dedup_striker *s, struct span text, enum dedup_unit unit, struct err *e);
/* What all threads struck. */
struct dedup_struck {
    uint64_t docs, pieces, bytes;
};
/* The document's text becomes this one, of which so many pieces were struck, unless too little is left. */
int dedup_text_replace(struct dedup_text *t, struct doc *d, struct span text, uint64_t pieces,
                       const struct dedup_left *least, struct dedup_struck *all, struct verdict *v, struct err *e);
/* Their counts for a stage's statistics. */
int dedup_struck_stats(const struct dedup_struck *all, const char *pieces, struct buf *json);
#endif
