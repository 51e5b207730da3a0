/* tokenize/model.h -- what a tokenizer is made of: for the readers of formats
 * (format_*.c) and the encoder; others use tokenizer.h. */
#ifndef TOKENIZE_MODEL_H
#define TOKENIZE_MODEL_H

#include "base/node.h"
#include "tokenize/added.h"
#include "tokenize/bpe.h"
#include "tokenize/ranks_later.h"
#include "tokenize/rules.h"
#include "tokenize/split.h"
#include "tokenize/tokenizer.h"
#include "tokenize/vocab.h"

struct tokenizer {
    struct vocab vocab;
    struct bpe bpe;
    struct ranks_later *later; /* its pairs are derived when they are needed; NULL: they are there; owned */
    struct split split;
    struct added added;
    bool nfc;         /* text is normalised first */
    bool whole_first; /* a piece that is a token is that token, whatever the merges say */
    struct rules *rules; /* NULL: bytes, one pattern and merges are all there is */
    bool added_mapped; /* added tokens too are characters for bytes when they are decoded, where all their characters are */
    enum tokenizer_spm spm_version; /* whose ids a Unigram .model gives */
    bool specials_given; /* by a file of their own: a rank file has no usual ones */
    const char *format;
    bool lacks_token; /* a merge needs a token that there is not: no other way to read the file finds it */
    uint32_t likely;  /* while merges are read: what the next one probably makes */
    int64_t eod;
    const char *eod_from;
};

/* Each fills an empty t from the bytes of its files; names are for messages.  pattern:
 * tokenizer_open's.  On failure the caller frees t. */
int format_read_huggingface(struct tokenizer *t, const char *name, struct span json, const char *pattern,
                            struct err *e);
int format_read_gpt2(struct tokenizer *t, const char *vocab_name, struct span vocab, const char *merges_name,
                     struct span merges, const char *pattern, struct err *e);
int format_read_tiktoken(struct tokenizer *t, const char *name, struct span ranks, const char *pattern,
                         struct err *e);

/* True if the first line is base64, a space and a number. */
bool format_is_ranks(struct span file);

int format_read_sentencepiece(struct tokenizer *t, const char *name, struct span model, const char *pattern,
                              struct err *e);

/* An added token: found in text before it is cut.  Its bytes go into the vocabulary unless
 * the model has them under this id. */
int format_add_token(struct tokenizer *t, const struct added_token *token, struct err *e);
/* The bytes that a token of a byte-level vocabulary stands for: GPT-2 writes byte 0x20 as
 * U+0120 and so on.  A token with another character stands for its own UTF-8, and no text
 * makes it but as an added token; 1 is returned for it.  Appends. */
int format_unmap_bytes(struct span token, struct buf *out);
/* Appends what a token decodes to where tokens are bytes; text: the token's, or how an added one looks. */
int format_decode_bytes(const struct tokenizer *t, uint32_t id, struct span text, struct buf *out);
/* Fills t->vocab from an object of tokens and ids.  Of rows (node.h) it fails wherever anything is unusual; then they are to be
 * read as a tree. */
int format_read_vocab(struct tokenizer *t, const struct node *map, struct err *e);
/* An empty tokenizer again, to be read anew. */
void tokenizer_clear(struct tokenizer *t);
/* The byte that a character stands for, or -1. */
int format_byte_of(uint32_t cp);
/* The reverse: appends the UTF-8 text of these bytes. */
int format_map_bytes(struct span bytes, struct buf *out);
/* Adds the merge of two tokens given by their bytes, the rank-th; what they become lacks the first `prefix` bytes
 * of the right one.  The error says which token the vocabulary lacks. */
int format_add_merge(struct tokenizer *t, struct span left, struct span right, size_t prefix, uint32_t rank,
                     struct buf *scratch, struct err *e);
/* Merges whose tokens are looked for together, so that memory is asked early.  Zero-initialise. */
enum { MERGE_BATCH = 64, MERGE_ROOM = 128 };
struct merge_batch {
    struct {
        uint8_t left, n; /* bytes of the first token, of both */
        char bytes[MERGE_ROOM];
        uint64_t asked[2];
        uint32_t left_id, right_id, rank;
    } line[MERGE_BATCH];
    size_t n;
    bool down; /* they come from the last to the first */
};
/* line[n], of which left, n and bytes are there, is one more; when they are MERGE_BATCH they are added to t. */
int merge_batch_next(struct tokenizer *t, struct merge_batch *b, uint32_t rank, struct buf *scratch, struct err *e);
/* The same with two tokens, which are added at once, behind those that are there, if they are longer than MERGE_ROOM. */
int merge_batch_put(struct tokenizer *t, struct merge_batch *b, struct span left, struct span right, uint32_t rank,
                    struct buf *scratch, struct err *e);
/* Adds those that are there, as format_add_merge. */
int merge_batch_add(struct tokenizer *t, struct merge_batch *b, struct buf *scratch, struct err *e);

#endif
