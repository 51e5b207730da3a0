/* tokenize/rules.h -- what tokenizers have beyond bytes, one pattern and merges: steps that
 * normalise text, steps that cut it, other models, steps that decode.
 */
#ifndef TOKENIZE_RULES_H
#define TOKENIZE_RULES_H

#include "tokenize/marks.h"
#include "tokenize/model_chars.h"
#include "tokenize/model_unigram.h"
#include "tokenize/model_words.h"
#include "tokenize/spm_normal.h"
#include "tokenize/steps.h"
#include "tokenize/tokenizer.h"

enum model_kind { MODEL_BYTES, MODEL_CHARS, MODEL_UNIGRAM, MODEL_WORDS };

struct rules {
    enum model_kind model;
    bool sentencepiece;
    bool by_version; /* SentencePiece's versions give other ids */
    uint64_t hash; /* of the file that all this is from */
    struct word_marks marks; /* MODEL_CHARS */
    bool joins;    /* MODEL_CHARS: long pieces may be cut where no token reaches across */
    struct chars chars;
    struct unigram unigram;
    struct wordlist words;
    struct steps normal, cut, decode; /* of a tokenizer.json */
    /* SentencePiece */
    struct spm_normal spm;
    uint8_t *types;         /* of pieces, by id; owned */
    char *unknown_surface;  /* what the unknown piece decodes to; owned */
    char *normal_names, *cut_names; /* what is done to text, for people; owned */
    bool denormalizes;
    struct spm_normal denormal;
};

/* What a thread needs. */
struct rules_scratch {
    struct unigram_scratch unigram;
    struct step_scratch steps;
    struct strings pieces;
    const char *first; /* where the text that begins the whole begins, as it was normalised */
    struct buf ends;
};

struct tokenizer;
struct split_state;
void rules_free(struct rules *r);
/* Sets normal_names and cut_names when all the rest is there. */
int rules_name(struct rules *r, struct err *e);
void rules_scratch_free(struct rules_scratch *s);

/* Text made ready for cutting: *out lies in b (overwritten).  first: it begins the text. */
int rules_normalize(const struct rules *r, struct rules_scratch *s, struct span text, bool first, struct buf *b,
                    struct span *out, struct err *e);
/* True if rules_pieces cuts text, and not rules_cut or unigram_text. */
static inline bool rules_has_steps(const struct rules *r)
{
    return r->cut.n > 0;
}
/* Text, normalised, into s->pieces. */
int rules_pieces(const struct rules *r, struct rules_scratch *s, struct span text, struct err *e);
/* The ends of the next pieces, as split_next. */
int64_t rules_cut(const struct rules *r, struct split_state *st, uint32_t *ends, size_t max);
/* The ids of a piece, at most n; their number, ERR_NOMEM or ERR_FORMAT. */
int64_t rules_encode(const struct tokenizer *t, struct rules_scratch *s, struct bpe_scratch *merging, const uint8_t *p,
                     size_t n, uint32_t *ids);
int rules_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out, struct err *e);

#endif
