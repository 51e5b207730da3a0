/* tokenize/specials.h -- special tokens that a tokenizer's own file does not have, and the one that ends a document. */
#ifndef TOKENIZE_SPECIALS_H
#define TOKENIZE_SPECIALS_H

#include "tokenize/model.h"

/* A published rank file, by XXH3 of its bytes. */
struct known_ranks {
    uint64_t hash;
    const char *pattern; /* a name for split_find */
    bool nfc;            /* its users normalise text first */
    const struct series *specials; /* from the first id behind the ranks on */
};
/* The one with these bytes, or NULL. */
const struct known_ranks *specials_known_ranks(struct span file);
/* Adds its special tokens and its normaliser. */
int specials_add_known(struct tokenizer *t, const struct known_ranks *k, struct err *e);
/* Adds those that tiktoken has with a pattern, where the ranks leave room; and <|endoftext|> where it is a rank. */
int specials_add_usual(struct tokenizer *t, const char *pattern, struct err *e);

/* Adds those of a JSON file (struct tokenizer_settings).  ERR_FORMAT: an id is another token's, or the file is neither form. */
int specials_read(struct tokenizer *t, const char *path, struct err *e);
/* The same from the file's bytes; name is for messages. */
int specials_parse(struct tokenizer *t, const char *name, struct span json, struct err *e);

/* Sets t->eod and t->eod_from.  asked: an id (nothing but digits) or a token, which must be there (ERR_ARG), or NULL: then the
 * eos_token of FOLDER/tokenizer_config.json, else an eos_token_id of FOLDER/generation_config.json, else the first of the
 * usual names among t's special tokens, else none.  Files that are there and cannot be read are errors. */
int specials_find_eod(struct tokenizer *t, const char *folder, const char *asked, struct err *e);

#endif
