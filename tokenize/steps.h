/* tokenize/steps.h -- the steps of a tokenizer.json: those that normalise a text, those that cut it into
 * pieces, those that make a text of tokens.  Each does exactly what Hugging Face's tokenizers 0.23 do.
 *
 * All text in here is UTF-8.
 */
#ifndef TOKENIZE_STEPS_H
#define TOKENIZE_STEPS_H

#include <stdbool.h>

#include "tokenize/charsmap.h"
#include "tokenize/split.h"

/* Strings one after another. */
struct strings {
    struct buf text;
    struct buf ends; /* uint32_t, exclusive */
};

static inline size_t strings_n(const struct strings *s)
{
    return s->ends.n / sizeof(uint32_t);
}
struct span strings_get(const struct strings *s, size_t i);
/* Ends a string where the text ends now.  ERR_NOMEM. */
int strings_end(struct strings *s);
void strings_clear(struct strings *s);
void strings_free(struct strings *s);

enum step_kind {
    /* normalise */
    STEP_NFC, STEP_NFD, STEP_NFKC, STEP_NFKD, STEP_LOWERCASE, STEP_STRIP_ACCENTS, STEP_BERT, STEP_REPLACE, STEP_PREPEND,
    STEP_STRIP, STEP_PRECOMPILED, STEP_NMT,
    /* normalise, cut and decode */
    STEP_BYTE_LEVEL,
    /* cut */
    STEP_SPLIT, STEP_METASPACE, STEP_DIGITS, STEP_PUNCTUATION, STEP_WHITESPACE, STEP_WHITESPACE_SPLIT, STEP_BERT_SPLIT,
    STEP_FIXED_LENGTH,
    /* decode (and METASPACE, REPLACE, STRIP) */
    STEP_BYTE_FALLBACK, STEP_FUSE, STEP_WORDPIECE, STEP_BPE, STEP_CTC
};

enum step_behavior { BEHAVIOR_REMOVED, BEHAVIOR_ISOLATED, BEHAVIOR_PREVIOUS, BEHAVIOR_NEXT, BEHAVIOR_CONTIGUOUS };
enum step_scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER };

struct step {
    enum step_kind kind;
    bool left, right;                        /* STRIP */
    bool clean, chinese, accents, lowercase; /* BERT; clean: WORDPIECE and CTC too */
    bool prefix_space, regex;                /* BYTE_LEVEL: cuts by split if regex */
    bool invert, single;                     /* SPLIT; METASPACE: splits; DIGITS: one by one */
    enum step_behavior behavior;
    enum step_scheme scheme;                 /* METASPACE */
    struct span text;    /* owned: what REPLACE looks for, METASPACE's mark, the pad of CTC, the affix of WORDPIECE and BPE ... */
    struct span content; /* owned: what REPLACE writes, what PREPEND writes, CTC's delimiter */
    bool is_regex;       /* split is what REPLACE or SPLIT looks for, else text */
    struct split split;
    struct charsmap map; /* PRECOMPILED */
    size_t start, stop;  /* STRIP as a decoder; FIXED_LENGTH: start */
};

struct steps {
    struct step *v;
    size_t n;
};

/* Appends a zeroed step; NULL: out of memory. */
struct step *steps_add(struct steps *s, enum step_kind kind);
void steps_drop_first(struct steps *s);
void steps_free(struct steps *s);
/* Appends their names, as tokenizer.json has them, with commas between.  ERR_NOMEM. */
int steps_names(const struct steps *s, struct buf *out);

/* What a thread needs. */
struct step_scratch {
    struct buf work;
    struct buf matches;
    struct strings other;
};
void step_scratch_free(struct step_scratch *s);

/* Text through all steps of normalisation to out (overwritten).  *head_lost: its beginning was removed. */
int steps_normalize(const struct steps *s, struct step_scratch *w, struct span text, struct buf *out, bool *head_lost,
                    struct err *e);
/* Text into pieces, to out (overwritten).  first: it begins the text that was given.  mapped: what ByteLevel made characters
 * of bytes shall stay so; else pieces are bytes at the end. */
int steps_cut(const struct steps *s, struct step_scratch *w, struct span text, bool first, bool mapped,
              struct strings *out, struct err *e);
/* Tokens (overwritten) to a text, appended. */
int steps_decode(const struct steps *s, struct step_scratch *w, struct strings *tokens, struct buf *out, struct err *e);

#endif
