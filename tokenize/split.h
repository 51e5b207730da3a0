/* tokenize/split.h -- cuts text into the pieces that a pre-tokenizer pattern matches.
 *
 * Patterns that are known by name or by their text are cut by hand-written code, others that tokenizers have by a
 * table that is made of them (split_table.h), both exactly as a backtracking regular expression engine with the
 * Unicode tables of ucd.h would; what is beyond that goes to PCRE2 (split_pcre.h).
 */
#ifndef TOKENIZE_SPLIT_H
#define TOKENIZE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "tokenize/split_bytes.h"

enum split_kind {
    SPLIT_NONE,      /* the whole text is one piece */
    SPLIT_GPT2,      /* gpt2, r50k, p50k */
    SPLIT_CL100K,    /* as tiktoken writes it */
    SPLIT_LLAMA3,    /* cl100k as Hugging Face writes it */
    SPLIT_QWEN2,     /* the same, one digit a piece */
    SPLIT_O200K,
    SPLIT_TEKKEN,    /* o200k without contractions, one digit a piece */
    SPLIT_PCRE,
    SPLIT_TABLE      /* other expressions, one or a sequence (split_table.h) */
};

struct split_pcre;

struct split {
    enum split_kind kind;
    /* The length of the piece at p, where one begins (p < end). */
    size_t (*next)(const uint8_t *p, const uint8_t *end);
    /* Many pieces at once (split_run.h); NULL if there is none. */
    void (*run)(const uint8_t *text, size_t n, struct split_run *r);
    struct split_pcre *pcre; /* PCRE only */
    struct split_table *table; /* TABLE only */
    struct split_bytes *bytes; /* TABLE: what its pieces are cut by, or NULL */
    char *text;              /* TABLE: its expressions */
    bool oniguruma;          /* PCRE: whose words the pattern has */
};

enum { SPLIT_MIN_ENDS = 128, SPLIT_WIDE = 1024 };

/* A text being cut. */
struct split_state {
    const uint8_t *text;
    size_t n, at; /* a piece begins at `at` */
    size_t stop;  /* run cannot be used before here */
    unsigned slow; /* pieces to cut by next() before run is worth trying */
    unsigned patience;
    struct split_scan_state scan; /* TABLE */
    /* Where there are bytes to cut by: pieces, of which those from `wide_at` on are still to be cut. */
    struct split_bytes_state by_byte;
    uint32_t wide_n, wide_at, wide[SPLIT_WIDE];
};

/* Begins with a text of n < 2^31 bytes. */
static inline void split_begin(struct split_state *st, const void *text, size_t n)
{
    memset(st, 0, offsetof(struct split_state, wide));
    st->text = text;
    st->n = n;
}

/* Makes the splitter for a name (gpt2, r50k, p50k, cl100k, llama3, qwen2, o200k, tekken,
 * none; with or without _base) or else for the text of a regular expression.  ERR_ARG: it
 * is no valid expression; ERR_UNSUPPORTED: built without PCRE2. */
int split_find(struct split *s, const char *pattern, struct err *e);
/* The same for an expression, never a name; oniguruma: as Hugging Face has them, not as Rust (split_expression.h). */
int split_find_expression(struct split *s, const char *pattern, bool oniguruma, struct err *e);
/* Makes s cut by a table: a splitter of kind PCRE, which is replaced then, or (zeroed) the n steps of a sequence, of which the
 * first `chars` > 0 see characters, the others bytes.  1; 0: that is beyond a table, s is what it was; ERR_NOMEM. */
int split_to_table(struct split *s, const struct split_step *steps, size_t chars, size_t n, struct err *e);
/* Its name ("regex" for PCRE2 and tables), and the text of the regular expression that it stands for. */
const char *split_name(const struct split *s);
const char *split_pattern(const struct split *s);
void split_free(struct split *s);

/* Writes the ends (exclusive, from the start of text) of the next pieces, at most max >=
 * SPLIT_MIN_ENDS, and returns their number: 0 when the text is done; ERR_NOMEM or
 * ERR_LIMIT from PCRE2. */
int64_t split_next(const struct split *s, struct split_state *st, uint32_t *ends, size_t max, struct err *e);

#endif
