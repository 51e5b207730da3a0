/* tokenize/unigram_train.h -- training of Unigram (Kudo 2018) as SentencePiece's trainer does it (unigram_model_trainer.cc,
 * 0.2.1), with the same arithmetic in the same order, so that pieces and scores come out the same.
 *
 * 1. unigram_words.c: the different words of the corpus, laid end to end.
 * 2. unigram_seed.c: a suffix array of that gives all strings within words that are followed by different characters; the
 *    most frequent ones are the first pieces.
 * 3. unigram_em.c: expectation and maximisation; unigram_prune.c: pieces that are missed least are taken out; in turns, until
 *    the vocabulary is small enough.
 *
 * A lattice is where in a word which pieces are.  It is found once, with the suffix array, and from then on only gets
 * thinner: no text is looked at again.
 */
#ifndef TOKENIZE_UNIGRAM_TRAIN_H
#define TOKENIZE_UNIGRAM_TRAIN_H

#include "base/err.h"
#include "base/mem.h"
#include "tokenize/train_symbols.h"

enum {
    UNIGRAM_LONGEST = 16,     /* characters of a piece */
    UNIGRAM_WORD_MAX = 4192,  /* bytes: longer words are cut; no longer line is looked at by SentencePiece */
    UNIGRAM_LANES = 16,       /* words are dealt to so many sums: SentencePiece's, a thread each by default */
    UNIGRAM_SEEDS = 1000000,
    UNIGRAM_RARE = 0x2585     /* stands for characters that get no piece */
};

/* Nodes: of each character of a word the pieces that begin there, the shortest first; the last one is marked. */
#define UNIGRAM_LAST 0x80000000u
#define UNIGRAM_UNKNOWN 0x7FFFFFFFu /* a character that no piece is; behind all others */

struct unigram_piece {
    float score;
    uint32_t at;   /* its nodes begin with those of one of its places */
    uint32_t text; /* where in the text it is */
    uint8_t chars, bytes;
};

/* Zero-initialise. */
struct unigram_train {
    /* words */
    uint64_t memory;      /* bytes that may be taken */
    int threads;
    struct buf text;      /* each word once, lane by lane; then, for their counts, words that end a text too and others not */
    size_t own;           /* bytes of the former */
    uint64_t *counts;     /* of a word */
    uint32_t *starts;     /* of a word: of its text; once there is a lattice, of its nodes; one more for the end */
    uint32_t n_words, lanes[UNIGRAM_LANES + 1]; /* the first word of a lane */
    /* how often each word of the text is there, the last being none: for the suffix array */
    struct buf weights;   /* struct unigram_weight */
    /* lattice */
    uint32_t *nodes;
    size_t n_nodes;
    struct unigram_piece *pieces;
    uint32_t n;           /* pieces */
    float least, unknown; /* the lowest score; that of an unknown character */
};

/* A word as it stands in the text. */
struct unigram_weight {
    uint32_t end;
    uint64_t count;
};

/* Takes the words, whose characters are those of chars (n of them) or UNIGRAM_RARE.  A word that ends a text ends with a zero
 * byte.  ERR_LIMIT: they do not fit into u->memory. */
int unigram_words_make(struct unigram_train *u, struct word_counts *words, const struct train_char *chars, size_t n,
                       struct err *e);
/* The first pieces: chars, the most frequent first, and strings of several that are frequent; and the lattice.  ERR_LIMIT as
 * above. */
int unigram_seed(struct unigram_train *u, const struct train_char *chars, size_t n, struct err *e);
/* True where the build can: it has libdivsufsort. */
bool unigram_seed_can(void);
/* Expectation and maximisation once: new scores, and pieces that are hardly expected go. */
int unigram_em(struct unigram_train *u, struct err *e);
/* Takes out pieces that cost least likelihood, so that three in four are left, or `desired`. */
int unigram_prune(struct unigram_train *u, uint32_t desired, struct err *e);
/* Leaves n pieces, those of the ids given, in that order; scores: their new ones, NULL: the old. */
int unigram_keep(struct unigram_train *u, const uint32_t *ids, const float *scores, uint32_t n, struct err *e);
/* Sets least and unknown by the pieces' scores. */
void unigram_set_least(struct unigram_train *u);
void unigram_train_free(struct unigram_train *u);

/* The text of a piece. */
static inline struct span unigram_text_of(const struct unigram_train *u, const struct unigram_piece *x)
{
    return (struct span){u->text.p + x->text, x->bytes};
}
/* The score of a node. */
static inline float unigram_score(const struct unigram_train *u, uint32_t id)
{
    return id == UNIGRAM_UNKNOWN ? u->unknown : u->pieces[id].score;
}
static inline unsigned unigram_chars(const struct unigram_train *u, uint32_t id)
{
    return id == UNIGRAM_UNKNOWN ? 1 : u->pieces[id].chars;
}
/* The piece that a node is counted as: SentencePiece counts an unknown character as its first piece. */
static inline uint32_t unigram_counted(uint32_t id)
{
    return id == UNIGRAM_UNKNOWN ? 0 : id;
}
static inline int unigram_no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for training");
}
int unigram_too_large(const struct unigram_train *u, uint64_t bytes, struct err *e); /* ERR_LIMIT if that does not fit */

#endif
