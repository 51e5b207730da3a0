/* tokenize/model_words.h -- models that look words up: whole (WordLevel), or the longest part first (WordPiece).
 */
#ifndef TOKENIZE_MODEL_WORDS_H
#define TOKENIZE_MODEL_WORDS_H

#include "tokenize/trie.h"
#include "tokenize/vocab.h"

/* Zero-initialise, fill in, then wordlist_finish. */
struct wordlist {
    int64_t unknown;   /* -1: there is none */
    bool whole;        /* WordLevel */
    char *prefix;      /* of parts behind the first; owned */
    int64_t max_chars; /* a longer word is unknown */
    struct trie first, next;
};

int wordlist_finish(struct wordlist *w, const struct vocab *v, struct err *e);
void wordlist_free(struct wordlist *w);
/* The ids of a word, at most n; their number, or ERR_FORMAT: it is unknown, and there is no token for that.  Linear in n
 * times the longest token. */
int64_t wordlist_encode(const struct wordlist *w, const struct vocab *v, const uint8_t *p, size_t n, uint32_t *ids);

#endif
