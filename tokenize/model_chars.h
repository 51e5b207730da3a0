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

/* Zero-initialise, fill in the settings, add symbols, then chars_finish. */
struct chars {
    bool sentencepiece;
    bool fuse_unknown; /* a run of unknown characters is one unknown token */
    bool byte_fallback;
    int64_t unknown;   /* -1: unknown characters leave nothing behind */
    const char *prefix, *suffix; /* owned; NULL: none */
    int64_t byte_id[256]; /* of "<0x00>" and so on, -1 if there is none; see chars_set_bytes */
    /* SentencePiece's */
    struct trie user;    /* pieces that stay whole */
    struct trie symbols; /* texts of pieces, and characters of pieces, to symbols */
    struct buf virtual_ids; /* int64_t: what the symbol of a character without a piece is, or -1 */
    uint32_t first_virtual;
    /* made by chars_finish */
    uint32_t *bmp; /* symbols of the characters below U+10000 */
};

/* Finds the tokens of bytes. */
void chars_set_bytes(int64_t byte_id[256], const struct vocab *v);
bool chars_has_all_bytes(const int64_t byte_id[256]);
/* SentencePiece: takes a piece that text is made of, then all together make pairs of b;
 * scores[id] by id.  ERR_FORMAT, ERR_LIMIT, ERR_NOMEM. */
int chars_add_piece(struct chars *c, uint32_t id, struct span piece, struct err *e);
int chars_add_pairs(struct chars *c, struct bpe *b, const struct vocab *v, const float *scores, struct err *e);
int chars_finish(struct chars *c, const struct vocab *v, struct err *e);
void chars_free(struct chars *c);

/* The ids of a piece of text (UTF-8): at most n, to ids.  Their number or ERR_NOMEM. */
int64_t chars_encode(const struct chars *c, const struct bpe *b, const struct vocab *v, struct bpe_scratch *s,
                     const uint8_t *p, size_t n, uint32_t *ids);

/* Not of SentencePiece's models: the tokens of a short piece's characters, which are to be joined; count is how many. */
void chars_begin_word(const struct chars *c, const struct vocab *v, struct bpe_word *w);
/* As chars_encode for n pieces together; those of more than BPE_SHORT symbols go one by one.  0 or ERR_NOMEM. */
int chars_encode_words(const struct chars *c, const struct bpe *b, const struct vocab *v, struct bpe_scratch *s,
                       struct bpe_word *words, size_t n);

#endif
