/* tokenize/tokenizer.h -- text to token ids and back.
 *
 * A struct tokenizer is what the files say: vocabulary, merges, how text is cut into
 * pieces.  It never changes after tokenizer_open, so threads may share it.  A struct
 * encoder is what one thread needs to encode fast (a bounded table of pieces seen):
 * one a thread.  Byte-level BPE: any bytes can be encoded, and decoding gives the same
 * bytes back unless the tokenizer normalises (NFC).  Bytes that are not UTF-8 are
 * encoded as they are: each maximal ill-formed part counts as one symbol character
 * where text is cut into pieces.  Tokenizers whose tokens are made of characters
 * read U+FFFD there: SentencePiece one for each byte, others one for each such part.
 */
#ifndef TOKENIZE_TOKENIZER_H
#define TOKENIZE_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct tokenizer;

/* Which SentencePiece's ids a Unigram .model gives.  They round sums in different ways, so of two nearly equal ways they take
 * different ones. */
enum tokenizer_spm {
    TOKENIZER_SPM_0_2_3,
    TOKENIZER_SPM_0_2_1 /* and before */
};
#define TOKENIZER_SPM_NAMES "0.2.3|0.2.1" /* in the order of the enum */

/* What is to be otherwise than the files say; zeros: nothing. */
struct tokenizer_settings {
    /* A name that split_find() knows (gpt2, cl100k, o200k ...), or a regular expression when it is none; NULL: what the file
     * says, else what its name says, else gpt2 for vocab.json + merges.txt. */
    const char *pattern;
    /* A JSON file that gives a rank file, or vocab.json + merges.txt, special tokens: an object of tokens and ids, or one with
     * "added_tokens_decoder", as a tokenizer_config.json. */
    const char *special_tokens;
    /* The token that ends a document, or its id; NULL: see tokenizer_eod. */
    const char *eod;
    int sentencepiece; /* enum tokenizer_spm */
};

/* Opens a tokenizer:
 *   - a tokenizer.json (Hugging Face), a tekken.json (Mistral);
 *   - a folder with tokenizer.json, vocab.json + merges.txt, or encoder.json +
 *     vocab.bpe, or the path of one of the latter four, or PREFIX for
 *     PREFIX-vocab.json + PREFIX-merges.txt;
 *   - a tiktoken rank file, as Llama 3's and 4's tokenizer.model is too;
 *   - a SentencePiece model (BPE or Unigram).
 * ERR_FORMAT and ERR_UNSUPPORTED name the file and what in it is wrong or unknown; ERR_ARG: a setting is impossible. */
int tokenizer_open_as(struct tokenizer **t, const char *path, const struct tokenizer_settings *s, struct err *e);
/* The same with a pattern alone. */
int tokenizer_open(struct tokenizer **t, const char *path, const char *pattern, struct err *e);
/* Tells the files that tokenizer_open would read of this path, none where it finds none.  What tell answers below 0 comes back at
 * once. */
int tokenizer_files(const char *path, int (*tell)(void *of, const char *file), void *of);
/* tokenizer_open over the bytes of a tokenizer.json; name is for messages. */
int tokenizer_open_json(struct tokenizer **t, const char *name, struct span json, const char *pattern,
                        struct err *e);
/* tokenizer_open_as over the bytes of a SentencePiece model; of the settings, what such a model has. */
int tokenizer_open_sentencepiece(struct tokenizer **t, const char *name, struct span model, const struct tokenizer_settings *s,
                                 struct err *e);
void tokenizer_close(struct tokenizer *t);

/* What opening leaves for when it is needed: pairs, Unigram's trie, which many threads may wait for.  Encoders do so by
 * themselves; facts and a hash need it.  ERR_NOMEM, ERR_FORMAT (ranks_later.h). */
int tokenizer_prepare(const struct tokenizer *t, struct err *e);

/* For reports.  The strings live as long as t.  Merges are counted when t is prepared. */
struct tokenizer_facts {
    const char *format, *pattern_name, *pattern, *normalizer;
    const char *sentencepiece; /* the version whose ids it gives; NULL where all versions give the same */
    uint32_t tokens, merges, added;
};
struct tokenizer_facts tokenizer_facts(const struct tokenizer *t);
/* A hash of everything that bears on ids: tokens, merges, pattern, normaliser, added tokens.  The
 * same for the same tokenizer in another format, if ids, ranks and rules are the same.  t is to be prepared. */
struct tokenizer_hash {
    uint64_t lo, hi;
};
struct tokenizer_hash tokenizer_hash(const struct tokenizer *t);
/* The version of Unicode that decides what letters, numbers and white space are. */
const char *tokenizer_unicode(void);

/* The highest id, plus one. */
uint32_t tokenizer_vocab_size(const struct tokenizer *t);
/* The id that ends a document, -1 if none: the one of the settings; else the eos_token of tokenizer_config.json or an
 * eos_token_id of generation_config.json beside the file; else the first of the usual names (<|endoftext|>, </s> ...) that is
 * a special token.  A token that is not special ends nothing by itself. */
int64_t tokenizer_eod(const struct tokenizer *t);
/* Which of these it was, for people. */
const char *tokenizer_eod_from(const struct tokenizer *t);
/* The id of exactly this token (its bytes; special and added tokens too), or -1. */
int64_t tokenizer_find(const struct tokenizer *t, struct span token);
/* The id of text that has no token, of a tokenizer whose tokens are made of characters; -1: it has none. */
int64_t tokenizer_unknown(const struct tokenizer *t);
/* Sets the bit of each special token in a map of tokenizer_vocab_size() bits, bit id % 8 of byte id / 8. */
void tokenizer_mark_specials(const struct tokenizer *t, uint8_t *bits);
/* The bytes that an id stands for, in the tokenizer's memory; p is NULL when there is
 * no such id. */
struct span tokenizer_bytes(const struct tokenizer *t, uint32_t id);
/* Appends the bytes that n ids stand for.  ERR_FORMAT for an unknown id. */
int tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out,
                     struct err *e);

struct encoder;

/* NULL when memory is out.  The tokenizer must outlive it. */
struct encoder *encoder_new(const struct tokenizer *t);
void encoder_free(struct encoder *enc);

/* Encoders of the same tokenizer in several threads learn words from each other by this; ids are the same with it and
 * without.  It must outlive them. */
struct word_share;
struct word_share *word_share_new(void); /* NULL: out of memory */
void word_share_free(struct word_share *s);
void encoder_share(struct encoder *enc, struct word_share *s);

enum encoder_flags {
    ENCODER_SPECIAL = 1 /* special tokens written in text become their ids; else plain text */
};

/* Appends the ids of text to out: width 4: uint32_t, width 2: uint16_t (ERR_ARG when
 * the vocabulary is larger), little-endian.  Time is linear in the length of text but
 * for a logarithm on long pieces.  ERR_NOMEM, ERR_LIMIT (text of 2 GiB and more, or
 * out's cap). */
int encoder_encode(struct encoder *enc, struct span text, int flags, int width, struct buf *out,
                   struct err *e);
/* From now on a Unigram model appends what each unknown token of a text stands for to texts, in order, each ended by a NUL. */
void encoder_tell_unknown(struct encoder *enc, struct buf *texts);
/* How many special tokens stood in text as plain text so far (never with
 * ENCODER_SPECIAL): for the report. */
uint64_t encoder_specials_seen(const struct encoder *enc);

#endif
