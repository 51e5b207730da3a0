/* curate/text/words.h -- English words as spaCy's blank English tokenizer cuts them.
 *
 * Token for token what datatrove 0.10 gets from spaCy 3.8 (spacy.blank("en")), white
 * space left out: the words that its filters count.  White space separates chunks;
 * from a chunk prefixes and suffixes are cut off in turn, exceptions ("can't", "Mr.")
 * and URLs end that, infixes split what is left; at last exceptions are looked for
 * across the pieces ("vitamin-a." ends in the exception "a.").
 * Tables: curate/text/words_data.inc.  Method: spacy/tokenizer.pyx (Honnibal et al., MIT).
 */
#ifndef CURATE_WORDS_H
#define CURATE_WORDS_H

#include "base/err.h"
#include "base/mem.h"
#include "curate/text/chars.h"

struct word {
    uint32_t off, len; /* bytes in the text */
};

/* Words of one text, and memory that is used again for the next one.  Start with
 * zeroes; one a thread. */
struct words {
    struct word *w;
    size_t n, cap;
    uint32_t *trigger; /* tokens at which an exception across tokens may stand */
    size_t n_trigger, cap_trigger;
    struct word_match *match;
    size_t n_match, cap_match;
    uint32_t *cp, *at; /* the chunk at hand: code points and where they begin */
    size_t cap_chunk;
    struct word *suffix;
    size_t n_suffix, cap_suffix;
    const char *end;    /* of the text */
    struct word *spare; /* for rebuilding w */
    size_t cap_spare;
};

/* Cuts text (valid UTF-8, below 2^30 bytes, else ERR_LIMIT) into ws->w[0..n).
 * ERR_NOMEM.  About linear in the text. */
int words_split(struct words *ws, struct span text, struct err *e);
void words_free(struct words *ws);

/* Adds bytes from .. to - 1 of the text as a word, for those who cut it in another way.  ERR_NOMEM. */
static inline int words_put(struct words *ws, size_t from, size_t to)
{
    TRY(mem_grow(&ws->w, &ws->cap, ws->n + 1, sizeof *ws->w));
    ws->w[ws->n++] = (struct word){(uint32_t)from, (uint32_t)(to - from)};
    return 0;
}

/* Number of sentences of a text whose words are ws: spaCy's sentencizer as datatrove
 * calls it.  At least 1; at most ws->n + 2.  ends (NULL: not wanted) gets the byte where each
 * ends; white space between two belongs to the second. */
size_t words_sentences(const struct words *ws, struct span text, uint32_t *ends);
size_t words_count_sentences(const struct words *ws, struct span text);
#endif
