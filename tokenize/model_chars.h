/* tokenize/model_chars.h -- byte pair encoding that begins with characters.
 *
 * Of SentencePiece: two symbols are joined when the vocabulary has their text, best score
 * first; user-defined pieces stay whole.  Of Hugging Face: by a list of merges, with an
 * affix of the characters behind the first or of the last.  A character without a token
 * becomes the tokens of its bytes, or the unknown token.
 */
#ifndef TOKENIZE_MODEL_CHARS_H
#define TOKENIZE_MODEL_CHARS_H

#include "tokenize/bpe.h"
#include "tokenize/trie.h"
#include "tokenize/vocab.h"

/* Zero-initialise and fill in the settings; then chars_finish, or of SentencePiece chars_make. */
struct chars {
    bool sentencepiece;
    bool fuse_unknown; /* a run of unknown characters is one unknown token */
    bool byte_fallback;
    int64_t unknown;   /* -1: unknown characters leave nothing behind */
    const char *prefix, *suffix; /* owned; NULL: none */
    int64_t byte_id[256]; /* of "<0x00>" and so on, -1 if there is none; see chars_set_bytes */
    /* SentencePiece's */
    float *scores;       /* by id; NaN: text is not made of the piece; owned */
    struct trie user;    /* pieces that stay whole */
    uint32_t first_virtual; /* ids are below */
    /* made by chars_make */
    struct trie symbols; /* texts of pieces, and characters of pieces that are none, from first_virtual on, to symbols */
    /* made by either */
    uint32_t *bmp; /* symbols of the characters below U+10000 */
};

/* Finds the tokens of bytes; and whether each has one, or needs none: of or_chars (or NULL) a character of ASCII may be a token,
 * as Gemma's files have the tab in the place of <0x09>. */
void chars_set_bytes(int64_t byte_id[256], const struct vocab *v);
bool chars_has_all_bytes(const int64_t byte_id[256], const struct vocab *or_chars);
/* SentencePiece: symbols of the pieces that text is made of, which are all different and of at most CHARS_PIECE_MAX bytes; and,
 * if they are to be joined, pairs of b.  ERR_LIMIT (tries), ERR_NOMEM. */
enum { CHARS_PIECE_MAX = 1024 }; /* pairs of a piece are as many as its characters, their search quadratic */
int chars_make(struct chars *c, struct bpe *b, const struct vocab *v, bool joins, struct err *e);
int chars_finish(struct chars *c, const struct vocab *v, struct err *e);
void chars_free(struct chars *c);

/* The ids of a piece of text (UTF-8): at most n, to ids.  Their number or ERR_NOMEM. */
int64_t chars_encode(const struct chars *c, const struct bpe *b, const struct vocab *v, struct bpe_scratch *s,
                     const uint8_t *p, size_t n, uint32_t *ids);

/* Not of SentencePiece's models: the tokens of a short piece's characters, which are to be joined; count is how many. */
void chars_begin_word(const struct chars *c, const struct vocab *v, struct bpe_word *w);
/* SentencePiece's, before chars_make.  Symbols are where they begin and end in the word then; a user-defined piece is its id and
 * CHARS_WHOLE.  chars_join_places: what two symbols become, and the rank of it by the score; BPE_NO_RANK: nothing.
 * chars_end_places: the ids of what is left. */
enum { CHARS_WHOLE = 1 << 30 };
void chars_begin_places(const struct chars *c, struct bpe_word *w);
uint32_t chars_join_places(const struct chars *c, const struct vocab *v, const struct bpe_word *w, uint32_t left, uint32_t right,
                           uint32_t *both);
void chars_end_places(const struct chars *c, const struct vocab *v, struct bpe_word *w);
/* As chars_encode for n pieces together; those of more than BPE_SHORT symbols go one by one.  0 or ERR_NOMEM. */
int chars_encode_words(const struct chars *c, const struct bpe *b, const struct vocab *v, struct bpe_scratch *s,
                       struct bpe_word *words, size_t n);

#endif
