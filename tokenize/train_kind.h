/* tokenize/train_kind.h -- the kinds of tokenizers that are trained: what each does to text, what its tokens are made of, and
 * how its model is written.  The trainer is one for all.
 */
#ifndef TOKENIZE_TRAIN_KIND_H
#define TOKENIZE_TRAIN_KIND_H

#include <stdbool.h>
#include <stdint.h>

enum train_model {
    TRAIN_BPE,           /* of bytes; text is cut by a pattern */
    TRAIN_BYTE_FALLBACK, /* of characters, spaces written U+2581; a character without a token is the tokens of its bytes */
    TRAIN_WORDPIECE,     /* of characters (BERT's): a word is its longest parts; those behind the first begin with "##" */
    TRAIN_UNIGRAM,       /* of characters (SentencePiece's): text becomes the tokens whose scores have the highest sum */
    TRAIN_SUPERBPE       /* of bytes; later merges go across words (Liu et al. 2025, arXiv:2503.13423) */
};
#define TRAIN_MODELS "bpe|byte-fallback|wordpiece|unigram|superbpe" /* in the order of the enum */

struct train_kind {
    bool characters;         /* tokens are made of characters; all else but specials is for these kinds */
    bool bytes;              /* bytes have tokens, <0x00> to <0xFF> */
    bool scored;             /* tokens have scores and are not made by merges; the last word of a text is marked */
    uint32_t longest;        /* characters of a token; 0: no bound */
    const char *inside;      /* stands in front of a token that does not begin its word; NULL: nothing */
    const char *always;      /* the character that has a token in any case; NULL: none */
    const char *pattern;     /* kinds of bytes: what cuts text into words if the user does not say */
    const char *across;      /* cuts text for merges across words, and in tokenizer.json; NULL: there are none */
    const char *specials[6]; /* if the user names none; the unknown token comes first */
    /* Of tokenizer.json, in JSON: */
    const char *normalizer, *pre_tokenizer, *decoder;
    const char *model; /* all but unk_token (of kinds of characters), vocab and merges */
    bool merges;       /* the model has them */
};

extern const struct train_kind train_kinds[];

#endif
