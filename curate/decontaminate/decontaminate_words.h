/* curate/decontaminate/decontaminate_words.h -- words of a text as hashes, for finding texts in texts.
 *
 * Two kinds of words.  Plain: runs of letters and digits in lower case; marks (accents,
 * vowel signs) and invisible format characters do not end a word, and each character of
 * a script that is written without spaces is a word.  Cleaned: what is left between
 * white space when the ASCII punctuation and the curly quotes and dash of decon's
 * clean_text (allenai/decon) are white space too.
 */
#ifndef CURATE_DECONTAMINATE_WORDS_H
#define CURATE_DECONTAMINATE_WORDS_H

#include "base/err.h"
#include "base/mem.h"

struct hashed_word {
    uint64_t hash;     /* of its bytes in lower case: the same for the same word anywhere */
    uint32_t off, end; /* bytes in the text */
};

/* Words of one text, and memory that is used again for the next.  Start with zeroes. */
struct hashed_words {
    struct hashed_word *w;
    size_t n, cap;
    uint64_t *mask; /* a bit a byte: of a word */
    size_t cap_mask;
    struct buf low;
};

/* Cut text (valid UTF-8, below 4 GiB, else ERR_LIMIT) into ws->w[0..n).  ERR_NOMEM. */
int hashed_words_plain(struct hashed_words *ws, struct span text, struct err *e);
int hashed_words_cleaned(struct hashed_words *ws, struct span text, struct err *e);
void hashed_words_free(struct hashed_words *ws);
#endif
