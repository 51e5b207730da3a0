/* curate/language/ngram.h -- n-gram language models: KenLM's binary files and ARPA files.
 *
 * A binary file (probing hash tables; tries, quantised or not, their pointers compressed or not) is mapped: what no text asks
 * for is not read.  An ARPA file, compressed or not, becomes hash tables in memory, 24 to 48 bytes an n-gram.
 * Probabilities are those that KenLM gives, added up in the same order, so that they have the same bits.
 */
#ifndef CURATE_NGRAM_H
#define CURATE_NGRAM_H

#include "base/err.h"
#include "base/mem.h"

enum { NGRAM_MAX_ORDER = 12, NGRAM_MAX_LINE = 1 << 20 /* bytes of a line of an ARPA file */ };

struct ngram_model;

/* Opens a model.  Counts, offsets and sizes are held against the file: ERR_FORMAT with the name, the offset and the reason.
 * ERR_UNSUPPORTED: a kind or an order that is not known; a binary file that is compressed, as it has to be mapped. */
int ngram_open(struct ngram_model **m, const char *path, struct err *e);
/* The same over bytes that must outlive it; name is for messages. */
int ngram_open_mem(struct ngram_model **m, const char *name, struct span bytes, struct err *e);
void ngram_close(struct ngram_model *m);

/* For reports; they live as long as m. */
struct ngram_facts {
    const char *kind; /* "probing", "trie", "arpa" ... */
    int order;
    uint32_t words;
};
struct ngram_facts ngram_facts(const struct ngram_model *m);

/* The number of a word; 0: unknown. */
uint32_t ngram_word(const struct ngram_model *m, struct span word);
/* What a thread keeps of one model: the words of a line, and numbers of words that it has seen.  Zero-initialise. */
enum { NGRAM_RECALLED = 4096 };
struct ngram_line {
    struct buf words; /* uint32_t */
    uint64_t hash[NGRAM_RECALLED];
    uint32_t number[NGRAM_RECALLED];
};
/* The numbers of the words of a line, which white space of ASCII divides, to l->words.  ERR_NOMEM. */
int ngram_words(const struct ngram_model *m, struct ngram_line *l, struct span line);
/* The base-10 logarithm of the probability of a sentence of n words, between the marks of its beginning and its end: n + 1
 * words are told.  Threads may share m.  ERR_FORMAT: what the model has at some place cannot be. */
int ngram_score(const struct ngram_model *m, const uint32_t *word, size_t n, float *log10, struct err *e);
#endif
