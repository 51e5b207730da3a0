/* tokenize/model_unigram.h -- the segmentation of highest score (Kudo 2018), by Viterbi's
 * algorithm, as SentencePiece and Hugging Face compute it to the last rounding.
 */
#ifndef TOKENIZE_MODEL_UNIGRAM_H
#define TOKENIZE_MODEL_UNIGRAM_H

#include "tokenize/marks.h"
#include "tokenize/trie.h"
#include "tokenize/vocab.h"
#include "tokenize/word_table.h"

/* Whose sums: which of two nearly equal ways is the better one depends on how they are rounded. */
enum unigram_sums {
    UNIGRAM_DOUBLE,       /* Hugging Face's: double precision */
    UNIGRAM_ROUNDED,      /* SentencePiece 0.2.3: single precision; beyond +-100,000 they begin at 0 again */
    UNIGRAM_ROUNDED_LAST, /* SentencePiece up to 0.2.1: a sum is rounded to single precision when it has won */
};

enum { UNIGRAM_SHORT = 512 };

/* Zero-initialise, fill in the settings, add pieces, then unigram_finish. */
struct unigram {
    enum unigram_sums sums;
    bool fuse_unknown;  /* a run of unknown characters is one unknown token */
    bool byte_fallback;
    int64_t unknown;    /* -1: the model has none */
    double unknown_score;
    int64_t byte_id[256];
    struct trie trie;
    uint32_t n_scores;
    double *scores;     /* by id; NaN: text is not made of the piece; owned */
    size_t longest;     /* bytes of a piece */
    uint8_t *user;      /* SentencePiece: user-defined, by id; owned */
    float bonus;        /* UNIGRAM_ROUNDED_LAST: a user-defined piece of n bytes has the score n * bonus - 0.1 */
    /* made by unigram_finish */
    struct word_marks marks;
};

struct unigram_scratch {
    struct buf nodes, found, path, ids;
    const struct vocab *by_vocab; /* pieces, of UNIGRAM_SHORT bytes at most, are looked up there; NULL: in the trie, faster */
    struct buf *unknown; /* takes the text of each unknown token, in order, each ended by a NUL; NULL: it is not wanted */
};

/* The score of the id's piece, which is not found in the trie before unigram_add_pieces. */
int unigram_add(struct unigram *u, uint32_t id, struct span piece, double score, uint32_t n_ids, struct err *e);
int unigram_add_pieces(struct unigram *u, const struct vocab *v, struct err *e); /* all of them */
/* mark: the id of the piece U+2581; -1: there is none. */
void unigram_finish(struct unigram *u, const struct vocab *v, int64_t mark);
void unigram_free(struct unigram *u);
void unigram_scratch_free(struct unigram_scratch *s);

/* The ids of a piece: at most n, to ids; their number, ERR_NOMEM, or ERR_FORMAT: a character
 * is unknown and there is no unknown token.  Linear in n times the longest token. */
int64_t unigram_encode(const struct unigram *u, struct unigram_scratch *s, const uint8_t *p, size_t n, uint32_t *ids);
/* Appends the ids of a text that was cut nowhere, word by word where that is the same.
 * words: a table that nothing else uses. */
int unigram_text(const struct unigram *u, struct unigram_scratch *s, struct word_table *words, struct span text,
                 int width, struct buf *out, struct err *e);

#endif
