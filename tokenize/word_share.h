/* tokenize/word_share.h -- words that threads have merged, for each other.
 *
 * Each thread has a table of its own (word_table.h), which is faster; what is new there is looked for here before it is
 * merged.  Entries are written once and never change, so nobody waits.  Only words of at most WORDS_SHORT bytes and
 * WORDS_INLINE ids; when their window is full, they are not kept.  2^18 words, 8 MiB.
 */
#ifndef TOKENIZE_WORD_SHARE_H
#define TOKENIZE_WORD_SHARE_H

#include "tokenize/tokenizer.h"
#include "tokenize/word_table.h"

/* s NULL, here and below: nothing is shared.
 * Asks memory for a word that will be looked for soon. */
void word_share_ask(const struct word_share *s, const uint8_t *p, size_t n);
/* Writes the ids of a word, at most WORDS_INLINE, to ids; their number, 0 if it is not there.  Any thread at any time. */
size_t word_share_find(const struct word_share *s, const uint8_t *p, size_t n, uint32_t *ids);
/* A word that word_share_find() did not find.  Any thread at any time. */
void word_share_put(struct word_share *s, const uint8_t *p, size_t n, const uint32_t *ids, size_t count);

#endif
