/* curate/dedup/minhash_words.h -- shingles of words as text-dedup and RedPajama-Data v2 make them.
 *
 * text-dedup 0.4: the text in lower case (Python's), every character that is not \w a space, and
 * words between single spaces, empty ones too; the low 32 bits of XXH3-64.
 * RedPajama-Data v2 (app/src/dedupe): words of the normalised text (curate/text/rpv2_text.h); the first
 * four bytes of SHA-1 as a little-endian number.
 */
#ifndef CURATE_MINHASH_WORDS_H
#define CURATE_MINHASH_WORDS_H

#include "curate/text/rpv2_text.h"

/* Zero-initialise to start. */
struct minhash_words {
    struct buf text;     /* words between single spaces, and one behind the last */
    uint32_t *start;     /* of each word, and where one more would begin */
    size_t start_cap;
    struct rpv2_text rpv2;
    uint64_t *hash;
    size_t hash_cap;
};

/* hash[0 .. *count) of each window of `width` words, with repetitions; none of a text with fewer
 * words.  text is valid UTF-8 below 2^28 bytes.  ERR_NOMEM, ERR_LIMIT. */
int minhash_words_text_dedup(struct minhash_words *w, struct span text, size_t width, size_t *count, struct err *e);
int minhash_words_rpv2(struct minhash_words *w, struct span text, size_t width, size_t *count, struct err *e);
/* The words after either, between single spaces. */
struct span minhash_words_text(const struct minhash_words *w);
void minhash_words_free(struct minhash_words *w);
#endif
